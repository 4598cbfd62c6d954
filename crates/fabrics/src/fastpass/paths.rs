//! The spine of every packet of a timeslot, by an edge colouring (Fastpass, section 4).
//!
//! Source racks and destination racks are the sides of a bipartite graph whose edges are the pairs
//! joined in a timeslot. A rack has at most as many edges as nodes, so as many colours suffice
//! (König). If the two ends of an edge have no common free colour, a chain of edges in two colours
//! swaps them. A colour is a share of a spine, as wide as a node's link.

use ethermem_engine::topology::LeafSpine;
use ethermem_workload::NodeIndex;

const NONE: u16 = u16::MAX;

/// One side's racks: the edge of each colour at each rack.
#[derive(Clone, Debug)]
struct Side {
    colours: usize,
    /// Edges by rack and colour.
    edges: Vec<u16>,
    /// One bit for every free colour, by rack.
    free: Vec<u64>,
    words: usize,
}

impl Side {
    fn new(racks: usize, colours: usize) -> Side {
        let words = colours.div_ceil(64);
        let mut side = Side {
            colours,
            edges: vec![NONE; racks * colours],
            free: vec![0; racks * words],
            words,
        };
        side.clear();
        side
    }

    fn clear(&mut self) {
        self.edges.fill(NONE);
        for (at, word) in self.free.iter_mut().enumerate() {
            let left = self.colours - at % self.words * 64;
            *word = if left >= 64 { u64::MAX } else { (1 << left) - 1 };
        }
    }

    fn free(&self, rack: usize) -> &[u64] {
        &self.free[rack * self.words..][..self.words]
    }

    fn edge(&self, rack: usize, colour: usize) -> Option<usize> {
        let edge = self.edges[rack * self.colours + colour];
        (edge != NONE).then_some(usize::from(edge))
    }

    fn set(&mut self, rack: usize, colour: usize, edge: u16) {
        self.edges[rack * self.colours + colour] = edge;
        let word = &mut self.free[rack * self.words + colour / 64];
        let bit = 1 << (colour % 64);
        *word = if edge == NONE { *word | bit } else { *word & !bit };
    }
}

fn first(words: impl Iterator<Item = u64>) -> Option<usize> {
    let mut words = words.enumerate();
    let (at, word) = words.find(|&(_, word)| word != 0)?;
    Some(at * 64 + word.trailing_zeros() as usize)
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    from: usize,
    to: usize,
    colour: usize,
}

/// The colouring of a timeslot's packets.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    rack_nodes: u16,
    spines: usize,
    up: Side,
    down: Side,
    edges: Vec<Edge>,
    chain: Vec<usize>,
}

impl Paths {
    pub(super) fn new(clos: &LeafSpine, nodes: u16) -> Paths {
        let racks = usize::from(nodes.div_ceil(clos.rack_nodes));
        let colours = usize::from(clos.rack_nodes);
        let side = Side::new(racks, colours);
        Paths {
            rack_nodes: clos.rack_nodes,
            spines: clos.spines.into(),
            up: side.clone(),
            down: side,
            edges: Vec::new(),
            chain: Vec::new(),
        }
    }

    /// The spines of the pairs joined in a timeslot, in their order; no node is twice on a side. It
    /// is 0 for a pair within a rack. Colours take spines in turn, with another first spine in each
    /// timeslot.
    pub(super) fn assign(
        &mut self,
        timeslot: usize,
        joined: impl Iterator<Item = (NodeIndex, NodeIndex)>,
        spines: &mut Vec<u8>,
    ) {
        self.up.clear();
        self.down.clear();
        self.edges.clear();
        spines.clear();
        // Later edges may change the colours of earlier ones, so colours are read at the end.
        for (source, destination) in joined {
            let (from, to) = (source / self.rack_nodes, destination / self.rack_nodes);
            if from == to {
                spines.push(u8::MAX);
            } else {
                spines.push(0);
                self.add(from.into(), to.into());
            }
        }
        let mut edges = self.edges.iter();
        for spine in spines {
            *spine = match *spine {
                u8::MAX => 0,
                _ => {
                    let edge = edges.next().expect("an edge for each between racks");
                    ((edge.colour + timeslot) % self.spines) as u8
                }
            };
        }
    }

