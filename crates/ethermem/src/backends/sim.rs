//! `sim:`: compute and memory nodes on a simulated fabric. Operations become messages, and their
//! effect on the memory happens when the messages arrive. Where the fabric's compute nodes have
//! caches, bytes are in their lines and in frames.

mod caching;
mod placing;
mod running;
mod url;

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use ethermem_pool::{
    Asker, Backend, End, Ended, Error, Facts, Op, OpId, Opened, Outcome, ProcessId, Progress, Wait,
};
use ethermem_sim::engine::{Advance, Heard, LineCounters, Live, Violation};
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::scenario::Scenario;
use ethermem_sim::workload::LinkBlocks;
use ethermem_sim::{FabricConfig, Kind, Message};
use ethermem_units::{Bytes, Ps};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use self::caching::Caching;
use self::running::{MessageState, Part, Phase, Running};
use crate::node::Node;
use crate::open_error::OpenError;
use crate::scheme::Url;

/// Longest message in bytes: longer operations are split, so that they share the fabric with
/// others.
const PART_BYTES_MAX: u64 = 1 << 20;
/// Minimum length in bytes of a request to a memory node's slow path and of its response.
const CALL_BYTES: u64 = 64;
/// Initial pause between two tries of a lock in nanoseconds; it doubles with each try.
const LOCK_RETRY_NS: u64 = 200;
/// Number of times that the pause doubles.
const LOCK_RETRY_DOUBLINGS: u32 = 6;

/// Configuration of a simulated pool.
struct SimConfig {
    fabric: &'static FabricEntry,
    scenario: Scenario,
    /// True if the scenario's workload runs as background traffic.
    background: bool,
    memory_nodes: u16,
    /// Memory of each memory node in bytes.
    memory_bytes: u64,
}

/// Opens `sim:`.
pub(crate) fn open(url: &Url<'_>) -> Result<Opened, OpenError> {
    let config = url::config(url)?;
    let sim = Sim::new(&config)?;
    let facts = Facts {
        is_simulated: true,
        keeps_writes: sim.caching.is_some(),
        ..Facts::new(sim.compute_nodes, config.memory_nodes)
    };
    Ok(Opened { backend: Box::new(sim), facts })
}

/// The backend of `sim:`.
pub(crate) struct Sim {
    live: Box<dyn Live>,
    fabric: &'static FabricEntry,
    network: FabricConfig,
    compute_nodes: u16,
    nodes: Vec<Node>,
    memory_access: Ps,
    part_bytes_max: u64,
    /// Operations in flight, by operation id.
    running: Vec<Option<Running>>,
    open: usize,
    messages: Vec<MessageState>,
    free: Vec<u64>,
    due: BinaryHeap<Reverse<(Ps, u64, Due)>>,
    dues: u64,
    heard: Vec<Heard>,
    /// True if a lock was found taken: its holder may be another machine thread.
    refused: bool,
    /// Memory nodes that each process has used.
    used: Used,
    /// Present where compute nodes have caches.
    caching: Option<Caching>,
    draws: SplitMix64,
}

/// A timed event, for a message or an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    AtMemory(u64),
    Ended(u64),
    /// The node has finished the call, and responds.
    Answer(OpId, u16),
    Retry(OpId),
    Wake(OpId),
    /// There was nothing to clean.
    Clean(OpId),
}

/// The memory nodes that each process has used, one bit each: read with every message.
#[derive(Default)]
struct Used(Vec<Vec<u64>>);

impl Used {
    fn insert(&mut self, process: ProcessId, memory: u16) {
        let (process, word) = (process.0 as usize, usize::from(memory / 64));
        if self.0.len() <= process {
            self.0.resize_with(process + 1, Vec::new);
        }
        let words = &mut self.0[process];
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (memory % 64);
    }

    /// The memory nodes of a process, in ascending order.
    fn by(&self, process: ProcessId) -> impl Iterator<Item = u16> {
        let words = self.0.get(process.0 as usize).into_iter().flatten();
        words.zip(0_u16..).flat_map(|(&word, at)| {
            let set = (0..64).filter(move |bit| word >> bit & 1 == 1);
            set.map(move |bit| at * 64 + bit)
        })
    }
}

impl Sim {
    fn new(config: &SimConfig) -> Result<Sim, OpenError> {
        let fabric = &config.scenario.fabric;
        let live = config.fabric.live(&config.scenario, config.background);
        let mut live =
            live.map_err(|error| OpenError::NotAllowed { problem: error.to_string() })?;
        let caching = live.caches().map(|_| Caching::default());
        Ok(Sim {
            live,
            fabric: config.fabric,
            network: fabric.clone(),
            compute_nodes: fabric.nodes - config.memory_nodes,
            nodes: (0..config.memory_nodes).map(|n| Node::new(n, config.memory_bytes)).collect(),
            memory_access: fabric.memory_access,
            part_bytes_max: PART_BYTES_MAX.min(config.fabric.message_bytes_max),
            running: Vec::new(),
            open: 0,
            messages: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            dues: 0,
            heard: Vec::new(),
            refused: false,
            used: Used::default(),
            caching,
            draws: SplitMix64::seed_from_u64(config.scenario.run.seed),
        })
    }

