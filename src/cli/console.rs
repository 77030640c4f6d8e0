//! Words for the person at the terminal: to stderr, so that stdout stays data.
//!
//! The one door to a terminal: whatever a server or a file put into a message, no control character
//! passes but a line break and a tab.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use anyhow::Context;

use crate::metrics::Summary;
use crate::report::{self, RunFacts};

/// Says one thing. A closed stderr is no reason to stop a run.
pub(super) fn say(text: &str) {
    say_page(&plain(text));
}

/// The same for a [`summary_page`], whose colours pass.
pub(super) fn say_page(page: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{page}");
}

/// Prints a [`summary_page`], whose colours pass.
pub(super) fn print_page(page: &str) {
    let _ = write_out(page);
}

/// Prints data or a summary to stdout. A closed pipe is no error.
pub(super) fn print(text: &str) {
    let _ = try_print(text);
}

/// The same; false where a pipe is closed, since nobody listens any more. Whatever else keeps it from
/// being written is an error.
pub(super) fn try_print(text: &str) -> std::io::Result<bool> {
    write_out(&plain(text))
}

fn write_out(text: &str) -> std::io::Result<bool> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// The file of this program, which serves as the simulated server too.
pub(super) fn this_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find this program's own file")
}

/// Says why the program failed, with every cause that adds to it.
pub fn complain(error: &anyhow::Error) {
    let mut text = String::from("underfire: ");
    let mut said = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        // An error that already tells its cause is not told twice.
        if said.contains(&cause) {
            continue;
        }
        if !said.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
        said.push_str(&cause);
    }
    say(&text);
}

/// The summary that people read. Colours are control characters too, so what it tells of others is
/// spelled out before it is coloured.
pub(super) fn summary_page(summary: &Summary, facts: &RunFacts, color: bool) -> String {
    let spelled = |text: &String| plain(text).into_owned();
    let facts = RunFacts {
        name: spelled(&facts.name),
        target: spelled(&facts.target),
        model: facts.model.as_ref().map(spelled),
        stopped: facts.stopped.as_ref().map(spelled),
        client: facts.client.as_ref().map(spelled),
        notices: facts.notices.iter().map(spelled).collect(),
        ..facts.clone()
    };
    let page = report::render(summary, &facts, color);
    if color { page } else { spelled(&page) }
}

/// Text whose control characters, and those that turn the direction of writing, are spelled out: in the
/// way of JSON, so that JSON stays what it is.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| match c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    };
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut spelled = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) {
            write!(spelled, "\\u{:04x}", u32::from(c)).expect("memory takes text");
        } else {
            spelled.push(c);
        }
    }
    Cow::Owned(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_passes_but_line_breaks_and_tabs() {
        let check = |text: &str, expect: &str| assert_eq!(plain(text), expect);
        check("wörd\n\ta → b", "wörd\n\ta → b");
        check("a\u{1b}[2Jb\rc\u{7}", "a\\u001b[2Jb\\u000dc\\u0007");
        check("\u{7f}\u{9b}31m\u{202e}", "\\u007f\\u009b31m\\u202e");
        let json = serde_json::json!({ "model": "m\u{1b}\u{9b}" });
        let read: serde_json::Value =
            serde_json::from_str(&plain(&json.to_string())).expect("JSON");
        assert_eq!(read, json);
    }
}
