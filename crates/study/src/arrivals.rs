//! Arrival times of accesses: those of the trace, or drawn from it for each pair of blades.

use std::collections::BTreeMap;

use ethermem_trace::FlowKind;
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

/// The blades of an access, by the machines to which they belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The compute blade that issues it.
    pub(crate) compute: u16,
    /// The memory, disk or compute blade that it addresses, according to its kind.
    pub(crate) target: u16,
}

/// Accesses of a pair of blades in its machine's trace.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    /// Cumulative gaps behind each access. The last gap extends to the first access of the next
    /// round, so they sum to the machine's duration.
    gap_ends: Vec<u64>,
    accesses: Vec<(u32, FlowKind, bool)>,
    ends: Ends,
    /// Number of the pair, from which its draws follow.
    number: u64,
}

/// An access of a stream, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Ps,
    pub(crate) ends: Ends,
    pub(crate) bytes: u32,
    pub(crate) kind: FlowKind,
    pub(crate) prefetched: bool,
}

/// Source of the streams for one machine, shared by all clusters.
pub(crate) enum Source<'m> {
    Drawn(Vec<Pair>),
    AsTraced { machine: &'m Machine, ends: Vec<Ends> },
}

/// Endless arrivals of one machine in one cluster.
pub(crate) enum Stream<'s> {
    Pair {
        pair: &'s Pair,
        next: Ps,
        rng: Xoshiro256PlusPlus,
    },
    Traced {
        machine: &'s Machine,
        ends: &'s [Ends],
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

    /// Source of the streams for machine `index`, which is one of a group of `traced` machines.
    pub(crate) fn source(
        self,
        machine: &Machine,
        blades: Blades,
        seed: u64,
        (index, traced): (u16, u16),
    ) -> Source<'_> {
        let peer = |of: u16| index - index % traced + of;
        let ends = |access: &Sample| {
            let spread = || blades.holder_of(seed, index, access.block);
            let target = match access.kind {
                FlowKind::Read | FlowKind::WriteBack => spread(),
                FlowKind::DiskRead | FlowKind::DiskWrite if machine.own_disks => index,
                FlowKind::DiskRead | FlowKind::DiskWrite => spread(),
                FlowKind::Network => peer(access.block as u16),
            };
            let compute = access.issuer.map_or(index, |issuer| peer(issuer.into()));
            Ends { compute, target }
        };
        match self {
            Arrivals::AsTraced => {
                let ends = machine.accesses.iter().map(ends).collect();
                Source::AsTraced { machine, ends }
            }
            Arrivals::Drawn => {
                let mut pairs: BTreeMap<u64, (Ends, Vec<usize>)> = BTreeMap::new();
                for (at, access) in machine.accesses.iter().enumerate() {
                    let ends = ends(access);
                    let number = number_of(access, ends, blades);
                    pairs.entry(number).or_insert((ends, Vec::new())).1.push(at);
                }
                let pair = |(&number, (ends, places)): (&u64, &(Ends, Vec<usize>))| {
                    Pair::of(machine, places, *ends, number)
                };
                Source::Drawn(pairs.iter().map(pair).collect())
            }
        }
    }
}

/// Number of the pair of blades of an access. The pairs of a compute blade and its memory blades
/// come first.
fn number_of(access: &Sample, ends: Ends, blades: Blades) -> u64 {
    let class = match access.kind {
        FlowKind::Read | FlowKind::WriteBack => 0,
        FlowKind::DiskRead | FlowKind::DiskWrite => 1,
        FlowKind::Network => 2,
    };
    let issuer = access.issuer.map_or(0, |issuer| 1 + u64::from(issuer));
    (3 * issuer + class) * u64::from(blades.machines()) + u64::from(ends.target)
}

