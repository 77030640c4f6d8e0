//! Whole traces through [`open`]: formats, order, compression, streams, notices.
//!
//! Every trace is written here; [`real`] reads the public files where they are at hand.

mod damage;
mod faults;
mod logs;
mod quirks;
mod real;

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::open::open_stream;
use super::*;
use crate::trace::{OutputSum, Request};
use crate::units::Nanos;

/// A trace file that lasts as long as the test.
struct Written {
    _folder: TempDir,
    path: PathBuf,
}

impl Written {
    fn new(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        std::fs::write(&path, bytes).unwrap();
        Self { _folder: folder, path }
    }

    fn open(&self, options: ReadOptions) -> Result<Trace, TraceError> {
        open(Input::File(self.path.clone()), options)
    }
}

/// A trace together with the file it is read from.
struct Opened {
    file: Written,
    trace: Trace,
}

impl std::ops::Deref for Opened {
    type Target = Trace;

    fn deref(&self) -> &Trace {
        &self.trace
    }
}

fn opened(bytes: &[u8], options: ReadOptions) -> Opened {
    let file = Written::new(bytes);
    let trace = file.open(options).unwrap();
    Opened { file, trace }
}

fn options() -> ReadOptions {
    ReadOptions::default()
}

fn stream(bytes: &[u8], options: ReadOptions) -> Result<Trace, TraceError> {
    open_stream(Box::new(Cursor::new(bytes.to_vec())), "standard input", options)
}

fn requests(trace: &Trace) -> Vec<Request> {
    trace.rows().unwrap().collect::<Result<_, _>>().unwrap()
}

/// `row@ns:input/output` of every row.
fn sketch(trace: &Trace) -> String {
    let mut text = String::new();
    for request in requests(trace) {
        let gap = if text.is_empty() { "" } else { " " };
        let Request { row, at, input_tok, output_tok, .. } = request;
        let output = output_tok.map_or("-".to_owned(), |tok| tok.to_string());
        write!(text, "{gap}{row}@{}:{input_tok}/{output}", at.0).unwrap();
    }
    text
}

/// Reads `text` as a file and as a stream; both must give `expect`.
fn check(text: &str, expect: &str) -> Opened {
    let trace = opened(text.as_bytes(), options());
    assert_eq!(sketch(&trace), expect, "{text}");
    assert_eq!(sketch(&trace), expect, "a second pass over {text}");
    assert_eq!(sketch(&stream(text.as_bytes(), options()).unwrap()), expect, "streamed {text}");
    trace
}

const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
const MOONCAKE: &str =
    "{\"timestamp\": 0, \"input_length\": 5, \"output_length\": 2, \"hash_ids\": [0]}\n";

#[test]
fn azure_in_every_dialect() {
    let expect = "0@0:374/44 1@4314579000:396/109";
    let rows = ["2023-11-16 18:15:46.6805900,374,44", "2023-11-16 18:15:50.9951690,396,109"];
    check(&format!("{AZURE}{}\n{}\n", rows[0], rows[1]), expect);
    // 2023 as published: CRLF, no newline after the last row.
    let trace = check(&format!("{AZURE}{}\n{}", rows[0], rows[1]).replace('\n', "\r\n"), expect);
    assert_eq!(trace.format(), Format::Azure);
    assert!(trace.notices().is_empty(), "{:?}", trace.notices());
    check(&format!("\u{feff}{AZURE}\n{}\n  \n{}\n\n", rows[0], rows[1]), expect);
    check(
        &format!("{AZURE}2024-05-12 00:00:00.999999+00:00,1,2\n2024-05-12 00:00:01+00:00,3,4\n"),
        "0@0:1/2 1@1000:3/4",
    );
    let trace = check(
        "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-10-15T12:00:00.269Z,16,770,491\n\
         2024-10-15T12:00:05.819Z,1,949,126\n",
        "0@0:770/491 1@5550000000:949/126",
    );
    assert_eq!(trace.notices(), ["column `NumImages` is ignored: images are not replayed"]);
    let trace = check(
        "x,GeneratedTokens,\"TIMESTAMP\",ContextTokens\n\"a,b\",2,2024-05-12 00:00:01,374.0\n",
        "0@0:374/2",
    );
    assert!(trace.notices()[0].contains("ignored: `x`"), "{:?}", trace.notices());
}

