//! Real prompts from a file, one for each row in turn.
//!
//! JSON Lines, or one JSON array, of objects in any of these forms, told apart one by one by their keys:
//! `prompt` (text), `messages` (a chat), `conversations` (`ShareGPT`: turns with `from` and `value`, asked
//! up to the last human turn), or `body` with one of the first two (`OpenAI` batch input, whose other keys
//! go into the request, but for what the run itself decides). Row `r` gets entry `r mod n`, so that a
//! row is the same whatever else is sent. Deliberately absent: any count of tokens, and streaming: a
//! file is held in memory, up to a limit.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::trace::Content;

/// The largest file of prompts.
const LIMIT_BYTES: u64 = 2 << 30;

/// Keys of a batch request that the run decides.
const OURS: [&str; 8] = [
    "model",
    "messages",
    "prompt",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "n",
];

/// A file of prompts that cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// It cannot be read.
    #[error("read prompts {file}: {source}")]
    Read {
        /// As the user wrote it.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// It is too large.
    #[error("read prompts {file}: the file is larger than {} GiB; cut it to the prompts that are needed", LIMIT_BYTES >> 30)]
    TooLarge {
        /// As the user wrote it.
        file: String,
    },
    /// It has no prompt.
    #[error("read prompts {file}: there is no prompt in it")]
    Empty {
        /// As the user wrote it.
        file: String,
    },
    /// An entry that is no prompt.
    #[error("read prompts {file}, line {line}{field}: {problem}")]
    Entry {
        /// As the user wrote it.
        file: String,
        /// 1-based line.
        line: usize,
        /// ``, key `x` `` or nothing.
        field: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Chats for an API that takes none.
    #[error(
        "read prompts {file}, line {line}, key `messages`: messages cannot be sent to the completions \
         API; use --api chat, or give `prompt`"
    )]
    MessagesToCompletions {
        /// As the user wrote it.
        file: String,
        /// 1-based line of the first one.
        line: usize,
    },
}

/// Prompts for rows.
#[derive(Debug)]
pub struct Corpus {
    file: String,
    entries: Vec<Content>,
    /// Entry of each place, where they are shuffled.
    order: Option<Vec<u32>>,
    left_out: usize,
    first_messages_line: Option<usize>,
}

impl Corpus {
    /// The same text for every row.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let content = Content { prompt: Some(text.to_owned()), ..Content::default() };
        Self {
            file: String::new(),
            entries: vec![content],
            order: None,
            left_out: 0,
            first_messages_line: None,
        }
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, CorpusError> {
        let file = path.display().to_string();
        let read = || {
            let mut bytes = Vec::new();
            File::open(path)?.take(LIMIT_BYTES + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|source| CorpusError::Read { file: file.clone(), source })?;
        if bytes.len() as u64 > LIMIT_BYTES {
            return Err(CorpusError::TooLarge { file });
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let packed =
                matches!(error.as_bytes(), [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..]);
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            let remedy = if packed { "unpack it first" } else { "save the file as UTF-8" };
            let problem = format!("it is not UTF-8; {remedy}");
            CorpusError::Entry { file: file.clone(), line, field: String::new(), problem }
        })?;
        Self::parse(&text, &file)
    }

    /// Parses a file's text; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self, CorpusError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut corpus = Self { file: file.to_owned(), entries: Vec::new(), ..Self::of_text("") };
        if text.trim_start().starts_with('[') {
            let line_at = |offset: usize| text[..offset].matches('\n').count() + 1;
            let array: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| {
                corpus.fault(error.line(), Fault::whole(format!("is no JSON array: {error}")))
            })?;
            for element in array {
                // The element is a part of the text, so its address tells its place.
                let offset = element.get().as_ptr() as usize - text.as_ptr() as usize;
                corpus.add(element.get(), || line_at(offset))?;
            }
        } else {
            for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                corpus.add(line, || at + 1)?;
            }
        }
        if corpus.entries.is_empty() {
            return Err(CorpusError::Empty { file: file.to_owned() });
        }
        Ok(corpus)
    }

    fn fault(&self, line: usize, fault: Fault) -> CorpusError {
        let field = fault.key.map(|key| format!(", key `{key}`")).unwrap_or_default();
        CorpusError::Entry { file: self.file.clone(), line, field, problem: fault.problem }
    }

    fn add(&mut self, json: &str, line: impl Fn() -> usize) -> Result<(), CorpusError> {
        match entry(json).map_err(|fault| self.fault(line(), fault))? {
            Some(content) => {
                if content.messages.is_some() && self.first_messages_line.is_none() {
                    self.first_messages_line = Some(line());
                }
                self.entries.push(content);
            }
            None => self.left_out += 1,
        }
        Ok(())
    }

    /// The same prompts in an order drawn from `seed`.
    #[must_use]
    pub fn shuffled(mut self, seed: u64) -> Self {
        let count = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let mut order: Vec<u32> = (0..count).collect();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for last in (1..order.len()).rev() {
            // The bias of the remainder is below 2^-32.
            let pick = random.next_u64() % (last as u64 + 1);
            order.swap(last, usize::try_from(pick).unwrap_or(last));
        }
        self.order = Some(order);
        self
    }

    /// Refuses chats where only plain prompts can be sent.
    pub fn without_messages(self) -> Result<Self, CorpusError> {
        match self.first_messages_line {
            Some(line) => Err(CorpusError::MessagesToCompletions { file: self.file, line }),
            None => Ok(self),
        }
    }

    /// How many prompts there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Entries that ask nothing: conversations without a human turn.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// What row `row` says.
    #[must_use]
    pub fn of_row(&self, row: u64) -> &Content {
        let place = usize::try_from(row % self.entries.len() as u64).unwrap_or(0);
        let at = self.order.as_ref().map_or(place, |order| order[place] as usize);
        &self.entries[at]
    }
}

