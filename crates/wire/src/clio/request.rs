//! Requests of a client to the node.

use core::iter::FusedIterator;

use thiserror::Error;

use super::opcode::{ClioOpcode, UnknownClioOpcode};
use crate::access::{Permissions, ProcessId};
use crate::octets::{LENGTH_AT, NoRoom, Reader, Writer};
use crate::opcode::{RmwKind, RmwOperation};

/// Octets before the body of a request.
pub const REQUEST_BYTES: usize = 24;
/// Octets before the data of a write.
pub const WRITE_BYTES: usize = REQUEST_BYTES + 8;

/// A request's number, larger than all that its sender used before. 0 stands for no request.
///
/// A part of a long access is a request of its own, with a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl RequestId {
    /// No request.
    pub const NONE: RequestId = RequestId(0);
}

/// A request with its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestPacket<'a> {
    /// The number of the attempt, from 0, modulo 256. The response repeats it, so that the client
    /// measures the round trip of the attempt that was answered.
    pub attempt: u8,
    /// The process that the request is for.
    pub process: ProcessId,
    /// The request's number, equal in every attempt.
    pub request: RequestId,
    /// A request of this sender whose response arrived and that is not retried any more.
    pub acknowledged: RequestId,
    /// The operation, with its fields.
    pub body: Request<'a>,
}

/// The operation of a request; [`ClioOpcode`] says what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the table of opcodes")]
pub enum Request<'a> {
    /// Reads bytes: see [`ClioOpcode::Read`].
    Read { address: u64, bytes: u32 },
    /// Writes bytes: see [`ClioOpcode::Write`].
    Write { address: u64, data: &'a [u8] },
    /// An atomic with operands.
    Modify { address: u64, operation: RmwOperation },
    /// Stores 1: see [`ClioOpcode::TestAndSet`].
    TestAndSet { address: u64 },
    /// Takes a lock: see [`ClioOpcode::Lock`]. The holder is a number that is unique within its
    /// process.
    Lock { address: u64, holder: u32 },
    /// Releases a lock: see [`ClioOpcode::Unlock`].
    Unlock { address: u64, holder: u32 },
    /// Waits for earlier requests: see [`ClioOpcode::Fence`].
    Fence,
    /// Allocates memory: see [`ClioOpcode::Allocate`]. With `at` 0 the node chooses the address.
    Allocate { bytes: u64, at: u64, permissions: Permissions },
    /// Ends an allocation or a share: see [`ClioOpcode::Free`].
    Free { address: u64 },
    /// Shares an allocation: see [`ClioOpcode::Share`]. With `at` 0 the share keeps its address. No
    /// permissions end the share.
    Share { address: u64, at: u64, with: ProcessId, permissions: Permissions },
    /// Creates a process: see [`ClioOpcode::CreateProcess`].
    CreateProcess,
    /// Ends the process: see [`ClioOpcode::EndProcess`].
    EndProcess,
    /// Runs an operation: see [`ClioOpcode::Offload`]. A name has up to 255 bytes, and a longer one
    /// is cut.
    Offload { name: &'a str, arguments: &'a [u8] },
    /// Asks for the facts of the node: see [`ClioOpcode::Hello`].
    Hello,
    /// Keeps the process alive: see [`ClioOpcode::KeepAlive`].
    KeepAlive,
    /// Acknowledges responses: see [`ClioOpcode::Acknowledge`].
    Acknowledge(AcknowledgedIds<'a>),
    /// Probes the path: see [`ClioOpcode::Probe`]. `padding` is a number of zeros.
    Probe { padding: u16 },
}

/// Numbers of requests, eight octets each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcknowledgedIds<'a>(&'a [u8]);

impl<'a> AcknowledgedIds<'a> {
    /// The numbers in `octets`; `None` if the length is not a multiple of eight.
    #[must_use]
    pub fn new(octets: &'a [u8]) -> Option<AcknowledgedIds<'a>> {
        octets.len().is_multiple_of(8).then_some(AcknowledgedIds(octets))
    }

    /// The numbers in order.
    pub fn iter(self) -> impl Iterator<Item = RequestId> + 'a {
        let (numbers, _) = self.0.as_chunks();
        numbers.iter().map(|number| RequestId(u64::from_le_bytes(*number)))
    }
}

/// Why octets are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    /// The packet is longer than the rest of the datagram, or shorter than a header. The packets
    /// behind it cannot be found.
    #[error("a packet of {length} B where {left} B are left of the datagram")]
    Truncated {
        /// The length in the packet, or the least length of a packet.
        length: usize,
        /// Number of octets left in the datagram.
        left: usize,
    },
    /// The packet can be skipped, and refused by its number.
    #[error("request {}: {problem}", request.0)]
    Refused {
        /// The number of the request, also for a response.
        request: RequestId,
        /// The number of the attempt.
        attempt: u8,
        /// The opcode as it arrived.
        opcode: u8,
        /// The problem of the packet.
        problem: Malformed,
    },
}

