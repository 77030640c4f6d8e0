//! URLs as people write them, joined; and what is wrong with others.

use super::*;

fn posts(base: &str, api: Api, expect: &str) {
    let target = endpoint(base, api).expect(base);
    assert_eq!(target.path_and_query, expect, "{base}");
    assert_eq!(target.path_and_query.matches("/v1").count().max(1), 1, "{base}");
}

/// AISBench#311, guidellm#192: one right path each, whatever slash a base ends in.
#[test]
fn a_base_joins_to_one_path() {
    let chat = "/v1/chat/completions";
    for base in [
        "http://h",
        "http://h/",
        "http://h//",
        "http://h/v1",
        "http://h/v1/",
        "http://h/v1/chat/completions",
        "http://h/v1/chat/completions/",
        "HTTP://h/v1",
        "  http://h/v1\n",
        "http://h?",
    ] {
        posts(base, Api::Chat, chat);
    }
    for base in ["http://h", "http://h/v1", "http://h/v1/completions"] {
        posts(base, Api::Completions, "/v1/completions");
    }
    posts("http://h/llm", Api::Chat, "/llm/v1/chat/completions");
    posts("http://h/llm/v1/", Api::Completions, "/llm/v1/completions");
    posts("http://h/api/paas/v4", Api::Chat, "/api/paas/v4/chat/completions");
    posts("http://h/very", Api::Chat, "/very/v1/chat/completions");
}

#[test]
fn a_query_is_kept_and_never_shown() {
    let target = endpoint("http://h:8000/v1?key=secret&a=b", Api::Chat).expect("a URL");
    assert_eq!(target.path_and_query, "/v1/chat/completions?key=secret&a=b");
    assert_eq!(target.models_path, "/v1/models?key=secret&a=b");
    assert_eq!(target.to_string(), "http://h:8000/v1/chat/completions");
    let azure = "http://h/openai/deployments/d/chat/completions?api-version=1";
    posts(azure, Api::Chat, "/openai/deployments/d/chat/completions?api-version=1");
    assert_eq!(endpoint("http://h?a=1", Api::Chat).expect("a URL").models_path, "/v1/models?a=1");
}

#[test]
fn models_stand_beside_the_api() {
    for (base, expect, base_path) in [
        ("http://h", "/v1/models", ""),
        ("http://h/v1/", "/v1/models", ""),
        ("http://h/x/v1/chat/completions", "/x/v1/models", "/x"),
        ("http://h/x/chat/completions", "/x/models", "/x"),
    ] {
        let target = endpoint(base, Api::Chat).expect(base);
        assert_eq!(target.models_path, expect, "{base}");
        assert_eq!(target.base_path, base_path, "{base}");
    }
}

#[test]
fn the_tokenizer_stands_beside_the_version() {
    for (base, expect) in [
        ("http://h", "/tokenize"),
        ("http://h/v1/", "/tokenize"),
        ("http://h/x/v1/chat/completions", "/x/tokenize"),
        ("http://h/x/chat/completions", "/x/tokenize"),
        ("http://h/v1?key=k", "/tokenize?key=k"),
    ] {
        assert_eq!(endpoint(base, Api::Chat).expect(base).tokenize_path(), expect, "{base}");
    }
}

#[test]
fn hosts_and_ports() {
    for (base, host, port, authority) in [
        ("http://localhost:8000", "localhost", 8000, "localhost:8000"),
        ("http://h", "h", 80, "h"),
        ("http://h:80/v1", "h", 80, "h"),
        ("http://127.0.0.1:1/", "127.0.0.1", 1, "127.0.0.1:1"),
        ("http://[::1]:8000", "::1", 8000, "[::1]:8000"),
        ("http://[fe80::1]/v1", "fe80::1", 80, "[fe80::1]"),
        ("http://my_host.local-1", "my_host.local-1", 80, "my_host.local-1"),
        ("https://h", "h", 443, "h"),
        ("https://h:80", "h", 80, "h:80"),
        ("HTTPS://[::1]:443/v1", "::1", 443, "[::1]"),
    ] {
        let target = endpoint(base, Api::Chat).expect(base);
        assert_eq!((target.host.as_str(), target.port), (host, port), "{base}");
        assert_eq!(target.authority, authority, "{base}");
        assert_eq!(target.tls, base.to_ascii_lowercase().starts_with("https"));
        assert_eq!(target.to_string().split(':').next(), Some(target.scheme()));
    }
}

#[test]
fn bad_urls_say_what_to_write() {
    let check = |base: &str, part: &str| {
        let message = endpoint(base, Api::Chat).expect_err(base).to_string();
        assert!(message.contains(part), "{base}: {message}");
        assert!(!message.contains("secret"), "{base}: {message}");
    };
    check("", "no scheme");
    check("localhost:8000", "no scheme");
    check("user:secret@h", "no scheme");
    check("HTTPS://user:secret@h", "--api-key-env");
    check("ftp://h", "unknown scheme `ftp`");
    check("http://user:secret@h", "--api-key-env");
    check("http://secret@h:1/v1", "--api-key-env");
    check("http://", "no host");
    check("http://:80", "no host");
    check("http:///v1", "no host");
    check("http://::1:8000", "[brackets]");
    check("http://fe80::1", "[brackets]");
    check("http://[::1", "no host name");
    check("http://[::1]8000", "no host name");
    check("http://[h]:1", "no host name");
    check("http://h h", "no host name");
    check("http://hé", "no host name");
    check("http://h:", "no port");
    check("http://h:0", "no port");
    check("http://h:65536", "no port");
    check("http://h:+80", "no port");
    check("http://h:80a/v1", "no port");
    check("http://h/a b", "character ' '");
    check("http://h/v1#secret", "character '#'");
    check("http://h/v1/completions", "--api completions");
    let other = endpoint("http://h/v1/chat/completions", Api::Completions);
    assert!(other.expect_err("a chat URL").to_string().contains("--api chat"));
}
