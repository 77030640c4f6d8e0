//! Reaching servers: keys, TLS, engines, several targets, proxies. One file per matter, and a server
//! that answers what a test says.

mod http2;
mod preflight;
mod secrets;
pub(crate) mod server;
mod targets;
mod tls;
mod watch;
mod words;

use std::path::Path;

/// Every file below a folder, read whole.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            found.push((path.display().to_string(), bytes));
        }
    }
    found
}