/// inference-perf#782: arrivals at 1, 2, 9 and 11 ms became 0, 0, 0 and 10.
#[test]
fn fault_52_times_below_ten_milliseconds_survive() {
    let rows = [1, 2, 9, 11].map(|ms| format!("2023-11-16 18:15:46.{ms:03}0000,1,1\n"));
    let expect = "0@0:1/1 1@1000000:1/1 2@8000000:1/1 3@10000000:1/1";
    check(&format!("{AZURE}{}", rows.concat()), expect);
}

#[test]
fn mooncake_counts_from_the_earliest_row() {
    let text = MOONCAKE.replace(": 0,", ": 3000,") + &MOONCAKE.replace(": 0,", ": 6001.5,");
    let trace = check(&text, "0@0:5/2 1@3001500000:5/2");
    assert_eq!(trace.format(), Format::Mooncake);
    let prefix = requests(&trace)[0].prefix.clone().unwrap();
    assert_eq!((&prefix.blocks[..], prefix.block_tok), (&[0][..], 512));
    let more = MOONCAKE.replace("}\n", ", \"priority\": 1}\n");
    let trace = check(&more, "0@0:5/2");
    assert!(trace.notices()[0].contains("`priority`"), "{:?}", trace.notices());
}

#[test]
fn native_csv_keeps_its_zero_and_every_column() {
    let trace = check(
        "output_tok,at_s,input_tok\n2,5.000000001,1\n4,1e1,3.0\n",
        "0@5000000001:1/2 1@10000000000:3/4",
    );
    assert_eq!((trace.format(), trace.notices().len()), (Format::Native, 0));
    let trace = check(
        "at_s,input_tok,output_tok,session,turn,think_s,class,blocks,block_tok,extra\n\
         0,1030,2,\"a, b\",1,,chat,7 8 9,,x\n1,40,2,\"a, b\",2,0.25,chat,7  8 ,16,\n2,3,4,,,,,,,\n",
        "0@0:1030/2 1@1000000000:40/2 2@2000000000:3/4",
    );
    assert!(trace.notices()[0].contains("unknown to the native format are ignored: `extra`"));
    let rows = requests(&trace);
    assert_eq!(rows[0].session.as_deref(), Some("a, b"));
    assert_eq!((rows[0].turn, rows[1].turn, rows[2].turn), (Some(1), Some(2), None));
    assert_eq!((rows[0].think, rows[1].think), (None, Some(Nanos(250_000_000))));
    assert_eq!(rows[1].class.as_deref(), Some("chat"));
    let blocks = |row: &Request| row.prefix.clone().map(|p| (p.blocks.to_vec(), p.block_tok));
    assert_eq!(blocks(&rows[0]), Some((vec![7, 8, 9], 512)));
    assert_eq!(blocks(&rows[1]), Some((vec![7, 8], 16)));
    assert_eq!(
        (blocks(&rows[2]), rows[2].session.clone(), rows[2].class.clone()),
        (None, None, None)
    );
}

/// An empty cell or a `null` asks for no completion length; a key that is not there is a fault.
#[test]
fn native_rows_may_leave_the_completion_length_open() {
    let trace = check(
        "at_s,input_tok,output_tok,session\n0,10,,a\n1,20,5,\n2,30,0,\n3,40,,\n",
        "0@0:10/- 1@1000000000:20/5 3@3000000000:40/-",
    );
    let facts = trace.facts().unwrap();
    assert_eq!(facts.output, OutputSum { limited_tok: 5, natural_rows: 2 });
    assert_eq!((facts.output.total(), facts.rows_failed), (None, 1));
    let notice = trace.notices().iter().find(|line| line.contains("no `output_tok`")).unwrap();
    assert!(notice.starts_with("2 of 4 rows") && notice.contains("end by themselves"), "{notice}");
    check("{\"at_s\": 0, \"input_tok\": 10, \"output_tok\": null}\n", "0@0:10/-");
}

