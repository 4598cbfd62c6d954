//! TLS for a server, from the texts of its files.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// Why there is no TLS. No text is quoted: it may be a key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file has nothing of what it must have.
    #[error("{0}: no {1} in PEM")]
    Missing(&'static str, &'static str),
    /// A file is no PEM.
    #[error("{0}: {1}")]
    Malformed(&'static str, pem::Error),
    /// The certificate and the key do not go together, or cannot be used.
    #[error("tls-cert and tls-key: {0}")]
    Unusable(rustls::Error),
    /// A certificate of clients cannot be verified by this.
    #[error("tls-client-ca: {0}")]
    ClientCa(String),
}

/// A configuration by a chain of certificates, its key and, where clients must have certificates
/// too, the certificates of who signs them.
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
