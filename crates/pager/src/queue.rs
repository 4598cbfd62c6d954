//! The order in which a process's pages leave its memory.
//!
//! The pager does not see which pages a program touches, only which it touches again after they
//! left. A page that returns soon after it left was taken out too early, so it rises by a level;
//! one that returns late falls by one. A page leaves when it is the oldest, where each level makes
//! it younger by as many arrivals as there are pages. So pages that are used often stay although
//! others are read once, and none stays for ever without a fault that shows its use.

use std::collections::VecDeque;

/// Number of levels.
const LEVELS: usize = 8;

/// A page in a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Queued {
    page: u64,
    /// Number of arrivals before it.
    at: u64,
}

/// The pages in a process's memory, by level, each level's oldest in front.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    levels: [VecDeque<Queued>; LEVELS],
    pages: usize,
    arrivals: u64,
    /// Pages that have left.
    departures: u32,
}

impl Queue {
    /// The queue of a fork's child: it has no pages yet, but knows when its parent's pages left.
    pub(crate) fn of_child(&self) -> Queue {
        Queue { departures: self.departures, ..Queue::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.pages
    }

    /// Adds a page as the youngest of its level.
    pub(crate) fn push(&mut self, page: u64, level: u8) {
        let at = self.arrivals;
        self.arrivals += 1;
        self.pages += 1;
        self.levels[usize::from(level).min(LEVELS - 1)].push_back(Queued { page, at });
    }

    /// Removes the page that is to leave next. Of the `keep` latest arrivals one leaves only if all
    /// others have left: an instruction may need several pages at once.
    pub(crate) fn pop(&mut self, keep: usize) -> Option<u64> {
        let (pages, arrivals) = (self.pages as u64, self.arrivals);
        let is_kept = |at: u64| at + keep as u64 >= arrivals;
        let heads = self.levels.iter().enumerate().filter_map(|(level, queue)| {
            let at = queue.front()?.at;
            Some((is_kept(at), at + level as u64 * pages, level))
        });
        let (_, _, level) = heads.min()?;
        self.pages -= 1;
        self.levels[level].pop_front().map(|queued| queued.page)
    }

    /// Records that a page left, and returns the time of that as [`level_after`](Self::level_after)
    /// expects it.
    pub(crate) fn left(&mut self) -> u32 {
        self.departures = self.departures.wrapping_add(1);
        self.departures
    }

    /// The level of a page of `level` that left at `left` and that a thread needs again.
    pub(crate) fn level_after(&self, left: u32, level: u8) -> u8 {
        let since = self.departures.wrapping_sub(left);
        if since as usize <= self.pages {
            (level + 1).min(LEVELS as u8 - 1)
        } else {
            level.saturating_sub(1)
        }
    }

    /// Every page, for tests.
    #[cfg(test)]
    pub(crate) fn pages(&self) -> Vec<u64> {
        self.levels.iter().flatten().map(|queued| queued.page).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};

    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::{LEVELS, Queue};

    const PAGES: usize = 4096;

    fn leave(queue: &mut Queue, keep: usize) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop(keep)).collect()
    }

    #[test]
    fn the_oldest_leaves_first_and_a_level_is_worth_as_many_arrivals_as_there_are_pages() {
        let mut queue = Queue::default();
        for page in 0..4 {
            queue.push(page, 0);
        }
        assert_eq!((queue.len(), queue.pop(0)), (4, Some(0)));
        queue.push(10, 1);
        for page in 4..9 {
            queue.push(page, 0);
        }
        // Nine pages: those of level 0 are older than the one of level 1 up to its nine arrivals.
        assert_eq!(leave(&mut queue, 0), [1, 2, 3, 4, 5, 6, 10, 7, 8]);
        assert_eq!((queue.len(), queue.pop(0)), (0, None));
    }

    #[test]
    fn the_latest_arrivals_leave_last_whatever_their_level() {
        let mut queue = Queue::default();
        for page in 0..6 {
            queue.push(page, 7);
        }
        queue.push(6, 0);
        queue.push(7, 0);
        assert_eq!(leave(&mut queue, 2), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_page_that_returns_soon_rises_and_one_that_returns_late_falls() {
        let mut queue = Queue::default();
        for page in 0..3 {
            queue.push(page, 0);
        }
        let left = queue.left();
        assert_eq!(queue.level_after(left, 0), 1);
        assert_eq!(queue.level_after(left, LEVELS as u8 - 1), LEVELS as u8 - 1);
        for _ in 0..3 {
            queue.left();
        }
        assert_eq!(queue.level_after(left, 3), 4, "three pages left since, as many as there are");
        queue.left();
        assert_eq!((queue.level_after(left, 3), queue.level_after(left, 0)), (2, 0));
        let child = queue.of_child();
        assert_eq!((child.len(), child.departures), (0, 5));
    }

    /// Reads from the store, and pages that came back from standby, over a run.
    fn ours(accesses: &[u64], local: usize) -> (usize, usize) {
        let standby = local / 16;
        let mut queue = Queue::default();
        let mut at: HashMap<u64, (u8, u32, bool)> = HashMap::new();
        let mut waits: VecDeque<u64> = VecDeque::new();
        let (mut reads, mut rescues) = (0, 0);
        for &page in accesses {
            let known = at.get(&page).copied();
            if known.is_some_and(|(_, _, is_there)| is_there) {
                continue;
            }
            let level = known.map_or(0, |(level, left, _)| queue.level_after(left, level));
            match waits.iter().position(|it| *it == page) {
                Some(place) => {
                    waits.remove(place);
                    rescues += 1;
                }
                None => reads += 1,
            }
            if queue.len() >= local - standby
                && let Some(out) = queue.pop(64)
            {
                let left = queue.left();
                if let Some(entry) = at.get_mut(&out) {
                    (entry.1, entry.2) = (left, false);
                }
                waits.push_back(out);
                if waits.len() > standby {
                    waits.pop_front();
                }
            }
            queue.push(page, level);
            at.insert(page, (level, 0, true));
        }
        (reads, rescues)
    }

    /// Misses of a policy that sees every access: least recently used, or CLOCK.
    fn informed(accesses: &[u64], local: usize, is_clock: bool) -> usize {
        let mut order: VecDeque<u64> = VecDeque::new();
        let mut used: HashMap<u64, bool> = HashMap::new();
        let mut misses = 0;
        for &page in accesses {
            if let Some(bit) = used.get_mut(&page) {
                *bit = true;
                if !is_clock && let Some(place) = order.iter().rposition(|it| *it == page) {
                    order.remove(place);
                    order.push_back(page);
                }
                continue;
            }
            misses += 1;
            while order.len() >= local
                && let Some(out) = order.pop_front()
            {
                if is_clock && used.get(&out) == Some(&true) {
                    used.insert(out, false);
                    order.push_back(out);
                } else {
                    used.remove(&out);
                }
            }
            order.push_back(page);
            used.insert(page, false);
        }
        misses
    }

    /// Pages by Zipf's law with exponent 0.99, in an order without locality.
    fn zipf(count: usize, seed: u64) -> Vec<u64> {
        let mut source = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut sums = Vec::with_capacity(PAGES);
        let mut sum = 0.0;
        for rank in 1..=PAGES {
            sum += (rank as f64).powf(-0.99);
            sums.push(sum);
        }
        let mut draw = || {
            let drawn = source.next_u64() as f64 / u64::MAX as f64 * sum;
            sums.partition_point(|it| *it < drawn) as u64
        };
        (0..count).map(|_| draw() * 7919 % PAGES as u64).collect()
    }

    /// The pager lacks the processor's bits for accessed pages. Yet with a quarter local it reads
    /// less than policies that have them, and with half local hardly more.
    #[test]
    fn skewed_accesses_read_about_as_much_as_with_clock_or_lru() {
        for seed in 1..=3 {
            let accesses = zipf(100_000, seed);
            for (local, percent) in [(PAGES / 4, 100), (PAGES / 2, 107)] {
                let (reads, rescues) = ours(&accesses, local);
                let lru = informed(&accesses, local, false);
                let clock = informed(&accesses, local, true);
                let at = format!("seed {seed}, {local} pages local: lru {lru}, clock {clock}");
                assert!(reads * 100 <= lru.min(clock) * percent, "{reads} reads; {at}");
                assert!(rescues * 5 <= reads, "{reads} reads, {rescues} rescues; {at}");
            }
        }
    }

    /// A level is not for ever: another set of pages takes over.
    #[test]
    fn a_new_set_of_pages_takes_over() {
        let local = 1024;
        let set = |from: u64| (0..40u64).flat_map(move |_| from..from + 800);
        let before: Vec<u64> = zipf(200_000, 9);
        let accesses: Vec<u64> = before.iter().copied().chain(set(10_000)).collect();
        let (all, rescues) = ours(&accesses, local);
        let (first, rescued) = ours(&before, local);
        let faults = all + rescues - first - rescued;
        // The pages before were used often, so the new ones have to show that they are used.
        assert!(faults <= 8000, "{faults} faults of 40 rounds over 800 pages");
    }
}
