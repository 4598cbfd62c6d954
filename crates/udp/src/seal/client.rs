//! A client's end.

use ethermem_wire::clio::{Envelope, EnvelopeError, Protection, Sealed, SenderId, TenantId};

use super::keys::{DatagramKey, Keys, TenantKey};
use super::window::ReplayWindow;

/// Encryption for a client that talks to one node.
pub struct ClientSeal {
    keys: Keys,
    client: SenderId,
    sealing: DatagramKey,
    /// Keys and replay window of the node's latest known life.
    answers: Option<(SenderId, DatagramKey, ReplayWindow)>,
}

impl ClientSeal {
    /// The client's end; its sender name must be drawn at random. Two clients with equal names and
    /// keys would reuse nonces.
    #[must_use]
    pub fn new(tenant: TenantId, key: &TenantKey, client: SenderId) -> ClientSeal {
        let keys = Keys::new(tenant, key);
        let sealing = keys.requests(client);
        ClientSeal { keys, client, sealing, answers: None }
    }

    /// Encrypts a datagram of the transport in place; its last octets are room for the tag. Each
    /// datagram must be sealed once.
    ///
    /// # Errors
    /// [`EnvelopeError`]: the envelope is invalid.
    pub fn seal(&self, datagram: &mut [u8]) -> Result<(), EnvelopeError> {
        let envelope = Envelope::open(datagram)?.envelope;
        self.sealing.seal(&envelope, datagram);
        Ok(())
    }

    /// Decrypts a response in place, and returns the range of its packets. `None` means that the
    /// node did not make it for this client, that it was changed, or that it is a replay.
    pub fn open(&mut self, datagram: &mut [u8]) -> Option<Sealed> {
        let sealed = Envelope::open(datagram).ok()?;
        let envelope = &sealed.envelope;
        let own = envelope.protection == Protection::Gcm && envelope.tenant == self.keys.tenant();
        if !own {
            return None;
        }
        let number = envelope.sequence;
        match &mut self.answers {
            Some((node, key, window)) if *node == envelope.sender => {
                let good = window.is_new(number) && key.open(envelope, datagram);
                good.then(|| window.came(number))?;
            }
            _ => {
                let key = self.keys.answers(self.client, envelope.sender);
                key.open(envelope, datagram).then_some(())?;
                let mut window = ReplayWindow::EMPTY;
                window.came(number);
                self.answers = Some((envelope.sender, key, window));
            }
        }
        Some(sealed)
    }
}
