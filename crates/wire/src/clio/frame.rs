//! Datagrams in frames of Ethernet, without IP: the header between a frame's addresses and the
//! datagram. A datagram that is longer than a frame carries is sent as pieces. Numbers are
//! little-endian, except the EtherType, which is in Ethernet's order:
//!
//! | at | octets | field |
//! |---|---|---|
//! | 0 | 6 | destination MAC address |
//! | 6 | 6 | source MAC address, not a multicast one |
//! | 12 | 2 | [`ETHER_TYPE`] |
//! | 14 | 2 | [`FRAME_MARK`], its second octet the version |
//! | 16 | 1 | kind: 0 datagram, 1 piece, 2 question, 3 answer |
//! | 17 | 1 | zero |
//! | 18 | 2 | bytes after the header; 0 for a question or an answer |
//! | 20 | 2 | carries: most octets that a frame to the sender may bring, at least [`CARRIES_MIN`] |
//! | 22 | 8 | destination port |
//! | 30 | 8 | source port |
//! | 38 | 4, 1, 1, 2 | number, index, count and total, in a piece only |

use core::ops::Range;

use thiserror::Error;

use crate::octets::{NoRoom, Reader, Writer};

/// The first of the EtherTypes that IEEE 802 reserves for local experiments: no EtherType is
/// registered for memory.
pub const ETHER_TYPE: u16 = 0x88b5;

/// The mark and format version behind the EtherType. Other protocols may use the EtherType as well.
pub const FRAME_MARK: [u8; 2] = [0x65, 1];

/// Octets of a frame's addresses and EtherType, which an MTU excludes.
pub const ETHERNET_BYTES: usize = 14;

/// Octets of a frame before its datagram.
pub const FRAME_BYTES: usize = 38;

/// Octets of a frame before a piece of a datagram.
pub const PIECE_FRAME_BYTES: usize = FRAME_BYTES + 8;

/// Maximum number of pieces of a datagram.
pub const PIECES_MAX: u8 = 128;

/// Minimum number of octets of a datagram or piece that a frame carries. An MTU of 576 B leaves as
/// many, and then the longest datagram needs at most [`PIECES_MAX`] pieces.
pub const CARRIES_MIN: u16 = 544;

/// Octet of a frame at which [`FRAME_MARK`] begins.
pub const FRAME_MARK_AT: u16 = 14;
/// Octet of a frame at which the destination [`Port`] begins.
pub const FRAME_TO_AT: u16 = 22;

/// A MAC address of Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The broadcast address.
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// True if it is a multicast address.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl core::fmt::Display for Mac {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A text that is not a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be six octets in hexadecimal, as in 02:00:00:00:00:01")]
pub struct NoMac;

impl core::str::FromStr for Mac {
    type Err = NoMac;

    fn from_str(text: &str) -> Result<Mac, NoMac> {
        let mut mac = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut mac {
            let part = parts.next().filter(|part| part.len() == 2 && !part.starts_with('+'));
            let part = part.ok_or(NoMac)?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| NoMac)?;
        }
        if parts.next().is_some() { Err(NoMac) } else { Ok(Mac(mac)) }
    }
}

/// One of several endpoints behind a MAC address. A node has the number that its operator chose, at
/// most 65,535. A client draws a larger one at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u64);

/// One end of a frame's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Station {
    /// The MAC address.
    pub mac: Mac,
    /// The endpoint behind the address.
    pub port: Port,
}

/// The kind of a frame's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameBody {
    /// A datagram.
    Datagram,
    /// A piece of a datagram.
    Piece(Piece),
    /// A question: which stations are there?
    Question,
    /// The answer of a station to a question.
    Answer,
}

/// The place of a piece in its datagram. All pieces but the last have one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// A number that tells datagrams of one sender apart.
    pub number: u32,
    /// Index of the piece, from 0.
    pub index: u8,
    /// Number of pieces of the datagram, 2 or more.
    pub count: u8,
    /// Total octets of the datagram.
    pub total: u16,
}

/// The header before a frame's octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The destination.
    pub to: Station,
    /// The source.
    pub from: Station,
    /// Maximum number of octets of a datagram or piece that a frame to the sender may bring:
    /// [`CARRIES_MIN`] or more.
    pub carries: u16,
    /// The kind of the content.
    pub body: FrameBody,
}

/// Why octets are not one of our frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The frame ends before its header says.
    #[error("a frame of {0} B that is cut off")]
    Short(usize),
    /// The frame is of another protocol or version.
    #[error("another EtherType, mark or version")]
    Foreign,
    /// The source is a multicast address.
    #[error("from {0}, which is no address of one station")]
    Source(Mac),
    /// The number of the kind is not assigned.
    #[error("kind {0}: must be 0 to 3")]
    Kind(u8),
    /// A field that must be zero is not, or lengths contradict each other.
    #[error("lengths that contradict each other")]
    Contradiction,
    /// The sender accepts only frames that are shorter than [`CARRIES_MIN`] allows.
    #[error("frames to its sender carry {0} B: must be at least {CARRIES_MIN}")]
    Carries(u16),
}

