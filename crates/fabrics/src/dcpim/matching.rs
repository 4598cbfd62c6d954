//! The rounds of a matching, at both ends: receivers request, senders grant, receivers accept.

use ethermem_frames::{End, FlowId, Net, Ranked};
use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::destination::Channel;
use super::{Header, Hosts};

/// The priority of tokens of channels that are used from their match on.
const PROMPT_PRIORITY: u32 = 1_000;
/// The priority of tokens of the first channel of an epoch.
const CHANNEL_PRIORITY: u32 = 2;

/// The fields of a message of the matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bid {
    epoch: u32,
    round: u32,
    /// Number of packets of its flow that have not arrived.
    remaining: u32,
    /// Number of channels requested, granted or accepted.
    links: u32,
    /// Number of these channels that would be used at once.
    prompt: u32,
}

/// A bid that waits for the end of its round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    flow: FlowId,
    order: u64,
    /// The source of its flow.
    source: NodeIndex,
    /// The time of the decision.
    due: Ps,
    bid: Bid,
}

impl Hosts {
    /// Takes the offer to decide on next. In the first rounds it is the one with the fewest
    /// remaining packets, later a random one.
    fn pick(&mut self, offers: &mut Vec<Offer>) -> Option<Offer> {
        let first = offers.first()?;
        let index = if first.bid.round < self.rules.shortest_rounds {
            let rank = |&index: &usize| (offers[index].bid.remaining, offers[index].order);
            (0..offers.len()).min_by_key(rank)?
        } else {
            self.draw(offers.len())
        };
        Some(offers.swap_remove(index))
    }

    pub(super) fn on_request(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, bid: Bid) {
        let now = net.now();
        let flow = net.flow(id);
        let (node, order) = (flow.source, flow.state.order);
        let sender = &mut self.senders[usize::from(node)];
        let epochs = &self.rules.epochs;
        // A late request counts in the next round.
        let answer = |round| (round, epochs.answer(bid.epoch, round) + sender.offset);
        let in_time = |&(_, due): &(u32, Ps)| due >= now;
        let Some((round, due)) = (bid.round..epochs.rounds()).map(answer).find(in_time) else {
            return;
        };
        let bid = Bid { round, ..bid };
        sender.requests.push(Offer { flow: id, order, source: node, due, bid });
        self.wake_sender(net, node, due);
    }

    /// Lets a sender grant its channels to the requests of the round that is over.
    pub(super) fn answer_requests(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex) {
        let (now, rules) = (net.now(), self.rules);
        let sender = &mut self.senders[usize::from(node)];
        if sender.requests.is_empty() {
            return;
        }
        let mut due = Vec::new();
        sender.requests.retain(|offer| {
            let comes = offer.due <= now;
            if comes && Self::lives(net, offer.flow, offer.order) {
                due.push(*offer);
            }
            !comes
        });
        if let Some(next) = sender.requests.iter().map(|offer| offer.due).min() {
            self.wake_sender(net, node, next);
        }
        let Some(epoch) = due.first().map(|offer| offer.bid.epoch) else { return };
        let sender = &mut self.senders[usize::from(node)];
        if epoch != sender.epoch {
            sender.in_use = if epoch == sender.epoch + 1 { sender.taken } else { 0 };
            (sender.epoch, sender.taken) = (epoch, 0);
        }
        let mut free = rules.channels - sender.taken;
        let mut idle = rules.channels.saturating_sub(sender.in_use);
        while let (true, Some(offer)) = (free > 0, self.pick(&mut due)) {
            let links = offer.bid.links.min(free);
            let prompt = offer.bid.prompt.min(links).min(idle);
            (free, idle) = (free - links, idle - prompt);
            let bid = Bid { links, prompt, ..offer.bid };
            Self::control(net, offer.flow, End::Source, Header::Grant(bid));
        }
    }

    pub(super) fn on_grant(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, bid: Bid) {
        let flow = net.flow(id);
        let (node, source, order) = (flow.destination, flow.source, flow.state.order);
        let receiver = &mut self.receivers[usize::from(node)];
        let epochs = &self.rules.epochs;
        let ends = epochs.begin(bid.epoch, epochs.rounds()) + receiver.offset;
        // A later grant is for a matching that is over.
        if receiver.stage <= ends {
            receiver.grants.push(Offer { flow: id, order, source, due: Ps::ZERO, bid });
        }
    }

    pub(super) fn on_accept(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, bid: Bid) {
        let channels = self.rules.channels;
        let node = net.flow(id).source;
        let sender = &mut self.senders[usize::from(node)];
        if bid.epoch != sender.epoch {
            return;
        }
        let links = bid.links.min(channels - sender.taken);
        let prompt = bid.prompt.min(links);
        sender.taken += links;
        sender.in_use += prompt;
        if links < bid.links {
            let bid = Bid { links: bid.links - links, prompt: bid.prompt - prompt, ..bid };
            Self::control(net, id, End::Source, Header::Release(bid));
        }
    }

