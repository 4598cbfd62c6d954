//! Prefetchers: from the lines that are asked for, the lines to bring before they are.
//!
//! A prefetcher sees every fetch that reaches the cache at the compute node. It never leaves the
//! page of the line that it saw: the next page of virtual memory may be anywhere, or nowhere.

mod best_offset;
mod stride;

use best_offset::BestOffset;
use stride::Strides;

use crate::PAGE_LINES;

/// Kind of a prefetcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchKind {
    /// No line is prefetched.
    None,
    /// A miss, or the first use of a prefetched line, brings the next line.
    NextLine,
    /// Accesses to a page that are equally far apart bring the next line of their row.
    Stride,
    /// The offset that would have been in time most often is learned, and added to every line.
    BestOffset,
}

impl PrefetchKind {
    /// Every kind.
    pub const ALL: [PrefetchKind; 4] = [
        PrefetchKind::None,
        PrefetchKind::NextLine,
        PrefetchKind::Stride,
        PrefetchKind::BestOffset,
    ];

    /// Name in commands and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PrefetchKind::None => "none",
            PrefetchKind::NextLine => "next-line",
            PrefetchKind::Stride => "stride",
            PrefetchKind::BestOffset => "best-offset",
        }
    }
}

/// How the cache had a line that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was there, and was used before.
    Hit,
    /// It was there, or on its way, because it was prefetched; this is its first use.
    Prefetched,
    /// It was not there.
    Miss,
}

/// A prefetcher and its state.
#[derive(Clone, Debug)]
pub struct Prefetcher(State);

#[derive(Clone, Debug)]
enum State {
    None,
    NextLine,
    Stride(Strides),
    BestOffset(Box<BestOffset>),
}

impl Prefetcher {
    /// A prefetcher that has seen nothing.
    #[must_use]
    pub fn new(kind: PrefetchKind) -> Prefetcher {
        Prefetcher(match kind {
            PrefetchKind::None => State::None,
            PrefetchKind::NextLine => State::NextLine,
            PrefetchKind::Stride => State::Stride(Strides::default()),
            PrefetchKind::BestOffset => State::BestOffset(Box::default()),
        })
    }

    /// The line to prefetch after an access to `line`.
    pub fn accessed(&mut self, line: u64, found: Found) -> Option<u64> {
        match &mut self.0 {
            State::None => None,
            State::NextLine if found == Found::Hit => None,
            State::NextLine => within(line, 1),
            State::Stride(strides) => strides.accessed(line),
            State::BestOffset(_) if found == Found::Hit => None,
            State::BestOffset(best) => best.accessed(line),
        }
    }

    /// A line has arrived that was fetched for an access, or because it was `prefetched`.
    pub fn arrived(&mut self, line: u64, prefetched: bool) {
        if let State::BestOffset(best) = &mut self.0 {
            best.arrived(line, prefetched);
        }
    }
}

/// The line at this distance, if it is of the same page.
fn within(line: u64, offset: i64) -> Option<u64> {
    let other = line.checked_add_signed(offset)?;
    (other / PAGE_LINES == line / PAGE_LINES).then_some(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_line_follows_a_miss_and_the_first_use_of_a_prefetched_line() {
        let mut next = Prefetcher::new(PrefetchKind::NextLine);
        assert_eq!(next.accessed(7, Found::Miss), Some(8));
        assert_eq!(next.accessed(8, Found::Prefetched), Some(9));
        assert_eq!(next.accessed(8, Found::Hit), None);
        assert_eq!(next.accessed(63, Found::Miss), None, "the page ends");
        assert_eq!(Prefetcher::new(PrefetchKind::None).accessed(7, Found::Miss), None);
    }

    #[test]
    fn no_prefetcher_leaves_its_page() {
        for kind in PrefetchKind::ALL {
            let mut prefetcher = Prefetcher::new(kind);
            let mut line = 12_345_u64;
            for step in 0..20_000_u64 {
                // Rows of several strides, with jumps between them.
                line =
                    line.wrapping_add(step % 5).wrapping_mul(if step % 97 == 0 { 31 } else { 1 });
                line %= 1 << 58;
                if let Some(next) = prefetcher.accessed(line, Found::Miss) {
                    assert_eq!(next / PAGE_LINES, line / PAGE_LINES, "{kind:?} of {line}");
                    assert_ne!(next, line);
                    prefetcher.arrived(next, true);
                }
                prefetcher.arrived(line, false);
            }
            for edge in [0, u64::MAX] {
                assert!(prefetcher.accessed(edge, Found::Miss) != Some(edge));
            }
        }
    }
}
