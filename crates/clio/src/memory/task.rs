//! Requests of the slow path, done a bounded number of steps at a time. Between two slices all else
//! goes on: the fast path, and other tasks.
//!
//! A task holds the ranges on which it works, so that no other task begins there. It waits for a
//! range that another one holds only where that one needs no third: so none waits for ever.

use core::task::Poll;

use ethermem_wire::clio::Permissions;
use thiserror::Error;

use super::allocation::Allocation;
use super::allocator::{AllocateError, ReleaseError, ShareError};
use super::map::AddressMap;
use super::page::SpaceId;
use super::release::{End, Release};
use super::sharing::Sharing;

/// Bytes that are zeroed by about as much work as an access to a bucket takes.
pub(super) const ZEROED_BY_ONE: u64 = 1024;

/// What a slice may still do, in accesses to a bucket of the page table, or as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    left: u64,
    taken: u64,
}

impl Steps {
    /// Where nobody waits.
    pub const UNLIMITED: Steps = Steps::new(u64::MAX);

    /// So many. The last piece of work may take a few more.
    #[must_use]
    pub const fn new(most: u64) -> Steps {
        Steps { left: most, taken: 0 }
    }

    /// How many were taken.
    #[must_use]
    pub const fn taken(self) -> u64 {
        self.taken
    }

    pub(super) fn take(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
        self.taken += steps;
    }

    pub(super) fn are_over(self) -> bool {
        self.left == 0
    }
}

/// Why a task does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BeginError<E> {
    /// Another task works on the range. Once it has ended, this one may begin.
    #[error("another request is under way there")]
    Held,
    /// It cannot be done.
    #[error(transparent)]
    Refused(E),
}

/// How a task ended that has done all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Of an allocation or a share: where it begins.
    pub address: u64,
    /// Of an allocation: ranges that were tried in vain.
    pub retries: u32,
    /// Pages of memory that belong to nobody now.
    pub pages_released: u64,
}

/// Why a task ended that has done nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// It could not be done.
    Refused(AllocateError),
    /// It was told to give up.
    Cancelled,
}

/// See the module.
#[derive(Debug)]
pub struct Task(Kind);

#[derive(Debug)]
enum Kind {
    Allocate(Allocation),
    Release(Release),
    Share(Sharing),
    End(End),
}

impl Task {
    /// Allocates memory of zeros, of whole pages: anywhere, or at an address. What it takes is
    /// promised at once. `group` are spaces that share with each other: what one of them is given
    /// anywhere is free in all of them.
    ///
    /// # Errors
    /// [`AllocateError`].
    pub fn allocate(
        map: &mut AddressMap,
        (group, space): (u16, SpaceId),
        bytes: u64,
        at: Option<u64>,
        permissions: Permissions,
    ) -> Result<Task, AllocateError> {
        let begun = Allocation::begin(map, (group, space), bytes, at, permissions);
        begun.map(|allocation| Task(Kind::Allocate(allocation)))
    }

    /// Ends an allocation, and what is shared of it; or ends a share. Its address must be the
    /// first.
    ///
    /// # Errors
    /// [`BeginError`].
    pub fn release(
        map: &mut AddressMap,
        space: SpaceId,
        address: u64,
    ) -> Result<Task, BeginError<ReleaseError>> {
        let missing = BeginError::Refused(ReleaseError { address });
        let first = map.first_page(address).ok_or(missing)?;
        let range = map.ranges_of(space).get_mut(first).ok_or(missing)?;
        if range.is_held {
            return Err(BeginError::Held);
        }
        range.is_held = true;
        Ok(Task(Kind::Release(Release::of(space, first))))
    }

    /// Lets another process use an allocation of the owner's: see [`AddressMap::share`].
    ///
    /// # Errors
    /// [`BeginError`].
    pub fn share(
        map: &mut AddressMap,
        owned: (SpaceId, u64),
        with: SpaceId,
        at: Option<u64>,
        permissions: Permissions,
    ) -> Result<Task, BeginError<ShareError>> {
        Sharing::begin(map, owned, with, at, permissions).map(|sharing| Task(Kind::Share(sharing)))
    }

    /// Ends all that a process has. No other task may begin for its space until this has ended;
    /// those that have begun for it must be told to give up, or end by themselves.
    #[must_use]
    pub fn end(space: SpaceId) -> Task {
        Task(Kind::End(End::of(space)))
    }

    /// From now on an allocation or a share that is not done is undone. What takes away goes on.
    pub fn cancel(&mut self) {
        match &mut self.0 {
            Kind::Allocate(allocation) => allocation.cancel(),
            Kind::Share(sharing) => sharing.cancel(),
            Kind::Release(_) | Kind::End(_) => {}
        }
    }

    /// Goes on until it has ended, the steps are over, or it has to wait for another task. `zero`
    /// is given a page and the part of it that must be zeroed.
    pub fn step(
        &mut self,
        map: &mut AddressMap,
        steps: &mut Steps,
        zero: &mut dyn FnMut(u32, u64, u64),
    ) -> Poll<Result<Ended, Failed>> {
        match &mut self.0 {
            Kind::Allocate(allocation) => allocation.step(map, steps),
            Kind::Release(release) => release.step(map, steps).map(|pages| Ok(released(pages))),
            Kind::Share(sharing) => sharing.step(map, steps, zero),
            Kind::End(end) => end.step(map, steps).map(|pages| Ok(released(pages))),
        }
    }

    /// All of it at once, where no other task is under way.
    pub(super) fn run(
        mut self,
        map: &mut AddressMap,
        zero: &mut dyn FnMut(u32, u64, u64),
    ) -> Result<Ended, AllocateError> {
        let mut steps = Steps::UNLIMITED;
        let Poll::Ready(ended) = self.step(map, &mut steps, zero) else {
            unreachable!("it has all steps, and waits for no other task");
        };
        ended.map_err(|failed| match failed {
            Failed::Refused(error) => error,
            Failed::Cancelled => unreachable!("nobody told it to give up"),
        })
    }
}

fn released(pages_released: u64) -> Ended {
    Ended { pages_released, ..Ended::default() }
}
