//! The notification queues: per destination the best message of every source, per source the
//! destinations it has messages for, per pair two first-in-first-out streams.
//!
//! Only a pair's best message can be granted, so a destination's queue holds at most one candidate
//! a source, whatever X is.

use super::rule::{Demand, Flow, NotifyError, Ranking, priority};
use crate::Order;

/// No entry, no position.
const NONE: u32 = u32::MAX;
const NOWHERE: u16 = u16::MAX;

/// One message waiting for grants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) sequence: u64,
    pub(super) remaining: u32,
    bytes: u32,
    pub(super) tag: u32,
    next: u32,
    /// For a write: how many requests of its compute-memory pair must be released before it.
    gate: u16,
    pub(super) flow: Flow,
    pub(super) started: bool,
}

/// The best message of one source in a destination's queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) priority: u64,
    pub(super) entry: u32,
    pub(super) source: u16,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    head: [u32; 2],
    tail: [u32; 2],
    /// Where its candidate stands in the destination's queue and in the source's list.
    in_destination: u16,
    in_source: u16,
    /// Requests of the compute-memory pair (source asks destination): arrived, released. They
    /// wrap; at most X are between them.
    requests_arrived: u16,
    requests_released: u16,
    active: [u8; 2],
}

const EMPTY_PAIR: Pair = Pair {
    head: [NONE; 2],
    tail: [NONE; 2],
    in_destination: NOWHERE,
    in_source: NOWHERE,
    requests_arrived: 0,
    requests_released: 0,
    active: [0; 2],
};

/// A port's best candidate, its peer being the port at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) priority: u64,
    pub(super) peer: u16,
}

/// The head of a port that has no candidate: behind every other.
pub(super) const NO_HEAD: Head = Head { priority: u64::MAX, peer: NOWHERE };

#[derive(Clone, Debug)]
pub(super) struct Queues {
    ports: usize,
    order: Order,
    active_max: u8,
    pub(super) ranking: Ranking,
    entries: Vec<Entry>,
    free: u32,
    waiting: usize,
    sequence: u64,
    pairs: Vec<Pair>,
    candidates: Vec<Candidate>,
    candidates_len: Vec<u16>,
    peers: Vec<u16>,
    peers_len: Vec<u16>,
    destination_heads: Vec<Head>,
    source_heads: Vec<Head>,
}

impl Queues {
    pub(super) fn new(ports: u16, order: Order, active_max: u8, ranking: Ranking) -> Queues {
        let n = usize::from(ports);
        let no_candidate = Candidate { priority: 0, entry: NONE, source: NOWHERE };
        Queues {
            ports: n,
            order,
            active_max,
            ranking,
            // Reserved, not touched: what a run never fills costs no memory.
            entries: Vec::with_capacity(n * n * 2 * usize::from(active_max)),
            free: NONE,
            waiting: 0,
            sequence: 0,
            pairs: vec![EMPTY_PAIR; n * n],
            candidates: vec![no_candidate; n * n],
            candidates_len: vec![0; n],
            peers: vec![0; n * n],
            peers_len: vec![0; n],
            destination_heads: vec![NO_HEAD; n],
            source_heads: vec![NO_HEAD; n],
        }
    }

    /// Messages waiting in all queues.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The queue of a destination: one candidate a source, in no order.
    #[inline]
    pub(super) fn candidates(&self, destination: u16) -> &[Candidate] {
        let at = usize::from(destination);
        let start = at * self.ports;
        &self.candidates[start..start + usize::from(self.candidates_len[at])]
    }

    /// The destinations for which a source has a candidate, in no order.
    #[inline]
    pub(super) fn peers(&self, source: u16) -> &[u16] {
        let start = usize::from(source) * self.ports;
        &self.peers[start..start + usize::from(self.peers_len[usize::from(source)])]
    }

    #[inline]
    pub(super) fn destination_head(&self, port: u16) -> Head {
        self.destination_heads[usize::from(port)]
    }

    #[inline]
    pub(super) fn source_head(&self, port: u16) -> Head {
        self.source_heads[usize::from(port)]
    }

    #[inline]
    pub(super) fn entry(&self, entry: u32) -> &Entry {
        &self.entries[entry as usize]
    }

    #[inline]
    fn pair_index(&self, source: u16, destination: u16) -> usize {
        usize::from(destination) * self.ports + usize::from(source)
    }

