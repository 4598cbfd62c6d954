//! Operations that are done a slice at a time: those that users bring, of which nobody knows how
//! long they take.

use std::task::Poll;

use thiserror::Error;

use super::{NodeMemory, OffloadError};

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
