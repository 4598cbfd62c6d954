//! Connections that outlive messages: which one carries a message, and what its packets carry.

use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::{Congestion, Header, Stream, Turn};
use crate::lasting::{Answer, Lasting, When};
use crate::reno::Sender;
use crate::{End, FlowId, Net, Outgoing, Packet, Purpose};

/// The directions of connections from one node to another.
#[derive(Debug, Default)]
pub(super) struct Directions {
    /// The one of messages that fit a packet, which share it.
    short: Option<FlowId>,
    /// Those of longer messages, one at a time in each.
    long: Vec<FlowId>,
}

impl<C: Congestion> Stream<C> {
    /// Gives a message to a connection. A response takes its request's: its packets acknowledge the
    /// request, and nothing else has to.
    pub(super) fn start_on_connection(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        let opened = net.flow(flow);
        let ends = (opened.source, opened.destination);
        let carrier = if opened.is_response() {
            // A place keeps its state until it is set here, also if the request has settled.
            let request_carrier = net.flow(opened.request).state.carrier;
            let carrier = net.flow_mut(request_carrier).state.stream().reverse;
            net.flow_mut(carrier).state.stream().promised = false;
            carrier
        } else {
            self.carrier(net, ends, opened.purpose, opened.bytes)
        };
        net.flow_mut(flow).state.carrier = carrier;
        let bytes = net.stream_bytes(flow);
        net.flow_mut(carrier).state.stream().append(flow, bytes);
        self.pump(net, carrier);
    }

    /// The direction of a connection for a message that is no response.
    fn carrier(
        &mut self,
        net: &mut Net<'_, Self>,
        ends: (NodeIndex, NodeIndex),
        purpose: Purpose,
        bytes: u64,
    ) -> FlowId {
        let data_bytes = match purpose {
            Purpose::Data => bytes,
            Purpose::Request { response_bytes } => response_bytes,
        };
        let is_long = self.memory_header.0 + data_bytes > net.stream_max();
        let is_answered = purpose != Purpose::Data;
        let carrier = self.connection(net, ends, is_long, is_answered);
        if is_long && is_answered {
            let reverse = net.flow_mut(carrier).state.stream().reverse;
            net.flow_mut(reverse).state.stream().promised = true;
        }
        carrier
    }

    /// The direction of a connection: of all short messages between two nodes, or an idle one for a
    /// long one, so that nothing waits behind that. If the message `is_answered`, the direction of
    /// the answer is idle, too. A connection is opened if there is none.
    fn connection(
        &mut self,
        net: &mut Net<'_, Self>,
        ends: (NodeIndex, NodeIndex),
        is_long: bool,
        is_answered: bool,
    ) -> FlowId {
        let known = self.lasting.entry(ends).or_default();
        let stream = |flow: FlowId| net.flow(flow).state.lasting.as_ref();
        let is_idle = |flow: FlowId| stream(flow).is_some_and(|stream| stream.is_idle());
        let reverse = |flow: FlowId| stream(flow).map_or(flow, |stream| stream.reverse);
        let is_free = |&&flow: &&FlowId| is_idle(flow) && (!is_answered || is_idle(reverse(flow)));
        let found = if is_long { known.long.iter().find(is_free) } else { known.short.as_ref() };
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
    pub(super) fn arm_end(net: &mut Net<'_, Self>, flow: FlowId, end: End, at: Ps) {
        let earlier = net.flow_mut(flow).state.stream().deadlines.set(end, at);
        net.arm(flow, earlier);
    }

    /// Sends a packet of a connection, with the acknowledgement of the other direction.
    pub(super) fn transmit_segment(
        &mut self,
        net: &mut Net<'_, Self>,
        flow: FlowId,
        position: u32,
    ) {
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
    pub(super) fn acknowledge_owed(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        if net.flow_mut(flow).state.stream().owes() {
            let Answer { before, marked } = Self::answer(net, flow);
            Self::acknowledge(net, flow, Header::Acknowledgement(before, marked));
        }
    }

    pub(super) fn on_segment(
        &mut self,
        net: &mut Net<'_, Self>,
        packet: &Packet<Header>,
        position: u32,
    ) {
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
    pub(super) fn settle_acknowledged(net: &mut Net<'_, Self>, flow: FlowId, newly: u32) {
        for _ in 0..net.flow_mut(flow).state.stream().acknowledge(newly) {
            let message = net.flow_mut(flow).state.stream().pop_acknowledged();
            net.settle(message);
        }
    }

    /// Handles the deadline of a connection's direction, which is one end's or both ends'.
    pub(super) fn on_lasting_timer(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
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
    pub(super) fn time_out(&mut self, net: &mut Net<'_, Self>, flow: FlowId) {
        let ends = &mut net.flow_mut(flow).state;
        if ends.sender.in_flight() > 0 {
            ends.sender.time_out();
            self.congestion.timed_out(&mut ends.congestion, &ends.sender);
            net.count_again(0, 1);
            self.pump(net, flow);
        }
    }
}
