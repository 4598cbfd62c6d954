//! Blades, and their nodes in the network.

use ethermem_sim::NodeIndex;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::machine::mix;

/// A cluster of machines, each split into a compute, a memory and a disk blade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blades {
    machines: u16,
}

/// Nodes of the network that a cluster may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Nodes of one rack.
    Rack,
    /// All nodes.
    Datacenter,
}

/// Nodes of every cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Embedding {
    blades: Blades,
    /// For each cluster, its compute blades, memory blades and disk blades.
    clusters: Vec<Vec<NodeIndex>>,
}

impl Blades {
    /// A cluster of `blades` blades.
    ///
    /// # Errors
    /// What was found and what is allowed, if a third of them is not a whole number of at least 1.
    pub fn of(blades: u16) -> Result<Blades, String> {
        if blades == 0 || !blades.is_multiple_of(3) {
            return Err(format!(
                "a cluster of {blades} blades: must be a multiple of 3, compute, memory and disk"
            ));
        }
        Ok(Blades { machines: blades / 3 })
    }

    /// Number of split machines, which is the number of blades of each kind.
    #[must_use]
    pub fn machines(self) -> u16 {
        self.machines
    }

    /// Number of all its blades.
    #[must_use]
    pub fn count(self) -> u16 {
        3 * self.machines
    }

    /// The memory or disk blade that holds a block of a machine: drawn uniformly, and equal in
    /// every cluster.
    pub(crate) fn holder_of(self, seed: u64, machine: u16, block: u64) -> u16 {
        let drawn = mix(block ^ mix(seed ^ mix(u64::from(machine))));
        below(drawn, u64::from(self.machines)) as u16
    }
}

impl Scope {
    /// Name on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Rack => "rack",
            Scope::Datacenter => "datacenter",
        }
    }
}

