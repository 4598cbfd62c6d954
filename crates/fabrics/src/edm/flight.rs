//! Items in flight: one entry from its transmitter until it is processed at the other end.

use ethermem_edm::{
    Address, Chunk, Grant, MESSAGE_BYTES_MAX, MemoryRequest, MessageId, Modify, NodeId,
    Notification, OpcodeBits, Outbound, Status, Token,
};
use ethermem_engine::topology::Stream;
use ethermem_units::{Blocks, Bytes, Ps};
use ethermem_wire::{AddressWidth, GRANT_BLOCKS, NOTIFICATION_BLOCKS, RmwKind, STATUS_BLOCKS};

/// The width of addresses, which fit 40 bits in these simulations.
const ADDRESS: AddressWidth = AddressWidth::Bits40;

/// The content of an item. Its `peer` is the sender's view on the way to the switch, and the
/// receiver's view from there on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Payload {
    Request(Asked),
    Notify(Notification),
    Grant(Grant),
    Chunk(Chunk, Option<Token>),
    Status(Status),
}

/// An RREQ or RMWREQ. Operands are omitted, since no memory is simulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    address: Address,
    bytes: u32,
    peer: NodeId,
    id: MessageId,
    /// The opcode of an RMWREQ.
    opcode: Option<OpcodeBits>,
}

impl Asked {
    /// Index of the simulation's address that it names.
    pub(super) fn address_slot(&self) -> usize {
        (self.address.0 / MESSAGE_BYTES_MAX.0) as usize
    }
}

impl From<MemoryRequest> for Asked {
    #[inline]
    fn from(request: MemoryRequest) -> Asked {
        Asked {
            address: request.address,
            bytes: request.bytes.0 as u32,
            peer: request.peer,
            id: request.id,
            opcode: request.modify.map(|modify| modify.opcode),
        }
    }
}

impl From<Asked> for MemoryRequest {
    #[inline]
    fn from(asked: Asked) -> MemoryRequest {
        MemoryRequest {
            peer: asked.peer,
            id: asked.id,
            address: asked.address,
            bytes: Bytes(asked.bytes.into()),
            modify: asked.opcode.map(|opcode| Modify { opcode, operands: [1, 0] }),
        }
    }
}

/// A control message or a chunk.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Item {
    pub(super) from: u16,
    pub(super) to: u16,
    /// Number of blocks, at most as many as a chunk of 1,024 B has.
    pub(super) blocks: u8,
    /// Number of blocks of data among them.
    pub(super) data: u8,
    /// The time at which its next event is due; an urgent item on its link may have put it off.
    pub(super) due: Ps,
    pub(super) payload: Payload,
}

const _: () = assert!(size_of::<Item>() == 64, "an item is one cache line");

impl Item {
    /// The item for a host's message.
    #[inline]
    pub(super) fn from_host(from: u16, outbound: Outbound) -> Item {
        let to = outbound.peer().number();
        let (blocks, data, payload) = match outbound {
            Outbound::Request(request) => (
                request_blocks(request.modify.is_some()),
                Blocks(0),
                Payload::Request(request.into()),
            ),
            Outbound::Notify(notification) => {
                (NOTIFICATION_BLOCKS, Blocks(0), Payload::Notify(notification))
            }
            Outbound::Status(status) => (STATUS_BLOCKS, Blocks(0), Payload::Status(status)),
            Outbound::Chunk { chunk, token } => {
                let blocks = ethermem_wire::chunk_blocks(chunk.kind, chunk.bytes);
                let received = Chunk { peer: NodeId::at(from), ..chunk };
                (blocks, chunk.bytes.to_blocks(), Payload::Chunk(received, token))
            }
        };
        Item { from, to, blocks: blocks.0 as u8, data: data.0 as u8, due: Ps::ZERO, payload }
    }

    /// Number of slots that it takes, and number of slots that carry data.
    #[inline]
    pub(super) fn size(&self) -> (Blocks, Blocks) {
        (Blocks(self.blocks.into()), Blocks(self.data.into()))
    }

    /// Its stream at a transmitter that it shares with other items of its sender and receiver. A
    /// request must not overtake the data of an earlier write, or it would read too early.
    #[inline]
    pub(super) fn stream(&self, other_end: u16) -> Stream {
        match self.payload {
            Payload::Chunk(..) => Stream::Data(other_end),
            Payload::Request(_) => Stream::UrgentBehind(other_end),
            Payload::Notify(_) | Payload::Grant(_) | Payload::Status(_) => Stream::Urgent,
        }
    }

    /// Number of data bytes that it carries, requests or allows.
    pub(super) fn bytes(&self) -> u64 {
        match self.payload {
            Payload::Request(asked) => u64::from(asked.bytes),
            Payload::Notify(notification) => notification.bytes.0,
            Payload::Grant(grant) => grant.bytes.0,
            Payload::Chunk(chunk, _) => chunk.bytes.0,
            Payload::Status(_) => 0,
        }
    }

    /// The item for a /G/ of the switch.
    pub(super) fn grant(to: NodeId, grant: Grant) -> Item {
        let payload = Payload::Grant(grant);
        Item {
            from: grant.peer.number(),
            to: to.number(),
            blocks: GRANT_BLOCKS.0 as u8,
            data: 0,
            due: Ps::ZERO,
            payload,
        }
    }

    /// The item for a request that the switch releases.
    pub(super) fn release(to: NodeId, request: MemoryRequest) -> Item {
        let blocks = request_blocks(request.modify.is_some()).0 as u8;
        let payload = Payload::Request(request.into());
        Item {
            from: request.peer.number(),
            to: to.number(),
            blocks,
            data: 0,
            due: Ps::ZERO,
            payload,
        }
    }
}

/// Number of blocks of a read request, or of the simulated atomic.
pub(super) fn request_blocks(modify: bool) -> Blocks {
    if modify {
        ethermem_wire::rmw_request_blocks(RmwKind::FetchAndAdd, ADDRESS)
    } else {
        ethermem_wire::read_request_blocks(ADDRESS)
    }
}

/// Items by index; indices are reused.
#[derive(Debug, Default)]
pub(super) struct Flights {
    items: Vec<Item>,
    free: Vec<u32>,
}

impl Flights {
    /// The name of an item that has no further event.
    pub(super) const PASSED_ON: u32 = u32::MAX;

    /// The name that the next item will get.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.free.last().map_or(self.items.len() as u32, |&index| index)
    }

    #[inline]
    pub(super) fn insert(&mut self, item: Item) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.items[index as usize] = item;
                index
            }
            None => {
                self.items.push(item);
                self.items.len() as u32 - 1
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> &Item {
        &self.items[index as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> &mut Item {
        &mut self.items[index as usize]
    }

    /// Puts off the start of an item by `delay`.
    #[inline]
    pub(super) fn put_off(&mut self, index: u32, delay: Ps) {
        if index != Flights::PASSED_ON {
            self.items[index as usize].due += delay;
        }
    }

    /// Takes an item out; its index is reused for the next one.
    #[inline]
    pub(super) fn take(&mut self, index: u32) -> &Item {
        self.free.push(index);
        &self.items[index as usize]
    }

    /// Number of items in flight.
    pub(super) fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
}
