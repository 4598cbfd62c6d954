//! Traffic patterns: the two ends of each message.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::message::{Kind, NodeIndex};

/// The pattern of a synthetic workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Every ordered pair of different nodes is equally likely.
    AllToAll,
    /// `fan_in` nodes send data to one: the nodes that follow `receiver`, around the end.
    Incast {
        /// Number of senders: 1 to `nodes - 1`.
        fan_in: u16,
        /// The node whose downlink takes all data.
        receiver: NodeIndex,
    },
    /// Every node sends data to one node and gets data from one node. The seed draws the
    /// permutation once.
    Permutation,
    /// A share of the messages goes to one memory node; the rest is all-to-all.
    HotSpot {
        /// The share of the hot spot, 0 to 1.
        fraction: f64,
        /// The memory node.
        node: NodeIndex,
    },
}

impl Pattern {
    /// The name in scenarios.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::AllToAll => "all-to-all",
            Pattern::Incast { .. } => "incast",
            Pattern::Permutation => "permutation",
            Pattern::HotSpot { .. } => "hot-spot",
        }
    }
}

/// The two ends of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) compute: NodeIndex,
    pub(super) memory: NodeIndex,
}

/// The probabilities that a node is each end of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EndShares {
    pub(super) compute: f64,
    pub(super) memory: f64,
}

/// A pattern over a number of nodes, prepared for draws.
#[derive(Clone, Debug)]
pub(super) struct EndsSampler {
    pattern: Pattern,
    nodes: u16,
    /// Data of node `i` goes to `data_destination[i]`; empty unless [`Pattern::Permutation`].
    data_destination: Vec<NodeIndex>,
}

impl EndsSampler {
    /// # Panics
    /// If there are fewer than two nodes, or a parameter names a node that does not exist.
    pub(super) fn new(pattern: Pattern, nodes: u16, rng: &mut Xoshiro256PlusPlus) -> EndsSampler {
        assert!(nodes >= 2, "a message has two ends");
        match pattern {
            Pattern::Incast { fan_in, receiver } => {
                assert!((1..nodes).contains(&fan_in), "{fan_in} senders among {nodes} nodes");
                assert!(receiver < nodes, "receiver {receiver} of {nodes} nodes");
            }
            Pattern::HotSpot { node, .. } => assert!(node < nodes, "node {node} of {nodes}"),
            Pattern::AllToAll | Pattern::Permutation => {}
        }
        let data_destination = match pattern {
            Pattern::Permutation => cyclic_permutation(nodes, rng),
            _ => Vec::new(),
        };
        EndsSampler { pattern, nodes, data_destination }
    }

    #[inline]
    pub(super) fn sample(&self, kind: Kind, rng: &mut Xoshiro256PlusPlus) -> Ends {
        match self.pattern {
            Pattern::AllToAll => self.any_pair(rng),
            Pattern::Incast { fan_in, receiver } => {
                let step = 1 + below(rng.next_u64(), fan_in);
                data_ends(kind, self.after(receiver, step), receiver)
            }
            Pattern::Permutation => {
                let source = below(rng.next_u64(), self.nodes);
                data_ends(kind, source, self.data_destination[usize::from(source)])
            }
            Pattern::HotSpot { fraction, node } => {
                let hot = unit(rng.next_u64()) < fraction;
                let pair = self.any_pair(rng);
                if !hot {
                    return pair;
                }
                // The pair's first node is uniform, and so is its distance to the second. So the
                // compute node is uniform over all nodes but the hot one.
                let step = (self.nodes + pair.memory - pair.compute) % self.nodes;
                Ends { compute: (node + step) % self.nodes, memory: node }
            }
        }
    }

    /// The exact probabilities that `node` is the compute node, and that it is the memory node, of
    /// a message of `kind`.
    pub(super) fn shares(&self, kind: Kind, node: NodeIndex) -> EndShares {
        let uniform = 1.0 / f64::from(self.nodes);
        match self.pattern {
            Pattern::AllToAll | Pattern::Permutation => {
                EndShares { compute: uniform, memory: uniform }
            }
            Pattern::Incast { fan_in, receiver } => {
                let step = self.after(node, self.nodes - receiver);
                let sends = (1..=fan_in).contains(&step);
                let source = if sends { 1.0 / f64::from(fan_in) } else { 0.0 };
                let destination = if node == receiver { 1.0 } else { 0.0 };
                match kind {
                    Kind::Write => EndShares { compute: source, memory: destination },
                    Kind::Read | Kind::ReadModifyWrite => {
                        EndShares { compute: destination, memory: source }
                    }
                }
            }
            Pattern::HotSpot { fraction, node: hot } => {
                let (compute, memory) =
                    if node == hot { (0.0, 1.0) } else { (1.0 / f64::from(self.nodes - 1), 0.0) };
                EndShares {
                    compute: fraction * compute + (1.0 - fraction) * uniform,
                    memory: fraction * memory + (1.0 - fraction) * uniform,
                }
            }
        }
    }

