//! What never leaves: keys, header values, prompts, absolute paths, the user part and query of a URL.
//!
//! A manifest is handed around with its results, so whatever a person typed passes through here.

use serde_json::Value;

/// Options whose value is secret or somebody's text, whole.
const SECRET_OPTIONS: [&str; 3] = ["--prompt", "--api-key", "--proxy-header"];

/// Paths of servers that sentences name: no files of anybody.
const SERVER_PATHS: [&str; 7] = [
    "/tokenize",
    "/metrics",
    "/v1",
    "/v1/models",
    "/v1/metrics",
    "/v1/completions",
    "/v1/chat/completions",
];

/// A URL without its user part, query and fragment.
///
/// `http://me:pw@host:8000/v1?key=x` becomes `http://host:8000/v1`. A password with an unescaped
/// slash is recognised by what looks like a port and is none.
#[must_use]
pub fn redact_url(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, url),
    };
    if scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("file")) {
        return file_name(rest);
    }
    let rest = without_user(rest);
    let rest = rest.split(['?', '#']).next().unwrap_or("");
    match scheme {
        Some(scheme) => format!("{scheme}://{rest}"),
        None => rest.to_owned(),
    }
}

fn without_user(rest: &str) -> &str {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, beyond) = rest.split_at(end);
    if let Some(at) = authority.rfind('@') {
        return &rest[at + 1..];
    }
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    let a_port = port.bytes().all(|b| b.is_ascii_digit()) || authority.ends_with(']');
    match beyond.rfind('@') {
        Some(at) if !a_port => &beyond[at + 1..],
        _ => rest,
    }
}

/// One word of a command line, or any word that may be a path or a URL: an absolute path becomes its
/// file name, a URL loses its user part and query; so does what follows `=`.
#[must_use]
pub fn redact_arg(arg: &str) -> String {
    if arg.contains("://") && !arg.starts_with('-') {
        // `label=http://…` too: the part before the scheme cannot hold a path.
        return match arg.split_once('=') {
            Some((key, value)) if !key.contains("://") => format!("{key}={}", redact_arg(value)),
            _ => redact_url(arg),
        };
    }
    if is_absolute(arg) {
        return file_name(arg);
    }
    match arg.split_once('=') {
        Some((key, value)) if is_absolute(value) || value.contains("://") => {
            format!("{key}={}", redact_arg(value))
        }
        _ => arg.to_owned(),
    }
}

/// A sentence with each of its words redacted as by [`redact_arg`], whatever quotes it.
#[must_use]
pub fn redact_text(text: &str) -> String {
    let bare = |word: &str| {
        let core = word.trim_start_matches(['`', '\'', '"', '(', '[', '<']);
        let open = &word[..word.len() - core.len()];
        let inner = core.trim_end_matches(['`', '\'', '"', ')', ']', '>', ',', ';', ':', '.']);
        let close = &core[inner.len()..];
        format!("{open}{}{close}", redact_arg(inner))
    };
    text.split(' ').map(bare).collect::<Vec<_>>().join(" ")
}

/// Every text in a JSON value redacted as by [`redact_arg`].
pub fn redact_json(value: &mut Value) {
    match value {
        Value::String(text) => *text = redact_arg(text),
        Value::Array(items) => items.iter_mut().for_each(redact_json),
        Value::Object(map) => map.values_mut().for_each(redact_json),
        _ => {}
    }
}

/// A command line, without the program's own path: values of headers, prompts and keys are replaced,
/// of JSON for the body only keys, numbers and truth values stay, all else goes through [`redact_arg`].
#[must_use]
pub fn redact_command(args: &[String]) -> Vec<String> {
    let mut redacted = Vec::with_capacity(args.len());
    let mut option: Option<&str> = None;
    for arg in args {
        if let Some(option) = option.take() {
            redacted.push(redact_value(option, arg));
            continue;
        }
        match arg.split_once('=') {
            Some((name, value)) if is_guarded(name) => {
                redacted.push(format!("{name}={}", redact_value(name, value)));
            }
            _ => {
                option = is_guarded(arg).then_some(arg);
                redacted.push(redact_arg(arg));
            }
        }
    }
    redacted
}

fn is_guarded(option: &str) -> bool {
    SECRET_OPTIONS.contains(&option)
        || matches!(option, "--header" | "--extra" | "--url" | "--proxy" | "--metrics")
}

