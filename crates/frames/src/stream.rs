//! The kinds of TCP on the packet network: one flow per message, one acknowledgement per packet.
//!
//! Connections are open: there is no handshake. A request is acknowledged by its response. A host's
//! flows use their interface in turn, one packet each, as under Linux's `fq` with small queues. A
//! packet that a window allows waits in its flow, and never in front of another flow's packets.
//! Acknowledgements are flows of their own there, with one packet each.

use std::collections::VecDeque;

use ethermem_engine::config::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::topology::{Layout, PortKind};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, NodeIndex};

use super::reno::{RenoConfig, Sender};
use super::{DropTail, End, FlowId, Net, Outgoing, Packet, Path, Purpose, Received, Transport};

/// The differences between kinds of TCP: parameters, queues, and the reaction to marks.
pub trait Congestion: Sized + Send + 'static {
    /// The state of a flow.
    type State: Copy + Default + Send;
    /// The parameters: see [`Transport::Parameters`].
    type Parameters: Parameters;

    /// A kind of TCP with the parameters of a configuration.
    fn new(config: &FabricConfig) -> Self;

    /// The parameters of the sender.
    fn reno(&self) -> &RenoConfig;

    /// Bytes of headers: see [`Transport::header_bytes`].
    fn header_bytes(config: &FabricConfig) -> Bytes;

    /// Time of a host's stack: see [`Transport::stack`].
    fn stack() -> Ps {
        Ps::ZERO
    }

    /// The queue of a port: see [`Transport::queue`].
    fn queue(&self, kind: PortKind) -> DropTail;

    /// The state of a flow that begins.
    fn begin(&self, sender: &Sender) -> Self::State;

    /// Processes an acknowledgement of `newly` packets, which says whether a packet was `marked`.
    /// Returns true if the window was cut, so that it does not grow.
    fn acknowledged(
        &self,
        state: &mut Self::State,
        sender: &mut Sender,
        newly: u32,
        marked: bool,
    ) -> bool;

    /// Handles a timeout: all packets in flight are considered lost.
    fn timed_out(&self, _state: &mut Self::State, _sender: &Sender) {}
}

/// The transport of a kind of TCP.
pub struct Stream<C: Congestion> {
    congestion: C,
    turns: Vec<Turns>,
    /// Time of a memory node before it answers a request.
    memory_access: Ps,
    /// Data bytes of a round trip, after which slow start has filled the path.
    ramp: Bytes,
}

/// An item that waits for the interface of a node.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// A flow whose window allows it to send.
    Flow(FlowId),
    /// An acknowledgement for a flow.
    Answer(FlowId, Header),
}

impl Turn {
    fn is_of(&self, flow: FlowId) -> bool {
        let (Turn::Flow(own) | Turn::Answer(own, _)) = *self;
        own == flow
    }
}

/// The items that a node sends in turn.
#[derive(Debug, Default)]
struct Turns {
    waiting: VecDeque<Turn>,
    /// The flow whose packet is at the interface; it waits again once that has left.
    sending: Option<FlowId>,
    woken: bool,
}

impl Turns {
    fn forget(&mut self, flow: FlowId) {
        self.waiting.retain(|turn| !turn.is_of(flow));
        self.sending = self.sending.filter(|&own| own != flow);
    }
}

/// Both ends of a flow.
#[derive(Debug, Default)]
pub struct Ends<S> {
    sender: Sender,
    /// True if the flow waits for its turn or has it.
    waiting: bool,
    congestion: S,
    received: Received,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Header {
    /// The packet at this position.
    Data(u32),
    /// All packets before this position have arrived; the flag tells if the acknowledged packet was
    /// marked.
    Acknowledgement(u32, bool),
}

impl<C: Congestion> Stream<C> {
    /// Queues a flow for its turn, if its window allows it to send.
    fn pump(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        let opened = net.flow_mut(flow);
        let node = opened.source;
        if !opened.state.waiting && opened.state.sender.may_send() {
            opened.state.waiting = true;
            self.turns[usize::from(node)].waiting.push_back(Turn::Flow(flow));
        }
        self.take_turns(net, node);
    }

    /// Gives the interface of a node its next packet, once it has sent all earlier ones.
    fn take_turns(&mut self, net: &mut Net<'_, Self>, node: NodeIndex) {
        let now = net.now();
        loop {
            let turns = &mut self.turns[usize::from(node)];
            if turns.waiting.is_empty() && turns.sending.is_none() {
                return;
            }
            let free = net.interface_free(node);
            if free > now {
                if !std::mem::replace(&mut turns.woken, true) {
                    net.wake(End::Source, node, free);
                }
                return;
            }
            turns.waiting.extend(turns.sending.take().map(Turn::Flow));
            let flow = match turns.waiting.pop_front() {
                None => return,
                Some(Turn::Flow(flow)) => flow,
                Some(Turn::Answer(flow, header)) => {
                    let from = End::Destination;
                    net.send(flow, Outgoing { from, data_bytes: 0, rank: 0, header });
                    continue;
                }
            };
            let state = &mut net.flow_mut(flow).state;
            let taken = state.sender.take(now);
            state.waiting = state.sender.may_send();
            turns.sending = state.waiting.then_some(flow);
            let Some((position, again)) = taken else { continue };
            net.count_again(u64::from(again), 0);
            self.transmit(net, flow, position);
        }
    }

