//! The extend path: operations that run at the node.

use std::sync::Arc;

use ethermem_units::Ns;
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{
    ClioOpcode, ClioStatus, Permissions, ProcessId, RESPONSE_BYTES, Reply, RequestId,
    RequestPacket, ResponsePacket,
};

use super::answers::Answers;
use super::execute::Asker;
use super::machine::{Arrived, Busy, Node, no_such_process};
use super::recent::{Known, Outcome};
use super::runs::{ActiveRun, Job};
use super::tenants::Tenant;
use crate::Address;
use crate::memory::{ACCESS_BYTES_MAX, AccessError, SpaceId, VirtualMemory};
use crate::offload::{
    ENDED_FAILED, ENDED_RESULT, ENDED_STOPPED, NodeMemory, Offload, OffloadError, View, WORK_MAX,
    too_much_work, work,
};

/// Maximum bytes of an operation's read: many times the size of an answer.
const READ_BYTES_MAX: u64 = 1 << 20;
/// Bytes of pages that are prepared at a time when an operation finds none; one page, if a page is
/// larger.
const REFILL_BYTES: u64 = 64 << 10;

impl<B: AsRef<[u8]> + AsMut<[u8]>> Node<B> {
    /// Runs an operation; one that changes memory runs once.
    pub(super) fn extend(
        &mut self,
        arrived: &Arrived,
        packet: &RequestPacket<'_>,
        (name, arguments): (&str, &[u8]),
        answers: &mut Answers<'_>,
    ) {
        let (attempt, request) = (packet.attempt, packet.request);
        let opcode = ClioOpcode::Offload as u8;
        let answer = |reply| ResponsePacket { opcode, attempt, request, reply };
        let Some(space) = self.processes.heard(arrived.now, packet.process, arrived.tenant) else {
            return answers.put(&answer(no_such_process(packet.process).into()));
        };
        let known = arrived.name(request, ClioOpcode::Offload);
        if let Some(ended) = self.known_run(known) {
            return put(answers, (attempt, request), &ended);
        }
        let tenant = self.tenants.id(arrived.tenant);
        let Some(offload) = self.offloads.get_for(tenant, name).cloned() else {
            return answers.put(&answer(Reply::Refused(ClioStatus::NoSuchOffload, 0)));
        };
        let changes = offload.changes(arguments);
        let has_place = match self.recent.find(arrived.now, known) {
            Known::Executed(outcome, place) => {
                self.counters.repeated += 1;
                let reply = match outcome {
                    Outcome::Kept => Reply::Bytes(self.recent.kept(place)),
                    outcome => outcome.into(),
                };
                return answers.put(&answer(reply));
            }
            Known::Reused => return answers.put(&answer(Reply::Refused(ClioStatus::Malformed, 0))),
            Known::New(_) if self.recent.has_room_for_results(arrived.now, arrived.tenant) => true,
            Known::New(_) | Known::Full => false,
        };
        if changes && !has_place {
            return answers.put(&answer(self.busy(Busy::Recent).into()));
        }
        let caller = (space, packet.process, arrived.tenant);
        let limits = self.tenants.offload_limits(arrived.tenant);
        let ended = match offload.begin(&limits, arguments) {
            Some(Ok(job)) => {
                let acts = match self.acts(arrived.now, caller, (name, &*offload, changes)) {
                    Ok(acts) => acts,
                    Err(refused) => return answers.put(&answer(refused.into())),
                };
                let name = Some(known);
                self.begin_run(ActiveRun { name, caller, acts, job: Job::Offload(job) })
            }
            Some(Err(error)) => Ok(body(Err(error), self.config.data_bytes_max as usize)),
            None if self.runs.datagram_is_over() => Err(self.busy(Busy::Runs)),
            None => {
                let room = answers.room().saturating_sub(RESPONSE_BYTES + 1);
                Ok(self.run_whole(caller, &*offload, arguments, room))
            }
        };
        match ended {
            Ok(ended) => {
                if changes {
                    self.keep_end(arrived.now, known, space, ended.clone());
                }
                put(answers, (attempt, request), &ended);
            }
            Err(busy) => answers.put(&answer(busy.into())),
        }
    }

    /// Runs an operation that has no slices to its end.
    fn run_whole(
        &mut self,
        caller: Asker,
        offload: &dyn Offload,
        arguments: &[u8],
        room: usize,
    ) -> Ended {
        let mut view = Extended::new(self, caller);
        let mut memory = NodeMemory::new(&mut view);
        let ended = offload.run(&mut memory, arguments);
        let work = memory.work();
        self.runs.worked(work);
        let ended = body(ended, room);
        self.ran(caller.2, &ended);
        ended
    }

