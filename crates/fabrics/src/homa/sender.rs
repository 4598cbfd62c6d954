//! The sender of a message, and a host's choice among messages with data to send.

use std::collections::VecDeque;

use ethermem_frames::{End, FlowId, Net, Outgoing, Purpose, Rank};
use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::{Header, Hosts, REQUEST_RANK};

/// The sender of one message.
#[derive(Debug, Default)]
pub(super) struct Sender {
    /// All packets before this one were sent.
    next: u32,
    /// All packets before this one may be sent.
    pub(super) granted: u32,
    /// Number of packets that need no grant, and the ranks of these and of the other packets.
    unscheduled: u32,
    ranks: (u32, u32),
    /// Packets to be retransmitted.
    again: VecDeque<u32>,
    /// The rank with which the message waits for its host's turn.
    enlisted: Option<Rank>,
    /// The time at which it was last sent or heard of.
    active: Ps,
    /// The time at which a packet of it was last sent.
    sent: Ps,
    /// True if no work is left.
    done: bool,
}

impl Sender {
    pub(super) fn reset(&mut self, unscheduled: u32, rank: u32, now: Ps) {
        let mut again = std::mem::take(&mut self.again);
        again.clear();
        *self = Sender {
            granted: unscheduled,
            unscheduled,
            ranks: (rank, rank),
            again,
            active: now,
            ..Sender::default()
        };
    }

    fn is_ready(&self) -> bool {
        !self.again.is_empty() || self.next < self.granted
    }

    /// The next packet, its rank, and whether it was sent before.
    fn take(&mut self) -> Option<(u32, u32, bool)> {
        if let Some(position) = self.again.pop_front() {
            return Some((position, self.rank(position), true));
        }
        if self.next == self.granted {
            return None;
        }
        self.next += 1;
        Some((self.next - 1, self.rank(self.next - 1), false))
    }

    fn rank(&self, position: u32) -> u32 {
        if position < self.unscheduled { self.ranks.0 } else { self.ranks.1 }
    }
}

impl Hosts {
    /// Queues a message with data to send for its host's turn, by its remaining packets.
    pub(super) fn enlist(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let payload = self.rules.payload;
        let flow = net.flow_mut(id);
        let sender = &mut flow.state.sender;
        if sender.enlisted.is_some() || !sender.is_ready() {
            return;
        }
        let sent = u64::from(sender.next) * payload;
        let rank = (flow.bytes.saturating_sub(sent) as u32, flow.state.order);
        sender.enlisted = Some(rank);
        self.senders.insert(flow.source, rank, id);
    }

    /// Sends packets of the message with the fewest remaining ones, while the link is free.
    pub(super) fn transmit(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex) {
        while let Some(id) = self.senders.next(net, node) {
            let now = net.now();
            let sender = &mut net.flow_mut(id).state.sender;
            if let Some(rank) = sender.enlisted.take() {
                self.senders.remove(node, rank, id);
            }
            let Some((position, rank, again)) = sender.take() else { continue };
            (sender.active, sender.sent) = (now, now);
            self.enlist(net, id);
            net.count_again(u64::from(again), 0);
            let data_bytes = net.data_bytes(id, position);
            let start = net.interface_free(node);
            self.senders.take(node, start, net.line(data_bytes));
            let header = Header::Data(position);
            net.send(id, Outgoing { from: End::Source, data_bytes, rank, header });
        }
    }

    pub(super) fn on_grant(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, end: u32, rank: u32) {
        let now = net.now();
        let flow = net.flow_mut(id);
        let node = flow.source;
        let sender = &mut flow.state.sender;
        if sender.done {
            return;
        }
        sender.active = now;
        if end > sender.granted {
            (sender.granted, sender.ranks.1) = (end, rank);
        }
        self.enlist(net, id);
        self.transmit(net, node);
    }

    /// Handles a request for missing packets. The receiver must wait for packets that were not sent
    /// yet, or that were sent so late that they may be on their way.
    pub(super) fn on_resend(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, from: u32, end: u32) {
        let (now, resend) = (net.now(), self.rules.resend);
        let flow = net.flow_mut(id);
        let node = flow.source;
        let sender = &mut flow.state.sender;
        if sender.done {
            return;
        }
        sender.active = now;
        // The grant itself may have been lost.
        sender.granted = sender.granted.max(end);
        let sent = from..end.min(sender.next);
        if sent.is_empty() || !sender.again.is_empty() || now < sender.sent + resend {
            Self::control(net, id, End::Source, Header::Busy);
        } else {
            sender.again.extend(sent);
        }
        self.enlist(net, id);
        self.transmit(net, node);
    }

    /// Ends a message whose packets have all arrived, as the receiver reported or need not report.
    pub(super) fn finish(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let flow = net.flow_mut(id);
        let node = flow.source;
        let sender = &mut flow.state.sender;
        if std::mem::replace(&mut sender.done, true) {
            return;
        }
        if let Some(rank) = sender.enlisted.take() {
            self.senders.remove(node, rank, id);
        }
        net.settle(id);
    }

    pub(super) fn on_sender_busy(net: &mut Net<'_, Hosts>, id: FlowId) {
        let now = net.now();
        net.flow_mut(id).state.sender.active = now;
    }

    /// Handles the timeout of a sender: if it has heard nothing, it queries the receiver.
    pub(super) fn ask(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let (now, resend) = (net.now(), self.rules.resend);
        let flow = net.flow_mut(id);
        let purpose = flow.purpose;
        let sender = &mut flow.state.sender;
        let quiet = sender.active + resend;
        let silent = sender.enlisted.is_none() && now >= quiet;
        Self::arm(net, id, End::Source, if now < quiet { quiet } else { now + resend });
        if !silent {
            return;
        }
        match purpose {
            Purpose::Data => Self::control(net, id, End::Source, Header::Ask),
            Purpose::Request { .. } => Self::request(net, id),
        }
        net.count_again(0, 1);
    }

    /// Sends a request, which is short, for the first time or again.
    pub(super) fn request(net: &mut Net<'_, Hosts>, id: FlowId) {
        let header = Header::Data(0);
        let from = End::Source;
        net.send(id, Outgoing { from, data_bytes: 0, rank: REQUEST_RANK, header });
    }
}
