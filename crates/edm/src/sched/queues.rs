//! The notification queues. A pair of ports has two first-in-first-out streams; each end of a port
//! has the list of messages that may be granted there.
//!
//! Only a pair's best message can be granted, so a destination's queue holds at most one candidate
//! per source, whatever X is.
//!
//! An idle pair costs only an index: a pair has state only while it has messages.

use super::lists::{Candidate, Head, Lists, NO_HEAD, NOWHERE, Peer};
use super::rule::{Demand, Flow, NotifyError, Ranking, priority};
use super::slab::{ENDED, Entry, NONE, Name, Pair, Slab};
use crate::Order;

#[derive(Debug)]
pub(super) struct Queues {
    ports: u16,
    order: Order,
    active_max: u8,
    pub(super) ranking: Ranking,
    sequence: u64,
    entries: Slab<Entry>,
    /// The state of a pair of ports, [`NONE`] while it has no messages. The two directions between
    /// two ports lie together, because one often needs the other.
    pair_of: Vec<u32>,
    pairs: Slab<Pair>,
    /// By pair: true if the write goes first where a response and a write have one class. See
    /// [`Queues::best_of_pair`].
    write_next: Vec<bool>,
    /// The candidates of each destination.
    pub(super) candidates: Lists<Candidate, 4>,
    /// The peers of each source.
    pub(super) peers: Lists<Peer, 8>,
}

impl Queues {
    pub(super) fn new(ports: u16, order: Order, active_max: u8, ranking: Ranking) -> Queues {
        let pairs = usize::from(ports) * (usize::from(ports) - 1);
        Queues {
            ports,
            order,
            active_max,
            ranking,
            sequence: 0,
            entries: Slab::new(pairs * 2 * usize::from(active_max)),
            pair_of: vec![NONE; pairs],
            pairs: Slab::new(pairs),
            write_next: vec![false; if ranking == Ranking::Classes { pairs } else { 0 }],
            candidates: Lists::new(ports),
            peers: Lists::new(ports),
        }
    }

    /// Number of messages that wait in all queues.
    pub(super) fn waiting(&self) -> usize {
        self.entries.in_use()
    }

    #[inline]
    pub(super) fn entry(&self, entry: u32) -> &Entry {
        &self.entries[entry]
    }

    /// The priority of a listed pair's message.
    #[inline]
    pub(super) fn priority_of(&self, pair: u32) -> u64 {
        self.pairs[pair].priority
    }

    /// The candidate message of a listed pair.
    #[inline]
    pub(super) fn best(&self, pair: u32) -> u32 {
        self.pairs[pair].best
    }

    #[inline]
    fn index_of(&self, source: u16, destination: u16) -> usize {
        let (low, high) = (source.min(destination), source.max(destination));
        let (low, high) = (usize::from(low), usize::from(high));
        let before = low * (2 * usize::from(self.ports) - low - 1) / 2;
        2 * (before + high - low - 1) + usize::from(source > destination)
    }

    /// Queues a message. The candidates of its pair are up to date afterwards.
    pub(super) fn insert(&mut self, demand: &Demand) -> Result<Name, NotifyError> {
        let at = self.index_of(demand.source, demand.destination);
        let flow = demand.flow as usize;
        let mut pair = self.pair_of[at];
        if pair == NONE {
            pair = self.pairs.insert(Pair {
                priority: u64::MAX,
                best: NONE,
                head: [NONE; 2],
                tail: [NONE; 2],
                in_destination: NOWHERE,
                in_source: NOWHERE,
                active: [0; 2],
                source: demand.source,
                destination: demand.destination,
            });
            self.pair_of[at] = pair;
        } else if self.pairs[pair].active[flow] == self.active_max {
            return Err(NotifyError::PairFull);
        }
        let entry = self.entries.insert(Entry {
            sequence: self.sequence,
            remaining: demand.bytes,
            bytes: demand.bytes,
            tag: demand.tag,
            next: NONE,
            flow: demand.flow,
            started: false,
            late: false,
        });
        self.sequence += 1;
        let state = &mut self.pairs[pair];
        state.active[flow] += 1;
        let tail = std::mem::replace(&mut state.tail[flow], entry);
        if tail == NONE {
            state.head[flow] = entry;
        } else {
            self.entries[tail].next = entry;
        }
        if tail == NONE || self.order == Order::Relaxed {
            self.refresh(pair);
        }
        let Demand { source, destination, .. } = *demand;
        Ok(Name { sequence: self.entries[entry].sequence, entry, source, destination })
    }