    pub(super) fn on_release(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, bid: Bid) {
        let flow = net.flow(id);
        let source = flow.source;
        let receiver = &mut self.receivers[usize::from(flow.destination)];
        let mut all = receiver.matched.iter_mut().chain(&mut receiver.sending);
        let Some(channel) = all.find(|channel| channel.source == source) else { return };
        channel.links = channel.links.saturating_sub(bid.links);
        channel.prompt = channel.prompt.saturating_sub(bid.prompt);
        if channel.links == 0 || (bid.prompt > 0 && channel.prompt == 0) {
            channel.set(Ps::MAX);
        }
    }

    /// Ends a round of a receiver, and begins the next.
    pub(super) fn pass_stage(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex) {
        let now = net.now();
        let epochs = self.rules.epochs;
        let offset = self.receivers[usize::from(node)].offset;
        let local = Ps(now.0 - offset.0);
        let stage = epochs.stage(local);
        self.take_grants(net, node);
        if stage.ends.is_some() {
            self.begin_sending(net, node);
        }
        let receiver = &mut self.receivers[usize::from(node)];
        if let Some((_, 0)) = stage.begins {
            receiver.matched.clear();
            receiver.matched_links = 0;
            receiver.in_use = receiver.sending_links;
        }
        let idle = receiver.sending.is_empty() && receiver.matched.is_empty();
        if idle && receiver.wanting.is_empty() {
            receiver.stage = Ps::MAX;
            return;
        }
        receiver.stage = epochs.next_stage(local) + offset;
        if let Some((epoch, round)) = stage.begins {
            self.ask(net, node, epoch, round);
        }
    }

    /// Lets a receiver request channels of every sender with flows for it, as many as the sender's
    /// first flow can fill.
    fn ask(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex, epoch: u32, round: u32) {
        let rules = self.rules;
        let receiver = &self.receivers[usize::from(node)];
        let free = rules.channels - receiver.matched_links;
        let idle = rules.channels.saturating_sub(receiver.in_use);
        if free == 0 {
            return;
        }
        for (&source, flows) in &receiver.wanting {
            let Some(&((remaining, _), id)) = flows.first() else { continue };
            let both = receiver.sending.iter().chain(&receiver.matched);
            let held: u32 = both.filter(|of| of.source == source).map(|of| of.links).sum();
            let needed = remaining.div_ceil(rules.channel_packets).saturating_sub(held);
            if needed == 0 {
                continue;
            }
            let links = needed.min(free);
            let prompt = if rules.prompt { links.min(idle) } else { 0 };
            let bid = Bid { epoch, round, remaining, links, prompt };
            Self::control(net, id, End::Destination, Header::Request(bid));
        }
    }

    /// Lets a receiver accept grants while it has channels left.
    fn take_grants(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex) {
        let (now, rules, at) = (net.now(), self.rules, usize::from(node));
        let mut grants = std::mem::take(&mut self.receivers[at].grants);
        while let Some(grant) = self.pick(&mut grants) {
            let receiver = &mut self.receivers[at];
            let links = grant.bid.links.min(rules.channels - receiver.matched_links);
            let idle = rules.channels.saturating_sub(receiver.in_use);
            let prompt = grant.bid.prompt.min(links).min(idle);
            // The grant's flow may have ended; the channel serves any flow of its source.
            let source = grant.source;
            let lives = Self::lives(net, grant.flow, grant.order);
            let other = receiver.wanting.get(&source).and_then(Ranked::first);
            let flow = if lives { Some(grant.flow) } else { other.map(|&(_, id)| id) };
            let (Some(flow), true) = (flow, links > 0) else { continue };
            receiver.matched_links += links;
            receiver.in_use += prompt;
            let mut channels = receiver.matched.iter_mut();
            if let Some(channel) = channels.find(|channel| channel.source == source) {
                channel.links += links;
                channel.prompt += prompt;
                if prompt > 0 {
                    channel.set(now);
                }
            } else {
                receiver.matched.push(Channel {
                    source,
                    links,
                    prompt,
                    shortest: grant.bid.remaining,
                    priority: PROMPT_PRIORITY,
                    due: if prompt > 0 { now } else { Ps::MAX },
                    waits: false,
                });
            }
            let bid = Bid { links, prompt, ..grant.bid };
            Self::control(net, flow, End::Destination, Header::Accept(bid));
        }
        self.receivers[at].grants = grants;
    }

    /// Begins the sending of the matched channels.
    fn begin_sending(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex) {
        let now = net.now();
        let receiver = &mut self.receivers[usize::from(node)];
        std::mem::swap(&mut receiver.sending, &mut receiver.matched);
        receiver.matched.clear();
        receiver.sending.retain(|channel| channel.links > 0);
        receiver.sending.sort_by_key(|channel| channel.shortest);
        let mut priority = CHANNEL_PRIORITY;
        for channel in &mut receiver.sending {
            (channel.priority, channel.prompt) = (priority, 0);
            priority += channel.links;
            channel.set(now);
        }
        receiver.sending_links = priority - CHANNEL_PRIORITY;
        receiver.matched_links = 0;
        receiver.in_use = receiver.sending_links;
    }
}