#[test]
fn native_jsonl_keeps_words_to_the_byte() {
    let trace = check(
        concat!(
            r#"{"at_s": 1e-05, "input_tok": 10, "output_tok": 2, "session": 17, "turn": 1, "think_s": null}"#,
            "\n",
            r#"{"output_tok": 2, "input_tok": 10, "at_s": 1, "prompt": "h\u00e9\n", "class": "x"}"#,
        ),
        "0@10000:10/2 1@1000000000:10/2",
    );
    let rows = requests(&trace);
    assert_eq!((rows[0].session.as_deref(), rows[0].content.is_none()), (Some("17"), true));
    assert_eq!(rows[1].content.as_ref().unwrap().prompt.as_deref(), Some("hé\n"));
    let line = r#"{"at_s": 0, "input_tok": 600, "output_tok": 2, "blocks": [3, 4], "messages": [ {"role": "user"} ], "body": {"n": 1.0}, "tag": 1}"#;
    let trace = check(line, "0@0:600/2");
    let row = requests(&trace).remove(0);
    let content = row.content.unwrap();
    assert_eq!(content.messages.unwrap().get(), r#"[ {"role": "user"} ]"#);
    assert_eq!(content.body.unwrap().get(), r#"{"n": 1.0}"#);
    assert_eq!(row.prefix.unwrap().blocks.to_vec(), [3, 4]);
    assert!(trace.notices()[0].contains("`tag`"));
}

#[test]
fn options_overrule_the_content() {
    let with = |text: &str, options: ReadOptions| {
        Written::new(text.as_bytes()).open(options).map(|t| (sketch(&t), t.notices().to_vec()))
    };
    let unit = ReadOptions { time_unit: Some(TimeUnit::Us), ..options() };
    let text = MOONCAKE.to_owned() + &MOONCAKE.replace(": 0,", ": 5000000,");
    assert_eq!(with(&text, unit.clone()).unwrap().0, "0@0:5/2 1@5000000000:5/2");
    // Bailian's rows have Mooncake's keys with seconds and blocks of 16.
    let bailian = r#"{"chat_id": 0, "timestamp": 0.5, "input_length": 17, "output_length": 2, "hash_ids": [1, 2]}"#;
    let forced = ReadOptions { format: Some(Format::Mooncake), ..options() };
    let message = with(bailian, forced).unwrap_err().to_string();
    assert!(message.contains("2 ids, but 17 tokens in blocks of 512 need 1"), "{message}");
    let told = ReadOptions {
        format: Some(Format::Mooncake),
        time_unit: Some(TimeUnit::S),
        block_tok: Some(16),
        ..options()
    };
    assert_eq!(with(bailian, told).unwrap().0, "0@0:17/2");
    let needless = ReadOptions { block_tok: Some(16), ..unit };
    let notices = with(&format!("{AZURE}2024-05-12 00:00:01,3,4\n"), needless).unwrap().1;
    assert!(
        notices[0].contains("--time-unit") && notices[1].contains("--block-tok"),
        "{notices:?}"
    );
}

/// vllm#13063: rows recorded with no output are failures; sglang#2011: an empty prompt killed a server.
#[test]
fn faults_60_and_62_zero_lengths_are_counted_and_said() {
    let text = "at_s,input_tok,output_tok\n0,5,0\n1,0,3\n2,0,0\n\n3,7,1\n";
    let written = Written::new(text.as_bytes());
    let dropped = written.open(options()).unwrap();
    assert_eq!(sketch(&dropped), "1@1000000000:1/3 3@3000000000:7/1");
    let facts = dropped.facts().unwrap();
    assert_eq!(
        (facts.rows_read, facts.rows_kept, facts.rows_failed, facts.rows_raised),
        (4, 2, 2, 1)
    );
    assert_eq!((facts.input_tok, facts.output), (8, OutputSum::of(4)));
    assert_eq!((facts.first, facts.last), (Nanos::from_secs(1), Nanos::from_secs(3)));
    let said = dropped.notices().join("\n");
    assert!(said.contains("2 of 4 rows are recorded with output 0"), "{said}");
    assert!(said.contains("`--failed keep`") && said.contains("the first on line 3"), "{said}");
    let keep = ReadOptions { failed: Failed::Keep, ..options() };
    let kept = written.open(keep.clone()).unwrap();
    let all = "0@0:5/1 1@1000000000:1/3 2@2000000000:1/1 3@3000000000:7/1";
    assert_eq!(sketch(&kept), all);
    assert!(kept.notices()[0].contains("2 of 4 rows") && kept.notices()[0].contains("are kept"));
    // A stream cannot count before, so it says so after.
    let streamed = stream(text.as_bytes(), keep).unwrap();
    assert!(streamed.late_notices().is_empty());
    assert_eq!(sketch(&streamed), all);
    assert_eq!(streamed.late_notices().len(), 2, "{:?}", streamed.late_notices());
    assert!(kept.late_notices().is_empty());
}

#[test]
fn trace_time_zero_is_the_earliest_row_even_a_dropped_one() {
    check(
        &format!("{AZURE}2024-05-12 00:00:01,3,0\n2024-05-12 00:00:03,3,4\n"),
        "1@2000000000:3/4",
    );
}

/// evalscope#1489: rows out of order.
#[test]
fn fault_54_rows_are_sorted_stably_and_the_moved_are_counted() {
    let rows = [(5, 1), (1, 2), (5, 3), (0, 4), (1, 5), (9, 6)];
    let line = |(s, tok): (u32, u32)| format!("2024-05-12 00:00:0{s},{tok},1\r\n");
    let text = format!("\u{feff}{AZURE}\n{}", rows.map(line).concat());
    let expect = "3@0:4/1 1@1000000000:2/1 4@1000000000:5/1 0@5000000000:1/1 2@5000000000:3/1 \
                  5@9000000000:6/1";
    for bytes in [text.clone().into_bytes(), gzip(&[text.as_bytes()]), zstd_of(text.as_bytes())] {
        let trace = opened(&bytes, options());
        assert_eq!(sketch(&trace), expect);
        assert_eq!(sketch(&trace), expect);
        let facts = trace.facts().unwrap();
        assert_eq!((facts.rows_moved, facts.distinct_times), (3, 4));
        assert_eq!((facts.first, facts.last), (Nanos::ZERO, Nanos::from_secs(9)));
        assert!(trace.notices()[0].contains("3 of 6 rows"), "{:?}", trace.notices());
    }
}

/// Two sorted runs glued together, as `RAGPulse`'s file is, and far larger than a buffer.
#[test]
fn glued_runs_are_merged_through_the_index() {
    let mut text = String::from("at_s,input_tok,output_tok,class\n");
    let filler = "x".repeat(300);
    for run in 0..2u64 {
        for step in 0..2_000u64 {
            writeln!(text, "{}.{run},{},1,{filler}", step, run * 2_000 + step + 1).unwrap();
        }
    }
    let trace = opened(text.as_bytes(), options());
    assert_eq!(trace.facts().unwrap().rows_moved, 1_999);
    let rows = requests(&trace);
    assert_eq!(rows.len(), 4_000);
    for (place, row) in (0u64..).zip(&rows) {
        assert_eq!(row.at, Nanos(place / 2 * 1_000_000_000 + place % 2 * 100_000_000));
        assert_eq!(row.row, place % 2 * 2_000 + place / 2);
        assert_eq!(u64::from(row.input_tok), row.row + 1);
    }
}

fn gzip(members: &[&[u8]]) -> Vec<u8> {
    let mut packed = Vec::new();
    for member in members {
        let mut encoder = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
        encoder.write_all(member).unwrap();
        encoder.finish().unwrap();
    }
    packed
}

fn zstd_of(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap()
}

#[test]
fn compression_is_told_by_content_in_files_and_streams() {
    let text = format!("{AZURE}2024-05-12 00:00:01,3,4\n2024-05-12 00:00:02,5,6\n");
    let (head, tail) = text.as_bytes().split_at(60);
    // An empty skippable frame stands in front, as parallel compressors write it.
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0], &zstd_of(head)[..], &zstd_of(tail)[..]];
    for packed in [gzip(&[head, tail]), zstd_of(text.as_bytes()), skippable.concat()] {
        let expect = "0@0:3/4 1@1000000000:5/6";
        assert_eq!(sketch(&opened(&packed, options())), expect);
        assert_eq!(sketch(&stream(&packed, options()).unwrap()), expect);
    }
}