/// The problem of a packet that has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The opcode is unknown.
    #[error(transparent)]
    Opcode(#[from] UnknownClioOpcode),
    /// The body is shorter or longer than its opcode requires.
    #[error("a body of {0} B is none of its opcode's")]
    Length(usize),
    /// A field has an invalid value.
    #[error("field `{0}` is not allowed so")]
    Field(&'static str),
    /// A reserved field is not zero.
    #[error("a reserved bit is set")]
    Reserved,
}

/// The packets of a datagram, in order. After a [`PacketError::Truncated`] there are no more.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    rest: &'a [u8],
}

impl<'a> Packets<'a> {
    /// An iterator over the packets between envelope and trailer.
    #[must_use]
    pub fn new(octets: &'a [u8]) -> Packets<'a> {
        Packets { rest: octets }
    }

    /// The octets of the next packet.
    /// True if what is left is one packet, if it is any.
    #[must_use]
    pub fn is_one(&self) -> bool {
        let length = self.rest.get(LENGTH_AT..).and_then(|at| Reader(at).u16());
        length.map(usize::from) == Some(self.rest.len())
    }

    pub(super) fn cut(&mut self, header_bytes: usize) -> Option<Result<&'a [u8], PacketError>> {
        let left = self.rest.len();
        if left == 0 {
            return None;
        }
        let length = self.rest.get(LENGTH_AT..).and_then(|at| Reader(at).u16());
        let length = length.map_or(header_bytes, usize::from);
        // A wrong length hides where the next packet begins: data must not be taken for a packet.
        match self.rest.split_at_checked(length) {
            Some((packet, rest)) if length >= header_bytes => {
                self.rest = rest;
                Some(Ok(packet))
            }
            _ => {
                self.rest = &[];
                Some(Err(PacketError::Truncated { length, left }))
            }
        }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<RequestPacket<'a>, PacketError>;

    fn next(&mut self) -> Option<Self::Item> {
        let packet = self.cut(REQUEST_BYTES)?;
        Some(packet.and_then(RequestPacket::parse))
    }
}

impl FusedIterator for Packets<'_> {}

impl<'a> RequestPacket<'a> {
    /// Reads the begin of a write's packet, whose data may lie elsewhere. Returns the packet
    /// without them, and their number of octets. `None` for anything else.
    #[must_use]
    pub fn parse_write(octets: &'a [u8]) -> Option<(RequestPacket<'a>, usize)> {
        let length = usize::from(Reader(octets.get(LENGTH_AT..)?).u16()?);
        let packet = RequestPacket::parse(octets.get(..WRITE_BYTES)?).ok()?;
        let data_bytes = length.checked_sub(WRITE_BYTES)?;
        matches!(packet.body, Request::Write { .. }).then_some((packet, data_bytes))
    }

