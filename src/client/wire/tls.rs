//! TLS: whom to trust, who we are, and what a failed handshake means in words.
//!
//! Deliberately absent: any provider but `ring`, protocols before TLS 1.2, revocation lists.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_rustls::TlsConnector;

use super::maybe_tls::Wire;
use super::stamped::Stamped;

/// What TLS calls HTTP/2.
const HTTP2: &[u8] = b"h2";

/// What TLS is to be like.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct TlsOptions {
    /// Certificates (PEM) that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Trust anybody.
    pub insecure: bool,
    /// Our own certificate chain (PEM).
    pub cert_file: Option<PathBuf>,
    /// Its key (PEM); where there is none, it is in the file of the certificate.
    pub key_file: Option<PathBuf>,
}

/// Why TLS could not be set up; nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read, or does not hold what it should.
    #[error("failed to read {what} from {}: {reason}", path.display())]
    File {
        /// What was looked for.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Nobody to trust.
    #[error(
        "this system has no trusted certificates{0}\nhint: --cacert FILE trusts those in a file, \
         --insecure trusts anybody"
    )]
    NoRoots(String),
    /// A certificate and a key that do not fit, or a key that cannot be used.
    #[error("the client certificate cannot be used: {0}")]
    Client(Error),
    /// The library refuses its own defaults.
    #[error("TLS cannot be set up: {0}")]
    Library(Error),
    /// A host that no certificate can name.
    #[error("`{0}` cannot be verified: it is neither a host name nor an address")]
    Name(String),
}

/// TLS as all connections to one server have it.
#[derive(Clone)]
pub struct Tls {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.name).finish()
    }
}

/// Reads the files; the result serves every server.
pub fn tls_config(options: &TlsOptions, http2: bool) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Library)?
        .dangerous()
        .with_custom_certificate_verifier(verifier(options, provider)?);
    let mut config = match &options.cert_file {
        None => builder.with_no_client_auth(),
        Some(cert_file) => {
            let chain = certificates(cert_file, "a client certificate")?;
            let key_file = options.key_file.as_ref().unwrap_or(cert_file);
            let key = PrivateKeyDer::from_pem_file(key_file)
                .map_err(|error| unreadable("a private key", key_file, &error))?;
            builder.with_client_auth_cert(chain, key).map_err(TlsError::Client)?
        }
    };
    let protocol: &[u8] = if http2 { HTTP2 } else { b"http/1.1" };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}

impl Tls {
    /// TLS to `host`, a name or an address.
    pub fn new(host: &str, config: Arc<ClientConfig>) -> Result<Self, TlsError> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| TlsError::Name(host.to_owned()))?;
        Ok(Self { name, config })
    }

    /// Shakes hands over a connection.
    pub(super) async fn over(&self, socket: Stamped, http2: bool) -> io::Result<Wire> {
        let connector = TlsConnector::from(self.config.clone());
        match connector.connect(self.name.clone(), socket).await {
            Ok(stream) if http2 && stream.get_ref().1.alpn_protocol() != Some(HTTP2) => {
                Err(io::Error::other("TLS: the server does not offer HTTP/2 (leave out --http2)"))
            }
            Ok(stream) => Ok(Wire::Tls(Box::new(stream))),
            Err(error) => Err(io::Error::new(error.kind(), describe(&error))),
        }
    }
}

fn certificates(path: &Path, what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = || CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>();
    let found = read().map_err(|error| unreadable(what, path, &error))?;
    if found.is_empty() {
        let reason = "there is no certificate in it (PEM is expected)".to_owned();
        return Err(TlsError::File { what, path: path.to_owned(), reason });
    }
    Ok(found)
}

fn unreadable(what: &'static str, path: &Path, error: &rustls::pki_types::pem::Error) -> TlsError {
    TlsError::File { what, path: path.to_owned(), reason: error.to_string() }
}

fn verifier(
    options: &TlsOptions,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    if options.insecure {
        return Ok(Arc::new(Verifier { trusted: None, provider }));
    }
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    let mut named = Vec::new();
    if let Some(path) = &options.ca_file {
        named = certificates(path, "trusted certificates")?;
        let (_, refused) = roots.add_parsable_certificates(named.iter().cloned());
        if refused > 0 {
            let reason = format!("{refused} of its certificates cannot be understood");
            let what = "trusted certificates";
            return Err(TlsError::File { what, path: path.clone(), reason });
        }
    }
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let webpki = webpki.build();
    let reason = system.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
    let webpki = webpki.map_err(|_| TlsError::NoRoots(reason))?;
    Ok(Arc::new(Verifier { trusted: Some(Trusted { webpki, named }), provider }))
}

/// Checks certificates: by what is trusted, or (`--insecure`) takes any, from anybody. That the server
/// holds the key to its certificate is checked either way.
#[derive(Debug)]
struct Verifier {
    trusted: Option<Trusted>,
    provider: Arc<CryptoProvider>,
}

/// Authorities, and certificates that `--cacert` names and that are taken as they are.
///
/// What `openssl req -x509` makes is at once an authority and a server's certificate. The library
/// refuses those; whoever names the very certificate means it. Its name is checked all the same.
#[derive(Debug)]
struct Trusted {
    webpki: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(Trusted { webpki, named }) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        let checked =
            webpki.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        if checked.is_err() && named.contains(end_entity) {
            let parsed = ParsedCertificate::try_from(end_entity)?;
            rustls::client::verify_server_name(&parsed, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        checked
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What a failed handshake means.
fn describe(error: &io::Error) -> String {
    let fault = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match fault {
        Some(Error::InvalidCertificate(fault)) => format!("TLS: {}", describe_certificate(fault)),
        Some(Error::InvalidMessage(_)) => {
            "TLS: the server's answer is no TLS (is it an http:// server?)".to_owned()
        }
        Some(other) => format!("TLS: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "TLS: the server closed the connection in the handshake".to_owned()
        }
        None => format!("TLS: the handshake broke off: {error}"),
    }
}

fn describe_certificate(fault: &CertificateError) -> String {
    match fault {
        CertificateError::UnknownIssuer => {
            "the certificate is not trusted: self-signed, or from an authority that this system does \
             not know (--cacert FILE trusts it, --insecure checks nothing)"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the certificate is not valid any more: {fault}")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the certificate is for another host: {fault}")
        }
        // Such as an authority's own certificate in a server's place: what `openssl req -x509` makes.
        CertificateError::Other(why) => format!(
            "the certificate is not trusted: self-signed or not made for servers ({}; --cacert FILE \
             trusts it, --insecure checks nothing)",
            why.0
        ),
        other => format!("the certificate is not accepted: {other}"),
    }
}
