//! A range on its way into the page table. First a place in its bucket is reserved for each page,
//! then each page is entered. Until the last page is entered, the whole range can be taken out
//! again.

use core::task::Poll;

use super::map::AddressMap;
use super::page::{PageKey, SpaceId};
use super::table::{Entry, RESERVED_BY_ONE};
use super::task::Steps;

/// Number of pages that are reserved at a time, which takes few steps.
const RESERVED_AT_ONCE: u64 = 8 * RESERVED_BY_ONE;

/// A range on its way into the page table. Pages `..entered` are in the table; places are reserved
/// for those up to `reserved`.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) space: SpaceId,
    pub(super) first: u64,
    pub(super) pages: u64,
    reserved: u64,
    entered: u64,
}

impl Claim {
    pub(super) fn new(map: &mut AddressMap, space: SpaceId, first: u64, pages: u64) -> Claim {
        map.claimed_entries += pages;
        Claim { space, first, pages, reserved: 0, entered: 0 }
    }

    fn key(&self, index: u64) -> PageKey {
        PageKey::new(self.space, self.first + index)
    }

    /// The next page to enter; `None` once all are entered.
    pub(super) fn next(&self) -> Option<u64> {
        (self.entered < self.pages).then_some(self.entered)
    }

    /// Reserves a place for each page, or finds the first page without a place.
    pub(super) fn reserve(
        &mut self,
        map: &mut AddressMap,
        steps: &mut Steps,
    ) -> Poll<Result<(), u64>> {
        while self.reserved < self.pages {
            if steps.are_over() {
                return Poll::Pending;
            }
            let most = (self.pages - self.reserved).min(RESERVED_AT_ONCE);
            let (done, room) = map.table.reserve(self.key(self.reserved), most);
            self.reserved += done;
            steps.take(1 + done / RESERVED_BY_ONE);
            if room.is_err() {
                return Poll::Ready(Err(self.first + self.reserved));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Enters the next page, whose place is reserved.
    pub(super) fn enter(&mut self, map: &mut AddressMap, entry: Entry) {
        map.table.enter(self.key(self.entered), entry);
        map.claimed_entries -= 1;
        self.entered += 1;
    }

    /// Removes entered pages, and returns reserved places. If the process `owns` the pages, memory
    /// that they got is returned, too.
    pub(super) fn undo(&mut self, map: &mut AddressMap, owns: bool, steps: &mut Steps) -> Poll<()> {
        while self.reserved > self.entered {
            if steps.are_over() {
                return Poll::Pending;
            }
            let most = (self.reserved - self.entered).min(RESERVED_AT_ONCE);
            let mut at = self.reserved - most;
            while at < self.reserved {
                let done = map.table.give_back(self.key(at), self.reserved - at);
                steps.take(1 + done / RESERVED_BY_ONE);
                at += done;
            }
            self.reserved -= most;
        }
        while self.entered > 0 {
            if steps.are_over() {
                return Poll::Pending;
            }
            steps.take(1);
            self.entered -= 1;
            self.reserved -= 1;
            map.claimed_entries += 1;
            map.remove_page(self.key(self.entered), owns);
        }
        map.claimed_entries -= self.pages;
        self.pages = 0;
        Poll::Ready(())
    }
}
