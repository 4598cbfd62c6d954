//! The one denominator: the time of a message alone in the fabric.

use std::collections::BTreeMap;

use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, Message, NodeIndex};

use super::{Engine, Fabric};
use crate::FabricConfig;

/// Number of periods that a long message must have before its time may be extrapolated by equal
/// steps.
const PERIODS_RUN: u64 = 5;

/// Pause between two messages. A fabric may still be busy when no event is left. An arbiter decides
/// its next epoch only after the last one is over, and a link may be occupied. After the pause all
/// of that has passed.
const PAUSE: Ps = Ps::from_ns(10_000_000);

/// Runs messages alone in a fabric, and caches their times by kind and size.
///
/// A message of many periods ([`Fabric::period`]) is not run as a whole. Shorter sizes with an
/// equal remainder ([`Fabric::steady_after`] and five periods more) are run. If the last two steps
/// between them are equal, the rest is steps of that length; otherwise the message is run as a
/// whole.
pub struct Alone<F: Fabric> {
    engine: Engine<F>,
    period: u64,
    /// Number of periods of the longest message that is run for a step.
    periods_run: u64,
    times: BTreeMap<(Pair, Kind, u64), Ps>,
    /// By kind and remainder: the time at `periods_run` periods, and the step, if it is steady.
    steps: BTreeMap<(Pair, Kind, u64), Option<(Ps, Ps)>>,
}

/// The compute and the memory node of a message.
type Pair = (NodeIndex, NodeIndex);

/// The denominators of slowdowns: unloaded latencies of messages.
pub trait Denominator: Send {
    /// Unloaded latency of this message.
    fn time_of(&mut self, message: &Message) -> Ps;
}

impl<F: Fabric> Denominator for Alone<F> {
    fn time_of(&mut self, message: &Message) -> Ps {
        Alone::time_of(self, message)
    }
}

impl<F: Fabric> Alone<F> {
    /// Builds a second, quiet copy of the fabric.
    pub fn new(config: &FabricConfig) -> Alone<F> {
        let fabric = F::build(&config.quiet(), 0);
        let period = fabric.period().0.max(1);
        let periods_run = fabric.steady_after().0.div_ceil(period) + PERIODS_RUN;
        let engine = Engine::new(fabric);
        Alone { engine, period, periods_run, times: BTreeMap::new(), steps: BTreeMap::new() }
    }

    /// The time of a message from submission to completion between the first two nodes, with
    /// nothing else in the fabric.
    ///
    /// # Panics
    /// If the fabric never completes it.
    pub fn time(&mut self, kind: Kind, bytes: Bytes) -> Ps {
        self.between((0, 1), kind, bytes.0)
    }

    /// The time of this message with nothing else in the fabric.
    ///
    /// # Panics
    /// If the fabric never completes it.
    #[inline]
    pub fn time_of(&mut self, message: &Message) -> Ps {
        let pair = self.engine.fabric.twin(message.compute, message.memory);
        self.between(pair, message.kind, message.bytes.0)
    }

    fn between(&mut self, pair: Pair, kind: Kind, bytes: u64) -> Ps {
        let whole = bytes / self.period;
        if whole <= self.periods_run {
            return self.measured(pair, kind, bytes);
        }
        let rest = bytes % self.period;
        let steady = match self.steps.get(&(pair, kind, rest)) {
            Some(&steady) => steady,
            None => {
                let last = self.periods_run;
                let at = |alone: &mut Self, periods| {
                    alone.measured(pair, kind, periods * alone.period + rest)
                };
                let before = at(self, last - 2);
                let middle = at(self, last - 1);
                let after = at(self, last);
                let steady = (after - middle == middle - before).then(|| (after, after - middle));
                self.steps.insert((pair, kind, rest), steady);
                steady
            }
        };
        match steady {
            Some((base, step)) => base + step * (whole - self.periods_run),
            None => self.measured(pair, kind, bytes),
        }
    }

    fn measured(&mut self, pair: Pair, kind: Kind, bytes: u64) -> Ps {
        if let Some(&time) = self.times.get(&(pair, kind, bytes)) {
            return time;
        }
        let time = self.run(pair, kind, Bytes(bytes));
        self.times.insert((pair, kind, bytes), time);
        time
    }

    fn run(&mut self, (compute, memory): Pair, kind: Kind, bytes: Bytes) -> Ps {
        let engine = &mut self.engine;
        let start = engine.sim.now + PAUSE;
        engine.sim.now = start + engine.fabric.submit_delay();
        engine.submit(&Message {
            index: engine.started,
            arrival: start,
            kind,
            compute,
            memory,
            bytes,
        });
        let mut finished = None;
        let mut latest = start;
        // A fabric may report at submission when the message finishes, and have no event.
        loop {
            for (handle, outcome) in engine.sim.outcomes.drain(..) {
                let at = outcome.expect("a message alone in the fabric is not lost");
                finished = Some(at);
                latest = latest.max(at);
                engine.live[handle as usize] = false;
                engine.free.push(handle);
            }
            if !engine.handle_before(Ps::MAX) {
                break;
            }
        }
        engine.sim.now = engine.sim.now.max(latest);
        finished.expect("a message alone in the fabric completes") - start
    }
}
