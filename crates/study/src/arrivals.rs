//! Arrival times of accesses: those of the trace, or drawn from it for each pair of blades.

use ethermem_trace::AccessKind;
use ethermem_units::Ps;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::cluster::{Blades, below};
use crate::machine::{Machine, Sample, mix};

/// How accesses of a trace become arrivals in every embedded cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// For each pair of a compute and a memory blade, sizes and gaps are drawn independently from
    /// those in the trace, as the study does (section 4.2). Bursts across pairs are lost.
    Drawn,
    /// Arrivals follow the trace from a random instant on, different per machine, and wrap around
    /// at its end.
    AsTraced,
}

/// Accesses of a pair of blades in its machine's trace.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    /// Cumulative gaps behind each access. The last gap extends to the first access of the next
    /// round, so they sum to the machine's duration.
    gap_ends: Vec<u64>,
    accesses: Vec<(u32, AccessKind, bool)>,
}

/// An access of a stream, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Ps,
    pub(crate) memory: u16,
    pub(crate) bytes: u32,
    pub(crate) kind: AccessKind,
    pub(crate) prefetched: bool,
}

/// Source of the streams for one machine, shared by all clusters.
pub(crate) enum Source<'m> {
    Drawn(Vec<Pair>),
    AsTraced { machine: &'m Machine, memories: Vec<u16> },
}

/// Endless arrivals of one machine in one cluster.
pub(crate) enum Stream<'s> {
    Pair {
        pair: &'s Pair,
        memory: u16,
        next: Ps,
        rng: Xoshiro256PlusPlus,
    },
    Traced {
        machine: &'s Machine,
        memories: &'s [u16],
        next: usize,
        /// Time from the start of the run to the end of this round of the trace.
        round: Ps,
    },
}

impl Arrivals {
    /// Name on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Arrivals::Drawn => "drawn",
            Arrivals::AsTraced => "as-traced",
        }
    }

    /// Source of the streams for machine `index`.
    pub(crate) fn source(
        self,
        machine: &Machine,
        blades: Blades,
        seed: u64,
        index: u16,
    ) -> Source<'_> {
        let memory = |block| blades.memory_of(seed, index, block);
        let memories = machine.accesses.iter().map(|access| memory(access.block));
        match self {
            Arrivals::AsTraced => Source::AsTraced { machine, memories: memories.collect() },
            Arrivals::Drawn => {
                let mut pairs: Vec<Vec<usize>> = vec![Vec::new(); blades.machines().into()];
                for (at, memory) in memories.enumerate() {
                    pairs[usize::from(memory)].push(at);
                }
                Source::Drawn(pairs.iter().map(|pair| Pair::of(machine, pair)).collect())
            }
        }
    }
}

impl Source<'_> {
    /// The streams in one cluster; `seed` is specific to the machine there.
    pub(crate) fn streams(&self, seed: u64) -> Vec<Stream<'_>> {
        match self {
            Source::Drawn(pairs) => {
                let stream = |(memory, pair): (usize, _)| {
                    let rng = Xoshiro256PlusPlus::seed_from_u64(mix(seed ^ memory as u64));
                    Stream::of_pair(pair, memory as u16, rng)
                };
                let used = pairs.iter().enumerate().filter(|(_, pair)| !pair.accesses.is_empty());
                used.map(stream).collect()
            }
            Source::AsTraced { machine, memories } => {
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
                vec![Stream::of_trace(machine, memories, &mut rng)]
            }
        }
    }
}

impl Pair {
    /// The accesses of `machine` at these indices of its trace.
    fn of(machine: &Machine, places: &[usize]) -> Pair {
        let accesses = &machine.accesses;
        let taken = |&place: &usize| {
            let Sample { bytes, kind, prefetched, .. } = accesses[place];
            (bytes, kind, prefetched)
        };
        let Some(&first) = places.first() else {
            return Pair { gap_ends: Vec::new(), accesses: Vec::new() };
        };
        let start = accesses[first].at;
        let mut gap_ends: Vec<u64> =
            places[1..].iter().map(|&place| (accesses[place].at - start).0).collect();
        gap_ends.push(machine.duration.0);
        Pair { gap_ends, accesses: places.iter().map(taken).collect() }
    }

    fn gap(&self, index: usize) -> u64 {
        let start = if index == 0 { 0 } else { self.gap_ends[index - 1] };
        self.gap_ends[index] - start
    }
}

impl<'s> Stream<'s> {
    /// A pair in its steady state: the start of the run falls into a gap with a probability
    /// proportional to the gap's length, uniformly within it.
    fn of_pair(pair: &'s Pair, memory: u16, mut rng: Xoshiro256PlusPlus) -> Stream<'s> {
        let duration = pair.gap_ends[pair.gap_ends.len() - 1];
        let instant = below(rng.next_u64(), duration);
        let gap = pair.gap_ends.partition_point(|&end| end <= instant);
        let next = Ps(pair.gap_ends[gap] - instant);
        Stream::Pair { pair, memory, next, rng }
    }

    /// The trace from any instant on.
    fn of_trace(
        machine: &'s Machine,
        memories: &'s [u16],
        rng: &mut Xoshiro256PlusPlus,
    ) -> Stream<'s> {
        let start = Ps(below(rng.next_u64(), machine.duration.0));
        let next = machine.accesses.partition_point(|access| access.at < start);
        Stream::Traced { machine, memories, next, round: machine.duration - start }
    }

