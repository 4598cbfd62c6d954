//! The source of a flow, and a host's choice among flows with tokens.

use std::collections::VecDeque;

use ethermem_frames::{End, FlowId, Net, Outgoing, Purpose, Rank, Received, backed_off};
use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::{Header, Hosts, LONG_RANK, Rules, SHORT_RANK};

/// Allows one packet to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The position of the packet in its flow.
    pub(super) position: u32,
    /// The number of the token, counted from the flow's first, including free ones.
    pub(super) number: u32,
    /// Number of packets that have not arrived.
    pub(super) remaining: u32,
}

/// The source of one flow.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// The positions of the free tokens. Free tokens take no turn and do not expire.
    free_next: u32,
    free_end: u32,
    /// The other tokens with their expiry times, in the order of these times.
    tokens: VecDeque<(u32, u32, Ps)>,
    /// Number of remaining packets, as far as the source knows.
    remaining: u32,
    /// True if the whole flow was acknowledged.
    done: bool,
    /// The rank with which the flow waits for its host's turn.
    enlisted: Option<Rank>,
    sent: Received,
    /// The time at which it was last sent or requested.
    active: Ps,
    /// Time after `active` without a request of the source. It grows, since the source's turn may
    /// be far.
    patience: Ps,
}

impl Source {
    pub(super) fn reset(&mut self, packets: u32, now: Ps, rules: &Rules) {
        let free = if packets <= rules.free_packets { packets } else { 0 };
        self.tokens.clear();
        self.sent.reset(packets);
        *self = Source {
            free_end: free,
            tokens: std::mem::take(&mut self.tokens),
            sent: std::mem::take(&mut self.sent),
            remaining: packets,
            active: now,
            patience: rules.timeout,
            ..Source::default()
        };
    }

    /// True if it has free tokens.
    pub(super) fn is_free(&self) -> bool {
        self.free_end > 0
    }

    /// Removes expired tokens.
    fn prune(&mut self, now: Ps) {
        while self.tokens.front().is_some_and(|&(_, _, until)| until < now) {
            self.tokens.pop_front();
        }
    }

    /// Takes the next token; returns its position and number.
    fn take(&mut self) -> Option<(u32, u32)> {
        if self.free_next < self.free_end {
            self.free_next += 1;
            return Some((self.free_next - 1, self.free_next - 1));
        }
        self.tokens.pop_front().map(|(position, number, _)| (position, number))
    }
}

impl Hosts {
    /// Queues a flow with a token for its host's turn, by its remaining packets.
    pub(super) fn enlist(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let flow = net.flow_mut(id);
        let rank = (flow.state.source.remaining, flow.state.order);
        let before = flow.state.source.enlisted.replace(rank);
        if before == Some(rank) {
            return;
        }
        if let Some(before) = before {
            self.senders.remove(flow.source, before, id);
        }
        self.senders.insert(flow.source, rank, id);
    }

    /// Sends packets of the flow with a token and the fewest remaining ones, while the link is
    /// free.
    pub(super) fn spend(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex) {
        while let Some(id) = self.senders.next(net, node) {
            let now = net.now();
            let source = &mut net.flow_mut(id).state.source;
            source.prune(now);
            let token = source.take();
            let spent = source.free_next == source.free_end && source.tokens.is_empty();
            if let Some(rank) = source.enlisted.take_if(|_| spent) {
                self.senders.remove(node, rank, id);
            }
            if let Some((position, number)) = token {
                self.transmit(net, id, position, number);
            }
        }
    }

    fn transmit(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, position: u32, number: u32) {
        let now = net.now();
        let flow = net.flow_mut(id);
        let (node, packets) = (flow.source, flow.packets);
        let again = !flow.state.source.sent.insert(position);
        flow.state.source.active = now;
        net.count_again(u64::from(again), 0);
        let data_bytes = net.data_bytes(id, position);
        let rank = if packets <= self.rules.short_packets { SHORT_RANK } else { LONG_RANK };
        let start = net.interface_free(node);
        self.senders.take(node, start, net.line(data_bytes));
        let header = Header::Data(position, number);
        net.send(id, Outgoing { from: End::Source, data_bytes, rank, header });
    }

    pub(super) fn on_token(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, token: Token) {
        let now = net.now();
        let until = now + self.rules.token_lifetime;
        let flow = net.flow_mut(id);
        let node = flow.source;
        let source = &mut flow.state.source;
        // The token was in flight when the last data arrived.
        if source.done {
            return;
        }
        source.active = now;
        source.remaining = token.remaining;
        source.tokens.push_back((token.position, token.number, until));
        self.enlist(net, id);
        self.spend(net, node);
    }

    pub(super) fn on_acknowledgement(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let flow = net.flow_mut(id);
        let node = flow.source;
        // A second acknowledgement may come for a flow that was announced twice.
        if std::mem::replace(&mut flow.state.source.done, true) {
            return;
        }
        if let Some(rank) = flow.state.source.enlisted.take() {
            self.senders.remove(node, rank, id);
        }
        net.settle(id);
    }

    /// Handles the timeout of a source. If it waits only for its destination, it announces the flow
    /// again, and waits longer.
    pub(super) fn ask_again(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let now = net.now();
        let flow = net.flow_mut(id);
        let purpose = flow.purpose;
        let source = &mut flow.state.source;
        let quiet = source.active + source.patience;
        if source.enlisted.is_some() || now < quiet {
            let at = if now < quiet { quiet } else { now + source.patience };
            return Self::arm(net, id, End::Source, at);
        }
        source.patience = backed_off(source.patience, self.rules.timeout_growth);
        let at = now + source.patience;
        net.count_again(0, 1);
        match purpose {
            Purpose::Data => Self::control(net, id, End::Source, Header::Announcement),
            Purpose::Request { .. } => Self::request(net, id),
        }
        Self::arm(net, id, End::Source, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phost::tests::RULES;

    #[test]
    fn a_token_is_used_within_its_time_unless_it_is_free() {
        let (mut source, until) = (Source::default(), Ps(1_600));
        source.reset(4, Ps(100), &RULES);
        source.prune(Ps(1 << 40));
        let free: Vec<_> = std::iter::from_fn(|| source.take()).collect();
        assert_eq!(free, [(0, 0), (1, 1), (2, 2), (3, 3)]);
        source.tokens.extend([(9, 4, until), (7, 5, until + Ps(2))]);
        source.prune(until + Ps(1));
        assert_eq!([source.take(), source.take()], [Some((7, 5)), None]);
        // There is one packet more, and no token is free.
        source.reset(5, Ps(100), &RULES);
        assert_eq!((source.is_free(), source.take()), (false, None));
    }
}