#[test]
fn a_stream_is_neither_validated_nor_read_twice() {
    let trace = stream(MOONCAKE.as_bytes(), options()).unwrap();
    assert!(trace.facts().is_none());
    assert_eq!(requests(&trace).len(), 1);
    let again = trace.rows().err().unwrap().to_string();
    assert!(again.contains("standard input: a stream can be read once only"), "{again}");
}

#[test]
fn quantised_times_are_said_with_numbers() {
    let text = MOONCAKE.repeat(4) + &MOONCAKE.replace(": 0,", ": 3000,").repeat(3);
    let trace = opened(text.as_bytes(), options());
    assert_eq!(trace.facts().unwrap().distinct_times, 2);
    let said = &trace.notices()[0];
    assert!(said.contains("7 rows have 2 distinct times"), "{said}");
}

/// guidellm#948: 0.2 "seconds" read as milliseconds; and an epoch taken as relative.
#[test]
fn fault_53_a_wrong_unit_or_origin_is_loud() {
    let said = |text: &str| opened(text.as_bytes(), options()).notices().join("\n");
    let short = MOONCAKE.to_owned() + &MOONCAKE.replace(": 0,", ": 0.4,");
    let notice = said(&short);
    assert!(notice.contains("lasts 0.4 ms") && notice.contains("--time-unit"), "{notice}");
    let long = MOONCAKE.to_owned() + &MOONCAKE.replace(": 0,", ": 1700000000000,");
    let notice = said(&long);
    assert!(notice.contains("lasts 53 years") && notice.contains("--time-unit"), "{notice}");
    let notice = said("at_s,input_tok,output_tok\n1700000000,1,1\n1700000009,1,1\n");
    assert!(
        notice.contains("53 years after trace time 0") && notice.contains("--from"),
        "{notice}"
    );
    assert_eq!(said("at_s,input_tok,output_tok\n0,1,1\n0.001,1,1\n"), "");
}