/// What is wrong with an entry.
struct Fault {
    key: Option<&'static str>,
    problem: String,
}

impl Fault {
    fn at(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key: Some(key), problem: problem.into() }
    }

    fn whole(problem: impl Into<String>) -> Self {
        Self { key: None, problem: problem.into() }
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    conversations: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

/// One entry; `None` for a conversation in which nobody asks anything.
fn entry(json: &str) -> Result<Option<Content>, Fault> {
    if !json.trim_start().starts_with('{') {
        return Err(Fault::whole("is no JSON object; write one per line"));
    }
    let line: Line<'_> = serde_json::from_str(json).map_err(|error| {
        let words = error.to_string();
        let what = words.split(" at line ").next().unwrap_or(&words);
        Fault::whole(format!("no valid JSON at column {}: {what}", error.column()))
    })?;
    match line {
        Line { prompt: None, messages: None, conversations: None, body: None } => {
            Err(Fault::whole(
                "has none of the keys `prompt`, `messages`, `conversations` and `body`; name the text `prompt`",
            ))
        }
        Line { prompt: None, messages: None, conversations: Some(turns), body } => {
            let messages = conversation(turns)?;
            let body = body.map(object).transpose()?;
            Ok(messages.map(|messages| Content { messages: Some(messages), body, prompt: None }))
        }
        Line { prompt: None, messages: None, conversations: None, body: Some(body) } => {
            batch(body).map(Some)
        }
        Line { prompt, messages, body, .. } => {
            let body = body.map(object).transpose()?;
            content(prompt, messages, body).map(Some)
        }
    }
}

fn content(
    prompt: Option<&RawValue>,
    messages: Option<&RawValue>,
    body: Option<Box<RawValue>>,
) -> Result<Content, Fault> {
    if let Some(messages) = messages {
        if !messages.get().starts_with('[')
            || serde_json::from_str::<[&RawValue; 0]>(messages.get()).is_ok()
        {
            return Err(Fault::at("messages", "is no array of messages; write one, or a `prompt`"));
        }
        return Ok(Content { messages: Some(messages.to_owned()), prompt: None, body });
    }
    let text = prompt.and_then(|prompt| serde_json::from_str::<String>(prompt.get()).ok());
    match text.filter(|text| !text.is_empty()) {
        Some(text) => Ok(Content { prompt: Some(text), messages: None, body }),
        None => Err(Fault::at("prompt", "is no text, or has nothing in it; write a JSON string")),
    }
}

fn object(body: &RawValue) -> Result<Box<RawValue>, Fault> {
    if body.get().starts_with('{') {
        Ok(body.to_owned())
    } else {
        Err(Fault::at("body", "is no JSON object; write one, or leave it out"))
    }
}

/// A line of `OpenAI`'s batch input: the request's own keys, but for those that the run decides.
fn batch(body: &RawValue) -> Result<Content, Fault> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(body.get())
        .map_err(|_| Fault::at("body", "is no JSON object; write a request with `messages`"))?;
    let (prompt, messages) = (members.get("prompt").copied(), members.get("messages").copied());
    if prompt.or(messages).is_none() {
        return Err(Fault::at("body", "has neither `messages` nor `prompt`; give one of them"));
    }
    let rest: BTreeMap<_, _> =
        members.iter().filter(|(key, _)| !OURS.contains(&key.as_ref())).collect();
    let rest = (!rest.is_empty())
        .then(|| serde_json::value::to_raw_value(&rest))
        .transpose()
        .map_err(|error| Fault::at("body", error.to_string()))?;
    content(prompt, messages, rest)
}

#[derive(Deserialize)]
struct Turn<'a> {
    #[serde(borrow)]
    from: Cow<'a, str>,
    #[serde(borrow)]
    value: Cow<'a, str>,
}

#[derive(serde::Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

/// A `ShareGPT` conversation as messages, up to its last human turn.
fn conversation(turns: &RawValue) -> Result<Option<Box<RawValue>>, Fault> {
    const KEY: &str = "conversations";
    let turns: Vec<Turn<'_>> = serde_json::from_str(turns.get())
        .map_err(|_| Fault::at(KEY, "is no array of turns with text in `from` and `value`"))?;
    let mut messages = Vec::with_capacity(turns.len());
    for turn in turns.iter().filter(|turn| !turn.value.is_empty()) {
        let role = match turn.from.as_ref() {
            "human" | "user" => "user",
            "gpt" | "chatgpt" | "bing" | "bard" | "assistant" | "model" => "assistant",
            "system" => "system",
            other => {
                let other: String = other.chars().take(40).collect();
                let problem = format!("has a turn from `{other}`; known are human, gpt and system");
                return Err(Fault::at(KEY, problem));
            }
        };
        messages.push(Message { role, content: &turn.value });
    }
    let asked = messages.iter().rposition(|message| message.role == "user");
    let Some(last) = asked else { return Ok(None) };
    messages.truncate(last + 1);
    let messages = serde_json::value::to_raw_value(&messages);
    messages.map(Some).map_err(|error| Fault::at(KEY, error.to_string()))
}

#[cfg(test)]
mod tests {
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
        let text =
            ["0", "1", "2", "3", "4"].map(|i| format!("{{\"prompt\":\"{i}\"}}\n\n")).concat();
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
        let text = r#"[{"conversations":[]},{"conversations":[{"from":"gpt","value":"a"}]},{"prompt":"p"}]"#;
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
}
