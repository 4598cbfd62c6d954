//! Operations that a memory node does by itself, so that one round trip takes the place of many.
//!
//! An [`Offload`] sees memory by a [`View`]: the same code runs at a node behind a network and in a
//! pool whose memory nodes are in this program. The crate knows no network and no protocol.

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

/// The first octet of what a node answers: a result follows.
pub const ENDED_RESULT: u8 = 0;
/// A line for people follows, which says why there is no result.
pub const ENDED_FAILED: u8 = 1;
/// The number of a [`Stop`] follows, and a line for people.
pub const ENDED_STOPPED: u8 = 2;

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

    /// Begins it, where it is done a slice at a time. `None` is one that is [run](Offload::run) to
    /// its end.
    fn begin(
        &self,
        _limits: &OffloadLimits,
        _arguments: &[u8],
    ) -> Option<Result<Box<dyn Sliced>, OffloadError>> {
        None
    }

    /// Whether it acts in an address space of its own, one for each tenant, and not in the
    /// caller's.
    fn has_own_space(&self) -> bool {
        false
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
        /// How long it is; 0 of a region that is named by its address alone.
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
    /// The node has no memory left for it, or the tenant may not have it.
    #[error("no room for {bytes} B: {free} B are free")]
    Full {
        /// What was asked for.
        bytes: u64,
        /// What there is.
        free: u64,
    },
    /// It does not take these arguments, or finds no end.
    #[error("{0}")]
    Failed(String),
    /// It was stopped.
    #[error("{why}: {problem}")]
    Stopped {
        /// Why.
        why: Stop,
        /// Where, and what is allowed.
        problem: String,
    },
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

    /// Does all of these writes, or none: an operation that gathers its changes and writes them
    /// last leaves nothing half done.
    ///
    /// Given here for views whose writes fail only where a read would.
    ///
    /// # Errors
    /// As [`View::read`]; nothing is written then.
    fn write_all(&mut self, writes: &[(Address, &[u8])]) -> Result<(), OffloadError> {
        let mut room = Vec::new();
        for (address, data) in writes {
            self.read(*address, data.len() as u64, &mut room)?;
        }
        writes.iter().try_for_each(|(address, data)| self.write(*address, data))
    }

    /// Executes an atomic, and gives the word before.
    ///
    /// # Errors
    /// As [`View::read`], and [`OffloadError::Misaligned`].
    fn modify(&mut self, address: Address, operation: RmwOperation) -> Result<u64, OffloadError>;

    /// Memory of zeros, which is the process's that is acted for.
    ///
    /// # Errors
    /// [`OffloadError::Full`], [`OffloadError::Failed`].
    fn allocate(&mut self, bytes: u64, permissions: Permissions) -> Result<Address, OffloadError>;

    /// Gives a region back.
    ///
    /// # Errors
    /// [`OffloadError::Unmapped`].
    fn free(&mut self, address: Address) -> Result<(), OffloadError>;

    /// Whose memory it is.
    fn process(&self) -> ProcessId;

    /// Longest result that the caller can be given.
    fn result_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Makes an operation known to the node for the tenant that is acted for, over its own of the
    /// same name; or takes it away.
    ///
    /// # Errors
    /// [`OffloadError::Failed`] where the tenant may not.
    fn install(
        &mut self,
        name: &str,
        offload: Option<Arc<dyn Offload>>,
    ) -> Result<(), OffloadError>;
}

/// What an offload sees of its node: the regions of the process that asked.
pub struct NodeMemory<'n> {
    view: &'n mut dyn View,
    room: Vec<u8>,
    accesses: u64,
    work: u64,
}

impl<'n> NodeMemory<'n> {
    /// By a view.
    pub fn new(view: &'n mut dyn View) -> NodeMemory<'n> {
        NodeMemory { view, room: Vec::new(), accesses: 0, work: 0 }
    }

    fn count(&mut self, bytes: u64) {
        self.accesses += 1;
        self.work = self.work.saturating_add(sliced::work(bytes));
    }

    /// How much time it took, about, in short accesses.
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
        self.count(data.len() as u64);
        self.view.write(address, data)
    }

    /// Does all of these writes, or none.
    ///
    /// # Errors
    /// As [`NodeMemory::read`]; nothing is written then.
    pub fn write_all(&mut self, writes: &[(Address, &[u8])]) -> Result<(), OffloadError> {
        writes.iter().for_each(|(_, data)| self.count(data.len() as u64));
        self.view.write_all(writes)
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
        self.count(8);
        self.view.modify(address, operation)
    }

    /// Memory of zeros, which is the process's that is acted for.
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

    /// Gives a region back.
    ///
    /// # Errors
    /// [`OffloadError::Unmapped`].
    pub fn free(&mut self, address: Address) -> Result<(), OffloadError> {
        self.count(0);
        self.view.free(address)
    }

    /// Whose memory it is.
    #[must_use]
    pub fn process(&self) -> ProcessId {
        self.view.process()
    }

    /// Longest result that the caller can be given: an operation need not collect more.
    #[must_use]
    pub fn result_bytes_max(&self) -> usize {
        self.view.result_bytes_max()
    }

    /// See [`View::install`].
    ///
    /// # Errors
    /// [`OffloadError::Failed`] where the tenant may not.
    pub fn install(
        &mut self,
        name: &str,
        offload: Option<Arc<dyn Offload>>,
    ) -> Result<(), OffloadError> {
        self.view.install(name, offload)
    }

    /// How many accesses there were: on a fabric with a time of its own, each takes that of the
    /// node's memory.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.accesses
    }
}

/// Longest name of an operation that a tenant brings.
pub const NAME_BYTES_MAX: usize = 64;

/// Whether an operation may have this name: it stands in configurations and metrics.
///
/// # Errors
/// [`OffloadError::Failed`] with what is allowed.
pub fn check_name(name: &str) -> Result<(), OffloadError> {
    let octet = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.');
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(octet) {
        return Ok(());
    }
    let problem =
        format!("name {name:?}: allowed are 1 to {NAME_BYTES_MAX} of a-z, A-Z, 0-9, -, _ and .");
    Err(OffloadError::Failed(problem))
}

/// The operations that every memory node has, by their names.
#[must_use]
pub fn built_in() -> [(&'static str, Arc<dyn Offload>); 2] {
    [
        (Chase::NAME, Arc::new(Looking::<chase::Run>::NEW)),
        (Filter::NAME, Arc::new(Looking::<filter::Run>::NEW)),
    ]
}