    /// Time of the next arrival.
    pub(crate) fn next_at(&self) -> Ps {
        match self {
            Stream::Pair { next, .. } => *next,
            Stream::Traced { machine, next, round, .. } => match machine.accesses.get(*next) {
                Some(access) => access.at + *round - machine.duration,
                None => machine.accesses[0].at + *round,
            },
        }
    }

    /// Takes the next access, and advances the stream.
    pub(crate) fn take(&mut self) -> Arrival {
        let at = self.next_at();
        match self {
            Stream::Pair { pair, memory, next, rng } => {
                let count = pair.accesses.len() as u64;
                let (bytes, kind, prefetched) =
                    pair.accesses[below(rng.next_u64(), count) as usize];
                *next = at + Ps(pair.gap(below(rng.next_u64(), count) as usize));
                Arrival { at, memory: *memory, bytes, kind, prefetched }
            }
            Stream::Traced { machine, memories, next, round } => {
                if *next == machine.accesses.len() {
                    *next = 0;
                    *round += machine.duration;
                }
                let Sample { bytes, kind, prefetched, .. } = machine.accesses[*next];
                let memory = memories[*next];
                *next += 1;
                Arrival { at, memory, bytes, kind, prefetched }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(times: &[u64], duration: u64) -> Machine {
        let sample = |(index, &at): (usize, &u64)| Sample {
            at: Ps(at),
            block: index as u64,
            bytes: 1 + index as u32,
            kind: AccessKind::ALL[index % 2],
            prefetched: index % 4 == 0,
        };
        let accesses = times.iter().enumerate().map(sample).collect();
        Machine { accesses, duration: Ps(duration), unrecorded: 0 }
    }

    fn source(arrivals: Arrivals, machine: &Machine, blades: u16) -> Source<'_> {
        arrivals.source(machine, Blades::of(blades).expect("thirds"), 1, 0)
    }

    #[test]
    fn a_trace_is_replayed_around_its_end_from_any_instant() {
        let machine = machine(&[10, 10, 60], 100);
        for seed in 0..50 {
            let source = source(Arrivals::AsTraced, &machine, 3);
            let mut streams = source.streams(seed);
            assert_eq!(streams.len(), 1);
            let taken: Vec<Arrival> = (0..9).map(|_| streams[0].take()).collect();
            assert!(taken[0].at < Ps(100), "{seed}");
            for (one, next) in taken.iter().zip(&taken[1..]) {
                // Each access has the successor and the gap that it has in the trace.
                let expected = match one.bytes {
                    1 => (2, 0),
                    2 => (3, 50),
                    _ => (1, 50),
                };
                assert_eq!((next.bytes, (next.at - one.at).0), expected, "{seed}");
                assert_eq!(one.kind, AccessKind::ALL[(one.bytes as usize - 1) % 2]);
                assert_eq!(one.prefetched, one.bytes == 1);
            }
        }
    }

    #[test]
    fn draws_have_the_rate_and_the_sizes_of_their_pair() {
        // A burst of 999 and a pause a hundred times as long: a start always within the burst would
        // give a far too high rate.
        let times: Vec<u64> = (0..1_000).map(|index| 10 * index).collect();
        let machine = machine(&times, 1_000_000);
        let source = source(Arrivals::Drawn, &machine, 9);
        let (mut arrivals, mut large) = (0_u64, 0_u64);
        for seed in 0..300 {
            for mut stream in source.streams(seed) {
                let mut last = Ps::ZERO;
                while stream.next_at() < Ps(1_000_000) {
                    let arrival = stream.take();
                    assert!(arrival.at >= last && arrival.memory < 3);
                    last = arrival.at;
                    arrivals += 1;
                    large += u64::from(arrival.bytes > 500);
                }
            }
        }
        let expected = 300.0 * 1_000.0;
        // The bursts of a stream vary as a Poisson process of mean 1: 900 of them, 5 deviations.
        let slack = 5.0 / 900_f64.sqrt();
        let share = arrivals as f64 / expected;
        assert!((share - 1.0).abs() < slack, "{share}");
        assert!((large as f64 / arrivals as f64 - 0.5).abs() < 0.02, "{large} of {arrivals}");
    }

    #[test]
    fn a_single_access_comes_once_a_round() {
        let machine = machine(&[7], 100);
        let source = source(Arrivals::Drawn, &machine, 3);
        let mut streams = source.streams(1);
        let first = streams[0].take();
        assert!(first.at <= Ps(100));
        assert_eq!(streams[0].take().at - first.at, Ps(100));
    }
}
