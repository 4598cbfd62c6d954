//! Operations that a memory node runs by itself, so that one round trip replaces many.
//!
//! An [`Offload`] sees memory through a [`View`]. The same code runs at a node behind a network and
//! in a pool whose memory nodes are in-process. The crate knows no network and no protocol.

mod address;
mod chase;
mod filter;
mod sliced;
mod words;

use std::sync::Arc;

use ethermem_wire::{Permissions, ProcessId, RmwOperation};
use thiserror::Error;

pub use address::{Address, OFFSET_MAX};
pub use chase::{Chase, Chased};
pub use filter::{Comparison, Filter};
use sliced::Looking;
pub use sliced::{OffloadLimits, SLICE_WORK, Sliced, Stop, WORK_MAX, too_much_work, work};

/// The first octet of a node's answer: a result follows.
pub const ENDED_RESULT: u8 = 0;
/// The first octet of a node's answer: an error text follows, which says why there is no result.
pub const ENDED_FAILED: u8 = 1;
/// The first octet of a node's answer: the number of a [`Stop`] follows, and an error text.
pub const ENDED_STOPPED: u8 = 2;

/// An operation at the memory node. It takes arguments and the caller's view of that node, and
/// returns the bytes of the result.
///
/// It runs to its end before the node does anything else, with the caller's permissions.
pub trait Offload: Send + Sync {
    /// Runs the operation.
    ///
    /// # Errors
    /// Any [`OffloadError`] of its accesses; [`OffloadError::Failed`] for invalid arguments.
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, OffloadError>;

    /// True if the operation may change something with these arguments. An operation that does not
    /// may be run again when its answer was lost. For an operation that does, the node keeps the
    /// result.
    fn changes(&self, _arguments: &[u8]) -> bool {
        true
    }

    /// Begins the operation, if it runs in slices. `None` means that it is [run](Offload::run) to
    /// its end.
    fn begin(
        &self,
        _limits: &OffloadLimits,
        _arguments: &[u8],
    ) -> Option<Result<Box<dyn Sliced>, OffloadError>> {
        None
    }

    /// True if it acts in an address space of its own, one per tenant, and not in the caller's.
    fn has_own_space(&self) -> bool {
        false
    }
}

/// Why an operation at the memory node ended without a result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OffloadError {
    /// Some of the bytes are in no region of the process.
    #[error("{bytes} B at {address} are not all in one region of the process")]
    Unmapped {
        /// Start of the access.
        address: Address,
        /// Length of the access in bytes; 0 for a region that is named by its address alone.
        bytes: u64,
    },
    /// The process lacks the permission at the address.
    #[error("no permission to {needed} at {address}")]
    Permission {
        /// The address of the access.
        address: Address,
        /// The permissions that the access needs.
        needed: Permissions,
    },
    /// An atomic is not at a multiple of 8.
    #[error("an atomic at {address}: not a multiple of 8")]
    Misaligned {
        /// The address of the atomic.
        address: Address,
    },
    /// The node has too little free memory, or the tenant's quota is used up.
    #[error("no room for {bytes} B: {free} B are free")]
    Full {
        /// Number of bytes requested.
        bytes: u64,
        /// Number of bytes available.
        free: u64,
    },
    /// The arguments are invalid, or the operation ran past its limit.
    #[error("{0}")]
    Failed(String),
    /// The node stopped the operation.
    #[error("{why}: {problem}")]
    Stopped {
        /// The reason for the stop.
        why: Stop,
        /// Where it was stopped, and what the limit is.
        problem: String,
    },
}

impl OffloadError {
    /// A [`OffloadError::Failed`] whose text says what was found and what it must be.
    pub fn failed(problem: impl Into<String>) -> OffloadError {
        OffloadError::Failed(problem.into())
    }
}

/// The memory of one process at one node.
pub trait View {
    /// The bytes from `address` on: in place, or copied into `room`.
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
    /// The errors of [`View::read`].
    fn write(&mut self, address: Address, data: &[u8]) -> Result<(), OffloadError>;

    /// Does all of these writes, or none. An operation that collects its changes and writes them
    /// last leaves nothing half done.
    ///
    /// The default is for views whose writes fail only where a read would.
    ///
    /// # Errors
    /// The errors of [`View::read`]; nothing is written then.
    fn write_all(&mut self, writes: &[(Address, &[u8])]) -> Result<(), OffloadError> {
        let mut room = Vec::new();
        for (address, data) in writes {
            self.read(*address, data.len() as u64, &mut room)?;
        }
        writes.iter().try_for_each(|(address, data)| self.write(*address, data))
    }

    /// Executes an atomic, and returns the word before.
    ///
    /// # Errors
    /// The errors of [`View::read`], and [`OffloadError::Misaligned`].
    fn modify(&mut self, address: Address, operation: RmwOperation) -> Result<u64, OffloadError>;

    /// Allocates memory of zeros that the process owns for which the operation acts.
    ///
    /// # Errors
    /// [`OffloadError::Full`], [`OffloadError::Failed`].
    fn allocate(&mut self, bytes: u64, permissions: Permissions) -> Result<Address, OffloadError>;

    /// Frees a region.
    ///
    /// # Errors
    /// [`OffloadError::Unmapped`].
    fn free(&mut self, address: Address) -> Result<(), OffloadError>;

