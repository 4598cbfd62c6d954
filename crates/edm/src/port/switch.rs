//! A switch on its links.

use std::collections::VecDeque;

use ethermem_units::{Bytes, Ps};
use ethermem_wire as wire;
use wire::{Block, DecodeError, EdmControl, Message, Opcode, OpcodeBits, SubType, SyncHeader};

use crate::config::Arbitration;
use crate::message::{MessageId, NodeId};
use crate::phy::{
    ABORT, LineBlock, LinkFaults, LinkSlot, MemorySource, RxEvent, RxExtractor, TxArbiter, TxSlot,
    Unit,
};
use crate::sched::SchedulerConfig;
use crate::switch::{Emission, Notice, Switch};

use super::convert;
use super::egress::{ChunkSlot, Egress};

/// Inputs that a switch dropped, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Chunks without a grant, or whose destination has failed.
    pub chunks_astray: u64,
    /// Chunks aborted on the way: their link failed, or their sender aborted them.
    pub chunks_aborted: u64,
    /// Requests and notifications that could not be queued.
    pub demands_refused: u64,
    /// Messages that no host sends to a switch.
    pub messages_unexpected: u64,
    /// Ports that were disabled because of what arrived by them.
    pub ports_failed: u64,
}

/// A switch. It identifies arriving messages, queues demands, issues grants, and passes granted
/// chunks on block by block. The caller handles Ethernet frames: each port has a decoder side and
/// an encoder side.
///
/// In each slot, call [`BlockSwitch::receive`] for every port, then [`BlockSwitch::schedule`], then
/// [`BlockSwitch::transmit`] for every port. In this order a chunk that is cut through never runs
/// dry.
#[derive(Debug)]
pub struct BlockSwitch {
    switch: Switch,
    ports: Vec<Port>,
    counters: SwitchCounters,
}

#[derive(Debug)]
struct Port {
    faults: LinkFaults,
    receiver: RxExtractor,
    transmitter: TxArbiter,
    ingress: Ingress,
    egress: Egress,
    /// Grants and released requests, in the order in which their circuits were opened; the node
    /// answers them in this order. Notices about peers keep their places among them.
    emissions: VecDeque<Queued>,
    /// Statuses.
    statuses: VecDeque<Block>,
    /// The rest of a released request that goes out.
    request: VecDeque<Block>,
    /// True while a chunk goes out.
    in_chunk: bool,
}

/// A message that the switch originates.
#[derive(Clone, Copy, Debug)]
enum Word {
    Emission(Emission),
    Notice(Notice),
}

/// A grant, a released request or a notice that waits to leave.
#[derive(Clone, Copy, Debug)]
struct Queued {
    /// The earliest time at which it may leave.
    at: Ps,
    /// For a request: the mark of the egress port's chunks before it. Some may be writes of its own
    /// compute node, submitted before it, and must not be overtaken. For a notice that a peer is
    /// back: chunks from before the failure must not come after it.
    behind: u64,
    word: Word,
}

/// Where the blocks of the arriving chunk go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ingress {
    /// No chunk is in progress.
    Between,
    /// The blocks go to an egress port.
    Forward(NodeId, ChunkSlot),
    /// The blocks are dropped.
    Drop,
}

/// Blocks of the longest chunk.
const CHUNK_BLOCKS_MAX: usize = 1024 / 8 + 3;

impl BlockSwitch {
    /// A switch with every port up and idle.
    #[must_use]
    pub fn new(config: &SchedulerConfig, arbitration: Arbitration) -> BlockSwitch {
        let ports = usize::from(config.ports);
        // An acknowledged chunk has one block more than a posted one. Departures are not reported
        // here: the egress asserts its own bounds.
        let config = SchedulerConfig {
            chunk_overhead_blocks: 3,
            egress_window_blocks: None,
            ..config.clone()
        };
        // There are two notices about a peer: that it is back, and that it is gone again.
        let active = 2 * ports * usize::from(config.notifications_max);
        // There is one acknowledgement for each write that can be open, and one notice of each
        // node's streams.
        let statuses =
            2 * ports + ports * (MessageId::ROWS + usize::from(config.notifications_max));
        let port = || Port {
            faults: LinkFaults::new(),
            receiver: RxExtractor::new(),
            transmitter: TxArbiter::new(arbitration),
            ingress: Ingress::Between,
            egress: Egress::new(CHUNK_BLOCKS_MAX),
            emissions: VecDeque::with_capacity(active + 2 * ports),
            statuses: VecDeque::with_capacity(statuses),
            request: VecDeque::with_capacity(8),
            in_chunk: false,
        };
        BlockSwitch {
            ports: (0..ports).map(|_| port()).collect(),
            switch: Switch::new(config),
            counters: SwitchCounters::default(),
        }
    }