fn redact_value(option: &str, value: &str) -> String {
    match option {
        "--header" => match value.split_once(':') {
            Some((name, _)) => format!("{name}:…"),
            None => "…".to_owned(),
        },
        "--extra" => blank_texts(value),
        "--url" | "--proxy" | "--metrics" => redact_url(value),
        _ => "…".to_owned(),
    }
}

fn blank_texts(text: &str) -> String {
    fn blank(value: &mut Value) {
        match value {
            Value::String(text) => "…".clone_into(text),
            Value::Array(items) => items.iter_mut().for_each(blank),
            Value::Object(map) => map.values_mut().for_each(blank),
            _ => {}
        }
    }
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) => {
            blank(&mut value);
            value.to_string()
        }
        Err(_) => "…".to_owned(),
    }
}

fn is_absolute(word: &str) -> bool {
    let bytes = word.as_bytes();
    (word.len() > 1 && word.starts_with(['/', '\\']) && !SERVER_PATHS.contains(&word))
        || word.starts_with("~/")
        || (bytes.len() > 2
            && bytes[0].is_ascii_alphabetic()
            && bytes[1] == b':'
            && matches!(bytes[2], b'/' | b'\\'))
}

/// The last part of a path; of a root, nothing.
fn file_name(path: &str) -> String {
    let path = path.trim_end_matches(['/', '\\']);
    path.rsplit(['/', '\\']).next().unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_lose_user_and_query() {
        let check = |url: &str, wanted: &str| assert_eq!(redact_url(url), wanted, "{url}");
        check("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1");
        check("https://me:secret@host/v1?key=abc#x", "https://host/v1");
        check("http://me@host:80", "http://host:80");
        check("http://me:p@ss@host", "http://host");
        check("http://me:pa/ss@host/v1", "http://host/v1");
        check("http://host:8000/a@b", "http://host:8000/a@b");
        check("http://[::1]:8000/v1", "http://[::1]:8000/v1");
        check("http://[::1]/a@b", "http://[::1]/a@b");
        check("http://host?token=a/b@c", "http://host");
        check("me:secret@host:8000/v1?key=abc", "host:8000/v1");
        check("host:8000", "host:8000");
        check("file:///home/me/trace.csv", "trace.csv");
    }

    #[test]
    fn absolute_paths_become_names() {
        let check = |arg: &str, wanted: &str| assert_eq!(redact_arg(arg), wanted, "{arg}");
        check("/home/me/trace.csv", "trace.csv");
        check("/home/me/", "me");
        check("C:\\data\\trace.csv", "trace.csv");
        check("~/trace.csv", "trace.csv");
        check("../shared/trace.csv", "../shared/trace.csv");
        check("--out=/tmp/run", "--out=run");
        check("data=/srv/x", "data=x");
        check("--url=http://me:pw@host/?k=v", "--url=http://host/");
        check("error_rate>5%/30s", "error_rate>5%/30s");
        check("--slo", "--slo");
        check("ttft_ms.p99<=500", "ttft_ms.p99<=500");
        assert_eq!(redact_text("sorted /a/b.csv first"), "sorted b.csv first");
        assert_eq!(redact_text("(see \"/a/b.csv\"). 5 / 3"), "(see \"b.csv\"). 5 / 3");
        let of_a_server = "3 requests to /tokenize, and `GET /v1/models`.";
        assert_eq!(redact_text(of_a_server), of_a_server);
        assert_eq!(redact_text("/v1/models/x and /tokenize/x"), "x and x");
    }

    #[test]
    fn a_command_keeps_its_shape_and_no_secret() {
        let args = [
            "run",
            "/data/t.csv",
            "--header",
            "Authorization: Bearer sk-1",
            "--header=X-Key:sk-2",
            "--prompt",
            "my own words",
            "--extra",
            r#"{"temperature":0.5,"user":"bob","stop":["x"]}"#,
            "--url",
            "http://u:p@h:1/v1?k=sk-3",
            "--api-key-file",
            "/etc/key",
            "--seed",
            "7",
        ];
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let wanted = [
            "run",
            "t.csv",
            "--header",
            "Authorization:…",
            "--header=X-Key:…",
            "--prompt",
            "…",
            "--extra",
            r#"{"stop":["…"],"temperature":0.5,"user":"…"}"#,
            "--url",
            "http://h:1/v1",
            "--api-key-file",
            "key",
            "--seed",
            "7",
        ];
        assert_eq!(redact_command(&args), wanted);
    }
}
