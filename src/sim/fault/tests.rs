//! Rules: what can be written, what it falls on, and what is said of what cannot.

use super::*;

#[test]
fn every_fault_of_the_table_can_be_written() {
    for rule in [
        "refuse@rows=3,7",
        "hangup=close",
        "hangup=reset",
        "status=429",
        "status=503@time=10s-20s",
        "redirect=307",
        "json",
        "headers=2s",
        "error=object",
        "error=string,3",
        "error=event",
        "error=field",
        "error=bare,3",
        "stall=2s@rate=1%",
        "stall=2s,5",
        "cut=end",
        "cut=close,0",
        "cut=reset,5",
        "no-done",
        "open",
        "open=bare",
        "open=mute",
        "bytes",
        "utf8",
        "crlf",
        "cr",
        "bom",
        "comments",
        "no-space",
        "empty-choices",
        "early-role",
        "group=4",
        "running-usage",
        "late-usage=1s",
        "no-usage",
        "no-finish",
        "empty",
        "long-line=2000000",
        "gzip",
        "reasoning",
        "reasoning=3",
        "reasoning-content=3",
        "tools",
        "idle=1s@rows=0-9@rate=0.5",
    ] {
        let parsed: FaultRule = rule.parse().expect(rule);
        assert_eq!(parsed.to_string(), rule);
        let word = rule.split(['=', '@']).next().expect("a word");
        assert!(GRAMMAR.contains(word), "`{word}` is in the help");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_in_words() {
    let check = |rule: &str, part: &str| {
        let message = rule.parse::<FaultRule>().expect_err(rule).to_string();
        assert!(message.contains(part), "{rule}: {message}");
    };
    check("", "unknown fault");
    check("stal=2s", "unknown fault `stal=2s`");
    check("stall", "a duration such as 2s");
    check("stall=2s,x", "a duration such as 2s");
    check("refuse=1", "no value");
    check("status=200", "from 400 to 599");
    check("redirect=404", "from 300 to 399");
    check("hangup=end", "`close` or `reset`");
    check("cut=off", "`end`, `close` or `reset`");
    check("error=oops", "`object`, `string`, `event`, `field` or `bare`");
    check("group=0", "at least 1");
    check("long-line=99999999999", "67108864");
    check("open=wide", "`bare`");
    check("reasoning=x", "a number of tokens");
    for when in ["rows", "rows=", "rows=7-3", "rate=101%", "rate=x", "rate=-1", "time=5s", "day=1"]
    {
        check(&format!("json@{when}"), "is no condition");
    }
    check("json@time=5s-5s", "is no condition");
}

/// Which of the first requests a rule falls on, all arriving at `at`.
fn hit(rule: &str, count: u64, at: Nanos) -> Vec<u64> {
    let plan = FaultPlan::parse(&[rule]).expect(rule);
    (0..count).filter(|number| plan.script(1, *number, at).is_some()).collect()
}

#[test]
fn rules_fall_on_rows_times_and_shares() {
    let s = Nanos::from_secs;
    assert_eq!(hit("json@rows=3,7,10-12", 20, s(0)), [3, 7, 10, 11, 12]);
    assert_eq!(hit("json", 3, s(0)), [0, 1, 2]);
    assert_eq!(hit("json@time=10s-20s", 1, s(9)).len(), 0);
    assert_eq!(hit("json@time=10s-20s", 1, s(10)).len(), 1);
    assert_eq!(hit("json@time=10s-20s", 1, s(20)).len(), 0);
    assert_eq!(hit("json@time=10s-", 1, s(1000)).len(), 1);
    assert_eq!(hit("json@time=-20s", 1, s(0)).len(), 1);
    assert_eq!(hit("json@rows=3,7@time=10s-", 20, s(0)).len(), 0);
    assert_eq!(hit("json@rate=0%", 1_000, s(0)).len(), 0);
    assert_eq!(hit("json@rate=100%", 1_000, s(0)).len(), 1_000);
    let some = hit("json@rate=5%", 20_000, s(0));
    assert!((900..1_100).contains(&some.len()), "{}", some.len());
    assert_eq!(some, hit("json@rate=0.05", 20_000, s(0)), "the same at every time");
}

#[test]
fn rules_draw_each_for_itself() {
    let plan = FaultPlan::parse(&["bom@rate=50%", "comments@rate=50%"]).expect("rules");
    let words: std::collections::BTreeSet<String> = (0..100)
        .map(|number| plan.script(1, number, Nanos::ZERO).map_or(String::new(), |s| s.logged))
        .collect();
    assert_eq!(words.into_iter().collect::<Vec<_>>(), ["", "bom", "bom+comments", "comments"]);
}

#[test]
fn plans_survive_json() {
    let plan = FaultPlan::parse(&["refuse@rows=3", "stall=2s@rate=1%"]).expect("rules");
    let text = serde_json::to_string(&plan).expect("strings");
    assert_eq!(text, r#"["refuse@rows=3","stall=2s@rate=1%"]"#);
    assert_eq!(serde_json::from_str::<FaultPlan>(&text).expect("its own output"), plan);
    assert!(serde_json::from_str::<FaultPlan>(r#"["nothing"]"#).is_err());
}
