//! A share in progress: all pages of the owner get memory, and are entered for the other process.

use core::task::Poll;

use ethermem_wire::clio::Permissions;

use super::allocator::{AllocateError, ReleaseError, ShareError};
use super::claim::Claim;
use super::map::AddressMap;
use super::page::{PageKey, SpaceId};
use super::ranges::{Kind, Range};
use super::release::Release;
use super::table::Entry;
use super::task::{BeginError, Ended, Failed, Steps, ZEROED_BY_ONE};

/// Number of bytes zeroed at a time while pages get memory.
const ZERO_AT_ONCE: u64 = 64 << 10;

/// A share in progress, as the module describes.
#[derive(Debug)]
pub(super) struct Sharing {
    owner: SpaceId,
    /// The first page in the owner's space.
    owned: u64,
    with: SpaceId,
    permissions: Permissions,
    /// The address that is returned.
    address: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Places are reserved in a held range of the other process; the owner's range is held, too.
    Reserving(Claim, Before),
    Entering(Claim, Before),
    Undoing(Claim, Before, Failed),
    /// The previous share, at another address, is removed.
    Removing(Release),
    /// The permissions of the existing share change, from this page on.
    Changing {
        first: u64,
        done: u64,
        pages: u64,
    },
    Done,
}

/// The first page of the previous share, at another address. That share is held.
type Before = Option<u64>;

impl Sharing {
    pub(super) fn begin(
        map: &mut AddressMap,
        (owner, address): (SpaceId, u64),
        with: SpaceId,
        at: Option<u64>,
        permissions: Permissions,
    ) -> Result<Sharing, BeginError<ShareError>> {
        let refused = |error: ShareError| BeginError::Refused(error);
        let missing = refused(ReleaseError { address }.into());
        let owned = map.first_page(address).ok_or(missing)?;
        let range = map.ranges_of(owner).get(owned).ok_or(missing)?;
        let Kind::Own { shares } = &range.kind else {
            return Err(missing);
        };
        if !range.permissions.allow(permissions) {
            return Err(refused(ShareError::Permission { address, needed: permissions }));
        }
        let (pages, is_held) = (range.pages, range.is_held);
        let before = shares.iter().find(|(other, _)| *other == with).map(|&(_, first)| first);
        let sharing = |address, state| Sharing { owner, owned, with, permissions, address, state };
        if is_held {
            return Err(BeginError::Held);
        }
        if with == owner || (before.is_none() && permissions == Permissions::NONE) {
            return Ok(sharing(address, State::Done));
        }
        let there = at.unwrap_or(address);
        let stays = before.is_some_and(|first| map.first_page(there) == Some(first));
        let is_new = permissions != Permissions::NONE && !stays;
        if is_new {
            // All pages without an owner can still be allocated, whatever is shared.
            let entries = map.table.used() + map.claimed_entries + pages;
            if entries + map.physical_pages - map.reserved_pages > map.table.shares_until() {
                return Err(refused(AllocateError::Overflows { page: address }.into()));
            }
        }
        let first = if is_new { map.fixed(with, there, pages) } else { Ok(0) };
        let first = first.map_err(|error| refused(error.into()))?;
        if before.is_some_and(|first| !map.ranges_of(with).hold(first)) {
            return Err(BeginError::Held);
        }
        Ok(match before {
            Some(before) if permissions == Permissions::NONE => {
                sharing(address, State::Removing(Release::of(with, before)))
            }
            Some(before) if stays => {
                sharing(there, State::Changing { first: before, done: 0, pages })
            }
            before => {
                map.ranges_of(owner).hold(owned);
                let kind = Kind::Shared { owner, first: owned };
                map.ranges_of(with).insert(first, Range::of(pages, permissions, kind));
                let claim = Claim::new(map, with, first, pages);
                sharing(there, State::Reserving(claim, before))
            }
        })
    }

    pub(super) fn cancel(&mut self) {
        self.state = match core::mem::replace(&mut self.state, State::Done) {
            State::Reserving(claim, before) | State::Entering(claim, before) => {
                State::Undoing(claim, before, Failed::Cancelled)
            }
            state => state,
        };
    }