    /// Dropped inputs, by cause.
    #[must_use]
    pub const fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// Number of grants whose data has not arrived yet.
    #[must_use]
    pub fn circuits_open(&self) -> u64 {
        self.switch.circuits_open()
    }

    /// Maximum number of blocks that an egress port held.
    #[must_use]
    pub fn egress_blocks_max(&self) -> usize {
        self.ports.iter().map(|port| port.egress.blocks_max()).max().unwrap_or(0)
    }

    /// True if a port is in use.
    #[must_use]
    pub fn is_up(&self, port: NodeId) -> bool {
        self.ports[usize::from(port.number())].faults.is_up()
    }

    fn port(&mut self, port: NodeId) -> &mut Port {
        &mut self.ports[usize::from(port.number())]
    }

    /// Processes what arrived at a port in this slot, `None` without a signal. Returns the block
    /// for the decoder. A port that is corrupt, faulty or dead is disabled, and all other nodes are
    /// notified.
    pub fn receive(&mut self, now: Ps, from: NodeId, arrived: Option<LineBlock>) -> Block {
        let line = match self.port(from).faults.receive(arrived) {
            LinkSlot::Up(line) => line,
            LinkSlot::Down => return Block::IDLE,
            LinkSlot::Started => {
                let BlockSwitch { switch, ports, .. } = self;
                switch.restore_port(from, |notice| tell(ports, notice));
                return Block::IDLE;
            }
            LinkSlot::Failed => {
                self.drop_port(from);
                return Block::IDLE;
            }
        };
        let block = Block::from_line(line.sync, line.payload).ok();
        self.cut_through(from, block);
        let BlockSwitch { switch, ports, counters } = self;
        let Port { receiver, ingress, .. } = &mut ports[usize::from(from.number())];
        let slot = receiver.slot(line.sync, line.payload);
        let decoder = slot.decoder;
        if !decoder.is_idle() {
            switch.on_ethernet(now, from, 1);
        }
        match slot.event {
            RxEvent::Corrupt(_) | RxEvent::RemoteFault => {
                self.fail_port(from);
                return Block::IDLE;
            }
            RxEvent::Message(message) => match chunk_bytes(&message) {
                Some(bytes) => self.end_chunk(now, from, block, bytes),
                None => match take_message(switch, counters, now, from, message) {
                    Taken::Here => {}
                    Taken::Status(to, status) => self.pass_status(from, to, status),
                    Taken::Heard(peer) => {
                        switch.on_heard(from, peer, |notice| tell(ports, notice));
                    }
                },
            },
            RxEvent::Refused(refused) => {
                counters.messages_unexpected += 1;
                self.abort_chunk(from);
                self.answer(from, &refused);
            }
            // A control block inside a chunk that completes nothing: the sender aborted the chunk.
            RxEvent::None => {
                let control = block.is_some_and(|block| block.sync() == SyncHeader::Control);
                let starts = block.is_some_and(starts_chunk);
                if control && !starts && *ingress != Ingress::Between {
                    self.abort_chunk(from);
                }
            }
        }
        decoder
    }

    /// Passes a block of a chunk on before its message is whole; the last block waits for the
    /// check.
    fn cut_through(&mut self, from: NodeId, block: Option<Block>) {
        let Some(block) = block else {
            return;
        };
        match self.port(from).ingress {
            Ingress::Between if starts_chunk(block) => {
                let to = self.switch.next_hop(from).filter(|&to| self.is_up(to));
                self.port(from).ingress = match to {
                    Some(to) => {
                        let egress = &mut self.port(to).egress;
                        let slot = egress.open();
                        egress.push(slot, block, false);
                        Ingress::Forward(to, slot)
                    }
                    None => Ingress::Drop,
                };
            }
            Ingress::Forward(to, slot) if block.sync() == SyncHeader::Data => {
                self.port(to).egress.push(slot, block, false);
            }
            _ => {}
        }
    }

    /// Ends a chunk whose last block arrived and whose checks hold.
    fn end_chunk(&mut self, now: Ps, from: NodeId, block: Option<Block>, bytes: Bytes) {
        let granted = self.switch.on_chunk(now, from, bytes);
        match std::mem::replace(&mut self.port(from).ingress, Ingress::Between) {
            Ingress::Forward(to, slot) if granted == Some(to) => {
                let block = block.expect("a message ends with a block");
                self.port(to).egress.push(slot, block, true);
            }
            Ingress::Forward(to, slot) => {
                self.counters.chunks_astray += 1;
                self.port(to).egress.push(slot, ABORT, true);
            }
            Ingress::Drop | Ingress::Between => self.counters.chunks_astray += 1,
        }
    }