    /// Counts an operation that has ended.
    pub(super) fn ran(&mut self, tenant: Tenant, ended: &Ended) {
        self.counters.executed += 1;
        if ended.is_ok() {
            self.tenants.executed(tenant, ClioOpcode::Offload);
        }
    }

    /// The process for which an operation that is about to begin acts.
    fn acts(
        &mut self,
        now: Ns,
        caller: Asker,
        (name, offload, changes): (&str, &dyn Offload, bool),
    ) -> Result<Asker, Outcome> {
        // An operation that changes nothing may be dropped after its first slice, and restarted.
        if (changes || self.runs.datagram_is_over()) && !self.runs.has_room(caller.2) {
            return Err(self.busy(Busy::Runs));
        }
        if offload.has_own_space() { self.own_space(now, caller.2, name) } else { Ok(caller) }
    }

    pub(super) fn kept_until(&self, now: Ns) -> Ns {
        now.saturating_add(self.config.keep)
    }
}

fn put(answers: &mut Answers<'_>, (attempt, request): (u8, RequestId), ended: &Ended) {
    let reply = match ended {
        Ok(result) => Reply::Bytes(result),
        Err(refused) => (*refused).into(),
    };
    answers.put(&ResponsePacket { opcode: ClioOpcode::Offload as u8, attempt, request, reply });
}

/// The body of the answer: an octet that says how the operation ended, then a result or an error
/// text.
pub(super) fn body(ended: Result<Vec<u8>, OffloadError>, room: usize) -> Ended {
    let tagged = |tag: u8, bytes: &[u8]| [&[tag], bytes].concat();
    let line =
        |tags: &[u8], line: &str| Ok([tags, &line.as_bytes()[..line.len().min(room)]].concat());
    let refused = |status, detail| Err(Outcome::Refused(status, detail));
    match ended {
        Ok(result) if result.len() <= room => Ok(tagged(ENDED_RESULT, &result)),
        Ok(result) => {
            let problem = format!("a result of {} B: must be at most {room}", result.len());
            line(&[ENDED_FAILED], &problem)
        }
        Err(OffloadError::Failed(problem)) => line(&[ENDED_FAILED], &problem),
        Err(error @ OffloadError::Full { .. }) => line(&[ENDED_FAILED], &error.to_string()),
        Err(OffloadError::Stopped { why, problem }) => line(&[ENDED_STOPPED, why as u8], &problem),
        Err(OffloadError::Unmapped { address, .. }) => refused(ClioStatus::Unmapped, address.0),
        Err(OffloadError::Permission { address, .. }) => refused(ClioStatus::Permission, address.0),
        Err(OffloadError::Misaligned { address }) => refused(ClioStatus::Misaligned, address.0),
    }
}

/// The end of an operation: the body of its answer, or the reason of its refusal.
pub(super) type Ended = Result<Vec<u8>, Outcome>;

/// A process's memory, as seen by operations that act for it.
pub(super) struct Extended<'n, B> {
    node: &'n mut Node<B>,
    acts: Asker,
    /// Work that the operation may still do.
    left: u64,
}

