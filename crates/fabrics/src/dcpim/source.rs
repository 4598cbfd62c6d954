//! The source of a flow, and how a host spends its tokens.

use std::collections::BTreeMap;

use ethermem_frames::{End, FlowId, Net, Outgoing, Purpose, Received, backed_off};
use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::matching::Offer;
use super::{Header, Hosts, is_data};

/// The priority of tokens of short flows, which go before all others.
const SHORT_PRIORITY: u32 = 1;

/// Allows one packet to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The position of the packet in its flow.
    pub(super) position: u32,
    /// The number of the token, counted from the flow's first.
    pub(super) number: u32,
    /// The priority at the source: the lower, the sooner the token is spent.
    pub(super) priority: u32,
    /// The time at which it becomes void.
    pub(super) until: Ps,
}

/// The source of one flow.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// True if the destination has acknowledged the announcement.
    pub(super) noted: bool,
    /// True if the whole flow was acknowledged.
    pub(super) done: bool,
    sent: Received,
    /// The time at which it was last sent or requested.
    active: Ps,
    /// Time after `active` without a request of the source.
    patience: Ps,
}

impl Source {
    pub(super) fn reset(&mut self, packets: u32, now: Ps, patience: Ps) {
        let mut sent = std::mem::take(&mut self.sent);
        sent.reset(packets);
        *self = Source { sent, active: now, patience, ..Source::default() };
    }
}

/// A token that waits at its source, with the id and the age of its flow.
#[derive(Clone, Copy, Debug)]
struct QueuedToken {
    flow: FlowId,
    order: u64,
    token: Token,
}

/// The state of a host for all the flows that it sends.
#[derive(Debug)]
pub(super) struct Sender {
    /// Time by which its clock is behind.
    pub(super) offset: Ps,
    /// The time at which it is woken; `Ps::MAX` for never.
    pub(super) wake: Ps,
    /// The epoch of the last requests.
    pub(super) epoch: u32,
    /// Number of channels that were accepted in that epoch.
    pub(super) taken: u32,
    /// Number of channels in use in the previous epoch, including the ones in use since their
    /// match.
    pub(super) in_use: u32,
    /// Requests that wait for the end of their round.
    pub(super) requests: Vec<Offer>,
    /// Tokens by priority, then in the order of arrival.
    tokens: BTreeMap<(u32, u64), QueuedToken>,
    /// The time at which the link has room for the next packet.
    free: Ps,
}

impl Default for Sender {
    fn default() -> Sender {
        Sender {
            offset: Ps::ZERO,
            wake: Ps::MAX,
            epoch: 0,
            taken: 0,
            in_use: 0,
            requests: Vec::new(),
            tokens: BTreeMap::new(),
            free: Ps::ZERO,
        }
    }
}

impl Hosts {
    pub(super) fn wake_sender(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex, at: Ps) {
        let wake = &mut self.senders[usize::from(node)].wake;
        if at < *wake {
            *wake = at;
            net.wake(End::Source, node, at);
        }
    }

    /// Does everything that is due at a sender, and schedules the next wake.
    pub(super) fn run_sender(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex) {
        self.answer_requests(net, node);
        self.spend(net, node);
    }

    /// Opens a flow at its source.
    pub(super) fn open(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let flow = net.flow(id);
        let (node, packets, order) = (flow.source, flow.packets, flow.state.order);
        if is_data(flow.purpose) {
            Self::control(net, id, End::Source, Header::Notification);
            if packets <= self.rules.short_packets {
                for position in 0..packets {
                    let token = Token {
                        position,
                        number: position,
                        priority: SHORT_PRIORITY,
                        until: Ps::MAX,
                    };
                    self.queue_token(node, QueuedToken { flow: id, order, token });
                }
                self.spend(net, node);
            }
        } else {
            Self::control(net, id, End::Source, Header::Data(0, 0));
        }
        let at = net.now() + self.rules.resend * 2;
        Self::arm(net, id, End::Source, at);
    }

    fn queue_token(&mut self, node: NodeIndex, waiting: QueuedToken) {
        let key = (waiting.token.priority, self.tokens_queued);
        self.tokens_queued += 1;
        self.senders[usize::from(node)].tokens.insert(key, waiting);
    }

    pub(super) fn on_token(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, token: Token) {
        let now = net.now();
        let flow = net.flow_mut(id);
        let (node, order) = (flow.source, flow.state.order);
        let source = &mut flow.state.source;
        // The token was in flight when the last data arrived.
        if source.done {
            return;
        }
        (source.noted, source.active) = (true, now);
        self.queue_token(node, QueuedToken { flow: id, order, token });
        self.spend(net, node);
    }

    /// Sends packets for the first tokens, while the link is free.
    fn spend(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex) {
        let now = net.now();
        loop {
            let sender = &mut self.senders[usize::from(node)];
            if sender.tokens.is_empty() {
                return;
            }
            if sender.free > now {
                let at = sender.free;
                return self.wake_sender(net, node, at);
            }
            let Some((_, first)) = sender.tokens.pop_first() else { return };
            if first.token.until >= now && Self::lives(net, first.flow, first.order) {
                self.transmit(net, first.flow, first.token);
            }
        }
    }

    fn transmit(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, token: Token) {
        let now = net.now();
        let flow = net.flow_mut(id);
        let (node, packets) = (flow.source, flow.packets);
        let source = &mut flow.state.source;
        let again = !source.sent.insert(token.position);
        let (all, patience) = (source.sent.count() == packets, source.patience);
        source.active = now;
        net.count_again(u64::from(again), 0);
        let data_bytes = net.data_bytes(id, token.position);
        let start = net.interface_free(node);
        let sender = &mut self.senders[usize::from(node)];
        sender.free = sender.free.max(start) + net.line(data_bytes);
        let header = Header::Data(token.position, token.number);
        let rank = self.rules.rank(packets);
        net.send(id, Outgoing { from: End::Source, data_bytes, rank, header });
        // From now on the source waits for the acknowledgement.
        if all {
            Self::arm(net, id, End::Source, now + patience * 2);
        }
    }

    pub(super) fn on_acknowledgement(net: &mut Net<'_, Hosts>, id: FlowId) {
        // A second acknowledgement may come for a flow that was announced twice.
        if !std::mem::replace(&mut net.flow_mut(id).state.source.done, true) {
            net.settle(id);
        }
    }

    /// Handles the timeout of a source. If it waits only for its destination, it announces the flow
    /// again, and waits longer.
    pub(super) fn ask_again(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let now = net.now();
        let flow = net.flow_mut(id);
        let (purpose, packets) = (flow.purpose, flow.packets);
        let source = &mut flow.state.source;
        // The destination knows the flow, and must request the unsent packets.
        if is_data(purpose) && source.noted && source.sent.count() < packets {
            return;
        }
        let quiet = source.active + source.patience * 2;
        if now < quiet {
            return Self::arm(net, id, End::Source, quiet);
        }
        source.patience = backed_off(source.patience, self.rules.patience_growth);
        let at = now + source.patience * 2;
        net.count_again(0, 1);
        let header = match purpose {
            Purpose::Data => Header::Notification,
            Purpose::Request { .. } => Header::Data(0, 0),
        };
        Self::control(net, id, End::Source, header);
        Self::arm(net, id, End::Source, at);
    }
}