    /// Queues a message. The candidates of its pair are up to date afterwards.
    pub(super) fn insert(&mut self, demand: &Demand) -> Result<(), NotifyError> {
        let at = self.pair_index(demand.source, demand.destination);
        let flow = demand.flow as usize;
        if self.pairs[at].active[flow] == self.active_max {
            return Err(NotifyError::PairFull);
        }
        self.pairs[at].active[flow] += 1;
        let gate = match demand.flow {
            Flow::WriteRequest => self.pairs[at].requests_arrived,
            Flow::ReadResponse => {
                // The request came from the destination: its compute-memory pair is the reverse.
                let stream = self.pair_index(demand.destination, demand.source);
                let arrived = &mut self.pairs[stream].requests_arrived;
                *arrived = arrived.wrapping_add(1);
                0
            }
        };
        let entry = self.allocate(Entry {
            sequence: self.sequence,
            remaining: demand.bytes,
            bytes: demand.bytes,
            tag: demand.tag,
            next: NONE,
            gate,
            flow: demand.flow,
            started: false,
        });
        self.sequence += 1;
        self.waiting += 1;
        let pair = &mut self.pairs[at];
        let tail = std::mem::replace(&mut pair.tail[flow], entry);
        if tail == NONE {
            pair.head[flow] = entry;
        } else {
            self.entries[tail as usize].next = entry;
        }
        if tail == NONE || self.order == Order::Relaxed {
            self.refresh(demand.source, demand.destination);
        }
        Ok(())
    }

    /// Takes `bytes` off a candidate's message; true when that was the rest of it.
    pub(super) fn take(&mut self, source: u16, destination: u16, entry: u32, bytes: u32) -> bool {
        let message = &mut self.entries[entry as usize];
        message.remaining -= bytes;
        let last = message.remaining == 0;
        let flow = message.flow;
        let first = !std::mem::replace(&mut message.started, true);
        if last {
            self.remove(source, destination, entry);
        }
        if last || self.ranking != Ranking::Arrival {
            self.refresh(source, destination);
        }
        if first && flow == Flow::ReadResponse {
            // A released request lets the writes behind it go: they flow the other way.
            let stream = self.pair_index(destination, source);
            let pair = &mut self.pairs[stream];
            pair.requests_released = pair.requests_released.wrapping_add(1);
            if pair.head[Flow::WriteRequest as usize] != NONE {
                self.refresh(destination, source);
            }
        }
        last
    }

    /// Drops every message of a port, saying each.
    pub(super) fn clear_port(&mut self, port: u16, mut dropped: impl FnMut(u16, u16, &Entry)) {
        for peer in 0..self.ports as u16 {
            for (source, destination) in [(port, peer), (peer, port)] {
                let at = self.pair_index(source, destination);
                for flow in [Flow::ReadResponse, Flow::WriteRequest] {
                    while self.pairs[at].head[flow as usize] != NONE {
                        let entry = self.pairs[at].head[flow as usize];
                        dropped(source, destination, &self.entries[entry as usize]);
                        self.remove(source, destination, entry);
                    }
                }
                let pair = &mut self.pairs[at];
                pair.requests_released = pair.requests_arrived;
                self.refresh(source, destination);
            }
        }
    }

    /// Ranks every message anew, as `Policy::Auto` needs when it changes its mind.
    pub(super) fn set_ranking(&mut self, ranking: Ranking) {
        self.ranking = ranking;
        for destination in 0..self.ports as u16 {
            for source in 0..self.ports as u16 {
                self.refresh(source, destination);
            }
        }
    }

    fn allocate(&mut self, entry: Entry) -> u32 {
        if self.free == NONE {
            // X bounds every pair, so the reservation is never outgrown.
            assert!(self.entries.len() < self.entries.capacity(), "notification queue overflow");
            self.entries.push(entry);
            return self.entries.len() as u32 - 1;
        }
        let index = self.free;
        self.free = self.entries[index as usize].next;
        self.entries[index as usize] = entry;
        index
    }

