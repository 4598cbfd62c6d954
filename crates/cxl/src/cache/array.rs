//! The lines of a cache: tags, states, masks of bytes, data, and the order of use.

use ethermem_wire::cxl::{ByteMask, LINE_BYTES, LineAddress, LineData};

/// State of a line: MESI without S, as no two compute nodes share a line (section III.B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineState {
    /// M: some bytes are newer than the memory node's.
    Modified,
    /// E: all valid bytes are the memory node's, and no other cache has them.
    Exclusive,
    /// I: the way is free.
    Invalid,
}

/// Where a line is: its set times the ways, plus its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place(pub(crate) u32);

/// A fetch is in flight: the line stays where it is until the fetch has ended.
const FETCHING: u8 = 1;
/// The place is in the list of places that a flush looks at.
const LISTED: u8 = 2;

/// All ways of all sets, each field in an array of its own. All bits zero is the empty cache, so
/// the system hands out its memory page by page as lines come: building a large cache takes no
/// time. The tags of a set are adjacent, so that a lookup touches few of the processor's lines.
#[derive(Clone, Debug)]
pub(super) struct Array {
    /// The line's number plus one; 0 if the way is free.
    tags: Box<[u64]>,
    valid: Box<[u64]>,
    /// A part of `valid`.
    dirty: Box<[u64]>,
    flags: Box<[u8]>,
    /// Rank of a way in its set's order of use, 0 for the most recently used, exclusive-or its
    /// index in the set.
    ages: Box<[u8]>,
    /// The lines' bytes, one line after the other.
    data: Box<[u8]>,
    ways_a_set: u32,
    sets: u32,
}

impl Array {
    pub(super) fn new(sets: u32, ways_a_set: u32) -> Array {
        let places = sets as usize * ways_a_set as usize;
        let words = || vec![0_u64; places].into_boxed_slice();
        let octets = || vec![0_u8; places].into_boxed_slice();
        Array {
            tags: words(),
            valid: words(),
            dirty: words(),
            flags: octets(),
            ages: octets(),
            // The library zeroes long arrays by itself, and bytes by the system.
            data: vec![0_u8; places * LINE_BYTES].into_boxed_slice(),
            ways_a_set,
            sets,
        }
    }

    pub(super) fn places(&self) -> u32 {
        self.tags.len() as u32
    }

    #[inline]
    pub(super) fn valid(&self, place: Place) -> ByteMask {
        ByteMask(self.valid[place.0 as usize])
    }

    #[inline]
    pub(super) fn dirty(&self, place: Place) -> ByteMask {
        ByteMask(self.dirty[place.0 as usize])
    }

    #[inline]
    pub(super) fn data(&self, place: Place) -> &LineData {
        &self.data.as_chunks().0[place.0 as usize]
    }

    #[inline]
    pub(super) fn data_mut(&mut self, place: Place) -> &mut LineData {
        &mut self.data.as_chunks_mut().0[place.0 as usize]
    }

    /// Marks bytes as written.
    #[inline]
    pub(super) fn mark(&mut self, place: Place, mask: ByteMask) {
        self.valid[place.0 as usize] |= mask.0;
        self.dirty[place.0 as usize] |= mask.0;
    }

    /// Takes fetched bytes where none are valid.
    pub(super) fn fill(&mut self, place: Place, fetched: &LineData) {
        let at = place.0 as usize;
        ByteMask(!self.valid[at]).merge(fetched, self.data_mut(place));
        self.valid[at] = ByteMask::FULL.0;
    }

    /// The dirty bytes of a place, which is clean then.
    pub(super) fn take_dirty(&mut self, place: Place) -> ByteMask {
        ByteMask(core::mem::take(&mut self.dirty[place.0 as usize]))
    }

    pub(super) fn is_fetching(&self, place: Place) -> bool {
        self.flags[place.0 as usize] & FETCHING != 0
    }

    pub(super) fn set_fetching(&mut self, place: Place, is_fetching: bool) {
        self.set_flag(place, FETCHING, is_fetching);
    }

    /// Lists a place, and says whether it was listed before.
    #[inline]
    pub(super) fn list(&mut self, place: Place) -> bool {
        let was = self.flags[place.0 as usize] & LISTED != 0;
        self.set_flag(place, LISTED, true);
        was
    }

    pub(super) fn unlist(&mut self, place: Place) {
        self.set_flag(place, LISTED, false);
    }

    #[inline]
    fn set_flag(&mut self, place: Place, flag: u8, is_set: bool) {
        let flags = &mut self.flags[place.0 as usize];
        *flags = if is_set { *flags | flag } else { *flags & !flag };
    }

    #[inline]
    pub(super) fn line(&self, place: Place) -> Option<LineAddress> {
        let number = self.tags[place.0 as usize].checked_sub(1)?;
        LineAddress::new(number).ok()
    }

