//! Memory accesses of a module: a request to the code that holds the node's memory, and its answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ethermem_clio::Address;
use ethermem_clio::offload::{NodeMemory, OffloadError};
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{ClioStatus, Permissions};

/// Longest access in bytes that is done in one piece.
pub(crate) const PIECE_BYTES: u32 = 4096;

/// One access.
#[derive(Debug)]
pub(crate) enum Access {
    Read(Address, u32),
    Write(Address, Vec<u8>),
    Modify(Address, RmwOperation),
    Allocate(u64, Permissions),
    Free(Address),
    Process,
}

/// Result of an access.
#[derive(Debug)]
pub(crate) enum Given {
    Bytes(Vec<u8>),
    /// A word, an address or a process.
    Number(u64),
    Nothing,
}

pub(crate) type Answer = Result<Given, OffloadError>;

impl Access {
    pub(crate) fn on(self, memory: &mut NodeMemory<'_>) -> Answer {
        match self {
            Access::Read(address, bytes) => {
                memory.read(address, bytes.into()).map(|bytes| Given::Bytes(bytes.to_vec()))
            }
            Access::Write(address, data) => memory.write(address, &data).map(|()| Given::Nothing),
            Access::Modify(address, operation) => {
                memory.modify(address, operation).map(Given::Number)
            }
            Access::Allocate(bytes, permissions) => {
                memory.allocate(bytes, permissions).map(|address| Given::Number(address.0))
            }
            Access::Free(address) => memory.free(address).map(|()| Given::Nothing),
            Access::Process => Ok(Given::Number(memory.process().0.into())),
        }
    }
}

/// The status that a module receives for an error: the one that a client would receive on the wire.
pub(crate) fn status(error: &OffloadError) -> ClioStatus {
    match error {
        OffloadError::Unmapped { .. } => ClioStatus::Unmapped,
        OffloadError::Permission { .. } => ClioStatus::Permission,
        OffloadError::Misaligned { .. } => ClioStatus::Misaligned,
        OffloadError::Full { .. } => ClioStatus::Full,
        OffloadError::Failed(_) | OffloadError::Stopped { .. } => ClioStatus::OffloadFailed,
    }
}

/// The data exchanged between a module and its stepper.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) access: Option<Access>,
    pub(crate) answer: Option<Answer>,
    /// Fuel left at the module's last request.
    pub(crate) fuel_left: u64,
}

/// The data exchanged, as shared by both sides. It is never locked while the module runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<Mail>>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Mail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
