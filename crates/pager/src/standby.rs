//! Recently evicted pages, which are still local, so that a page evicted too early costs no remote
//! access. VAX/VMS had such a list where the hardware had no bits for accessed pages (Turner and
//! Levy, SIGMETRICS 1981). What returns from it is not as old as the queue before it says.

use std::collections::VecDeque;

use crate::protocol::PAGE_BYTES;

/// Largest number of pages on standby: 16 GiB.
const MOST_PAGES: u64 = 1 << 22;

/// Address space and address of a page on standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) process: usize,
    pub(crate) page: u64,
}

/// One arrival. It is stale if its place has another generation now.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    owner: Owner,
    place: u32,
    generation: u32,
}

/// Pages in local memory, oldest first.
#[derive(Debug)]
pub(crate) struct Standby {
    content: Vec<u8>,
    generations: Vec<u32>,
    free: Vec<u32>,
    order: VecDeque<Arrival>,
}

impl Standby {
    /// Creates a list with room for `pages` pages, at least one.
    pub(crate) fn new(pages: u32) -> Standby {
        let pages = pages.max(1);
        Standby {
            content: vec![0; pages as usize * PAGE_BYTES],
            generations: vec![0; pages as usize],
            free: (0..pages).rev().collect(),
            order: VecDeque::new(),
        }
    }

    /// Enlarges the list to `pages` pages, if it is smaller.
    pub(crate) fn widen(&mut self, pages: u64) {
        let (now, wanted) = (self.generations.len() as u32, pages.min(MOST_PAGES) as u32);
        // It grows in steps, because growing copies the content.
        if wanted > now + now / 4 {
            self.content.resize(wanted as usize * PAGE_BYTES, 0);
            self.generations.resize(wanted as usize, 0);
            self.free.splice(0..0, (now..wanted).rev());
        }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.generations.len() as u64
    }

    /// Number of pages on standby.
    pub(crate) fn pages(&self) -> u64 {
        self.capacity() - self.free.len() as u64
    }

    /// Stores a page and returns its place, if there is room.
    pub(crate) fn push(&mut self, owner: Owner, page: &[u8]) -> Option<u32> {
        let place = self.free.pop()?;
        let start = place as usize * PAGE_BYTES;
        self.content[start..start + PAGE_BYTES].copy_from_slice(page);
        self.arrive(owner, place);
        Some(place)
    }

    /// Changes the address of the page at `place`; the page counts as new.
    pub(crate) fn rename(&mut self, owner: Owner, place: u32) {
        self.arrive(owner, place);
    }

    fn arrive(&mut self, owner: Owner, place: u32) {
        let generation = self.generations[place as usize].wrapping_add(1);
        self.generations[place as usize] = generation;
        if self.order.len() > 4 * self.generations.len() {
            let generations = &self.generations;
            self.order.retain(|item| item.generation == generations[item.place as usize]);
        }
        self.order.push_back(Arrival { owner, place, generation });
    }

    /// Owner and place of the oldest page. The place stays taken until it is released.
    pub(crate) fn oldest(&mut self) -> Option<(Owner, u32)> {
        while let Some(item) = self.order.pop_front() {
            if item.generation == self.generations[item.place as usize] {
                return Some((item.owner, item.place));
            }
        }
        None
    }

    pub(crate) fn page(&self, place: u32) -> &[u8] {
        let start = place as usize * PAGE_BYTES;
        &self.content[start..start + PAGE_BYTES]
    }

    /// Frees the place of a page that is no longer needed here.
    pub(crate) fn release(&mut self, place: u32) {
        let generation = &mut self.generations[place as usize];
        *generation = generation.wrapping_add(1);
        self.free.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::{Owner, Standby};
    use crate::protocol::PAGE_BYTES;

    fn owner(page: u64) -> Owner {
        Owner { process: 0, page }
    }

    #[test]
    fn pages_leave_in_the_order_in_which_they_came() {
        let mut standby = Standby::new(3);
        let places: Vec<u32> = (0..3)
            .map(|page| standby.push(owner(page), &[page as u8; PAGE_BYTES]).expect("room"))
            .collect();
        assert_eq!(standby.push(owner(9), &[9; PAGE_BYTES]), None, "full");
        standby.release(places[1]);
        let again = standby.push(owner(7), &[7; PAGE_BYTES]).expect("room for one");
        assert_eq!(again, places[1], "the same place, another page");
        let left: Vec<u64> =
            std::iter::from_fn(|| standby.oldest()).map(|(owner, _)| owner.page).collect();
        assert_eq!(left, [0, 2, 7]);
        assert_eq!(standby.page(again)[5], 7);
    }

    #[test]
    fn history_does_not_pile_up() {
        let mut standby = Standby::new(2);
        for page in 0..1000 {
            let place = standby.push(owner(page), &[0; PAGE_BYTES]).expect("room");
            standby.release(place);
        }
        assert!(standby.order.len() <= 9, "{}", standby.order.len());
    }

    #[test]
    fn there_is_room_for_as_many_pages_as_it_was_widened_to() {
        let mut standby = Standby::new(8);
        assert_eq!((standby.capacity(), standby.pages()), (8, 0));
        let mut places = Vec::new();
        for page in 0..8 {
            places.push(standby.push(owner(page), &[page as u8; PAGE_BYTES]).expect("room"));
        }
        assert_eq!(standby.pages(), 8);
        // Growing by nothing, or by a little, is not worth a copy.
        for pages in [0, 8, 10] {
            standby.widen(pages);
            assert_eq!(standby.capacity(), 8, "{pages}");
        }
        standby.widen(11);
        assert_eq!((standby.capacity(), standby.pages()), (11, 8));
        for page in 8..11 {
            places.push(standby.push(owner(page), &[page as u8; PAGE_BYTES]).expect("room"));
        }
        assert_eq!(standby.push(owner(11), &[0; PAGE_BYTES]), None, "full");
        for (page, place) in places.iter().enumerate() {
            assert_eq!(standby.page(*place), [page as u8; PAGE_BYTES], "{page}");
        }
        standby.release(places[3]);
        assert_eq!(standby.pages(), 10);
        standby.rename(owner(100), places[0]);
        let left = std::iter::from_fn(|| standby.oldest()).map(|(owner, _)| owner.page);
        assert_eq!(left.collect::<Vec<u64>>(), [1, 2, 4, 5, 6, 7, 8, 9, 10, 100]);
    }
}
