//! Two hosts driven by hand, and helpers that take their messages apart.

use ethermem_edm::{
    Address, Chunk, EdmConfig, Host, HostConfig, MemoryRequest, NodeId, Notification, Op, Outbound,
    Request, Token, WriteKind,
};
use ethermem_units::Bytes;

pub(crate) const COMPUTE: NodeId = NodeId::at(0);
pub(crate) const MEMORY: NodeId = NodeId::at(1);

pub(crate) fn host(node: NodeId, edm: &EdmConfig) -> Host {
    Host::new(HostConfig { node, nodes: 4, edm, messages_max: 128 })
}

pub(crate) fn read(token: u32, bytes: u64) -> Request {
    let op = Op::Read { bytes: Bytes(bytes) };
    Request { token: Token(token), peer: MEMORY, address: Address(0x1000), op, fence: false }
}

pub(crate) fn write(token: u32, bytes: u64, kind: WriteKind) -> Request {
    Request { op: Op::Write { bytes: Bytes(bytes), kind }, ..read(token, 1) }
}

pub(crate) fn request(outbound: Option<Outbound>) -> MemoryRequest {
    match outbound {
        Some(Outbound::Request(request)) => request,
        other => panic!("a request, not {other:?}"),
    }
}

pub(crate) fn notification(outbound: Option<Outbound>) -> Notification {
    match outbound {
        Some(Outbound::Notify(notification)) => notification,
        other => panic!("a notification, not {other:?}"),
    }
}

pub(crate) fn chunk(outbound: Option<Outbound>) -> Chunk {
    match outbound {
        Some(Outbound::Chunk { chunk, .. }) => chunk,
        other => panic!("a chunk, not {other:?}"),
    }
}
