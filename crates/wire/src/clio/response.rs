//! What the node answers: one packet to each request.

use ethermem_units::Bytes;

use super::envelope::Epoch;
use super::octets::{LENGTH_AT, NoRoom, Reader, Writer};
use super::opcode::ClioOpcode;
use super::request::{Malformed, PacketError, Packets, RequestId};
use super::status::ClioStatus;
use crate::clio::ProcessId;

/// Octets before the body of an answer.
pub const RESPONSE_BYTES: usize = 16;

/// Set in the opcode of an answer.
const ANSWER: u8 = 0x80;

/// An answer with its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponsePacket<'a> {
    /// The opcode of the request; that bits are an opcode is not certain where it is refused.
    pub opcode: u8,
    /// Which try is answered.
    pub attempt: u8,
    /// Which request.
    pub request: RequestId,
    /// What became of it.
    pub reply: Reply<'a>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// Done, and nothing to say.
    Done,
    /// The lock is the requester's; it was a dead process's.
    OwnerDied,
    /// Bytes of the memory, or an offload's result.
    Bytes(&'a [u8]),
    /// The word before an atomic.
    Word(u64),
    /// Where it is.
    Address(u64),
    /// The process that was made.
    Created(ProcessId),
    /// What the node is.
    Facts(NodeFacts),
    /// So many zeros.
    Padding(u16),
    /// Not done. What the number means, the status says.
    Refused(ClioStatus, u64),
}

/// What a client must know of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its life.
    pub epoch: Epoch,
    /// Of a page.
    pub page_bytes: u32,
    /// Most data that one packet may carry or ask for.
    pub data_bytes_max: u32,
    /// How far ahead of the node's clock a datagram may say that it counts.
    pub lifetime_us_max: u32,
    /// What it serves.
    pub memory: Bytes,
    /// How long a process lives without a word of its client; 0 for ever.
    pub lease_ms: u64,
}

impl<'a> ResponsePacket<'a> {
    /// The answers of a datagram, one after the other.
    pub fn packets(
        octets: &'a [u8],
    ) -> impl Iterator<Item = Result<ResponsePacket<'a>, PacketError>> {
        let mut packets = Packets::new(octets);
        core::iter::from_fn(move || {
            let packet = packets.cut(RESPONSE_BYTES)?;
            Some(packet.and_then(ResponsePacket::parse))
        })
    }

    fn parse(packet: &'a [u8]) -> Result<ResponsePacket<'a>, PacketError> {
        let mut reader = Reader(packet);
        let mut header = || {
            let (opcode, attempt, _length) = (reader.u8()?, reader.u8()?, reader.u16()?);
            let (status, reserved) = (reader.u8()?, reader.array::<3>()?);
            Some((opcode, attempt, status, reserved, RequestId(reader.u64()?)))
        };
        let left = packet.len();
        let truncated = PacketError::Truncated { length: RESPONSE_BYTES, left };
        let (answer, attempt, status, reserved, request) = header().ok_or(truncated)?;
        let opcode = answer & !ANSWER;
        let refused = |problem| PacketError::Refused { request, attempt, opcode, problem };
        if answer & ANSWER == 0 || reserved != [0; 3] {
            return Err(refused(Malformed::Reserved));
        }
        let status =
            ClioStatus::try_from(status).map_err(|_| refused(Malformed::Field("status")))?;
        let length = Malformed::Length(reader.0.len());
        let reply = Reply::parse(opcode, status, &mut reader).map_err(refused)?;
        let reply = reply.filter(|_| reader.0.is_empty()).ok_or_else(|| refused(length))?;
        Ok(ResponsePacket { opcode, attempt, request, reply })
    }

    /// Writes the packet.
    ///
    /// # Errors
    /// [`NoRoom`]; also for a packet of more than 65,535 B.
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(into);
        writer.u8(self.opcode | ANSWER);
        writer.u8(self.attempt);
        writer.u16(0);
        writer.u8(self.reply.status() as u8);
        writer.put(&[0; 3]);
        writer.u64(self.request.0);
        self.reply.emit(&mut writer);
        writer.end_packet()
    }

    /// Writes the header of a packet that is all of `packet` and whose data are in it already.
    ///
    /// # Errors
    /// [`NoRoom`]; also for a packet of more than 65,535 B.
    pub fn emit_around(&self, packet: &mut [u8]) -> Result<(), NoRoom> {
        let (needed, room) = (packet.len(), usize::from(u16::MAX));
        let length = u16::try_from(needed).map_err(|_| NoRoom { needed, room })?;
        self.emit(packet)?;
        packet[LENGTH_AT..][..2].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }
}

