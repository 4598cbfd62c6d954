//! Tests of the cache in front of a node that reorders, loses and restarts.

mod oracle;
mod rules;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ethermem_offload::{NodeMemory, Offload, OffloadError};
use ethermem_pool::{
    Asker, Backend, Ended, Error, Facts, Op, OpId, Opened, Outcome, Pool, ProcessId, Progress,
    Reply, Segment, Wait,
};
use ethermem_units::Ps;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{CacheSettings, wrap};
use crate::node::{Node, NodeView};

/// Numbers from a seed.
#[derive(Clone, Debug)]
struct Draws(SplitMix64);

impl Draws {
    fn new(seed: u64) -> Draws {
        Draws(SplitMix64::seed_from_u64(seed))
    }

    fn below(&mut self, below: u64) -> u64 {
        self.0.next_u64() % below
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

/// An operation in flight.
struct Flying {
    id: OpId,
    asker: Asker,
    op: Op,
    outcome: Option<Outcome>,
}

/// A memory node behind a network: operations act in any order, and answers come in any order.
struct Far {
    node: Node,
    draws: Draws,
    flying: Vec<Flying>,
    /// Chance of a read or write without an answer, in percent; half of them act.
    lost_percent: u64,
    /// Operations that reached the node, in their order.
    log: Vec<String>,
    /// True if nothing is answered.
    is_silent: bool,
    is_restarted: bool,
    doubts: u64,
}

/// The node, for the test and for the backend.
#[derive(Clone)]
struct Shared(Arc<Mutex<Far>>);

impl Shared {
    fn far(&self) -> MutexGuard<'_, Far> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the node itself holds.
    fn bytes(&self, process: ProcessId, segment: Segment) -> Vec<u8> {
        self.far().node.read(process, segment.address, segment.bytes).unwrap().to_vec()
    }
}

fn no_answer() -> Error {
    Error::NoAnswer { node: "far".to_owned(), waited_ms: 1 }
}

fn restarted() -> Error {
    Error::Restarted { node: "far".to_owned() }
}

impl Far {
    fn act(&mut self, asker: Asker, op: Op) -> Outcome {
        let process = asker.process;
        match op {
            Op::Read(segments) => {
                self.log.extend(segments.iter().map(|s| format!("read {}", s.bytes)));
                let mut bytes = Vec::new();
                for Segment { address, bytes: length } in segments {
                    // A real node has whole pages; this one ends to the byte.
                    bytes.extend_from_slice(self.node.read(process, address, length)?);
                }
                Ok(Reply::Bytes(bytes))
            }
            Op::Write(segments, data) => {
                self.log.extend(segments.iter().map(|s| format!("write {}", s.bytes)));
                let mut rest = &data[..];
                for Segment { address, bytes } in segments {
                    let (part, others) = rest.split_at(bytes as usize);
                    self.node.write(process, address, part)?;
                    rest = others;
                }
                Ok(Reply::Done)
            }
            Op::Modify(word, operation) => {
                self.node.modify(process, word, operation).map(Reply::Word)
            }
            Op::Alloc { bytes, permissions, .. } => {
                self.node.alloc(process, bytes, permissions).map(Reply::Address)
            }
            Op::Free(address, bytes) => {
                self.node.free(process, Segment { address, bytes }).map(|()| Reply::Done)
            }
            Op::Share { region, with, permissions } => {
                self.node.share(process, region, with, permissions).map(|()| Reply::Done)
            }
            Op::Offload { name, offload, arguments, .. } => {
                let offload = offload.expect("the node is here");
                let mut view = NodeView::new(&mut self.node, process);
                let ended = offload.run(&mut NodeMemory::new(&mut view), &arguments);
                ended.map(Reply::Bytes).map_err(|error| Error::of_offload(&name, error))
            }
            Op::Lock { .. } | Op::Fence | Op::Flush | Op::Sleep(_) => Ok(Reply::Done),
        }
    }

    /// Lets one operation act, or lets one that has acted end.
    fn turn(&mut self, ended: &mut Ended) {
        let at = self.draws.below(self.flying.len() as u64) as usize;
        let Flying { asker, outcome, .. } = &self.flying[at];
        let (asker, has_acted) = (*asker, outcome.is_some());
        if has_acted {
            let Flying { id, outcome, .. } = self.flying.swap_remove(at);
            ended.operations.push((id, outcome.expect("it has acted")));
            return;
        }
        let op = self.flying[at].op.clone();
        let may_be_lost = matches!(op, Op::Read(_) | Op::Write(..) | Op::Fence);
        let is_lost = self.is_silent || (may_be_lost && self.draws.percent(self.lost_percent));
        let acts = !self.is_silent && (!is_lost || self.draws.percent(50));
        let outcome = match (self.is_restarted, acts) {
            (true, _) => Err(restarted()),
            (false, true) => self.act(asker, op),
            (false, false) => Err(no_answer()),
        };
        let outcome = if is_lost { Err(no_answer()) } else { outcome };
        self.doubts += u64::from(is_lost);
        self.flying[at].outcome = Some(outcome);
    }
}

impl Backend for Shared {
    fn now(&self) -> Ps {
        Ps(0)
    }

    fn begin(&mut self, id: OpId, asker: Asker, op: Op) -> Option<Outcome> {
        let mut far = self.far();
        // As on a real pool, what is refused at once has an outcome at once.
        if far.is_restarted {
            return Some(Err(restarted()));
        }
        if matches!(op, Op::Alloc { .. }) {
            return Some(far.act(asker, op));
        }
        far.flying.push(Flying { id, asker, op, outcome: None });
        None
    }

    fn progress(&mut self, ended: &mut Ended) -> Progress {
        let mut far = self.far();
        if far.flying.is_empty() {
            return Progress::Idle;
        }
        far.turn(ended);
        if ended.operations.is_empty() { Progress::Wait(Duration::ZERO) } else { Progress::Ended }
    }

    fn waits(&self) -> Option<(usize, Wait)> {
        None
    }

    fn doubts(&self) -> u64 {
        self.far().doubts
    }
}

/// A pool with a cache in front of such a node.
fn pool(seed: u64, bytes: u32, line_bytes: u32, lost_percent: u64) -> (Pool, Shared) {
    let far = Far {
        node: Node::new(0, 1 << 30),
        draws: Draws::new(seed),
        flying: Vec::new(),
        lost_percent,
        log: Vec::new(),
        is_silent: false,
        is_restarted: false,
        doubts: 0,
    };
    let shared = Shared(Arc::new(Mutex::new(far)));
    let opened = Opened { backend: Box::new(shared.clone()), facts: Facts::new(1, 1) };
    let pool = Pool::new(wrap(opened, CacheSettings { bytes, line_bytes })).unwrap();
    pool.register("bump", Arc::new(Bump));
    (pool, shared)
}

/// Adds one to the word whose address is the argument.
struct Bump;

impl Offload for Bump {
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, OffloadError> {
        let at = u64::from_le_bytes(arguments.try_into().expect("it is one word"));
        let word = memory.read_u64(ethermem_offload::Address(at))?;
        memory.write(ethermem_offload::Address(at), &(word + 1).to_le_bytes())?;
        Ok(Vec::new())
    }
}