    /// The process that the memory belongs to.
    fn process(&self) -> ProcessId;

    /// Maximum bytes of a result that the caller can receive.
    fn result_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Registers an operation at the node for the tenant that this one acts for, in place of its
    /// own one with this name; or removes that.
    ///
    /// # Errors
    /// [`OffloadError::Failed`] where the tenant has no right to do so.
    fn install(
        &mut self,
        name: &str,
        offload: Option<Arc<dyn Offload>>,
    ) -> Result<(), OffloadError>;
}

/// An offload's view of its node: the regions of the calling process.
pub struct NodeMemory<'n> {
    view: &'n mut dyn View,
    room: Vec<u8>,
    accesses: u64,
    work: u64,
}

impl<'n> NodeMemory<'n> {
    /// Wraps a view.
    pub fn new(view: &'n mut dyn View) -> NodeMemory<'n> {
        NodeMemory { view, room: Vec::new(), accesses: 0, work: 0 }
    }

    fn count(&mut self, bytes: u64) {
        self.accesses += 1;
        self.work = self.work.saturating_add(sliced::work(bytes));
    }

    /// Approximate time used, in short accesses.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.work
    }

    /// The bytes from `address` on.
    ///
    /// # Errors
    /// [`OffloadError::Unmapped`], [`OffloadError::Permission`].
    pub fn read(&mut self, address: Address, bytes: u64) -> Result<&[u8], OffloadError> {
        self.count(bytes);
        self.view.read(address, bytes, &mut self.room)
    }

    /// The little-endian word at `address`.
    ///
    /// # Errors
    /// The errors of [`NodeMemory::read`].
    pub fn read_u64(&mut self, address: Address) -> Result<u64, OffloadError> {
        let word = self.read(address, 8)?;
        Ok(u64::from_le_bytes(word.try_into().expect("8 B were read")))
    }

    /// Writes `data` from `address` on.
    ///
    /// # Errors
    /// The errors of [`NodeMemory::read`].
    pub fn write(&mut self, address: Address, data: &[u8]) -> Result<(), OffloadError> {
        self.count(data.len() as u64);
        self.view.write(address, data)
    }

    /// Does all of these writes, or none.
    ///
    /// # Errors
    /// The errors of [`NodeMemory::read`]; nothing is written then.
    pub fn write_all(&mut self, writes: &[(Address, &[u8])]) -> Result<(), OffloadError> {
        writes.iter().for_each(|(_, data)| self.count(data.len() as u64));
        self.view.write_all(writes)
    }

    /// Executes an atomic, and returns the word before.
    ///
    /// # Errors
    /// The errors of [`NodeMemory::read`], and [`OffloadError::Misaligned`].
    pub fn modify(
        &mut self,
        address: Address,
        operation: RmwOperation,
    ) -> Result<u64, OffloadError> {
        self.count(8);
        self.view.modify(address, operation)
    }

    /// Allocates memory of zeros that the process owns for which the operation acts.
    ///
    /// # Errors
    /// [`OffloadError::Full`], [`OffloadError::Failed`].
    pub fn allocate(
        &mut self,
        bytes: u64,
        permissions: Permissions,
    ) -> Result<Address, OffloadError> {
        self.count(bytes);
        self.view.allocate(bytes, permissions)
    }

    /// Frees a region.
    ///
    /// # Errors
    /// [`OffloadError::Unmapped`].
    pub fn free(&mut self, address: Address) -> Result<(), OffloadError> {
        self.count(0);
        self.view.free(address)
    }

    /// The process that the memory belongs to.
    #[must_use]
    pub fn process(&self) -> ProcessId {
        self.view.process()
    }

    /// Maximum bytes of a result that the caller can receive; an operation need not collect more.
    #[must_use]
    pub fn result_bytes_max(&self) -> usize {
        self.view.result_bytes_max()
    }

    /// Registers or removes an operation: see [`View::install`].
    ///
    /// # Errors
    /// [`OffloadError::Failed`] where the tenant has no right to do so.
    pub fn install(
        &mut self,
        name: &str,
        offload: Option<Arc<dyn Offload>>,
    ) -> Result<(), OffloadError> {
        self.view.install(name, offload)
    }

    /// Number of accesses. On a fabric with a time model, each takes one access time of the node's
    /// memory.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.accesses
    }
}

/// Maximum bytes of the name of an operation that a tenant brings.
pub const NAME_BYTES_MAX: usize = 64;

/// Checks that an operation may have this name, which appears in configurations and metrics.
///
/// # Errors
/// [`OffloadError::Failed`] with what the name must be.
pub fn check_name(name: &str) -> Result<(), OffloadError> {
    let octet = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.');
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(octet) {
        return Ok(());
    }
    let problem =
        format!("name {name:?}: must be 1 to {NAME_BYTES_MAX} of a-z, A-Z, 0-9, -, _ and .");
    Err(OffloadError::Failed(problem))
}

/// The operations that every memory node has, by their names.
#[must_use]
pub fn built_in() -> [(&'static str, Arc<dyn Offload>); 2] {
    [
        (Chase::NAME, Arc::new(Looking::<chase::ChaseRun>::NEW)),
        (Filter::NAME, Arc::new(Looking::<filter::FilterRun>::NEW)),
    ]
}
