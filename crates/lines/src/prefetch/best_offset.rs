//! Michaud's best-offset prefetcher (HPCA 2016), with the parameters of his Table 1.
//!
//! A table has the lines whose fetch has ended of late, each less the offset that was used. An
//! offset scores when the line at that distance before an access is in the table: a prefetch with
//! it would have been in time. The offset with the best score of a phase is used in the next.

use super::within;

/// Entries of the table of recent requests.
const RECENT: usize = 256;
/// A phase ends when an offset has this score.
const SCORE_MAX: u8 = 31;
/// A phase ends after this number of rounds.
const ROUNDS_MAX: u8 = 100;
/// With this score or less, nothing is prefetched in the next phase.
const BAD_SCORE: u8 = 1;
/// Offsets up to the end of a page whose only prime factors are 2, 3 and 5.
const OFFSETS: [u8; 26] = [
    1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 18, 20, 24, 25, 27, 30, 32, 36, 40, 45, 48, 50, 54, 60,
];

#[derive(Clone, Debug)]
pub(super) struct BestOffset {
    recent: [u64; RECENT],
    scores: [u8; OFFSETS.len()],
    /// The offset that the next access tests.
    tested: usize,
    round: u8,
    /// The offset in use; `None` if nothing is prefetched.
    used: Option<u8>,
}

impl Default for BestOffset {
    fn default() -> BestOffset {
        let scores = [0; OFFSETS.len()];
        // The paper's prefetcher begins as one of the next line.
        BestOffset { recent: [u64::MAX; RECENT], scores, tested: 0, round: 0, used: Some(1) }
    }
}

impl BestOffset {
    /// An access that missed, or the first use of a prefetched line.
    pub(super) fn accessed(&mut self, line: u64) -> Option<u64> {
        self.learn(line);
        within(line, i64::from(self.used?))
    }

    pub(super) fn arrived(&mut self, line: u64, prefetched: bool) {
        let base = match (prefetched, self.used) {
            (true, Some(used)) => within(line, -i64::from(used)),
            // While nothing is prefetched, the lines of accesses keep the table up to date.
            (false, None) => Some(line),
            _ => None,
        };
        if let Some(base) = base {
            self.recent[slot(base)] = base;
        }
    }

    fn learn(&mut self, line: u64) {
        let offset = OFFSETS[self.tested];
        let base = within(line, -i64::from(offset));
        let score = &mut self.scores[self.tested];
        if base.is_some_and(|base| self.recent[slot(base)] == base) {
            *score += 1;
        }
        let is_won = *score >= SCORE_MAX;
        self.tested = (self.tested + 1) % OFFSETS.len();
        if self.tested == 0 {
            self.round += 1;
        }
        if is_won || self.round == ROUNDS_MAX {
            self.end_phase();
        }
    }

    fn end_phase(&mut self) {
        // Of equal scores the smallest offset counts.
        let best = (0..OFFSETS.len()).rev().max_by_key(|&at| self.scores[at]).unwrap_or(0);
        self.used = (self.scores[best] > BAD_SCORE).then_some(OFFSETS[best]);
        self.scores = [0; OFFSETS.len()];
        (self.tested, self.round) = (0, 0);
    }
}

/// The place of a line in the table, by the hash of the paper's section 4.4.
fn slot(line: u64) -> usize {
    ((line ^ (line >> 8)) % RECENT as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE_LINES;

    #[test]
    fn the_offsets_are_those_of_the_paper_within_a_page() {
        let is_smooth = |mut number: u64| {
            for prime in [2, 3, 5] {
                while number.is_multiple_of(prime) {
                    number /= prime;
                }
            }
            number == 1
        };
        let smooth: Vec<u64> = (1..PAGE_LINES).filter(|&number| is_smooth(number)).collect();
        assert_eq!(OFFSETS.map(u64::from).to_vec(), smooth);
    }

    /// Accesses one line after the other; a fetch takes as long as `delay` accesses.
    fn offset_after(delay: usize, stride: u64) -> Option<u8> {
        let mut best = BestOffset::default();
        let mut under_way = std::collections::VecDeque::new();
        for step in 0..200_000_u64 {
            let line = step * stride;
            let next = best.accessed(line);
            under_way.push_back((line, next));
            if under_way.len() > delay {
                let (line, next) = under_way.pop_front().expect("one is under way");
                best.arrived(line, false);
                next.into_iter().for_each(|next| best.arrived(next, true));
            }
        }
        best.used
    }

    #[test]
    fn an_offset_that_is_in_time_is_learned() {
        // A row of lines, each fetch as long as five accesses: a smaller offset is too late.
        let used = offset_after(5, 1).expect("a row is prefetched");
        assert!((6..32).contains(&used), "{used}");
        // Of every third line, multiples of three alone are of use.
        let used = offset_after(2, 3).expect("a row is prefetched");
        assert!(used.is_multiple_of(3) && used >= 6, "{used}");
    }

    #[test]
    fn without_a_pattern_nothing_is_prefetched() {
        let mut best = BestOffset::default();
        let mut line = 1_u64;
        for _ in 0..100_000 {
            line = line.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            best.accessed(line >> 20);
            best.arrived(line >> 20, false);
        }
        assert_eq!(best.used, None);
    }
}
