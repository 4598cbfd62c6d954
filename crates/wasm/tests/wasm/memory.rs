//! Regions of one process, without a pool.

use std::collections::BTreeMap;
use std::sync::Arc;

use ethermem_clio::Address;
use ethermem_clio::offload::{Offload, OffloadError, View};
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{Permissions, ProcessId};

/// Address of the initial region.
pub(crate) const START: Address = Address(4096);
/// Length of the initial region in bytes.
pub(crate) const BYTES: usize = 8192;
pub(crate) const PROCESS: ProcessId = ProcessId(0x1234_5678);
/// Distance between regions in bytes.
const APART: u64 = 1 << 32;
const FREE_BYTES: u64 = 1 << 20;

pub(crate) struct Memory(BTreeMap<u64, Vec<u8>>);

impl Memory {
    pub(crate) fn new() -> Memory {
        Memory([(START.0, vec![0; BYTES])].into())
    }

    fn part(&mut self, address: Address, bytes: u64) -> Result<&mut [u8], OffloadError> {
        let found = self.0.range_mut(..=address.0).next_back();
        let part = found.and_then(|(at, region)| {
            let from = (address.0 - at) as usize;
            region.get_mut(from..from.checked_add(bytes as usize)?)
        });
        part.ok_or(OffloadError::Unmapped { address, bytes })
    }
}

impl View for Memory {
    fn read<'v>(
        &'v mut self,
        address: Address,
        bytes: u64,
        _: &'v mut Vec<u8>,
    ) -> Result<&'v [u8], OffloadError> {
        self.part(address, bytes).map(|part| &*part)
    }

    fn write(&mut self, address: Address, data: &[u8]) -> Result<(), OffloadError> {
        self.part(address, data.len() as u64)?.copy_from_slice(data);
        Ok(())
    }

    fn modify(&mut self, address: Address, operation: RmwOperation) -> Result<u64, OffloadError> {
        if !address.0.is_multiple_of(8) {
            return Err(OffloadError::Misaligned { address });
        }
        let word = self.part(address, 8)?;
        let before = u64::from_le_bytes((&*word).try_into().expect("eight octets"));
        word.copy_from_slice(&operation.apply(before).to_le_bytes());
        Ok(before)
    }

    fn allocate(&mut self, bytes: u64, _: Permissions) -> Result<Address, OffloadError> {
        if bytes > FREE_BYTES {
            return Err(OffloadError::Full { bytes, free: FREE_BYTES });
        }
        let at = APART * (1 + self.0.len() as u64);
        self.0.insert(at, vec![0; bytes as usize]);
        Ok(Address(at))
    }

    fn free(&mut self, address: Address) -> Result<(), OffloadError> {
        let gone = self.0.remove(&address.0).map(drop);
        gone.ok_or(OffloadError::Unmapped { address, bytes: 1 })
    }

    fn process(&self) -> ProcessId {
        PROCESS
    }

    fn install(&mut self, _: &str, _: Option<Arc<dyn Offload>>) -> Result<(), OffloadError> {
        panic!("a module installs nothing");
    }
}