    /// Answers a request whose opcode this version does not know with a status, since its sender
    /// waits for one. A node that floods the switch with such requests delays only itself.
    fn answer(&mut self, from: NodeId, refused: &DecodeError) {
        let DecodeError::Opcode { opcode, peer, id } = *refused else { return };
        let code = wire::StatusCode::BadOpcode;
        let status = Message::Status(wire::Status { opcode, peer, id, code });
        let statuses = &mut self.port(from).statuses;
        if statuses.len() < statuses.capacity() {
            statuses.extend(status.blocks());
        }
    }

    /// Aborts the arriving chunk, which will not end.
    fn abort_chunk(&mut self, from: NodeId) {
        let ingress = std::mem::replace(&mut self.port(from).ingress, Ingress::Between);
        if ingress == Ingress::Between {
            return;
        }
        self.counters.chunks_aborted += 1;
        self.switch.on_unused_grant(from);
        if let Ingress::Forward(to, slot) = ingress {
            self.port(to).egress.push(slot, ABORT, true);
        }
    }

    /// Disables a port: what depended on it is dropped, and all other ports are notified.
    pub fn fail_port(&mut self, failed: NodeId) {
        if self.is_up(failed) {
            self.port(failed).faults.fail();
            self.drop_port(failed);
        }
    }

    fn drop_port(&mut self, failed: NodeId) {
        self.abort_chunk(failed);
        self.counters.ports_failed += 1;
        let port = self.port(failed);
        port.receiver.reset();
        port.egress.clear();
        port.emissions.clear();
        port.statuses.clear();
        port.request.clear();
        port.in_chunk = false;
        for port in &mut self.ports {
            if matches!(port.ingress, Ingress::Forward(to, _) if to == failed) {
                port.ingress = Ingress::Drop;
            }
        }
        let BlockSwitch { switch, ports, .. } = self;
        switch.fail_port(failed, |notice| tell(ports, notice));
    }

    /// Lets the link of a failed port restart as soon as its other end may, too; see
    /// [`LinkFaults`]. The port is in service from then on.
    pub fn restore_port(&mut self, port: NodeId) {
        self.port(port).faults.allow_start();
    }

    /// Passes a status on, unless it may be from before a failure of one of the two nodes.
    fn pass_status(&mut self, from: NodeId, to: NodeId, status: Message<'_>) {
        if self.switch.is_joined(from, to) {
            self.port(to).statuses.extend(status.blocks());
        }
    }

    /// Runs the scheduler, after all ports received.
    pub fn schedule(&mut self, now: Ps) {
        let BlockSwitch { switch, ports, .. } = self;
        if switch.next_wake().is_some_and(|wake| wake <= now) {
            switch.step(now, |at, emission| {
                let port = &mut ports[usize::from(emission.to().number())];
                let behind = match emission {
                    Emission::Grant { .. } => 0,
                    Emission::Release { .. } => port.egress.mark(),
                };
                port.emissions.push_back(Queued { at, behind, word: Word::Emission(emission) });
            });
        }
    }

    /// The output of a port in this slot; see [`TxArbiter::slot`].
    pub fn transmit(&mut self, now: Ps, to: NodeId, from_encoder: Option<Block>) -> TxSlot {
        let Port { faults, transmitter, egress, emissions, statuses, request, in_chunk, .. } =
            &mut self.ports[usize::from(to.number())];
        if let Some(line) = faults.transmit() {
            return transmitter.slot_without(from_encoder, line);
        }
        let mut source = Source { now, egress, emissions, statuses, request, in_chunk };
        let slot = transmitter.slot(from_encoder, &mut source);
        if !*in_chunk && !slot.line.is_idle() && !is_chunk_end(slot.line) {
            self.switch.on_emitted(now, to, 1);
        }
        slot
    }
}

/// Queues a notice about a peer behind all earlier messages to its node.
fn tell(ports: &mut [Port], notice: Notice) {
    let port = &mut ports[usize::from(notice.to.number())];
    let behind = port.egress.mark();
    port.emissions.push_back(Queued { at: Ps::ZERO, behind, word: Word::Notice(notice) });
}

/// Number of data bytes of a chunk; `None` for every other message.
fn chunk_bytes(message: &Message<'_>) -> Option<Bytes> {
    let data = match message {
        Message::ReadResponse(chunk) => chunk.data,
        Message::PostedWrite(chunk) => chunk.data,
        Message::AcknowledgedWrite(chunk) => chunk.data,
        _ => return None,
    };
    Some(Bytes(data.bytes().len() as u64))
}

