//! Every bad input, and what is said about it: file, place, value, remedy.

use super::*;

/// The error of reading `bytes` to the end, as a file; it must name the file.
fn fault_of(bytes: &[u8], options: ReadOptions) -> String {
    let written = Written::new(bytes);
    let outcome =
        written.open(options).and_then(|trace| trace.rows()?.collect::<Result<Vec<_>, _>>());
    let message = outcome.expect_err(&String::from_utf8_lossy(bytes)).to_string();
    let file = written.path.display().to_string();
    assert!(message.contains(&file), "{message}");
    message.replace(&file, "FILE")
}

fn check(bytes: &[u8], parts: &[&str]) {
    let message = fault_of(bytes, options());
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

#[test]
fn files_without_rows() {
    check(b"", &["FILE: the file is empty"]);
    check(b"\n \r\n", &["the file is empty"]);
    check(b"\xef\xbb\xbf", &["the file is empty"]);
    check(AZURE.as_bytes(), &["has a header but no rows"]);
    check(b"at_s,input_tok,output_tok\r\n\r\n", &["has a header but no rows"]);
    check(b"at_s,input_tok,output_tok\n0,1,0\n", &["all 1 rows", "output 0", "--failed keep"]);
    let none = open(Input::File("/nowhere/trace.csv".into()), options()).err().unwrap();
    assert!(none.to_string().starts_with("open trace /nowhere/trace.csv: "), "{none}");
    if Path::new("/dev/null").exists() {
        // No regular file: read as a stream.
        let device = open(Input::File("/dev/null".into()), options()).err().unwrap();
        assert!(device.to_string().contains("/dev/null: the file is empty"), "{device}");
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = open(Input::File(folder.path().into()), options()).err().unwrap();
    assert!(folder.to_string().contains("holds no trace of sessions"), "{folder}");
}

#[test]
fn formats_that_are_not_known() {
    check(
        b"when,prompt_len\n1,2\n",
        &[
            "cannot tell",
            "`when,prompt_len`",
            "native (CSV",
            "azure (CSV",
            "mooncake (JSONL",
            "`--format`",
        ],
    );
    check("x".repeat(5_000).as_bytes(), &["xxxx…`"]);
    check(b"\x00\x01\x02\xff\n", &[r"`\u{0}\u{1}\u{2}"]);
    check(b"{\"hello\": 1}\n", &["cannot tell"]);
}

#[test]
fn headers_that_lack_or_repeat_a_column() {
    check(
        b"\nat_s,input_tok\n0,1\n",
        &["FILE, line 2", "`output_tok` is missing", "`at_s,input_tok`"],
    );
    check(b"at_s,input_tok,output_tok,at_s\n0,1,1,0\n", &["`at_s` stands twice"]);
    check(b"TIMESTAMP,ContextTokens\n", &["`GeneratedTokens` is missing"]);
    let forced = ReadOptions { format: Some(Format::Azure), ..options() };
    let message = fault_of(b"a,b\n1,2\n", forced.clone());
    assert!(message.contains("`TIMESTAMP` is missing"), "{message}");
    let message = fault_of(MOONCAKE.as_bytes(), forced);
    assert!(message.contains("is missing"), "{message}");
    let forced = ReadOptions { format: Some(Format::Mooncake), ..options() };
    let message = fault_of(AZURE.as_bytes(), forced);
    assert!(message.contains("line 1: no valid JSON at byte 1"), "{message}");
}

#[test]
fn azure_rows() {
    let row = |row: &str| format!("{AZURE}2024-05-12 00:00:01,3,4\n\n{row}\n").into_bytes();
    let check = |text: &str, parts: &[&str]| check(&row(text), parts);
    check(
        "2024-05-12 00:00:02,-5,4",
        &["FILE, line 4, column `ContextTokens`", "`-5` is negative", "write a whole"],
    );
    check(
        "2024-05-12 00:00:02,5,NaN",
        &["line 4, column `GeneratedTokens`", "`NaN` is not a finite"],
    );
    check("2024-05-12 00:00:02,inf,4", &["`inf` is not a finite"]);
    check("2024-05-12 00:00:02,5.5,4", &["`5.5` is finer than whole tokens"]);
    check("2024-05-12 00:00:02,4294967296,4", &["`4294967296` is too large"]);
    check("2024-05-12 00:00:02,,4", &["column `ContextTokens`: the value is missing"]);
    check("2024-05-12 00:00:02,many,4", &["`many` is not a number"]);
    check("2024-05-12 00:00:02,5", &["line 4: the row has 2 fields, the header 3"]);
    check("2024-05-12 00:00:02,5,4,", &["the row has 4 fields, the header 3"]);
    check("2024-05-12 00:00:02,\"5,4", &["quoted field is not closed on this line"]);
    check("2024-13-12 00:00:02,5,4", &["column `TIMESTAMP`: `2024-13-12 00:00:02` has a month"]);
    check("1.5,5,4", &["`1.5` is not a time stamp", "2023-11-16 18:17:03"]);
    check("2024-05-12 00:00:02Z,5,4", &["has an offset from UTC, earlier rows have none"]);
}

#[test]
fn native_rows() {
    let row = |cells: &str| {
        let header = "at_s,input_tok,output_tok,session,turn,think_s,class,blocks,block_tok";
        format!("{header}\n{cells}\n").into_bytes()
    };
    let latin: &[u8] = b"at_s,input_tok,output_tok,class\n0,1,1,\xff\n";
    check(latin, &["column `class`", "not UTF-8"]);
    let check = |cells: &str, parts: &[&str]| check(&row(cells), parts);
    check("-1,1,1,,,,,,", &["FILE, line 2, column `at_s`", "`-1` is negative", "write seconds"]);
    check(
        "0.1234567891,1,1,,,,,,",
        &["`0.1234567891` is finer than a nanosecond", "at most 9 decimals"],
    );
    check("1e20,1,1,,,,,,", &["too large", "292 years"]);
    check(",1,1,,,,,,", &["column `at_s`: the value is missing"]);
    check("0,1,1,s,0,,,,", &["column `turn`", "turns count from 1"]);
    check("0,1,1,s,-1,,,,", &["column `turn`", "negative"]);
    check("0,1,1,,1,,,,", &["column `turn`", "no `session`"]);
    check("0,1,1,,,1,,,", &["column `think_s`", "no `session`"]);
    check("0,1,1,s,1,-0.5,,,", &["column `think_s`", "`-0.5` is negative"]);
    check(
        "0,512,1,,,,,1 2,",
        &["column `blocks`", "2 blocks of 512", "512 tokens fill 1", "--block-tok"],
    );
    check("0,512,1,,,,,1 x,", &["column `blocks`", "`x` is not a number"]);
    check("0,512,1,,,,,1,0", &["column `block_tok`", "`0` tokens make no block"]);
}

#[test]
fn json_rows() {
    let first = r#"{"at_s": 0, "input_tok": 1, "output_tok": 1}"#;
    let check = |row: &str, parts: &[&str]| check(format!("{first}\n{row}\n").as_bytes(), parts);
    check(r#"{"at_s": 1, "input_tok": 1}"#, &["FILE, line 2, column `output_tok`", "missing"]);
    check(
        r#"{"at_s": "1", "input_tok": 1, "output_tok": 1}"#,
        &["column `at_s`", "is a string", "without quotes"],
    );
    check(
        r#"{"at_s": 1, "input_tok": NaN, "output_tok": 1}"#,
        &["line 2: no valid JSON at byte", "NaN and Infinity"],
    );
    check(r#"{"at_s": 1, "input_tok": [1], "output_tok": 1}"#, &["`[1]` is not a number"]);
    check(
        r#"{"at_s": 1, "input_tok": 1, "output_tok": 1, "messages": {}}"#,
        &["column `messages`: is no array"],
    );
    check(
        r#"{"at_s": 1, "input_tok": 1, "output_tok": 1, "body": [1]}"#,
        &["column `body`: is no object"],
    );
    check(
        r#"{"at_s": 1, "input_tok": 1, "output_tok": 1, "prompt": 5}"#,
        &["column `prompt`: is no text"],
    );
    check(
        r#"{"at_s": 1, "input_tok": 1, "output_tok": 1, "session": true}"#,
        &["column `session`"],
    );
    check(
        r#"{"at_s": 1, "input_tok": 1, "output_tok": 1, "blocks": "1 2"}"#,
        &["column `blocks`", "list of whole"],
    );
    check(
        r#"{"at_s": 1, "at_s": 1, "input_tok": 1, "output_tok": 1}"#,
        &["key `at_s` stands twice"],
    );
    check("[1]", &["line 2", "one JSON object on the line"]);
}

/// guidellm#948, vllm#39795: block lists that contradict the lengths.
#[test]
fn fault_57_a_wrong_block_size_is_reported_by_line() {
    let good = MOONCAKE.to_owned();
    let bad = good.clone() + &good.replace("\"input_length\": 5,", "\"input_length\": 600,");
    check(
        bad.as_bytes(),
        &[
            "line 2, column `hash_ids`",
            "1 ids",
            "600 tokens in blocks of 512 need 2",
            "--block-tok",
        ],
    );
    let zero = fault_free_error(ReadOptions { block_tok: Some(0), ..options() });
    assert!(zero.contains("`--block-tok` must be above zero"), "{zero}");
}

fn fault_free_error(options: ReadOptions) -> String {
    Written::new(MOONCAKE.as_bytes()).open(options).err().unwrap().to_string()
}

#[test]
fn torn_last_lines() {
    let torn = |text: &[u8]| {
        check(text, &["the file ends in the middle of this line", "delete its last line"]);
    };
    torn(format!("{AZURE}2024-05-12 00:00:01,3,4\n2024-05-12 00:0").as_bytes());
    torn(format!("{MOONCAKE}{{\"timestamp\": 3, \"inp").as_bytes());
    torn(b"at_s,input_tok,output_tok\n0,1,1\n1,2,");
    torn(b"at_s,input_tok,output_tok\n0,1,1\n1,\"2");
    let whole = |text: &str| {
        let message = fault_of(text.as_bytes(), options());
        assert!(message.contains("line 2") && !message.contains("in the middle"), "{message}");
    };
    whole("at_s,input_tok,output_tok\n1,,2\n");
    whole("at_s,input_tok,output_tok\n1,2,-3");
    whole(&format!("{MOONCAKE}{}", MOONCAKE.trim_end().replace("5,", "-5,")));
}

#[test]
fn damaged_compression() {
    let text = format!("{AZURE}{}", "2024-05-12 00:00:01,3,4\n".repeat(1000));
    for packed in [gzip(&[text.as_bytes()]), zstd_of(text.as_bytes())] {
        check(&packed[..packed.len() - 5], &["the compressed data ends early"]);
    }
    let mut packed = gzip(&[text.as_bytes()]);
    let last = packed.len() - 6;
    packed[last] ^= 0x55;
    check(&packed, &["FILE after line", "damaged"]);
}

#[test]
fn streams_end_at_the_first_fault() {
    let check = |text: &str, parts: &[&str]| {
        let trace = stream(text.as_bytes(), options()).unwrap();
        let items: Vec<_> = trace.rows().unwrap().collect();
        let message = items.last().unwrap().as_ref().unwrap_err().to_string();
        assert!(items[..items.len() - 1].iter().all(Result::is_ok));
        assert!(message.contains("standard input"), "{message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    let inversion = "at_s,input_tok,output_tok\n0,1,1\n5.5,1,1\n5,1,1\n6,1,1\n";
    check(inversion, &["line 4", "0.500000000 s before", "save it to a file"]);
    check(
        &format!("{AZURE}2024-05-12 00:00:01,3,4\n2024-05-12 00:00:00,3,4\n"),
        &["line 3", "1.000000000 s"],
    );
    check("at_s,input_tok,output_tok\n0,1,1\nx,1,1\n1,1,1\n", &["line 3, column `at_s`"]);
    check("at_s,input_tok,output_tok\n", &["header but no rows"]);
    let empty = stream(b"", options()).err().unwrap().to_string();
    assert!(empty.contains("standard input: the file is empty"), "{empty}");
}

#[test]
fn sorted_on_trust_and_not_sorted() {
    let text = "at_s,input_tok,output_tok\n5,1,1\n1,1,1\n";
    let trust = ReadOptions { assume_sorted: true, ..options() };
    let message = fault_of(text.as_bytes(), trust.clone());
    assert!(message.contains("line 3") && message.contains("`--assume-sorted`"), "{message}");
    let trace = opened(&text.as_bytes()[..32], trust);
    assert!(trace.facts().is_none());
    assert_eq!(sketch(&trace), "0@5000000000:1/1");
}

#[test]
fn a_file_that_changed_is_not_replayed() {
    for unsorted in [false, true] {
        let order = if unsorted { ["5", "1"] } else { ["1", "5"] };
        let text = format!("at_s,input_tok,output_tok\n{},1,1\n{},1,1\n", order[0], order[1]);
        let trace = opened(text.as_bytes(), options());
        assert_eq!(requests(&trace).len(), 2);
        std::fs::write(&trace.file.path, text.replace("5,1", "55,1")).unwrap();
        let message = trace.rows().err().unwrap().to_string();
        assert!(message.contains("the file changed since it was opened"), "{message}");
    }
}

#[test]
fn rows_that_grow_after_validation_are_not_read() {
    let text = "at_s,input_tok,output_tok\n1,1,1\n";
    let trace = opened(text.as_bytes(), options());
    let rows = trace.rows().unwrap();
    let mut appended = std::fs::OpenOptions::new().append(true).open(&trace.file.path).unwrap();
    appended.write_all(b"0,1,1\n").unwrap();
    assert_eq!(rows.collect::<Result<Vec<_>, _>>().unwrap().len(), 1);
}

#[test]
fn a_line_without_end_is_refused() {
    let text = format!("{AZURE}{}", "9".repeat((64 << 20) + 1));
    check(text.as_bytes(), &["FILE, line 2", "longer than the limit of 64 MiB"]);
}