    fn at(&mut self, at: Ps, due: Due) {
        self.dues += 1;
        self.due.push(Reverse((at, self.dues, due)));
    }

    fn send(&mut self, id: OpId, kind: Kind, part: Part, phase: Phase, bytes: u64) {
        let index = self.name(MessageState { id, part, phase, acted: false });
        let running = self.running[id.place()].as_ref().expect("a message is of an open operation");
        let compute = running.asker.compute;
        let memory = self.compute_nodes + part.memory;
        let back = phase == Phase::Answer;
        self.live.submit(Message {
            index,
            arrival: self.live.now(),
            kind,
            compute: if back { memory } else { compute },
            memory: if back { compute } else { memory },
            bytes: Bytes(bytes.max(1)),
        });
    }

    /// Counts a message of an operation, and names it.
    fn name(&mut self, state: MessageState) -> u64 {
        let index = self.free.pop().unwrap_or(self.messages.len() as u64);
        match self.messages.get_mut(index as usize) {
            Some(free) => *free = state,
            None => self.messages.push(state),
        }
        let running = self.running[state.id.place()].as_mut();
        running.expect("a message is of an open operation").messages += 1;
        index
    }

    /// Sends the messages of an operation that has just begun or is retried.
    fn send_all(&mut self, id: OpId) {
        if self.begin_cached(id) {
            return;
        }
        let running = self.running[id.place()].as_ref().expect("it is open");
        let process = running.asker.process;
        if let Some((kind, part)) = running.message(self.part_bytes_max) {
            self.used.insert(process, part.memory);
            self.send(id, kind, part, Phase::Request, part.bytes);
            return;
        }
        let used = || self.used.by(process).collect();
        let (kind, parts, call) = running.messages(self.part_bytes_max, used);
        for part in parts {
            self.used.insert(process, part.memory);
            let bytes = if call { CALL_BYTES + part.bytes } else { part.bytes };
            self.send(id, kind, part, Phase::Request, bytes);
        }
    }

    /// Applies a message's effect at the memory node.
    fn act(&mut self, message: u64) {
        let state = &mut self.messages[message as usize];
        state.acted = true;
        let MessageState { id, part, phase, .. } = *state;
        if phase == Phase::Answer {
            return;
        }
        let running = self.running[id.place()].as_mut().expect("its message is under way");
        let accesses = running.act(&mut self.nodes[usize::from(part.memory)], part);
        running.accesses += accesses;
    }

    /// Completes a message, and its operation if this was the last one.
    fn finish(&mut self, message: u64, lost: bool, ended: &mut Vec<(OpId, Outcome)>) {
        if !self.messages[message as usize].acted && !lost {
            self.act(message);
        }
        let MessageState { id, part, phase, .. } = self.messages[message as usize];
        if let Phase::Cached(key) = phase {
            self.take_placed(message, key, lost);
        }
        self.free.push(message);
        let running = self.running[id.place()].as_mut().expect("its message was under way");
        running.messages -= 1;
        if lost {
            running.fail(Error::Lost);
        } else if running.is_call() && phase == Phase::Request {
            let busy = self.memory_access * std::mem::take(&mut running.accesses);
            running.messages += 1;
            let at = self.live.now() + busy;
            self.at(at, Due::Answer(id, part.memory));
            return;
        }
        if running.messages > 0 {
            return;
        }
        if phase == Phase::Clean {
            return self.is_clean(id, ended);
        }
        if running.must_retry() {
            let doublings = running.tries.min(LOCK_RETRY_DOUBLINGS);
            running.tries += 1;
            let most = LOCK_RETRY_NS << doublings;
            let wait = Ps::from_ns(most / 2 + self.draws.next_u64() % (most / 2));
            let at = self.live.now() + wait;
            self.at(at, Due::Retry(id));
            self.refused = true;
            return;
        }
        self.end(id, ended);
    }

    fn end(&mut self, id: OpId, ended: &mut Vec<(OpId, Outcome)>) {
        let mut running = self.running[id.place()].take().expect("it ends once");
        self.open -= 1;
        let outcome = running.outcome();
        self.account(id, running.asker, running.work(), &outcome);
        ended.push((id, outcome));
    }

