//! What nodes do at the pace of their link, one thing after the other.

use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::transport::{End, Net, Transport};

/// When each node may go on, and whether it is woken then. At most one wake of a node is pending.
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
    /// So many nodes, which may all go; they are woken as this end.
    #[must_use]
    pub fn new(end: End, nodes: u16) -> Pacers {
        Pacers { end, nodes: vec![Pacer::default(); usize::from(nodes)] }
    }

    /// Whether a node may go on now. If not, it is woken when it may.
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

    /// A node was woken.
    #[inline]
    pub fn woken(&mut self, node: NodeIndex) {
        self.nodes[usize::from(node)].waking = false;
    }

    /// A node is taken for `line`, from `start` or from when it is free.
    #[inline]
    pub fn take(&mut self, node: NodeIndex, start: Ps, line: Ps) {
        let pacer = &mut self.nodes[usize::from(node)];
        pacer.free = pacer.free.max(start) + line;
    }
}