    fn remove(&mut self, source: u16, destination: u16, entry: u32) {
        let at = self.pair_index(source, destination);
        let Entry { flow, next, .. } = self.entries[entry as usize];
        let flow = flow as usize;
        let pair = &mut self.pairs[at];
        if pair.head[flow] == entry {
            pair.head[flow] = next;
            if next == NONE {
                pair.tail[flow] = NONE;
            }
        } else {
            let mut before = pair.head[flow];
            while self.entries[before as usize].next != entry {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
            if next == NONE {
                pair.tail[flow] = before;
            }
        }
        pair.active[flow] -= 1;
        self.waiting -= 1;
        self.entries[entry as usize].next = self.free;
        self.free = entry;
    }

    /// The message of a pair that may be granted next, with its priority.
    fn best_of_pair(&self, pair: &Pair) -> Option<(u64, u32)> {
        let mut best: Option<(u64, u32)> = None;
        for &head in &pair.head {
            let mut at = head;
            while at != NONE {
                let entry = &self.entries[at as usize];
                let gated = entry.flow == Flow::WriteRequest
                    && self.order != Order::Relaxed
                    && (pair.requests_released.wrapping_sub(entry.gate) as i16) < 0;
                let rank = priority(self.ranking, entry.remaining, entry.bytes, entry.sequence);
                if !gated && best.is_none_or(|(least, _)| rank < least) {
                    best = Some((rank, at));
                }
                if self.order != Order::Relaxed {
                    break;
                }
                at = entry.next;
            }
        }
        best
    }

    /// Brings a pair's candidate, and the heads of its two ports, up to date.
    fn refresh(&mut self, source: u16, destination: u16) {
        let at = self.pair_index(source, destination);
        let best = self.best_of_pair(&self.pairs[at]);
        let listed = self.pairs[at].in_destination != NOWHERE;
        match (best, listed) {
            (None, false) => {}
            (None, true) => self.unlist(source, destination),
            (Some((priority, entry)), false) => {
                self.list(source, destination, Candidate { priority, entry, source });
            }
            (Some((priority, entry)), true) => {
                let slot = usize::from(destination) * self.ports
                    + usize::from(self.pairs[at].in_destination);
                self.candidates[slot] = Candidate { priority, entry, source };
                self.update_heads(source, destination, priority);
            }
        }
    }

    fn list(&mut self, source: u16, destination: u16, candidate: Candidate) {
        let at = self.pair_index(source, destination);
        let (s, d) = (usize::from(source), usize::from(destination));
        self.pairs[at].in_destination = self.candidates_len[d];
        self.pairs[at].in_source = self.peers_len[s];
        self.candidates[d * self.ports + usize::from(self.candidates_len[d])] = candidate;
        self.peers[s * self.ports + usize::from(self.peers_len[s])] = destination;
        self.candidates_len[d] += 1;
        self.peers_len[s] += 1;
        self.update_heads(source, destination, candidate.priority);
    }

    fn unlist(&mut self, source: u16, destination: u16) {
        let at = self.pair_index(source, destination);
        let (s, d) = (usize::from(source), usize::from(destination));
        let hole = self.pairs[at].in_destination;
        self.candidates_len[d] -= 1;
        let moved = self.candidates[d * self.ports + usize::from(self.candidates_len[d])];
        self.candidates[d * self.ports + usize::from(hole)] = moved;
        let moved_pair = self.pair_index(moved.source, destination);
        self.pairs[moved_pair].in_destination = hole;

        let hole = self.pairs[at].in_source;
        self.peers_len[s] -= 1;
        let moved = self.peers[s * self.ports + usize::from(self.peers_len[s])];
        self.peers[s * self.ports + usize::from(hole)] = moved;
        let moved_pair = self.pair_index(source, moved);
        self.pairs[moved_pair].in_source = hole;

        self.pairs[at].in_destination = NOWHERE;
        self.pairs[at].in_source = NOWHERE;
        self.update_heads(source, destination, u64::MAX);
    }

    /// A pair's candidate changed to `priority`: the heads follow.
    #[inline]
    fn update_heads(&mut self, source: u16, destination: u16, priority: u64) {
        let head = self.destination_heads[usize::from(destination)];
        if priority < head.priority {
            self.destination_heads[usize::from(destination)] = Head { priority, peer: source };
        } else if head.peer == source && priority != head.priority {
            self.destination_heads[usize::from(destination)] = self
                .candidates(destination)
                .iter()
                .map(|c| Head { priority: c.priority, peer: c.source })
                .min_by_key(|head| head.priority)
                .unwrap_or(NO_HEAD);
        }
        let head = self.source_heads[usize::from(source)];
        if priority < head.priority {
            self.source_heads[usize::from(source)] = Head { priority, peer: destination };
        } else if head.peer == destination && priority != head.priority {
            self.source_heads[usize::from(source)] = self
                .peers(source)
                .iter()
                .map(|&peer| Head { priority: self.candidate_priority(source, peer), peer })
                .min_by_key(|head| head.priority)
                .unwrap_or(NO_HEAD);
        }
    }

    fn candidate_priority(&self, source: u16, destination: u16) -> u64 {
        let at = self.pair_index(source, destination);
        let slot =
            usize::from(destination) * self.ports + usize::from(self.pairs[at].in_destination);
        self.candidates[slot].priority
    }
}
