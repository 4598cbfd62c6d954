//! The one denominator: the time of a message alone in the fabric.

use std::collections::BTreeMap;

use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, Message, NodeIndex};

use super::{Engine, Fabric};
use crate::FabricConfig;

/// Number of periods that a long message must have before its time may be extrapolated by equal
/// steps.
const PERIODS_RUN: u64 = 5;

/// Pause before a message. A fabric may still be busy when no event is left. An arbiter decides its
/// next epoch only after the last one is over, and a link may be occupied. After the pause all of
/// that has passed.
const PAUSE: Ps = Ps::from_ns(10_000_000);

/// Runs messages alone in a fabric, and caches their times by kind and size.
///
/// Each runs in a fabric of its own, unless that fabric forgets messages ([`Fabric::FORGETS`]).
/// What outlives a message, such as the window of a connection, would otherwise make the time of
/// one depend on which were timed before.
///
/// A message of many periods ([`Fabric::period`]) is not run as a whole. Shorter sizes with an
/// equal remainder ([`Fabric::steady_after`] and five periods more) are run. If the last two steps
/// between them are equal, the rest is steps of that length; otherwise the message is run as a
/// whole.
pub struct Alone<F: Fabric> {
    /// The configuration, without anything that a message shares the fabric with.
    config: FabricConfig,
    /// The fabric of all messages, if it forgets them.
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
        let config = F::quiet(config);
        let engine = Engine::new(F::build(&config, 0));
        let period = engine.fabric.period().0.max(1);
        let periods_run = engine.fabric.steady_after().0.div_ceil(period) + PERIODS_RUN;
        let (times, steps) = (BTreeMap::new(), BTreeMap::new());
        Alone { config, engine, period, periods_run, times, steps }
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
                let step = after.0.checked_sub(middle.0);
                let steady = step.filter(|_| step == middle.0.checked_sub(before.0));
                let steady = steady.map(|step| (after, Ps(step)));
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
        let mut own;
        let engine = if F::FORGETS {
            &mut self.engine
        } else {
            own = Engine::new(F::build(&self.config, 0));
            &mut own
        };
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
        // A fabric may report at submission when the message finishes, and have no event.
        loop {
            for (handle, outcome) in engine.sim.outcomes.drain(..) {
                finished = Some(outcome.expect("a message alone in the fabric is not lost"));
                engine.live[handle as usize] = false;
                engine.free.push(handle);
            }
            let is_known = finished.is_some() && !F::FORGETS;
            if is_known || !engine.handle_before(Ps::MAX) {
                break;
            }
        }
        let finished = finished.expect("a message alone in the fabric completes");
        engine.sim.now = engine.sim.now.max(finished);
        finished - start
    }
}
