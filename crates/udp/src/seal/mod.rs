//! Encryption of datagrams, for both ends: possession of a tenant's key authenticates the tenant.
//!
//! Every datagram is AES-256-GCM under a key that HKDF derives from the tenant's key, the sender
//! and the direction, so a receiver finds the key without state. `docs/internals/clio-security.md`
//! has the threat model and the reason for each part.

mod client;
mod key_file;
mod keys;
mod node;
mod window;

pub use client::ClientSeal;
pub use key_file::{KeyFile, KeyFileError};
pub use keys::TenantKey;
pub use node::{NodeSeal, SENDERS};
