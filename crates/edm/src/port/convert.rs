//! Conversion between decision-level messages and their formats on the wire.

use std::num::NonZeroU16;

use ethermem_units::Bytes;
use ethermem_wire as wire;

use crate::message::{
    Address, Chunk, ChunkKind, Grant, MESSAGE_BYTES_MAX, MemoryRequest, MessageId, Modify, NodeId,
    Notification, RMW_BYTES, RmwKind, RmwOperation, Status, StatusCode, WriteKind,
};
use crate::redundancy::Streams;

/// The opcode of a status that answers no message; its code gives the meaning.
///
/// - From a switch: `peer` is gone ([`StatusCode::LinkDisabled`]) or back ([`StatusCode::Ok`]).
/// - From a host: it heard that `peer` is gone and dropped what it had with it
///   ([`StatusCode::LinkDisabled`]), or its oldest unanswered grant stays unused
///   ([`StatusCode::Null`]).
/// - From a host to another: its newest streams, in place of the id ([`StatusCode::Incomplete`]).
pub const PEER_DOWN_OPCODE: u8 = 0;

/// Smallest chunk of a network on the wire. The 15-bit index of a chunk gives its place in a
/// message of up to 4 MiB.
#[must_use]
pub const fn chunk_bytes_min() -> Bytes {
    Bytes(MESSAGE_BYTES_MAX.0.div_ceil(wire::ChunkIndex::COUNT as u64).next_multiple_of(64))
}

fn address(address: Address) -> wire::Address {
    match wire::Address40::new(address.0) {
        Ok(short) => wire::Address::Short(short),
        Err(_) => wire::Address::Long(address.0),
    }
}

fn flat(address: wire::Address) -> Address {
    match address {
        wire::Address::Short(short) => Address(short.number()),
        wire::Address::Long(long) => Address(long),
    }
}

/// A request as it goes on the line; `None` for an opcode that cannot have been submitted.
pub(super) fn request(request: &MemoryRequest) -> Option<wire::Message<'static>> {
    let MemoryRequest { peer, id, .. } = *request;
    if let Some(Modify { opcode, operands }) = request.modify {
        let operation = RmwOperation::new(RmwKind::from_bits(opcode)?, operands);
        let address = address(request.address);
        let rmw = wire::RmwRequest { peer, id, address, operation };
        return Some(wire::Message::RmwRequest(rmw));
    }
    // A length that the short form cannot state to the byte takes the long form.
    let short = wire::ReadRequest::new(peer, id, address(request.address), request.bytes);
    let long = wire::Address::Long(request.address.0);
    let read = short.or_else(|_| wire::ReadRequest::new(peer, id, long, request.bytes)).ok()?;
    Some(wire::Message::ReadRequest(read))
}

pub(super) fn read_request(request: &wire::ReadRequest) -> MemoryRequest {
    MemoryRequest {
        peer: request.peer(),
        id: request.id(),
        address: flat(request.address()),
        bytes: request.bytes(),
        modify: None,
    }
}

pub(super) fn rmw_request(request: &wire::RmwRequest) -> MemoryRequest {
    let operation = request.operation;
    let modify =
        Modify { opcode: operation.kind().opcode().into(), operands: operation.operands() };
    MemoryRequest {
        peer: request.peer,
        id: request.id,
        address: flat(request.address),
        bytes: RMW_BYTES,
        modify: Some(modify),
    }
}

pub(super) fn notification(notification: &Notification, kind: WriteKind) -> wire::Message<'static> {
    let demand = wire::Length::covering(notification.bytes);
    wire::Message::Notification(wire::Notification {
        destination: notification.peer,
        id: notification.id,
        demand: demand.expect("checked when the write was submitted"),
        kind,
    })
}

pub(super) fn from_notification(notification: &wire::Notification) -> Notification {
    Notification {
        peer: notification.destination,
        id: notification.id,
        bytes: notification.demand.bytes(),
        members: 1,
    }
}

pub(super) fn grant(grant: &Grant) -> wire::Message<'static> {
    let bytes = u16::try_from(grant.bytes.0).ok().and_then(NonZeroU16::new);
    let write = grant.id.is_write();
    wire::Message::Grant(wire::Grant {
        peer: grant.peer,
        id: grant.id,
        kind: if write { wire::GrantKind::Write } else { wire::GrantKind::Response },
        bytes: bytes.expect("a grant is for a chunk"),
    })
}

/// Reads a grant; `None` when the id is not of the class that the grant states.
pub(super) fn from_grant(grant: &wire::Grant) -> Option<Grant> {
    let id = grant.id;
    (id.is_write() == (grant.kind == wire::GrantKind::Write)).then(|| Grant {
        peer: grant.peer,
        id,
        bytes: Bytes(u64::from(grant.bytes.get())),
    })
}

