//! An allocation in progress. It searches a gap among the addresses of its process, reserves places
//! in the page table, and enters the pages.

use core::task::Poll;

use ethermem_wire::clio::Permissions;

use super::allocator::AllocateError;
use super::claim::Claim;
use super::map::AddressMap;
use super::page::SpaceId;
use super::ranges::{Gap, Kind, Range};
use super::table::Entry;
use super::task::{Ended, Failed, Steps};

/// Maximum number of ranges that an allocation tries before it is refused. Near the end of memory
/// it tries some tens.
const RETRIES_MAX: u32 = 1024;
/// An allocation may try to reserve this many times its own pages, and this number more, before it
/// is refused. A page tried in vain costs a part of entering it.
const TRIED_TIMES: u64 = 16;
const TRIED_MIN: u64 = 1 << 18;
/// Number of the process's ranges that a search for a gap passes in one step.
const PASSED_AT_ONCE: usize = 64;
const PASSED_BY_ONE: u64 = 8;

/// An allocation in progress, as the module describes.
#[derive(Debug)]
pub(super) struct Allocation {
    group: u16,
    space: SpaceId,
    pages: u64,
    permissions: Permissions,
    state: State,
    /// True if the process chose the address, so that there is no second try.
    is_fixed: bool,
    /// True if the search reached the end of all addresses and restarted.
    is_around: bool,
    retries: u32,
    /// Number of pages that were reserved in vain.
    tried: u64,
}

#[derive(Debug)]
enum State {
    /// Searches for a gap from this page on.
    Looking(u64),
    Reserving(Claim),
    Entering(Claim),
    /// Undoes its work, and then continues as told.
    Undoing(Claim, Then),
    /// Its promise is taken back, and it ends.
    Over(Failed),
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Look(u64),
    Fail(Failed),
}

impl Allocation {
    pub(super) fn begin(
        map: &mut AddressMap,
        (group, space): (u16, SpaceId),
        bytes: u64,
        at: Option<u64>,
        permissions: Permissions,
    ) -> Result<Allocation, AllocateError> {
        let pages = bytes.div_ceil(map.page.bytes());
        if pages == 0 {
            return Err(AllocateError::Empty);
        }
        if pages > map.physical_pages - map.reserved_pages {
            return Err(AllocateError::Full { free: map.free_bytes() });
        }
        let state = match at {
            Some(at) => {
                let first = map.fixed(space, at, pages)?;
                State::Reserving(hold(map, space, first, pages, permissions))
            }
            None => State::Looking(*map.cursor(group)),
        };
        map.reserved_pages += pages;
        let (is_fixed, is_around, retries, tried) = (at.is_some(), false, 0, 0);
        Ok(Allocation {
            group,
            space,
            pages,
            permissions,
            state,
            is_fixed,
            is_around,
            retries,
            tried,
        })
    }

    pub(super) fn cancel(&mut self) {
        let state = core::mem::replace(&mut self.state, State::Over(Failed::Cancelled));
        self.state = match state {
            State::Reserving(claim) | State::Entering(claim) | State::Undoing(claim, _) => {
                State::Undoing(claim, Then::Fail(Failed::Cancelled))
            }
            State::Looking(_) => State::Over(Failed::Cancelled),
            State::Over(failed) => State::Over(failed),
        };
    }

    pub(super) fn step(
        &mut self,
        map: &mut AddressMap,
        steps: &mut Steps,
    ) -> Poll<Result<Ended, Failed>> {
        while !steps.are_over() {
            match &mut self.state {
                State::Looking(from) => {
                    let from = *from;
                    self.look(map, steps, from);
                }
                State::Reserving(claim) => match claim.reserve(map, steps) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(())) => {
                        let State::Reserving(claim) = self.take() else { unreachable!() };
                        self.state = State::Entering(claim);
                    }
                    Poll::Ready(Err(page)) => self.overflows(map, page),
                },
                State::Entering(claim) => {
                    if claim.next().is_some() {
                        steps.take(1);
                        claim.enter(map, Entry::untouched(self.permissions));
                        continue;
                    }
                    let first = claim.first;
                    map.ranges_of(self.space).let_go(first);
                    let address = first << map.page.bits();
                    let retries = self.retries;
                    return Poll::Ready(Ok(Ended { address, retries, pages_released: 0 }));
                }
                State::Undoing(claim, then) => {
                    let (first, then) = (claim.first, *then);
                    if claim.undo(map, true, steps).is_pending() {
                        return Poll::Pending;
                    }
                    map.ranges_of(self.space).remove(first);
                    self.state = match then {
                        Then::Look(from) => State::Looking(from),
                        Then::Fail(failed) => State::Over(failed),
                    };
                }
                State::Over(failed) => {
                    map.reserved_pages -= self.pages;
                    return Poll::Ready(Err(*failed));
                }
            }
        }
        Poll::Pending
    }

    fn take(&mut self) -> State {
        core::mem::replace(&mut self.state, State::Over(Failed::Cancelled))
    }

    fn look(&mut self, map: &mut AddressMap, steps: &mut Steps, from: u64) {
        let end = map.page.virtual_pages();
        let found = map.ranges_of(self.space).gap(from, self.pages, end, PASSED_AT_ONCE);
        steps.take(1 + PASSED_AT_ONCE as u64 / PASSED_BY_ONE);
        self.state = match found {
            Gap::At(first) => {
                // The next allocation of the group searches behind this one, whatever its result.
                *map.cursor(self.group) = ((first + self.pages + 1) % end).max(1);
                State::Reserving(hold(map, self.space, first, self.pages, self.permissions))
            }
            Gap::Beyond(next) => State::Looking(next),
            Gap::None if !self.is_around => {
                self.is_around = true;
                State::Looking(1)
            }
            Gap::None => {
                let none = AllocateError::NoRange { tried: self.retries };
                State::Over(Failed::Refused(none))
            }
        };
    }

    /// Handles a page without a place in the table: no range with this page can be used.
    fn overflows(&mut self, map: &mut AddressMap, page: u64) {
        let State::Reserving(claim) = self.take() else { unreachable!("it reserves") };
        self.tried += page - claim.first + 1;
        let then = if self.is_fixed {
            let page = page << map.page.bits();
            Then::Fail(Failed::Refused(AllocateError::Overflows { page }))
        } else {
            self.retries += 1;
            map.counters.allocation_retries += 1;
            let most = TRIED_MIN.saturating_add(self.pages.saturating_mul(TRIED_TIMES));
            if self.retries > RETRIES_MAX || self.tried > most {
                Then::Fail(Failed::Refused(AllocateError::NoRange { tried: self.retries }))
            } else {
                Then::Look(page + 1)
            }
        };
        self.state = State::Undoing(claim, then);
    }
}

/// Holds a range of the process's own, and begins a claim for its places.
fn hold(
    map: &mut AddressMap,
    space: SpaceId,
    first: u64,
    pages: u64,
    permissions: Permissions,
) -> Claim {
    let kind = Kind::Own { shares: Vec::new() };
    map.ranges_of(space).insert(first, Range::of(pages, permissions, kind));
    Claim::new(map, space, first, pages)
}
