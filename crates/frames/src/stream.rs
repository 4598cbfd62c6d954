//! The kinds of TCP on the packet network.
//!
//! Every two nodes have connections that outlive messages, whose two directions are flows of their
//! own, or each message is a flow ([`ConnectionConfig`]). Connections are open: there is no handshake. A
//! connection's packet carries an acknowledgement of the other direction. In the other case, each
//! packet has an acknowledgement, and a request is acknowledged by its response. A host's flows use their interface in turn, one packet each, as under Linux's `fq` with small queues. A
//! packet that a window allows waits in its flow, and never in front of another flow's packets.
//! Acknowledgements are flows of their own there, with one packet each.

use std::collections::{HashMap, VecDeque};

use ethermem_engine::config::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::topology::{Layout, PortKind};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, NodeIndex};

use super::lasting::{Answer, Lasting, When};
use super::reno::{RenoConfig, Sender};
use super::{
    ConnectionConfig, DropTail, End, FlowId, Net, Outgoing, Packet, Path, Purpose, Received,
    Transport,
};

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
    lasting: HashMap<(NodeIndex, NodeIndex), Directions>,
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

/// The directions of connections from one node to another.
#[derive(Debug, Default)]
struct Directions {
    /// The one of messages that fit a packet, which share it.
    short: Option<FlowId>,
    /// Those of longer messages, one at a time in each.
    long: Vec<FlowId>,
}

/// Both ends of a flow.
#[derive(Debug, Default)]
pub struct Ends<S> {
    sender: Sender,
    /// True if the flow waits for its turn or has it.
    waiting: bool,
    congestion: S,
    received: Received,
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