    fn parse(packet: &'a [u8]) -> Result<RequestPacket<'a>, PacketError> {
        let mut reader = Reader(packet);
        let mut header = || {
            let (opcode, attempt, _length) = (reader.u8()?, reader.u8()?, reader.u16()?);
            let process = ProcessId(reader.u32()?);
            let (request, acknowledged) = (RequestId(reader.u64()?), RequestId(reader.u64()?));
            Some((opcode, attempt, process, request, acknowledged))
        };
        let left = packet.len();
        let truncated = PacketError::Truncated { length: REQUEST_BYTES, left };
        let (opcode, attempt, process, request, acknowledged) = header().ok_or(truncated)?;
        let refused = |problem| PacketError::Refused { request, attempt, opcode, problem };
        if request == RequestId::NONE {
            return Err(refused(Malformed::Field("request")));
        }
        let body = ClioOpcode::try_from(opcode).map_err(Malformed::from);
        let body = body.and_then(|opcode| Request::parse(opcode, reader.0)).map_err(refused)?;
        Ok(RequestPacket { attempt, process, request, acknowledged, body })
    }

    /// Writes the packet.
    ///
    /// # Errors
    /// [`NoRoom`]; also for a packet of more than 65,535 B.
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(into);
        writer.u8(self.body.opcode() as u8);
        writer.u8(self.attempt);
        writer.u16(0);
        writer.u32(self.process.0);
        writer.u64(self.request.0);
        writer.u64(self.acknowledged.0);
        self.body.emit(&mut writer);
        writer.end_packet()
    }

    /// Writes the packet up to the data of a write, which lie elsewhere and count in its length.
    ///
    /// # Errors
    /// As [`RequestPacket::emit`].
    pub fn emit_before_data(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let Request::Write { address, data } = self.body else { return self.emit(into) };
        let body = Request::Write { address, data: &[] };
        let used = RequestPacket { body, ..*self }.emit(into)?;
        let (needed, room) = (used + data.len(), usize::from(u16::MAX));
        let length = u16::try_from(needed).map_err(|_| NoRoom { needed, room })?;
        into[LENGTH_AT..][..2].copy_from_slice(&length.to_le_bytes());
        Ok(used)
    }
}

impl<'a> Request<'a> {
    /// The opcode of the request.
    #[must_use]
    pub fn opcode(&self) -> ClioOpcode {
        match self {
            Request::Read { .. } => ClioOpcode::Read,
            Request::Write { .. } => ClioOpcode::Write,
            Request::Modify { operation, .. } => operation.kind().into(),
            Request::TestAndSet { .. } => ClioOpcode::TestAndSet,
            Request::Lock { .. } => ClioOpcode::Lock,
            Request::Unlock { .. } => ClioOpcode::Unlock,
            Request::Fence => ClioOpcode::Fence,
            Request::Allocate { .. } => ClioOpcode::Allocate,
            Request::Free { .. } => ClioOpcode::Free,
            Request::Share { .. } => ClioOpcode::Share,
            Request::CreateProcess => ClioOpcode::CreateProcess,
            Request::EndProcess => ClioOpcode::EndProcess,
            Request::Offload { .. } => ClioOpcode::Offload,
            Request::Hello => ClioOpcode::Hello,
            Request::KeepAlive => ClioOpcode::KeepAlive,
            Request::Acknowledge(_) => ClioOpcode::Acknowledge,
            Request::Probe { .. } => ClioOpcode::Probe,
        }
    }

