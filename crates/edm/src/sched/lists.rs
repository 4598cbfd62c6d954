//! Lists of candidates at the ends of ports. A destination lists the best message of each source; a
//! source lists the destinations that it has a message for. The best candidate of each end is its
//! head.

/// The value that stands for no position in a list, or no port.
pub(super) const NOWHERE: u16 = u16::MAX;

/// The best message of one source in a destination's queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Candidate {
    pub(super) priority: u64,
    /// The candidate's pair, in the queues' slab.
    pub(super) pair: u32,
    pub(super) source: u16,
}

/// A destination for which a source has a candidate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peer {
    pub(super) pair: u32,
    pub(super) destination: u16,
}

/// A port's best candidate; its peer is the port at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) priority: u64,
    pub(super) peer: u16,
}

/// The head of a port without a candidate: it ranks behind every other.
pub(super) const NO_HEAD: Head = Head { priority: u64::MAX, peer: NOWHERE };

/// A cache line of a list.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line<T, const N: usize>([T; N]);

/// A list and a head for each end. A list is at most as long as the number of ends.
///
/// The first lines of all ends lie together, then the second lines. Lists are short, so only a few
/// pages are in use, whatever was reserved.
#[derive(Debug)]
pub(super) struct Lists<T, const N: usize> {
    lines: Vec<Line<T, N>>,
    ends: Vec<End>,
}

#[derive(Clone, Copy, Debug)]
struct End {
    head: Head,
    len: u16,
}

impl<T: Copy + Default, const N: usize> Lists<T, N> {
    pub(super) fn new(ends: u16) -> Lists<T, N> {
        let n = usize::from(ends);
        Lists {
            lines: Vec::with_capacity(n * n.div_ceil(N)),
            ends: vec![End { head: NO_HEAD, len: 0 }; n],
        }
    }

    #[inline]
    pub(super) fn head(&self, end: u16) -> Head {
        self.ends[usize::from(end)].head
    }

    #[inline]
    pub(super) fn set_head(&mut self, end: u16, head: Head) {
        self.ends[usize::from(end)].head = head;
    }

    #[inline]
    pub(super) fn len(&self, end: u16) -> u16 {
        self.ends[usize::from(end)].len
    }

    #[inline]
    pub(super) fn get(&self, end: u16, place: u16) -> &T {
        let (line, within) = (usize::from(place) / N, usize::from(place) % N);
        &self.lines[line * self.ends.len() + usize::from(end)].0[within]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, end: u16, place: u16) -> &mut T {
        let (line, within) = (usize::from(place) / N, usize::from(place) % N);
        &mut self.lines[line * self.ends.len() + usize::from(end)].0[within]
    }

    /// Appends an item; returns its place.
    #[inline]
    pub(super) fn push(&mut self, end: u16, item: T) -> u16 {
        let place = self.ends[usize::from(end)].len;
        self.ends[usize::from(end)].len += 1;
        let lines = (usize::from(place) / N + 1) * self.ends.len();
        if self.lines.len() < lines {
            // The vector grows within its reservation, so nothing is allocated.
            self.lines.resize(lines, Line([T::default(); N]));
        }
        *self.get_mut(end, place) = item;
        place
    }

    /// Removes an item; returns the item that moved into its place, if one did.
    #[inline]
    pub(super) fn swap_remove(&mut self, end: u16, place: u16) -> Option<T> {
        let last = self.ends[usize::from(end)].len - 1;
        self.ends[usize::from(end)].len = last;
        let moved = *self.get_mut(end, last);
        *self.get_mut(end, place) = moved;
        (place != last).then_some(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_items_across_lines_and_apart_from_each_other() {
        let mut lists: Lists<u32, 4> = Lists::new(11);
        for item in 0..11 {
            assert_eq!(lists.push(3, item), item as u16);
            assert_eq!(lists.push(10, 100 + item), item as u16);
        }
        assert_eq!(lists.swap_remove(3, 1), Some(10));
        assert_eq!(lists.swap_remove(3, 9), None);
        let items =
            |end| (0..lists.len(end)).map(|place| *lists.get(end, place)).collect::<Vec<u32>>();
        assert_eq!(items(3), [0, 10, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(items(10), (100..111).collect::<Vec<u32>>());
        assert_eq!([lists.len(0), lists.len(3)], [0, 9]);
    }

    #[test]
    fn nothing_grows_beyond_what_was_reserved() {
        let mut lists: Lists<u32, 4> = Lists::new(6);
        let reserved = lists.lines.capacity();
        for end in 0..6 {
            for item in 0..6 {
                lists.push(end, item);
            }
        }
        assert_eq!(lists.lines.capacity(), reserved);
    }
}