    #[inline]
    fn any_pair(&self, rng: &mut Xoshiro256PlusPlus) -> Ends {
        // The fraction that the first choice leaves of the draw decides the second, without a
        // division.
        let scaled = u128::from(rng.next_u64()) * u128::from(self.nodes);
        let compute = (scaled >> 64) as u16;
        let other = below(scaled as u64, self.nodes - 1);
        Ends { compute, memory: other + u16::from(other >= compute) }
    }

    /// The node `step` after `node`, around the end.
    #[inline]
    fn after(&self, node: NodeIndex, step: u16) -> NodeIndex {
        let next = node + step;
        if next < self.nodes { next } else { next - self.nodes }
    }
}

/// The compute node and the memory node when data of `kind` goes from `source` to `destination`.
fn data_ends(kind: Kind, source: NodeIndex, destination: NodeIndex) -> Ends {
    match kind {
        Kind::Write => Ends { compute: source, memory: destination },
        Kind::Read | Kind::ReadModifyWrite => Ends { compute: destination, memory: source },
    }
}

/// A random cycle through all nodes, each equally likely (Sattolo): no node is its own destination.
fn cyclic_permutation(nodes: u16, rng: &mut Xoshiro256PlusPlus) -> Vec<NodeIndex> {
    let mut permutation: Vec<NodeIndex> = (0..nodes).collect();
    for last in (1..nodes).rev() {
        let other = below(rng.next_u64(), last);
        permutation.swap(usize::from(last), usize::from(other));
    }
    permutation
}

/// A number below `bound` from a uniform draw; its bias is under 2^-46.
#[inline]
fn below(draw: u64, bound: u16) -> u16 {
    ((u128::from(draw) * u128::from(bound)) >> 64) as u16
}

/// A uniform draw as a number in the open interval (0, 1).
#[inline]
pub fn unit(draw: u64) -> f64 {
    ((draw >> 11) as f64 + 0.5) * (1.0 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    const DRAWS: u32 = 200_000;

    fn rng() -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(7)
    }

    fn patterns() -> [Pattern; 5] {
        [
            Pattern::AllToAll,
            Pattern::Incast { fan_in: 3, receiver: 6 },
            Pattern::Permutation,
            Pattern::HotSpot { fraction: 0.4, node: 5 },
            Pattern::HotSpot { fraction: 1.0, node: 0 },
        ]
    }

    #[test]
    fn the_shares_are_those_of_the_draws() {
        for pattern in patterns() {
            for kind in Kind::ALL {
                let mut rng = rng();
                let sampler = EndsSampler::new(pattern, 8, &mut rng);
                let mut counts = [[0_u32; 8]; 2];
                for _ in 0..DRAWS {
                    let ends = sampler.sample(kind, &mut rng);
                    assert_ne!(ends.compute, ends.memory, "{pattern:?}");
                    counts[0][usize::from(ends.compute)] += 1;
                    counts[1][usize::from(ends.memory)] += 1;
                }
                for node in 0..8 {
                    let shares = sampler.shares(kind, node);
                    for (share, count) in [shares.compute, shares.memory].iter().zip(counts) {
                        let drawn = f64::from(count[usize::from(node)]) / f64::from(DRAWS);
                        // The bound is five standard deviations of a share of 1/2.
                        let close = (drawn - share).abs() < 0.0056;
                        assert!(close, "{pattern:?} {kind:?} node {node}: {drawn}, not {share}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_permutation_has_one_source_for_every_destination() {
        for nodes in [2, 3, 144, 512] {
            let permutation = cyclic_permutation(nodes, &mut rng());
            let mut node = 0;
            for step in 1..=nodes {
                node = permutation[usize::from(node)];
                assert_eq!(node == 0, step == nodes, "not one cycle over {nodes} nodes");
            }
        }
    }

    #[test]
    fn incast_data_goes_to_the_receiver_alone() {
        let pattern = Pattern::Incast { fan_in: 3, receiver: 6 };
        let mut rng = rng();
        let sampler = EndsSampler::new(pattern, 8, &mut rng);
        for _ in 0..1_000 {
            let write = sampler.sample(Kind::Write, &mut rng);
            assert_eq!(write.memory, 6);
            assert!([7, 0, 1].contains(&write.compute), "{write:?}");
            let read = sampler.sample(Kind::Read, &mut rng);
            assert_eq!(read.compute, 6);
            assert!([7, 0, 1].contains(&read.memory), "{read:?}");
        }
    }

    #[test]
    fn all_ordered_pairs_are_drawn() {
        let mut rng = rng();
        let sampler = EndsSampler::new(Pattern::AllToAll, 5, &mut rng);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..20_000 {
            let ends = sampler.sample(Kind::Read, &mut rng);
            *seen.entry((ends.compute, ends.memory)).or_insert(0_u32) += 1;
        }
        assert_eq!(seen.len(), 20);
        // 1,000 of each are expected; five standard deviations are 154.
        assert!(seen.values().all(|&count| count.abs_diff(1_000) < 154), "{seen:?}");
    }
}
