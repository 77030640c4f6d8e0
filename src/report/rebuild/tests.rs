//! Runs of any kind, recorded and made again from their files.

use super::super::{Recorded, Recorder, write_summary};
use super::*;
use crate::record::{Kind, StreamRecord, Usage};
use proptest::prelude::*;
use std::sync::Arc;

const MS: u64 = 1_000_000;

/// A request of any kind that can end.
fn any_record() -> impl Strategy<Value = StreamRecord> {
    let outcome = prop::sample::select(vec![
        Outcome::Ok,
        Outcome::Ok,
        Outcome::Ok,
        Outcome::Incomplete,
        Outcome::Truncated,
        Outcome::Connect,
        Outcome::Unsent,
    ]);
    let gaps = prop::collection::vec(0..8_000_000_000_u64, 0..12);
    (outcome, 0..40_000_u64, gaps, any::<[bool; 4]>(), 0..3_usize).prop_map(
        |(outcome, due_ms, gaps, [counted, running, several, closes], class)| {
            let due = Nanos(due_ms * MS);
            let sent = (outcome != Outcome::Unsent).then_some(due + Nanos(12_345));
            let mut record = StreamRecord {
                due,
                sent,
                class: [None, Some("a,b"), Some("c")][class].map(Arc::from),
                http_status: sent.map(|_| 200),
                input_tok_asked: Some(9),
                output_tok_asked: Some(5),
                outcome,
                ..StreamRecord::default()
            };
            let mut at = due + Nanos(5 * MS);
            let gaps = if sent.is_some() { &gaps[..] } else { &[] };
            for (i, gap) in gaps.iter().enumerate() {
                at += Nanos(*gap);
                record.tokens.push(at, Kind::Content, running.then_some(2 * i as u64 + 2));
            }
            let n = record.tokens.count() * if several { 3 } else { 1 };
            record.usage = counted.then(|| Usage {
                input_tok: Some(9),
                output_tok: Some(n),
                ..Usage::default()
            });
            record.close = sent.map(|_| at).filter(|_| closes);
            record
        },
    )
}

fn text(summary: &Summary) -> String {
    let mut out = Vec::new();
    write_summary(summary, &mut out).expect("memory");
    String::from_utf8(out).expect("text")
}

/// Records everything, with flushes here and there, and gives the run's own summary.
fn run(folder: &Folder, records: &[StreamRecord], warmup: Nanos, known: bool) -> String {
    let last_due = records.iter().map(|record| record.due).max().filter(|_| known);
    let window = Window { warmup, last_due };
    let mut recorder = Recorder::create(Some(folder), window, false, false).expect("files");
    for (i, record) in records.iter().enumerate() {
        recorder.record(StreamRecord { row: i as u64, ..record.clone() }).expect("space");
        recorder.flush_if_due(Nanos::from_secs(i as u64 * 3)).expect("space");
    }
    let Recorded { summary, written, .. } = recorder.finish();
    written.expect("space");
    text(&summary)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_files_give_the_summary_again_to_the_last_byte(
        records in prop::collection::vec(any_record(), 0..40),
        warmup_ms in prop::sample::select(vec![0, 7_001, 20_000, 60_000]),
        known in any::<bool>(),
    ) {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = Folder::at(parent.path());
        let own = run(&folder, &records, Nanos(warmup_ms * MS), known);
        let rebuilt = rebuild(&folder).expect("a run");
        prop_assert_eq!(text(&rebuilt.summary), own);
        prop_assert!(rebuilt.notices.is_empty(), "{:?}", rebuilt.notices);
    }
}

#[test]
fn torn_and_missing_files_give_what_they_can_and_say_what_not() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = Folder::at(parent.path());
    assert!(matches!(rebuild(&folder), Err(RebuildError::NoRun { .. })));
    let mut records = vec![StreamRecord::default(); 8];
    for (i, record) in records.iter_mut().enumerate() {
        record.due = Nanos::from_secs(i as u64);
        record.sent = Some(record.due);
        record.outcome = Outcome::Ok;
        record.http_status = Some(200);
        for k in 1..=3 {
            record.tokens.push(record.due + Nanos(k * MS), Kind::Content, None);
        }
    }
    run(&folder, &records, Nanos::ZERO, false);
    let rows = std::fs::read_to_string(folder.file(REQUESTS)).expect("rows");
    let check = |cut: usize, torn: bool| {
        std::fs::write(folder.file(REQUESTS), &rows[..cut]).expect("space");
        let rebuilt = rebuild(&folder).expect("rows");
        let says = |words: &str| rebuilt.notices.iter().any(|notice| notice.contains(words));
        assert_eq!(says("torn"), torn, "{:?}", rebuilt.notices);
        assert_eq!(says("1 rows that intervals.csv counts"), torn, "{:?}", rebuilt.notices);
        assert_eq!(rebuilt.summary.all.rows(), if torn { 7 } else { 8 });
    };
    check(rows.len(), false);
    check(rows.len() - 1, true);
    check(rows.len() - 30, true);
    std::fs::write(folder.file(REQUESTS), &rows).expect("space");
    std::fs::remove_file(folder.file(INTERVALS)).expect("it is there");
    let rebuilt = rebuild(&folder).expect("rows");
    assert!(rebuilt.notices[0].contains("there is no intervals.csv"), "{:?}", rebuilt.notices);
    let line = rebuilt.summary.line("output_tok_s", "measured").expect("a line");
    assert_eq!((line.n, line.mean), (None, None), "not 0: unknown");
    assert!(rebuilt.summary.value("ttft_ms", "all", crate::metrics::Stat::Mean).is_some());
    // A bad row in the middle is no torn one.
    std::fs::write(folder.file(REQUESTS), rows.replacen("measured", "no phase", 1)).expect("space");
    let error = rebuild(&folder).expect_err("a bad row").to_string();
    assert!(error.contains("requests.csv: line 2, column `phase`"), "{error}");
}
