//! Lines on their way to the memory node, until the node has acknowledged them.

use std::collections::BTreeSet;

use ethermem_cxl::cache::Victim;
use ethermem_pool::{Address, Error, ProcessId, Segment, Segments};
use ethermem_wire::cxl::{ByteMask, LineData};
use rustc_hash::FxHashMap;

use super::regions::{Lines, Regions};

/// Most lines on their way at once; an access that would add one more waits.
const LINES_MAX: usize = 1024;

/// Dirty bytes of a line.
#[derive(Clone, Debug)]
struct Bytes {
    mask: ByteMask,
    data: LineData,
    /// Position in the order in which bytes left the cache.
    number: u64,
}

#[derive(Clone, Debug)]
struct Line {
    process: ProcessId,
    bytes: Bytes,
    /// Newer bytes of the line, which left the cache meanwhile.
    next: Option<Bytes>,
    /// The last write had no answer. The bytes stay here until a later write is acknowledged.
    failed: Option<Error>,
}

/// The lines on their way. Each has at most one write in flight, so that writes of one line cannot
/// pass each other.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    lines: FxHashMap<u64, Line>,
    /// Numbers of bytes that are in flight, or wait behind those.
    open: BTreeSet<u64>,
    newest: u64,
    failed: usize,
}

impl Leaving {
    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= LINES_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// True if nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed > 0
    }

    pub(super) fn holds(&self, line: u64) -> bool {
        !self.lines.is_empty() && self.lines.contains_key(&line)
    }

    pub(super) fn holds_any(&self, ranges: &[Lines]) -> bool {
        let within = |line: u64| ranges.iter().any(|&(from, to)| (from..=to).contains(&line));
        self.lines.keys().any(|&line| within(line))
    }

    /// Number of the bytes that left last.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// True if any bytes up to this number are in flight.
    pub(super) fn is_open(&self, until: u64) -> bool {
        self.open.first().is_some_and(|&first| first <= until)
    }

    /// Adds what left the cache, and says whether its write may begin now.
    pub(super) fn add(&mut self, victim: &Victim, process: ProcessId) -> bool {
        let Victim { line, mask, data } = victim;
        match self.lines.get_mut(&line.number()) {
            None => {
                let bytes = self.number(*mask, *data);
                let line = line.number();
                self.lines.insert(line, Line { process, bytes, next: None, failed: None });
                true
            }
            Some(Line { bytes, failed: Some(_), .. }) | Some(Line { next: Some(bytes), .. }) => {
                mask.merge(data, &mut bytes.data);
                bytes.mask.0 |= mask.0;
                false
            }
            Some(_) => {
                let next = self.number(*mask, *data);
                self.lines.get_mut(&line.number()).expect("it is here").next = Some(next);
                false
            }
        }
    }

    fn number(&mut self, mask: ByteMask, data: LineData) -> Bytes {
        self.newest += 1;
        self.open.insert(self.newest);
        Bytes { mask, data, number: self.newest }
    }

    /// The node has acknowledged a line. Returns whether newer bytes of it must be written now.
    pub(super) fn acknowledged(&mut self, line: u64) -> bool {
        let Some(held) = self.lines.get_mut(&line) else { return false };
        self.open.remove(&held.bytes.number);
        match held.next.take() {
            Some(next) => {
                held.bytes = next;
                true
            }
            None => {
                self.lines.remove(&line);
                false
            }
        }
    }

    /// Keeps the bytes of a line whose write had no answer.
    pub(super) fn unanswered(&mut self, line: u64, error: &Error) {
        let Some(held) = self.lines.get_mut(&line) else { return };
        self.open.remove(&held.bytes.number);
        if let Some(next) = held.next.take() {
            self.open.remove(&next.number);
            next.mask.merge(&next.data, &mut held.bytes.data);
            held.bytes.mask.0 |= next.mask.0;
        }
        held.failed = Some(error.clone());
        self.failed += 1;
    }

    /// Drops a line, whose bytes cannot be written.
    pub(super) fn drop_line(&mut self, line: u64) {
        let Some(held) = self.lines.remove(&line) else { return };
        self.open.remove(&held.bytes.number);
        if let Some(next) = held.next {
            self.open.remove(&next.number);
        }
        self.failed -= usize::from(held.failed.is_some());
    }

    /// Drops what waits for another try and belongs to no region any more.
    pub(super) fn purge(&mut self, regions: &Regions) {
        if self.failed > 0 {
            let is_kept = |number: u64, line: &Line| {
                line.failed.is_none() || regions.at_line(number).is_some()
            };
            self.lines.retain(|&number, line| is_kept(number, line));
            self.failed = self.lines.values().filter(|line| line.failed.is_some()).count();
        }
    }

    /// The lines whose last write had no answer; they are to be written again now.
    pub(super) fn retry(&mut self) -> Vec<u64> {
        if self.failed == 0 {
            return Vec::new();
        }
        self.failed = 0;
        let failed = self.lines.iter_mut().filter(|(_, line)| line.failed.is_some());
        let mut again = Vec::new();
        for (&number, line) in failed {
            line.failed = None;
            self.newest += 1;
            line.bytes.number = self.newest;
            self.open.insert(self.newest);
            again.push(number);
        }
        again.sort_unstable();
        again
    }

    /// The error of a line of the process whose last write had no answer.
    pub(super) fn error_of(&self, process: ProcessId) -> Option<Error> {
        let of = self.lines.values().filter(|line| line.process == process);
        of.filter_map(|line| line.failed.clone()).next()
    }

    /// A process with a line whose last write had no answer.
    pub(super) fn failed_process(&self) -> Option<(ProcessId, Error)> {
        let failed = |line: &Line| Some((line.process, line.failed.clone()?));
        self.lines.values().find_map(failed)
    }

    /// The write of adjacent lines of one region: where, and the bytes. `None` if the region is
    /// gone.
    pub(super) fn write(&self, lines: &[u64], regions: &Regions) -> Option<(Segments, Vec<u8>)> {
        let (mut segments, mut data) = (Segments::new(), Vec::new());
        for &number in lines {
            let (_, address) = regions.at_line(number)?;
            let Bytes { mask, data: from, .. } = &self.lines.get(&number)?.bytes;
            for (at, bytes) in runs(*mask) {
                data.extend_from_slice(&from[at..][..bytes]);
                let (address, bytes) = (Address(address + at as u64), bytes as u64);
                match segments.last_mut() {
                    Some(last) if last.address.0 + last.bytes == address.0 => last.bytes += bytes,
                    _ => segments.push(Segment { address, bytes }),
                }
            }
        }
        Some((segments, data))
    }
}

