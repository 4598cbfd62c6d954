//! The extend path: operations that run at the node.

use std::sync::Arc;

use ethermem_units::Ns;
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{
    ClioOpcode, ClioStatus, Permissions, ProcessId, RESPONSE_BYTES, Reply, RequestId,
    RequestPacket, ResponsePacket,
};

use super::execute::Asker;
use super::machine::{Answers, Arrived, Busy, Node, no_such_process};
use super::recent::{Known, Name, Outcome, Place};
use super::runs::Run;
use crate::address::Address;
use crate::memory::{ACCESS_BYTES_MAX, AccessError, SpaceId, VirtualMemory};
use crate::offload::{
    ENDED_FAILED, ENDED_RESULT, ENDED_STOPPED, NodeMemory, Offload, OffloadError, View,
};

/// Longest read of an operation: what an answer can hold many times over.
const READ_BYTES_MAX: u64 = 1 << 20;
/// Accesses of one operation: some tens of milliseconds in which nobody else is served.
const ACCESSES_MAX: u64 = 1 << 20;
/// Bytes of pages that are made ready at a time when an operation finds none; one page, if that is
/// more.
const REFILL_BYTES: u64 = 64 << 10;

impl<B: AsRef<[u8]> + AsMut<[u8]>> Node<B> {
    /// Runs an operation, once where it changes something.
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
        let mut place = None;
        if offload.changes(arguments) {
            match self.known(arrived.now, known) {
                Ok(free) => place = Some(free),
                Err((Outcome::Kept, Some(place))) => {
                    let kept = self.recent.kept(place);
                    return answers.put(&answer(Reply::Bytes(kept)));
                }
                Err((outcome, _)) => return answers.put(&answer(outcome.into())),
            }
        }
        let caller = (space, packet.process, arrived.tenant);
        let limits = self.tenants.offload_limits(arrived.tenant);
        let ended = match offload.begin(&limits, arguments) {
            Some(Ok(job)) => {
                let acts = match self.acts(arrived.now, caller, (name, &*offload)) {
                    Ok(acts) => acts,
                    Err(refused) => return answers.put(&answer(refused.into())),
                };
                match self.begin_run(Run { name: known, caller, acts, job }) {
                    Some(ended) => ended,
                    None => return answers.put(&answer(Busy::Running.refused().into())),
                }
            }
            Some(Err(error)) => body(Err(error), self.config.data_bytes_max as usize),
            None => {
                let mut view = Extended::new(self, caller);
                let ended = offload.run(&mut NodeMemory::new(&mut view), arguments);
                self.counters.executed += 1;
                body(ended, answers.room().saturating_sub(RESPONSE_BYTES + 1))
            }
        };
        if place.is_some() {
            self.keep_end(arrived.now, known, space, ended.clone());
        }
        put(answers, (attempt, request), &ended);
    }

    /// For whom an operation acts that is about to begin.
    fn acts(
        &mut self,
        now: Ns,
        caller: Asker,
        (name, offload): (&str, &dyn Offload),
    ) -> Result<Asker, Outcome> {
        if !self.runs.has_room(caller.2) {
            return Err(self.busy(Busy::Runs));
        }
        if offload.has_own_space() { self.own_space(now, caller.2, name) } else { Ok(caller) }
    }

    /// The place for the result of a request that is new, or what became of it before and where
    /// that is.
    fn known(&mut self, now: Ns, name: Name) -> Result<Place, (Outcome, Option<Place>)> {
        match self.recent.find(now, name) {
            Known::Executed(outcome, place) => {
                self.counters.repeated += 1;
                Err((outcome, Some(place)))
            }
            Known::Reused => Err((Outcome::Refused(ClioStatus::Malformed, 0), None)),
            Known::New(place) if self.recent.has_room_for_results(now) => Ok(place),
            Known::New(_) | Known::Full => Err((self.busy(Busy::Recent), None)),
        }
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

/// What is answered: an octet that says how it ended, and a result or a line for people.
pub(super) fn body(ended: Result<Vec<u8>, OffloadError>, room: usize) -> Ended {
    let tagged = |tag: u8, bytes: &[u8]| [&[tag], bytes].concat();
    let line =
        |tags: &[u8], line: &str| Ok([tags, &line.as_bytes()[..line.len().min(room)]].concat());
    let refused = |status, detail| Err(Outcome::Refused(status, detail));
    match ended {
        Ok(result) if result.len() <= room => Ok(tagged(ENDED_RESULT, &result)),
        Ok(result) => {
            let problem = format!("a result of {} B: allowed are {room}", result.len());
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

/// How an operation ended: what is answered, or why it is refused.
pub(super) type Ended = Result<Vec<u8>, Outcome>;

/// A process's memory, as the operations that act for it see it.
pub(super) struct Extended<'n, B> {
    node: &'n mut Node<B>,
    acts: Asker,
    /// Accesses that it may still make.
    left: u64,
}

impl<'n, B: AsRef<[u8]> + AsMut<[u8]>> Extended<'n, B> {
    pub(super) fn new(node: &'n mut Node<B>, acts: Asker) -> Extended<'n, B> {
        Extended { node, acts, left: ACCESSES_MAX }
    }

    /// Does an access. An operation that finds no page ready has done half of its work, and has
    /// pages made ready instead of being tried again: no more are promised than there are.
    fn access<T>(
        &mut self,
        (address, bytes): (Address, u64),
        needed: Permissions,
        mut access: impl FnMut(&mut VirtualMemory<B>, SpaceId) -> Result<T, AccessError>,
    ) -> Result<T, OffloadError> {
        if address.memory() != 0 {
            return Err(OffloadError::Unmapped { address, bytes });
        }
        let line = || OffloadError::Failed(format!("more than {ACCESSES_MAX} accesses"));
        self.left = self.left.checked_sub(1).ok_or_else(line)?;
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
                AccessError::Length => {
                    let line = format!("{bytes} B at once: allowed are 1 to {READ_BYTES_MAX}");
                    return Err(OffloadError::Failed(line));
                }
            }
        }
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> View for Extended<'_, B> {
    fn read<'v>(
        &'v mut self,
        address: Address,
        bytes: u64,
        room: &'v mut Vec<u8>,
    ) -> Result<&'v [u8], OffloadError> {
        if bytes > READ_BYTES_MAX {
            let refused = |_: &mut VirtualMemory<B>, _| Err::<(), _>(AccessError::Length);
            self.access((address, bytes), Permissions::READ, refused)?;
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
        let mut at = address;
        for part in data.chunks(ACCESS_BYTES_MAX) {
            let whole = (at, part.len() as u64);
            self.access(whole, Permissions::WRITE, |memory, space| {
                memory.write(space, at.0, part)
            })?;
            at = at.add(part.len() as u64);
        }
        Ok(())
    }

    fn modify(&mut self, address: Address, operation: RmwOperation) -> Result<u64, OffloadError> {
        self.access((address, 8), Permissions::READ_WRITE, |memory, space| {
            memory.modify(space, address.0, operation)
        })
    }

    fn allocate(&mut self, bytes: u64, permissions: Permissions) -> Result<Address, OffloadError> {
        match self.node.allocate(self.acts, bytes, None, permissions) {
            Outcome::Address(address) => Ok(Address(address)),
            Outcome::Refused(ClioStatus::Full | ClioStatus::Quota, free) => {
                Err(OffloadError::Full { bytes, free })
            }
            refused => Err(OffloadError::Failed(format!("{bytes} B: {refused:?}"))),
        }
    }

    fn free(&mut self, address: Address) -> Result<(), OffloadError> {
        match self.node.release(self.acts, address.0) {
            Outcome::Done => Ok(()),
            _ => Err(OffloadError::Unmapped { address, bytes: 1 }),
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
            self.node.end_process(space);
        }
        Ok(())
    }
}
