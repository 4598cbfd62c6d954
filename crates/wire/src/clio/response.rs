//! Responses of the node: one packet to each request.

use ethermem_units::Bytes;

use super::envelope::Epoch;
use super::opcode::ClioOpcode;
use super::request::{Malformed, PacketError, Packets, RequestId};
use super::status::ClioStatus;
use crate::clio::ProcessId;
use crate::octets::{LENGTH_AT, NoRoom, Reader, Writer};

/// Octets before the body of a response.
pub const RESPONSE_BYTES: usize = 16;

/// The bit of an opcode that marks a response.
const ANSWER: u8 = 0x80;

/// A response with its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponsePacket<'a> {
    /// The opcode of the request. It may be unassigned where the request is refused.
    pub opcode: u8,
    /// The number of the attempt that is answered.
    pub attempt: u8,
    /// The number of the request.
    pub request: RequestId,
    /// The result of the request.
    pub reply: Reply<'a>,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The request was done; there is no result.
    Done,
    /// The requester has the lock; its previous holder is a dead process.
    OwnerDied,
    /// Bytes of the memory, or the result of an offload.
    Bytes(&'a [u8]),
    /// The word before an atomic.
    Word(u64),
    /// The address of the allocation or share.
    Address(u64),
    /// The process that was made.
    Created(ProcessId),
    /// The facts of the node.
    Facts(NodeFacts),
    /// This number of zeros.
    Padding(u16),
    /// The request was not done. The status says what the number means.
    Refused(ClioStatus, u64),
}

/// The facts of a node that a client needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// The epoch of the node.
    pub epoch: Epoch,
    /// Size of a page, in bytes.
    pub page_bytes: u32,
    /// Maximum data bytes that one packet may carry or ask for.
    pub data_bytes_max: u32,
    /// Maximum time by which a request's deadline may be ahead of the node's clock, in
    /// microseconds.
    pub lifetime_us_max: u32,
    /// Size of the memory that the node serves.
    pub memory: Bytes,
    /// How long the node keeps a process without hearing from its client, in milliseconds; 0 means
    /// for ever.
    pub lease_ms: u64,
}

impl<'a> ResponsePacket<'a> {
    /// An iterator over the responses of a datagram, in order.
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
        let head = ResponseHead::parse(packet)?;
        head.with(&packet[RESPONSE_BYTES..])
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

    /// Writes the packet, whose length counts `body_bytes` more that lie elsewhere.
    ///
    /// # Errors
    /// As [`ResponsePacket::emit`].
    pub fn emit_before(&self, body_bytes: usize, into: &mut [u8]) -> Result<usize, NoRoom> {
        let used = self.emit(into)?;
        let (needed, room) = (used + body_bytes, usize::from(u16::MAX));
        let length = u16::try_from(needed).map_err(|_| NoRoom { needed, room })?;
        into[LENGTH_AT..][..2].copy_from_slice(&length.to_le_bytes());
        Ok(used)
    }

    /// Writes the header of a packet that fills `packet` and whose data are already in place.
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

/// The header of a response, whose body may lie elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The opcode of the request.
    pub opcode: u8,
    /// The number of the attempt that is answered.
    pub attempt: u8,
    /// The number of the request.
    pub request: RequestId,
    /// The status of the request.
    pub status: ClioStatus,
    /// Octets of the packet, header and body.
    pub length: u16,
}

impl ResponseHead {
    /// Reads the header at the begin of `octets`.
    ///
    /// # Errors
    /// [`PacketError`].
    pub fn parse(octets: &[u8]) -> Result<ResponseHead, PacketError> {
        let mut reader = Reader(octets);
        let mut header = || {
            let (opcode, attempt, length) = (reader.u8()?, reader.u8()?, reader.u16()?);
            let (status, reserved) = (reader.u8()?, reader.array::<3>()?);
            Some((opcode, attempt, length, status, reserved, RequestId(reader.u64()?)))
        };
        let left = octets.len();
        let truncated = PacketError::Truncated { length: RESPONSE_BYTES, left };
        let (answer, attempt, length, status, reserved, request) = header().ok_or(truncated)?;
        let opcode = answer & !ANSWER;
        let refused = |problem| PacketError::Refused { request, attempt, opcode, problem };
        if answer & ANSWER == 0 || reserved != [0; 3] {
            return Err(refused(Malformed::Reserved));
        }
        let status =
            ClioStatus::try_from(status).map_err(|_| refused(Malformed::Field("status")))?;
        Ok(ResponseHead { opcode, attempt, request, status, length })
    }

    /// The response with its body.
    ///
    /// # Errors
    /// [`PacketError::Refused`].
    pub fn with(self, body: &[u8]) -> Result<ResponsePacket<'_>, PacketError> {
        let ResponseHead { opcode, attempt, request, status, .. } = self;
        let refused = |problem| PacketError::Refused { request, attempt, opcode, problem };
        let mut reader = Reader(body);
        let length = Malformed::Length(body.len());
        let reply = Reply::parse(opcode, status, &mut reader).map_err(refused)?;
        let reply = reply.filter(|_| reader.0.is_empty()).ok_or_else(|| refused(length))?;
        Ok(ResponsePacket { opcode, attempt, request, reply })
    }
}

impl<'a> Reply<'a> {
    /// The status of the request.
    #[must_use]
    pub const fn status(&self) -> ClioStatus {
        match self {
            Reply::Refused(status, _) => *status,
            Reply::OwnerDied => ClioStatus::OwnerDied,
            _ => ClioStatus::Ok,
        }
    }

    /// Reads the result; `None` where the body is too short.
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
            // A failed check is a refusal, and an acknowledgement has no response.
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
