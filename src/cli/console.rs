//! Words for the person at the terminal: to stderr, so that stdout stays data.

use std::io::Write;

/// Says one thing. A closed stderr is no reason to stop a run.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints data or a summary to stdout. A closed pipe is no error.
pub(super) fn print(text: &str) {
    let _ = try_print(text);
}

/// The same; whether anybody takes it.
pub(super) fn try_print(text: &str) -> bool {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
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
