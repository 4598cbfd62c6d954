//! The destination of a flow, and a host's choice among flows that want tokens.

use ethermem_frames::{End, FlowId, Net, Purpose, Rank, Received};
use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::source::Token;
use super::{Header, Hosts, Rules};

/// The destination of one flow.
#[derive(Debug, Default)]
pub(super) struct Destination {
    packets: u32,
    received: Received,
    known: bool,
    /// The position at which the search for the next token's packet begins.
    next: u32,
    /// Number of tokens issued, including free ones.
    given: u32,
    /// Number of tokens up to the last one for which data arrived.
    used: u32,
    /// Number of tokens to issue before the flow waits for their data.
    goal: u32,
    /// The time of the last token.
    given_at: Ps,
    /// The rank with which the flow waits for its host's tokens.
    wanting: Option<Rank>,
}

/// The action of a destination at its host's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// It issues a token.
    Gives,
    /// The source has too many unused tokens: it gets no more for a while.
    Downgraded,
    /// Every missing packet has its token.
    Given,
}

impl Destination {
    pub(super) fn reset(&mut self, packets: u32) {
        let mut received = std::mem::take(&mut self.received);
        received.reset(packets);
        *self = Destination { packets, received, goal: packets, ..Destination::default() };
    }

    fn remaining(&self) -> u32 {
        self.packets - self.received.count()
    }

    fn done(&self) -> bool {
        self.remaining() == 0
    }

    /// Issues the next token.
    fn token(&mut self, now: Ps) -> Token {
        let mut position = self.received.next_missing(self.next);
        if position >= self.packets {
            position = self.received.first_missing();
        }
        self.next = position + 1;
        self.given += 1;
        self.given_at = now;
        Token { position, number: self.given - 1, remaining: self.remaining() }
    }

    fn turn(&self, rules: &Rules) -> Turn {
        if self.given >= self.goal {
            Turn::Given
        } else if self.given - self.used >= rules.tokens_unused_max {
            Turn::Downgraded
        } else {
            Turn::Gives
        }
    }

    /// Handles its timeout: a downgraded source gets one more token; if all were issued, each
    /// missing packet gets one.
    fn relax(&mut self, rules: &Rules) {
        match self.turn(rules) {
            Turn::Given => {
                self.goal = self.given + self.remaining();
                self.used = self.given;
            }
            _ => self.used = (self.given + 1).saturating_sub(rules.tokens_unused_max),
        }
    }
}

impl Hosts {
    /// Handles the first news of a flow: its announcement or its first data. Free packets from
    /// `first` on are still to come.
    fn learn(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, first: u32) {
        let flow = net.flow_mut(id);
        let (node, packets) = (flow.destination, flow.packets);
        flow.state.destination.known = true;
        if packets > self.rules.free_packets {
            self.rank(net, id);
            return self.call(net, node);
        }
        // The whole flow was free, and occupies the link that tokens would use for other flows.
        (flow.state.destination.given, flow.state.destination.used) = (packets, 0);
        let line = (first..packets).map(|position| net.line(net.data_bytes(id, position))).sum();
        let now = net.now();
        self.receivers.take(node, now, line);
        let at = now + self.rules.free_wait * u64::from(packets);
        Self::arm(net, id, End::Destination, at);
        // A host that slept until the end of a downgrade is awake, and examines all flows next.
        self.call(net, node);
    }

    /// Registers a flow that wants a token.
    fn rank(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let flow = net.flow_mut(id);
        let rank = (flow.state.destination.remaining(), flow.state.order);
        flow.state.destination.wanting = Some(rank);
        self.receivers.insert(flow.destination, rank, id);
    }

    /// Issues a token to the flow with the fewest remaining packets, once the link has room for its
    /// packet.
    pub(super) fn call(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex) {
        while let Some(id) = self.receivers.next(net, node) {
            let now = net.now();
            let destination = &mut net.flow_mut(id).state.destination;
            if let Some(rank) = destination.wanting.take() {
                self.receivers.remove(node, rank, id);
            }
            // The check waits for its next turn: its data may arrive until then.
            if destination.turn(&self.rules) == Turn::Downgraded {
                let at = destination.given_at + self.rules.downgrade;
                Self::arm(net, id, End::Destination, at.max(now));
                continue;
            }
            let token = destination.token(now);
            let given = destination.turn(&self.rules) == Turn::Given;
            let line = net.line(net.data_bytes(id, token.position));
            self.receivers.take(node, now, line);
            Self::control(net, id, End::Destination, Header::Token(token));
            if given {
                Self::arm(net, id, End::Destination, now + self.rules.timeout);
            } else {
                self.rank(net, id);
            }
        }
    }

