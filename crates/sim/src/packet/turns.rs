//! Flows that wait for their node's turn, the one with the least to go first.

use std::collections::BTreeSet;

use ethermem_units::Ps;

use super::FlowId;
use super::pacer::Pacers;
use super::transport::{End, Net, Transport};
use crate::message::NodeIndex;

/// What a flow has to go, and its age, which decides between equals.
pub type Rank = (u32, u64);

/// Shortest remaining first.
pub type Ranked = BTreeSet<(Rank, FlowId)>;

/// What waits at every node, and when each may go on.
#[derive(Debug)]
pub struct Turns {
    waiting: Vec<Ranked>,
    pacers: Pacers,
}

impl Turns {
    /// So many nodes, at which nothing waits; they are woken as this end.
    #[must_use]
    pub fn new(end: End, nodes: u16) -> Turns {
        let waiting = vec![Ranked::new(); usize::from(nodes)];
        Turns { waiting, pacers: Pacers::new(end, nodes) }
    }

    /// A flow waits, which did not.
    pub fn insert(&mut self, node: NodeIndex, rank: Rank, flow: FlowId) {
        self.waiting[usize::from(node)].insert((rank, flow));
    }

    /// A flow that waited under this rank does no more.
    pub fn remove(&mut self, node: NodeIndex, rank: Rank, flow: FlowId) {
        self.waiting[usize::from(node)].remove(&(rank, flow));
    }

    /// The flow whose turn it is, if one waits and its node may go on now. It goes on waiting.
    #[inline]
    pub fn next<T: Transport>(&mut self, net: &mut Net<'_, T>, node: NodeIndex) -> Option<FlowId> {
        let &(_, flow) = self.waiting[usize::from(node)].first()?;
        self.pacers.ready(net, node).then_some(flow)
    }

    /// See [`Pacers::woken`].
    #[inline]
    pub fn woken(&mut self, node: NodeIndex) {
        self.pacers.woken(node);
    }

    /// See [`Pacers::take`].
    #[inline]
    pub fn take(&mut self, node: NodeIndex, start: Ps, line: Ps) {
        self.pacers.take(node, start, line);
    }
}
