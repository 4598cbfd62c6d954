//! Which reads of a machine served a remote machine: OSDI 2016, section 4.1.
//!
//! The study matches "the network traffic between B and A to the disk traffic at A, using a
//! heuristic based on both the timestamps and volume of data transferred", and gives no numbers.
//! The heuristic here has two: a window of time, and a fraction of the volume.

use ethermem_units::Ns;

/// A read of memory or of a disk by a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalRead {
    /// Time at which its data was there.
    pub ready: Ns,
    /// Number of bytes.
    pub bytes: u64,
}

/// Data that a machine sent to another one, in one direction and without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The receiving machine, as traced machines are numbered.
    pub to: u8,
    /// Time of its first packet.
    pub first: Ns,
    /// Time of its last packet.
    pub last: Ns,
    /// Bytes of data, at least one.
    pub bytes: u64,
}

/// When reads and a transfer match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchRule {
    /// Longest time from the end of a read to the start of the transfer.
    pub window: Ns,
    /// Largest difference between the bytes of the reads and of the transfer, as a fraction of the
    /// latter.
    pub volume: f64,
}

/// Reads and transfers that match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// For each read, the machine that it served; `None` is the machine that issued it.
    pub served: Vec<Option<u8>>,
    /// For each transfer, whether reads provided its data.
    pub is_matched: Vec<bool>,
}

/// Matches the reads of one machine with what it sent.
///
/// Transfers choose in the order of their first packets. Eligible for a transfer are reads that no
/// earlier one took, and whose data was there from `window` before its first packet up to its last
/// one. The transfer takes them from the latest back, until they have its bytes; a read that would
/// exceed its bytes by more than `volume` is passed over. If the taken reads then lack more than
/// `volume`, the data came from elsewhere, such as a cache: the transfer takes none.
///
/// # Panics
/// When reads are not in order of `ready`, or transfers not in order of `first`.
#[must_use]
pub fn attribute(reads: &[LocalRead], transfers: &[Transfer], rule: MatchRule) -> Matches {
    assert!(reads.is_sorted_by_key(|read| read.ready), "reads in order of time");
    assert!(transfers.is_sorted_by_key(|sent| sent.first), "transfers in order of time");
    let mut matches =
        Matches { served: vec![None; reads.len()], is_matched: vec![false; transfers.len()] };
    let mut free = Free::new(reads.len());
    let mut taken = Vec::new();
    for (transfer, is_matched) in transfers.iter().zip(&mut matches.is_matched) {
        let earliest = Ns(transfer.first.0.saturating_sub(rule.window.0));
        let start = reads.partition_point(|read| read.ready < earliest);
        let end = reads.partition_point(|read| read.ready <= transfer.last);
        let slack = (transfer.bytes as f64 * rule.volume) as u64;
        let (mut bytes, mut next) = (0, end);
        taken.clear();
        while bytes < transfer.bytes
            && let Some(index) = free.before(next).filter(|&index| index >= start)
        {
            next = index;
            if bytes + reads[index].bytes <= transfer.bytes + slack {
                bytes += reads[index].bytes;
                taken.push(index);
            }
        }
        if !taken.is_empty() && bytes + slack >= transfer.bytes {
            *is_matched = true;
            for &index in &taken {
                matches.served[index] = Some(transfer.to);
                free.take(index);
            }
        }
    }
    matches
}

/// Reads that no transfer took.
struct Free {
    /// For the number of reads up to a place, the number of reads up to the last free one of them
    /// or to one before it.
    up_to: Vec<usize>,
}

impl Free {
    fn new(reads: usize) -> Free {
        Free { up_to: (0..=reads).collect() }
    }

    /// The last free read before `end`.
    fn before(&mut self, end: usize) -> Option<usize> {
        let mut root = end;
        while self.up_to[root] != root {
            // The path is halved, so that a long row of taken reads is passed once.
            self.up_to[root] = self.up_to[self.up_to[root]];
            root = self.up_to[root];
        }
        root.checked_sub(1)
    }