    pub(super) fn on_announcement(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let destination = &net.flow(id).state.destination;
        if destination.done() {
            // The acknowledgement was lost, or is in flight.
            Self::control(net, id, End::Destination, Header::Acknowledgement);
        } else if !destination.known {
            self.learn(net, id, 0);
        }
    }

    pub(super) fn on_data(
        &mut self,
        net: &mut Net<'_, Hosts>,
        id: FlowId,
        position: u32,
        number: u32,
    ) {
        let (purpose, packets) = (net.flow(id).purpose, net.flow(id).packets);
        let destination = &net.flow(id).state.destination;
        if destination.done() {
            return;
        }
        // A flow of one packet is complete on arrival and needs no token.
        if packets > 1 && !destination.known {
            self.learn(net, id, 1);
        }
        let flow = net.flow_mut(id);
        let node = flow.destination;
        let destination = &mut flow.state.destination;
        let waits = packets > 1 && destination.wanting.is_none();
        let downgraded = waits && destination.turn(&self.rules) == Turn::Downgraded;
        destination.used = destination.used.max(number + 1);
        destination.received.insert(position);
        if !destination.done() {
            if downgraded && destination.turn(&self.rules) == Turn::Gives {
                self.rank(net, id);
                if self.rules.downgrade_ends_with_data {
                    Self::arm(net, id, End::Destination, Ps::MAX);
                    self.call(net, node);
                }
            }
            return;
        }
        if let Some(rank) = destination.wanting.take() {
            self.receivers.remove(node, rank, id);
        }
        Self::arm(net, id, End::Destination, Ps::MAX);
        net.deliver(id);
        if purpose == Purpose::Data {
            Self::control(net, id, End::Destination, Header::Acknowledgement);
        }
    }

    /// Handles the timeout of a destination.
    pub(super) fn want_again(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let flow = net.flow_mut(id);
        let node = flow.destination;
        let destination = &mut flow.state.destination;
        // Otherwise it used its tokens meanwhile, and its host examines it now.
        if destination.wanting.is_none() {
            let given = destination.turn(&self.rules) == Turn::Given;
            destination.relax(&self.rules);
            net.count_again(0, u64::from(given));
            self.rank(net, id);
        }
        self.call(net, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phost::tests::RULES;

    fn tokens(destination: &mut Destination) -> Vec<u32> {
        let mut positions = Vec::new();
        loop {
            positions.push(destination.token(Ps::ZERO).position);
            if destination.turn(&RULES) != Turn::Gives {
                return positions;
            }
        }
    }

    #[test]
    fn a_source_that_uses_none_gets_as_many_as_it_may_and_then_single_ones() {
        let mut destination = Destination::default();
        destination.reset(9);
        assert_eq!(tokens(&mut destination), [0, 1, 2]);
        assert_eq!(destination.turn(&RULES), Turn::Downgraded);
        destination.relax(&RULES);
        assert_eq!(tokens(&mut destination), [3]);
        // It used the last one: two of three are open again.
        destination.received.insert(3);
        destination.used = 4;
        assert_eq!(tokens(&mut destination), [4, 5, 6]);
    }

    #[test]
    fn what_is_missing_when_all_was_called_for_is_called_for_again() {
        let mut destination = Destination::default();
        destination.reset(3);
        assert_eq!(tokens(&mut destination), [0, 1, 2]);
        assert_eq!(destination.turn(&RULES), Turn::Given);
        destination.received.insert(1);
        destination.relax(&RULES);
        assert_eq!(destination.remaining(), 2);
        assert_eq!(tokens(&mut destination), [0, 2]);
        assert_eq!(destination.token(Ps::ZERO).number, 5);
    }
}