    pub(super) fn state(&self, place: Place) -> LineState {
        match (self.line(place), self.dirty(place).is_empty()) {
            (None, _) => LineState::Invalid,
            (Some(_), true) => LineState::Exclusive,
            (Some(_), false) => LineState::Modified,
        }
    }

    /// The place of a line, if the cache has it.
    #[inline]
    pub(super) fn find(&self, line: LineAddress) -> Option<Place> {
        let first = self.first_of(line);
        let set = &self.tags[first as usize..(first + self.ways_a_set) as usize];
        let way = set.iter().position(|&tag| tag == line.number() + 1)?;
        Some(Place(first + way as u32))
    }

    /// A place for a new line: a free way, or the least recently used one that has no fetch in
    /// flight; `None` if all have.
    pub(super) fn room_for(&self, line: LineAddress) -> Option<Place> {
        let first = self.first_of(line);
        let all = || (first..first + self.ways_a_set).map(Place);
        let free = all().find(|&place| self.tags[place.0 as usize] == 0);
        free.or_else(|| {
            let idle = all().filter(|&place| !self.is_fetching(place));
            idle.max_by_key(|&place| self.age(place))
        })
    }

    /// Puts a line without a valid byte into a place.
    pub(super) fn place_line(&mut self, place: Place, line: LineAddress) {
        self.free(place);
        self.tags[place.0 as usize] = line.number() + 1;
    }

    pub(super) fn free(&mut self, place: Place) {
        let at = place.0 as usize;
        (self.tags[at], self.valid[at], self.dirty[at]) = (0, 0, 0);
    }

    /// Makes a place the most recently used of its set.
    #[inline]
    pub(super) fn touch(&mut self, place: Place) {
        let (way, age) = (place.0 % self.ways_a_set, self.age(place));
        // A line that is used again and again is in front already.
        if age == 0 {
            return;
        }
        let first = (place.0 - way) as usize;
        for (other, stored) in self.ages[first..][..self.ways_a_set as usize].iter_mut().enumerate()
        {
            let other = other as u8;
            if *stored ^ other < age {
                *stored = ((*stored ^ other) + 1) ^ other;
            }
        }
        self.ages[place.0 as usize] = way as u8;
    }

    #[inline]
    fn age(&self, place: Place) -> u8 {
        self.ages[place.0 as usize] ^ (place.0 % self.ways_a_set) as u8
    }

    /// The first place of a line's set.
    #[inline]
    fn first_of(&self, line: LineAddress) -> u32 {
        (line.number() & u64::from(self.sets - 1)) as u32 * self.ways_a_set
    }

    /// What holds after every operation; for tests.
    pub(super) fn check(&self) {
        for set in 0..self.sets {
            let first = set * self.ways_a_set;
            let mut ages = 0_u64;
            for place in (first..first + self.ways_a_set).map(Place) {
                let (valid, dirty) = (self.valid(place), self.dirty(place));
                assert_eq!(dirty.0 & !valid.0, 0, "a dirty byte is not valid: {place:?}");
                ages |= 1 << self.age(place);
                let Some(line) = self.line(place) else {
                    assert!(valid.is_empty() && !self.is_fetching(place), "a free way: {place:?}");
                    continue;
                };
                let listed = self.flags[place.0 as usize] & LISTED != 0;
                assert!(listed || dirty.is_empty(), "a flush would miss {place:?}");
                assert_eq!(line.number() & u64::from(self.sets - 1), u64::from(set));
                assert_eq!(self.find(line), Some(place), "{line:?} is in two ways");
            }
            assert_eq!(ages, (1 << self.ways_a_set) - 1, "the order of use of set {set}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64) -> LineAddress {
        LineAddress::new(number).unwrap()
    }

    #[test]
    fn the_least_recently_used_way_goes_and_one_with_a_fetch_stays() {
        // With three ways an index in the set exclusive-or a rank is no rank.
        for ways in [3, 4] {
            let mut array = Array::new(2, ways);
            array.check();
            for number in (0..u64::from(ways)).map(|way| 2 * way) {
                let place = array.room_for(line(number)).unwrap();
                array.place_line(place, line(number));
                array.touch(place);
                array.check();
            }
            array.touch(array.find(line(0)).unwrap());
            array.check();
            let oldest = |array: &Array| {
                array.room_for(line(8)).and_then(|place| array.line(place)).map(LineAddress::number)
            };
            let order = [2, 4, 6].into_iter().take(ways as usize - 1).chain([0]);
            for number in order {
                assert_eq!(oldest(&array), Some(number), "{ways} ways");
                array.set_fetching(array.find(line(number)).unwrap(), true);
            }
            assert_eq!(array.room_for(line(8)), None);
            assert!(array.room_for(line(1)).is_some(), "the other set is free");
        }
    }
}
