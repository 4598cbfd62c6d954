//! The destination of a flow, and how a host issues tokens within its channels.

use std::collections::BTreeMap;

use ethermem_frames::{End, FlowId, Net, Rank, Ranked, Received};
use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::matching::Offer;
use super::source::Token;
use super::{Header, Hosts, is_data};

/// The destination of one flow.
#[derive(Debug, Default)]
pub(super) struct Destination {
    packets: u32,
    received: Received,
    known: bool,
    /// The position at which the search for the next token's packet begins.
    next: u32,
    /// Number of tokens issued, including the ones that a short flow has from the start.
    given: u32,
    /// Number of tokens up to the last one for which data arrived.
    used: u32,
    given_at: Ps,
    /// The rank with which the flow waits for tokens.
    wanting: Option<Rank>,
}

impl Destination {
    pub(super) fn reset(&mut self, packets: u32) {
        let mut received = std::mem::take(&mut self.received);
        received.reset(packets);
        *self = Destination { packets, received, ..Destination::default() };
    }

    pub(super) fn remaining(&self) -> u32 {
        self.packets - self.received.count()
    }

    fn done(&self) -> bool {
        self.remaining() == 0
    }

    /// The next token's position and number, and whether every missing packet now has its token.
    fn token(&mut self, now: Ps) -> (u32, u32, bool) {
        let mut position = self.received.next_missing(self.next);
        if position >= self.packets {
            position = self.received.first_missing();
        }
        let number = self.given;
        (self.next, self.given, self.given_at) = (position + 1, number + 1, now);
        (position, number, self.received.next_missing(self.next) >= self.packets)
    }
}

/// A sender's share of a receiver's link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub(super) source: NodeIndex,
    /// Number of host channels that it combines.
    pub(super) links: u32,
    /// Number of these channels that are used before their epoch's sending begins.
    pub(super) prompt: u32,
    /// The fewest remaining packets of a flow at the time of the match.
    pub(super) shortest: u32,
    /// The priority of its tokens at their source.
    pub(super) priority: u32,
    /// The time at which its next token is due.
    pub(super) due: Ps,
    /// True if it has nothing to send until `due`; data or a new flow ends the wait.
    pub(super) waits: bool,
}

impl Channel {
    /// Allows a token at `at`.
    pub(super) fn set(&mut self, at: Ps) {
        (self.due, self.waits) = (at, false);
    }

    fn wait(&mut self, until: Ps) {
        (self.due, self.waits) = (until, true);
    }
}

/// The state of a host for all the flows that it receives.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Time by which its clock is behind.
    pub(super) offset: Ps,
    /// The time at which it is woken; `Ps::MAX` for never.
    pub(super) wake: Ps,
    /// The time of its next stage; `Ps::MAX` if there is nothing to match.
    pub(super) stage: Ps,
    /// Flows that want tokens, by their source.
    pub(super) wanting: BTreeMap<NodeIndex, Ranked>,
    /// The channels whose data is being sent.
    pub(super) sending: Vec<Channel>,
    /// Number of links of these channels.
    pub(super) sending_links: u32,
    /// The channels of the epoch that is being matched.
    pub(super) matched: Vec<Channel>,
    pub(super) matched_links: u32,
    /// Number of links in use, including the ones in use since their match.
    pub(super) in_use: u32,
    /// Grants that wait for the end of their round.
    pub(super) grants: Vec<Offer>,
    /// The time until which data of short flows occupies the link.
    held: Ps,
}

impl Default for Receiver {
    fn default() -> Receiver {
        Receiver {
            offset: Ps::ZERO,
            wake: Ps::MAX,
            stage: Ps::MAX,
            wanting: BTreeMap::new(),
            sending: Vec::new(),
            sending_links: 0,
            matched: Vec::new(),
            matched_links: 0,
            in_use: 0,
            grants: Vec::new(),
            held: Ps::ZERO,
        }
    }
}

impl Receiver {
    /// All its channels, with the ones of the next epoch last.
    fn channels(&mut self) -> impl Iterator<Item = &mut Channel> {
        self.sending.iter_mut().chain(&mut self.matched)
    }