const DATAGRAM: u8 = 0;
const PIECE: u8 = 1;
const QUESTION: u8 = 2;
const ANSWER: u8 = 3;

impl Frame {
    /// Reads the header before a frame's octets, and returns the range of the octets. Padding up to
    /// Ethernet's shortest frame is left out. This function leaves a check to [`Piece::place`]:
    /// whether the lengths of a piece contradict each other. A caller that places a piece needs it.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn parse(octets: &[u8]) -> Result<(Frame, Range<usize>), FrameError> {
        let short = || FrameError::Short(octets.len());
        let mut reader = Reader(octets);
        let to = Mac(reader.array().ok_or_else(short)?);
        let from = Mac(reader.array().ok_or_else(short)?);
        let ether_type = u16::from_be_bytes(reader.array().ok_or_else(short)?);
        let mark: [u8; 2] = reader.array().ok_or_else(short)?;
        if ether_type != ETHER_TYPE || mark != FRAME_MARK {
            return Err(FrameError::Foreign);
        }
        if from.is_multicast() {
            return Err(FrameError::Source(from));
        }
        let (kind, zero) = reader.u8().zip(reader.u8()).ok_or_else(short)?;
        let (bytes, carries) = reader.u16().zip(reader.u16()).ok_or_else(short)?;
        let (to_port, from_port) = reader.u64().zip(reader.u64()).ok_or_else(short)?;
        let body = match kind {
            DATAGRAM => FrameBody::Datagram,
            PIECE => FrameBody::Piece(Piece::parse(&mut reader).ok_or_else(short)?),
            QUESTION => FrameBody::Question,
            ANSWER => FrameBody::Answer,
            kind => return Err(FrameError::Kind(kind)),
        };
        let is_empty = matches!(kind, QUESTION | ANSWER);
        if zero != 0 || is_empty != (bytes == 0) {
            return Err(FrameError::Contradiction);
        }
        if carries < CARRIES_MIN {
            return Err(FrameError::Carries(carries));
        }
        let start = octets.len() - reader.rest().len();
        let range = start..start + usize::from(bytes);
        if range.end > octets.len() {
            return Err(short());
        }
        let to = Station { mac: to, port: Port(to_port) };
        let from = Station { mac: from, port: Port(from_port) };
        Ok((Frame { to, from, carries, body }, range))
    }

    /// Writes the header before `bytes` octets, and returns the length of the header.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn emit(&self, bytes: u16, into: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(into);
        let kind = match self.body {
            FrameBody::Datagram => DATAGRAM,
            FrameBody::Piece(_) => PIECE,
            FrameBody::Question => QUESTION,
            FrameBody::Answer => ANSWER,
        };
        writer.put(&self.to.mac.0);
        writer.put(&self.from.mac.0);
        writer.put(&ETHER_TYPE.to_be_bytes());
        writer.put(&FRAME_MARK);
        writer.put(&[kind, 0]);
        writer.u16(bytes);
        writer.u16(self.carries);
        writer.u64(self.to.port.0);
        writer.u64(self.from.port.0);
        if let FrameBody::Piece(Piece { number, index, count, total }) = self.body {
            writer.u32(number);
            writer.put(&[index, count]);
            writer.u16(total);
        }
        writer.end()
    }
}

impl Piece {
    /// Reads a piece; `None` where it is cut off.
    fn parse(reader: &mut Reader<'_>) -> Option<Piece> {
        let number = reader.u32()?;
        let (index, count) = reader.u8().zip(reader.u8())?;
        Some(Piece { number, index, count, total: reader.u16()? })
    }

