//! What is on its way: one entry from its transmitter until it is processed at the other end.

use ethermem_edm::{Ack, ChunkKind as EdmChunk, Grant, MemoryRequest, NodeId, Notification, Outbound, Token};
use ethermem_units::Blocks;
use ethermem_wire::{
    AddressWidth, ChunkKind, GRANT_BLOCKS, NOTIFICATION_BLOCKS, RmwKind, STATUS_BLOCKS,
};

/// Addresses in these simulations fit 40 bits.
const ADDRESS: AddressWidth = AddressWidth::Bits40;

/// A control message or a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) blocks: Blocks,
    /// Blocks of data among them.
    pub(super) data: Blocks,
    /// As its receiver sees it. A /G/ travels as the notification it answers: the same fields.
    pub(super) outbound: Outbound,
    token: Option<Token>,
}

pub(super) fn request_blocks(modify: bool) -> Blocks {
    if modify {
        ethermem_wire::rmw_request_blocks(RmwKind::FetchAndAdd, ADDRESS)
    } else {
        ethermem_wire::read_request_blocks(ADDRESS)
    }
}

impl Item {
    pub(super) fn from_host(from: u16, outbound: &Outbound) -> Item {
        let to = outbound.peer().0;
        let (blocks, data, token) = match outbound {
            Outbound::Request(request) => {
                (request_blocks(request.modify.is_some()), Blocks(0), None)
            }
            Outbound::Notify(_) => (NOTIFICATION_BLOCKS, Blocks(0), None),
            Outbound::Status(_) => (STATUS_BLOCKS, Blocks(0), None),
            Outbound::Chunk { chunk, token } => {
                let kind = match chunk.kind {
                    EdmChunk::ReadResponse => ChunkKind::ReadResponse,
                    EdmChunk::WriteRequest { ack: Ack::Posted, .. } => ChunkKind::PostedWrite,
                    EdmChunk::WriteRequest { ack: Ack::Applied, .. } => {
                        ChunkKind::AcknowledgedWrite
                    }
                };
                let blocks = ethermem_wire::chunk_blocks(kind, chunk.bytes);
                (blocks, chunk.bytes.to_blocks(), *token)
            }
        };
        Item { from, to, blocks, data, outbound: *outbound, token }
    }
}
