//! The caches against a naive model: lists of lines with the times of their use, searched whole.

use ethermem_lines::{Geometry, Hierarchy, LEVELS, LINE_BYTES, Levels, Traffic, TrafficKind};
use proptest::prelude::*;

/// A line in a level of the naive model.
#[derive(Clone, Copy)]
struct Line {
    number: u64,
    used: u64,
    is_dirty: bool,
}

struct Naive {
    sizes: [Geometry; LEVELS],
    levels: [Vec<Line>; LEVELS],
    time: u64,
    traffic: Vec<(u64, TrafficKind)>,
}

impl Naive {
    fn new(levels: &Levels) -> Naive {
        let empty = [const { Vec::new() }; LEVELS];
        Naive { sizes: levels.0, levels: empty, time: 0, traffic: Vec::new() }
    }

    fn uses(&mut self, level: usize, number: u64, dirties: bool) -> bool {
        self.time += 1;
        for line in &mut self.levels[level] {
            if line.number == number {
                line.used = self.time;
                line.is_dirty = line.is_dirty || dirties;
                return true;
            }
        }
        false
    }

    fn put(&mut self, level: usize, number: u64, is_dirty: bool) {
        let size = self.sizes[level];
        let sets = size.bytes() / LINE_BYTES / size.ways();
        let of_set = |line: &Line| line.number % sets == number % sets;
        let mut gone = None;
        if self.levels[level].iter().filter(|line| of_set(line)).count() as u64 == size.ways() {
            let oldest =
                self.levels[level].iter().filter(|line| of_set(line)).map(|line| line.used);
            let oldest = oldest.min().expect("the set is full");
            let at = self.levels[level].iter().position(|line| line.used == oldest);
            gone = Some(self.levels[level].remove(at.expect("it was found")));
        }
        self.time += 1;
        self.levels[level].push(Line { number, used: self.time, is_dirty });
        if let Some(line) = gone.filter(|line| line.is_dirty) {
            if level + 1 == LEVELS {
                self.traffic.push((line.number, TrafficKind::WriteBack));
            } else if !self.uses(level + 1, line.number, true) {
                self.put(level + 1, line.number, true);
            }
        }
    }

    fn access(&mut self, number: u64, is_store: bool) {
        if self.uses(0, number, is_store) {
            return;
        }
        let mut has = 1;
        while has < LEVELS && !self.uses(has, number, false) {
            has += 1;
        }
        if has == LEVELS {
            let kind = if is_store { TrafficKind::Store } else { TrafficKind::Load };
            self.traffic.push((number, kind));
        }
        for level in (0..has).rev() {
            self.put(level, number, is_store && level == 0);
        }
    }
}

fn geometry() -> impl Strategy<Value = Geometry> {
    (1_u64..=4, 1_u64..=5)
        .prop_map(|(ways, sets)| Geometry::new(ways * sets * LINE_BYTES, ways).expect("small"))
}

proptest! {
    #[test]
    fn every_access_of_the_levels_is_that_of_the_naive_model(
        levels in [geometry(), geometry(), geometry()],
        accesses in prop::collection::vec((0_u64..4096, 1_u64..80, any::<bool>()), 1..600),
    ) {
        let levels = Levels(levels);
        let (mut ours, mut naive) = (Hierarchy::new(&levels), Naive::new(&levels));
        let mut lines = std::collections::BTreeSet::new();
        for (address, bytes, is_store) in accesses {
            let mut traffic = Vec::new();
            let mut out = |Traffic { line, kind }| traffic.push((line, kind));
            ours.access(address, bytes, is_store, &mut out);
            for line in address / LINE_BYTES..=(address + bytes - 1) / LINE_BYTES {
                naive.access(line, is_store);
                lines.insert(line);
            }
            prop_assert_eq!(&traffic, &naive.traffic);
            naive.traffic.clear();
        }
        let counts = ours.counts();
        let misses = counts.load_misses + counts.store_misses;
        prop_assert_eq!(counts.hits.iter().sum::<u64>() + misses, counts.loads + counts.stores);
        prop_assert_eq!(ours.touched_lines(), lines.len() as u64);
        let mut dirty: Vec<u64> = naive.levels.iter().flatten()
            .filter(|line| line.is_dirty).map(|line| line.number).collect();
        dirty.sort_unstable();
        dirty.dedup();
        prop_assert_eq!(ours.dirty_lines(), dirty.len() as u64);
    }
}
