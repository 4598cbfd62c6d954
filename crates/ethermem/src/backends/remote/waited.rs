//! Reads and writes whose machine thread waits for each. They need no entry in the lists of
//! operations, because each is exactly one request.

use std::time::Duration;

use ethermem_clio::transport::{Completed, Landing, Loan, OperationError, OperationId};
use ethermem_pool::{Asker, Error, Lent, ProcessId, Segment, Waited, WaitedId};

use super::Remote;
use super::asked::Asked;
use super::running::{REQUEST_BYTES_MAX, Tries, Work};

/// Shortest write whose data are sent from its caller's memory. A copy of fewer costs less than
/// what a loan adds to each look.
const LENT_BYTES_MIN: usize = 8 << 10;

/// An access that its machine thread waits for.
pub(super) struct Alone {
    operation: OperationId,
    pub(super) process: ProcessId,
    segment: Segment,
    is_read: bool,
    /// True for a write whose caller lends its data.
    is_lent: bool,
    tries: Tries,
    /// The outcome, once it is there and until the machine thread takes it.
    pub(super) outcome: Option<Result<Completed, OperationError>>,
}

impl Remote {
    /// Begins the access; `None` if it is more than one request, or refused.
    pub(super) fn begin_alone(&mut self, asker: Asker, waited: Waited<'_>) -> Option<WaitedId> {
        let process = asker.process;
        let segment = match waited {
            Waited::Read(segment) => segment,
            Waited::Write(address, data) => Segment { address, bytes: data.len() as u64 },
        };
        let is_plain = segment.address.memory() == 0 && segment.bytes <= REQUEST_BYTES_MAX;
        if !is_plain || self.gone(process).is_some() {
            return None;
        }
        let lent = match waited {
            Waited::Write(_, data) if data.len() >= LENT_BYTES_MIN => Some(data),
            Waited::Write(..) | Waited::Read(_) => None,
        };
        let operation = match (waited, lent) {
            (Waited::Read(segment), _) => self.read_alone(process, segment),
            (Waited::Write(address, _), Some(data)) => {
                let bytes = data.len() as u64;
                self.driver.client().submit_write_lent(process, address.0, bytes)
            }
            (Waited::Write(address, data), None) => {
                self.driver.client().submit_write_from(process, address.0, data)
            }
        };
        let (is_read, is_lent) = (matches!(waited, Waited::Read(_)), lent.is_some());
        let tries = Tries::first(self.answers);
        let alone = Alone { operation, process, segment, is_read, is_lent, tries, outcome: None };
        let id = WaitedId::new(self.alone.insert(alone));
        self.asked.insert(operation, Asked::Alone(id));
        self.send_from(lent.map(|data| Loan { operation, data }));
        Some(id)
    }

    fn read_alone(&mut self, process: ProcessId, segment: Segment) -> OperationId {
        let (address, bytes) = (segment.address.0, segment.bytes as u32);
        self.driver.client().submit_read_into(process, address, bytes)
    }

    /// Returns the access's end, with the bytes read in the lent buffer, or how long the machine
    /// thread may rest.
    pub(super) fn look_alone(
        &mut self,
        id: WaitedId,
        mut lent: Lent<'_>,
    ) -> Result<Result<(), Error>, Duration> {
        self.turn_alone(id, lent.again());
        let Alone { operation, process, .. } = self.alone[id.place()];
        while let Some(event) = self.driver.client().poll_event() {
            if event.operation == operation {
                self.asked.remove(operation);
                self.heard_of(process, &event.outcome);
                return self.finish(id, event.outcome, lent);
            }
            self.hear(event);
        }
        if let Some(outcome) = self.alone[id.place()].outcome.take() {
            return self.finish(id, outcome, lent);
        }
        if let Some(problem) = self.broken.clone() {
            self.asked.remove(operation);
            self.alone.remove(id.place());
            return Ok(Err(Error::Refused { node: self.node.clone(), problem }));
        }
        self.wake();
        Err(self.rest())
    }

    /// Makes progress, with the memory that the access's machine thread lends.
    fn turn_alone(&mut self, id: WaitedId, lent: Lent<'_>) {
        let Alone { operation, is_lent, .. } = self.alone[id.place()];
        let loan = lent.data().filter(|_| is_lent).map(|data| Loan { operation, data });
        if let (Lent::Copy { to, .. }, Some(loan)) = (&lent, loan) {
            self.driver.client().copy_lent(loan, *to as u64);
        }
        if self.gathered > 0 {
            self.send_from(loan);
        }
        match (lent, loan) {
            (Lent::To(to), _) => self.turn_into(Some(&mut Landing { operation, to })),
            (_, Some(loan)) => self.turn_from(loan),
            (_, None) => self.turn(),
        }
    }

    /// Handles its outcome: returns its end, or how long the machine thread may rest while another
    /// try is in flight.
    fn finish(
        &mut self,
        id: WaitedId,
        outcome: Result<Completed, OperationError>,
        lent: Lent<'_>,
    ) -> Result<Result<(), Error>, Duration> {
        let error = match outcome {
            Ok(completed) => {
                self.alone.remove(id.place());
                // What arrived in turns of other threads.
                if let (Completed::Landed(parts), Lent::To(to)) = (completed, lent) {
                    for (from, bytes) in parts {
                        to[from as usize..][..bytes.len()].copy_from_slice(&bytes);
                    }
                }
                return Ok(Ok(()));
            }
            Err(error) => error,
        };
        let is_lost = matches!(error, OperationError::Lost);
        let Alone { process, segment, is_read, mut tries, .. } = self.alone[id.place()];
        if is_lost && is_read && self.gone(process).is_none() && tries.read_again(self.answers) {
            let operation = self.read_alone(process, segment);
            let alone = &mut self.alone[id.place()];
            (alone.operation, alone.tries) = (operation, tries);
            self.asked.insert(operation, Asked::Alone(id));
            self.send();
            return Err(self.rest());
        }
        self.alone.remove(id.place());
        if is_lost {
            return Ok(Err(self.no_answer(tries.count)));
        }
        let work = if is_read { Work::Read } else { Work::Write };
        Ok(Err(work.error_of(process, &self.node, segment, error)))
    }
}
