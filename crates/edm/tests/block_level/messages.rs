//! The memory side of a link: messages of any kind, and the units that wait to be sent.

use std::collections::VecDeque;
use std::num::NonZeroU16;

use ethermem_edm::phy::{MemorySource, Unit};
use ethermem_units::Bytes;
use ethermem_wire::{
    AcknowledgedWrite, Address, Address40, Block, ChunkData, ChunkIndex, Grant, GrantKind, Length,
    Message, MessageId, NodeId, Notification, OpcodeBits, PostedWrite, ReadRequest, ReadResponse,
    RmwKind, RmwOperation, RmwRequest, Status, StatusCode, WriteKind,
};

use crate::rng::Rng;

/// A message of any kind; a chunk carries `data`.
pub(crate) fn message<'a>(rng: &mut Rng, data: &'a [u8]) -> Message<'a> {
    let peer = NodeId::new(rng.below(512) as u16).expect("in range");
    let id = MessageId(rng.next() as u8);
    let index = ChunkIndex::new(rng.below(1 << 15) as u16).expect("in range");
    let short = Address40::new(rng.next() >> 24).expect("in range");
    let address = if rng.percent(50) { Address::Short(short) } else { Address::Long(rng.next()) };
    let last = rng.percent(50);
    let demand = Length::covering(Bytes(1 + rng.below(60_000))).expect("in range");
    let chunk = ChunkData::new(data).expect("in range");
    match rng.below(8) {
        0 => Message::Notification(Notification {
            destination: peer,
            id,
            demand,
            kind: if last { WriteKind::Posted } else { WriteKind::Acknowledged },
        }),
        1 => Message::Grant(Grant {
            peer,
            id,
            kind: if last { GrantKind::Write } else { GrantKind::Response },
            bytes: NonZeroU16::new(1 + rng.below(1024) as u16).expect("in range"),
        }),
        2 => Message::Status(Status {
            opcode: OpcodeBits::from_low_bits(rng.next() as u8),
            peer,
            id,
            code: StatusCode::ALL[rng.below(StatusCode::ALL.len() as u64) as usize],
        }),
        3 => Message::ReadRequest(
            ReadRequest::new(peer, id, address, demand.bytes()).expect("in range"),
        ),
        4 => Message::RmwRequest(RmwRequest {
            peer,
            id,
            address,
            operation: RmwOperation::new(
                RmwKind::ALL[rng.below(6) as usize],
                [rng.next(), rng.next()],
            ),
        }),
        5 => Message::ReadResponse(ReadResponse { source: peer, id, index, last, data: chunk }),
        6 => Message::PostedWrite(PostedWrite { address: short, data: chunk }),
        _ => Message::AcknowledgedWrite(AcknowledgedWrite {
            source: peer,
            id,
            index,
            last,
            address: rng.next(),
            data: chunk,
        }),
    }
}

/// The units that wait, single blocks first.
#[derive(Default)]
pub(crate) struct Units {
    pub(crate) singles: VecDeque<Vec<Block>>,
    pub(crate) framed: VecDeque<Vec<Block>>,
    pub(crate) open: VecDeque<Block>,
}

impl Units {
    pub(crate) fn push(&mut self, blocks: Vec<Block>) {
        let queue = if blocks.len() == 1 { &mut self.singles } else { &mut self.framed };
        queue.push_back(blocks);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.singles.is_empty() && self.framed.is_empty() && self.open.is_empty()
    }
}

impl MemorySource for Units {
    fn head(&mut self) -> Option<Unit> {
        assert!(self.open.is_empty(), "asked for a head inside a unit");
        match (self.singles.is_empty(), self.framed.is_empty()) {
            (false, _) => Some(Unit::Single),
            (true, false) => Some(Unit::Framed),
            (true, true) => None,
        }
    }

    fn take(&mut self) -> (Block, bool) {
        if self.open.is_empty() {
            let unit = self.singles.pop_front().or_else(|| self.framed.pop_front());
            self.open.extend(unit.expect("a head was named"));
        }
        let block = self.open.pop_front().expect("units have blocks");
        (block, self.open.is_empty())
    }
}
