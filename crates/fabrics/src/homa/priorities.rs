//! The priorities for unscheduled data, and the message sizes that each is for (section 3.4).

use super::HomaConfig;

/// Number of buckets of sizes per doubling.
const BUCKETS_PER_DOUBLING: usize = 8;
/// Number of buckets, for sizes up to 2^32 bytes.
const BUCKETS: usize = 32 * BUCKETS_PER_DOUBLING;

/// The recent sizes at one receiver, and the priorities that follow; rank 0 leaves first.
#[derive(Clone, Debug)]
pub(super) struct Priorities {
    ranks: u32,
    /// Number of ranks for unscheduled data, if it is configured.
    unscheduled_given: Option<u32>,
    /// Unscheduled bytes by the size of their message, and all bytes.
    unscheduled: Vec<u64>,
    total_bytes: u64,
    seen: u32,
    next_choice: u32,
    /// Number of messages between two choices, once a receiver has seen as many.
    between: u32,
    /// The first bucket past each unscheduled rank but the last.
    cutoffs: Vec<usize>,
}

fn bucket(bytes: u64) -> usize {
    // Below the first full doubling every size has its own bucket.
    let bytes = bytes.clamp(1, u64::from(u32::MAX)) as usize;
    if bytes < BUCKETS_PER_DOUBLING {
        return bytes;
    }
    let doubling = bytes.ilog2() as usize;
    let within = (bytes >> (doubling - 3)) - BUCKETS_PER_DOUBLING;
    (doubling - 2) * BUCKETS_PER_DOUBLING + within
}

impl Priorities {
    pub(super) fn new(config: &HomaConfig) -> Priorities {
        let mut new = Priorities {
            ranks: config.priorities,
            unscheduled_given: config.unscheduled_priorities,
            unscheduled: vec![0; BUCKETS],
            total_bytes: 0,
            seen: 0,
            next_choice: config.first_choice_messages.min(config.choice_messages),
            between: config.choice_messages,
            cutoffs: Vec::new(),
        };
        new.choose();
        new
    }

    /// Number of ranks, from the first, for unscheduled data.
    pub(super) fn unscheduled_ranks(&self) -> u32 {
        self.cutoffs.len() as u32 + 1
    }

    /// Number of ranks for scheduled data: all others, or the last one if there is only one.
    pub(super) fn scheduled_ranks(&self) -> u32 {
        (self.ranks - self.unscheduled_ranks()).max(1)
    }

    /// The rank of the data that a message of this size sends without a grant.
    pub(super) fn unscheduled(&self, bytes: u64) -> u32 {
        let bucket = bucket(bytes);
        self.cutoffs.iter().take_while(|&&cutoff| bucket >= cutoff).count() as u32
    }

    /// The rank of granted data of the message at this place among `of`. The lowest ranks are used
    /// first, so that a shorter message finds a higher one free.
    pub(super) fn scheduled(&self, place: u32, of: u32) -> u32 {
        let used = of.min(self.scheduled_ranks());
        self.ranks - used + place.min(used - 1)
    }

    /// Counts a message that has begun to arrive.
    pub(super) fn see(&mut self, bytes: u64, unscheduled_bytes: u64) {
        self.unscheduled[bucket(bytes)] += unscheduled_bytes;
        self.total_bytes += bytes;
        self.seen += 1;
        if self.seen < self.next_choice {
            return;
        }
        self.choose();
        if self.next_choice < self.between {
            self.next_choice = (self.next_choice * 2).min(self.between);
            return;
        }
        // Older messages count for half.
        self.seen = 0;
        self.total_bytes /= 2;
        self.unscheduled.iter_mut().for_each(|bytes| *bytes /= 2);
    }

    /// Chooses the cutoffs. The share of ranks for unscheduled data equals its share of all bytes,
    /// and each rank carries an equal part of it. Before any message arrived, all unscheduled data
    /// has the first rank.
    fn choose(&mut self) {
        let bytes: u64 = self.unscheduled.iter().sum();
        let share = bytes as f64 / self.total_bytes.max(1) as f64;
        let most = (self.ranks - 1).max(1);
        let by_share = (share * f64::from(self.ranks)).round() as u32;
        let ranks = self.unscheduled_given.unwrap_or(by_share).clamp(1, most);
        self.cutoffs.clear();
        if bytes == 0 {
            self.cutoffs.resize(ranks as usize - 1, BUCKETS);
            return;
        }
        let mut before = 0;
        for (bucket, carried) in self.unscheduled.iter().enumerate() {
            before += carried;
            while (self.cutoffs.len() as u64) + 1 < ranks.into()
                && before * u64::from(ranks) >= bytes * (self.cutoffs.len() as u64 + 1)
            {
                self.cutoffs.push(bucket + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_grow_with_sizes() {
        for bytes in 1..100_000 {
            let (one, next) = (bucket(bytes), bucket(bytes + 1));
            assert!(next == one || next == one + 1, "{bytes} B: {one}, {next}");
        }
        assert!(bucket(u64::MAX) < BUCKETS);
        assert_eq!(bucket(1_024) - bucket(512), BUCKETS_PER_DOUBLING);
    }

    fn of(priorities: u32, unscheduled_priorities: Option<u32>) -> Priorities {
        let default = HomaConfig::default();
        Priorities::new(&HomaConfig { priorities, unscheduled_priorities, ..default })
    }

    #[test]
    fn every_unscheduled_rank_carries_as_much() {
        let mut priorities = of(8, None);
        let unscheduled = |bytes: u64| bytes.min(16_000);
        let mut carried = [0; 8];
        // Sizes up to 30,000 B are equally likely.
        let sizes = || (0..1_024 * 8).map(|n| 1 + n * 7_919 % 30_000);
        sizes().for_each(|bytes| priorities.see(bytes, unscheduled(bytes)));
        let share = sizes().map(unscheduled).sum::<u64>() as f64 / sizes().sum::<u64>() as f64;
        let ranks = (share * 8.0).round() as usize;
        assert_eq!(priorities.unscheduled_ranks() as usize, ranks);
        for bytes in sizes() {
            carried[priorities.unscheduled(bytes) as usize] += unscheduled(bytes);
        }
        let mean = carried.iter().sum::<u64>() as f64 / ranks as f64;
        for &bytes in &carried[..ranks] {
            // The cutoffs are exact to a bucket, the largest of which has half of a rank's bytes.
            assert!((bytes as f64 / mean - 1.0).abs() < 0.5, "{carried:?}");
        }
        // The shortest messages go first, the longest last.
        assert_eq!(
            (priorities.unscheduled(1), priorities.unscheduled(1 << 30) as usize),
            (0, ranks - 1)
        );
    }

    #[test]
    fn scheduled_messages_take_the_lowest_ranks_first() {
        let priorities = of(8, Some(5));
        let places = |of| (0..of).map(|place| priorities.scheduled(place, of)).collect::<Vec<_>>();
        assert_eq!((places(1), places(2), places(3)), (vec![7], vec![6, 7], vec![5, 6, 7]));
        assert_eq!(places(5), [5, 6, 7, 7, 7]);
        // With a single rank there is no choice.
        let one = of(1, None);
        assert_eq!((one.unscheduled(9), one.scheduled(0, 3), one.scheduled(2, 3)), (0, 0, 0));
    }
}
