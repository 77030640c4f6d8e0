//! `--proxy`: an HTTP proxy, asked for by name and never found in the environment.
//!
//! Requests to `https://` servers go through a tunnel (CONNECT), those to `http://` servers are asked
//! of the proxy in absolute form. Deliberately absent: proxies that are themselves reached over TLS,
//! SOCKS.

use super::host_and_port;

/// A proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Name or address, IPv6 without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// `Proxy-Authorization`, a secret.
    pub authorization: Option<String>,
}

/// What is wrong with a proxy's URL. Never holds its user part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// Not `http://`.
    #[error("--proxy takes an http:// URL: http://[USER:PASSWORD@]HOST:PORT")]
    Scheme,
    /// No host, or not a port.
    #[error("--proxy names no host and port: http://[USER:PASSWORD@]HOST:PORT")]
    Host,
}

/// Reads the URL of a proxy; the port is 80 where it names none.
pub fn proxy(url: &str) -> Result<Proxy, ProxyError> {
    let (scheme, rest) = url.trim().split_once("://").ok_or(ProxyError::Scheme)?;
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(ProxyError::Scheme);
    }
    let (user, authority) = match rest.trim_end_matches('/').rsplit_once('@') {
        Some((user, authority)) => (Some(user), authority),
        None => (None, rest.trim_end_matches('/')),
    };
    let (host, port) = host_and_port(authority, 80).map_err(|_| ProxyError::Host)?;
    let authorization = user.map(|user| format!("Basic {}", base64(&percent_decoded(user))));
    Ok(Proxy { host, port, authorization })
}

/// `%41` is `A`; what is no such escape stays as it is.
fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| byte == b'%');
        let value = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        decoded.push(value.unwrap_or(byte));
        rest = if value.is_some() { &after[2..] } else { after };
    }
    decoded
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_has_a_host_and_perhaps_a_user() {
        let read = |url: &str| {
            let proxy = proxy(url).expect(url);
            (proxy.host, proxy.port, proxy.authorization)
        };
        assert_eq!(read("http://p:3128"), ("p".into(), 3128, None));
        assert_eq!(read("HTTP://[::1]:1/"), ("::1".into(), 1, None));
        // The example of RFC 7617.
        let basic = Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned());
        assert_eq!(read("http://Aladdin:open%20sesame@p"), ("p".into(), 80, basic));
        assert_eq!(proxy("p:3128").err(), Some(ProxyError::Scheme));
        assert_eq!(proxy("socks5://p:1").err(), Some(ProxyError::Scheme));
        assert_eq!(proxy("http://u:secret@:x").err(), Some(ProxyError::Host));
    }

    #[test]
    fn base64_has_the_published_values() {
        for (text, expect) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), expect);
        }
    }
}
