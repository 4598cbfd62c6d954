//! A client's end.

use ethermem_wire::clio::{Envelope, EnvelopeError, Protection, Sealed, SenderId, TenantId};

use super::keys::{DatagramKey, Keys, TenantKey};
use super::window::ReplayWindow;

/// See the module: of one client that speaks to one node.
pub struct ClientSeal {
    keys: Keys,
    client: SenderId,
    sealing: DatagramKey,
    /// Of the node's life that was heard last.
    answers: Option<(SenderId, DatagramKey, ReplayWindow)>,
}

impl ClientSeal {
    /// The end of a client with that name as a sender, which must be drawn at random: two clients
    /// with one name and one key would use nonces twice.
    #[must_use]
    pub fn new(tenant: TenantId, key: &TenantKey, client: SenderId) -> ClientSeal {
        let keys = Keys::new(tenant, key);
        let sealing = keys.requests(client);
        ClientSeal { keys, client, sealing, answers: None }
    }

    /// Encrypts a datagram that the transport has written, in place: its last octets are its room
    /// for the tag. Each datagram is to be sealed once.
    ///
    /// # Errors
    /// [`EnvelopeError`]: it is no datagram.
    pub fn seal(&self, datagram: &mut [u8]) -> Result<(), EnvelopeError> {
        let envelope = Envelope::open(datagram)?.envelope;
        self.sealing.seal(&envelope, datagram);
        Ok(())
    }

    /// Decrypts an answer in place, and says where its packets are. `None` is one that the node did
    /// not make for this client, that was changed, or that came before.
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
