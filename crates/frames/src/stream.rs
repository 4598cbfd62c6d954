//! The kinds of TCP on the packet network.
//!
//! Every two nodes have connections that outlive messages, whose two directions are standing flows,
//! or each message is a flow ([`ConnectionConfig`]). Connections are open: there is no handshake. A
//! connection's packet carries an acknowledgement of the other direction. Where each message is a
//! flow, each packet has an acknowledgement, and a response acknowledges its request.
//!
//! A host's flows use their interface in turn, one packet each, as under Linux's `fq` with small
//! queues. A packet that a window allows waits in its flow, and never in front of another flow's
//! packets. An acknowledgement takes a turn like a flow with one packet.

mod connections;

use std::collections::{BTreeMap, VecDeque};

use ethermem_engine::config::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::topology::{Layout, PortKind};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, NodeIndex};

use super::lasting::Lasting;
use super::reno::{RenoConfig, Sender};
use super::{
    ConnectionConfig, DropTail, End, FlowId, Net, Outgoing, Packet, Path, Purpose, Received,
    Transport,
};
use connections::Directions;

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

    /// The kind of its connections.
    fn connections(config: &FabricConfig) -> ConnectionConfig;

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
    /// The parameters of every sender.
    reno: RenoConfig,
    connections: ConnectionConfig,
    /// The directions of connections by source and destination.
    lasting: BTreeMap<(NodeIndex, NodeIndex), Directions>,
    memory_header: Bytes,
    /// The messages of which the packet being sent has new data.
    carried: Vec<FlowId>,
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
    /// An acknowledgement of all that has arrived in one direction of a connection by then.
    Owed(FlowId),
}

impl Turn {
    fn is_of(&self, flow: FlowId) -> bool {
        let (Turn::Flow(own) | Turn::Answer(own, _) | Turn::Owed(own)) = *self;
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
    /// The direction of a connection that carries the message.
    carrier: FlowId,
    /// The stream of a connection's direction; `None` for a message.
    lasting: Option<Box<Lasting>>,
}

impl<S> Ends<S> {
    /// True if the window allows a packet, and there is something to send.
    fn may_send(&self) -> bool {
        self.sender.may_send() || (self.sender.has_room() && self.has_unsent())
    }

    fn has_unsent(&self) -> bool {
        self.lasting.as_ref().is_some_and(|stream| stream.has_unsent())
    }

    /// The stream of a connection's direction.
    fn stream(&mut self) -> &mut Lasting {
        self.lasting.as_mut().expect("a direction of a connection has a stream")
    }
}

/// The header of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Header {
    /// The packet at this position.
    Data(u32),
    /// All packets before this position have arrived; the flag tells if the acknowledged packet was
    /// marked.
    Acknowledgement(u32, bool),
    /// The packet at this position of a connection's direction, with an acknowledgement of the
    /// other direction as above.
    Segment(u32, u32, bool),
}

impl<C: Congestion> Stream<C> {
    /// Queues a flow for its turn, if its window allows it to send.
    fn pump(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        let opened = net.flow_mut(flow);
        let node = opened.source;
        if !opened.state.waiting && opened.state.may_send() {
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
                    Self::acknowledge(net, flow, header);
                    continue;
                }
                Some(Turn::Owed(flow)) => {
                    self.acknowledge_owed(net, flow);
                    continue;
                }
            };
            self.take_turn(net, flow);
        }
    }

    /// Sends the next packet of a flow that has its turn.
    fn take_turn(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        let now = net.now();
        let bytes_max = net.stream_max();
        let opened = net.flow_mut(flow);
        let (node, state) = (opened.source, &mut opened.state);
        self.carried.clear();
        if !state.sender.may_send() && state.sender.has_room() && state.has_unsent() {
            let header_bytes = self.memory_header.0;
            state.stream().pack(bytes_max, header_bytes, &mut self.carried);
            state.sender.append();
        }
        let taken = state.sender.take(now);
        state.waiting = state.may_send();
        self.turns[usize::from(node)].sending = state.waiting.then_some(flow);
        let Some((position, again)) = taken else { return };
        net.count_again(u64::from(again), 0);
        if net.flow(flow).is_standing() {
            self.transmit_segment(net, flow, position);
        } else {
            self.transmit(net, flow, position);
        }
    }

    fn acknowledge(net: &mut Net<'_, Self>, flow: FlowId, header: Header) {
        let from = End::Destination;
        net.send(flow, Outgoing { from, data_bytes: 0, rank: 0, header });
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
        let mut timeout = opened.state.sender.timeout(&self.reno);
        if opened.is_standing() {
            let idle = opened.state.sender.in_flight() == 0;
            let deadline = if idle { Ps::MAX } else { net.now() + timeout };
            return Self::arm_end(net, flow, End::Source, deadline);
        }
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
        let progress = ends.sender.acknowledge(ack, now, &self.reno);
        let cut = self.congestion.acknowledged(
            &mut ends.congestion,
            &mut ends.sender,
            progress.newly,
            marked,
        );
        if progress.grow && used && !cut {
            // The window grows by the packets acknowledged, at most those of one acknowledgement
            // (RFC 3465).
            for _ in 0..progress.newly.min(self.connections.ack_packets) {
                ends.sender.grow();
            }
        }
        if ends.lasting.is_some() {
            Self::settle_acknowledged(net, flow, progress.newly);
        } else if ends.sender.done() {
            return self.settle(net, flow);
        }
        if let Some(position) = progress.resend {
            net.count_again(1, 0);
            if net.flow(flow).is_standing() {
                self.carried.clear();
                self.transmit_segment(net, flow, position);
            } else {
                self.transmit(net, flow, position);
            }
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
        let (congestion, connections) = (C::new(config), C::connections(config));
        let path = Path::of::<Self>(config, layout);
        let mut reno = *congestion.reno();
        if connections.lasting {
            // A connection that lasts knows its path. An acknowledgement waits for the last of the
            // packets that it covers.
            reno.window_packets_initial = path.packets + connections.ack_packets;
        }
        Stream {
            congestion,
            reno,
            connections,
            lasting: BTreeMap::new(),
            memory_header: config.packet.memory_header,
            carried: Vec::new(),
            turns: (0..config.nodes).map(|_| Turns::default()).collect(),
            memory_access: config.memory_access,
            // Windows that double from one packet have reached the path's capacity by then.
            ramp: Bytes(2 * path.data.0),
        }
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
        if self.connections.lasting {
            return self.start_on_connection(net, flow);
        }
        let opened = net.flow_mut(flow);
        let sender = Sender::new(opened.packets, &self.reno);
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
            Header::Segment(position, before, marked) => {
                let state = &mut net.flow_mut(packet.flow).state;
                let reverse = state.stream().reverse;
                // One that tells nothing new is no duplicate (RFC 5681, 2).
                if before > net.flow(reverse).state.sender.acked() {
                    self.on_ack(net, reverse, before, marked);
                }
                self.on_segment(net, packet, position);
            }
        }
    }

    fn on_timer(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        if net.flow(flow).is_standing() {
            return self.on_lasting_timer(net, flow);
        }
        // A flow that waits for its turn has no unanswered packet.
        self.time_out(net, flow);
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

    fn streams(config: &FabricConfig) -> Option<u32> {
        let connections = C::connections(config);
        connections.lasting.then_some(connections.ack_packets)
    }

    fn steady_after(&self) -> Bytes {
        self.ramp
    }
}