/// The runs of bytes of a mask, each by its offset and length.
fn runs(mask: ByteMask) -> impl Iterator<Item = (usize, usize)> {
    let mut left = mask.0;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let from = left.trailing_zeros();
        let bytes = (left >> from).trailing_ones();
        left &= (u64::MAX >> (64 - bytes) << from) ^ u64::MAX;
        Some((from as usize, bytes as usize))
    })
}

#[cfg(test)]
mod tests {
    use ethermem_pool::Permissions;
    use ethermem_wire::cxl::LineAddress;

    use super::*;

    const ONE: ProcessId = ProcessId(1);

    fn victim(line: u64, mask: u64, byte: u8) -> Victim {
        let line = LineAddress::new(line).unwrap();
        Victim { line, mask: ByteMask(mask), data: [byte; 64] }
    }

    #[test]
    fn a_mask_is_its_runs() {
        let runs_of = |mask| runs(ByteMask(mask)).collect::<Vec<_>>();
        assert_eq!(runs_of(u64::MAX), [(0, 64)]);
        assert_eq!(runs_of(0), []);
        assert_eq!(runs_of(1 << 63 | 0b110), [(1, 2), (63, 1)]);
        assert_eq!(runs_of(u64::MAX << 1), [(1, 63)]);
    }

    #[test]
    fn newer_bytes_wait_for_the_write_in_flight_and_a_failure_keeps_both() {
        let mut regions = Regions::default();
        regions.add(ONE, Address(4096), 4096, Permissions::READ_WRITE);
        let mut leaving = Leaving::default();
        assert!(leaving.add(&victim(2, 0b11, 1), ONE));
        assert!(!leaving.add(&victim(2, 0b110, 2), ONE) && !leaving.add(&victim(2, 8, 3), ONE));
        let written = |leaving: &Leaving| leaving.write(&[2], &regions).unwrap();
        let at = Address(4096 + 128);
        let (segments, data) = written(&leaving);
        assert_eq!(
            (&segments[..], &data[..]),
            (&[Segment { address: at, bytes: 2 }][..], &[1, 1][..])
        );
        assert!(leaving.acknowledged(2) && leaving.holds(2) && leaving.is_open(2));
        assert_eq!(written(&leaving).1, [2, 2, 3]);
        assert!(!leaving.add(&victim(2, 1, 9), ONE));
        leaving.unanswered(2, &Error::Lost);
        assert!(leaving.is_idle() && leaving.has_failed() && leaving.holds_any(&[(0, 2)]));
        assert_eq!(leaving.error_of(ONE), Some(Error::Lost));
        assert!(!leaving.add(&victim(2, 2, 8), ONE), "it waits for the next try");
        assert_eq!(leaving.retry(), [2]);
        assert_eq!((written(&leaving).1, leaving.error_of(ONE)), (vec![9, 8, 2, 3], None));
        assert!(!leaving.acknowledged(2) && !leaving.holds(2) && leaving.is_idle());
    }
}
