//! Ports: the queues at either end of a link, by the credits that they need.

use std::collections::VecDeque;

use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::CxlConfig;
use super::link::{Credits, Line};
use super::transaction::{Class, Entry, Turn};

/// The division of the entries of a link's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All classes of messages share the entries and one queue.
    Shared {
        /// Number of entries.
        entries: u32,
    },
    /// Every class has its own entries and its own queue.
    ByClass {
        /// Number of entries for requests without data (M2S Req).
        request_entries: u32,
        /// Number of entries for requests with data (M2S RwD).
        write_entries: u32,
        /// Number of entries for requested data (S2M DRS).
        response_entries: u32,
    },
}

impl Sharing {
    /// The number of entries of each channel.
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

/// A queue with credits of its own, at a node and in the switch's buffer for it.
pub(super) struct Channel {
    /// The waiting turns with their arrival numbers. Of the channels with a credit, the one that
    /// waits longest is next.
    pub(super) turns: VecDeque<(u64, Turn)>,
    pub(super) credits: Credits,
    /// The buffered entries with the time from which the switch can forward them: the first one
    /// blocks the others.
    pub(super) buffer: VecDeque<(Ps, Entry)>,
    /// True while the first entry is on its way to its egress, waits there, or an entry is leaving.
    pub(super) forwarding: bool,
}

/// A node's transmitter, and the switch's buffer at its end.
pub(super) struct Ingress {
    pub(super) channels: Vec<Channel>,
    pub(super) line: Line,
    /// Number of turns that ever arrived.
    turns: u64,
    /// True if the line takes no transaction before its next event.
    pub(super) busy: bool,
    /// The time of the next check for a credit.
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

    /// Adds a turn behind the waiting ones.
    pub(super) fn push(&mut self, channel: u8, turn: Turn) {
        self.channels[usize::from(channel)].turns.push_back((self.turns, turn));
        self.turns += 1;
    }

    /// Takes the longest waiting turn that has a credit, and the credit.
    pub(super) fn take(&mut self, now: Ps) -> Option<Turn> {
        let first = |channel: &&mut Channel| channel.turns.front().map(|&(came, _)| came);
        let waiting = self.channels.iter_mut().filter(|channel| !channel.turns.is_empty());
        let sending = waiting.filter_map(|channel| channel.credits.has(now).then_some(channel));
        let channel = sending.min_by_key(first)?;
        channel.credits.take(now);
        channel.turns.pop_front().map(|(_, turn)| turn)
    }

    /// The arrival time of the next credit for which a turn waits, if one is on its way.
    pub(super) fn next_credit(&self) -> Option<Ps> {
        let waiting = self.channels.iter().filter(|channel| !channel.turns.is_empty());
        waiting.filter_map(|channel| channel.credits.next()).min()
    }
}

/// A switch's transmitter to a node.
pub(super) struct Egress {
    /// Ports and channels whose first entry goes here, in turn.
    pub(super) waiting: VecDeque<(NodeIndex, u8)>,
    pub(super) line: Line,
    /// The credits for the node's buffer, by channel.
    pub(super) credits: Vec<Credits>,
    /// True if the line is busy: see [`Ingress`].
    pub(super) busy: bool,
    pub(super) look: Option<Ps>,
}

impl Egress {
    pub(super) fn new(config: &CxlConfig, line: Line) -> Egress {
        let credits = config.sharing.channels().into_iter().map(Credits::new).collect();
        Egress { waiting: VecDeque::new(), line, credits, busy: false, look: None }
    }

    /// Takes the first waiting entry that has a credit, and the credit.
    pub(super) fn take(&mut self, now: Ps) -> Option<(NodeIndex, u8)> {
        let credits = &mut self.credits;
        let has = |&(_, channel): &(NodeIndex, u8)| credits[usize::from(channel)].take(now);
        let at = self.waiting.iter().position(has)?;
        self.waiting.remove(at)
    }

    /// The arrival time of the next credit for which an entry waits.
    pub(super) fn next_credit(&self) -> Option<Ps> {
        let of = |&(_, channel): &(NodeIndex, u8)| self.credits[usize::from(channel)].next();
        self.waiting.iter().filter_map(of).min()
    }
}
