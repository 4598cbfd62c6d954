//! A switch on its links.

use std::collections::VecDeque;

use ethermem_units::{Bytes, Ps};
use ethermem_wire as wire;
use wire::{Block, EdmControl, Message, Opcode, OpcodeBits, SubType, SyncHeader};

use crate::config::Arbitration;
use crate::message::{MessageId, NodeId};
use crate::phy::{
    ABORT, LineBlock, MemorySource, REMOTE_FAULT, RxEvent, RxExtractor, TxArbiter, TxSlot, Unit,
};
use crate::sched::SchedulerConfig;
use crate::switch::{Emission, Switch};

use super::convert;
use super::egress::{ChunkSlot, Egress};

/// What a switch dropped, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Chunks without a grant, or whose destination has failed.
    pub chunks_astray: u64,
    /// Chunks given up on the way: their link failed or their sender gave up.
    pub chunks_aborted: u64,
    /// Requests and notifications that could not be queued.
    pub demands_refused: u64,
    /// Messages that no host sends to a switch.
    pub messages_unexpected: u64,
    /// Ports that were disabled for what came by them.
    pub ports_failed: u64,
}

/// A switch: identifies what comes, queues demands, grants, and passes granted chunks on block by
/// block. Ethernet frames are the caller's: each port has a decoder side and an encoder side.
///
/// In each slot, call [`BlockSwitch::receive`] for every port, then [`BlockSwitch::schedule`], then
/// [`BlockSwitch::transmit`] for every port: so a chunk that leaves as it comes never runs dry.
#[derive(Debug)]
pub struct BlockSwitch {
    switch: Switch,
    ports: Vec<Port>,
    counters: SwitchCounters,
}

#[derive(Debug)]
struct Port {
    up: bool,
    receiver: RxExtractor,
    transmitter: TxArbiter,
    ingress: Ingress,
    egress: Egress,
    /// Grants and released requests, in the order in which their circuits were opened: the node
    /// answers them in the order in which they come.
    emissions: VecDeque<Queued>,
    /// Statuses.
    statuses: VecDeque<Block>,
    /// What is left of a released request that goes out.
    request: VecDeque<Block>,
    /// A chunk goes out.
    in_chunk: bool,
}

/// A grant or a released request that waits to leave.
#[derive(Clone, Copy, Debug)]
struct Queued {
    /// When it may leave at the earliest.
    at: Ps,
    /// For a request: the chunks of the egress port before it. Some may be writes of its own
    /// compute node, submitted before it, and are not to be overtaken.
    behind: u64,
    emission: Emission,
}

/// Where the blocks of the chunk that comes in go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ingress {
    /// No chunk is under way.
    Between,
    /// To an egress port.
    Forward(NodeId, ChunkSlot),
    /// Nowhere.
    Drop,
}

/// Blocks of the longest chunk.
const CHUNK_BLOCKS_MAX: usize = 1024 / 8 + 3;