    fn take(&mut self, index: usize) {
        self.up_to[index + 1] = index;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: MatchRule = MatchRule { window: Ns(1_000), volume: 0.25 };

    fn read(ready: u64, bytes: u64) -> LocalRead {
        LocalRead { ready: Ns(ready), bytes }
    }

    fn sent(to: u8, first: u64, last: u64, bytes: u64) -> Transfer {
        Transfer { to, first: Ns(first), last: Ns(last), bytes }
    }

    fn served(reads: &[LocalRead], transfers: &[Transfer]) -> Vec<Option<u8>> {
        attribute(reads, transfers, RULE).served
    }

    #[test]
    fn a_read_and_a_send_of_its_bytes_are_a_remote_read() {
        let matches = attribute(&[read(100, 4096)], &[sent(1, 150, 150, 4096)], RULE);
        assert_eq!(matches, Matches { served: vec![Some(1)], is_matched: vec![true] });
    }

    #[test]
    fn time_decides_to_the_nanosecond() {
        // The window before the first packet is 1,000 ns, and the data must be there at the last.
        let transfer = [sent(1, 2_000, 3_000, 4096)];
        for (ready, is_served) in [(999, false), (1_000, true), (3_000, true), (3_001, false)] {
            let found = served(&[read(ready, 4096)], &transfer);
            assert_eq!(found, [is_served.then_some(1)], "{ready}");
        }
    }

    #[test]
    fn volume_decides_to_the_byte() {
        // A quarter of 4,000 is 1,000.
        for (bytes, is_served) in [(2_999, false), (3_000, true), (5_000, true), (5_001, false)] {
            let found = served(&[read(100, bytes)], &[sent(2, 150, 150, 4_000)]);
            assert_eq!(found, [is_served.then_some(2)], "{bytes}");
        }
    }

    #[test]
    fn many_reads_serve_a_transfer_that_streams() {
        let reads: Vec<LocalRead> = (0..8).map(|index| read(100 * index, 1_000)).collect();
        assert_eq!(served(&reads, &[sent(3, 50, 900, 8_000)]), [Some(3); 8]);
    }

    #[test]
    fn the_latest_reads_are_taken_and_others_stay_local() {
        let reads = [read(100, 4_000), read(200, 4_000), read(300, 4_000)];
        let transfers = [sent(1, 250, 250, 4_000)];
        assert_eq!(served(&reads, &transfers), [None, Some(1), None]);
    }

    #[test]
    fn a_read_serves_one_transfer_and_the_next_takes_another() {
        let reads = [read(100, 4_000), read(200, 4_000)];
        let transfers =
            [sent(1, 250, 250, 4_000), sent(2, 260, 260, 4_000), sent(1, 270, 280, 4_000)];
        let matches = attribute(&reads, &transfers, RULE);
        assert_eq!(matches.served, [Some(2), Some(1)]);
        assert_eq!(matches.is_matched, [true, true, false]);
    }

    #[test]
    fn a_transfer_out_of_a_cache_leaves_its_reads_to_a_later_one() {
        // 10,000 bytes of which 4,000 were read: less than three quarters.
        let reads = [read(100, 4_000)];
        let transfers = [sent(1, 150, 150, 10_000), sent(2, 160, 160, 4_000)];
        let matches = attribute(&reads, &transfers, RULE);
        assert_eq!((matches.served, matches.is_matched), (vec![Some(2)], vec![false, true]));
    }

    #[test]
    fn a_read_that_is_too_large_is_passed_over() {
        let reads = [read(100, 3_900), read(120, 900_000), read(130, 512)];
        assert_eq!(served(&reads, &[sent(1, 150, 150, 4_096)]), [Some(1), None, Some(1)]);
    }

    #[test]
    fn without_reads_or_transfers_nothing_matches() {
        assert_eq!(served(&[], &[sent(1, 150, 150, 4_096)]), []);
        assert_eq!(served(&[read(1, 1)], &[]), [None]);
    }

    proptest::proptest! {
        /// No read serves two transfers, and what a transfer takes is within its window and volume.
        #[test]
        fn matches_keep_the_rule(
            mut times in proptest::collection::vec((0_u64..5_000, 1_u64..3_000), 0..40),
            mut sends in proptest::collection::vec((0_u64..5_000, 0_u64..500, 1_u64..6_000), 0..20),
        ) {
            times.sort_unstable();
            sends.sort_unstable();
            let reads: Vec<LocalRead> = times.iter().map(|&(at, bytes)| read(at, bytes)).collect();
            // Each transfer has a receiver of its own, so that its reads are known.
            let transfers: Vec<Transfer> = (0..)
                .zip(&sends)
                .map(|(to, &(first, length, bytes))| sent(to, first, first + length, bytes))
                .collect();
            let matches = attribute(&reads, &transfers, RULE);
            for (transfer, is_matched) in transfers.iter().zip(&matches.is_matched) {
                let served = Some(transfer.to);
                let all = || reads.iter().zip(&matches.served);
                let own = || all().filter(|(_, to)| **to == served);
                let bytes: u64 = own().map(|(read, _)| read.bytes).sum();
                let slack = transfer.bytes / 4;
                proptest::prop_assert_eq!(*is_matched, bytes > 0);
                if *is_matched {
                    proptest::prop_assert!(bytes.abs_diff(transfer.bytes) <= slack);
                }
                for (read, _) in own() {
                    proptest::prop_assert!(read.ready.0 + 1_000 >= transfer.first.0);
                    proptest::prop_assert!(read.ready <= transfer.last);
                }
            }
        }
    }
}
