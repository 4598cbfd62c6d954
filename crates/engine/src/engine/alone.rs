//! The one denominator: how long a message takes alone in the same fabric.

use std::collections::BTreeMap;

use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, Message, NodeIndex};

use super::{Engine, Fabric};
use crate::FabricConfig;

/// Periods from which a long message's time is taken to grow by the same step, once it is steady.
const PERIODS_RUN: u64 = 5;

/// Between two messages. Once no event is left, a fabric may be busy still: an arbiter decides no
/// next epoch before the last one is over, and a link takes nothing. All of that has passed then.
const PAUSE: Ps = Ps::from_ns(10_000_000);

/// Runs messages alone in a fabric, and remembers how long they took, by kind and size.
///
/// A message of many periods ([`Fabric::period`]) is not run whole: sizes of the same remainder,
/// some periods long ([`Fabric::steady_after`] and five more), are run, and when the last two
/// steps between them are equal the rest is steps of that length. When they are not, the message
/// is run whole.
pub struct Alone<F: Fabric> {
    engine: Engine<F>,
    period: u64,
    /// Periods that the longest message run for a step has.
    periods_run: u64,
    times: BTreeMap<(Pair, Kind, u64), Ps>,
    /// By kind and remainder: the time at `periods_run` periods, and the step, when it is steady.
    steps: BTreeMap<(Pair, Kind, u64), Option<(Ps, Ps)>>,
}

/// The compute and the memory node of a message.
type Pair = (NodeIndex, NodeIndex);

impl<F: Fabric> Alone<F> {
    /// A second, quiet copy of the fabric.
    pub fn new(config: &FabricConfig) -> Alone<F> {
        let fabric = F::build(&config.quiet(), 0);
        let period = fabric.period().0.max(1);
        let periods_run = fabric.steady_after().0.div_ceil(period) + PERIODS_RUN;
        let engine = Engine::new(fabric);
        Alone { engine, period, periods_run, times: BTreeMap::new(), steps: BTreeMap::new() }
    }

    /// How long a message takes from submission to completion with nothing else in the fabric,
    /// between the first two nodes.
    ///
    /// # Panics
    /// When the fabric never completes it.
    pub fn time(&mut self, kind: Kind, bytes: Bytes) -> Ps {
        self.between((0, 1), kind, bytes.0)
    }

    /// How long this message takes with nothing else in the fabric.
    ///
    /// # Panics
    /// When the fabric never completes it.
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
        // A fabric may say at submission when the message finishes, and have no event.
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
