//! Pacing of nodes: each performs one action after the other, at the pace of its link.

use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::transport::{End, Net, Transport};

/// The time at which each node may continue, and whether a wake is pending. A node has at most one
/// pending wake.
#[derive(Debug)]
pub struct Pacers {
    end: End,
    nodes: Vec<Pacer>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pacer {
    free: Ps,
    waking: bool,
}

impl Pacers {
    /// Pacers of this many nodes, all free; the nodes are woken as this end.
    #[must_use]
    pub fn new(end: End, nodes: u16) -> Pacers {
        Pacers { end, nodes: vec![Pacer::default(); usize::from(nodes)] }
    }

    /// True if a node may continue now. If not, it is woken when it may.
    #[inline]
    pub fn ready<T: Transport>(&mut self, net: &mut Net<'_, T>, node: NodeIndex) -> bool {
        let pacer = &mut self.nodes[usize::from(node)];
        if pacer.free <= net.now() {
            return true;
        }
        if !std::mem::replace(&mut pacer.waking, true) {
            net.wake(self.end, node, pacer.free);
        }
        false
    }

    /// Records that a node was woken.
    #[inline]
    pub fn woken(&mut self, node: NodeIndex) {
        self.nodes[usize::from(node)].waking = false;
    }

    /// Occupies a node for `line`, from `start` or from when it is free.
    #[inline]
    pub fn take(&mut self, node: NodeIndex, start: Ps, line: Ps) {
        let pacer = &mut self.nodes[usize::from(node)];
        pacer.free = pacer.free.max(start) + line;
    }
}
