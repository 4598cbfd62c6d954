//! Packets as values, and how they are written.

use super::field::{
    AccessId, ByteMask, Failure, LINE_BYTES, LineAddress, LineData, Sequence, status_octet,
};
use super::format::CxlCommand;
use super::{ETHER_TYPE, FCS_BYTES, FRAME_BYTES_MIN};
use crate::clio::Mac;
use crate::ethernet::frame_check_sequence;
use crate::octets::{NoRoom, Writer};

/// Octets of Ethernet's header: destination, source, EtherType.
pub const HEADER_BYTES: usize = 14;

/// A frame: where it goes, where it is from, and its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The receiver.
    pub to: Mac,
    /// The sender: by this address a memory node knows the compute node.
    pub from: Mac,
    /// What it carries.
    pub packet: Packet,
}

/// The seven packets, the two forms of the write request as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A read or a write request.
    Request(RequestPacket),
    /// A read or a write response: the ACK of its request, and of no other.
    Response(ResponsePacket),
    /// SACK + NAK.
    Negative(Negative),
    /// SACK + NAK + ACK.
    Merged(Negative, ResponsePacket),
    /// The memory node's receive FIFO is above its threshold.
    Congestion(Congestion),
}

/// A request with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestPacket {
    /// Its place among all requests of the compute node to this memory node.
    pub sequence: Sequence,
    /// Its AXI identifier; the response repeats it.
    pub id: AccessId,
    /// The line, as the compute node maps it (CMem).
    pub line: LineAddress,
    /// What to do there.
    pub request: Request,
}

/// What to do with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read it.
    Read,
    /// Write all of it.
    Write(LineData),
    /// Write the bytes of the mask. The others of the data do not matter.
    MaskedWrite(ByteMask, LineData),
}

/// A response with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponsePacket {
    /// The number of the request.
    pub sequence: Sequence,
    /// Its AXI identifier.
    pub id: AccessId,
    /// How it went.
    pub response: Response,
}

/// How a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Of a read: the line, or why there is none.
    Read(Result<LineData, Failure>),
    /// Of a write.
    Write(Result<(), Failure>),
}

/// SACK + NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negative {
    /// The first request that has not come; all before it have.
    pub nak: Sequence,
    /// A request after it that has come, and is kept.
    pub sack: Sequence,
}

/// The memory node's receive FIFO is above its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// Counts the notifications to one compute node, modulo 2^32, so that old ones and duplicates
    /// change nothing.
    pub number: u32,
    /// Entries of the FIFO in use.
    pub entries: u16,
}

impl Request {
    /// The command of the request.
    #[must_use]
    pub const fn command(&self) -> CxlCommand {
        match self {
            Request::Read => CxlCommand::ReadRequest,
            Request::Write(_) => CxlCommand::WriteRequest,
            Request::MaskedWrite(..) => CxlCommand::MaskedWriteRequest,
        }
    }
}

impl Response {
    /// The command of the response where it goes alone.
    #[must_use]
    pub const fn command(&self) -> CxlCommand {
        match self {
            Response::Read(_) => CxlCommand::ReadResponse,
            Response::Write(_) => CxlCommand::WriteResponse,
        }
    }
}

impl Packet {
    /// The command of the packet.
    #[must_use]
    pub const fn command(&self) -> CxlCommand {
        match self {
            Packet::Request(packet) => packet.request.command(),
            Packet::Response(packet) => packet.response.command(),
            Packet::Negative(_) => CxlCommand::SackNak,
            Packet::Merged(..) => CxlCommand::SackNakAck,
            Packet::Congestion(_) => CxlCommand::Congestion,
        }
    }

    /// Octets of the frame without padding and check sequence, its Ethernet header included.
    #[must_use]
    pub const fn octets(&self) -> usize {
        HEADER_BYTES + self.body_octets()
    }

    const fn body_octets(&self) -> usize {
        match self {
            Packet::Request(packet) => match packet.request {
                Request::Read => 11,
                Request::Write(_) => 11 + LINE_BYTES,
                Request::MaskedWrite(..) => 19 + LINE_BYTES,
            },
            Packet::Response(packet) => 1 + packet.octets(),
            Packet::Negative(_) => 9,
            Packet::Merged(_, packet) => 10 + packet.octets(),
            Packet::Congestion(_) => 7,
        }
    }

    /// Octets of the frame on the link: padding, check sequence, preamble and gap included.
    #[must_use]
    pub const fn link_octets(&self) -> usize {
        padded(self.octets()) + FCS_BYTES + super::LINK_OVERHEAD_BYTES
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.u8(self.command() as u8);
        match self {
            Packet::Request(packet) => packet.emit(writer),
            Packet::Response(packet) => packet.emit(writer),
            Packet::Negative(negative) => negative.emit(writer),
            Packet::Merged(negative, packet) => {
                negative.emit(writer);
                writer.u8(packet.response.command() as u8);
                packet.emit(writer);
            }
            Packet::Congestion(Congestion { number, entries }) => {
                writer.u32(*number);
                writer.u16(*entries);
            }
        }
    }
}

impl RequestPacket {
    fn emit(&self, writer: &mut Writer<'_>) {
        writer.u32(self.sequence.0);
        writer.u8(self.id.0);
        writer.u40(self.line.number());
        match &self.request {
            Request::Read => {}
            Request::Write(data) => writer.put(data),
            Request::MaskedWrite(mask, data) => {
                writer.u64(mask.0);
                writer.put(data);
            }
        }
    }
}

impl ResponsePacket {
    const fn octets(&self) -> usize {
        match self.response {
            Response::Read(_) => 6 + LINE_BYTES,
            Response::Write(_) => 6,
        }
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.u32(self.sequence.0);
        writer.u8(self.id.0);
        match &self.response {
            Response::Read(Ok(data)) => {
                writer.u8(status_octet(None));
                writer.put(data);
            }
            // As long as one with data, so that a receiver knows the length by the command.
            Response::Read(Err(failure)) => {
                writer.u8(status_octet(Some(*failure)));
                writer.zeros(LINE_BYTES as u16);
            }
            Response::Write(done) => writer.u8(status_octet(done.err())),
        }
    }
}

impl Negative {
    fn emit(&self, writer: &mut Writer<'_>) {
        writer.u32(self.nak.0);
        writer.u32(self.sack.0);
    }
}

/// Octets after padding to Ethernet's shortest frame.
pub(super) const fn padded(octets: usize) -> usize {
    if octets < FRAME_BYTES_MIN { FRAME_BYTES_MIN } else { octets }
}

impl Frame {
    /// Writes the frame, padded, without its check sequence, as a MAC or a raw socket takes it.
    /// Returns its octets.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(into);
        writer.put(&self.to.0);
        writer.put(&self.from.0);
        writer.put(&ETHER_TYPE.to_be_bytes());
        self.packet.emit(&mut writer);
        let octets = self.packet.octets();
        writer.zeros((padded(octets) - octets) as u16);
        writer.end()
    }

    /// Writes the frame with its check sequence, as it is on the link. Returns its octets.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn emit_with_fcs(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let needed = padded(self.packet.octets()) + FCS_BYTES;
        let room = into.len();
        let Some(place) = into.get_mut(..needed) else { return Err(NoRoom { needed, room }) };
        let octets = self.emit(place)?;
        let check = frame_check_sequence(&place[..octets]);
        place[octets..].copy_from_slice(&check.to_le_bytes());
        Ok(needed)
    }
}
