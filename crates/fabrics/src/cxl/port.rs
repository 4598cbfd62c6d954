//! Ports: the queues at either end of a link, by the credits that they need.

use std::collections::VecDeque;

use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::CxlConfig;
use super::link::{Credits, Line};
use super::transaction::{Class, Entry, Piece, Turn};

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

/// The order in which a switch forwards the entries of a port and class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queues {
    /// One queue: its first entry blocks the others.
    #[default]
    PerPort,
    /// A virtual queue for each output: entries wait for those with the same destination alone. An
    /// input feeds several outputs at once.
    PerOutput,
}

impl Queues {
    /// The queue of entries to a node.
    fn of(self, to: NodeIndex) -> NodeIndex {
        match self {
            Queues::PerPort => 0,
            Queues::PerOutput => to,
        }
    }
}

/// A queue of a port's buffer in the switch: the port, its class of messages, and the queue's own
/// number, which is its output's if there is one for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) port: NodeIndex,
    pub(super) channel: u8,
    pub(super) queue: NodeIndex,
}

/// Entries in order.
#[derive(Default)]
pub(super) struct Queue {
    /// The buffered entries with the time from which the switch can forward them.
    pub(super) entries: VecDeque<(Ps, Entry)>,
    /// True while the first entry is on its way to its egress, waits there, or an entry is leaving.
    pub(super) forwarding: bool,
}

/// A class of messages with credits of its own, at a node and in the switch's buffer for it.
pub(super) struct Channel {
    /// The waiting turns with their arrival numbers. Of the channels with a credit, the one that
    /// waits longest is next.
    pub(super) turns: VecDeque<(u64, Turn)>,
    pub(super) credits: Credits,
    queues: Vec<Queue>,
    /// Number of entries in all of them.
    kept: usize,
}

impl Channel {
    pub(super) fn queue(&mut self, at: NodeIndex) -> &mut Queue {
        &mut self.queues[usize::from(at)]
    }

    /// Buffers an entry, which can be forwarded from `ready` on. Returns the number of its queue,
    /// and whether nothing of it is being forwarded; now it is.
    pub(super) fn buffer(&mut self, of: Queues, ready: Ps, entry: Entry) -> (NodeIndex, bool) {
        self.kept += 1;
        assert!(self.kept <= self.credits.size() as usize, "the buffer of a port overflows");
        let at = of.of(entry.to);
        if usize::from(at) >= self.queues.len() {
            self.queues.resize_with(usize::from(at) + 1, Queue::default);
        }
        let queue = self.queue(at);
        queue.entries.push_back((ready, entry));
        (at, !std::mem::replace(&mut queue.forwarding, true))
    }

    /// Removes the first entry of a queue.
    pub(super) fn forward(&mut self, at: NodeIndex) -> Entry {
        self.kept -= 1;
        self.queue(at).entries.pop_front().expect("its first entry waits").1
    }

    /// True if no entry is buffered.
    pub(super) fn is_empty(&self) -> bool {
        self.kept == 0
    }

    /// True if nothing waits or passes, and no credit is out.
    fn is_quiet(&self, now: Ps) -> bool {
        self.turns.is_empty()
            && self.is_empty()
            && self.credits.are_back(now)
            && self.queues.iter().all(|queue| !queue.forwarding)
    }

    /// Where the first entry of a queue goes.
    pub(super) fn head_to(&self, at: NodeIndex) -> Option<NodeIndex> {
        let queue = self.queues.get(usize::from(at))?;
        queue.entries.front().map(|(_, entry)| entry.to)
    }
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
            queues: vec![Queue::default()],
            kept: 0,
        };
        let channels = config.sharing.channels().into_iter().map(channel).collect();
        Ingress { channels, line, turns: 0, busy: false, look: None }
    }

    /// True if nothing of any message is at the port or on its line.
    pub(super) fn is_quiet(&self, now: Ps) -> bool {
        let is_free = !self.busy && self.look.is_none() && self.line.is_free(now);
        is_free && self.channels.iter().all(|channel| channel.is_quiet(now))
    }

    /// Adds a turn behind the waiting ones.
    pub(super) fn push(&mut self, channel: u8, turn: Turn) {
        self.channels[usize::from(channel)].turns.push_back((self.turns, turn));
        self.turns += 1;
    }

    /// Adds the rest of a turn: behind the waiting ones, or before those that it makes wait.
    pub(super) fn go_on(&mut self, channel: u8, turn: Turn) {
        if turn.piece != Piece::Line {
            let turns = &mut self.channels[usize::from(channel)].turns;
            if let Some(at) = turns.iter().position(|(_, waiting)| waiting.piece == turn.piece) {
                let came = turns[at].0;
                return turns.insert(at, (came, turn));
            }
        }
        self.push(channel, turn);
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

/// A queue whose first entry waits for an egress, and that entry's message.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    place: Place,
    message: (Piece, u64),
}

impl Waiting {
    pub(super) fn of(place: Place, entry: &Entry) -> Waiting {
        Waiting { place, message: (entry.piece, entry.serial) }
    }
}

/// A switch's transmitter to a node.
pub(super) struct Egress {
    /// Queues whose first entry goes here, in turn.
    pub(super) waiting: VecDeque<Waiting>,
    /// The short and the long message of which an entry left last.
    current: [Option<(Piece, u64)>; 2],
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
        let waiting = VecDeque::new();
        Egress { waiting, current: [None; 2], line, credits, busy: false, look: None }
    }

    /// True if nothing of any message waits, or is on the line or at its end.
    pub(super) fn is_quiet(&self, now: Ps) -> bool {
        let is_free = !self.busy && self.look.is_none() && self.line.is_free(now);
        is_free && self.waiting.is_empty() && self.credits.iter().all(|of| of.are_back(now))
    }

    /// Takes the first waiting entry that has a credit, and the credit. While more of a message in
    /// one piece waits, others of its kind do not go before it, unless it has no credit.
    pub(super) fn take(&mut self, now: Ps) -> Option<Place> {
        let waits =
            |message: &(Piece, u64)| self.waiting.iter().any(|waiting| waiting.message == *message);
        let go_on = self.current.map(|message| message.filter(waits));
        let credits = &mut self.credits;
        let mut has = |waiting: &Waiting| credits[usize::from(waiting.place.channel)].take(now);
        let is_behind = |waiting: &Waiting| {
            let (piece, serial) = waiting.message;
            go_on.iter().flatten().any(|first| first.0 == piece && first.1 != serial)
        };
        let mut first = |behind: bool| {
            self.waiting.iter().position(|waiting| is_behind(waiting) == behind && has(waiting))
        };
        let at = first(false).or_else(|| first(true))?;
        let taken = self.waiting.remove(at)?;
        match taken.message.0 {
            Piece::Line => {}
            Piece::Short => self.current[0] = Some(taken.message),
            Piece::Long => self.current[1] = Some(taken.message),
        }
        Some(taken.place)
    }

    /// The arrival time of the next credit for which an entry waits.
    pub(super) fn next_credit(&self) -> Option<Ps> {
        let of = |waiting: &Waiting| self.credits[usize::from(waiting.place.channel)].next();
        self.waiting.iter().filter_map(of).min()
    }
}
