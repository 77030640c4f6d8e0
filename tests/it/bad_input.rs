//! Bad input of every kind: one clear message, exit code 2, nothing lost, no panic.

use crate::program::{Place, small_trace};

/// Runs on `text` as a file called `name` and expects every part of the message.
#[track_caller]
fn check(name: &str, text: &str, parts: &[&str]) {
    let place = Place::new();
    let said = place.write(name, text).run(&["run", name, "--dry-run"]).expect(2);
    for part in parts {
        assert!(said.stderr.contains(part), "no `{part}` in {:?}", said.stderr);
    }
    assert_eq!(said.stderr.matches("underfire: ").count(), 1, "one message: {:?}", said.stderr);
    assert!(!place.path("results").exists(), "a refused source leaves nothing behind");
}

#[test]
fn traces() {
    check("e.csv", "", &["e.csv", "empty"]);
    check("h.csv", "at_s,input_tok,output_tok\n", &["h.csv", "no rows"]);
    check("m.csv", "at_s,input_tok\n0,1\n", &["output_tok"]);
    check("u.csv", "when,what\n1,2\n", &["when,what"]);
    check("n.csv", "at_s,input_tok,output_tok\n0,5,5\n1,-3,4\n", &["line 3", "input_tok", "-3"]);
    check("f.csv", "at_s,input_tok,output_tok\n0,5,5\nNaN,3,4\n", &["line 3", "at_s", "NaN"]);
    check("i.csv", "at_s,input_tok,output_tok\n0,5,inf\n", &["line 2", "output_tok", "inf"]);
    check("t.csv", "at_s,input_tok,output_tok\n0,5,5\n1,3", &["line 3", "middle of this line"]);
    check(
        "a.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-13-16 18:15:46,1,1\n",
        &["line 3", "TIMESTAMP", "2023-13-16"],
    );
    check(
        "j.jsonl",
        "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [1]}\n",
        &["line 1", "hash_ids", "--block-tok"],
    );
}

#[test]
fn workloads() {
    let file = |arrival: &str| {
        format!(
            "duration = \"1s\"\n[arrival]\n{arrival}\n[input]\ndistribution = \"fixed\"\ntokens = 5\n\
             [output]\ndistribution = \"fixed\"\ntokens = 5\n"
        )
    };
    check("t.toml", &file("process = \"poisson\"\nrat = 5"), &["line 4", "`rat`", "`rate`"]);
    check("p.toml", &file("process = \"poison\"\nrate = 5"), &["poison", "poisson"]);
    check("z.toml", &file("process = \"poisson\"\nrate = 0"), &["rate"]);
    check("s.toml", "[arrival\n", &["s.toml"]);
    let endless = file("process = \"poisson\"\nrate = 5").replace("duration = \"1s\"\n", "");
    check("w.toml", &endless, &["--duration", "--limit"]);
}

#[test]
fn options() {
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10));
    for (arguments, part) in [
        (&["--speed", "0"][..], "above zero"),
        (&["--from", "5"], "no unit"),
        (&["--max-input-tok", "0"], "max-input-tok"),
        (&["--concurrency", "0"], "concurrency"),
        (&["--url", "ftp://x"], "https://"),
        (&["--url", "https://x", "--cacert", "t.csv"], "no certificate in it"),
        (&["--insecure"], "give --url"),
        (&["--url", "http://x", "--proxy", "x:1"], "--proxy takes an http:// URL"),
        (&["--engine", "vlm"], "unknown engine `vlm`"),
        (&["--running-usage", "maybe"], "auto, on and off"),
        (&["--max-tokens-key", "n"], "max_completion_tokens"),
        (&["--nonsense"], "--nonsense"),
        (&["--from", "1h"], "no rows"),
        (&["--from", "20s", "--to", "10s"], "--from 20 s is not before --to 10 s"),
        (&["--timeout", "0s"], "a limit of no time"),
        (&["--idle-timeout", "0ms"], "a limit of no time"),
        (
            &["--extra", "{\"max_tokens\":5}"],
            "`max_tokens` in --extra would make the figures wrong",
        ),
    ] {
        let said = place.run(&[&["run", "t.csv"][..], arguments].concat()).expect(2);
        assert!(said.stderr.contains(part), "no `{part}` in {:?}", said.stderr);
    }
    assert!(!place.path("results").exists());
}

#[test]
fn keys_of_a_workload_that_would_bend_the_figures() {
    let text = "rows = 3\n[arrival]\nprocess = \"constant\"\nrate = 100\n[input]\n\
                distribution = \"fixed\"\ntokens = 5\n[output]\ndistribution = \"fixed\"\ntokens = 5\n";
    let own = "[request]\nstream = false\n";
    check("r.toml", &format!("{text}{own}"), &["`stream` in [request] of r.toml", "every request"]);
    let class = "[[class]]\nname = \"a\"\nweight = 1\n[class.request]\nmax_tokens = 7\n";
    check("c.toml", &format!("{text}{class}"), &["`max_tokens` in [class.request]", "[output]"]);
}

#[test]
fn a_closed_loop_says_which_options_have_nothing_to_act_on() {
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10));
    let run = ["run", "t.csv", "--dry-run", "--concurrency", "2"];
    for (more, told) in [
        (&["--speed", "2"][..], "note: no use is made of --speed:"),
        (&["--speed", "2", "--max-gap", "1s"], "note: no use is made of --speed and --max-gap:"),
    ] {
        let said = place.run(&[&run[..], more].concat()).expect(0);
        assert!(said.stderr.contains(told), "{said:?}");
    }
    // Pauses before turns are made shorter by it.
    place.write(
        "s.csv",
        "at_s,input_tok,output_tok,session,turn,think_s\n0,5,5,a,1,\n1,5,5,a,2,4\n",
    );
    for run in [
        &["run", "t.csv", "--speed", "2"][..],
        &["run", "s.csv", "--speed", "2", "--concurrency", "2"],
    ] {
        let said = place.run(&[run, &["--dry-run"]].concat()).expect(0);
        assert!(!said.stderr.contains("no use is made"), "{said:?}");
    }
}

#[test]
fn a_folder_that_holds_a_run_is_left_alone() {
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10));
    place.run(&["run", "t.csv", "--out", "run"]).expect(0);
    let before = place.read("run/requests.csv");
    let said = place.run(&["run", "t.csv", "--out", "run"]).expect(2);
    assert!(said.stderr.contains("already holds a run"), "{said:?}");
    assert_eq!(place.read("run/requests.csv"), before);
}

#[test]
fn rows_out_of_order_are_sorted_and_said() {
    let place = Place::new();
    place.write("t.csv", "at_s,input_tok,output_tok\n2,1,1\n0,2,2\n1,3,3\n");
    let said = place.run(&["run", "t.csv", "--dry-run", "--plan", "plan.csv"]).expect(0);
    assert!(said.stderr.contains("rows are sorted by time"), "{said:?}");
    let plan = place.read("plan.csv");
    let rows: Vec<&str> =
        plan.lines().skip(1).map(|line| line.split(',').next().unwrap_or("")).collect();
    assert_eq!(rows, ["1", "2", "0"], "in time order, with the file's row numbers");
}

#[test]
fn unknown_columns_are_kept_aside_and_said() {
    let place = Place::new();
    place.write("t.csv", "at_s,color,input_tok,output_tok\n0,red,1,1\n");
    let said = place.run(&["run", "t.csv", "--dry-run"]).expect(0);
    assert!(said.stderr.contains("color"), "{said:?}");
}