    fn settle(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        let opened = net.flow_mut(flow);
        let (source, destination) = (opened.source, opened.destination);
        if std::mem::take(&mut opened.state.waiting) {
            self.turns[usize::from(source)].forget(flow);
        }
        // All packets are acknowledged: further answers would name a flow that may be reused by
        // then.
        self.turns[usize::from(destination)].forget(flow);
        net.settle(flow);
    }

    fn transmit(&mut self, net: &mut Net<'_, Self>, flow: FlowId, position: u32) {
        let data_bytes = net.data_bytes(flow, position);
        let header = Header::Data(position);
        net.send(flow, Outgoing { from: End::Source, data_bytes, rank: 0, header });
    }

    fn rearm(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        let opened = net.flow(flow);
        let mut timeout = opened.state.sender.timeout(self.congestion.reno());
        if opened.purpose != Purpose::Data {
            timeout += self.memory_access;
        }
        let deadline = net.now() + timeout;
        net.arm(flow, deadline);
    }

    fn on_data(&mut self, net: &mut Net<'_, Self>, packet: &Packet<Header>, position: u32) {
        let flow = net.flow_mut(packet.flow);
        let (purpose, packets) = (flow.purpose, flow.packets);
        let done = flow.state.sender.done();
        let received = &mut flow.state.received;
        let complete = received.insert(position) && received.count() == packets;
        let ack = received.first_missing();
        if complete {
            net.deliver(packet.flow);
        }
        // A settled flow may be reused before an answer has its turn.
        if purpose == Purpose::Data && !done {
            let header = Header::Acknowledgement(ack, packet.marked);
            let node = packet.destination;
            self.turns[usize::from(node)].waiting.push_back(Turn::Answer(packet.flow, header));
            self.take_turns(net, node);
        }
    }

    fn on_ack(&mut self, net: &mut Net<'_, Self>, flow: FlowId, ack: u32, marked: bool) {
        let now = net.now();
        let ends = &mut net.flow_mut(flow).state;
        if ends.sender.done() {
            return;
        }
        let used = ends.sender.uses_window();
        let progress = ends.sender.acknowledge(ack, now, self.congestion.reno());
        let cut = self.congestion.acknowledged(
            &mut ends.congestion,
            &mut ends.sender,
            progress.newly,
            marked,
        );
        if progress.grow && used && !cut {
            ends.sender.grow();
        }
        if ends.sender.done() {
            return self.settle(net, flow);
        }
        if let Some(position) = progress.resend {
            net.count_again(1, 0);
            self.transmit(net, flow, position);
        }
        if progress.newly > 0 || progress.resend.is_some() {
            self.rearm(net, flow);
        }
        self.pump(net, flow);
    }
}

impl<C: Congestion> Transport for Stream<C> {
    type Flow = Ends<C::State>;
    type Header = Header;
    type Queue = DropTail;
    type Parameters = C::Parameters;

    fn new(config: &FabricConfig, layout: &Layout) -> Stream<C> {
        // Windows that double from one packet have reached the path's capacity by then.
        let ramp = Bytes(2 * Path::of::<Self>(config, layout).data.0);
        let turns = (0..config.nodes).map(|_| Turns::default()).collect();
        let memory_access = config.memory_access;
        Stream { congestion: C::new(config), turns, memory_access, ramp }
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        C::header_bytes(config)
    }

    fn stack() -> Ps {
        C::stack()
    }

    fn queue(&self, kind: PortKind, _seed: u64) -> DropTail {
        self.congestion.queue(kind)
    }

    fn start(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        let opened = net.flow_mut(flow);
        let sender = Sender::new(opened.packets, self.congestion.reno());
        opened.state.received.reset(opened.packets);
        opened.state.congestion = self.congestion.begin(&sender);
        opened.state.sender = sender;
        self.pump(net, flow);
        self.rearm(net, flow);
    }

    fn on_packet(&mut self, net: &mut Net<'_, Self>, packet: &Packet<Header>) {
        match packet.header {
            Header::Data(position) => self.on_data(net, packet, position),
            Header::Acknowledgement(ack, marked) => self.on_ack(net, packet.flow, ack, marked),
        }
    }

    fn on_timer(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        let ends = &mut net.flow_mut(flow).state;
        // A flow that waits for its turn has no unanswered packet.
        if ends.sender.in_flight() > 0 {
            ends.sender.time_out();
            self.congestion.timed_out(&mut ends.congestion, &ends.sender);
            net.count_again(0, 1);
            self.pump(net, flow);
        }
        self.rearm(net, flow);
    }

    fn on_wake(&mut self, net: &mut Net<'_, Self>, _end: End, node: NodeIndex) {
        self.turns[usize::from(node)].woken = false;
        self.take_turns(net, node);
    }

    fn on_answered(&mut self, net: &mut Net<'_, Self>, request: FlowId) {
        self.settle(net, request);
    }

    fn feedback_packets(_config: &FabricConfig, _kind: Kind, packets: u64) -> u64 {
        packets
    }

    fn steady_after(&self) -> Bytes {
        self.ramp
    }
}
