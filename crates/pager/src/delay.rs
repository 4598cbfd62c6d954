//! Emulated delay of remote memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::protocol::PAGE_BYTES;

/// Model of the network between a program and its remote memory.
#[derive(Clone, Debug, Default)]
pub enum Delay {
    /// No delay is added.
    #[default]
    None,
    /// A latency plus serialization at a rate; concurrent requests share the rate.
    Fixed {
        /// Time from the fault to the first byte.
        latency: Duration,
        /// Rate in bits per second; `None` is infinite.
        bits_per_second: Option<f64>,
    },
    /// Measured or simulated completion times, drawn at random with equal probability.
    Drawn {
        /// Times of pages that a thread waits for; at least one.
        times: Vec<Duration>,
        /// Times of prefetched runs, by a run's length in bytes. A run draws from the nearest
        /// length. If the map is empty, each of its pages draws from `times`.
        runs: BTreeMap<u64, Vec<Duration>>,
        /// Seed of the draws, so that a run is repeatable.
        seed: u64,
    },
}

/// Times at which the pages of a fault arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// Arrival of the page that a thread waits for.
    pub(crate) page: Instant,
    /// Arrival of the prefetched run.
    pub(crate) run: Instant,
}

/// A link that applies a [`Delay`].
#[derive(Debug)]
pub(crate) struct Link {
    delay: Delay,
    /// Time when the bytes requested so far have passed the link.
    busy_until: Option<Instant>,
    random: rand_xoshiro::Xoshiro256PlusPlus,
}

impl Link {
    pub(crate) fn new(delay: Delay) -> Link {
        let seed = if let Delay::Drawn { seed, .. } = delay { seed } else { 0 };
        let random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
        Link { delay, busy_until: None, random }
    }

    /// Arrival of a page and of the `run` pages behind it, requested at `now`; `None` without a
    /// delay.
    pub(crate) fn due(&mut self, now: Instant, run: usize) -> Option<Due> {
        let Link { delay, random, .. } = self;
        match delay {
            Delay::None => None,
            Delay::Fixed { latency, .. } => {
                let latency = *latency;
                let all = self.transfer(now, ((1 + run) * PAGE_BYTES) as u64) + latency;
                Some(Due { page: all, run: all })
            }
            Delay::Drawn { times, runs, .. } => {
                let page = now + draw(times, random);
                let of_size = nearest(runs, (run * PAGE_BYTES) as u64);
                let longest = match of_size {
                    _ if run == 0 => None,
                    Some(times) => Some(draw(times, random)),
                    None => (0..run).map(|_| draw(times, random)).max(),
                };
                Some(Due { page, run: longest.map_or(page, |time| now + time) })
            }
        }
    }

    /// Occupies the link for `bytes` bytes, and returns the time when the last has passed.
    pub(crate) fn transfer(&mut self, now: Instant, bytes: u64) -> Instant {
        let Delay::Fixed { bits_per_second: Some(rate), .. } = self.delay else { return now };
        let start = self.busy_until.map_or(now, |until| until.max(now));
        let end = start + Duration::from_secs_f64(bytes as f64 * 8.0 / rate);
        self.busy_until = Some(end);
        end
    }
}

fn draw(times: &[Duration], random: &mut impl Rng) -> Duration {
    let index = (u128::from(random.next_u64()) * times.len() as u128) >> 64;
    times[index as usize]
}

/// The times of the length nearest to `bytes`; of two equally near lengths, the larger.
fn nearest(runs: &BTreeMap<u64, Vec<Duration>>, bytes: u64) -> Option<&[Duration]> {
    let (below, above) = (runs.range(..bytes).next_back(), runs.range(bytes..).next());
    let distance = |(size, _): &(&u64, &Vec<Duration>)| size.abs_diff(bytes);
    let found = above.into_iter().chain(below).min_by_key(distance);
    found.map(|(_, times)| times.as_slice())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Delay, Due, Link};

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn latencies_overlap_and_bytes_queue() {
        let latency = us(5);
        let mut link = Link::new(Delay::Fixed { latency, bits_per_second: Some(32.768e9) });
        let now = Instant::now();
        let page = us(1);
        let both = |due| Some(Due { page: due, run: due });
        assert_eq!(link.due(now, 0), both(now + latency + page));
        assert_eq!(link.due(now, 0), both(now + latency + 2 * page), "behind the first");
        assert_eq!(link.due(now, 3), both(now + latency + 6 * page), "one transfer brings all");
        let later = now + Duration::from_millis(1);
        assert_eq!(link.due(later, 0), both(later + latency + page), "the link is free again");
        assert_eq!(Link::new(Delay::None).due(now, 0), None);
    }

    /// Delays of 64 faults with `run` pages behind them: of the pages, and of the runs.
    fn drawn(runs: &[(u64, u64)], run: usize) -> [Vec<Duration>; 2] {
        let runs = runs.iter().map(|(bytes, time)| (*bytes, vec![us(*time)])).collect();
        let mut link = Link::new(Delay::Drawn { times: vec![us(1), us(9)], runs, seed: 7 });
        let now = Instant::now();
        let due: Vec<Due> = (0..64).filter_map(|_| link.due(now, run)).collect();
        assert_eq!(due.len(), 64);
        [due.iter().map(|it| it.page - now).collect(), due.iter().map(|it| it.run - now).collect()]
    }

    #[test]
    fn drawn_times_are_those_given_and_each_comes() {
        for run in [0, 3] {
            let [pages, _] = drawn(&[(3 * 4096, 50)], run);
            assert!(pages.iter().all(|time| [us(1), us(9)].contains(time)));
            assert!(pages.contains(&us(1)) && pages.contains(&us(9)));
        }
    }

    #[test]
    fn a_run_takes_a_time_of_the_size_nearest_to_its_own() {
        let known = [(3 * 4096, 50), (31 * 4096, 400)];
        for (run, time) in [(1, 50), (3, 50), (16, 50), (17, 400), (31, 400), (63, 400)] {
            let [_, runs] = drawn(&known, run);
            assert!(runs.iter().all(|it| *it == us(time)), "{run} pages");
        }
        let [pages, runs] = drawn(&known, 0);
        assert_eq!(pages, runs, "nothing is brought along");
    }

    #[test]
    fn where_no_run_is_known_the_last_of_its_pages_counts() {
        let [_, runs] = drawn(&[], 31);
        assert!(runs.iter().all(|time| *time == us(9)), "of 31 one takes the longer time");
    }
}
