//! Little-endian numbers in a slice of octets, one after the other.

use thiserror::Error;

/// The buffer is too small for the octets to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no room: {needed} B are needed and {room} B are left")]
pub struct NoRoom {
    /// Number of octets needed.
    pub needed: usize,
    /// Number of octets of the buffer.
    pub room: usize,
}

/// Reads numbers from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    /// Takes all octets that are left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    /// Number of octets that are left, if all of them are zeros.
    pub(crate) fn zeros(&mut self) -> Option<u16> {
        let rest = self.rest();
        let count = u16::try_from(rest.len()).ok()?;
        rest.iter().all(|&octet| octet == 0).then_some(count)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*front)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u40(&mut self) -> Option<u64> {
        let [a, b, c, d, e] = self.array()?;
        Some(u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Writes numbers one after the other. Octets that do not fit are counted but not written, so that
/// a caller learns how much room is needed.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    into: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(into: &'a mut [u8]) -> Writer<'a> {
        Writer { into, at: 0 }
    }

    pub(crate) fn put(&mut self, octets: &[u8]) {
        let end = self.at + octets.len();
        if let Some(place) = self.into.get_mut(self.at..end) {
            place.copy_from_slice(octets);
        }
        self.at = end;
    }

    pub(crate) fn zeros(&mut self, count: u16) {
        let end = self.at + usize::from(count);
        if let Some(place) = self.into.get_mut(self.at..end) {
            place.fill(0);
        }
        self.at = end;
    }

    pub(crate) fn u8(&mut self, number: u8) {
        self.put(&[number]);
    }

    pub(crate) fn u16(&mut self, number: u16) {
        self.put(&number.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, number: u32) {
        self.put(&number.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, number: u64) {
        self.put(&number.to_le_bytes());
    }

    /// The low five octets of a number.
    pub(crate) fn u40(&mut self, number: u64) {
        self.put(&number.to_le_bytes()[..5]);
    }

    /// Number of octets written, or [`NoRoom`].
    pub(crate) fn end(self) -> Result<usize, NoRoom> {
        let (needed, room) = (self.at, self.into.len());
        if needed <= room { Ok(needed) } else { Err(NoRoom { needed, room }) }
    }

    /// Ends a packet: stores its length at [`LENGTH_AT`], which requests and responses share.
    pub(crate) fn end_packet(self) -> Result<usize, NoRoom> {
        let (needed, room) = (self.at, self.into.len().min(usize::from(u16::MAX)));
        if needed > room {
            return Err(NoRoom { needed, room });
        }
        self.into[LENGTH_AT..][..2].copy_from_slice(&(needed as u16).to_le_bytes());
        Ok(needed)
    }
}

/// Octet of a packet at which its length is, for requests and responses alike.
pub(crate) const LENGTH_AT: usize = 2;