    fn add(&mut self, from: usize, to: usize) {
        let (up, down) = (self.up.free(from), self.down.free(to));
        let common = first(up.iter().zip(down).map(|(up, down)| up & down));
        let colour = match common {
            Some(colour) => colour,
            None => {
                let free = "a rack has no more edges than nodes, and as many colours";
                let at_from = first(up.iter().copied()).expect(free);
                let at_to = first(down.iter().copied()).expect(free);
                self.swap(to, at_from, at_to);
                at_from
            }
        };
        let edge = self.edges.len();
        self.edges.push(Edge { from, to, colour });
        self.paint(edge, colour);
    }

    /// Frees `colour` at a destination. It is swapped with `other`, which is free there, along the
    /// chain of edges that begins there. The chain enters sources by `colour`, so it never enters a
    /// source where `colour` is free.
    fn swap(&mut self, destination: usize, colour: usize, other: usize) {
        self.chain.clear();
        let (mut at_source, mut rack, mut wanted) = (false, destination, colour);
        loop {
            let side = if at_source { &self.up } else { &self.down };
            let Some(edge) = side.edge(rack, wanted) else { break };
            self.chain.push(edge);
            rack = if at_source { self.edges[edge].to } else { self.edges[edge].from };
            at_source = !at_source;
            wanted = colour + other - wanted;
        }
        for at in 0..self.chain.len() {
            let Edge { from, to, colour: old } = self.edges[self.chain[at]];
            self.up.set(from, old, NONE);
            self.down.set(to, old, NONE);
        }
        for at in 0..self.chain.len() {
            let edge = self.chain[at];
            let new = colour + other - self.edges[edge].colour;
            self.paint(edge, new);
        }
    }

    fn paint(&mut self, edge: usize, colour: usize) {
        let Edge { from, to, .. } = self.edges[edge];
        self.edges[edge].colour = colour;
        self.up.set(from, colour, edge as u16);
        self.down.set(to, colour, edge as u16);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use ethermem_units::Ps;

    fn paths(rack_nodes: u16, spines: u16, nodes: u16) -> Paths {
        let (propagation, balancing, link) = (Ps::ZERO, None, None);
        let clos = LeafSpine { rack_nodes, spines, propagation, balancing, link };
        Paths::new(&clos, nodes)
    }

    /// Number of a timeslot's packets on each link, leaf to spine and spine to leaf.
    fn links(
        rack_nodes: u16,
        joined: &[(u16, u16)],
        spines: &[u8],
    ) -> [BTreeMap<(u16, u8), u16>; 2] {
        let mut links = [BTreeMap::new(), BTreeMap::new()];
        for (&(source, destination), &spine) in joined.iter().zip(spines) {
            let (from, to) = (source / rack_nodes, destination / rack_nodes);
            if from != to {
                *links[0].entry((from, spine)).or_default() += 1;
                *links[1].entry((to, spine)).or_default() += 1;
            }
        }
        links
    }

    proptest! {
        /// Any matching, on racks of one node to more than a word of colours.
        #[test]
        fn no_two_packets_of_a_timeslot_take_the_same_share_of_a_link(
            (share, spines, racks) in (1..=20u16, 1..=4u16, 2..=6u16),
            timeslot in 0..14usize,
            draws in prop::collection::vec((any::<u16>(), any::<u16>()), 0..600),
        ) {
            let (rack_nodes, nodes) = (share * spines, share * spines * racks - share / 2);
            let mut taken = [vec![false; nodes.into()], vec![false; nodes.into()]];
            let mut joined = Vec::new();
            for (source, destination) in draws {
                let (source, destination) = (source % nodes, destination % nodes);
                let [from, to] = &mut taken;
                let (from, to) = (&mut from[source as usize], &mut to[destination as usize]);
                if source != destination && !*from && !*to {
                    (*from, *to) = (true, true);
                    joined.push((source, destination));
                }
            }
            let (mut paths, mut chosen) = (paths(rack_nodes, spines, nodes), vec![7]);
            paths.assign(timeslot, joined.iter().copied(), &mut chosen);
            prop_assert_eq!(chosen.len(), joined.len());
            prop_assert!(chosen.iter().all(|&spine| u16::from(spine) < spines));
            for side in links(rack_nodes, &joined, &chosen) {
                prop_assert!(side.values().all(|&packets| packets <= share), "{:?}", side);
            }
        }
    }

    #[test]
    fn few_packets_of_a_rack_take_different_spines() {
        let (mut paths, mut spines) = (paths(16, 4, 144), Vec::new());
        let joined = [(0, 16), (1, 32), (2, 3), (4, 48), (5, 64)];
        paths.assign(1, joined.into_iter(), &mut spines);
        assert_eq!(spines, [1, 2, 0, 3, 0]);
    }
}