    /// Ends the wait of the channels from this source.
    fn stir(&mut self, source: NodeIndex, now: Ps) {
        let waiting = |channel: &&mut Channel| channel.source == source && channel.waits;
        self.channels().filter(waiting).for_each(|channel| channel.set(now));
    }
}

impl Hosts {
    fn wake_receiver(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex, at: Ps) {
        let wake = &mut self.receivers[usize::from(node)].wake;
        if at < *wake {
            *wake = at;
            net.wake(End::Destination, node, at);
        }
    }

    /// Does everything that is due at a receiver, and schedules the next wake.
    pub(super) fn run_receiver(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex) {
        let now = net.now();
        if self.receivers[usize::from(node)].stage <= now {
            self.pass_stage(net, node);
        }
        let mut next = self.receivers[usize::from(node)].stage;
        let count = self.receivers[usize::from(node)].channels().count();
        for index in 0..count {
            while let Some(&mut channel) = self.channel(node, index).filter(|c| c.due <= now) {
                self.give(net, node, index, channel);
            }
            next = self.channel(node, index).map_or(next, |channel| next.min(channel.due));
        }
        if next < Ps::MAX {
            self.wake_receiver(net, node, next);
        }
    }

    fn channel(&mut self, node: NodeIndex, index: usize) -> Option<&mut Channel> {
        self.receivers[usize::from(node)].channels().nth(index)
    }

    /// Issues a channel's due token. It goes to the flow from its source with the fewest remaining
    /// packets, unless short flows occupy the link or enough tokens are in flight.
    fn give(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex, index: usize, of: Channel) {
        let (now, rules) = (net.now(), self.rules);
        let receiver = &mut self.receivers[usize::from(node)];
        let (held, offset) = (receiver.held, receiver.offset);
        let first = receiver.wanting.get(&of.source).and_then(Ranked::first).copied();
        let Some(channel) = self.channel(node, index) else { return };
        if held > now {
            return channel.set(held);
        }
        let Some((_, id)) = first else { return channel.wait(Ps::MAX) };
        let links = if of.prompt > 0 { of.prompt } else { of.links };
        let allowed = rules.window * links / rules.channels;
        let destination = &mut net.flow_mut(id).state.destination;
        if destination.given - destination.used > allowed {
            let relaxed = destination.given_at + rules.window_timeout;
            if now < relaxed {
                return channel.wait(relaxed);
            }
            destination.used = destination.given - allowed;
        }
        let (position, number, all) = destination.token(now);
        let pace = rules.packet_time.0 * u64::from(rules.channels) / u64::from(links);
        channel.set(now + Ps(pace));
        let end = rules.epochs.sending_end(Ps(now.0.saturating_sub(offset.0)));
        let until = if rules.matched { Ps::MAX } else { end + offset + rules.token_slack };
        let token = Token { position, number, priority: of.priority, until };
        Self::control(net, id, End::Destination, Header::Token(token));
        if all {
            self.rest(net, id);
            Self::arm(net, id, End::Destination, now + rules.resend);
        }
    }

    /// Registers a flow that wants tokens: its waiting channels continue, and its host takes part
    /// in matchings.
    fn want(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let now = net.now();
        let flow = net.flow_mut(id);
        let (source, node) = (flow.source, flow.destination);
        let rank = (flow.state.destination.remaining(), flow.state.order);
        flow.state.destination.wanting = Some(rank);
        let receiver = &mut self.receivers[usize::from(node)];
        receiver.wanting.entry(source).or_default().insert((rank, id));
        if self.rules.matched && receiver.sending.is_empty() {
            let (links, shortest, priority) = (self.rules.channels, 0, 2);
            let channel =
                Channel { source, links, prompt: 0, shortest, priority, due: now, waits: false };
            receiver.sending.push(channel);
        } else if !self.rules.matched && receiver.stage == Ps::MAX {
            let local = Ps(now.0.saturating_sub(receiver.offset.0));
            receiver.stage = self.rules.epochs.next_stage(local) + receiver.offset;
        }
        receiver.stir(source, now);
        self.run_receiver(net, node);
    }

