//! Operations that an in-process memory node executes by itself: those of `clio`, and those that
//! applications bring.

use std::sync::Arc;

use ethermem_offload::{Offload, OffloadError, View};
use ethermem_pool::{Address, Error, Permissions, ProcessId, Segment};
use ethermem_wire::RmwOperation;

use super::space::Node;

/// The regions of a process, as an operation accesses them.
pub(crate) struct NodeView<'n> {
    node: &'n mut Node,
    process: ProcessId,
}

impl<'n> NodeView<'n> {
    pub(crate) fn new(node: &'n mut Node, process: ProcessId) -> NodeView<'n> {
        NodeView { node, process }
    }
}

impl View for NodeView<'_> {
    fn read<'v>(
        &'v mut self,
        address: Address,
        bytes: u64,
        _: &'v mut Vec<u8>,
    ) -> Result<&'v [u8], OffloadError> {
        self.node.read(self.process, address, bytes).map_err(offload_error)
    }

    fn write(&mut self, address: Address, data: &[u8]) -> Result<(), OffloadError> {
        self.node.write(self.process, address, data).map_err(offload_error)
    }

    fn modify(&mut self, address: Address, operation: RmwOperation) -> Result<u64, OffloadError> {
        self.node.modify(self.process, address, operation).map_err(offload_error)
    }

    fn allocate(&mut self, bytes: u64, permissions: Permissions) -> Result<Address, OffloadError> {
        if bytes == 0 {
            return Err(OffloadError::failed("0 B: must be at least 1"));
        }
        self.node.alloc(self.process, bytes, permissions).map_err(offload_error)
    }

    fn free(&mut self, address: Address) -> Result<(), OffloadError> {
        // The caller names a region only by its address.
        let region = Segment { address, bytes: 0 };
        self.node.free(self.process, region).map_err(offload_error)
    }

    fn process(&self) -> ProcessId {
        self.process
    }

    fn install(&mut self, _: &str, _: Option<Arc<dyn Offload>>) -> Result<(), OffloadError> {
        Err(OffloadError::failed("a node of this program has the operations that it registers"))
    }
}

fn offload_error(error: Error) -> OffloadError {
    match error {
        Error::Unmapped { address, bytes } => OffloadError::Unmapped { address, bytes },
        Error::Permission { address, needed } => OffloadError::Permission { address, needed },
        Error::Misaligned { address } => OffloadError::Misaligned { address },
        Error::Full { bytes, free } => OffloadError::Full { bytes, free },
        other => OffloadError::Failed(other.to_string()),
    }
}