/// An hour in seconds read as milliseconds, and milliseconds read as seconds: asked about, unless the unit is
/// named.
#[test]
fn a_plausible_but_wrong_unit_is_asked_about() {
    let said = |text: &str, options: ReadOptions| {
        let notices = opened(text.as_bytes(), options).notices().join("\n");
        notices.lines().find(|line| line.contains("are its times in")).map(str::to_owned)
    };
    let rows = |step: u64| -> String {
        (0..300_u64).map(|row| MOONCAKE.replace(": 0,", &format!(": {},", row * step))).collect()
    };
    let asked = said(&rows(3), options()).expect("100 whole milliseconds of 300");
    assert!(asked.contains("`--time-unit s`") && asked.contains("read in ms"), "{asked}");
    assert_eq!(said(&rows(3), ReadOptions { time_unit: Some(TimeUnit::Ms), ..options() }), None);
    assert_eq!(said(&rows(30), options()), None);
    let native = |step: u64| -> String {
        let rows = (0..300_u64).map(|row| format!("{},5,5\n", row * step));
        std::iter::once("at_s,input_tok,output_tok\n".to_owned()).chain(rows).collect()
    };
    let asked = said(&native(3_000), options()).expect("gaps of 3000 s");
    assert!(asked.contains("multiples of 1000") && asked.contains("`--time-unit ms`"), "{asked}");
    assert_eq!(said(&native(30), options()), None);
}

