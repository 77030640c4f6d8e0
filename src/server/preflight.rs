//! One small request before `t0`, and what its answer means: a wrong key, model or path is told once,
//! with its remedy, in the place of thousands of failed rows.
//!
//! Deliberately absent: deciding whether one is sent, and any row of any result.

use crate::record::{Outcome, StreamRecord};

/// Tokens asked for: enough to see whether they come one by one.
pub const PREFLIGHT_OUTPUT_TOK: u32 = 32;
/// Fewer token events than this in one read may be chance.
const ONE_PIECE_EVENTS: u64 = 8;

/// What was known when the request was sent.
#[derive(Clone, Debug, Default)]
pub struct Sent<'a> {
    /// The URL, fit for messages.
    pub url: &'a str,
    /// The model it named.
    pub model: Option<&'a str>,
    /// The models that the server lists.
    pub listed: &'a [String],
    /// It bore a key.
    pub has_key: bool,
    /// It asked for usage.
    pub usage: bool,
}

/// What a preflight says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Rows can be sent; a person should know these.
    Fine(Vec<String>),
    /// Every row would fail, and why.
    Refused(String),
    /// No connection, and why.
    Unreachable(String),
}

/// Judges the finished record of a preflight.
#[must_use]
pub fn judge(record: &StreamRecord, sent: &Sent<'_>) -> Verdict {
    let said = record.error.as_deref().unwrap_or_default();
    let passing = |what: &str| Verdict::Fine(vec![format!("the preflight {what}: {said}")]);
    match record.outcome {
        Outcome::Ok | Outcome::Short => Verdict::Fine(notices(record, sent)),
        Outcome::Connect => Verdict::Unreachable(said.to_owned()),
        Outcome::Http(status) => match refusal(status, said, sent) {
            Some(text) => Verdict::Refused(text),
            None if status == 503 => passing(
                "was answered 503; the server may be busy, or still loading its model, which \
                 --wait-ready D waits for",
            ),
            None => passing(&format!("was answered {status}; the server may be busy")),
        },
        Outcome::StreamError if record.first_event.is_none() => Verdict::Refused(format!(
            "{}: {said}\nhint: is --url the address of an OpenAI-compatible API, and --api right?",
            sent.url
        )),
        Outcome::StreamError => passing("ended in an error"),
        Outcome::Truncated => passing("broke off"),
        Outcome::Timeout => passing("did not end in time"),
        outcome => passing(&format!("ended as `{outcome}`")),
    }
}

fn notices(record: &StreamRecord, sent: &Sent<'_>) -> Vec<String> {
    let mut notices = Vec::new();
    if let (Some(model), true) = (sent.model, is_unlisted(sent)) {
        notices.push(format!(
            "the server answers to the model `{model}`, which it does not list, and may answer with \
             another one: {}",
            listed_words(sent)
        ));
    }
    let tokens = &record.tokens;
    if tokens.count() >= ONE_PIECE_EVENTS && tokens.first() == tokens.last() {
        notices.push(format!(
            "the preflight's answer came in one piece ({} chunks in one read): something between here \
             and the model holds streams back, so TTFT and gaps will not be the model's (nginx: \
             `proxy_buffering off` and no gzip for this path)",
            tokens.count()
        ));
    }
    if sent.usage && record.usage.is_none_or(|usage| usage.output_tok.is_none()) {
        notices.push(
            "the server tells no token usage, though asked; output_tok will be the number of chunks, \
             an estimate"
                .to_owned(),
        );
    }
    notices
}

/// Why every row would be refused; `None` where that may pass.
fn refusal(status: u16, said: &str, sent: &Sent<'_>) -> Option<String> {
    let url = sent.url;
    let (what, hint) = match status {
        401 | 403 if sent.has_key => {
            ("refuses the API key", "is it the right one, and may it use this model?".to_owned())
        }
        401 | 403 => {
            ("wants an API key", "give one by --api-key-env VAR or --api-key-file FILE".to_owned())
        }
        404 if is_model_fault(said, sent) => ("does not know the model", model_hint(sent)),
        404 | 405 | 501 => (
            "has no such API at this path",
            "give --url the server's root, or all of the path; --api names the API".to_owned(),
        ),
        300..=399 => ("redirects", "redirects are not followed; give the final URL".to_owned()),
        400 | 422 => ("refuses the request", body_hint(said)),
        _ => return None,
    };
    Some(format!("{url} {what} ({status}: {said})\nhint: {hint}"))
}

fn is_model_fault(said: &str, sent: &Sent<'_>) -> bool {
    said.to_ascii_lowercase().contains("model") || is_unlisted(sent)
}

/// Whether the model that was named is none of those that the server lists.
fn is_unlisted(sent: &Sent<'_>) -> bool {
    let is_listed = |model| sent.listed.iter().any(|listed| listed == model);
    !sent.listed.is_empty() && sent.model.is_some_and(|model| !is_listed(model))
}

