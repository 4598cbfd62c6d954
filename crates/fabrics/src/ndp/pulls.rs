//! The pulls that receivers still have to send (section 3.2).

use std::collections::VecDeque;

use ethermem_frames::FlowId;
use ethermem_workload::NodeIndex;

/// The order in which several flows get their pulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullOrder {
    /// Flows take turns.
    Fair,
    /// The flow with the fewest missing packets goes first.
    FewestMissing,
}

/// Every receiver's flows that wait for pulls, each once; a flow keeps its number of pulls itself.
#[derive(Debug)]
pub(super) struct Pulls {
    order: PullOrder,
    nodes: Vec<VecDeque<FlowId>>,
}

impl Pulls {
    pub(super) fn new(order: PullOrder, nodes: u16) -> Pulls {
        Pulls { order, nodes: vec![VecDeque::new(); usize::from(nodes)] }
    }

    /// Adds a flow that waits for its first pull, or for one more after its turn.
    pub(super) fn push(&mut self, node: NodeIndex, flow: FlowId) {
        self.nodes[usize::from(node)].push_back(flow);
    }

    /// Takes the next flow; `missing` returns the number of its missing packets.
    pub(super) fn pop(
        &mut self,
        node: NodeIndex,
        missing: impl Fn(FlowId) -> u32,
    ) -> Option<FlowId> {
        let waiting = &mut self.nodes[usize::from(node)];
        match self.order {
            PullOrder::Fair => waiting.pop_front(),
            PullOrder::FewestMissing => {
                let places = waiting.iter().enumerate();
                let (place, _) = places.min_by_key(|&(place, &flow)| (missing(flow), place))?;
                waiting.remove(place)
            }
        }
    }

    /// Removes a flow that waits for no pull any more.
    pub(super) fn remove(&mut self, node: NodeIndex, flow: FlowId) {
        self.nodes[usize::from(node)].retain(|&waiting| waiting != flow);
    }

    pub(super) fn is_empty(&self, node: NodeIndex) -> bool {
        self.nodes[usize::from(node)].is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_take_turns_or_the_one_that_misses_least_goes_first() {
        let missing = |flow: FlowId| [9, 2, 5][flow as usize];
        for (order, turns) in
            [(PullOrder::Fair, [0, 1, 2, 0, 1]), (PullOrder::FewestMissing, [1, 1, 1, 1, 1])]
        {
            let mut pulls = Pulls::new(order, 2);
            for flow in 0..3 {
                pulls.push(1, flow);
            }
            let turn = |_| {
                let flow = pulls.pop(1, missing).expect("three wait");
                pulls.push(1, flow);
                flow
            };
            assert_eq!([0; 5].map(turn), turns);
            pulls.remove(1, 1);
            let left = [pulls.pop(1, missing), pulls.pop(1, missing)].map(|flow| flow.unwrap());
            assert!(left == [2, 0], "{left:?}");
            assert!(pulls.is_empty(1) && pulls.is_empty(0));
        }
    }
}