    /// Ranks a message as late from now on. Returns its destination if the message still waits.
    pub(super) fn set_late(&mut self, name: Name) -> Option<u16> {
        let Name { sequence, entry, source, destination } = name;
        let message = &mut self.entries[entry];
        if message.sequence != sequence {
            return None;
        }
        message.late = true;
        self.refresh(self.pair_of[self.index_of(source, destination)]);
        Some(destination)
    }

    /// Takes `bytes` off a message of a pair. Returns true when the message is now granted in full.
    pub(super) fn take(&mut self, pair: u32, entry: u32, bytes: u32) -> bool {
        let message = &mut self.entries[entry];
        message.remaining -= bytes;
        let last = message.remaining == 0;
        let flow = message.flow;
        let first = !std::mem::replace(&mut message.started, true);
        let Pair { source, destination, .. } = self.pairs[pair];
        if self.ranking == Ranking::Classes {
            let index = self.index_of(source, destination);
            self.write_next[index] = flow == Flow::ReadResponse;
        }
        if last {
            self.remove(pair, entry);
            self.refresh(pair);
            self.forget_if_idle(pair);
        } else if self.ranking == Ranking::Classes {
            self.refresh(pair);
        } else if self.ranking != Ranking::Arrival {
            self.rank_anew(pair, entry);
        }
        if first && flow == Flow::ReadResponse {
            // A released request lets the writes behind it go; they flow the other way.
            let reverse = self.pair_of[self.index_of(destination, source)];
            if reverse != NONE && self.pairs[reverse].head[Flow::WriteRequest as usize] != NONE {
                self.refresh(reverse);
            }
        }
        last
    }

    /// Updates the rank of a message that shrank. It ranks no worse, so it stays the candidate of
    /// its pair and its place at its source; at most it becomes the first of its destination.
    #[inline]
    fn rank_anew(&mut self, pair: u32, entry: u32) {
        let message = &self.entries[entry];
        let rank = priority(self.ranking, message.ranked());
        let state = &self.pairs[pair];
        if state.best != entry || rank > state.priority {
            self.refresh(pair);
        } else if rank < state.priority {
            self.set_candidate(pair, rank, entry);
        }
    }

    /// Drops every message of a port, and reports each.
    pub(super) fn clear_port(&mut self, port: u16, mut dropped: impl FnMut(u16, u16, &Entry)) {
        for peer in (0..self.ports).filter(|&peer| peer != port) {
            for (source, destination) in [(port, peer), (peer, port)] {
                let pair = self.pair_of[self.index_of(source, destination)];
                if pair == NONE {
                    continue;
                }
                for flow in [Flow::ReadResponse, Flow::WriteRequest] {
                    while self.pairs[pair].head[flow as usize] != NONE {
                        let entry = self.pairs[pair].head[flow as usize];
                        dropped(source, destination, &self.entries[entry]);
                        self.remove(pair, entry);
                    }
                }
                self.refresh(pair);
                self.forget_if_idle(pair);
            }
        }
    }

    /// Ranks every message again, as `Policy::Auto` needs when it changes its choice.
    pub(super) fn set_ranking(&mut self, ranking: Ranking) {
        self.ranking = ranking;
        for at in 0..self.pair_of.len() {
            if self.pair_of[at] != NONE {
                self.refresh(self.pair_of[at]);
            }
        }
    }

    fn remove(&mut self, pair: u32, entry: u32) {
        let Entry { flow, next, .. } = self.entries[entry];
        let flow = flow as usize;
        let state = &mut self.pairs[pair];
        if state.head[flow] == entry {
            state.head[flow] = next;
            if next == NONE {
                state.tail[flow] = NONE;
            }
        } else {
            let mut before = state.head[flow];
            while self.entries[before].next != entry {
                before = self.entries[before].next;
            }
            self.entries[before].next = next;
            if next == NONE {
                state.tail[flow] = before;
            }
        }
        state.active[flow] -= 1;
        self.entries[entry].sequence = ENDED;
        self.entries.remove(entry);
    }

    fn forget_if_idle(&mut self, pair: u32) {
        let Pair { active, source, destination, .. } = self.pairs[pair];
        if active == [0; 2] {
            let at = self.index_of(source, destination);
            self.pair_of[at] = NONE;
            self.pairs.remove(pair);
        }
    }