    pub(super) fn step(
        &mut self,
        map: &mut AddressMap,
        steps: &mut Steps,
        zero: &mut dyn FnMut(u32, u64, u64),
    ) -> Poll<Result<Ended, Failed>> {
        loop {
            // A finished task has ended: the owner's range is not held any more.
            if matches!(self.state, State::Done) {
                let address = self.address;
                return Poll::Ready(Ok(Ended { address, ..Ended::default() }));
            }
            if steps.are_over() {
                return Poll::Pending;
            }
            match core::mem::replace(&mut self.state, State::Done) {
                State::Reserving(mut claim, before) => {
                    let reserved = claim.reserve(map, steps);
                    self.state = match reserved {
                        Poll::Pending => State::Reserving(claim, before),
                        Poll::Ready(Ok(())) => State::Entering(claim, before),
                        Poll::Ready(Err(page)) => {
                            let page = page << map.page.bits();
                            let failed = Failed::Refused(AllocateError::Overflows { page });
                            State::Undoing(claim, before, failed)
                        }
                    };
                }
                State::Entering(mut claim, before) => {
                    self.enter(map, steps, &mut claim, zero);
                    self.state = match claim.next() {
                        Some(_) => State::Entering(claim, before),
                        None => self.entered(map, &claim, before),
                    };
                }
                State::Undoing(mut claim, before, failed) => {
                    let first = claim.first;
                    if claim.undo(map, false, steps).is_pending() {
                        self.state = State::Undoing(claim, before, failed);
                        return Poll::Pending;
                    }
                    map.ranges_of(self.with).remove(first);
                    map.ranges_of(self.owner).let_go(self.owned);
                    if let Some(before) = before {
                        map.ranges_of(self.with).let_go(before);
                    }
                    return Poll::Ready(Err(failed));
                }
                State::Removing(mut release) => {
                    if release.step(map, steps).is_pending() {
                        self.state = State::Removing(release);
                        return Poll::Pending;
                    }
                }
                State::Changing { first, done, pages } if done < pages => {
                    steps.take(1);
                    map.change_page(PageKey::new(self.with, first + done), self.permissions);
                    self.state = State::Changing { first, done: done + 1, pages };
                }
                State::Changing { first, .. } => {
                    let ranges = map.ranges_of(self.with);
                    ranges.get_mut(first).expect("it is held").permissions = self.permissions;
                    ranges.let_go(first);
                }
                State::Done => unreachable!("it has ended"),
            }
        }
    }

    /// Enters pages that the owner has, and gives memory to untouched ones.
    fn enter(
        &self,
        map: &mut AddressMap,
        steps: &mut Steps,
        claim: &mut Claim,
        zero: &mut dyn FnMut(u32, u64, u64),
    ) {
        let untouched = Entry::untouched(self.permissions);
        while let Some(index) = claim.next().filter(|_| !steps.are_over()) {
            steps.take(1);
            let found = map.table.look(PageKey::new(self.owner, self.owned + index));
            let (place, entry) = found.expect("a page of a range has an entry");
            let physical = match entry.physical() {
                Some(physical) => physical,
                None if !map.free.has_spare() => {
                    let before = map.free.zeroed_bytes();
                    map.free.refill(ZERO_AT_ONCE, &mut *zero);
                    steps.take((map.free.zeroed_bytes() - before) / ZEROED_BY_ONE);
                    continue;
                }
                None => {
                    let physical = map.free.take();
                    let physical = physical.expect("no more pages are promised than there are");
                    map.table.set(place, entry.mapped(physical));
                    physical
                }
            };
            steps.take(1);
            claim.enter(map, untouched.mapped(physical));
        }
    }

    /// Completes the share, since all pages are entered; the previous share is then removed.
    fn entered(&self, map: &mut AddressMap, claim: &Claim, before: Before) -> State {
        map.ranges_of(self.with).let_go(claim.first);
        map.ranges_of(self.owner).keep_share(self.owned, (self.with, claim.first));
        map.ranges_of(self.owner).let_go(self.owned);
        before.map_or(State::Done, |first| State::Removing(Release::of(self.with, first)))
    }
}
