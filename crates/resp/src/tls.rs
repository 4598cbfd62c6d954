//! TLS configuration of a server, from the text of its files.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// The reason why TLS cannot be configured. It quotes no file content, which may be a key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file lacks a required item.
    #[error("{0}: no {1} in PEM")]
    Missing(&'static str, &'static str),
    /// A file is not valid PEM.
    #[error("{0}: {1}")]
    Malformed(&'static str, pem::Error),
    /// The certificate and the key do not match, or cannot be used.
    #[error("tls-cert and tls-key: {0}")]
    Unusable(rustls::Error),
    /// Clients' certificates cannot be verified with this authority.
    #[error("tls-client-ca: {0}")]
    ClientCa(String),
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
    let chain = certificates("tls-cert", cert)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::Missing("tls-key", "private key"),
        error => TlsError::Malformed("tls-key", error),
    })?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::Unusable)?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(client_ca) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates("tls-client-ca", client_ca)? {
                let added = roots.add(certificate);
                added.map_err(|error| TlsError::ClientCa(error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let verifier =
                verifier.build().map_err(|error| TlsError::ClientCa(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    builder.with_single_cert(chain, key).map(Arc::new).map_err(TlsError::Unusable)
}

fn certificates(name: &'static str, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.map_err(|error| TlsError::Malformed(name, error))?;
    if found.is_empty() { Err(TlsError::Missing(name, "certificate")) } else { Ok(found) }
}
