//! Operations that are done a slice at a time: those of which nobody knows how long they take.

use std::marker::PhantomData;
use std::task::Poll;

use thiserror::Error;

use crate::{NodeMemory, Offload, OffloadError};

/// Work of an operation that a node has by itself: accesses to memory, and as many more as take
/// what the bytes take that they move.
pub const WORK_MAX: u64 = 1 << 20;
/// The same of one slice, and of all of a datagram: about a millisecond.
pub const SLICE_WORK: u64 = 1 << 14;
/// Bytes of an access that take as long as an access does.
const BYTES_PER_WORK: u64 = 512;

/// How much work an access is.
#[must_use]
pub fn work(bytes: u64) -> u64 {
    1 + bytes / BYTES_PER_WORK
}

/// What an operation may still do.
pub(super) struct Allowance {
    left: u64,
    slice: u64,
    /// Work of this slice that is paid for.
    paid: u64,
}

impl Allowance {
    /// Where nobody waits for the memory.
    pub(super) const UNLIMITED: Allowance = Allowance { left: u64::MAX, slice: u64::MAX, paid: 0 };
    /// At a node.
    pub(super) const OF_NODE: Allowance = Allowance { left: WORK_MAX, slice: SLICE_WORK, paid: 0 };

    /// Whether the slice ends before the next access. Each slice has a memory of its own.
    ///
    /// # Errors
    /// [`OffloadError::Failed`] if the operation may do no more.
    pub(super) fn slice_is_over(&mut self, memory: &NodeMemory<'_>) -> Result<bool, OffloadError> {
        let work = memory.work();
        let left = self.left.checked_sub(work - self.paid).filter(|&left| left > 0);
        self.left = left.ok_or_else(too_much_work)?;
        let is_over = work >= self.slice;
        self.paid = if is_over { 0 } else { work };
        Ok(is_over)
    }
}

/// The error of an operation that has done all the work it may do.
#[must_use]
pub fn too_much_work() -> OffloadError {
    let line = format!("more than {WORK_MAX} accesses, or of {BYTES_PER_WORK} B each as many");
    OffloadError::Failed(line)
}

/// What a tenant's operations may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadLimits {
    /// Fuel of one call, whatever the operation itself would have.
    pub fuel_max: u64,
    /// Memory of one call, beside that of the node, in bytes.
    pub memory_bytes_max: u64,
    /// Operations that the tenant may bring to the node.
    pub loaded_max: u16,
}

impl OffloadLimits {
    /// As much as the operation's own limits say; and the tenant brings none.
    pub const NONE: OffloadLimits =
        OffloadLimits { fuel_max: u64::MAX, memory_bytes_max: u64::MAX, loaded_max: 0 };
}

/// An operation that has begun. Dropped, it ends where it is.
pub trait Sliced: Send {
    /// Does a slice of it: bounded work. Its result, once it has ended; it is not asked again then.
    fn step(&mut self, memory: &mut NodeMemory<'_>) -> Poll<Result<Vec<u8>, OffloadError>>;

    /// Fuel that it has used so far.
    fn fuel_used(&self) -> u64 {
        0
    }

    /// Does all of it, where nobody else waits for the memory.
    ///
    /// # Errors
    /// Those of the operation.
    fn run_to_end(&mut self, memory: &mut NodeMemory<'_>) -> Result<Vec<u8>, OffloadError> {
        loop {
            if let Poll::Ready(ended) = self.step(memory) {
                return ended;
            }
        }
    }
}

/// Work of a node's own operation that changes nothing, begun with its arguments.
pub(super) trait Look: Sliced + Sized + 'static {
    /// Begins it.
    ///
    /// # Errors
    /// [`OffloadError::Failed`] for arguments that say nothing.
    fn begin(arguments: &[u8], allowance: Allowance) -> Result<Self, OffloadError>;
}

/// The operation of such work.
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
    /// It did what no program may: a pointer out of its own memory, a division by zero, a call
    /// too deep.
    #[error("trapped")]
    Trap = 0,
    /// It used all of its fuel.
    #[error("out of fuel")]
    Fuel = 1,
    /// It wanted more memory of its own than it may have.
    #[error("out of memory")]
    Memory = 2,
}

impl Stop {
    /// All there are, by their numbers.
    pub const ALL: [Stop; 3] = [Stop::Trap, Stop::Fuel, Stop::Memory];

    /// By its number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Stop> {
        Stop::ALL.get(usize::from(number)).copied()
    }
}
