//! Headers of what goes between racks: segments of a stream, and their acknowledgements.
//!
//! A stream is an indirection as MPTCP is (section 4.4): its segments have numbers of the stream,
//! whatever subflow they take. A segment is never split again.

use thiserror::Error;

use super::{Identity, NoRoom, SECTION_BYTES};
use crate::octets::{Reader, Writer};

/// Octets of a segment's header; the data follows.
pub const SEGMENT_BYTES: usize = 24;
/// Octets of an acknowledgement.
pub const ACKNOWLEDGEMENT_BYTES: usize = 32;

const SEGMENT: u8 = 0x01;
const ACKNOWLEDGEMENT: u8 = 0x02;
/// Flag of the stream's last segment.
const LAST: u8 = 0x01;

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The node that gets it.
    pub destination: Identity,
    /// The node that sends it.
    pub source: Identity,
    /// The stream's number among those of the two nodes.
    pub stream: u32,
    /// The subflow that carries this copy.
    pub subflow: u16,
    /// The segment's number in the stream, modulo 2^32.
    pub number: u32,
    /// Bytes of data: 1 to a Section.
    pub length: u32,
    /// The stream ends with it.
    pub is_last: bool,
}

/// An acknowledgement of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The node that gets it: the sender of the segments.
    pub destination: Identity,
    /// The node that sends it.
    pub source: Identity,
    /// The stream.
    pub stream: u32,
    /// The subflow of the segment that caused it.
    pub subflow: u16,
    /// The first segment that has not come: all before it have.
    pub next: u32,
    /// Segments from `next` on for which there is room.
    pub room: u32,
    /// Bit i: segment `next + 1 + i` has come.
    pub later: u64,
}

/// A header of either kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// A segment; its data follows.
    Segment(Segment),
    /// An acknowledgement; it has no data.
    Acknowledgement(Acknowledgement),
}

/// Why octets are no packet of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeaderFault {
    /// There are fewer octets than the header has.
    #[error("{0} B: must be at least the {SEGMENT_BYTES} B of a header")]
    Short(usize),
    /// The kind is unknown.
    #[error("kind {0:#04x}: must be 0x01 or 0x02")]
    Kind(u8),
    /// Unassigned flags are set.
    #[error("flags {0:#04x}: must be 0x00, or 0x01 of a segment")]
    Flags(u8),
    /// The header's length is not that of what follows.
    #[error("length {says}: {follow} B follow")]
    Length {
        /// What the header says, in bytes.
        says: u32,
        /// What follows the header, in bytes.
        follow: usize,
    },
    /// A segment has no data, or more than a Section.
    #[error("length {0}: must be 1 to {SECTION_BYTES}")]
    Size(u32),
}

impl Header {
    /// Octets of the header.
    #[must_use]
    pub const fn octets(&self) -> usize {
        match self {
            Header::Segment(_) => SEGMENT_BYTES,
            Header::Acknowledgement(_) => ACKNOWLEDGEMENT_BYTES,
        }
    }

