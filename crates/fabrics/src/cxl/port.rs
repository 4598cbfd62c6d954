//! Ports: what waits at either end of a link, by the credits that it needs.

use std::collections::VecDeque;

use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::CxlConfig;
use super::link::{Credits, Line};
use super::transaction::{Class, Entry, Turn};

/// Whose entries a link's buffer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All classes of messages share them, and one queue.
    Shared {
        /// How many there are.
        entries: u32,
    },
    /// Every class has its own, and its own queue.
    ByClass {
        /// Of requests without data (M2S Req).
        request_entries: u32,
        /// Of requests with data (M2S RwD).
        write_entries: u32,
        /// Of data that was asked for (S2M DRS).
        response_entries: u32,
    },
}

impl Sharing {
    /// The entries of every channel.
    pub(super) fn channels(self) -> Vec<u32> {
        match self {
            Sharing::Shared { entries } => vec![entries],
            Sharing::ByClass { request_entries, write_entries, response_entries } => {
                vec![request_entries, write_entries, response_entries]
            }
        }
    }

    /// The channel of a class.
    pub(super) fn channel(self, class: Class) -> u8 {
        match self {
            Sharing::Shared { .. } => 0,
            Sharing::ByClass { .. } => class as u8,
        }
    }
}

/// What waits for credits of its own, at a node and in the switch's buffer for it.
pub(super) struct Channel {
    /// With when they came: of channels that have a credit, the one that waits longest is next.
    pub(super) turns: VecDeque<(u64, Turn)>,
    pub(super) credits: Credits,
    /// With when the switch can forward it: the first decides for all.
    pub(super) buffer: VecDeque<(Ps, Entry)>,
    /// The first of them is on its way to its egress, waits there, or one is leaving.
    pub(super) forwarding: bool,
}

/// A node's transmitter and the switch's buffer at its end.
pub(super) struct Ingress {
    pub(super) channels: Vec<Channel>,
    pub(super) line: Line,
    /// Turns that ever came.
    turns: u64,
    /// The line takes nothing before its next event.
    pub(super) busy: bool,
    /// When a credit will be looked for.
    pub(super) look: Option<Ps>,
}

impl Ingress {
    pub(super) fn new(config: &CxlConfig, line: Line) -> Ingress {
        let channel = |entries| Channel {
            turns: VecDeque::new(),
            credits: Credits::new(entries),
            buffer: VecDeque::new(),
            forwarding: false,
        };
        let channels = config.sharing.channels().into_iter().map(channel).collect();
        Ingress { channels, line, turns: 0, busy: false, look: None }
    }

    /// Puts a turn behind those that wait.
    pub(super) fn push(&mut self, channel: u8, turn: Turn) {
        self.channels[usize::from(channel)].turns.push_back((self.turns, turn));
        self.turns += 1;
    }

    /// Takes the turn that waits longest of those that have a credit, with one.
    pub(super) fn take(&mut self, now: Ps) -> Option<Turn> {
        let first = |channel: &&mut Channel| channel.turns.front().map(|&(came, _)| came);
        let waiting = self.channels.iter_mut().filter(|channel| !channel.turns.is_empty());
        let sending = waiting.filter_map(|channel| channel.credits.has(now).then_some(channel));
        let channel = sending.min_by_key(first)?;
        channel.credits.take(now);
        channel.turns.pop_front().map(|(_, turn)| turn)
    }

    /// When the next credit comes that something waits for, if one is on its way.
    pub(super) fn next_credit(&self) -> Option<Ps> {
        let waiting = self.channels.iter().filter(|channel| !channel.turns.is_empty());
        waiting.filter_map(|channel| channel.credits.next()).min()
    }
}

/// A switch's transmitter to a node.
pub(super) struct Egress {
    /// Ports, with the channel, whose first entry goes here, in turn.
    pub(super) waiting: VecDeque<(NodeIndex, u8)>,
    pub(super) line: Line,
    /// For the node's buffer, by channel.
    pub(super) credits: Vec<Credits>,
    /// As of [`Ingress`].
    pub(super) busy: bool,
    pub(super) look: Option<Ps>,
}

impl Egress {
    pub(super) fn new(config: &CxlConfig, line: Line) -> Egress {
        let credits = config.sharing.channels().into_iter().map(Credits::new).collect();
        Egress { waiting: VecDeque::new(), line, credits, busy: false, look: None }
    }

    /// Takes the first that has a credit, with one.
    pub(super) fn take(&mut self, now: Ps) -> Option<(NodeIndex, u8)> {
        let credits = &mut self.credits;
        let has = |&(_, channel): &(NodeIndex, u8)| credits[usize::from(channel)].take(now);
        let at = self.waiting.iter().position(has)?;
        self.waiting.remove(at)
    }

    /// When the next credit comes that something waits for.
    pub(super) fn next_credit(&self) -> Option<Ps> {
        let of = |&(_, channel): &(NodeIndex, u8)| self.credits[usize::from(channel)].next();
        self.waiting.iter().filter_map(of).min()
    }
}