impl<'n, B: AsRef<[u8]> + AsMut<[u8]>> Extended<'n, B> {
    pub(super) fn new(node: &'n mut Node<B>, acts: Asker) -> Extended<'n, B> {
        Extended { node, acts, left: WORK_MAX }
    }

    /// Subtracts the work of an access of this many bytes from the rest.
    fn pay(&mut self, bytes: u64) -> Result<(), OffloadError> {
        self.left = self.left.checked_sub(work(bytes)).ok_or_else(too_much_work)?;
        Ok(())
    }

    /// Performs an access, and subtracts its work from the rest.
    fn access<T>(
        &mut self,
        whole: (Address, u64),
        needed: Permissions,
        access: impl FnMut(&mut VirtualMemory<B>, SpaceId) -> Result<T, AccessError>,
    ) -> Result<T, OffloadError> {
        self.pay(whole.1)?;
        self.access_paid(whole, needed, access)
    }

    /// Performs an access. An operation that finds no page ready has done a part of its work, so it
    /// cannot be retried; pages are prepared instead. They suffice, since no more pages are
    /// promised than exist.
    fn access_paid<T>(
        &mut self,
        (address, bytes): (Address, u64),
        needed: Permissions,
        mut access: impl FnMut(&mut VirtualMemory<B>, SpaceId) -> Result<T, AccessError>,
    ) -> Result<T, OffloadError> {
        if address.memory() != 0 {
            return Err(OffloadError::Unmapped { address, bytes });
        }
        loop {
            let error = match access(&mut self.node.memory, self.acts.0) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            match error {
                AccessError::Dry if self.node.memory.map().wants_refill() => {
                    self.node.memory.refill(REFILL_BYTES);
                }
                AccessError::Dry => return Err(OffloadError::failed("no page is ready")),
                AccessError::Unmapped => return Err(OffloadError::Unmapped { address, bytes }),
                AccessError::Permission => {
                    return Err(OffloadError::Permission { address, needed });
                }
                AccessError::Misaligned => return Err(OffloadError::Misaligned { address }),
                AccessError::Length => return Err(too_long(bytes)),
            }
        }
    }
}

/// The accesses that make up a write, in order.
fn pieces(address: Address, data: &[u8]) -> impl Iterator<Item = (Address, &[u8])> {
    let chunks = data.chunks(ACCESS_BYTES_MAX).enumerate();
    chunks.map(move |(at, part)| (address.add((at * ACCESS_BYTES_MAX) as u64), part))
}

fn too_long(bytes: u64) -> OffloadError {
    OffloadError::Failed(format!("{bytes} B at once: must be 1 to {READ_BYTES_MAX}"))
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> View for Extended<'_, B> {
    fn read<'v>(
        &'v mut self,
        address: Address,
        bytes: u64,
        room: &'v mut Vec<u8>,
    ) -> Result<&'v [u8], OffloadError> {
        if bytes > READ_BYTES_MAX {
            return Err(too_long(bytes));
        }
        room.resize(bytes as usize, 0);
        let mut at = address;
        for part in room.chunks_mut(ACCESS_BYTES_MAX) {
            let whole = (at, part.len() as u64);
            self.access(whole, Permissions::READ, |memory, space| memory.read(space, at.0, part))?;
            at = at.add(part.len() as u64);
        }
        Ok(room)
    }

    fn write(&mut self, address: Address, data: &[u8]) -> Result<(), OffloadError> {
        pieces(address, data).try_for_each(|(at, part)| {
            let whole = (at, part.len() as u64);
            self.access(whole, Permissions::WRITE, |memory, space| memory.write(space, at.0, part))
        })
    }

    fn write_all(&mut self, writes: &[(Address, &[u8])]) -> Result<(), OffloadError> {
        let parts = || writes.iter().flat_map(|(address, data)| pieces(*address, data));
        // All checks that can fail come first: work, permissions, and a page for each first touch.
        for (at, part) in parts() {
            let (length, needed) = (part.len(), Permissions::WRITE);
            self.access((at, length as u64), needed, |memory, space| {
                memory.prepare_write(space, at.0, length)
            })?;
        }
        for (at, part) in parts() {
            let whole = (at, part.len() as u64);
            self.access_paid(whole, Permissions::WRITE, |memory, space| {
                memory.write(space, at.0, part)
            })?;
        }
        Ok(())
    }

    fn modify(&mut self, address: Address, operation: RmwOperation) -> Result<u64, OffloadError> {
        self.access((address, 8), Permissions::READ_WRITE, |memory, space| {
            memory.modify(space, address.0, operation)
        })
    }

    fn allocate(&mut self, bytes: u64, permissions: Permissions) -> Result<Address, OffloadError> {
        let allocated = self.node.allocate_now(self.acts, bytes, permissions);
        match allocated.map_err(OffloadError::Failed)? {
            Outcome::Address(address) => Ok(Address(address)),
            Outcome::Refused(ClioStatus::Full | ClioStatus::Quota, free) => {
                Err(OffloadError::Full { bytes, free })
            }
            refused => Err(OffloadError::Failed(format!("{bytes} B: {refused:?}"))),
        }
    }

    fn free(&mut self, address: Address) -> Result<(), OffloadError> {
        match self.node.release(None, self.acts, address.0) {
            Outcome::Done => Ok(()),
            // The memory is released slice by slice, and has no other use meanwhile.
            Outcome::Refused(ClioStatus::Busy, why) if why == Busy::Running as u64 => Ok(()),
            Outcome::Refused(ClioStatus::Busy, _) => {
                Err(OffloadError::failed("too many requests are under way"))
            }
            _ => Err(OffloadError::Unmapped { address, bytes: 0 }),
        }
    }

    fn process(&self) -> ProcessId {
        self.acts.1
    }

    fn result_bytes_max(&self) -> usize {
        self.node.config.data_bytes_max as usize
    }

    fn install(
        &mut self,
        name: &str,
        offload: Option<Arc<dyn Offload>>,
    ) -> Result<(), OffloadError> {
        let tenant = self.acts.2;
        let (id, limits) = (self.node.tenants.id(tenant), self.node.tenants.offload_limits(tenant));
        let gone = offload.is_none();
        self.node.offloads.install(id, name, offload, limits.loaded_max)?;
        if let Some(space) = self.node.runs.own_space(tenant, name).filter(|_| gone) {
            // The process's memory is taken back between datagrams.
            self.node.runs.forget(space);
            self.node.processes.kill(space);
        }
        Ok(())
    }
}