/// A chunk with its bytes, as `source` sends it.
pub(super) fn chunk<'a>(
    source: NodeId,
    chunk: &Chunk,
    chunk_bytes: Bytes,
    data: &'a [u8],
) -> wire::Message<'a> {
    let data = wire::ChunkData::new(data).expect("a chunk has bytes, and at most a grant's");
    let index = wire::ChunkIndex::new((chunk.offset.0 / chunk_bytes.0) as u16);
    let index = index.expect("chunks are long enough for their numbers");
    let id = chunk.id;
    match chunk.kind {
        ChunkKind::ReadResponse => wire::Message::ReadResponse(wire::ReadResponse {
            source,
            id,
            index,
            last: chunk.last,
            data,
        }),
        ChunkKind::PostedWrite => {
            let address = wire::Address40::new(chunk.address.0);
            let address = address.expect("a posted write beyond 40 bits is an acknowledged one");
            wire::Message::PostedWrite(wire::PostedWrite { address, data })
        }
        ChunkKind::AcknowledgedWrite => wire::Message::AcknowledgedWrite(wire::AcknowledgedWrite {
            source,
            id,
            index,
            last: chunk.last,
            address: chunk.address.0,
            data,
        }),
    }
}

pub(super) fn from_response(response: &wire::ReadResponse<'_>, chunk_bytes: Bytes) -> Chunk {
    Chunk {
        peer: response.source,
        id: response.id,
        kind: ChunkKind::ReadResponse,
        member: 0,
        offset: Bytes(u64::from(response.index.number()) * chunk_bytes.0),
        bytes: Bytes(response.data.bytes().len() as u64),
        last: response.last,
        address: Address(0),
    }
}

pub(super) fn from_write(write: &wire::AcknowledgedWrite<'_>, chunk_bytes: Bytes) -> Chunk {
    Chunk {
        peer: write.source,
        id: write.id,
        kind: ChunkKind::AcknowledgedWrite,
        member: 0,
        offset: Bytes(u64::from(write.index.number()) * chunk_bytes.0),
        bytes: Bytes(write.data.bytes().len() as u64),
        last: write.last,
        address: Address(write.address),
    }
}

pub(super) fn status(status: &Status) -> wire::Message<'static> {
    let write = status.id.is_write();
    let opcode = if write { wire::Opcode::AcknowledgedWrite } else { wire::Opcode::Read };
    wire::Message::Status(wire::Status {
        opcode: opcode.into(),
        peer: status.peer,
        id: status.id,
        code: status.code,
    })
}

pub(super) fn from_status(status: &wire::Status) -> Status {
    Status { peer: status.peer, id: status.id, member: 0, code: status.code }
}

/// The code of a status of [`PEER_DOWN_OPCODE`] that announces streams.
pub(super) const STREAMS: StatusCode = StatusCode::Incomplete;

/// A status that announces the sender's streams to `peer`.
pub(super) fn streams(peer: NodeId, streams: Streams) -> wire::Message<'static> {
    link_status(peer, MessageId(streams.to_bits()), STREAMS)
}

/// A status of [`PEER_DOWN_OPCODE`].
pub(super) fn link_status(
    about: NodeId,
    of: MessageId,
    code: StatusCode,
) -> wire::Message<'static> {
    wire::Message::Status(wire::Status {
        opcode: wire::OpcodeBits::from_low_bits(PEER_DOWN_OPCODE),
        peer: about,
        id: of,
        code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_chunk_is_what_the_index_can_number() {
        assert_eq!(chunk_bytes_min(), Bytes(128));
    }

    #[test]
    fn requests_survive_the_wire() {
        let read = MemoryRequest {
            peer: NodeId::at(3),
            id: MessageId(9),
            address: Address(77),
            bytes: Bytes(70_001),
            modify: None,
        };
        let modify = Modify { opcode: RmwKind::Swap.opcode().into(), operands: [5, 0] };
        let rmw = MemoryRequest { bytes: RMW_BYTES, modify: Some(modify), ..read };
        for sent in [read, MemoryRequest { address: Address(1 << 50), ..read }, rmw] {
            let found = match request(&sent) {
                Some(wire::Message::ReadRequest(found)) => read_request(&found),
                Some(wire::Message::RmwRequest(found)) => rmw_request(&found),
                other => panic!("{other:?}"),
            };
            assert_eq!(found, sent);
        }
        let unknown = Modify { opcode: wire::OpcodeBits::from_low_bits(0), operands: [0; 2] };
        assert_eq!(request(&MemoryRequest { modify: Some(unknown), ..rmw }), None);
    }
}
