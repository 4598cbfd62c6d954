//! The backlog of a fabric over time: the bytes of messages that have arrived and not ended.

use ethermem_units::Ps;

/// Number of time bins. Their width doubles when a run outlasts them.
const BINS: usize = 4_096;
/// Number of equal parts of a run whose growth is compared.
const PARTS: usize = 8;
/// Student's t at 0.95 for one degree of freedom less than there are parts.
const T_95: f64 = 1.894_579;
/// Smallest growth of an overload, as a share of the bytes that arrived.
const GROWTH_MIN: f64 = 0.01;

/// Bytes that arrive and that end, by time.
#[derive(Clone, Debug)]
pub(super) struct Backlog {
    /// Binary logarithm of a bin's picoseconds.
    shift: u32,
    arrived: Vec<u64>,
    ended: Vec<u64>,
    last_arrival: Ps,
}

/// Growth of the backlog over the last three quarters of the arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    /// Growth as a share of the bytes that arrived; below 0 if the backlog shrank.
    pub(super) share: f64,
    /// True if the growth exceeds chance and [`GROWTH_MIN`].
    pub(super) is_certain: bool,
}

impl Backlog {
    pub(super) fn new() -> Backlog {
        Backlog { shift: 10, arrived: vec![0; BINS], ended: vec![0; BINS], last_arrival: Ps::ZERO }
    }

    #[inline]
    pub(super) fn record(&mut self, bytes: u64, arrival: Ps, finished: Ps) {
        self.arrive(bytes, arrival, finished);
        self.ended[(finished.0 >> self.shift) as usize] += bytes;
    }

    /// Records a message that never ends: it stays in the backlog.
    pub(super) fn record_lost(&mut self, bytes: u64, arrival: Ps) {
        self.arrive(bytes, arrival, arrival);
    }

    #[inline]
    fn arrive(&mut self, bytes: u64, arrival: Ps, last: Ps) {
        while last.0 >> self.shift >= BINS as u64 {
            self.halve();
        }
        self.arrived[(arrival.0 >> self.shift) as usize] += bytes;
        self.last_arrival = self.last_arrival.max(arrival);
    }

    #[cold]
    fn halve(&mut self) {
        self.shift += 1;
        for bins in [&mut self.arrived, &mut self.ended] {
            for at in 0..BINS {
                bins[at] = if at < BINS / 2 { bins[2 * at] + bins[2 * at + 1] } else { 0 };
            }
        }
    }

    /// When the last message arrived.
    pub(super) fn last_arrival(&self) -> Ps {
        self.last_arrival
    }

    /// The growth; `None` for a run whose arrivals span no time.
    pub(super) fn growth(&self) -> Option<Growth> {
        let last = (self.last_arrival.0 >> self.shift) as usize;
        if last < 4 * PARTS {
            // The drain takes most of the run, so that the arrivals span few bins.
            let until = |bins: &[u64]| bins[..last].iter().sum::<u64>() as f64;
            let (arrived, ended) = (until(&self.arrived), until(&self.ended));
            let share = 1.0 - ended / arrived;
            return (arrived > 0.0).then_some(Growth { share, is_certain: share > 0.5 });
        }
        let edge = |part: usize| last / 4 + part * (last - last / 4) / PARTS;
        let sum = |bins: &[u64], part: usize| bins[..edge(part)].iter().sum::<u64>() as f64;
        let backlog = |part| sum(&self.arrived, part) - sum(&self.ended, part);
        let bins = |part: usize| (edge(part + 1) - edge(part)) as f64;
        let rates: Vec<f64> =
            (0..PARTS).map(|at| (backlog(at + 1) - backlog(at)) / bins(at)).collect();
        let parts = PARTS as f64;
        let mean = rates.iter().sum::<f64>() / parts;
        let squares: f64 = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum();
        // Growth rates of a steady backlog are negatively correlated, so this overestimates.
        let error = (squares / (parts - 1.0) / parts).sqrt();
        let arrived = sum(&self.arrived, PARTS) - sum(&self.arrived, 0);
        let share = (backlog(PARTS) - backlog(0)) / arrived.max(1.0);
        Some(Growth { share, is_certain: share > GROWTH_MIN && mean > T_95 * error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of 64 B every nanosecond that end in order, one every `service`.
    fn queue(messages: u64, service: Ps) -> Backlog {
        let mut backlog = Backlog::new();
        let mut free = Ps::ZERO;
        for index in 0..messages {
            let arrival = Ps(1_000 * index);
            free = free.max(arrival) + service;
            backlog.record(64, arrival, free);
        }
        backlog
    }

    #[test]
    fn a_server_that_is_too_slow_keeps_what_it_cannot_serve() {
        let growth = queue(100_000, Ps(1_250)).growth().expect("a long run");
        assert!(growth.is_certain);
        // Of 1.25 it serves 1.
        assert!((growth.share - 0.2).abs() < 0.001, "{growth:?}");
    }

    #[test]
    fn a_server_that_keeps_up_has_no_growth() {
        let growth = queue(100_000, Ps(900)).growth().expect("a long run");
        assert!(!growth.is_certain && growth.share.abs() < 0.001, "{growth:?}");
    }

    #[test]
    fn what_is_lost_never_ends() {
        let mut backlog = Backlog::new();
        for index in 0..100_000 {
            let arrival = Ps(1_000 * index);
            match index % 5 {
                0 => backlog.record_lost(64, arrival),
                _ => backlog.record(64, arrival, arrival + Ps(900)),
            }
        }
        let growth = backlog.growth().expect("a long run");
        assert!(growth.is_certain && (growth.share - 0.2).abs() < 0.001, "{growth:?}");
    }

    #[test]
    fn a_burst_has_no_growth_to_speak_of() {
        let mut backlog = Backlog::new();
        (0..100).for_each(|index| backlog.record(64, Ps(index), Ps(1_000_000 * (index + 1))));
        assert_eq!(backlog.growth(), None);
    }

    #[test]
    fn a_drain_far_longer_than_the_arrivals_is_growth() {
        let growth = queue(10_000, Ps(300_000)).growth().expect("arrivals take time");
        assert!(growth.is_certain && growth.share > 0.99, "{growth:?}");
    }

    #[test]
    fn bins_are_merged_and_lose_nothing() {
        let backlog = queue(1_000_000, Ps(900));
        let sums = [&backlog.arrived, &backlog.ended].map(|bins| bins.iter().sum::<u64>());
        assert_eq!(sums, [64_000_000; 2]);
        assert_eq!(backlog.last_arrival(), Ps(999_999_000));
    }
}
