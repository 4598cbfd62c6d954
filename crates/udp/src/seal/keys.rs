//! Derivation of senders' keys from a tenant's key.

use ethermem_wire::clio::{ENVELOPE_BYTES, Envelope, SenderId, TenantId};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};

/// Length of a tenant's key in octets.
pub(super) const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
/// Separates these keys from keys of other uses of the secret and of other formats.
const SALT: &[u8] = b"ethermem datagrams 1";

/// The secret that only a tenant and the node know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TenantKey(pub [u8; KEY_BYTES]);

impl core::fmt::Debug for TenantKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("TenantKey(secret)")
    }
}

/// All keys of a tenant, derived on demand.
pub(super) struct Keys {
    tenant: TenantId,
    root: Prk,
}

impl Keys {
    pub(super) fn new(tenant: TenantId, key: &TenantKey) -> Keys {
        Keys { tenant, root: Salt::new(HKDF_SHA256, SALT).extract(&key.0) }
    }

    pub(super) fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// The key of a client's requests.
    pub(super) fn requests(&self, client: SenderId) -> DatagramKey {
        self.derive(b"request", client, &[])
    }

    /// The key of a node's responses to that client. A response is valid for one client, and never
    /// passes for a request. The node draws its name anew in each life, because it then counts its
    /// datagrams from the start.
    pub(super) fn answers(&self, client: SenderId, node: SenderId) -> DatagramKey {
        self.derive(b"answer", client, &node.0.to_le_bytes())
    }

    fn derive(&self, direction: &[u8], client: SenderId, node: &[u8]) -> DatagramKey {
        let (tenant, client) = (self.tenant.0.to_le_bytes(), client.0.to_le_bytes());
        let what = [direction, &tenant, &client, node];
        let expanded = self.root.expand(&what, &AES_256_GCM);
        let expanded = expanded.expect("HKDF makes up to 255 times as much");
        DatagramKey(LessSafeKey::new(UnboundKey::from(expanded)))
    }
}

/// The key of one sender in one direction.
pub(super) struct DatagramKey(LessSafeKey);

impl DatagramKey {
    /// Decrypts the packets in place, and returns whether the datagram is authentic.
    pub(super) fn open(&self, envelope: &Envelope, datagram: &mut [u8]) -> bool {
        let (front, rest) = datagram.split_at_mut(ENVELOPE_BYTES);
        let nonce = Nonce::assume_unique_for_key(envelope.nonce());
        self.0.open_in_place(nonce, Aad::from(&*front), rest).is_ok()
    }

    /// Encrypts the packets of a datagram behind its envelope, and appends the tag.
    pub(super) fn seal(&self, envelope: &Envelope, datagram: &mut [u8]) {
        let (front, rest) = datagram.split_at_mut(ENVELOPE_BYTES);
        let end = rest.len().checked_sub(TAG_BYTES).expect("a datagram has room for its tag");
        let (packets, trailer) = rest.split_at_mut(end);
        let nonce = Nonce::assume_unique_for_key(envelope.nonce());
        let tag: Result<Tag, _> =
            self.0.seal_in_place_separate_tag(nonce, Aad::from(&*front), packets);
        trailer.copy_from_slice(tag.expect("a datagram is shorter than AES-GCM takes").as_ref());
    }
}
