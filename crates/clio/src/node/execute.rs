//! Execution of requests other than reads: writes, atomics and locks of the fast path, and the
//! dispatch of the slow path's requests.

use ethermem_units::Ns;
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{ClioStatus, Permissions, ProcessId, Request};

use super::answers::Data;
use super::machine::{Busy, Node};
use super::recent::{Name, Outcome};
use super::tenants::Tenant;
use crate::memory::{AccessError, SpaceId};

/// The requester: its space, its process, and its tenant.
pub(super) type Asker = (SpaceId, ProcessId, Tenant);

/// The word of a lock that a process holds.
fn lock_word(process: ProcessId, holder: u32) -> u64 {
    u64::from(process.0) << 32 | u64::from(holder)
}

pub(super) fn refused(status: ClioStatus, detail: u64) -> Outcome {
    Outcome::Refused(status, detail)
}

/// The requested address; 0 means any.
fn wanted(at: u64) -> Option<u64> {
    (at != 0).then_some(at)
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Node<B> {
    pub(super) fn dispatch(
        &mut self,
        now: Ns,
        (name, asker): (Name, Asker),
        body: &Request<'_>,
    ) -> Outcome {
        let (space, process, tenant) = asker;
        let name = Some(name);
        match *body {
            Request::Write { address, data } => self.write(space, address, data),
            Request::Modify { address, operation } => self.modify(space, address, operation),
            Request::TestAndSet { address } => self.modify(space, address, RmwOperation::Swap(1)),
            Request::Lock { address, holder } => {
                self.lock(now, (space, tenant), address, lock_word(process, holder))
            }
            Request::Unlock { address, holder } => {
                self.unlock(space, address, lock_word(process, holder))
            }
            // A request is done before the next one is executed.
            Request::Fence | Request::KeepAlive => Outcome::Done,
            Request::Allocate { bytes, at, permissions } => {
                self.allocate(name, asker, bytes, wanted(at), permissions)
            }
            Request::Free { address } => self.release(name, asker, address),
            Request::Share { address, at, with, permissions } => {
                self.share(now, (name, asker), address, (with, wanted(at), permissions))
            }
            Request::EndProcess => self.end_process(name, asker),
            Request::CreateProcess
            | Request::Offload { .. }
            | Request::Read { .. }
            | Request::Hello
            | Request::Acknowledge(_)
            | Request::Probe { .. } => unreachable!("it has a way of its own"),
        }
    }

    pub(super) fn access_refused(&mut self, error: AccessError) -> Outcome {
        let status = match error {
            AccessError::Unmapped => ClioStatus::Unmapped,
            AccessError::Permission => ClioStatus::Permission,
            AccessError::Misaligned => ClioStatus::Misaligned,
            AccessError::Length => ClioStatus::BadLength,
            AccessError::Dry => return self.busy(Busy::Pages),
        };
        refused(status, 0)
    }

    fn write(&mut self, space: SpaceId, address: u64, data: &[u8]) -> Outcome {
        let (most, bytes) = (self.config.data_bytes_max, self.data.bytes(data));
        if bytes > most as usize {
            return refused(ClioStatus::BadLength, most.into());
        }
        let written = match self.data {
            Data::Elsewhere(_) => self
                .memory
                .extent(space, (address, bytes), Permissions::WRITE)
                .map(|place| self.data = Data::Awaited(place)),
            _ => self.memory.write(space, address, data),
        };
        written.map_or_else(|error| self.access_refused(error), |()| Outcome::Done)
    }

    fn modify(&mut self, space: SpaceId, address: u64, operation: RmwOperation) -> Outcome {
        let before = self.memory.modify(space, address, operation);
        before.map_or_else(|error| self.access_refused(error), Outcome::Word)
    }

    /// Takes a lock that is free or whose holder is a dead process. The lock's word names its
    /// holder, so the node keeps no record of holders.
    ///
    /// A process of another tenant never counts as a holder here, whatever the word says: the
    /// answer would reveal which process numbers are alive.
    fn lock(
        &mut self,
        now: Ns,
        (space, tenant): (SpaceId, Tenant),
        address: u64,
        own: u64,
    ) -> Outcome {
        let take = |expected| RmwOperation::CompareAndSwap { expected, desired: own };
        let found = match self.memory.modify(space, address, take(0)) {
            Ok(0) => return Outcome::Done,
            Ok(found) => found,
            Err(error) => return self.access_refused(error),
        };
        let holder = ProcessId((found >> 32) as u32);
        if self.processes.alive(now, holder, tenant).is_some() {
            return refused(ClioStatus::Held, found);
        }
        let taken = self.memory.modify(space, address, take(found));
        debug_assert_eq!(taken, Ok(found), "nothing came between");
        Outcome::OwnerDied
    }

    fn unlock(&mut self, space: SpaceId, address: u64, own: u64) -> Outcome {
        let give = RmwOperation::CompareAndSwap { expected: own, desired: 0 };
        match self.memory.modify(space, address, give) {
            Ok(found) if found == own => Outcome::Done,
            Ok(found) => refused(ClioStatus::NotHeld, found),
            Err(error) => self.access_refused(error),
        }
    }

    pub(super) fn create_process(&mut self, now: Ns, tenant: Tenant) -> Outcome {
        if self.ending {
            return self.busy(Busy::Ending);
        }
        if !self.tenants.take_process(tenant) {
            return refused(ClioStatus::Quota, 0);
        }
        match self.processes.create(now, tenant) {
            Some((process, _)) => Outcome::Created(process),
            None => {
                self.tenants.give_process(tenant);
                self.busy(Busy::Processes)
            }
        }
    }
}