    /// Unregisters a flow that wants no tokens, for now or for good.
    fn rest(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let flow = net.flow_mut(id);
        let Some(rank) = flow.state.destination.wanting.take() else { return };
        let receiver = &mut self.receivers[usize::from(flow.destination)];
        if let Some(ranked) = receiver.wanting.get_mut(&flow.source) {
            ranked.remove(&(rank, id));
            if ranked.first().is_none() {
                receiver.wanting.remove(&flow.source);
            }
        }
    }

    /// Handles the first news of a flow at its destination.
    fn learn(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let now = net.now();
        let flow = net.flow_mut(id);
        let (node, packets) = (flow.destination, flow.packets);
        let destination = &mut flow.state.destination;
        destination.known = true;
        if packets > self.rules.short_packets {
            return self.want(net, id);
        }
        // The whole flow is in flight, and occupies the link that tokens would use for other flows.
        (destination.given, destination.next) = (packets, packets);
        let line = self.rules.packet_time * u64::from(packets);
        let held = &mut self.receivers[usize::from(node)].held;
        *held = now.max(*held) + line;
        Self::arm(net, id, End::Destination, now + line + self.rules.resend);
    }

    pub(super) fn on_notification(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let destination = &net.flow(id).state.destination;
        if destination.done() {
            // The acknowledgement was lost, or is in flight.
            return Self::control(net, id, End::Destination, Header::Acknowledgement);
        }
        if !destination.known {
            self.learn(net, id);
        }
        Self::control(net, id, End::Destination, Header::Noted);
    }

    pub(super) fn on_data(
        &mut self,
        net: &mut Net<'_, Hosts>,
        id: FlowId,
        position: u32,
        number: u32,
    ) {
        let now = net.now();
        let flow = net.flow(id);
        let (purpose, source, node) = (flow.purpose, flow.source, flow.destination);
        if flow.state.destination.done() {
            return;
        }
        if is_data(purpose) && !flow.state.destination.known {
            self.learn(net, id);
        }
        let order = net.flow(id).state.order;
        let destination = &mut net.flow_mut(id).state.destination;
        destination.used = destination.used.max(number + 1);
        destination.received.insert(position);
        if destination.done() {
            return self.complete(net, id);
        }
        let rank = (destination.remaining(), order);
        if let Some(before) = destination.wanting.replace(rank) {
            let receiver = &mut self.receivers[usize::from(node)];
            let ranked = receiver.wanting.entry(source).or_default();
            ranked.remove(&(before, id));
            ranked.insert((rank, id));
            receiver.stir(source, now);
            self.run_receiver(net, node);
        } else {
            net.flow_mut(id).state.destination.wanting = None;
        }
    }

    fn complete(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        self.rest(net, id);
        let flow = net.flow(id);
        let (purpose, node) = (flow.purpose, usize::from(flow.destination));
        if self.rules.matched && self.receivers[node].wanting.is_empty() {
            self.receivers[node].sending.clear();
        }
        Self::arm(net, id, End::Destination, Ps::MAX);
        net.deliver(id);
        if is_data(purpose) {
            Self::control(net, id, End::Destination, Header::Acknowledgement);
        }
    }

    /// Handles the timeout of a destination: missing packets of the flow want new tokens.
    pub(super) fn want_again(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let destination = &mut net.flow_mut(id).state.destination;
        if destination.done() || destination.wanting.is_some() {
            return;
        }
        destination.used = destination.given;
        net.count_again(0, 1);
        self.want(net, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_when_every_packet_had_its_token_is_called_for_again() {
        let mut destination = Destination::default();
        destination.reset(3);
        let token = |destination: &mut Destination| destination.token(Ps::ZERO);
        assert_eq!(token(&mut destination), (0, 0, false));
        assert_eq!(token(&mut destination), (1, 1, false));
        assert_eq!(token(&mut destination), (2, 2, true));
        destination.received.insert(1);
        assert_eq!(token(&mut destination), (0, 3, false));
        assert_eq!(token(&mut destination), (2, 4, true));
    }
}
