//! Operations that a memory node does by itself, so that one round trip takes the place of many.
//!
//! An [`Offload`] sees memory by a [`View`]: the same code runs at a node of this crate and at any
//! other memory that has one.

mod chase;
mod filter;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use ethermem_wire::RmwOperation;
use ethermem_wire::clio::Permissions;
use thiserror::Error;

pub use chase::{Chase, Chased};
pub use filter::{Comparison, Filter};

use crate::address::Address;

/// The first octet of what a node answers: a result follows.
pub const ENDED_RESULT: u8 = 0;
/// A line for people follows, which says why there is no result.
pub const ENDED_FAILED: u8 = 1;

/// An operation at the memory node: given its arguments and the caller's view of that node, it
/// gives the result's bytes.
///
/// It runs to its end before the node does anything else, and acts with the caller's permissions.
pub trait Offload: Send + Sync {
    /// Does it.
    ///
    /// # Errors
    /// Any [`OffloadError`] of its accesses; [`OffloadError::Failed`] for arguments that it does
    /// not take.
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, OffloadError>;

    /// Whether it may change something with these arguments. What does not may be done again when
    /// its answer was lost; of what does, the node keeps the result.
    fn changes(&self, _arguments: &[u8]) -> bool {
        true
    }
}

/// Why an operation at the memory node ended without a result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OffloadError {
    /// Some of the bytes are in no region that the process has.
    #[error("{bytes} B at {address} are not all in one region of the process")]
    Unmapped {
        /// Where the access begins.
        address: Address,
        /// How long it is.
        bytes: u64,
    },
    /// The process may not do this there.
    #[error("no permission to {needed} at {address}")]
    Permission {
        /// Where.
        address: Address,
        /// What it would take.
        needed: Permissions,
    },
    /// An atomic must be at a multiple of 8.
    #[error("an atomic at {address}: not a multiple of 8")]
    Misaligned {
        /// Where.
        address: Address,
    },
    /// It does not take these arguments, or finds no end.
    #[error("{0}")]
    Failed(String),
}

impl OffloadError {
    /// With what was found and what is allowed.
    pub fn failed(problem: impl Into<String>) -> OffloadError {
        OffloadError::Failed(problem.into())
    }
}

/// The memory of one process at one node.
pub trait View {
    /// The bytes from `address` on: in place, or copied to `room`.
    ///
    /// # Errors
    /// [`OffloadError::Unmapped`], [`OffloadError::Permission`].
    fn read<'v>(
        &'v mut self,
        address: Address,
        bytes: u64,
        room: &'v mut Vec<u8>,
    ) -> Result<&'v [u8], OffloadError>;

    /// Writes `data` from `address` on.
    ///
    /// # Errors
    /// As [`View::read`].
    fn write(&mut self, address: Address, data: &[u8]) -> Result<(), OffloadError>;

    /// Executes an atomic, and gives the word before.
    ///
    /// # Errors
    /// As [`View::read`], and [`OffloadError::Misaligned`].
    fn modify(&mut self, address: Address, operation: RmwOperation) -> Result<u64, OffloadError>;
}

/// What an offload sees of its node: the regions of the process that asked.
pub struct NodeMemory<'n> {
    view: &'n mut dyn View,
    room: Vec<u8>,
    accesses: u64,
}

impl<'n> NodeMemory<'n> {
    /// By a view.
    pub fn new(view: &'n mut dyn View) -> NodeMemory<'n> {
        NodeMemory { view, room: Vec::new(), accesses: 0 }
    }

    /// The bytes from `address` on.
    ///
    /// # Errors
    /// [`OffloadError::Unmapped`], [`OffloadError::Permission`].
    pub fn read(&mut self, address: Address, bytes: u64) -> Result<&[u8], OffloadError> {
        self.accesses += 1;
        self.view.read(address, bytes, &mut self.room)
    }

    /// The little-endian word at `address`.
    ///
    /// # Errors
    /// As [`NodeMemory::read`].
    pub fn read_u64(&mut self, address: Address) -> Result<u64, OffloadError> {
        let word = self.read(address, 8)?;
        Ok(u64::from_le_bytes(word.try_into().expect("8 B were read")))
    }

    /// Writes `data` from `address` on.
    ///
    /// # Errors
    /// As [`NodeMemory::read`].
    pub fn write(&mut self, address: Address, data: &[u8]) -> Result<(), OffloadError> {
        self.accesses += 1;
        self.view.write(address, data)
    }

    /// Executes an atomic, and gives the word before.
    ///
    /// # Errors
    /// As [`NodeMemory::read`], and [`OffloadError::Misaligned`].
    pub fn modify(
        &mut self,
        address: Address,
        operation: RmwOperation,
    ) -> Result<u64, OffloadError> {
        self.accesses += 1;
        self.view.modify(address, operation)
    }

    /// How many accesses there were: on a fabric with a time of its own, each takes that of the
    /// node's memory.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.accesses
    }
}

/// The operations that a memory node knows, by name.
#[derive(Clone)]
pub struct Offloads {
    by_name: BTreeMap<String, Arc<dyn Offload>>,
}

impl Offloads {
    /// Those that every node has.
    #[must_use]
    pub fn built_in() -> Offloads {
        let mut offloads = Offloads { by_name: BTreeMap::new() };
        offloads.add(Chase::NAME, Arc::new(chase::Chaser));
        offloads.add(Filter::NAME, Arc::new(filter::Filterer));
        offloads
    }

    /// Makes one known, over one of the same name.
    pub fn add(&mut self, name: &str, offload: Arc<dyn Offload>) {
        self.by_name.insert(name.to_owned(), offload);
    }

    /// The operation of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Offload>> {
        self.by_name.get(name)
    }

    /// All names, as a list for people.
    #[must_use]
    pub fn names(&self) -> String {
        self.by_name.keys().cloned().collect::<Vec<_>>().join(", ")
    }
}
