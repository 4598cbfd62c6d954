//! Requests of the slow path, done in slices of a bounded number of steps. Between two slices the
//! fast path and other tasks proceed.
//!
//! A task holds the ranges on which it works, so that no other task begins there. It waits for a
//! range that another task holds only where that task needs no third range, so no task waits for
//! ever.

use core::task::Poll;

use ethermem_wire::clio::Permissions;
use thiserror::Error;

use super::allocation::Allocation;
use super::allocator::{AllocateError, ReleaseError, ShareError};
use super::map::AddressMap;
use super::page::SpaceId;
use super::release::{End, Release};
use super::sharing::Sharing;

/// Number of bytes zeroed with about the work of one bucket access.
pub(super) const ZEROED_BY_ONE: u64 = 1024;

/// The steps left in a slice, in accesses to a bucket of the page table or equivalents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    left: u64,
    taken: u64,
}

impl Steps {
    /// A slice without a limit, for use where no request waits.
    pub const UNLIMITED: Steps = Steps::new(u64::MAX);

    /// A slice of `most` steps. The last piece of work may take a few more.
    #[must_use]
    pub const fn new(most: u64) -> Steps {
        Steps { left: most, taken: 0 }
    }

    /// Number of steps taken.
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
    /// Another task works on the range. Retry after that task has ended.
    #[error("another request is under way there")]
    Held,
    /// The task is refused. A retry cannot help.
    #[error(transparent)]
    Refused(E),
}

/// The result of a task that is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// For an allocation or a share: its first address.
    pub address: u64,
    /// For an allocation: number of ranges that were tried in vain.
    pub retries: u32,
    /// Number of memory pages that lost their owner.
    pub pages_released: u64,
}

/// Why a task ended without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The allocation was refused.
    Refused(AllocateError),
    /// The task was cancelled.
    Cancelled,
}

/// A request of the slow path, done in slices.
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
    /// Allocates memory of zeros in whole pages, at any address or at a given one. The memory is
    /// promised at once. `group` names spaces that share with each other: an address that one of
    /// them is given is free in all of them.
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

    /// Ends an allocation with all its shares, or ends one share. `address` must be the first
    /// address.
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

    /// Shares an allocation of the owner with another process: see [`AddressMap::share`].
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

    /// Ends everything that a process has. No other task may begin for its space until this task
    /// has ended. Tasks that have begun for it must be cancelled or must end by themselves.
    #[must_use]
    pub fn end(space: SpaceId) -> Task {
        Task(Kind::End(End::of(space)))
    }

    /// Cancels the task: an unfinished allocation or share is undone. A task that removes goes on.
    pub fn cancel(&mut self) {
        match &mut self.0 {
            Kind::Allocate(allocation) => allocation.cancel(),
            Kind::Share(sharing) => sharing.cancel(),
            Kind::Release(_) | Kind::End(_) => {}
        }
    }

    /// Continues until the task has ended, the steps are used up, or it must wait for another task.
    /// `zero` is given a page and the part of it that must be zeroed.
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

    /// Runs the whole task, where no other task is in progress.
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
