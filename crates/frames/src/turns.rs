//! Flows that wait for their node's turn, ordered by shortest remaining first.

use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::FlowId;
use super::pacer::Pacers;
use super::transport::{End, Net, Transport};

/// The remaining packets of a flow, and its age, which breaks ties.
pub type Rank = (u32, u64);

/// Waiting flows, shortest remaining first. A node has few of them, and mostly the first comes or
/// goes. So they are a list with the first at its end.
#[derive(Clone, Debug, Default)]
pub struct Ranked(Vec<(Rank, FlowId)>);

impl Ranked {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Ranked {
        Ranked(Vec::new())
    }

    /// The first flow, if any waits.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<&(Rank, FlowId)> {
        self.0.last()
    }

    /// Adds a flow, which must not be in the list.
    #[inline]
    pub fn insert(&mut self, flow: (Rank, FlowId)) {
        let place = self.place(&flow);
        self.0.insert(place, flow);
    }

    /// Removes a flow.
    #[inline]
    pub fn remove(&mut self, flow: &(Rank, FlowId)) {
        let place = self.place(flow);
        if place > 0 && self.0[place - 1] == *flow {
            self.0.remove(place - 1);
        }
    }

    /// All waiting flows, in order.
    pub fn iter(&self) -> impl Iterator<Item = &(Rank, FlowId)> {
        self.0.iter().rev()
    }

    /// The index behind this flow and all that come after it.
    #[inline]
    fn place(&self, flow: &(Rank, FlowId)) -> usize {
        let count = self.0.len();
        match self.0.iter().rev().take(FIRST).position(|other| other >= flow) {
            Some(before) => count - before,
            None => self.0[..count.saturating_sub(FIRST)].partition_point(|other| other >= flow),
        }
    }
}

/// Number of first flows that are searched one by one.
const FIRST: usize = 8;

/// The waiting flows of every node, and the time at which each node may continue.
#[derive(Debug)]
pub struct Turns {
    waiting: Vec<Ranked>,
    pacers: Pacers,
}

impl Turns {
    /// Turns of this many nodes without waiting flows; the nodes are woken as this end.
    #[must_use]
    pub fn new(end: End, nodes: u16) -> Turns {
        let waiting = vec![Ranked::new(); usize::from(nodes)];
        Turns { waiting, pacers: Pacers::new(end, nodes) }
    }

    /// Adds a flow, which must not be waiting.
    pub fn insert(&mut self, node: NodeIndex, rank: Rank, flow: FlowId) {
        self.waiting[usize::from(node)].insert((rank, flow));
    }

    /// Removes a flow that waited with this rank.
    pub fn remove(&mut self, node: NodeIndex, rank: Rank, flow: FlowId) {
        self.waiting[usize::from(node)].remove(&(rank, flow));
    }

    /// The next flow in turn, if one waits and its node may continue now. The flow keeps waiting.
    #[inline]
    pub fn next<T: Transport>(&mut self, net: &mut Net<'_, T>, node: NodeIndex) -> Option<FlowId> {
        let &(_, flow) = self.waiting[usize::from(node)].first()?;
        self.pacers.ready(net, node).then_some(flow)
    }

    /// Records a wake: see [`Pacers::woken`].
    #[inline]
    pub fn woken(&mut self, node: NodeIndex) {
        self.pacers.woken(node);
    }

    /// Occupies a node: see [`Pacers::take`].
    #[inline]
    pub fn take(&mut self, node: NodeIndex, start: Ps, line: Ps) {
        self.pacers.take(node, start, line);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranked_flows_are_an_ordered_set(
            steps in prop::collection::vec((any::<bool>(), 0..40u32, 0..2u64, 0..3u32), 0..400),
        ) {
            let (mut ranked, mut model) = (Ranked::new(), BTreeSet::new());
            for (comes, remaining, age, flow) in steps {
                let flow = ((remaining, age), flow);
                if comes && model.insert(flow) {
                    ranked.insert(flow);
                } else if !comes {
                    model.remove(&flow);
                    ranked.remove(&flow);
                }
                prop_assert_eq!(ranked.first(), model.first());
                prop_assert!(ranked.iter().eq(model.iter()));
            }
        }
    }
}
