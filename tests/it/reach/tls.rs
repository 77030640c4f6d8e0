//! TLS against certificates made for the test.

use std::net::TcpStream;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use underfire::record::Outcome;

use super::server::{Asked, CLOSES, Duplex, Server, good, models, stream};
use crate::program::{Place, small_trace};

/// A certificate and its key, as PEM.
struct Identity {
    cert: String,
    key: String,
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).expect("names")
}

/// Signed by its own key, as `openssl req -x509` makes it: an authority too.
fn self_signed(names: &[&str]) -> Identity {
    let key = KeyPair::generate().expect("a key");
    let mut params = params(names);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let cert = params.self_signed(&key).expect("a certificate");
    Identity { cert: cert.pem(), key: key.serialize_pem() }
}

/// An authority and somebody whom it vouches for.
fn vouched(names: &[&str], usage: ExtendedKeyUsagePurpose) -> (String, Identity) {
    let mut authority = params(&[]);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("a certificate");
    let key = KeyPair::generate().expect("a key");
    let mut params = params(names);
    params.extended_key_usages = vec![usage];
    let cert = params.signed_by(&key, &authority).expect("a certificate");
    (authority.pem(), Identity { cert: cert.pem(), key: key.serialize_pem() })
}

/// A server with this certificate; it wants one from `clients` where given.
fn server(answer: fn(&Asked) -> String, identity: &Identity, clients: Option<&str>) -> Server {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(identity.cert.as_bytes()).expect("PEM")];
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("PEM");
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("versions");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            let authority = CertificateDer::from_pem_slice(authority.as_bytes()).expect("PEM");
            roots.add(authority).expect("an authority");
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        }
    };
    let config = Arc::new(builder.with_single_cert(chain, key).expect("a pair"));
    Server::over(answer, move |socket: TcpStream| {
        let session = ServerConnection::new(config.clone()).ok()?;
        Some(Box::new(StreamOwned::new(session, socket)) as Box<dyn Duplex>)
    })
}

/// A server for `localhost` that nobody has a reason to trust.
pub(super) fn localhost(answer: fn(&Asked) -> String) -> Server {
    server(answer, &self_signed(&["localhost"]), None)
}

fn url(server: &Server, host: &str) -> String {
    format!("https://{host}:{}", server.port)
}

/// vllm#29042, sglang#35235, gpustack#6102, aiperf#536.
#[test]
fn a_self_signed_certificate_is_a_clear_error_and_can_be_trusted() {
    let identity = self_signed(&["localhost", "127.0.0.1"]);
    let server = server(good, &identity, None);
    let place = Place::new();
    place.write("t.csv", small_trace(10, 50)).write("ca.pem", &identity.cert);
    let url = url(&server, "127.0.0.1");
    // Nothing is known beforehand: one message, no rows.
    let said = place.run(&["run", "t.csv", "--url", &url]).expect(4);
    assert!(said.stderr.contains("not trusted: self-signed"), "{said:#?}");
    assert!(said.stderr.contains("--cacert") && said.stderr.contains("--insecure"), "{said:#?}");
    // With a model named, the rows say it.
    place.run(&["run", "t.csv", "--url", &url, "--model", "m", "--out", "no"]).expect(4);
    for row in place.rows("no") {
        assert_eq!(row.outcome, Outcome::Connect);
        assert!(row.error.as_deref().is_some_and(|error| error.contains("not trusted")));
    }
    for (out, trust) in [("yes", &["--cacert", "ca.pem"][..]), ("any", &["--insecure"])] {
        let all = [&["run", "t.csv", "--url", &url, "--out", out], trust].concat();
        place.run(&all).expect(0);
        let rows = place.rows(out);
        assert!(rows.iter().all(|row| row.outcome == Outcome::Ok), "{rows:#?}");
        assert!(rows[0].connect.is_some(), "the handshake is in it");
        let reused = rows.iter().filter(|row| row.conn_reused == Some(true)).count();
        assert!(reused >= 3, "tickets are no reason to drop a connection: {rows:#?}");
    }
}

#[test]
fn an_authority_is_trusted_for_the_names_it_vouches_for() {
    let (authority, identity) = vouched(&["localhost"], ExtendedKeyUsagePurpose::ServerAuth);
    let server = server(good, &identity, None);
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10)).write("ca.pem", authority);
    let run = |host: &str, out: &str, code: i32| {
        let url = url(&server, host);
        place.run(&["run", "t.csv", "--url", &url, "--cacert", "ca.pem", "--out", out]).expect(code)
    };
    run("localhost", "named", 0);
    let said = run("127.0.0.1", "address", 4);
    assert!(said.stderr.contains("the certificate is for another host"), "{said:#?}");
}

#[test]
fn a_client_certificate_is_shown_where_it_is_asked_for() {
    let identity = self_signed(&["localhost"]);
    let (authority, me) = vouched(&["me"], ExtendedKeyUsagePurpose::ClientAuth);
    let server = server(good, &identity, Some(&authority));
    let place = Place::new();
    place.write("t.csv", small_trace(3, 10)).write("ca.pem", &identity.cert);
    place.write("me.pem", &me.cert).write("me.key", &me.key);
    place.write("both.pem", format!("{}{}", me.cert, me.key));
    let url = url(&server, "localhost");
    let run = |out: &str, more: &[&str]| {
        let all = ["run", "t.csv", "--url", &url, "--cacert", "ca.pem", "--model", "m", "--out"];
        place.run(&[&all[..], &[out], more].concat())
    };
    run("two", &["--cert", "me.pem", "--key", "me.key"]).expect(0);
    run("one", &["--cert", "both.pem"]).expect(0);
    run("none", &[]).expect(4);
    let error = place.rows("none").remove(0).error.expect("an error");
    assert!(error.contains("CertificateRequired"), "{error}");
    let said = run("bad", &["--cert", "t.csv"]).expect(2);
    assert!(said.stderr.contains("t.csv"), "{said:#?}");
}

/// The check before reuse sees a close under TLS too.
#[test]
fn a_connection_that_the_server_closed_is_not_used_again() {
    fn closing(asked: &Asked) -> String {
        if asked.is_post() { stream(4, CLOSES) } else { models(asked) }
    }
    let identity = self_signed(&["localhost"]);
    let server = server(closing, &identity, None);
    let place = Place::new();
    place.write("t.csv", small_trace(10, 50));
    let url = url(&server, "localhost");
    place.run(&["run", "t.csv", "--url", &url, "--insecure", "--out", "run"]).expect(0);
    let rows = place.rows("run");
    let failed = rows.iter().filter(|row| row.outcome != Outcome::Ok).count();
    assert!(failed <= 1, "only a close that crossed its POST may fail: {rows:#?}");
    assert!(rows.iter().filter(|row| row.conn_reused == Some(false)).count() >= 9);
}

#[test]
fn a_server_without_tls_is_told_from_one_without_trust() {
    let server = Server::start(good);
    let place = Place::new();
    place.write("t.csv", small_trace(1, 10));
    let said = place.run(&["run", "t.csv", "--url", &url(&server, "127.0.0.1")]).expect(4);
    assert!(said.stderr.contains("TLS"), "{said:#?}");
}