#[test]
fn progress_ends_at_the_whole_file() {
    let text = format!("{AZURE}{}", "2024-05-12 00:00:01,3,4\n".repeat(500_000));
    let written = Written::new(text.as_bytes());
    let mut calls = Vec::new();
    let mut note = |read, total| calls.push((read, total));
    open_with_progress(Input::File(written.path.clone()), options(), &mut note).unwrap();
    let total = text.len() as u64;
    assert_eq!(calls.last(), Some(&(total, total)));
    assert!((3..8).contains(&calls.len()), "{calls:?}");
    assert!(calls.is_sorted());
}

#[test]
fn words_of_options_read_back() {
    assert_eq!("us".parse::<TimeUnit>().unwrap(), TimeUnit::Us);
    assert_eq!("keep".parse::<Failed>().unwrap(), Failed::Keep);
    let message = "csv".parse::<Format>().unwrap_err().to_string();
    assert_eq!(
        message,
        "unknown trace format `csv`; write one of native, azure, burstgpt, mooncake, timed-trace, \
         bailian, ragpulse, weka, tracelab, tracelab-replay, lengths, otel, litellm, dynamo, sglang"
    );
    assert!("min".parse::<TimeUnit>().is_err() && "no".parse::<Failed>().is_err());
}

#[test]
fn a_trace_can_be_shared_between_threads() {
    fn assert_shared<T: Send + Sync>() {}
    assert_shared::<Trace>();
    assert!(!Path::new("-").exists(), "`-` means standard input");
}

proptest::proptest! {
    /// A native row says the same in both dresses.
    #[test]
    fn native_csv_and_jsonl_agree(
        at_ns in 0u64..1_000_000_000_000,
        lengths in (0u32..3000, 0u32..3000),
        session in proptest::option::of("[a-z ,\"]{1,5}[a-z]"),
        turn in proptest::option::of(1u32..9),
        blocks in proptest::collection::vec(proptest::prelude::any::<u64>(), 0..6),
    ) {
        let at = Nanos(at_ns);
        let turn = turn.filter(|_| session.is_some());
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["at_s", "input_tok", "output_tok", "session", "turn", "blocks"]).unwrap();
        let ids: Vec<_> = blocks.iter().map(u64::to_string).collect();
        writer.write_record([
            at.to_string(), lengths.0.to_string(), lengths.1.to_string(),
            session.clone().unwrap_or_default(),
            turn.map(|turn| turn.to_string()).unwrap_or_default(), ids.join(" "),
        ]).unwrap();
        let csv = writer.into_inner().unwrap();
        let json = format!(
            "{{\"at_s\": {at}, \"input_tok\": {}, \"output_tok\": {}, \"session\": {}, \"turn\": {}, \"blocks\": [{}]}}",
            lengths.0, lengths.1, serde_json::to_string(&session).unwrap(),
            serde_json::to_string(&turn).unwrap(), ids.join(",")
        );
        let read = |bytes: &[u8]| {
            let rows = stream(bytes, options()).unwrap().rows().unwrap();
            rows.map(|row| {
                row.map(|row| format!("{row:?}")).map_err(|error| error.to_string().replace("line 1", "line 2"))
            }).collect::<Vec<_>>()
        };
        // Session names are trimmed in CSV only.
        if session.is_none_or(|name| name.trim() == name) {
            proptest::prop_assert_eq!(read(&csv), read(json.as_bytes()));
        }
    }
}