    fn hear(&mut self, heard: Heard, ended: &mut Vec<(OpId, Outcome)>) {
        let now = self.live.now();
        match heard {
            Heard::AtMemory { message, at } if at > now => self.at(at, Due::AtMemory(message)),
            Heard::AtMemory { message, .. } => self.act(message),
            Heard::Ended { message, outcome: Ok(at) } if at > now => {
                self.at(at, Due::Ended(message));
            }
            Heard::Ended { message, outcome } => self.finish(message, outcome.is_err(), ended),
        }
    }

    fn is_due(&mut self, due: Due, ended: &mut Vec<(OpId, Outcome)>) {
        match due {
            Due::AtMemory(message) => self.act(message),
            Due::Ended(message) => self.finish(message, false, ended),
            Due::Answer(id, memory) => {
                let running = self.running[id.place()].as_mut().expect("it waits for its answer");
                running.messages -= 1;
                let bytes = running.answer_bytes().max(CALL_BYTES);
                let part = Part { memory, ..Part::default() };
                self.send(id, Kind::Write, part, Phase::Answer, bytes);
            }
            Due::Retry(id) => self.send_all(id),
            Due::Wake(id) => self.end(id, ended),
            Due::Clean(id) => self.is_clean(id, ended),
        }
    }

    /// Fails what is in flight: the fabric has no event left, so nothing would ever complete.
    fn give_up(&mut self, ended: &mut Vec<(OpId, Outcome)>) -> Progress {
        let open = self.running.iter_mut().filter_map(Option::take);
        ended.extend(open.map(|running| (running.id, Err(Error::Lost))));
        self.caching.iter_mut().for_each(Caching::clear);
        self.open = 0;
        if ended.is_empty() { Progress::Idle } else { Progress::Ended }
    }
}

impl Backend for Sim {
    fn now(&self) -> Ps {
        self.live.now()
    }

    fn begin(&mut self, id: OpId, asker: Asker, op: Op) -> Option<Outcome> {
        let until = match &op {
            Op::Sleep(until) => Some((*until).max(self.live.now())),
            _ => None,
        };
        let running = match Running::new(id, asker, op, self.nodes.len() as u16) {
            Ok(running) => running,
            Err(error) => return Some(Err(error)),
        };
        if self.running.len() <= id.place() {
            self.running.resize_with(id.place() + 1, || None);
        }
        self.running[id.place()] = Some(running);
        self.open += 1;
        if let Some(until) = until {
            self.at(until, Due::Wake(id));
            return None;
        }
        self.send_all(id);
        let running = self.running[id.place()].as_ref().expect("it has just begun");
        if running.messages == 0 && !running.waits {
            // This is a fence of a process that has used no memory.
            self.at(self.live.now(), Due::Wake(id));
        }
        None
    }

    fn progress(&mut self, ended: &mut Ended) -> Progress {
        let ended = &mut ended.operations;
        if self.open == 0 {
            return Progress::Idle;
        }
        self.refused = false;
        while ended.is_empty() {
            if self.refused {
                return Progress::Wait(Duration::ZERO);
            }
            let next = self.due.peek().map_or(Ps::MAX, |Reverse((at, _, _))| *at);
            if next <= self.live.now() {
                let Reverse((_, _, due)) = self.due.pop().expect("it was seen");
                self.is_due(due, ended);
                continue;
            }
            let mut heard = std::mem::take(&mut self.heard);
            let advance = self.live.advance(next, &mut heard);
            self.access_lines();
            for heard in heard.drain(..) {
                self.hear(heard, ended);
            }
            self.heard = heard;
            match advance {
                Ok(Advance::Heard | Advance::Reached) => {}
                // No event is left: a synthetic background never ends, and a trace that broke off
                // is over.
                Ok(Advance::Idle) | Err(_) => return self.give_up(ended),
            }
        }
        Progress::Ended
    }

    fn waits(&self) -> Option<(usize, Wait)> {
        let mut word = None;
        for running in self.running.iter().flatten() {
            word = Some(running.refused_lock()?);
        }
        word.map(|word| (self.open, Wait::Lock(word)))
    }

    fn end(&mut self, why: End) -> Result<(), Error> {
        match why {
            End::Closed => self.live.close().map_err(|Violation(what)| Error::Violated { what }),
            End::Dropped => Ok(()),
        }
    }

    fn extension(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl Sim {
    /// Number of events that the fabric has handled.
    pub(crate) fn events(&self) -> u64 {
        self.live.events()
    }

    /// What happened in the compute nodes' caches.
    pub(crate) fn line_counters(&self) -> Option<LineCounters> {
        self.live.line_counters()
    }

    /// The link blocks of a message, and the link rate in blocks per second.
    pub(crate) fn link_blocks(&self, kind: Kind, bytes: u64) -> (LinkBlocks, f64) {
        let blocks = (self.fabric.blocks)(&self.network, kind, Bytes(bytes));
        (blocks, 1.0 / self.network.link.block_time().as_s_f64())
    }
}

#[cfg(test)]
mod tests;
