//! The receiver of a message, and the grants of a host.

use ethermem_frames::{End, FlowId, Net, Purpose, Rank, Received};
use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::{Header, Hosts};

/// The receiver of one message.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    packets: u32,
    received: Received,
    known: bool,
    /// Number of packets that needed no grant.
    unscheduled: u32,
    /// All packets before this one may be sent.
    granted: u32,
    /// The rank with which the message waits for grants.
    ranked: Option<Rank>,
    /// The time at which a packet last arrived or was granted.
    active: Ps,
}

impl Receiver {
    pub(super) fn reset(&mut self, packets: u32, unscheduled: u32) {
        let mut received = std::mem::take(&mut self.received);
        received.reset(packets);
        let granted = unscheduled;
        *self = Receiver { packets, received, unscheduled, granted, ..Receiver::default() };
    }

    fn done(&self) -> bool {
        self.received.count() == self.packets
    }

    /// The first consecutive packets that were granted and have not arrived.
    fn missing(&self) -> (u32, u32) {
        let from = self.received.first_missing();
        let mut end = from;
        while end < self.granted && !self.received.contains(end) {
            end += 1;
        }
        (from, end)
    }
}

impl Hosts {
    fn rank(&self, net: &Net<'_, Hosts>, id: FlowId) -> Rank {
        let flow = net.flow(id);
        let come = u64::from(flow.state.receiver.received.count()) * self.rules.payload;
        (flow.bytes.saturating_sub(come) as u32, flow.state.order)
    }

    /// Handles the first news of a message at its receiver.
    fn learn(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let flow = net.flow_mut(id);
        let (node, bytes) = (flow.destination, flow.bytes);
        let receiver = &mut flow.state.receiver;
        receiver.known = true;
        let unscheduled = bytes.min(u64::from(receiver.granted) * self.rules.payload);
        if receiver.granted < receiver.packets {
            let rank = self.rank(net, id);
            net.flow_mut(id).state.receiver.ranked = Some(rank);
            self.granting[usize::from(node)].insert((rank, id));
        }
        self.priorities[usize::from(node)].see(bytes, unscheduled);
    }

    /// Grants to the messages with the fewest remaining packets, as many as the overcommitment,
    /// each a round trip of data ahead. A fully granted message makes room for another, but only
    /// one at a time: otherwise an incast of messages of two round trips would be granted at once.
    /// A new message gets its whole round trip at one priority. In parts, its later packets would
    /// overtake its earlier ones, and packets of older messages.
    fn grant(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex) {
        let at = usize::from(node);
        let degree = self.rules.overcommitment.unwrap_or(self.priorities[at].scheduled_ranks());
        let now = net.now();
        let limit = degree.saturating_add(1).saturating_mul(self.rules.unscheduled);
        let mut active = std::mem::take(&mut self.active);
        loop {
            active.clear();
            active.extend(self.granting[at].iter().take(degree as usize));
            let of = active.len() as u32;
            let mut whole = false;
            for (place, &(rank, id)) in (0..).zip(&active) {
                let receiver = &mut net.flow_mut(id).state.receiver;
                let room = limit.saturating_sub(self.outstanding[at]);
                let ahead = receiver.received.count() + self.rules.unscheduled;
                let end = ahead.min(receiver.packets);
                if end <= receiver.granted || end - receiver.granted > room {
                    continue;
                }
                self.outstanding[at] += end - receiver.granted;
                (receiver.granted, receiver.active) = (end, now);
                if end == receiver.packets {
                    receiver.ranked = None;
                    self.granting[at].remove(&(rank, id));
                    whole = true;
                }
                let level = self.priorities[at].scheduled(place, of);
                Self::control(net, id, End::Destination, Header::Grant(end, level));
            }
            // The places of fully granted messages are free for others.
            if !whole {
                break;
            }
        }
        self.active = active;
    }

    pub(super) fn on_data(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, position: u32) {
        let now = net.now();
        let flow = net.flow_mut(id);
        let (node, purpose) = (flow.destination, flow.purpose);
        let receiver = &mut flow.state.receiver;
        if receiver.done() || !receiver.received.insert(position) {
            return;
        }
        receiver.active = now;
        let (known, done) = (receiver.known, receiver.done());
        if purpose == Purpose::Data && !known {
            self.learn(net, id);
            if !done {
                Self::arm(net, id, End::Destination, now + self.rules.resend);
            }
        }
        let scheduled = position >= net.flow(id).state.receiver.unscheduled;
        self.outstanding[usize::from(node)] -= u32::from(scheduled);
        let before = net.flow_mut(id).state.receiver.ranked.take();
        if let Some(before) = before {
            let rank = self.rank(net, id);
            net.flow_mut(id).state.receiver.ranked = Some(rank);
            let granting = &mut self.granting[usize::from(node)];
            granting.remove(&(before, id));
            granting.insert((rank, id));
        }
        if scheduled || before.is_some() {
            self.grant(net, node);
        }
        if done {
            Self::arm(net, id, End::Destination, Ps::MAX);
            self.complete(net, id);
        }
    }

    fn complete(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let flow = net.flow(id);
        let (purpose, response) = (flow.purpose, flow.state.response);
        self.requests[usize::from(flow.destination)] -= u32::from(response);
        net.deliver(id);
        match purpose {
            // The answering end forgets what it has sent, and is not told of its arrival.
            Purpose::Data if response => self.finish(net, id),
            Purpose::Data => Self::control(net, id, End::Destination, Header::Response),
            Purpose::Request { .. } => {}
        }
    }

    /// Handles a query of a sender that has received nothing for long.
    pub(super) fn on_ask(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let now = net.now();
        let flow = net.flow(id);
        let (receiver, node) = (&flow.state.receiver, flow.destination);
        // The sender has waited as long. What it sent first may be behind more urgent packets.
        let since = Ps(now.0.saturating_sub(self.rules.resend.0));
        let header = if receiver.done() {
            Header::Response
        } else if receiver.known || !self.was_idle(now, node, since) {
            Header::Busy
        } else {
            Header::Resend(0, receiver.granted)
        };
        Self::control(net, id, End::Destination, header);
    }

    pub(super) fn on_receiver_busy(net: &mut Net<'_, Hosts>, id: FlowId) {
        let now = net.now();
        net.flow_mut(id).state.receiver.active = now;
    }

    /// True if a node's link was idle at `since` or later: all that switches had for it then has
    /// arrived. Otherwise packets may still wait behind more urgent ones.
    fn was_idle(&self, now: Ps, node: NodeIndex, since: Ps) -> bool {
        self.downlinks[usize::from(node)].last_idle(now, self.rules.packet_time) >= since
    }

    /// Handles the timeout of a receiver: granted packets that are lost are requested again.
    pub(super) fn ask_again(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let (now, resend) = (net.now(), self.rules.resend);
        let flow = net.flow(id);
        let (receiver, node) = (&flow.state.receiver, flow.destination);
        if receiver.done() {
            return;
        }
        let quiet = receiver.active + resend;
        let (from, end) = receiver.missing();
        let come = self.was_idle(now, node, receiver.active + self.rules.round_trip);
        let silent = end > from && now >= quiet && come;
        Self::arm(net, id, End::Destination, if now < quiet { quiet } else { now + resend });
        if silent {
            net.count_again(0, 1);
            Self::control(net, id, End::Destination, Header::Resend(from, end));
        }
    }
}
