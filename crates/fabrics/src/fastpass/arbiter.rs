//! The arbiter: its mode of decision, and its results.

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::Topology;
use ethermem_units::Ps;

use super::config::epoch_timeslots;
use super::epochs::{Demand, Epochs};
use super::paths::Paths;
use super::timeslots::Timeslots;

/// The arbiter's mode of decision.
pub(super) enum Decides {
    Timeslots(Timeslots),
    /// By epochs, with paths unless the scenario sprays packets.
    Epochs(Epochs, Option<Box<Paths>>),
}

impl Decides {
    pub(super) fn new(config: &FabricConfig) -> Decides {
        if epoch_timeslots(config).is_none() {
            return Decides::Timeslots(Timeslots::new(config.nodes));
        }
        let paths = match config.topology {
            Topology::LeafSpine(clos) if clos.balancing.is_none() => {
                Some(Box::new(Paths::new(&clos, config.nodes)))
            }
            _ => None,
        };
        Decides::Epochs(Epochs::new(config.nodes), paths)
    }

    pub(super) fn insert(&mut self, demand: Demand) {
        match self {
            Decides::Timeslots(timeslots) => timeslots.insert(demand),
            Decides::Epochs(epochs, _) => epochs.insert(demand),
        }
    }

    pub(super) fn open(&self) -> usize {
        match self {
            Decides::Timeslots(timeslots) => timeslots.open(),
            Decides::Epochs(epochs, _) => epochs.open(),
        }
    }
}

#[derive(Default)]
pub(super) struct Decided {
    pub(super) rounds: u64,
    pub(super) size_max: u64,
    pub(super) joined: u64,
}

impl Decided {
    pub(super) fn count(&mut self, size: u64) {
        self.rounds += u64::from(size > 0);
        self.joined += size;
        self.size_max = self.size_max.max(size);
    }
}

/// The arbiter and the time of its decisions.
pub(super) struct Arbiter {
    pub(super) decides: Decides,
    /// The earliest time of its next decision.
    pub(super) next_at: Ps,
    pub(super) armed: bool,
    pub(super) decided: Decided,
}
