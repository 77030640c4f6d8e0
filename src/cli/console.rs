//! Words for the person at the terminal: to stderr, so that stdout stays data.

use std::io::{ErrorKind, Write};

/// Says one thing. A closed stderr is no reason to stop a run.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints data or a summary to stdout. A closed pipe is no error.
pub(super) fn print(text: &str) {
    let _ = try_print(text);
}

/// The same; false where a pipe is closed, since nobody listens any more. Whatever else keeps it from
/// being written is an error.
pub(super) fn try_print(text: &str) -> std::io::Result<bool> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
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
