//! Encryption of datagrams, for both ends: who has a tenant's key is the tenant.
//!
//! Every datagram is AES-256-GCM under a key that HKDF derives from the tenant's key, the sender
//! and the direction, so a receiver finds the key without a state for it.
//! `docs/internals/clio-security.md` has the threat model and why each part is there.

mod client;
mod key_file;
mod keys;
mod node;
mod window;

pub use client::ClientSeal;
pub use key_file::{KeyFile, KeyFileError};
pub use keys::TenantKey;
pub use node::{NodeSeal, SENDERS};