    fn parse(opcode: ClioOpcode, body: &'a [u8]) -> Result<Request<'a>, Malformed> {
        let mut reader = Reader(body);
        let length = Malformed::Length(body.len());
        let parsed = Request::fields(opcode, &mut reader)?.ok_or(length)?;
        if reader.0.is_empty() { Ok(parsed) } else { Err(length) }
    }

    /// Reads the fields; `None` where the body is too short.
    fn fields(
        opcode: ClioOpcode,
        reader: &mut Reader<'a>,
    ) -> Result<Option<Request<'a>>, Malformed> {
        let mut refused = Ok(());
        let mut permitted = |bits: u8| {
            let permissions = Permissions::from_bits(bits);
            if permissions.is_none() {
                refused = Err(Malformed::Field("permissions"));
            }
            permissions.unwrap_or(Permissions::NONE)
        };
        let mut parse = || {
            Some(match opcode {
                ClioOpcode::Read => Request::Read { address: reader.u64()?, bytes: reader.u32()? },
                ClioOpcode::Write => Request::Write { address: reader.u64()?, data: reader.rest() },
                ClioOpcode::CompareAndSwap => modify(reader, RmwKind::CompareAndSwap)?,
                ClioOpcode::FetchAndAdd => modify(reader, RmwKind::FetchAndAdd)?,
                ClioOpcode::Swap => modify(reader, RmwKind::Swap)?,
                ClioOpcode::And => modify(reader, RmwKind::And)?,
                ClioOpcode::Or => modify(reader, RmwKind::Or)?,
                ClioOpcode::Xor => modify(reader, RmwKind::Xor)?,
                ClioOpcode::TestAndSet => Request::TestAndSet { address: reader.u64()? },
                ClioOpcode::Lock => Request::Lock { address: reader.u64()?, holder: reader.u32()? },
                ClioOpcode::Unlock => {
                    Request::Unlock { address: reader.u64()?, holder: reader.u32()? }
                }
                ClioOpcode::Fence => Request::Fence,
                ClioOpcode::Allocate => {
                    let (bytes, at) = (reader.u64()?, reader.u64()?);
                    Request::Allocate { bytes, at, permissions: permitted(reader.u8()?) }
                }
                ClioOpcode::Free => Request::Free { address: reader.u64()? },
                ClioOpcode::Share => {
                    let (address, at) = (reader.u64()?, reader.u64()?);
                    let with = ProcessId(reader.u32()?);
                    Request::Share { address, at, with, permissions: permitted(reader.u8()?) }
                }
                ClioOpcode::CreateProcess => Request::CreateProcess,
                ClioOpcode::EndProcess => Request::EndProcess,
                ClioOpcode::Hello => Request::Hello,
                ClioOpcode::KeepAlive => Request::KeepAlive,
                ClioOpcode::Offload
                | ClioOpcode::Acknowledge
                | ClioOpcode::Nack
                | ClioOpcode::Probe => return None,
            })
        };
        match opcode {
            ClioOpcode::Offload => return offload(reader),
            ClioOpcode::Acknowledge => {
                return Ok(AcknowledgedIds::new(reader.rest()).map(Request::Acknowledge));
            }
            ClioOpcode::Probe => {
                let padding = reader.zeros().ok_or(Malformed::Reserved)?;
                return Ok(Some(Request::Probe { padding }));
            }
            // No client asks for a negative acknowledgement.
            ClioOpcode::Nack => return Err(UnknownClioOpcode(opcode as u8).into()),
            _ => {}
        }
        let parsed = parse();
        refused.map(|()| parsed)
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        match *self {
            Request::Read { address, bytes } => {
                writer.u64(address);
                writer.u32(bytes);
            }
            Request::Write { address, data } => {
                writer.u64(address);
                writer.put(data);
            }
            Request::Modify { address, operation } => {
                writer.u64(address);
                let operands = operation.operands();
                let count = operation.kind().operand_count();
                operands[..count].iter().for_each(|&operand| writer.u64(operand));
            }
            Request::Lock { address, holder } | Request::Unlock { address, holder } => {
                writer.u64(address);
                writer.u32(holder);
            }
            Request::TestAndSet { address } | Request::Free { address } => writer.u64(address),
            Request::Allocate { bytes, at, permissions } => {
                writer.u64(bytes);
                writer.u64(at);
                writer.u8(permissions.bits());
            }
            Request::Share { address, at, with, permissions } => {
                writer.u64(address);
                writer.u64(at);
                writer.u32(with.0);
                writer.u8(permissions.bits());
            }
            Request::Offload { name, arguments } => {
                let name = &name.as_bytes()[..name.len().min(usize::from(u8::MAX))];
                writer.u8(name.len() as u8);
                writer.put(name);
                writer.put(arguments);
            }
            Request::Acknowledge(ids) => writer.put(ids.0),
            Request::Probe { padding } => writer.zeros(padding),
            Request::Fence
            | Request::CreateProcess
            | Request::EndProcess
            | Request::Hello
            | Request::KeepAlive => {}
        }
    }
}

fn modify<'a>(reader: &mut Reader<'a>, kind: RmwKind) -> Option<Request<'a>> {
    let address = reader.u64()?;
    let first = reader.u64()?;
    let second = if kind.operand_count() == 2 { reader.u64()? } else { 0 };
    Some(Request::Modify { address, operation: RmwOperation::new(kind, [first, second]) })
}

fn offload<'a>(reader: &mut Reader<'a>) -> Result<Option<Request<'a>>, Malformed> {
    let Some(name) = reader.u8().and_then(|bytes| reader.take(bytes.into())) else {
        return Ok(None);
    };
    let name = core::str::from_utf8(name).map_err(|_| Malformed::Field("name"))?;
    Ok(Some(Request::Offload { name, arguments: reader.rest() }))
}