    /// Writes the header.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(into);
        match self {
            Header::Segment(segment) => {
                writer.u8(SEGMENT);
                writer.u8(if segment.is_last { LAST } else { 0 });
                writer.u16(segment.subflow);
                writer.u32(segment.destination.0);
                writer.u32(segment.source.0);
                writer.u32(segment.stream);
                writer.u32(segment.number);
                writer.u32(segment.length);
            }
            Header::Acknowledgement(ack) => {
                writer.u8(ACKNOWLEDGEMENT);
                writer.u8(0);
                writer.u16(ack.subflow);
                writer.u32(ack.destination.0);
                writer.u32(ack.source.0);
                writer.u32(ack.stream);
                writer.u32(ack.next);
                writer.u32(ack.room);
                writer.u64(ack.later);
            }
        }
        writer.end()
    }

    /// Reads a packet: its header, and the data of a segment.
    ///
    /// # Errors
    /// [`HeaderFault`].
    pub fn parse(octets: &[u8]) -> Result<(Header, &[u8]), HeaderFault> {
        let mut reader = Reader(octets);
        let header = Header::read(&mut reader).ok_or(HeaderFault::Short(octets.len()))??;
        let (data, says) = (reader.rest(), header.data_bytes());
        if data.len() as u64 != u64::from(says) {
            return Err(HeaderFault::Length { says, follow: data.len() });
        }
        Ok((header, data))
    }

    fn data_bytes(&self) -> u32 {
        match self {
            Header::Segment(segment) => segment.length,
            Header::Acknowledgement(_) => 0,
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Result<Header, HeaderFault>> {
        let (kind, flags) = (reader.u8()?, reader.u8()?);
        let (subflow, destination) = (reader.u16()?, Identity(reader.u32()?));
        let (source, stream) = (Identity(reader.u32()?), reader.u32()?);
        let (number, length) = (reader.u32()?, reader.u32()?);
        let header = match (kind, flags) {
            (SEGMENT, 0 | LAST) if length == 0 || u64::from(length) > SECTION_BYTES => {
                return Some(Err(HeaderFault::Size(length)));
            }
            (SEGMENT, 0 | LAST) => {
                let is_last = flags == LAST;
                let of = Segment { destination, source, stream, subflow, number, length, is_last };
                Header::Segment(of)
            }
            (ACKNOWLEDGEMENT, 0) => {
                let (next, room, later) = (number, length, reader.u64()?);
                let of =
                    Acknowledgement { destination, source, stream, subflow, next, room, later };
                Header::Acknowledgement(of)
            }
            (SEGMENT | ACKNOWLEDGEMENT, flags) => return Some(Err(HeaderFault::Flags(flags))),
            (kind, _) => return Some(Err(HeaderFault::Kind(kind))),
        };
        Some(Ok(header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Segment = Segment {
        destination: Identity(0x0a00_0002),
        source: Identity(0x0a00_0001),
        stream: 7,
        subflow: 0x0203,
        number: 0xffff_fffe,
        length: 3,
        is_last: true,
    };

    fn octets() -> [u8; 27] {
        let mut octets = [0xdd; 27];
        assert_eq!(Header::Segment(SENT).emit(&mut octets), Ok(24));
        octets
    }

    #[test]
    fn a_segment_is_these_octets() {
        let numbers = [0xfe, 0xff, 0xff, 0xff, 3, 0, 0, 0, 0xdd, 0xdd, 0xdd];
        let head = [1, 1, 3, 2, 2, 0, 0, 10, 1, 0, 0, 10, 7, 0, 0, 0];
        assert_eq!(octets()[..16], head);
        assert_eq!(octets()[16..], numbers);
        assert_eq!(Header::parse(&octets()), Ok((Header::Segment(SENT), &[0xdd; 3][..])));
    }

    #[test]
    fn an_acknowledgement_comes_back_as_it_went() {
        let ack = Header::Acknowledgement(Acknowledgement {
            destination: SENT.source,
            source: SENT.destination,
            stream: 7,
            subflow: 1,
            next: 9,
            room: 64,
            later: 1 << 63 | 5,
        });
        let mut octets = [0; 32];
        assert_eq!(ack.emit(&mut octets), Ok(32));
        assert_eq!(Header::parse(&octets), Ok((ack, &[][..])));
        assert_eq!(ack.emit(&mut octets[..31]), Err(NoRoom { needed: 32, room: 31 }));
        let fault = HeaderFault::Short(31);
        assert_eq!(Header::parse(&octets[..31]), Err(fault));
        octets[1] = 1;
        assert_eq!(Header::parse(&octets), Err(HeaderFault::Flags(1)));
    }

    #[test]
    fn what_is_no_packet_is_refused_with_the_reason() {
        let with = |at: usize, octet: u8| {
            let mut octets = octets();
            octets[at] = octet;
            Header::parse(&octets).map(|_| ())
        };
        assert_eq!(with(0, 3), Err(HeaderFault::Kind(3)));
        assert_eq!(with(1, 2), Err(HeaderFault::Flags(2)));
        assert_eq!(with(20, 0), Err(HeaderFault::Size(0)));
        assert_eq!(with(23, 1), Err(HeaderFault::Size(3 + (1 << 24))));
        assert_eq!(with(20, 4), Err(HeaderFault::Length { says: 4, follow: 3 }));
        for length in 0..24 {
            assert_eq!(Header::parse(&octets()[..length]), Err(HeaderFault::Short(length)));
        }
    }
}