impl BlockSwitch {
    /// A switch with every port up and idle.
    #[must_use]
    pub fn new(config: &SchedulerConfig, arbitration: Arbitration) -> BlockSwitch {
        let ports = usize::from(config.ports);
        // An acknowledged chunk has a block more than a posted one.
        let config = SchedulerConfig { chunk_overhead_blocks: 3, ..config.clone() };
        let active = 2 * ports * usize::from(config.notifications_max);
        // An acknowledgement for each write that can be open, and word of every port.
        let statuses = ports * (MessageId::ROWS + usize::from(config.notifications_max) + 2);
        let port = || Port {
            up: true,
            receiver: RxExtractor::new(),
            transmitter: TxArbiter::new(arbitration),
            ingress: Ingress::Between,
            egress: Egress::new(CHUNK_BLOCKS_MAX),
            emissions: VecDeque::with_capacity(active),
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

    /// What was dropped, by cause.
    #[must_use]
    pub const fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// Most blocks that an egress port has held.
    #[must_use]
    pub fn egress_blocks_max(&self) -> usize {
        self.ports.iter().map(|port| port.egress.blocks_max()).max().unwrap_or(0)
    }

    /// Whether a port is in use.
    #[must_use]
    pub fn is_up(&self, port: NodeId) -> bool {
        self.ports[usize::from(port.number())].up
    }

    fn port(&mut self, port: NodeId) -> &mut Port {
        &mut self.ports[usize::from(port.number())]
    }

    /// What arrived at a port in this slot, `None` without a signal. Gives the block for the
    /// decoder. A port that is corrupt, faulty or dead is disabled, and all others hear of it.
    pub fn receive(&mut self, now: Ps, from: NodeId, arrived: Option<LineBlock>) -> Block {
        if !self.port(from).up {
            return Block::IDLE;
        }
        let Some(line) = arrived else {
            self.fail_port(from);
            return Block::IDLE;
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
                Some(bytes) => self.end_chunk(from, block, bytes),
                None => {
                    let status = take_message(switch, counters, now, from, message);
                    if let Some((to, status)) = status {
                        self.send_status(to, status);
                    }
                }
            },
            RxEvent::Refused(_) => {
                counters.messages_unexpected += 1;
                self.abort_chunk(from);
            }
            // A control block in a chunk that completes nothing: its sender gave up.
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

    /// Passes a block of a chunk on before its message is whole; its last one waits for the check.
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

    /// The last block of a chunk came, and its checks hold.
    fn end_chunk(&mut self, from: NodeId, block: Option<Block>, bytes: Bytes) {
        let granted = self.switch.on_chunk(from, bytes);
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

    /// The chunk that comes in will not end.
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

    /// Disables a port: what hung on it is dropped, and all other ports are told.
    pub fn fail_port(&mut self, failed: NodeId) {
        if !self.port(failed).up {
            return;
        }
        self.abort_chunk(failed);
        self.counters.ports_failed += 1;
        let port = self.port(failed);
        port.up = false;
        port.receiver.reset();
        port.transmitter.abandon_unit();
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
        self.switch.fail_port(failed, |_| {});
        self.tell_all(failed, wire::StatusCode::LinkDisabled);
    }

    /// Puts a repaired port back into service. Its node must have heard of the failure, and is to
    /// be restored after this: the others are told before anything of it can reach them.
    pub fn restore_port(&mut self, port: NodeId) {
        if std::mem::replace(&mut self.port(port).up, true) {
            return;
        }
        self.switch.restore_port(port);
        self.tell_all(port, wire::StatusCode::Ok);
        for other in (0..self.ports.len() as u16).map(NodeId::at).filter(|&other| other != port) {
            if !self.is_up(other) {
                let gone = wire::StatusCode::LinkDisabled;
                self.send_status(port, convert::link_status(other, MessageId(0), gone));
            }
        }
    }

    fn tell_all(&mut self, about: NodeId, code: wire::StatusCode) {
        let status = convert::link_status(about, MessageId(0), code);
        for to in (0..self.ports.len() as u16).map(NodeId::at).filter(|&to| to != about) {
            self.send_status(to, status);
        }
    }

    fn send_status(&mut self, to: NodeId, status: Message<'_>) {
        if let Some(port) = self.ports.get_mut(usize::from(to.number())).filter(|port| port.up) {
            port.statuses.extend(status.blocks());
        }
    }

    /// Lets the scheduler work, after all ports received.
    pub fn schedule(&mut self, now: Ps) {
        let BlockSwitch { switch, ports, .. } = self;
        if switch.next_wake().is_some_and(|wake| wake <= now) {
            switch.step(now, |at, emission| {
                let port = &mut ports[usize::from(emission.to().number())];
                let behind = match emission {
                    Emission::Grant { .. } => 0,
                    Emission::Release { .. } => port.egress.mark(),
                };
                port.emissions.push_back(Queued { at, behind, emission });
            });
        }
    }

    /// What leaves by a port in this slot; see [`TxArbiter::slot`].
    pub fn transmit(&mut self, now: Ps, to: NodeId, from_encoder: Option<Block>) -> TxSlot {
        let Port { up, transmitter, egress, emissions, statuses, request, in_chunk, .. } =
            &mut self.ports[usize::from(to.number())];
        let mut source = Source { now, egress, emissions, statuses, request, in_chunk };
        let slot = transmitter.slot(from_encoder, &mut source);
        if !*up {
            return TxSlot { line: REMOTE_FAULT, ..slot };
        }
        if !*in_chunk && !slot.line.is_idle() && !is_chunk_end(slot.line) {
            self.switch.on_emitted(now, to, 1);
        }
        slot
    }
}

/// Data bytes of a chunk; `None` for every other message.
fn chunk_bytes(message: &Message<'_>) -> Option<Bytes> {
    let data = match message {
        Message::ReadResponse(chunk) => chunk.data,
        Message::PostedWrite(chunk) => chunk.data,
        Message::AcknowledgedWrite(chunk) => chunk.data,
        _ => return None,
    };
    Some(Bytes(data.bytes().len() as u64))
}

/// Takes a message other than a chunk; gives the status that is to be passed on, and to whom.
fn take_message(
    switch: &mut Switch,
    counters: &mut SwitchCounters,
    now: Ps,
    from: NodeId,
    message: Message<'_>,
) -> Option<(NodeId, Message<'static>)> {
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
            if status.code == wire::StatusCode::Null {
                switch.on_unused_grant(from);
            }
            return None;
        }
        Message::Status(status) => {
            let to = status.peer;
            let status = wire::Status { peer: from, ..status };
            return Some((to, Message::Status(status)));
        }
        _ => {
            counters.messages_unexpected += 1;
            return None;
        }
    };
    counters.demands_refused += u64::from(queued.is_err());
    None
}

/// Whether a block is the /MS/ of a chunk.
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

/// The memory side of a switch port's transmitter: statuses, then grants and released requests,
/// then chunks.
struct Source<'a> {
    now: Ps,
    egress: &'a mut Egress,
    emissions: &'a mut VecDeque<Queued>,
    statuses: &'a mut VecDeque<Block>,
    request: &'a mut VecDeque<Block>,
    in_chunk: &'a mut bool,
}

impl Source<'_> {
    /// The next emission, if it may leave now.
    fn due(&self) -> Option<Emission> {
        let Queued { at, behind, emission } = *self.emissions.front()?;
        (at <= self.now && self.egress.has_passed(behind)).then_some(emission)
    }

    /// Takes the next emission, whose time has come, as blocks.
    fn load(&mut self) {
        if let Some(Queued { emission, .. }) = self.emissions.pop_front() {
            let message = match emission {
                Emission::Grant { grant, .. } => convert::grant(&grant),
                Emission::Release { request, .. } => {
                    convert::request(&request).expect("it came as a request of this form")
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
            Some(Emission::Grant { .. }) => Some(Unit::Single),
            Some(Emission::Release { .. }) => Some(Unit::Framed),
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
