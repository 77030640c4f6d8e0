//! Files that are refused, and in which words.

use super::*;

/// A good file with one line replaced or added.
fn with(line: &str, instead: &str) -> String {
    let good = "duration = \"30s\"\n[arrival]\nprocess = \"gamma\"\nrate = 5.53\ncv = 2.0\n[input]\n\
                distribution = \"quantiles\"\nq = [0, 0.5, 1]\ntokens = [1, 50, 900]\nmin = 1\n\
                [output]\ndistribution = \"uniform\"\nmin = 10\nmax = 20\n";
    assert!(good.contains(line), "{line}");
    good.replacen(line, instead, 1)
}

#[test]
fn mistakes_are_named_with_their_line_and_the_remedy() {
    let check = |text: &str, message: &str| {
        let error = Workload::parse(text, "chat.toml").map(|w| format!("{w:?}"));
        assert_eq!(error.expect_err(message).to_string(), message, "{text}");
    };
    check(
        &with("rate =", "rat ="),
        "unknown key `rat` in [arrival] (chat.toml line 4); did you mean `rate`?",
    );
    check(
        &with("[output]", "[outptu]"),
        "unknown key `outptu` at the top level (chat.toml line 11); did you mean `output`?",
    );
    check(
        &with("\"gamma\"", "\"gama\""),
        "unknown process `gama` in [arrival] (chat.toml line 3); did you mean `gamma`?",
    );
    check(
        &with("\"gamma\"", "\"pareto\""),
        "unknown process `pareto` in [arrival] (chat.toml line 3); known here: constant, poisson, gamma, weibull, closed",
    );
    check(
        &with("\"gamma\"", "\"poisson\""),
        "unknown key `cv` in [arrival] (chat.toml line 5); known here: process, rate, envelope, bursts",
    );
    check(
        &with("\"uniform\"", "\"unifrom\""),
        "unknown distribution `unifrom` in [output] (chat.toml line 12); did you mean `uniform`?",
    );
    check(
        &with("cv = 2.0", "cv = 2.0\nrows = 5"),
        "unknown key `rows` in [arrival] (chat.toml line 6); `rows` stands above the first [section]",
    );
    check(
        &with("rate = 5.53\n", ""),
        "`rate` is missing in [arrival] (chat.toml line 2); it is in requests per second, for example rate = 5.53",
    );
    check(
        "[arrival]\nprocess = \"poisson\"\nrate = 1\n[input]\ndistribution = \"fixed\"\ntokens = 1\n",
        "`output` is missing at the top level (chat.toml line 1); add [output] with one of completion tokens",
    );
    check(
        "[arrival]\nprocess = \"poisson\"\nrate = 1\n[input]\ndistribution = \"fixed\"\ntokens = 1\n\
         [output]\ndistribution = \"natural\"\n[sessions.turns]\ndistribution = \"fixed\"\nturns = 2\n\
         [sessions.new]\ndistribution = \"fixed\"\ntokens = 2\n[[sessions.think]]\n\
         distribution = \"fixed\"\nseconds = 1\n",
        "`output.max` is missing at the top level (chat.toml line 1); its sessions add answers to the prompt, \
         so give the most that one may take, or answers = false in [sessions]",
    );
    check(
        &with("rate = 5.53", "rate = 0"),
        "`rate` in [arrival] is 0; it must be from 0.000001 to 1000000 (chat.toml line 4)",
    );
    check(
        &with("rate = 5.53", "rate = nan"),
        "`rate` in [arrival] holds the number nan, not a finite number (chat.toml line 4)",
    );
    check(
        &with("rate = 5.53", "rate = \"5\""),
        "`rate` in [arrival] holds the text \"5\", not a number (chat.toml line 4)",
    );
    check(
        &with("min = 10", "min = -10"),
        "`min` in [output] is -10; it must be a whole number from 1 to 10000000 (chat.toml line 13)",
    );
    check(
        &with("min = 10", "min = 21"),
        "`min` in [output] is 21, above the `max` of 20 (chat.toml line 13)",
    );
    check(
        &with("\"30s\"", "30"),
        "`duration` at the top level is the number 30, not a duration in quotes such as \"250ms\", \"30s\" or \"1h30m\" (chat.toml line 1)",
    );
    check(
        &with("\"30s\"", "\"30\""),
        "`duration` at the top level is not a duration: `30` has no unit; write for example 250ms, 10s, 5m or 1h30m (chat.toml line 1)",
    );
}

