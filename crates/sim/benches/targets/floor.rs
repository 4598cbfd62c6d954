//! The floor under the simulator's time: a bare matching of the same messages.
//!
//! It has two ports and a chunk, shortest remaining first, and the hold. It has no host, no link
//! and no control message, orders events only by time, and measures nothing. The additional time of
//! a run is the price of simulating a network and not just a matching.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ethermem_units::{Bytes, Ps};

/// One message, as a matching sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// The earliest start.
    pub(crate) arrival: Ps,
    /// The sending port.
    pub(crate) source: u16,
    /// The receiving port.
    pub(crate) destination: u16,
    /// The size of the message.
    pub(crate) bytes: Bytes,
}

const NONE: u32 = u32::MAX;
const NOBODY: u16 = u16::MAX;
/// Size of a chunk, and its time at 100 Gb/s in addition to its data: two blocks.
const CHUNK_BYTES: u64 = 256;
const FRAMING: Ps = Ps(2 * 640);
const BYTE: Ps = Ps(80);

/// Matches all transfers; returns the end of each.
pub(crate) fn match_all(nodes: u16, transfers: &[Transfer]) -> Vec<Ps> {
    let mut matcher = Matcher::new(nodes, transfers);
    let mut next = 0;
    loop {
        let due = matcher.events.peek().map(|&Reverse((at, _))| at);
        match transfers.get(next) {
            Some(transfer) if due.is_none_or(|at| transfer.arrival < at) => {
                matcher.arrive(next as u32);
                next += 1;
            }
            _ => {
                let Some(Reverse((now, port))) = matcher.events.pop() else {
                    return matcher.finished;
                };
                matcher.serve(port, now);
                let held = matcher.held_for[usize::from(port)];
                if held != NOBODY && matcher.free[usize::from(held)] <= now {
                    matcher.serve(held, now);
                }
            }
        }
    }
}

/// The matcher. Its ends are ports: a source is its node, a destination its node plus `nodes`.
struct Matcher<'t> {
    nodes: u16,
    transfers: &'t [Transfer],
    remaining: Vec<u64>,
    /// First-in-first-out queues by pair: the first and last transfer, and the next of each.
    first: Vec<u32>,
    last: Vec<u32>,
    next: Vec<u32>,
    /// The other ends with which an end has transfers.
    peers: Vec<Vec<u16>>,
    free: Vec<Ps>,
    held_for: Vec<u16>,
    events: BinaryHeap<Reverse<(Ps, u16)>>,
    finished: Vec<Ps>,
}

impl<'t> Matcher<'t> {
    fn new(nodes: u16, transfers: &'t [Transfer]) -> Matcher<'t> {
        let n = usize::from(nodes);
        Matcher {
            nodes,
            transfers,
            remaining: transfers.iter().map(|transfer| transfer.bytes.0).collect(),
            first: vec![NONE; n * n],
            last: vec![NONE; n * n],
            next: vec![NONE; transfers.len()],
            peers: vec![Vec::new(); 2 * n],
            free: vec![Ps::ZERO; 2 * n],
            held_for: vec![NOBODY; 2 * n],
            events: BinaryHeap::new(),
            finished: vec![Ps::ZERO; transfers.len()],
        }
    }

    fn pair(&self, a: u16, b: u16) -> usize {
        let (source, destination) = (a.min(b), a.max(b) - self.nodes);
        usize::from(source) * usize::from(self.nodes) + usize::from(destination)
    }

    fn ends(&self, transfer: u32) -> (u16, u16) {
        let Transfer { source, destination, .. } = self.transfers[transfer as usize];
        (source, destination + self.nodes)
    }

    fn arrive(&mut self, transfer: u32) {
        let (source, destination) = self.ends(transfer);
        let pair = self.pair(source, destination);
        let last = std::mem::replace(&mut self.last[pair], transfer);
        if last == NONE {
            self.first[pair] = transfer;
            self.peers[usize::from(source)].push(destination);
            self.peers[usize::from(destination)].push(source);
        } else {
            self.next[last as usize] = transfer;
        }
        let now = self.transfers[transfer as usize].arrival;
        self.serve(source, now);
        self.serve(destination, now);
    }

    /// The transfer of an end with the fewest remaining bytes: of all, or of those whose other end
    /// is free.
    fn best(&self, end: u16, free_at: Option<Ps>) -> Option<u32> {
        let mut best: Option<(u64, u32)> = None;
        for &peer in &self.peers[usize::from(end)] {
            let held_for = self.held_for[usize::from(peer)];
            let taken =
                |now| self.free[usize::from(peer)] > now || (held_for != NOBODY && held_for != end);
            if free_at.is_some_and(taken) {
                continue;
            }
            let head = self.first[self.pair(end, peer)];
            // Transfers are in the order of arrival, which breaks ties.
            let rank = (self.remaining[head as usize], head);
            if best.is_none_or(|best| rank < best) {
                best = Some(rank);
            }
        }
        best.map(|(_, transfer)| transfer)
    }

    /// Starts a transfer of an end, or lets the end hold for a busy one whose best transfer is the
    /// same.
    fn serve(&mut self, end: u16, now: Ps) {
        let at = usize::from(end);
        if self.free[at] > now {
            return;
        }
        let held_for = self.held_for[at];
        if held_for != NOBODY {
            let peer = usize::from(held_for);
            if self.free[peer] > now {
                return;
            }
            self.held_for[at] = NOBODY;
            if self.held_for[peer] == end {
                self.held_for[peer] = NOBODY;
            }
            let head = self.first[self.pair(end, held_for)];
            if head != NONE {
                return self.start(head, now);
            }
        }
        if let Some(best) = self.best(end, None) {
            let (source, destination) = self.ends(best);
            let other = if end == source { destination } else { source };
            let peer = usize::from(other);
            let waits = self.free[peer] > now && self.held_for[peer] == NOBODY;
            if waits && self.best(other, None) == Some(best) {
                self.held_for[at] = other;
                self.held_for[peer] = end;
                return;
            }
        }
        if let Some(transfer) = self.best(end, Some(now)) {
            self.start(transfer, now);
        }
    }

    fn start(&mut self, transfer: u32, now: Ps) {
        let (source, destination) = self.ends(transfer);
        let left = &mut self.remaining[transfer as usize];
        let bytes = (*left).min(CHUNK_BYTES);
        *left -= bytes;
        let ended = *left == 0;
        let until = now + BYTE * bytes + FRAMING;
        for end in [source, destination] {
            self.free[usize::from(end)] = until;
            self.held_for[usize::from(end)] = NOBODY;
            self.events.push(Reverse((until, end)));
        }
        if ended {
            self.finished[transfer as usize] = until;
            let pair = self.pair(source, destination);
            self.first[pair] = self.next[transfer as usize];
            if self.first[pair] == NONE {
                self.last[pair] = NONE;
                self.peers[usize::from(source)].retain(|&peer| peer != destination);
                self.peers[usize::from(destination)].retain(|&peer| peer != source);
            }
        }
    }
}