/// What the switch still has to do with a message.
enum Taken {
    Here,
    /// A status that must be passed on to a node.
    Status(NodeId, Message<'static>),
    /// The sender has dropped what it had with this peer.
    Heard(NodeId),
}

/// A status on its way from one node to another.
fn pass(from: NodeId, status: wire::Status) -> Taken {
    Taken::Status(status.peer, Message::Status(wire::Status { peer: from, ..status }))
}

/// Processes a message other than a chunk.
fn take_message(
    switch: &mut Switch,
    counters: &mut SwitchCounters,
    now: Ps,
    from: NodeId,
    message: Message<'_>,
) -> Taken {
    let blocks = message.blocks().len() as u32;
    let queued = match message {
        Message::Notification(notification) => {
            let notification = convert::from_notification(&notification);
            switch.on_notification(now, from, notification)
        }
        Message::ReadRequest(request) => {
            switch.on_request(now, from, convert::read_request(&request), blocks)
        }
        Message::RmwRequest(request) => {
            switch.on_request(now, from, convert::rmw_request(&request), blocks)
        }
        Message::Status(status) if status.opcode.bits() == convert::PEER_DOWN_OPCODE => {
            match status.code {
                wire::StatusCode::Null => switch.on_unused_grant(from),
                wire::StatusCode::LinkDisabled => return Taken::Heard(status.peer),
                convert::STREAMS => return pass(from, status),
                _ => counters.messages_unexpected += 1,
            }
            return Taken::Here;
        }
        Message::Status(status) => return pass(from, status),
        _ => {
            counters.messages_unexpected += 1;
            return Taken::Here;
        }
    };
    counters.demands_refused += u64::from(queued.is_err());
    Taken::Here
}

/// True if a block is the /MS/ of a chunk.
fn starts_chunk(block: Block) -> bool {
    EdmControl::decode(block).is_ok_and(|control| {
        let opcode = Opcode::try_from(OpcodeBits::from_low_bits(control.content() as u8));
        control.sub_type() == SubType::Start
            && matches!(
                opcode,
                Ok(Opcode::ReadResponse | Opcode::PostedWrite | Opcode::AcknowledgedWrite)
            )
    })
}

fn is_chunk_end(block: Block) -> bool {
    block == ABORT
        || EdmControl::decode(block).is_ok_and(|control| control.sub_type() == SubType::Terminate)
}

/// The memory side of a switch port's transmitter. Statuses go first, then grants, released
/// requests and notices, then chunks.
struct Source<'a> {
    now: Ps,
    egress: &'a mut Egress,
    emissions: &'a mut VecDeque<Queued>,
    statuses: &'a mut VecDeque<Block>,
    request: &'a mut VecDeque<Block>,
    in_chunk: &'a mut bool,
}

impl Source<'_> {
    /// The next queued word, if it may leave now.
    fn due(&self) -> Option<Word> {
        let Queued { at, behind, word } = *self.emissions.front()?;
        (at <= self.now && self.egress.has_passed(behind)).then_some(word)
    }

    /// Turns the next word, which is due, into blocks.
    fn load(&mut self) {
        if let Some(Queued { word, .. }) = self.emissions.pop_front() {
            let message = match word {
                Word::Emission(Emission::Grant { grant, .. }) => convert::grant(&grant),
                Word::Emission(Emission::Release { request, .. }) => {
                    convert::request(&request).expect("it came as a request of this form")
                }
                Word::Notice(Notice { peer, joined, .. }) => {
                    let gone = wire::StatusCode::LinkDisabled;
                    let code = if joined { wire::StatusCode::Ok } else { gone };
                    convert::link_status(peer, MessageId(0), code)
                }
            };
            self.request.extend(message.blocks());
        }
    }
}

impl MemorySource for Source<'_> {
    fn head(&mut self) -> Option<Unit> {
        if !self.statuses.is_empty() {
            return Some(Unit::Single);
        }
        match self.due() {
            Some(Word::Emission(Emission::Release { .. })) => Some(Unit::Framed),
            Some(_) => Some(Unit::Single),
            None => self.egress.is_waiting().then_some(Unit::Framed),
        }
    }

    fn take(&mut self) -> (Block, bool) {
        if !*self.in_chunk && self.request.is_empty() {
            if let Some(status) = self.statuses.pop_front() {
                return (status, true);
            }
            if self.due().is_some() {
                self.load();
            }
        }
        if let Some(block) = self.request.pop_front() {
            return (block, self.request.is_empty());
        }
        let (block, last) = self.egress.pop();
        *self.in_chunk = !last;
        (block, last)
    }
}
