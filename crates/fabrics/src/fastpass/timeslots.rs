//! The arbiter that decides timeslot by timeslot, and occupies both ends for a whole allocation.

use std::collections::BTreeSet;

use ethermem_engine::engine::Handle;
use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::epochs::Demand;

/// The demands, and the time until which each end is occupied.
#[derive(Clone, Debug)]
pub(super) struct Timeslots {
    /// By destination: remaining timeslots, age, message and its source.
    demands: Vec<BTreeSet<(u64, u64, Handle, NodeIndex)>>,
    /// Number of messages with a demand.
    open: usize,
    source_free: Vec<Ps>,
    destination_free: Vec<Ps>,
    /// The destination that is examined first.
    first: usize,
}

impl Timeslots {
    pub(super) fn new(nodes: u16) -> Timeslots {
        let nodes = usize::from(nodes);
        Timeslots {
            demands: vec![BTreeSet::new(); nodes],
            open: 0,
            source_free: vec![Ps::ZERO; nodes],
            destination_free: vec![Ps::ZERO; nodes],
            first: 0,
        }
    }

    pub(super) fn insert(&mut self, demand: Demand) {
        let Demand { timeslots, order, handle, source, destination } = demand;
        self.demands[usize::from(destination)].insert((timeslots, order, handle, source));
        self.open += 1;
    }

    /// Number of demands left.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// Makes a maximal matching of the free ends, from another destination on every time.
    /// `allocate` is given each joined pair; it returns for how long, and what is left of it.
    pub(super) fn join(
        &mut self,
        now: Ps,
        mut allocate: impl FnMut(Demand) -> (Ps, Option<Demand>),
    ) {
        let nodes = self.demands.len();
        for step in 0..nodes {
            let destination = (self.first + step) % nodes;
            if self.destination_free[destination] > now {
                continue;
            }
            let free = |source: NodeIndex| self.source_free[usize::from(source)] <= now;
            let mut demands = self.demands[destination].iter();
            let Some(&wanted) = demands.find(|&&(_, _, _, source)| free(source)) else {
                continue;
            };
            self.demands[destination].remove(&wanted);
            self.open -= 1;
            let (timeslots, order, handle, source) = wanted;
            let to = destination as NodeIndex;
            let demand = Demand { timeslots, order, handle, source, destination: to };
            let (until, left) = allocate(demand);
            self.source_free[usize::from(source)] = until;
            self.destination_free[destination] = until;
            if let Some(left) = left {
                self.insert(left);
            }
        }
        self.first = (self.first + 1) % nodes;
    }
}
