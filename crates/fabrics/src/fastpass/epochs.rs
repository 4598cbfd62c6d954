//! The arbiter that decides an epoch of timeslots at once.

use ethermem_engine::engine::Handle;
use ethermem_workload::NodeIndex;

/// A message that wants timeslots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Demand {
    /// Number of timeslots that it still wants.
    pub(super) timeslots: u64,
    /// The age of the message, which breaks ties.
    pub(super) order: u64,
    pub(super) handle: Handle,
    pub(super) source: NodeIndex,
    pub(super) destination: NodeIndex,
}

impl Demand {
    fn key(&self) -> (u64, u64) {
        (self.timeslots, self.order)
    }
}

/// Demands by remaining timeslots, and the pairs joined in a timeslot.
#[derive(Clone, Debug)]
pub(super) struct Epochs {
    demands: Vec<Demand>,
    passed: Vec<Demand>,
    joined: Vec<Demand>,
    /// The overall number of the timeslot in which an end was last used.
    source_taken: Vec<u64>,
    destination_taken: Vec<u64>,
    timeslot: u64,
}

impl Epochs {
    pub(super) fn new(nodes: u16) -> Epochs {
        let taken = vec![0; nodes.into()];
        Epochs {
            demands: Vec::new(),
            passed: Vec::new(),
            joined: Vec::new(),
            source_taken: taken.clone(),
            destination_taken: taken,
            timeslot: 0,
        }
    }

    pub(super) fn insert(&mut self, demand: Demand) {
        let place = self.demands.partition_point(|other| other.key() < demand.key());
        self.demands.insert(place, demand);
    }

    /// Number of demands left.
    pub(super) fn open(&self) -> usize {
        self.demands.len()
    }

    /// Decides the next timeslot. The demand with the fewest remaining timeslots goes first, until
    /// no two free ends want each other. Returns the joined demands as they were before.
    pub(super) fn join(&mut self) -> &[Demand] {
        self.timeslot += 1;
        self.passed.clear();
        self.joined.clear();
        for &demand in &self.demands {
            let source = &mut self.source_taken[usize::from(demand.source)];
            let destination = &mut self.destination_taken[usize::from(demand.destination)];
            if *source != self.timeslot && *destination != self.timeslot {
                (*source, *destination) = (self.timeslot, self.timeslot);
                self.joined.push(demand);
            } else {
                self.passed.push(demand);
            }
        }
        self.put_back();
        &self.joined
    }

    /// Both lists are in order, and stay so with one timeslot less.
    fn put_back(&mut self) {
        self.demands.clear();
        let mut passed = self.passed.iter().copied().peekable();
        for joined in &self.joined {
            let left = Demand { timeslots: joined.timeslots - 1, ..*joined };
            if left.timeslots == 0 {
                continue;
            }
            while let Some(before) = passed.next_if(|other| other.key() < left.key()) {
                self.demands.push(before);
            }
            self.demands.push(left);
        }
        self.demands.extend(passed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The model is the definition, on a list that is sorted again every time.
        #[test]
        fn every_timeslot_is_a_maximal_matching_least_left_first(
            wants in prop::collection::vec((0..12u16, 0..12u16, 1..6u64), 1..60),
            timeslots in 1..30usize,
        ) {
            let mut epochs = Epochs::new(12);
            let mut model: Vec<Demand> = Vec::new();
            let mut wants = wants.into_iter().enumerate();
            for _ in 0..timeslots {
                for (order, (source, destination, timeslots)) in wants.by_ref().take(5) {
                    let (order, handle) = (order as u64, order as u32);
                    let demand = Demand { timeslots, order, handle, source, destination };
                    epochs.insert(demand);
                    model.push(demand);
                }
                model.sort_by_key(Demand::key);
                let mut joined: Vec<Demand> = Vec::new();
                for demand in &mut model {
                    let meets = |other: &Demand| {
                        other.source == demand.source || other.destination == demand.destination
                    };
                    if !joined.iter().any(meets) {
                        joined.push(*demand);
                        demand.timeslots -= 1;
                    }
                }
                model.retain(|demand| demand.timeslots > 0);
                prop_assert_eq!(epochs.join(), &joined[..]);
                prop_assert_eq!(epochs.open(), model.len());
            }
        }
    }
}
