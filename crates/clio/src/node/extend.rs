//! The extend path: operations that run at the node.

use ethermem_units::Ns;
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{
    ClioOpcode, ClioStatus, Permissions, RESPONSE_BYTES, Reply, RequestPacket, ResponsePacket,
};

use super::machine::{Answers, Arrived, Busy, Node, no_such_process};
use super::recent::{Known, Outcome, Place};
use crate::address::Address;
use crate::memory::{ACCESS_BYTES_MAX, AccessError, SpaceId, VirtualMemory};
use crate::offload::{ENDED_FAILED, ENDED_RESULT, NodeMemory, OffloadError, View};

/// Longest read of an operation: what an answer can hold many times over.
const READ_BYTES_MAX: u64 = 1 << 20;
/// Accesses of one operation: some tens of milliseconds in which nobody else is served.
const ACCESSES_MAX: u64 = 1 << 20;
/// Pages that are made ready at once when an operation finds none, in bytes.
const REFILL_BYTES: u64 = 4 << 20;

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
        let Some(offload) = self.offloads.get(name).cloned() else {
            return answers.put(&answer(Reply::Refused(ClioStatus::NoSuchOffload, 0)));
        };
        let mut place = None;
        if offload.changes(arguments) {
            match self.known(arrived, packet) {
                Ok(free) => place = Some(free),
                Err(Outcome::Kept) => {
                    let kept = self.recent.kept(arrived.sender, request);
                    return answers.put(&answer(Reply::Bytes(kept)));
                }
                Err(outcome) => return answers.put(&answer(outcome.into())),
            }
        }
        let mut view = Extended { memory: &mut self.memory, space, left: ACCESSES_MAX };
        let mut memory = NodeMemory::new(&mut view);
        let ended = offload.run(&mut memory, arguments);
        self.counters.executed += 1;
        let room = answers.room().saturating_sub(RESPONSE_BYTES + 1);
        let result = match body(ended, room) {
            Ok(result) => result,
            Err(refused) => {
                if let Some(place) = place {
                    let until = self.kept_until(arrived.now);
                    self.recent.keep(place, (arrived.sender, request), until, refused);
                }
                return answers.put(&answer(refused.into()));
            }
        };
        answers.put(&answer(Reply::Bytes(&result)));
        if let Some(place) = place {
            let until = self.kept_until(arrived.now);
            self.recent.keep_result(place, (arrived.sender, request), until, result);
        }
    }

    /// The place for the result of a request that is new, or what became of it before.
    fn known(&mut self, arrived: &Arrived, packet: &RequestPacket<'_>) -> Result<Place, Outcome> {
        match self.recent.find(arrived.now, arrived.sender, packet.request) {
            Known::Executed(outcome) => {
                self.counters.repeated += 1;
                Err(outcome)
            }
            Known::New(place) if self.recent.has_room_for_results(arrived.now) => Ok(place),
            Known::New(_) | Known::Full => Err(self.busy(Busy::Recent)),
        }
    }

    fn kept_until(&self, now: Ns) -> Ns {
        now.saturating_add(self.config.keep)
    }
}

/// What is answered: an octet that says how it ended, and a result or a line for people.
fn body(ended: Result<Vec<u8>, OffloadError>, room: usize) -> Result<Vec<u8>, Outcome> {
    let tagged = |tag: u8, bytes: &[u8]| [&[tag], bytes].concat();
    let refused = |status, detail| Err(Outcome::Refused(status, detail));
    match ended {
        Ok(result) if result.len() <= room => Ok(tagged(ENDED_RESULT, &result)),
        Ok(result) => {
            let line = format!("a result of {} B: allowed are {room}", result.len());
            Ok(tagged(ENDED_FAILED, line.as_bytes()))
        }
        Err(OffloadError::Failed(line)) => {
            Ok(tagged(ENDED_FAILED, &line.as_bytes()[..line.len().min(room)]))
        }
        Err(OffloadError::Unmapped { address, .. }) => refused(ClioStatus::Unmapped, address.0),
        Err(OffloadError::Permission { address, .. }) => refused(ClioStatus::Permission, address.0),
        Err(OffloadError::Misaligned { address }) => refused(ClioStatus::Misaligned, address.0),
    }
}

/// A process's memory, as the operations that it asked for see it.
struct Extended<'n, B> {
    memory: &'n mut VirtualMemory<B>,
    space: SpaceId,
    /// Accesses that it may still make.
    left: u64,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Extended<'_, B> {
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
            let error = match access(self.memory, self.space) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            match error {
                AccessError::Dry if self.memory.map().wants_refill() => {
                    self.memory.refill(REFILL_BYTES);
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
}
