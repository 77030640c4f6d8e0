//! Files of prompts: every form, every fault.

use super::*;

/// What a row says: prompt or messages, and the body.
fn says(corpus: &Corpus, row: u64) -> (String, String) {
    let content = corpus.of_row(row);
    let words = content.prompt.clone();
    let words = words.or_else(|| Some(content.messages.as_ref()?.get().to_owned()));
    let body = content.body.as_ref().map_or("", |body| body.get());
    (words.expect("words"), body.to_owned())
}

#[test]
fn every_form_is_told_by_its_keys() {
    let check = |line: &str, words: &str, body: &str| {
        let corpus = Corpus::parse(line, "p").expect(line);
        assert_eq!(says(&corpus, 0), (words.to_owned(), body.to_owned()), "{line}");
        let array = format!(" [\n{line}\n]");
        assert_eq!(says(&Corpus::parse(&array, "p").expect(line), 7).0, words, "{array}");
    };
    check(r#"{"prompt":"a\nb","id":7}"#, "a\nb", "");
    check(r#"{"prompt":"a","body":{"temperature":0.50}}"#, "a", r#"{"temperature":0.50}"#);
    check(
        r#"{"messages":[{"role":"user", "content":"x"}]}"#,
        r#"[{"role":"user", "content":"x"}]"#,
        "",
    );
    check(
        r#"{"id":"q","conversations":[{"from":"system","value":"s"},{"from":"human","value":"a\"é"},
           {"from":"gpt","value":"b"},{"from":"human","value":"c"},{"from":"gpt","value":"d"}]}"#
            .replace('\n', "")
            .as_str(),
        r#"[{"role":"system","content":"s"},{"role":"user","content":"a\"é"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]"#,
        "",
    );
    check(
        r#"{"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[1],"max_tokens":9,"temperature":1.0,"tools":[{"b":1,"a":2}]}}"#,
        "[1]",
        r#"{"temperature":1.0,"tools":[{"b":1,"a":2}]}"#,
    );
    check(r#"{"custom_id":"1","body":{"model":"m","prompt":"p"}}"#, "p", "");
}

#[test]
fn rows_take_entries_in_turn_or_shuffled() {
    let text = ["0", "1", "2", "3", "4"].map(|i| format!("{{\"prompt\":\"{i}\"}}\n\n")).concat();
    let read = || Corpus::parse(&text, "p").expect("prompts");
    let take = |corpus: &Corpus| (0..10).map(|row| says(corpus, row).0).collect::<String>();
    assert_eq!(take(&read()), "0123401234");
    let shuffled = take(&read().shuffled(3));
    assert_eq!(shuffled, take(&read().shuffled(3)));
    assert_ne!(shuffled, take(&read().shuffled(4)));
    assert_eq!(shuffled[..5], shuffled[5..]);
    let mut letters: Vec<_> = shuffled[..5].chars().collect();
    letters.sort_unstable();
    assert_eq!(letters, ['0', '1', '2', '3', '4']);
}

#[test]
fn conversations_that_ask_nothing_are_counted() {
    let text =
        r#"[{"conversations":[]},{"conversations":[{"from":"gpt","value":"a"}]},{"prompt":"p"}]"#;
    let corpus = Corpus::parse(text, "p").expect("one prompt");
    assert_eq!((corpus.count(), corpus.left_out()), (1, 2));
}

#[test]
fn faults_name_file_line_key_and_remedy() {
    let check = |text: &str, parts: &[&str]| {
        let message = Corpus::parse(text, "p.jsonl").expect_err(text).to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{text}: {message}");
    };
    check(
        "{\"prompt\":\"a\"}\n\n{\"prompt\":7}",
        &["p.jsonl, line 3, key `prompt`", "JSON string"],
    );
    check("{\"prompt\":\"\"}", &["line 1, key `prompt`", "nothing in it"]);
    check("{\"messages\":{}}", &["key `messages`", "no array"]);
    check("{\"messages\":[]}", &["key `messages`", "no array"]);
    check("{\"text\":\"a\"}", &["none of the keys", "`prompt`"]);
    check("{\"prompt\":\"a\"", &["line 1: no valid JSON at column 13"]);
    check("hello\n", &["no JSON object"]);
    check("[{\"prompt\":\"a\"},\n{\"prompt\":7}]", &["line 2, key `prompt`"]);
    check("[{\"prompt\":\"a\"},\n{\"prompt\"]", &["line 2", "no JSON array"]);
    check("{\"conversations\":[{\"from\":\"tool\",\"value\":\"a\"}]}", &["`tool`", "human"]);
    check("{\"conversations\":[{\"from\":\"human\"}]}", &["key `conversations`", "`value`"]);
    check("{\"body\":{\"model\":\"m\"}}", &["key `body`", "neither"]);
    check("{\"body\":[]}", &["key `body`", "no JSON object"]);
    check("{\"prompt\":\"a\",\"body\":[]}", &["key `body`", "no JSON object"]);
    check("", &["no prompt"]);
    check("[]", &["no prompt"]);
}

#[test]
fn chats_are_refused_where_they_cannot_be_sent() {
    let text = "{\"prompt\":\"a\"}\n{\"messages\":[1]}";
    let message = Corpus::parse(text, "p").expect("both").without_messages();
    let message = message.expect_err("a chat").to_string();
    assert!(message.contains("line 2") && message.contains("--api chat"), "{message}");
}