fn model_hint(sent: &Sent<'_>) -> String {
    if sent.listed.is_empty() {
        return "give --model NAME as the server has it".to_owned();
    }
    listed_words(sent)
}

fn listed_words(sent: &Sent<'_>) -> String {
    let shown: Vec<String> = sent.listed.iter().take(8).map(|model| format!("`{model}`")).collect();
    let more = sent.listed.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("it lists {}{more}; choose by --model", shown.join(", "))
}

/// The option that leaves out what the server names.
fn body_hint(said: &str) -> String {
    [
        ("max_completion_tokens", "--max-tokens-key max_completion_tokens"),
        ("continuous_usage_stats", "--running-usage off"),
        ("stream_options", "--no-usage"),
        ("ignore_eos", "leave out --ignore-eos, or name the right --engine"),
    ]
    .into_iter()
    .find(|(key, _)| said.contains(key))
    .map_or("--no-preflight sends the rows all the same".to_owned(), |(_, hint)| hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Kind, Usage};
    use crate::units::Nanos;

    fn refused(outcome: Outcome, said: &str, sent: &Sent<'_>) -> String {
        let record =
            StreamRecord { outcome, error: Some(said.to_owned()), ..StreamRecord::default() };
        match judge(&record, sent) {
            Verdict::Refused(text) => text,
            other => panic!("{outcome}, {said}: {other:?}"),
        }
    }

    #[test]
    fn each_refusal_has_its_remedy() {
        let listed = ["m-1".to_owned(), "m-2".to_owned()];
        let sent = Sent { url: "http://h", model: Some("x"), listed: &listed, ..Sent::default() };
        let with_key = Sent { has_key: true, ..sent.clone() };
        for (status, said, sent, part) in [
            (401, "no", &sent, "--api-key-env"),
            (403, "no", &with_key, "the right one"),
            (404, "The model `x` does not exist.", &sent, "`m-1`, `m-2`"),
            (404, "Not Found", &Sent { model: Some("m-1"), ..sent.clone() }, "server's root"),
            (405, "Method Not Allowed", &sent, "server's root"),
            (307, "moved", &sent, "final URL"),
            (400, "Unsupported parameter: use 'max_completion_tokens'", &sent, "--max-tokens-key"),
            (422, "stream_options: extra field", &sent, "--no-usage"),
            (400, "ignore_eos: extra field", &sent, "--ignore-eos"),
            (400, "something", &sent, "--no-preflight"),
        ] {
            let text = refused(Outcome::Http(status), said, sent);
            assert!(text.contains(part) && text.contains(said), "{text}");
            assert!(text.contains("\nhint: "), "{text}");
        }
        refused(Outcome::StreamError, "got an HTML page", &sent);
    }

    #[test]
    fn what_may_pass_is_no_refusal() {
        for outcome in [
            Outcome::Http(429),
            Outcome::Http(503),
            Outcome::Timeout,
            Outcome::Truncated,
            Outcome::Empty,
        ] {
            let record = StreamRecord { outcome, ..StreamRecord::default() };
            let verdict = judge(&record, &Sent::default());
            let Verdict::Fine(said) = verdict else { panic!("{verdict:?}") };
            let waits = said.iter().filter(|said| said.contains("--wait-ready D")).count();
            let is_loading = usize::from(outcome == Outcome::Http(503));
            assert_eq!((said.len(), waits), (1, is_loading), "{said:?}");
        }
    }

    #[test]
    fn an_answer_in_one_piece_and_without_usage_is_told() {
        let answer = |spread: u64, usage: bool| {
            let mut record = StreamRecord { outcome: Outcome::Ok, ..StreamRecord::default() };
            for at in 0..12 {
                record.tokens.push(Nanos(1_000 + at * spread), Kind::Content, None);
            }
            record.usage = usage.then(|| Usage { output_tok: Some(12), ..Usage::default() });
            match judge(&record, &Sent { usage: true, ..Sent::default() }) {
                Verdict::Fine(notices) => notices,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(answer(7, true), Vec::<String>::new());
        assert!(answer(0, true)[0].contains("proxy_buffering off"));
        assert!(answer(7, false)[0].contains("no token usage"));
    }

    /// A server that answers to any name would pass for the one that was meant.
    #[test]
    fn a_model_that_is_not_listed_is_told_with_those_that_are() {
        let record = StreamRecord { outcome: Outcome::Ok, ..StreamRecord::default() };
        let listed = ["m-1".to_owned(), "m-2".to_owned()];
        let told = |model, listed: &[String]| {
            let sent = Sent { model, listed, ..Sent::default() };
            match judge(&record, &sent) {
                Verdict::Fine(notices) => notices,
                other => panic!("{other:?}"),
            }
        };
        let notices = told(Some("x"), &listed);
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert!(notices[0].contains("`x`") && notices[0].contains("`m-1`, `m-2`"), "{notices:?}");
        for (model, listed) in [(Some("m-2"), &listed[..]), (None, &listed), (Some("x"), &[])] {
            assert_eq!(told(model, listed), Vec::<String>::new());
        }
    }
}
