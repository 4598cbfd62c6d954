//! Random messages of the nodes.

use std::collections::{BTreeMap, VecDeque};

use ethermem_edm::phy::ABORT;
use ethermem_units::Bytes;
use ethermem_wire::{
    AcknowledgedWrite, Address, Address40, Block, ChunkData, ChunkIndex, EdmControl, Length,
    Message, MessageId, NodeId, Notification, OpcodeBits, PostedWrite, ReadRequest, ReadResponse,
    RmwKind, RmwOperation, RmwRequest, Status, StatusCode, WriteKind,
};

use crate::rng::Rng;

/// Maximum demands per pair and flow: X. The switch refuses demands beyond it, and the time of a
/// refusal depends on the latency of the notification queue.
const DEMANDS_MAX: usize = 3;

/// The receiver's verdict at the end of a message.
#[derive(Clone, Copy)]
pub(crate) enum Ending {
    Sound = 0,
    Refused = 1,
    Aborted = 2,
}

/// The blocks of a message on their way to the switch.
pub(crate) type Unit = (VecDeque<Block>, Ending);

pub(crate) fn unit(message: &Message<'_>) -> Unit {
    (message.blocks().collect(), Ending::Sound)
}

pub(crate) fn status(opcode: u8, peer: NodeId, id: MessageId, code: StatusCode) -> Unit {
    let opcode = OpcodeBits::from_low_bits(opcode);
    unit(&Message::Status(Status { opcode, peer, id, code }))
}

/// A status that answers no message.
pub(crate) fn link_status(peer: NodeId, code: StatusCode) -> Unit {
    status(0, peer, MessageId(0), code)
}

/// Sender, receiver, and whether the messages are responses.
pub(crate) type Stream = (NodeId, NodeId, bool);

pub(crate) struct Draws {
    pub(crate) rng: Rng,
    pub(crate) ports: u16,
    /// Bytes of demands that are not fully granted, oldest first.
    pub(crate) open: BTreeMap<Stream, VecDeque<u64>>,
    /// A port to which no node sends demands.
    pub(crate) shunned: Option<NodeId>,
}

impl Draws {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.rng.below(end)
    }

    fn peer(&mut self, id: NodeId) -> NodeId {
        let step = 1 + self.below(u64::from(self.ports) - 1) as u16;
        NodeId::at((id.number() + step) % self.ports)
    }

    /// Returns whether a demand may be sent; if so, it is recorded as open.
    fn demands(&mut self, stream: Stream, bytes: u64) -> bool {
        let shunned = self.shunned.is_some_and(|port| stream.0 == port || stream.1 == port);
        let open = self.open.entry(stream).or_default();
        let may = !shunned && open.len() < DEMANDS_MAX;
        open.extend(may.then_some(bytes));
        may
    }

    pub(crate) fn granted(&mut self, from: NodeId, to: NodeId, response: bool, bytes: u64) {
        // Demands of a failed port are forgotten, but its last grants may still arrive.
        let Some(open) = self.open.get_mut(&(from, to, response)) else { return };
        let Some(oldest) = open.front_mut() else { return };
        *oldest = oldest.saturating_sub(bytes);
        if *oldest == 0 {
            open.pop_front();
        }
    }

    /// Draws the answer to a grant: one chunk, two chunks that share the grant, an aborted chunk,
    /// or none.
    pub(crate) fn answer(
        &mut self,
        from: NodeId,
        to: NodeId,
        id: MessageId,
        response: bool,
        bytes: u64,
    ) -> Vec<Unit> {
        let unused = || link_status(to, StatusCode::Null);
        match self.below(40) {
            0 => vec![unused()],
            1 => {
                let (mut blocks, _) = self.chunk(from, id, response, bytes);
                blocks.truncate(1 + self.below(blocks.len() as u64 - 1) as usize);
                blocks.push_back(ABORT);
                vec![(blocks, Ending::Aborted)]
            }
            2 if bytes > 1 => {
                let part = 1 + self.below(bytes - 1);
                vec![
                    self.chunk(from, id, response, part),
                    self.chunk(from, id, response, bytes - part),
                ]
            }
            // A chunk that exceeds its grant: the switch drops it, and the grant is still open.
            3 => vec![self.chunk(from, id, response, bytes + 1), unused()],
            _ => vec![self.chunk(from, id, response, bytes)],
        }
    }

    fn chunk(&mut self, from: NodeId, id: MessageId, response: bool, bytes: u64) -> Unit {
        let data: Vec<u8> = (0..bytes).map(|_| self.below(256) as u8).collect();
        let data = ChunkData::new(&data).expect("a grant's");
        let index = ChunkIndex::new(self.below(1 << 15) as u16).expect("15 bits");
        let last = self.below(2) == 0;
        let source = from;
        unit(&match (response, self.below(2)) {
            (true, _) => Message::ReadResponse(ReadResponse { source, id, index, last, data }),
            (_, 0) => Message::PostedWrite(PostedWrite { address: short(77), data }),
            _ => Message::AcknowledgedWrite(AcknowledgedWrite {
                source,
                id,
                index,
                last,
                address: 1 << 50,
                data,
            }),
        })
    }

    /// Draws a message that no grant calls for.
    pub(crate) fn ask(&mut self, id: NodeId) -> Option<Unit> {
        let peer = self.peer(id);
        let of = MessageId::new(false, self.below(16) as u8, self.below(8) as u8);
        let bytes = Bytes([1, 8, 64, 100, 300, 1 + self.below(900)][self.below(6) as usize]);
        let long = self.below(3) == 0;
        let address = if long { Address::Long(1 << 45) } else { Address::Short(short(64)) };
        Some(match self.below(20) {
            0..8 if self.demands((id, peer, false), bytes.0) => {
                let id = MessageId::new(true, of.generation(), of.row() as u8);
                let kind = WriteKind::Posted;
                let demand = Length::covering(bytes).expect("short");
                let destination = peer;
                unit(&Message::Notification(Notification { destination, id, demand, kind }))
            }
            8..14 if self.demands((peer, id, true), bytes.0) => {
                let read = ReadRequest::new(peer, of, address, bytes).expect("a read");
                unit(&Message::ReadRequest(read))
            }
            14..17 if self.demands((peer, id, true), 8) => unit(&self.modify(peer, of, address)),
            17 => status(1, peer, of, StatusCode::BadAddress),
            18 => link_status(peer, StatusCode::Incomplete),
            19 => self.unknown(peer, of),
            _ => return None,
        })
    }

    /// A request of a later version.
    fn unknown(&mut self, peer: NodeId, id: MessageId) -> Unit {
        let read = ReadRequest::new(peer, id, Address::Short(short(64)), Bytes(8));
        let (mut blocks, _) = unit(&Message::ReadRequest(read.expect("a read")));
        let start = EdmControl::decode(blocks[0]).expect("/MS/");
        let content = start.content() & !0xf | [5, 6, 14][self.below(3) as usize];
        blocks[0] = EdmControl::new(start.sub_type(), content).encode();
        (blocks, Ending::Refused)
    }

    fn modify(&mut self, peer: NodeId, id: MessageId, address: Address) -> Message<'static> {
        let kind = RmwKind::ALL[self.below(RmwKind::ALL.len() as u64) as usize];
        let second = if kind == RmwKind::CompareAndSwap { self.rng.next() } else { 0 };
        let operation = RmwOperation::new(kind, [self.rng.next(), second]);
        Message::RmwRequest(RmwRequest { peer, id, address, operation })
    }
}

fn short(number: u64) -> Address40 {
    Address40::new(number).expect("40 bits")
}
