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

/// One way of one set. `dirty` is a part of `valid`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    line: Option<LineAddress>,
    pub(super) valid: ByteMask,
    pub(super) dirty: ByteMask,
    /// A fetch is under way: the line stays where it is until it has ended.
    pub(super) fetching: bool,
    /// 0 is the most recently used way of its set.
    age: u8,
    pub(super) data: LineData,
}

/// All ways of all sets.
#[derive(Clone, Debug)]
pub(super) struct Array {
    ways: Box<[Way]>,
    ways_a_set: u32,
    sets: u32,
}

impl Array {
    pub(super) fn new(sets: u32, ways_a_set: u32) -> Array {
        let way = |at: u32| Way {
            line: None,
            valid: ByteMask::EMPTY,
            dirty: ByteMask::EMPTY,
            fetching: false,
            age: (at % ways_a_set) as u8,
            data: [0; LINE_BYTES],
        };
        Array { ways: (0..sets * ways_a_set).map(way).collect(), ways_a_set, sets }
    }

    pub(super) fn places(&self) -> u32 {
        self.ways.len() as u32
    }

    pub(super) fn way(&self, place: Place) -> &Way {
        &self.ways[place.0 as usize]
    }

    pub(super) fn way_mut(&mut self, place: Place) -> &mut Way {
        &mut self.ways[place.0 as usize]
    }

    pub(super) fn line(&self, place: Place) -> Option<LineAddress> {
        self.way(place).line
    }

    pub(super) fn state(&self, place: Place) -> LineState {
        let way = self.way(place);
        match (way.line, way.dirty.is_empty()) {
            (None, _) => LineState::Invalid,
            (Some(_), true) => LineState::Exclusive,
            (Some(_), false) => LineState::Modified,
        }
    }

    /// The place of a line, if the cache has it.
    pub(super) fn find(&self, line: LineAddress) -> Option<Place> {
        self.set_of(line).find(|&place| self.line(place) == Some(line))
    }

    /// A place for a new line: a free way, or the least recently used one that has no fetch under
    /// way; `None` if all have.
    pub(super) fn room_for(&self, line: LineAddress) -> Option<Place> {
        let mut all = self.set_of(line);
        let free = all.find(|&place| self.line(place).is_none());
        free.or_else(|| {
            let idle = self.set_of(line).filter(|&place| !self.way(place).fetching);
            idle.max_by_key(|&place| self.way(place).age)
        })
    }

    /// Puts a line without a valid byte into a place.
    pub(super) fn place_line(&mut self, place: Place, line: LineAddress) {
        let way = self.way_mut(place);
        way.line = Some(line);
        (way.valid, way.dirty) = (ByteMask::EMPTY, ByteMask::EMPTY);
    }

    pub(super) fn free(&mut self, place: Place) {
        let way = self.way_mut(place);
        way.line = None;
        (way.valid, way.dirty) = (ByteMask::EMPTY, ByteMask::EMPTY);
    }

    /// Makes a place the most recently used of its set.
    pub(super) fn touch(&mut self, place: Place) {
        let first = place.0 - place.0 % self.ways_a_set;
        let age = self.way(place).age;
        let set = first as usize..(first + self.ways_a_set) as usize;
        for way in &mut self.ways[set] {
            if way.age < age {
                way.age += 1;
            }
        }
        self.way_mut(place).age = 0;
    }

    fn set_of(&self, line: LineAddress) -> impl Iterator<Item = Place> + use<> {
        let set = (line.number() & u64::from(self.sets - 1)) as u32;
        let first = set * self.ways_a_set;
        (first..first + self.ways_a_set).map(Place)
    }

    /// What holds after every operation; for tests.
    pub(super) fn check(&self) {
        for set in 0..self.sets {
            let first = set * self.ways_a_set;
            let mut ages = 0_u64;
            for place in (first..first + self.ways_a_set).map(Place) {
                let way = self.way(place);
                assert_eq!(way.dirty.0 & !way.valid.0, 0, "a dirty byte is not valid: {place:?}");
                ages |= 1 << way.age;
                let Some(line) = way.line else {
                    assert!(way.valid.is_empty() && !way.fetching, "a free way: {place:?}");
                    continue;
                };
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
        let mut array = Array::new(2, 4);
        for number in [0, 2, 4, 6] {
            let place = array.room_for(line(number)).unwrap();
            array.place_line(place, line(number));
            array.touch(place);
        }
        array.check();
        array.touch(array.find(line(0)).unwrap());
        let oldest = |array: &Array| array.room_for(line(8)).and_then(|place| array.line(place));
        assert_eq!(oldest(&array), Some(line(2)));
        for (number, next) in [(2, Some(line(4))), (4, Some(line(6))), (6, Some(line(0)))] {
            let place = array.find(line(number)).unwrap();
            array.way_mut(place).fetching = true;
            assert_eq!(oldest(&array), next);
        }
        let place = array.find(line(0)).unwrap();
        array.way_mut(place).fetching = true;
        assert_eq!(array.room_for(line(8)), None);
        assert!(array.room_for(line(1)).is_some(), "the other set is free");
    }
}