    /// The range of a piece of `bytes` octets in its datagram, and the length of all pieces but the
    /// last. `None` if the lengths contradict each other.
    #[must_use]
    pub fn place(&self, bytes: usize) -> Option<(Range<usize>, usize)> {
        let (index, others) = (usize::from(self.index), usize::from(self.count.checked_sub(1)?));
        let total = usize::from(self.total);
        if index > others || others == 0 || self.count > PIECES_MAX || bytes == 0 {
            return None;
        }
        let each = if index == others {
            let before = total.checked_sub(bytes).filter(|before| before.is_multiple_of(others))?;
            before / others
        } else {
            bytes
        };
        let start = index * each;
        let last = total.checked_sub(others * each).filter(|last| (1..=each).contains(last))?;
        let end = if index == others { start + last } else { start + each };
        Some((start..end, each))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(body: FrameBody) -> Frame {
        let station = |last, port| Station { mac: Mac([2, 0, 0, 0, 0, last]), port: Port(port) };
        let (to, from) = (station(1, 7400), station(2, 0x1122_3344_5566_7788));
        Frame { to, from, carries: 1468, body }
    }

    /// The kernel's filter looks at these offsets.
    #[test]
    fn mark_and_port_are_where_they_are_said_to_be() {
        let mut written = [0; PIECE_FRAME_BYTES];
        let front = frame(FrameBody::Datagram).emit(1, &mut written).unwrap();
        assert_eq!(front, FRAME_BYTES);
        let at = |from: u16, octets: usize| &written[usize::from(from)..][..octets];
        assert_eq!(at(FRAME_MARK_AT, 2), FRAME_MARK);
        assert_eq!(at(FRAME_TO_AT, 8), 7400_u64.to_le_bytes());
        assert_eq!(&written[ETHERNET_BYTES - 2..ETHERNET_BYTES], ETHER_TYPE.to_be_bytes());
        let most = u32::from(CARRIES_MIN) * u32::from(PIECES_MAX);
        assert!(most >= u32::from(u16::MAX), "the longest datagram goes in pieces");
    }

    #[test]
    fn a_frame_is_these_octets_and_they_are_that_frame() {
        let piece = Piece { number: 0x0a0b_0c0d, index: 1, count: 2, total: 5 };
        let octets = hex("020000000001 020000000002 88b5 6501 01 00 0200 bc05 e81c000000000000 \
             8877665544332211 0d0c0b0a 01 02 0500 beef");
        let mut written = [0; PIECE_FRAME_BYTES];
        let made = frame(FrameBody::Piece(piece));
        assert_eq!(made.emit(2, &mut written), Ok(PIECE_FRAME_BYTES));
        assert_eq!(written, octets[..PIECE_FRAME_BYTES]);
        let (found, range) = Frame::parse(&octets).unwrap();
        assert_eq!((found, &octets[range]), (made, &[0xbe, 0xef][..]));
        assert_eq!(piece.place(2), Some((3..5, 3)));
    }

    #[test]
    fn every_kind_is_read_as_it_was_written_with_what_fills_it_left_out() {
        let piece = Piece { number: 1, index: 0, count: 3, total: 250 };
        for (body, bytes) in [
            (FrameBody::Datagram, 100),
            (FrameBody::Piece(piece), 100),
            (FrameBody::Question, 0),
            (FrameBody::Answer, 0),
        ] {
            let mut octets = [7; 200];
            let front = frame(body).emit(bytes, &mut octets).unwrap();
            let range = front..front + usize::from(bytes);
            assert_eq!(Frame::parse(&octets), Ok((frame(body), range.clone())));
            for cut in 0..range.end {
                let short = Frame::parse(&octets[..cut]);
                assert_eq!(short, Err(FrameError::Short(cut)), "{body:?}");
            }
        }
    }

    #[test]
    fn what_is_no_frame_of_ours_is_told_why() {
        let mut good = [0; 60];
        frame(FrameBody::Datagram).emit(4, &mut good).unwrap();
        let wrong = |at: usize, octet: u8| {
            let mut octets = good;
            octets[at] = octet;
            Frame::parse(&octets).unwrap_err()
        };
        assert_eq!(wrong(12, 8), FrameError::Foreign);
        assert_eq!(wrong(14, 8), FrameError::Foreign);
        assert_eq!(wrong(15, 2), FrameError::Foreign);
        assert_eq!(wrong(6, 3), FrameError::Source(Mac([3, 0, 0, 0, 0, 2])));
        assert_eq!(wrong(16, 4), FrameError::Kind(4));
        assert_eq!(wrong(16, QUESTION), FrameError::Contradiction);
        assert_eq!(wrong(17, 1), FrameError::Contradiction);
        assert_eq!(wrong(18, 0), FrameError::Contradiction);
        assert_eq!(wrong(18, 200), FrameError::Short(60));
        assert_eq!(wrong(21, 1), FrameError::Carries(0x01bc));
    }

    #[test]
    fn pieces_whose_lengths_contradict_each_other_have_no_place() {
        let place = |index, count, total, bytes| {
            let piece = Piece { number: 0, index, count, total };
            piece.place(bytes)
        };
        assert_eq!(place(0, 2, 10, 5), Some((0..5, 5)));
        assert_eq!(place(1, 2, 10, 5), Some((5..10, 5)));
        assert_eq!(place(0, 2, 10, 10), None);
        assert_eq!(place(0, 2, 11, 5), None);
        assert_eq!(place(1, 2, 10, 6), None);
        assert_eq!(place(2, 3, 10, 3), None);
        assert_eq!(place(2, 3, 10, 2), Some((8..10, 4)));
        assert_eq!(place(0, 1, 10, 10), None);
        assert_eq!(place(0, 0, 10, 10), None);
        assert_eq!(place(2, 2, 10, 5), None);
        assert_eq!(place(0, 129, 300, 2), None);
        assert_eq!(place(0, 2, 10, 0), None);
    }

    #[test]
    fn an_address_is_read_as_it_is_written() {
        let mac = Mac([2, 0, 0xab, 0, 0, 0x1f]);
        assert_eq!(mac.to_string(), "02:00:ab:00:00:1f");
        assert_eq!("02:00:AB:00:00:1f".parse(), Ok(mac));
        for bad in
            ["", "02:00:ab:00:00", "02:00:ab:00:00:1f:00", "2:0:ab:0:0:1f", "02:00:ab:00:00:+f"]
        {
            assert_eq!(bad.parse::<Mac>(), Err(NoMac), "{bad}");
        }
        assert!(Mac::BROADCAST.is_multicast() && !mac.is_multicast());
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.bytes().filter_map(|c| (c as char).to_digit(16).map(|d| d as u8)).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }
}
