//! Encrypted datagrams, opened and sealed by the holder of the keys.

use ethermem_units::Ns;
use ethermem_wire::clio::{ENVELOPE_BYTES, Envelope, EnvelopeError};

use super::machine::Node;

/// The holder of the keys of a node's tenants. A datagram that it refuses is dropped, without an
/// answer.
pub trait Seal {
    /// Verifies a datagram, and decrypts its packets in place.
    ///
    /// # Errors
    /// [`SealRefused`].
    fn open(&mut self, envelope: &Envelope, datagram: &mut [u8]) -> Result<(), SealRefused>;

    /// Encrypts the packets of the answer to the last opened datagram, and puts the tag into its
    /// trailer, the last octets of `datagram`.
    fn seal(&mut self, answer: &Envelope, datagram: &mut [u8]);
}

/// Why a datagram is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealRefused {
    /// The tenant is unknown.
    Tenant,
    /// It was not made with the tenant's key, or was changed.
    Forged,
    /// It is a duplicate.
    Replayed,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Node<B> {
    /// Processes a datagram of a node whose datagrams are encrypted. The answer is written into
    /// `answer`, which must be as long as an answer may be. Returns its length; 0 means no answer.
    pub fn on_sealed(
        &mut self,
        now: Ns,
        datagram: &mut [u8],
        answer: &mut [u8],
        seal: &mut impl Seal,
    ) -> usize {
        self.counters.datagrams += 1;
        let trailer = self.config.protection.trailer_bytes();
        let Some(end) = answer.len().checked_sub(trailer).filter(|&end| end > ENVELOPE_BYTES)
        else {
            return 0;
        };
        let opened = match Envelope::open(datagram) {
            Ok(opened) if opened.envelope.protection == self.config.protection => opened,
            Ok(_) | Err(EnvelopeError::Corrupt { .. }) => {
                self.counters.dropped_protection += 1;
                return 0;
            }
            Err(_) => {
                self.counters.dropped_malformed += 1;
                return 0;
            }
        };
        let envelope = opened.envelope;
        if let Err(refused) = seal.open(&envelope, datagram) {
            *match refused {
                SealRefused::Tenant => &mut self.counters.dropped_tenant,
                SealRefused::Forged => &mut self.counters.dropped_corrupt,
                SealRefused::Replayed => &mut self.counters.dropped_replayed,
            } += 1;
            return 0;
        }
        let into = &mut answer[ENVELOPE_BYTES..end];
        let used = self.on_packets(now, &envelope, &datagram[opened.packets], into);
        if used == 0 {
            return 0;
        }
        let front = self.answer_envelope(now, &envelope);
        let emitted = front.emit(answer).expect("room was left for the envelope");
        let length = emitted + used + trailer;
        seal.seal(&front, &mut answer[..length]);
        length
    }
}