    /// True for a connection's direction without a message.
    fn is_idle(&self) -> bool {
        self.lasting.as_ref().is_some_and(|stream| stream.is_idle())
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

/// Connections that outlive messages.
impl<C: Congestion> Stream<C> {
    /// The direction of a connection for a message: of all short ones between two nodes, or an idle
    /// one for a long one, so that nothing waits behind that. It is opened if there is none.
    fn connection(
        &mut self,
        net: &mut Net<'_, Self>,
        ends: (NodeIndex, NodeIndex),
        is_long: bool,
    ) -> FlowId {
        let known = self.lasting.entry(ends).or_default();
        let idle = |flow: &&FlowId| net.flow(**flow).state.is_idle();
        let found = if is_long { known.long.iter().find(idle) } else { known.short.as_ref() };
        if let Some(&flow) = found {
            return flow;
        }
        let back = (ends.1, ends.0);
        let flows = [net.open_standing(ends.0, ends.1), net.open_standing(back.0, back.1)];
        for ((ends, flow), reverse) in [ends, back].into_iter().zip(flows).zip([flows[1], flows[0]])
        {
            let sender = Sender::new(0, &self.reno);
            let state = &mut net.flow_mut(flow).state;
            state.congestion = self.congestion.begin(&sender);
            state.sender = sender;
            state.lasting = Some(Box::new(Lasting::new(reverse)));
            let known = self.lasting.entry(ends).or_default();
            if is_long {
                known.long.push(flow);
            } else {
                known.short = Some(flow);
            }
        }
        flows[0]
    }

    /// Sets the deadline of one end of a connection's direction.
    fn arm_end(net: &mut Net<'_, Self>, flow: FlowId, end: End, at: Ps) {
        let earlier = net.flow_mut(flow).state.stream().deadlines.set(end, at);
        net.arm(flow, earlier);
    }

    /// Sends a packet of a connection, with the acknowledgement of the other direction.
    fn transmit_segment(&mut self, net: &mut Net<'_, Self>, flow: FlowId, position: u32) {
        let state = &mut net.flow_mut(flow).state;
        let first = state.sender.in_flight() == 1;
        let stream = state.stream();
        let (segment, reverse) = (stream.segment(position), stream.reverse);
        let Answer { before, marked } = Self::answer(net, reverse);
        let header = Header::Segment(position, before, marked);
        let data_bytes = segment.data_bytes;
        let outgoing = Outgoing { from: End::Source, data_bytes, rank: 0, header };
        net.send_stream(flow, segment.bytes, self.carried.iter().copied(), outgoing);
        if first {
            self.rearm(net, flow);
        }
    }

    /// The acknowledgement of all that has arrived in one direction; nothing is owed any more.
    fn answer(net: &mut Net<'_, Self>, flow: FlowId) -> Answer {
        Self::arm_end(net, flow, End::Destination, Ps::MAX);
        net.flow_mut(flow).state.stream().answer()
    }

    /// Sends an acknowledgement that has its turn, unless a packet has carried it.
    fn acknowledge_owed(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        if net.flow_mut(flow).state.stream().owes() {
            let Answer { before, marked } = Self::answer(net, flow);
            Self::acknowledge(net, flow, Header::Acknowledgement(before, marked));
        }
    }

    fn on_segment(&mut self, net: &mut Net<'_, Self>, packet: &Packet<Header>, position: u32) {
        let (flow, node) = (packet.flow, packet.destination);
        let stream = net.flow_mut(flow).state.stream();
        let owed = stream.owes();
        let arrival = stream.arrive(position, packet.marked, self.connections.ack_packets);
        for _ in 0..arrival.whole {
            let message = net.flow_mut(flow).state.stream().next_whole();
            net.deliver(message);
        }
        let waiting = &mut self.turns[usize::from(node)].waiting;
        let turn =
            |Answer { before, marked }| Turn::Answer(flow, Header::Acknowledgement(before, marked));
        waiting.extend(arrival.earlier.map(turn));
        match arrival.answer {
            When::Now(answer) => {
                waiting.push_back(turn(answer));
                Self::arm_end(net, flow, End::Destination, Ps::MAX);
            }
            When::InTurn => waiting.push_back(Turn::Owed(flow)),
            When::Later if owed && arrival.earlier.is_none() => {}
            When::Later => {
                let at = net.now() + self.connections.ack_delay;
                Self::arm_end(net, flow, End::Destination, at);
            }
        }
        self.take_turns(net, node);
    }

    /// Settles the messages that end in the next `newly` packets of a connection.
    fn settle_acknowledged(net: &mut Net<'_, Self>, flow: FlowId, newly: u32) {
        for _ in 0..net.flow_mut(flow).state.stream().acknowledge(newly) {
            let message = net.flow_mut(flow).state.stream().pop_acknowledged();
            net.settle(message);
        }
    }

    /// Handles the deadline of a connection's direction, which is one end's or both ends'.
    fn on_lasting_timer(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        let now = net.now();
        let opened = net.flow_mut(flow);
        let node = opened.destination;
        let (source, destination) = opened.state.stream().deadlines.due(now);
        if destination {
            self.turns[usize::from(node)].waiting.push_back(Turn::Owed(flow));
            self.take_turns(net, node);
        }
        if source {
            self.time_out(net, flow);
            self.rearm(net, flow);
        }
        let earlier = net.flow_mut(flow).state.stream().deadlines.earlier();
        net.arm(flow, earlier);
    }

    /// Handles a timeout, if a packet is unanswered.
    fn time_out(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        let ends = &mut net.flow_mut(flow).state;
        if ends.sender.in_flight() > 0 {
            ends.sender.time_out();
            self.congestion.timed_out(&mut ends.congestion, &ends.sender);
            net.count_again(0, 1);
            self.pump(net, flow);
        }
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
            lasting: HashMap::new(),
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
            let opened = net.flow(flow);
            let ends = (opened.source, opened.destination);
            let bytes = net.stream_bytes(flow);
            let connection = self.connection(net, ends, bytes > net.stream_max());
            net.flow_mut(connection).state.stream().append(flow, bytes);
            return self.pump(net, connection);
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
