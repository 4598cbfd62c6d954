//! How long remote memory takes, where that is not what it is but what is asked for.

use std::time::{Duration, Instant};

/// The network between a program and its remote memory.
#[derive(Clone, Debug, Default)]
pub enum Delay {
    /// None is added.
    #[default]
    None,
    /// Latency, and the time of the bytes at a rate; what is asked for at once shares the rate.
    Fixed {
        /// From the fault to the first byte.
        latency: Duration,
        /// Bits of a second; none for infinitely many.
        bits_per_second: Option<f64>,
    },
    /// Completion times that were measured or simulated, drawn at random, each as likely.
    Drawn {
        /// The times, of which there is at least one.
        times: Vec<Duration>,
        /// Repeats the run.
        seed: u64,
    },
}

/// A [`Delay`] at work.
#[derive(Debug)]
pub(crate) struct Link {
    delay: Delay,
    /// When the bytes that were asked for so far have passed.
    busy_until: Option<Instant>,
    random: rand_xoshiro::Xoshiro256PlusPlus,
}

impl Link {
    pub(crate) fn new(delay: Delay) -> Link {
        use rand_xoshiro::rand_core::SeedableRng;
        let seed = if let Delay::Drawn { seed, .. } = delay { seed } else { 0 };
        let random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
        Link { delay, busy_until: None, random }
    }

    /// When `bytes` that are asked for at `now` are there; none when no delay is wanted.
    pub(crate) fn due(&mut self, now: Instant, bytes: u64) -> Option<Instant> {
        use rand_xoshiro::rand_core::Rng;
        match &self.delay {
            Delay::None => None,
            Delay::Fixed { latency, .. } => {
                let latency = *latency;
                Some(self.transfer(now, bytes) + latency)
            }
            Delay::Drawn { times, .. } => {
                let index = (u128::from(self.random.next_u64()) * times.len() as u128) >> 64;
                Some(now + times[index as usize])
            }
        }
    }

    /// Occupies the link for `bytes`; when the last has passed.
    pub(crate) fn transfer(&mut self, now: Instant, bytes: u64) -> Instant {
        let Delay::Fixed { bits_per_second: Some(rate), .. } = self.delay else { return now };
        let start = self.busy_until.map_or(now, |until| until.max(now));
        let end = start + Duration::from_secs_f64(bytes as f64 * 8.0 / rate);
        self.busy_until = Some(end);
        end
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Delay, Link};

    #[test]
    fn latencies_overlap_and_bytes_queue() {
        let latency = Duration::from_micros(5);
        let mut link = Link::new(Delay::Fixed { latency, bits_per_second: Some(32.768e9) });
        let now = Instant::now();
        let page = Duration::from_micros(1);
        assert_eq!(link.due(now, 4096), Some(now + latency + page));
        assert_eq!(link.due(now, 4096), Some(now + latency + 2 * page), "behind the first");
        let later = now + Duration::from_millis(1);
        assert_eq!(link.due(later, 4096), Some(later + latency + page), "the link is free again");
        assert_eq!(Link::new(Delay::None).due(now, 4096), None);
    }

    #[test]
    fn drawn_times_are_those_given_and_each_comes() {
        let times = vec![Duration::from_micros(1), Duration::from_micros(9)];
        let mut link = Link::new(Delay::Drawn { times: times.clone(), seed: 7 });
        let now = Instant::now();
        let drawn: Vec<Duration> =
            (0..64).filter_map(|_| link.due(now, 4096)).map(|due| due - now).collect();
        assert!(drawn.iter().all(|time| times.contains(time)));
        assert!(times.iter().all(|time| drawn.contains(time)));
    }
}
