//! Operations that run in slices, since their duration is unknown.

use std::marker::PhantomData;
use std::task::Poll;

use thiserror::Error;

use crate::{NodeMemory, Offload, OffloadError};

/// Maximum work of a node's own operation. The unit is an access to memory; moved bytes count as
/// the number of accesses that take as long.
pub const WORK_MAX: u64 = 1 << 20;
/// Maximum work of one slice, and of all operations of a datagram: about a millisecond.
pub const SLICE_WORK: u64 = 1 << 14;
/// Number of bytes of an access that take as long as an access does.
const BYTES_PER_WORK: u64 = 512;

/// The work of an access of `bytes`.
#[must_use]
pub fn work(bytes: u64) -> u64 {
    1 + bytes / BYTES_PER_WORK
}

/// The work that an operation may still do.
pub(super) struct Allowance {
    left: u64,
    slice: u64,
    /// Work of this slice that is already subtracted.
    paid: u64,
}

impl Allowance {
    /// No limit, for use where no other request waits for the memory.
    pub(super) const UNLIMITED: Allowance = Allowance { left: u64::MAX, slice: u64::MAX, paid: 0 };
    /// The limits at a node.
    pub(super) const OF_NODE: Allowance = Allowance { left: WORK_MAX, slice: SLICE_WORK, paid: 0 };

    /// True if the slice ends before the next access. Each slice has a [`NodeMemory`] of its own.
    ///
    /// # Errors
    /// [`OffloadError::Failed`] if the operation has no work left.
    pub(super) fn slice_is_over(&mut self, memory: &NodeMemory<'_>) -> Result<bool, OffloadError> {
        let work = memory.work();
        let left = self.left.checked_sub(work - self.paid).filter(|&left| left > 0);
        self.left = left.ok_or_else(too_much_work)?;
        let is_over = work >= self.slice;
        self.paid = if is_over { 0 } else { work };
        Ok(is_over)
    }
}

/// The error of an operation that has used up its work.
#[must_use]
pub fn too_much_work() -> OffloadError {
    let line = format!("more than {WORK_MAX} accesses, or of {BYTES_PER_WORK} B each as many");
    OffloadError::Failed(line)
}

/// The limits of a tenant's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadLimits {
    /// Maximum fuel of one call, whatever the operation's own limit is.
    pub fuel_max: u64,
    /// Maximum memory of one call, beside the node's memory, in bytes.
    pub memory_bytes_max: u64,
    /// Maximum number of operations that the tenant may bring to the node.
    pub loaded_max: u16,
}

impl OffloadLimits {
    /// No limits beyond the operation's own; the tenant brings none.
    pub const NONE: OffloadLimits =
        OffloadLimits { fuel_max: u64::MAX, memory_bytes_max: u64::MAX, loaded_max: 0 };
}

/// An operation that has begun. Dropping it stops it where it is.
pub trait Sliced: Send {
    /// Runs a slice of bounded work. Returns the result at the end; it is not called again then.
    fn step(&mut self, memory: &mut NodeMemory<'_>) -> Poll<Result<Vec<u8>, OffloadError>>;

    /// Number of units of fuel used so far.
    fn fuel_used(&self) -> u64 {
        0
    }

    /// Runs the operation to its end, where no other request waits for the memory.
    ///
    /// # Errors
    /// The errors of the operation.
    fn run_to_end(&mut self, memory: &mut NodeMemory<'_>) -> Result<Vec<u8>, OffloadError> {
        loop {
            if let Poll::Ready(ended) = self.step(memory) {
                return ended;
            }
        }
    }
}

/// A node's own operation that changes nothing, begun with its arguments.
pub(super) trait Look: Sliced + Sized + 'static {
    /// Begins the operation.
    ///
    /// # Errors
    /// [`OffloadError::Failed`] for invalid arguments.
    fn begin(arguments: &[u8], allowance: Allowance) -> Result<Self, OffloadError>;
}

/// The [`Offload`] of such an operation.
pub(super) struct Looking<L>(PhantomData<fn() -> L>);

impl<L> Looking<L> {
    pub(super) const NEW: Looking<L> = Looking(PhantomData);
}

impl<L: Look> Offload for Looking<L> {
    fn changes(&self, _: &[u8]) -> bool {
        false
    }

    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, OffloadError> {
        L::begin(arguments, Allowance::UNLIMITED)?.run_to_end(memory)
    }

    fn begin(
        &self,
        _: &OffloadLimits,
        arguments: &[u8],
    ) -> Option<Result<Box<dyn Sliced>, OffloadError>> {
        let begun = L::begin(arguments, Allowance::OF_NODE);
        Some(begun.map(|look| Box::new(look) as Box<dyn Sliced>))
    }
}

/// Why an operation was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Error)]
#[repr(u8)]
pub enum Stop {
    /// It did what no program may do: a pointer out of its own memory, a division by zero, a call
    /// too deep.
    #[error("trapped")]
    Trap = 0,
    /// It used all of its fuel.
    #[error("out of fuel")]
    Fuel = 1,
    /// It requested more memory of its own than its limit.
    #[error("out of memory")]
    Memory = 2,
}

impl Stop {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Stop; 3] = [Stop::Trap, Stop::Fuel, Stop::Memory];

    /// The reason with a number, if it is assigned.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Stop> {
        Stop::ALL.get(usize::from(number)).copied()
    }
}
