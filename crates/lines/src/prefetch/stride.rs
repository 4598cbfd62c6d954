//! Rows of equally distant lines within a page. A trace of misses has no addresses of instructions,
//! so the page takes the place of the instruction in the table of Fu, Patel and Janssens (MICRO
//! 1992).

use super::within;
use crate::PAGE_LINES;

/// Number of pages that are followed; the least recently used makes room.
const PAGES: usize = 64;
/// Number of equal distances in succession after which the next line is prefetched.
const CONFIRMATIONS: u8 = 2;

#[derive(Clone, Copy, Debug)]
struct Row {
    page: u64,
    last: u64,
    stride: i64,
    confirmed: u8,
}

/// The rows of the pages that were used last, the latest first.
#[derive(Clone, Debug)]
pub(super) struct Strides(Vec<Row>);

impl Default for Strides {
    fn default() -> Strides {
        Strides(Vec::with_capacity(PAGES))
    }
}

impl Strides {
    pub(super) fn accessed(&mut self, line: u64) -> Option<u64> {
        let page = line / PAGE_LINES;
        let Some(at) = self.0.iter().position(|row| row.page == page) else {
            if self.0.len() == PAGES {
                self.0.pop();
            }
            self.0.insert(0, Row { page, last: line, stride: 0, confirmed: 0 });
            return None;
        };
        self.0[..=at].rotate_right(1);
        let row = &mut self.0[0];
        // Both are of one page.
        let stride = line.wrapping_sub(row.last).cast_signed();
        row.last = line;
        if stride == 0 {
            return None;
        }
        row.confirmed =
            if stride == row.stride { (row.confirmed + 1).min(CONFIRMATIONS) } else { 1 };
        row.stride = stride;
        if row.confirmed < CONFIRMATIONS { None } else { within(line, stride) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_followed_once_its_distance_was_seen_twice() {
        let mut strides = Strides::default();
        let mut of = |line| strides.accessed(line);
        assert_eq!([of(0), of(3), of(6), of(9)], [None, None, Some(9), Some(12)]);
        // Another page's row does not disturb it.
        assert_eq!([of(6403), of(6402), of(6401)], [None, None, Some(6400)]);
        assert_eq!(of(12), Some(15));
        assert_eq!(of(12), None, "the same line again says nothing");
        assert_eq!([of(14), of(16)], [None, Some(18)], "a new distance");
        assert_eq!([of(62), of(61), of(63)], [None, None, None]);
    }

    #[test]
    fn the_page_that_was_used_least_recently_is_forgotten() {
        let mut strides = Strides::default();
        assert_eq!([strides.accessed(0), strides.accessed(1)], [None, None]);
        for page in 1..=PAGES as u64 {
            assert_eq!(strides.accessed(page * PAGE_LINES), None);
        }
        assert_eq!(strides.0.len(), PAGES);
        assert_eq!([strides.accessed(2), strides.accessed(3)], [None, None]);
        assert_eq!(strides.accessed(4), Some(5));
    }
}
