//! Around the packets of a datagram: who sent it, to which life of the node, until when it counts,
//! and a check.

use core::ops::Range;

use ethermem_units::Ns;
use thiserror::Error;

use super::octets::{NoRoom, Reader, Writer};
use crate::crc;

/// The first octet of every datagram.
pub const VERSION: u8 = 1;

/// Octets before the packets.
pub const ENVELOPE_BYTES: usize = 32;

/// Octets of the nonce of AES-GCM.
pub const GCM_NONCE_BYTES: usize = 12;

/// Whose key and whose quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u16);

/// Which life of the node: another number after each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(pub u32);

impl Epoch {
    /// Of a sender that does not know it yet.
    pub const UNKNOWN: Epoch = Epoch(0);
}

/// One sender, for as long as it runs: drawn at random when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SenderId(pub u64);

/// How a datagram is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Protection {
    /// By what carries it alone: for datagrams that do not leave the machine.
    Carrier = 0,
    /// CRC-32C over envelope and packets: against errors, not against people.
    Crc = 1,
    /// AES-256-GCM: the packets are encrypted, and they and the envelope authenticated.
    Gcm = 2,
}

impl Protection {
    /// All three.
    pub const ALL: [Protection; 3] = [Protection::Carrier, Protection::Crc, Protection::Gcm];

    /// Octets behind the packets.
    #[must_use]
    pub const fn trailer_bytes(self) -> usize {
        match self {
            Protection::Carrier => 0,
            Protection::Crc => 4,
            Protection::Gcm => 16,
        }
    }
}

/// The front of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// How it is checked.
    pub protection: Protection,
    /// Whose key and quota.
    pub tenant: TenantId,
    /// Which life of the node.
    pub epoch: Epoch,
    /// Who sent it.
    pub sender: SenderId,
    /// Counts the sender's datagrams. A sender uses no number twice: with its key it makes the
    /// nonce.
    pub sequence: u64,
    /// On the node's clock. In requests: after it, nothing of the datagram is executed; of one
    /// sender it never goes back. In answers: now.
    pub clock: Ns,
}

/// Why octets are no datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EnvelopeError {
    /// Too short to be one.
    #[error("{bytes} B are no datagram: at least {least} B are")]
    Truncated {
        /// How many there are.
        bytes: usize,
        /// How many it takes.
        least: usize,
    },
    /// Of another version of this format.
    #[error("version {0}: allowed is {VERSION}")]
    Version(u8),
    /// Protected in an unknown way.
    #[error("protection {0}: allowed are 0, 1 and 2")]
    Protection(u8),
    /// The CRC is that of other octets. The envelope may be wrong as well: it is good for a hint,
    /// and no more.
    #[error("CRC {found:#010x}, and the octets have {expected:#010x}")]
    Corrupt {
        /// What came.
        found: u32,
        /// What its octets have.
        expected: u32,
        /// The envelope as it came.
        envelope: Envelope,
    },
}

/// A datagram as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its front. With AES-GCM it can be trusted once the tag was verified.
    pub envelope: Envelope,
    /// Where its packets are, encrypted with AES-GCM.
    pub packets: Range<usize>,
    /// Where the check is.
    pub trailer: Range<usize>,
}

impl Envelope {
    /// Finds the parts of a datagram, and verifies its CRC where it has one. An AES-GCM tag is left
    /// to who has the key: the associated data are the first [`ENVELOPE_BYTES`].
    ///
    /// # Errors
    /// [`EnvelopeError`].
    pub fn open(datagram: &[u8]) -> Result<Sealed, EnvelopeError> {
        let bytes = datagram.len();
        let truncated = |least| EnvelopeError::Truncated { bytes, least };
        let envelope = Envelope::parse(datagram)?;
        let trailer = envelope.protection.trailer_bytes();
        let least = ENVELOPE_BYTES + trailer;
        let end = bytes.checked_sub(trailer).filter(|&end| end >= ENVELOPE_BYTES);
        let end = end.ok_or_else(|| truncated(least))?;
        if envelope.protection == Protection::Crc {
            let (checked, crc) = datagram.split_at(end);
            let crc = Reader(crc).u32().expect("the trailer of a CRC is four octets");
            let expected = crc::datagram(checked);
            if crc != expected {
                return Err(EnvelopeError::Corrupt { found: crc, expected, envelope });
            }
        }
        Ok(Sealed { envelope, packets: ENVELOPE_BYTES..end, trailer: end..bytes })
    }

    fn parse(datagram: &[u8]) -> Result<Envelope, EnvelopeError> {
        let truncated = EnvelopeError::Truncated { bytes: datagram.len(), least: ENVELOPE_BYTES };
        let mut reader = Reader(datagram);
        let version = reader.u8().ok_or(truncated)?;
        if version != VERSION {
            return Err(EnvelopeError::Version(version));
        }
        let protection = reader.u8().ok_or(truncated)?;
        let known = Protection::ALL.get(usize::from(protection)).copied();
        let protection = known.ok_or(EnvelopeError::Protection(protection))?;
        let mut rest = || {
            let (tenant, epoch) = (TenantId(reader.u16()?), Epoch(reader.u32()?));
            let (sender, sequence) = (SenderId(reader.u64()?), reader.u64()?);
            let clock = Ns(reader.u64()?);
            Some(Envelope { protection, tenant, epoch, sender, sequence, clock })
        };
        rest().ok_or(truncated)
    }

    /// Writes the front of a datagram; the packets come behind it.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(into);
        writer.u8(VERSION);
        writer.u8(self.protection as u8);
        writer.u16(self.tenant.0);
        writer.u32(self.epoch.0);
        writer.u64(self.sender.0);
        writer.u64(self.sequence);
        writer.u64(self.clock.0);
        writer.end()
    }

    /// Puts the CRC of the first `end` octets behind them where the datagram has one, and gives
    /// its whole length. With AES-GCM that length has room for the tag.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn seal(&self, datagram: &mut [u8], end: usize) -> Result<usize, NoRoom> {
        let (needed, room) = (end + self.protection.trailer_bytes(), datagram.len());
        if needed > room {
            return Err(NoRoom { needed, room });
        }
        if self.protection == Protection::Crc {
            let (checked, trailer) = datagram.split_at_mut(end);
            trailer[..4].copy_from_slice(&crc::datagram(checked).to_le_bytes());
        }
        Ok(needed)
    }

    /// The nonce of AES-GCM: the sequence number, under a key that is the sender's own.
    #[must_use]
    pub fn nonce(&self) -> [u8; GCM_NONCE_BYTES] {
        let mut nonce = [0; GCM_NONCE_BYTES];
        nonce[4..].copy_from_slice(&self.sequence.to_le_bytes());
        nonce
    }
}
