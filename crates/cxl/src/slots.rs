//! Buffers that are indexed by a sequence number modulo their size.

use ethermem_wire::cxl::Sequence;

/// When the memory of a buffer is reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// All of it when the buffer is built, as in hardware: nothing is allocated later.
    #[default]
    Reserved,
    /// A page of places when one of them is first used. A simulator of many pairs of nodes needs
    /// no more memory than its traffic.
    OnDemand,
}

/// Places of a page. A page is what is allocated on demand.
const PAGE: usize = 16;
/// The places of a page.
type Page<T> = Box<[Option<T>]>;

/// A buffer with a place for each sequence number modulo its size, a power of two.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    pages: Box<[Option<Page<T>>]>,
    mask: usize,
    /// Empty pages that were released, to be used again.
    spare: Vec<Page<T>>,
    storage: Storage,
}

fn page<T>() -> Page<T> {
    (0..PAGE).map(|_| None).collect()
}

impl<T> Slots<T> {
    /// A buffer of `places` empty places, a power of two.
    pub(crate) fn new(places: usize, storage: Storage) -> Slots<T> {
        assert!(places.is_power_of_two(), "{places} places: must be a power of two");
        let reserved = || (storage == Storage::Reserved).then(page);
        let pages = (0..places.div_ceil(PAGE)).map(|_| reserved()).collect();
        Slots { pages, mask: places - 1, spare: Vec::new(), storage }
    }

    fn place(&self, sequence: Sequence) -> (usize, usize) {
        let place = sequence.0 as usize & self.mask;
        (place / PAGE, place % PAGE)
    }

    /// What is at the place of this number.
    #[inline]
    pub(crate) fn get(&self, sequence: Sequence) -> Option<&T> {
        let (page, at) = self.place(sequence);
        self.pages[page].as_ref()?[at].as_ref()
    }

    /// What is at the place of this number, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, sequence: Sequence) -> Option<&mut T> {
        let (page, at) = self.place(sequence);
        self.pages[page].as_mut()?[at].as_mut()
    }

    /// Puts an item at the place of this number, instead of what was there.
    #[inline]
    pub(crate) fn put(&mut self, sequence: Sequence, item: T) {
        let (at_page, at) = self.place(sequence);
        let spare = &mut self.spare;
        let place = &mut self.pages[at_page];
        place.get_or_insert_with(|| spare.pop().unwrap_or_else(page))[at] = Some(item);
    }

    /// Empties the place of this number.
    #[inline]
    pub(crate) fn take(&mut self, sequence: Sequence) -> Option<T> {
        let (page, at) = self.place(sequence);
        self.pages[page].as_mut()?[at].take()
    }

    /// Gives back the page of this number, if it is the page's last place, all of its places are
    /// empty, and memory is reserved on demand.
    pub(crate) fn release_after(&mut self, sequence: Sequence) {
        let (page, at) = self.place(sequence);
        if self.storage == Storage::Reserved || at != PAGE - 1 {
            return;
        }
        if self.pages[page].iter().flatten().all(Option::is_none) {
            self.spare.extend(self.pages[page].take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_its_place_modulo_the_size() {
        for storage in [Storage::Reserved, Storage::OnDemand] {
            for places in [1, 4, 16, 64] {
                let mut slots = Slots::new(places, storage);
                assert_eq!(slots.get(Sequence(3)), None);
                slots.put(Sequence(3), 7);
                assert_eq!(slots.get(Sequence(3 + places as u32)), Some(&7), "{places}");
                *slots.get_mut(Sequence(3)).unwrap() += 1;
                assert_eq!((slots.take(Sequence(3)), slots.take(Sequence(3))), (Some(8), None));
            }
        }
    }

    #[test]
    fn a_window_that_moves_on_needs_two_pages() {
        let mut slots = Slots::new(1024, Storage::OnDemand);
        for number in 0..5_000 {
            slots.put(Sequence(number), number);
            if let Some(old) = number.checked_sub(10) {
                assert_eq!(slots.take(Sequence(old)), Some(old));
                slots.release_after(Sequence(old));
            }
            assert!(slots.pages.iter().flatten().count() + slots.spare.len() <= 2);
        }
    }
}
