//! The one denominator: how long a message takes alone in the same fabric.

use std::collections::BTreeMap;

use ethermem_units::{Bytes, Ps};

use super::{Engine, Fabric};
use crate::FabricConfig;
use crate::config::Background;
use crate::message::{Kind, Message};

/// Periods from which a long message's time is taken to grow by the same step.
const PERIODS_RUN: u64 = 5;

/// Runs messages alone in a fabric, and remembers how long they took, by kind and size.
///
/// A message of many periods ([`Fabric::period`]) is not run whole: sizes of the same remainder,
/// some periods long, are run, and when the last two steps between them are equal the rest is
/// steps of that length. When they are not, the message is run whole.
pub struct Alone<F: Fabric> {
    engine: Engine<F>,
    period: u64,
    times: BTreeMap<(Kind, u64), Ps>,
    /// By kind and remainder: the time at `PERIODS_RUN` periods, and the step, when it is steady.
    steps: BTreeMap<(Kind, u64), Option<(Ps, Ps)>>,
}

impl<F: Fabric> Alone<F> {
    /// A second, quiet copy of the fabric.
    pub fn new(config: &FabricConfig) -> Alone<F> {
        let quiet = FabricConfig {
            background: Background { load: 0.0, ..config.background },
            ..config.clone()
        };
        let fabric = F::build(&quiet, 0);
        let period = fabric.period().0.max(1);
        let engine = Engine::new(fabric);
        Alone { engine, period, times: BTreeMap::new(), steps: BTreeMap::new() }
    }

    /// How long a message takes from submission to completion with nothing else in the fabric.
    ///
    /// # Panics
    /// When the fabric never completes it.
    pub fn time(&mut self, kind: Kind, bytes: Bytes) -> Ps {
        let whole = bytes.0 / self.period;
        if whole <= PERIODS_RUN {
            return self.measured(kind, bytes.0);
        }
        let rest = bytes.0 % self.period;
        let steady = match self.steps.get(&(kind, rest)) {
            Some(&steady) => steady,
            None => {
                let at =
                    |alone: &mut Self, periods| alone.measured(kind, periods * alone.period + rest);
                let before = at(self, PERIODS_RUN - 2);
                let middle = at(self, PERIODS_RUN - 1);
                let after = at(self, PERIODS_RUN);
                let steady = (after - middle == middle - before).then(|| (after, after - middle));
                self.steps.insert((kind, rest), steady);
                steady
            }
        };
        match steady {
            Some((base, step)) => base + step * (whole - PERIODS_RUN),
            None => self.measured(kind, bytes.0),
        }
    }

    fn measured(&mut self, kind: Kind, bytes: u64) -> Ps {
        if let Some(&time) = self.times.get(&(kind, bytes)) {
            return time;
        }
        let time = self.run(kind, Bytes(bytes));
        self.times.insert((kind, bytes), time);
        time
    }

    fn run(&mut self, kind: Kind, bytes: Bytes) -> Ps {
        let engine = &mut self.engine;
        // Whatever the message before left behind has passed; the fabric is idle again.
        let start = engine.sim.now + Ps::from_ns(1);
        engine.sim.now = start + engine.fabric.submit_delay();
        engine.submit(&Message {
            index: engine.started,
            arrival: start,
            kind,
            compute: 0,
            memory: 1,
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
