//! Fields of packets: values of these types are valid.

use thiserror::Error;

use crate::clio::Mac;
use crate::crc;

/// Bytes of a line: what CXL.mem moves at once.
pub const LINE_BYTES: usize = 64;
/// The bytes of a line.
pub type LineData = [u8; LINE_BYTES];

/// Number of a request among those of one compute node to one memory node, modulo 2^32.
///
/// At 100 Gb/s a number returns after 2^32 frames of at least 84 B on the link: 28 s. That is far
/// longer than the 4 s for which a network of bridges may delay a frame (IEEE 802.1D).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sequence(pub u32);

impl Sequence {
    /// The number `count` after this one.
    #[inline]
    #[must_use]
    pub const fn plus(self, count: u32) -> Sequence {
        Sequence(self.0.wrapping_add(count))
    }

    /// The number `count` before this one.
    #[inline]
    #[must_use]
    pub const fn minus(self, count: u32) -> Sequence {
        Sequence(self.0.wrapping_sub(count))
    }

    /// How many numbers this one is after `earlier`; negative if it is before it. Numbers half of
    /// the circle apart have no order.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Sequence) -> i32 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }
}

/// The AXI identifier of a request (ARID or AWID); reads and writes have 256 each (section IV).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessId(pub u8);

/// A line of the memory that a compute node maps (CMem), or of a pool (MPMem): the number of the
/// line, 40 bits, which is 64 TiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineAddress(u64);

/// An address or a mask that no packet can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// The address is not a multiple of 64.
    #[error("byte address {0:#x}: must be a multiple of 64")]
    Misaligned(u64),
    /// The address does not fit.
    #[error("byte address {0:#x}: must be below 64 TiB (2^46)")]
    TooHigh(u64),
    /// The line number does not fit.
    #[error("line {0:#x}: must be below 2^40")]
    NoSuchLine(u64),
}

impl LineAddress {
    /// Lines of the address space.
    pub const LINES: u64 = 1 << 40;

    /// The line of this number.
    ///
    /// # Errors
    /// [`LineError::NoSuchLine`].
    pub const fn new(line: u64) -> Result<LineAddress, LineError> {
        if line < LineAddress::LINES {
            Ok(LineAddress(line))
        } else {
            Err(LineError::NoSuchLine(line))
        }
    }

    /// The line at a byte address.
    ///
    /// # Errors
    /// [`LineError`].
    pub const fn at(byte: u64) -> Result<LineAddress, LineError> {
        if !byte.is_multiple_of(LINE_BYTES as u64) {
            return Err(LineError::Misaligned(byte));
        }
        match LineAddress::new(byte / LINE_BYTES as u64) {
            Ok(line) => Ok(line),
            Err(_) => Err(LineError::TooHigh(byte)),
        }
    }

    /// The number of the line.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The byte address of the line.
    #[must_use]
    pub const fn byte(self) -> u64 {
        self.0 * LINE_BYTES as u64
    }
}

/// Which bytes of a line: bit 0 is the byte at the lowest address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByteMask(pub u64);

impl ByteMask {
    /// No byte.
    pub const EMPTY: ByteMask = ByteMask(0);
    /// The whole line.
    pub const FULL: ByteMask = ByteMask(u64::MAX);

    /// True if the set has no byte.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if the set has every byte.
    #[inline]
    #[must_use]
    pub const fn is_full(self) -> bool {
        self.0 == u64::MAX
    }

    /// Copies the bytes of the mask, and leaves the others.
    #[inline]
    pub fn merge(self, from: &LineData, into: &mut LineData) {
        if self.is_full() {
            *into = *from;
            return;
        }
        let mut left = self.0;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            into[at] = from[at];
            left &= left - 1;
        }
    }
}

/// The hash by which a memory node finds a page of a compute node in its table: CRC-32C over the
/// node's address and the low 40 bits of the page's number, low octet first. In hardware it is a
/// tree of exclusive-ors.
#[must_use]
pub fn translation_hash(node: Mac, page: u64) -> u32 {
    let mut octets = [0; 11];
    octets[..6].copy_from_slice(&node.0);
    octets[6..].copy_from_slice(&page.to_le_bytes()[..5]);
    crc::datagram(&octets)
}

/// Why a memory node did not execute a request: its status in the response, where 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[repr(u8)]
pub enum Failure {
    /// The compute node maps no memory there.
    #[error("no memory is mapped there")]
    Unmapped = 1,
    /// The memory could not correct its content. The load is poisoned.
    #[error("the memory's content is lost")]
    Poison = 2,
}

/// A number that is no status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("status {0}: must be 0 to 2")]
pub struct UnknownStatus(pub u8);

/// The status of a response as an octet.
pub(super) const fn status_octet(failure: Option<Failure>) -> u8 {
    match failure {
        None => 0,
        Some(failure) => failure as u8,
    }
}

/// What an octet says of a response.
pub(super) const fn status_of(octet: u8) -> Result<Option<Failure>, UnknownStatus> {
    match octet {
        0 => Ok(None),
        1 => Ok(Some(Failure::Unmapped)),
        2 => Ok(Some(Failure::Poison)),
        _ => Err(UnknownStatus(octet)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_go_round() {
        let last = Sequence(u32::MAX);
        assert_eq!(last.plus(2), Sequence(1));
        assert_eq!(last.plus(2).since(last), 2);
        assert_eq!(last.since(last.plus(2)), -2);
        assert_eq!(Sequence(1).minus(2), last);
    }

    #[test]
    fn an_address_is_a_line_or_is_refused() {
        assert_eq!(LineAddress::at(0x1040).map(LineAddress::number), Ok(0x41));
        assert_eq!(LineAddress::at(0x1041), Err(LineError::Misaligned(0x1041)));
        assert_eq!(LineAddress::at(1 << 46), Err(LineError::TooHigh(1 << 46)));
        let last = LineAddress::new((1 << 40) - 1).unwrap();
        assert_eq!(LineAddress::at(last.byte()), Ok(last));
        assert_eq!(LineAddress::new(1 << 40), Err(LineError::NoSuchLine(1 << 40)));
    }

    /// CRC-32C of these octets by its definition, bit by bit: low bit first, polynomial 0x1edc6f41
    /// reflected, ones before and after.
    #[test]
    fn the_hash_of_a_page_is_its_crc() {
        let octets = [2, 0, 0, 0, 0, 0x0c, 0x21, 0x43, 0x65, 0x87, 0xa9];
        let register = octets.iter().fold(u32::MAX, |register, &octet: &u8| {
            (0..8).fold(register ^ u32::from(octet), |register, _| {
                register >> 1 ^ if register & 1 == 1 { 0x82f6_3b78 } else { 0 }
            })
        });
        let hash = translation_hash(Mac([2, 0, 0, 0, 0, 0x0c]), 0xa9_8765_4321);
        assert_eq!(hash, !register);
    }

    #[test]
    fn a_status_is_its_octet() {
        for octet in 0..=u8::MAX {
            match status_of(octet) {
                Ok(failure) => assert_eq!(status_octet(failure), octet),
                Err(error) => assert_eq!(error, UnknownStatus(octet)),
            }
        }
    }

    #[test]
    fn a_mask_copies_its_bytes_alone() {
        for mask in [0, 1, 1 << 63, 0xff00_ff00, u64::MAX] {
            let mut into = [0; LINE_BYTES];
            ByteMask(mask).merge(&[7; LINE_BYTES], &mut into);
            for (at, byte) in into.into_iter().enumerate() {
                assert_eq!(byte == 7, mask >> at & 1 == 1, "byte {at} of {mask:#x}");
            }
        }
    }
}
