//! The envelope around the packets of a datagram: its sender, the epoch of the node, its deadline,
//! and a check.

use core::ops::Range;

use ethermem_units::Ns;
use thiserror::Error;

use crate::crc;
use crate::octets::{NoRoom, Reader, Writer};

/// The first octet of every datagram.
pub const VERSION: u8 = 1;

/// Octets before the packets.
pub const ENVELOPE_BYTES: usize = 32;

/// Octets of the nonce of AES-GCM.
pub const GCM_NONCE_BYTES: usize = 12;

/// A tenant: its key authenticates a datagram, and its quota is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u16);

/// One run of the node: each start of the node draws another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(pub u32);

impl Epoch {
    /// The epoch in datagrams of a sender that does not know the node's epoch yet.
    pub const UNKNOWN: Epoch = Epoch(0);
}

/// A sender, for as long as it runs. It draws this number at random when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SenderId(pub u64);

/// How a datagram is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Protection {
    /// No check but the carrier's: for datagrams that stay on the machine.
    Carrier = 0,
    /// CRC-32C over envelope and packets. It detects errors, not attacks.
    Crc = 1,
    /// AES-256-GCM: packets are encrypted, and packets and envelope are authenticated.
    Gcm = 2,
}

impl Protection {
    /// All three protections.
    pub const ALL: [Protection; 3] = [Protection::Carrier, Protection::Crc, Protection::Gcm];

    /// Number of octets behind the packets.
    #[must_use]
    pub const fn trailer_bytes(self) -> usize {
        match self {
            Protection::Carrier => 0,
            Protection::Crc => 4,
            Protection::Gcm => 16,
        }
    }
}

/// The header at the front of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// How the datagram is checked.
    pub protection: Protection,
    /// The tenant whose key and quota apply.
    pub tenant: TenantId,
    /// The epoch of the node that the datagram is meant for or comes from.
    pub epoch: Epoch,
    /// The sender of the datagram.
    pub sender: SenderId,
    /// A counter of the sender's datagrams. A sender uses no number twice: the number and the
    /// sender's key make the nonce.
    pub sequence: u64,
    /// A time on the node's clock. In a request it is the deadline: the node executes nothing of
    /// the datagram after it, and one sender's deadlines never decrease. In a response it is the
    /// current time.
    pub clock: Ns,
}

/// Why octets are not a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EnvelopeError {
    /// The octets are too few for an envelope.
    #[error("{bytes} B are no datagram: at least {least} B are")]
    Truncated {
        /// Number of octets found.
        bytes: usize,
        /// Minimum number of octets.
        least: usize,
    },
    /// The version of the format is not [`VERSION`].
    #[error("version {0}: must be {VERSION}")]
    Version(u8),
    /// The number of the protection is not assigned.
    #[error("protection {0}: must be 0, 1 and 2")]
    Protection(u8),
    /// The CRC does not match the octets. The envelope may be wrong as well: it is good for a hint
    /// only.
    #[error("CRC {found:#010x}, and the octets have {expected:#010x}")]
    Corrupt {
        /// The CRC in the datagram.
        found: u32,
        /// The CRC computed over the octets.
        expected: u32,
        /// The envelope as it arrived.
        envelope: Envelope,
    },
}

/// A datagram as it arrived, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The envelope. With AES-GCM it can be trusted only after the tag was verified.
    pub envelope: Envelope,
    /// The range of the packets, which are encrypted with AES-GCM.
    pub packets: Range<usize>,
    /// The range of the check.
    pub trailer: Range<usize>,
}

impl Envelope {
    /// Finds the parts of a datagram, and verifies its CRC where it has one. Verifying an AES-GCM
    /// tag is left to the holder of the key; the associated data are the first [`ENVELOPE_BYTES`].
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

    /// Reads the envelope at the begin of a datagram, and verifies nothing else.
    ///
    /// # Errors
    /// [`EnvelopeError`].
    pub fn parse(datagram: &[u8]) -> Result<Envelope, EnvelopeError> {
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

    /// Writes the envelope of a datagram; the packets come behind it.
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

    /// Puts the CRC of the first `end` octets behind them where the datagram has a CRC. Returns the
    /// whole length of the datagram; with AES-GCM it includes room for the tag.
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

    /// The nonce of AES-GCM: the sequence number. Each sender has a key of its own, so the nonce is
    /// used once.
    #[must_use]
    pub fn nonce(&self) -> [u8; GCM_NONCE_BYTES] {
        let mut nonce = [0; GCM_NONCE_BYTES];
        nonce[4..].copy_from_slice(&self.sequence.to_le_bytes());
        nonce
    }
}