impl<'a> Reply<'a> {
    /// How the request ended.
    #[must_use]
    pub const fn status(&self) -> ClioStatus {
        match self {
            Reply::Refused(status, _) => *status,
            Reply::OwnerDied => ClioStatus::OwnerDied,
            _ => ClioStatus::Ok,
        }
    }

    /// `None` where the body is too short.
    fn parse(
        opcode: u8,
        status: ClioStatus,
        reader: &mut Reader<'a>,
    ) -> Result<Option<Reply<'a>>, Malformed> {
        if !status.is_done() {
            return Ok(reader.u64().map(|detail| Reply::Refused(status, detail)));
        }
        let opcode = ClioOpcode::try_from(opcode)?;
        if status == ClioStatus::OwnerDied {
            let lock = opcode == ClioOpcode::Lock;
            return if lock { Ok(Some(Reply::OwnerDied)) } else { Err(Malformed::Field("status")) };
        }
        Ok(match opcode {
            ClioOpcode::Read | ClioOpcode::Offload => Some(Reply::Bytes(reader.rest())),
            ClioOpcode::CompareAndSwap
            | ClioOpcode::FetchAndAdd
            | ClioOpcode::Swap
            | ClioOpcode::And
            | ClioOpcode::Or
            | ClioOpcode::Xor
            | ClioOpcode::TestAndSet => reader.u64().map(Reply::Word),
            ClioOpcode::Allocate | ClioOpcode::Share => reader.u64().map(Reply::Address),
            ClioOpcode::CreateProcess => reader.u32().map(|id| Reply::Created(ProcessId(id))),
            ClioOpcode::Hello => NodeFacts::parse(reader).map(Reply::Facts),
            ClioOpcode::Probe => Some(Reply::Padding(reader.zeros().ok_or(Malformed::Reserved)?)),
            // A check that failed is refused, and acknowledgements are not answered.
            ClioOpcode::Nack | ClioOpcode::Acknowledge => return Err(Malformed::Field("status")),
            ClioOpcode::Write
            | ClioOpcode::Lock
            | ClioOpcode::Unlock
            | ClioOpcode::Fence
            | ClioOpcode::Free
            | ClioOpcode::EndProcess
            | ClioOpcode::KeepAlive => Some(Reply::Done),
        })
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        match *self {
            Reply::Done | Reply::OwnerDied => {}
            Reply::Bytes(bytes) => writer.put(bytes),
            Reply::Word(number) | Reply::Address(number) | Reply::Refused(_, number) => {
                writer.u64(number);
            }
            Reply::Created(process) => writer.u32(process.0),
            Reply::Facts(facts) => facts.emit(writer),
            Reply::Padding(zeros) => writer.zeros(zeros),
        }
    }
}

impl NodeFacts {
    fn parse(reader: &mut Reader<'_>) -> Option<NodeFacts> {
        let (epoch, page_bytes) = (Epoch(reader.u32()?), reader.u32()?);
        let (data_bytes_max, lifetime_us_max) = (reader.u32()?, reader.u32()?);
        let (memory, lease_ms) = (Bytes(reader.u64()?), reader.u64()?);
        Some(NodeFacts { epoch, page_bytes, data_bytes_max, lifetime_us_max, memory, lease_ms })
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        let numbers = [self.epoch.0, self.page_bytes, self.data_bytes_max, self.lifetime_us_max];
        numbers.into_iter().for_each(|number| writer.u32(number));
        writer.u64(self.memory.0);
        writer.u64(self.lease_ms);
    }
}
