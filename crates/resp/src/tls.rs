//! TLS configuration of a server, from the text of its files.

use std::sync::Arc;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{CertificateError, RootCertStore, ServerConfig};

/// A file of a TLS configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFile {
    /// The certificate chain.
    Cert,
    /// The private key.
    Key,
    /// The certificates of the clients' authority.
    ClientCa,
}

/// The reason why TLS cannot be configured. It quotes no file content, which may be a key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file lacks a required item.
    #[error("no {1} in PEM: must have one")]
    Missing(TlsFile, &'static str),
    /// A file is not valid PEM.
    #[error("{1}: must be PEM")]
    Malformed(TlsFile, pem::Error),
    /// The key is another certificate's.
    #[error("the key of another certificate: must be the first certificate's own")]
    OtherKey,
    /// The certificate or the key has a form that is not known.
    #[error("{1}: must be {what}", what = of_form(*.0))]
    Form(TlsFile, String),
}

impl TlsError {
    /// The file that must change.
    #[must_use]
    pub fn file(&self) -> TlsFile {
        match self {
            TlsError::Missing(file, _) | TlsError::Malformed(file, _) | TlsError::Form(file, _) => {
                *file
            }
            TlsError::OtherKey => TlsFile::Key,
        }
    }
}

fn of_form(file: TlsFile) -> &'static str {
    match file {
        TlsFile::Cert | TlsFile::ClientCa => "certificates of X.509 version 3",
        TlsFile::Key => "a key of RSA, ECDSA or Ed25519",
    }
}

fn form(file: TlsFile, error: &rustls::Error) -> TlsError {
    match error {
        rustls::Error::InconsistentKeys(_) => TlsError::OtherKey,
        rustls::Error::InvalidCertificate(why) => TlsError::Form(file, format!("{why:?}")),
        error => TlsError::Form(TlsFile::Key, error.to_string()),
    }
}

/// A configuration from a certificate chain and its key. If clients must have certificates, it also
/// takes the certificates of their authority.
///
/// # Errors
/// [`TlsError`].
pub fn tls_config(
    cert: &[u8],
    key: &[u8],
    client_ca: Option<&[u8]>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(TlsFile::Cert, cert)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::Missing(TlsFile::Key, "private key"),
        error => TlsError::Malformed(TlsFile::Key, error),
    })?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let unusable = |error: rustls::Error| form(TlsFile::Cert, &error);
    let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(client_ca) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(TlsFile::ClientCa, client_ca)? {
                roots.add(certificate).map_err(|error| form(TlsFile::ClientCa, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let of_ca =
                |error: VerifierBuilderError| TlsError::Form(TlsFile::ClientCa, error.to_string());
            builder.with_client_cert_verifier(verifier.build().map_err(of_ca)?)
        }
    };
    builder.with_single_cert(chain, key).map(Arc::new).map_err(unusable)
}

/// Why clients that check the time refuse the first of these certificates now, if they do.
#[must_use]
pub fn outside_its_time(cert: &[u8]) -> Option<&'static str> {
    let chain = certificates(TlsFile::Cert, cert).ok()?;
    let first = ParsedCertificate::try_from(chain.first()?).ok()?;
    let algorithms = ring::default_provider().signature_verification_algorithms.all;
    // Times are checked before the issuer, of which nothing is known here.
    let roots = RootCertStore::empty();
    let now = UnixTime::now();
    match verify_server_cert_signed_by_trust_anchor(&first, &roots, &[], now, algorithms) {
        Err(rustls::Error::InvalidCertificate(why)) => match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                Some("the certificate has expired: clients refuse it")
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Some("the certificate is not valid yet: clients refuse it")
            }
            _ => None,
        },
        _ => None,
    }
}

fn certificates(file: TlsFile, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.map_err(|error| TlsError::Malformed(file, error))?;
    if found.is_empty() { Err(TlsError::Missing(file, "certificate")) } else { Ok(found) }
}