    /// True if an earlier request of a write's compute-memory pair was not released. Responses to
    /// such requests flow the other way, first in, first out: at most the first was released.
    fn is_gated(&self, pair: &Pair, write: &Entry) -> bool {
        let reverse = self.pair_of[self.index_of(pair.destination, pair.source)];
        if reverse == NONE {
            return false;
        }
        let mut request = self.pairs[reverse].head[Flow::ReadResponse as usize];
        if request != NONE && self.entries[request].started {
            request = self.entries[request].next;
        }
        request != NONE && self.entries[request].sequence < write.sequence
    }

    /// The message of a pair that may be granted next, with its priority. Equal priorities, which
    /// only [`Ranking::Classes`] has, take turns by flow; within a flow the first goes first.
    fn best_of_pair(&self, pair: &Pair) -> Option<(u64, u32)> {
        let mut best: Option<(u64, u32)> = None;
        let write_next = !self.write_next.is_empty()
            && self.write_next[self.index_of(pair.source, pair.destination)];
        for flow in if write_next { [1, 0] } else { [0, 1] } {
            let mut at = pair.head[flow];
            while at != NONE {
                let entry = &self.entries[at];
                let relaxed = self.order == Order::Relaxed;
                let gated =
                    !relaxed && entry.flow == Flow::WriteRequest && self.is_gated(pair, entry);
                let rank = priority(self.ranking, entry.ranked());
                if !gated && best.is_none_or(|(least, _)| rank < least) {
                    best = Some((rank, at));
                }
                if !relaxed {
                    break;
                }
                at = entry.next;
            }
        }
        best
    }

    /// Updates a pair's candidate and the heads of its two ports.
    fn refresh(&mut self, pair: u32) {
        let state = &self.pairs[pair];
        let listed = state.in_destination != NOWHERE;
        match (self.best_of_pair(state), listed) {
            (None, false) => {}
            (None, true) => self.unlist(pair),
            (Some((priority, entry)), false) => self.list(pair, priority, entry),
            (Some((priority, entry)), true) => self.set_candidate(pair, priority, entry),
        }
    }

    /// Sets another candidate of a listed pair, or another priority of its candidate.
    #[inline]
    fn set_candidate(&mut self, pair: u32, priority: u64, entry: u32) {
        let state = &mut self.pairs[pair];
        (state.best, state.priority) = (entry, priority);
        let Pair { source, destination, in_destination, .. } = *state;
        self.candidates.get_mut(destination, in_destination).priority = priority;
        self.update_heads(source, destination, priority);
    }

    fn list(&mut self, pair: u32, priority: u64, entry: u32) {
        let state = &mut self.pairs[pair];
        (state.best, state.priority) = (entry, priority);
        let Pair { source, destination, .. } = *state;
        let candidate = Candidate { priority, pair, source };
        state.in_destination = self.candidates.push(destination, candidate);
        state.in_source = self.peers.push(source, Peer { pair, destination });
        self.update_heads(source, destination, priority);
    }

    fn unlist(&mut self, pair: u32) {
        let state = &mut self.pairs[pair];
        let Pair { source, destination, in_destination, in_source, .. } = *state;
        (state.in_destination, state.in_source) = (NOWHERE, NOWHERE);
        if let Some(moved) = self.candidates.swap_remove(destination, in_destination) {
            self.pairs[moved.pair].in_destination = in_destination;
        }
        if let Some(moved) = self.peers.swap_remove(source, in_source) {
            self.pairs[moved.pair].in_source = in_source;
        }
        self.update_heads(source, destination, u64::MAX);
    }

    /// Updates the heads after a pair's candidate changed to `priority`.
    #[inline]
    fn update_heads(&mut self, source: u16, destination: u16, priority: u64) {
        let head = self.candidates.head(destination);
        if priority < head.priority {
            self.candidates.set_head(destination, Head { priority, peer: source });
        } else if head.peer == source && priority != head.priority {
            let mut best = NO_HEAD;
            for place in 0..self.candidates.len(destination) {
                let candidate = self.candidates.get(destination, place);
                if candidate.priority < best.priority {
                    best = Head { priority: candidate.priority, peer: candidate.source };
                }
            }
            self.candidates.set_head(destination, best);
        }
        let head = self.peers.head(source);
        if priority < head.priority {
            self.peers.set_head(source, Head { priority, peer: destination });
        } else if head.peer == destination && priority != head.priority {
            let mut best = NO_HEAD;
            for place in 0..self.peers.len(source) {
                let Peer { pair, destination } = *self.peers.get(source, place);
                let priority = self.pairs[pair].priority;
                if priority < best.priority {
                    best = Head { priority, peer: destination };
                }
            }
            self.peers.set_head(source, best);
        }
    }
}