impl Source<'_> {
    /// The streams in one cluster; `seed` is specific to the machine there.
    pub(crate) fn streams(&self, seed: u64) -> Vec<Stream<'_>> {
        match self {
            Source::Drawn(pairs) => {
                let rng = |pair: &Pair| Xoshiro256PlusPlus::seed_from_u64(mix(seed ^ pair.number));
                pairs.iter().map(|pair| Stream::of_pair(pair, rng(pair))).collect()
            }
            // A machine may only receive.
            Source::AsTraced { machine, .. } if machine.accesses.is_empty() => Vec::new(),
            Source::AsTraced { machine, ends } => {
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
                vec![Stream::of_trace(machine, ends, &mut rng)]
            }
        }
    }
}

impl Pair {
    /// The accesses of `machine` at these indices of its trace, at least one.
    fn of(machine: &Machine, places: &[usize], ends: Ends, number: u64) -> Pair {
        let accesses = &machine.accesses;
        let taken = |&place: &usize| {
            let Sample { bytes, kind, prefetched, .. } = accesses[place];
            (bytes, kind, prefetched)
        };
        let start = accesses[places[0]].at;
        let mut gap_ends: Vec<u64> =
            places[1..].iter().map(|&place| (accesses[place].at - start).0).collect();
        gap_ends.push(machine.duration.0);
        Pair { gap_ends, accesses: places.iter().map(taken).collect(), ends, number }
    }

    fn gap(&self, index: usize) -> u64 {
        let start = if index == 0 { 0 } else { self.gap_ends[index - 1] };
        self.gap_ends[index] - start
    }
}

impl<'s> Stream<'s> {
    /// A pair in its steady state: the start of the run falls into a gap with a probability
    /// proportional to the gap's length, uniformly within it.
    fn of_pair(pair: &'s Pair, mut rng: Xoshiro256PlusPlus) -> Stream<'s> {
        let duration = pair.gap_ends[pair.gap_ends.len() - 1];
        let instant = below(rng.next_u64(), duration);
        let gap = pair.gap_ends.partition_point(|&end| end <= instant);
        let next = Ps(pair.gap_ends[gap] - instant);
        Stream::Pair { pair, next, rng }
    }

    /// The trace from any instant on.
    fn of_trace(
        machine: &'s Machine,
        ends: &'s [Ends],
        rng: &mut Xoshiro256PlusPlus,
    ) -> Stream<'s> {
        let start = Ps(below(rng.next_u64(), machine.duration.0));
        let next = machine.accesses.partition_point(|access| access.at < start);
        Stream::Traced { machine, ends, next, round: machine.duration - start }
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
            Stream::Pair { pair, next, rng } => {
                let count = pair.accesses.len() as u64;
                let (bytes, kind, prefetched) =
                    pair.accesses[below(rng.next_u64(), count) as usize];
                *next = at + Ps(pair.gap(below(rng.next_u64(), count) as usize));
                Arrival { at, ends: pair.ends, bytes, kind, prefetched }
            }
            Stream::Traced { machine, ends, next, round } => {
                if *next == machine.accesses.len() {
                    *next = 0;
                    *round += machine.duration;
                }
                let Sample { bytes, kind, prefetched, .. } = machine.accesses[*next];
                let ends = ends[*next];
                *next += 1;
                Arrival { at, ends, bytes, kind, prefetched }
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
            kind: FlowKind::ALL[index % 2],
            prefetched: index % 4 == 0,
            issuer: None,
        };
        let accesses = times.iter().enumerate().map(sample).collect();
        Machine { accesses, duration: Ps(duration), unrecorded: 0, own_disks: false }
    }

    fn source(arrivals: Arrivals, machine: &Machine, blades: u16) -> Source<'_> {
        arrivals.source(machine, Blades::of(blades).expect("thirds"), 1, (0, 1))
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
                assert_eq!(one.kind, FlowKind::ALL[(one.bytes as usize - 1) % 2]);
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
                    assert!(arrival.at >= last && arrival.ends.target < 3);
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
