//! The requests of a run, and a check whether their results are possible.

use std::collections::{BTreeMap, BTreeSet};

use ethermem_edm::{Address, Event, NodeId, Op, Request, RmwOperation, Token, WriteKind};
use ethermem_units::{Bytes, Ps};

use crate::rng::Rng;

/// Size of each compute node's own part of each memory. Before these parts are the shared counters.
pub(crate) const REGION: u64 = 1_024;
const COUNTERS: u64 = 4;

pub(crate) const fn memory_bytes(nodes: u16) -> usize {
    (COUNTERS * 8 + REGION * nodes as u64) as usize
}

/// A request as it was submitted.
pub(crate) struct Submitted {
    pub(crate) node: NodeId,
    pub(crate) request: Request,
    pub(crate) data: Vec<u8>,
    pub(crate) at: Ps,
}

/// Draws a read or a write in the node's own part of a memory, or an increment of a counter.
pub(crate) fn random_request(
    rng: &mut Rng,
    token: Token,
    node: NodeId,
    nodes: u16,
) -> (Request, Vec<u8>) {
    let peer = NodeId::at((node.number() + 1 + rng.below(u64::from(nodes) - 1) as u16) % nodes);
    let base = COUNTERS * 8 + u64::from(node.number()) * REGION;
    let most = if rng.percent(30) { REGION } else { 64 };
    let bytes = 1 + rng.below(most);
    let address = Address(base + rng.below(REGION - bytes + 1));
    let (address, op) = match rng.below(10) {
        0..4 => (address, Op::Read { bytes: Bytes(bytes) }),
        4..8 => {
            let kind = if rng.percent(20) { WriteKind::Posted } else { WriteKind::Acknowledged };
            (address, Op::Write { bytes: Bytes(bytes), kind })
        }
        _ => {
            let address = Address(8 * rng.below(COUNTERS));
            (address, Op::ReadModifyWrite { operation: RmwOperation::FetchAndAdd(1) })
        }
    };
    let data = match op {
        Op::Write { bytes, .. } => rng.bytes(bytes.0 as usize),
        _ => Vec::new(),
    };
    (Request { token, peer, address, op, fence: false }, data)
}

/// The set of values that a byte may have.
#[derive(Clone, Copy)]
struct Possible([u64; 4]);

impl Possible {
    const NONE: Possible = Possible([0; 4]);

    fn with(mut self, byte: u8) -> Possible {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
        self
    }

    fn has(self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & 1 << (byte & 63) != 0
    }
}

/// The requests, events and memories of a run.
pub(crate) struct Outcome<'a> {
    pub(crate) submitted: &'a [Submitted],
    pub(crate) events: &'a BTreeMap<Token, (Event, Ps)>,
    pub(crate) reads: BTreeMap<Token, &'a [u8]>,
    pub(crate) memories: Vec<&'a [u8]>,
    /// True if a posted write ends with its acknowledgement, as it does with two switches.
    pub(crate) all_acknowledged: bool,
    /// How to repeat the run.
    pub(crate) what: &'a str,
}

impl Outcome<'_> {
    /// Checks every read and the memories against the requests. Order holds between two nodes. A
    /// write that ended with an error may or may not have acted. It must not act once a later
    /// request of its pair succeeded: a read settles what it has seen.
    pub(crate) fn check(&self) {
        for node in (0..self.memories.len() as u16).map(NodeId::at) {
            for peer in (0..self.memories.len() as u16).map(NodeId::at).filter(|&peer| peer != node)
            {
                self.check_pair(node, peer);
            }
            (0..COUNTERS).for_each(|counter| self.check_counter(node, counter));
        }
    }

    fn check_pair(&self, node: NodeId, peer: NodeId) {
        let what = self.what;
        let region = (COUNTERS * 8 + u64::from(node.number()) * REGION) as usize;
        let mut model = vec![Possible::NONE.with(0); REGION as usize];
        let mine = self.submitted.iter().filter(|s| s.node == node && s.request.peer == peer);
        for Submitted { request, data, .. } in mine {
            let Request { token, address: Address(address), op, .. } = *request;
            let event = self.events.get(&token).map(|&(event, _)| event);
            let Some(first) = (address as usize).checked_sub(region) else {
                continue;
            };
            match (op, event) {
                (Op::Read { bytes }, Some(Event::ReadDone { .. })) => {
                    let read = self.reads[&token];
                    assert_eq!(read.len() as u64, bytes.0, "{what}");
                    for (at, (byte, &found)) in model[first..].iter_mut().zip(read).enumerate() {
                        assert!(byte.has(found), "byte {at} of {token:?}: {what}");
                        *byte = Possible::NONE.with(found);
                    }
                }
                (Op::Write { .. }, event) => {
                    let certain = match event {
                        Some(Event::WriteApplied { .. }) => true,
                        // A write without an acknowledgement has left its node, and may have been
                        // lost.
                        Some(Event::WriteSent { .. }) => self.all_acknowledged,
                        _ => false,
                    };
                    for (byte, &new) in model[first..].iter_mut().zip(data) {
                        let before = if certain { Possible::NONE } else { *byte };
                        *byte = before.with(new);
                    }
                }
                _ => {}
            }
        }
        let memory = &self.memories[usize::from(peer.number())][region..];
        for (at, (byte, &found)) in model.iter().zip(memory).enumerate() {
            assert!(byte.has(found), "byte {at} of {node:?} at {peer:?} is lost: {what}");
        }
    }

    /// Each increment that succeeded saw a word of its own. The word is greater than the words of
    /// increments that ended before its submission, and of earlier increments of its node. The
    /// counter is the number of successful increments, plus at most one for each failed one.
    fn check_counter(&self, peer: NodeId, counter: u64) {
        let what = self.what;
        let (mut results, mut unknown) = (BTreeSet::new(), 0);
        let mut seen: Vec<(&Submitted, Ps, u64)> = Vec::new();
        let adds = self.submitted.iter().filter(|s| {
            s.request.peer == peer
                && s.request.address == Address(8 * counter)
                && matches!(s.request.op, Op::ReadModifyWrite { .. })
        });
        for add in adds {
            match self.events.get(&add.request.token) {
                Some(&(Event::RmwDone { .. }, end)) => {
                    let word = self.reads[&add.request.token];
                    let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
                    assert!(results.insert(word), "two adds saw {word}: {what}");
                    for &(before, before_end, before_word) in &seen {
                        let ordered = before_end < add.at || before.node == add.node;
                        assert!(!ordered || before_word < word, "{word} after its time: {what}");
                    }
                    seen.push((add, end, word));
                }
                _ => unknown += 1,
            }
        }
        let word = &self.memories[usize::from(peer.number())][8 * counter as usize..][..8];
        let executed = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        let certain = results.len() as u64;
        assert!((certain..=certain + unknown).contains(&executed), "{executed} adds: {what}");
        assert!(results.last().is_none_or(|&last| last < executed), "{what}");
    }
}