impl Embedding {
    /// As many clusters as fit the network, each on nodes drawn from its scope.
    ///
    /// # Errors
    /// What was found and what is allowed, if not even one cluster fits.
    pub fn draw(
        blades: Blades,
        nodes: u16,
        rack_nodes: u16,
        scope: Scope,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Result<Embedding, String> {
        let within = match scope {
            Scope::Rack => rack_nodes.min(nodes),
            Scope::Datacenter => nodes,
        };
        let count = blades.count();
        if count > within {
            let scope = scope.name();
            return Err(format!(
                "a cluster of {count} blades within {within} nodes of the {scope}: must be at \
                 most as many"
            ));
        }
        let all: Vec<NodeIndex> = (0..nodes).collect();
        let mut clusters = Vec::new();
        for part in all.chunks(usize::from(within)) {
            let mut part = part.to_vec();
            shuffle(&mut part, rng);
            clusters.extend(part.chunks_exact(usize::from(count)).map(<[NodeIndex]>::to_vec));
        }
        Ok(Embedding { blades, clusters })
    }

    /// Number of clusters.
    #[must_use]
    pub fn clusters(&self) -> u16 {
        self.clusters.len() as u16
    }

    /// The compute blade of a machine.
    #[must_use]
    pub fn compute(&self, cluster: u16, machine: u16) -> NodeIndex {
        self.clusters[usize::from(cluster)][usize::from(machine)]
    }

    /// The memory blade of a machine.
    #[must_use]
    pub fn memory(&self, cluster: u16, machine: u16) -> NodeIndex {
        self.clusters[usize::from(cluster)][usize::from(self.blades.machines() + machine)]
    }

    /// The disk blade of a machine.
    #[must_use]
    pub fn disk(&self, cluster: u16, machine: u16) -> NodeIndex {
        self.clusters[usize::from(cluster)][usize::from(2 * self.blades.machines() + machine)]
    }

    /// The cluster of a node, if any.
    #[must_use]
    pub fn cluster_of(&self, node: NodeIndex) -> Option<u16> {
        let has = |cluster: &Vec<NodeIndex>| cluster.contains(&node);
        self.clusters.iter().position(has).map(|cluster| cluster as u16)
    }
}

fn shuffle(nodes: &mut [NodeIndex], rng: &mut Xoshiro256PlusPlus) {
    for last in (1..nodes.len()).rev() {
        nodes.swap(last, below(rng.next_u64(), last as u64 + 1) as usize);
    }
}

/// Maps a uniform draw to a number below `bound`; the bias is below 2^-48 for bounds of 16 bits.
pub(crate) fn below(draw: u64, bound: u64) -> u64 {
    ((u128::from(draw) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    fn draw(blades: u16, nodes: u16, scope: Scope, seed: u64) -> Result<Embedding, String> {
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
        Embedding::draw(Blades::of(blades)?, nodes, 16, scope, rng)
    }

    #[test]
    fn nine_clusters_of_the_study_fit_in_its_network_in_either_scope() {
        for scope in [Scope::Rack, Scope::Datacenter] {
            let embedding = draw(15, 144, scope, 1).unwrap();
            assert_eq!(embedding.clusters(), 9);
            let nodes: BTreeSet<u16> = embedding.clusters.iter().flatten().copied().collect();
            assert_eq!(nodes.len(), 135, "no node in two clusters");
            assert!(nodes.iter().all(|&node| node < 144));
            let racks = |cluster: &Vec<u16>| -> BTreeSet<u16> {
                cluster.iter().map(|node| node / 16).collect()
            };
            let in_one = embedding.clusters.iter().filter(|cluster| racks(cluster).len() == 1);
            let expected = if scope == Scope::Rack { 9 } else { 0 };
            assert_eq!(in_one.count(), expected, "{scope:?}");
            for cluster in 0..9 {
                for machine in 0..5 {
                    let (compute, memory) =
                        (embedding.compute(cluster, machine), embedding.memory(cluster, machine));
                    assert_eq!(embedding.cluster_of(compute), Some(cluster));
                    assert_eq!(embedding.cluster_of(memory), Some(cluster));
                    assert_ne!(compute, memory);
                }
            }
            assert_eq!(draw(15, 144, scope, 1).unwrap(), embedding, "the seed decides");
            assert_ne!(draw(15, 144, scope, 2).unwrap(), embedding);
        }
    }

    #[test]
    fn several_small_clusters_share_a_rack_and_the_last_rack_may_be_short() {
        assert_eq!(draw(6, 40, Scope::Rack, 1).unwrap().clusters(), 2 + 2 + 1);
        assert_eq!(draw(6, 40, Scope::Datacenter, 1).unwrap().clusters(), 6);
        assert_eq!(draw(144, 144, Scope::Datacenter, 1).unwrap().clusters(), 1);
    }

    #[test]
    fn what_has_no_room_or_no_thirds_is_refused() {
        let expected = "a cluster of 18 blades within 16 nodes of the rack: must be at most as \
                        many";
        assert_eq!(draw(18, 144, Scope::Rack, 1).unwrap_err(), expected);
        let expected = "a cluster of 15 blades within 14 nodes of the datacenter: must be at \
                        most as many";
        assert_eq!(draw(15, 14, Scope::Datacenter, 1).unwrap_err(), expected);
        for blades in [0, 1, 14] {
            let error = draw(blades, 144, Scope::Rack, 1).unwrap_err();
            let expected = "must be a multiple of 3, compute, memory and disk";
            assert_eq!(error, format!("a cluster of {blades} blades: {expected}"));
        }
    }

    #[test]
    fn blocks_are_placed_uniformly_and_for_good() {
        let blades = Blades::of(15).unwrap();
        let mut counts = [0_u32; 5];
        for block in 0..50_000 {
            let memory = blades.holder_of(7, 3, block);
            assert_eq!(memory, blades.holder_of(7, 3, block));
            counts[usize::from(memory)] += 1;
        }
        // The expectation is 10,000; the tolerance is five standard deviations.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 450), "{counts:?}");
        let moved = (0..100)
            .filter(|&block| blades.holder_of(7, 3, block) != blades.holder_of(7, 2, block));
        assert!(moved.count() > 50, "machines have memory of their own");
    }
}