#[test]
fn other_mistakes_are_refused() {
    let check = |line: &str, instead: &str, part: &str| {
        let text = with(line, instead);
        let error = Workload::parse(&text, "chat.toml").map(|w| format!("{w:?}"));
        let message = error.expect_err(part).to_string();
        assert!(message.contains(part) && message.contains("line"), "{instead}: {message}");
    };
    check("cv = 2.0", "cv = inf", "not a finite number");
    check("cv = 2.0", "cv = 0", "from 0.001 to 100");
    check("cv = 2.0", "cv = 2\nshape = 0.25", "stands beside `cv`");
    check("rate = 5.53", "rate = -1", "must be from");
    check("rate = 5.53", "rate = 1e400", "not a finite number");
    check("rate = 5.53", "rate = [5]", "holds a list");
    check("process = \"gamma\"", "process = 3", "not text in quotes");
    check("q = [0, 0.5, 1]", "q = [0, 1]", "has 3 points where `q` has 2");
    check("q = [0, 0.5, 1]", "q = [0.1, 0.5, 1]", "as its first point; it must be 0");
    check("q = [0, 0.5, 1]", "q = [0, 0.5, 0.9]", "as its last point; it must be 1");
    check("q = [0, 0.5, 1]", "q = [0, 0, 1]", "must ascend");
    check("q = [0, 0.5, 1]", "q = [0, nan, 1]", "not a finite number");
    check("q = [0, 0.5, 1]", "q = []", "has 0 points");
    check("q = [0, 0.5, 1]", "q = 5", "not a list of numbers");
    check("tokens = [1, 50, 900]", "tokens = [1, 50, 40]", "goes down from 50 to 40");
    check("tokens = [1, 50, 900]", "tokens = [0, 50, 900]", "from 1 to 10000000");
    check("max = 20", "max = 20.5", "not a whole number");
    check("max = 20", "max = 20\ntokens = 3", "unknown key `tokens`");
    check("\"30s\"", "\"0s\"", "above zero");
    check("duration = \"30s\"", "rows = 0", "from 1 to");
    check("duration = \"30s\"", "name = \"a/b\"", "names a folder");
    check("duration = \"30s\"", "name = \"..\"", "names a folder");
    check("[output]", "[output.x]", "is missing in [output]");
    check("duration = \"30s\"", "output = 3", "duplicate key");
    check("cv = 2.0", "cv = ", "column 6");
    check("cv = 2.0", "cv = 2.0\ncv = 2.0", "duplicate key");
}

#[test]
fn every_way_of_writing_toml_is_read() {
    let plain = with("rate", "rate");
    let inline = "arrival = { process = 'gamma', rate = 5_53e-2, cv = 0x2 }\n\
                  input.distribution = \"fixed\"\ninput.tokens = 5\n\
                  [output]\ndistribution = \"fixed\"\ntokens = 5";
    let cases = [plain.replace('\n', "\r\n"), format!("\u{feff}{plain}"), inline.to_owned()];
    for text in cases {
        let read = Workload::parse(&text, "x.toml");
        assert!(read.is_ok(), "{read:?}: {text}");
    }
    let text = with("rate", "rat").replace('\n', "\r\n");
    let error = Workload::parse(&text, "x.toml").map(|_| ()).expect_err("a typo").to_string();
    assert!(error.contains("(x.toml line 4)"), "{error}");
}

#[test]
fn keys_of_a_request_are_free_but_must_be_json() {
    let request = |lines: &str| {
        let text = format!("{}[request]\n{lines}", with("rate", "rate"));
        let workload = Workload::parse(&text, "x.toml").map_err(|error| error.to_string())?;
        Ok::<_, String>(workload.request().expect("a section").get().to_owned())
    };
    let json = "temperature = 0.70\ntop_k = 0x10\nbig = 9_223_372_036_854_775_807\ng = true\n\
                s = \"a\\\"\\n\"\nlist = [1, [2.5], {}]\nt.u.v = 1\n";
    assert_eq!(
        request(json).expect("JSON"),
        r#"{"big":9223372036854775807,"g":true,"list":[1,[2.5],{}],"s":"a\"\n","t":{"u":{"v":1}},"temperature":0.7,"top_k":16}"#
    );
    assert_eq!(request("").expect("nothing"), "{}");
    let check = |lines: &str, part: &str| {
        let error = request(lines).expect_err(lines);
        assert!(error.contains(part) && error.contains("(x.toml line 16)"), "{lines}: {error}");
    };
    check("a = nan", "`a` in [request] is nan; JSON has no such number");
    check("a = [1, -inf]", "`a` in [request] is -inf");
    check("a = 2020-01-01", "is a date");
    let none = Workload::parse(&with("rate", "rate"), "x.toml").expect("a workload");
    assert!(none.request().is_none());
    let flat = format!("request = 1\n{}", with("rate", "rate"));
    let error = Workload::parse(&flat, "x.toml").map(|_| ()).expect_err("a number").to_string();
    assert!(error.contains("`request` at the top level is the number 1, not a section"), "{error}");
}

#[test]
fn files_that_are_not_workloads_are_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("one.toml");
    let error = load(&path).map(|_| ()).expect_err("no such file").to_string();
    assert!(error.contains("cannot read the workload") && error.contains("one.toml"), "{error}");
    std::fs::write(&path, b"name = \"\xff\"").expect("written");
    let error = load(&path).map(|_| ()).expect_err("not text").to_string();
    assert!(error.contains("not UTF-8") && error.contains("byte 8"), "{error}");
    std::fs::write(&path, with("rate", "rate")).expect("written");
    assert_eq!(load(&path).expect("a workload").name(), "one");
}

proptest::proptest! {
    #[test]
    fn no_file_makes_it_panic(
        at in 0..200_usize,
        cut in 0..12_usize,
        put in "[-\\[\\]=\"a-z0-9.\n ]{0,12}|= 1e999|\u{e9}|nan|-inf|0x7fffffffffffffff|'''|2020-01-01",
    ) {
        let mut text = with("rate", "rate");
        let at = at.min(text.len());
        text.replace_range(at..(at + cut).min(text.len()), &put);
        match Workload::parse(&text, "x.toml") {
            // What is accepted has to be able to make rows.
            Ok(workload) => assert!(workload.rows(1).take(20).all(|row| row.input_tok > 0)),
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains("x.toml line "), "{message}");
                assert!(!message.contains('\n') || put.contains('\n'), "{message}");
            }
        }
    }
}
