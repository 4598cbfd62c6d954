//! Reads and writes that a machine thread waits for at once. They need no place in the lists of
//! operations: their request is all that there is of them.

use std::time::Duration;

use ethermem_clio::transport::{Completed, Event, OperationError, OperationId};
use ethermem_wire::clio::Request;

use super::Remote;
use super::asked::Asked;
use super::running::{REQUEST_BYTES_MAX, Running, Tries, Work};
use crate::address::ProcessId;
use crate::error::Error;
use crate::world::{Asker, Segment, Waited, WaitedId};

impl Remote {
    /// Begins it; `None` of what is more than one request, or refused.
    pub(super) fn begin_alone(&mut self, asker: Asker, waited: Waited<'_>) -> Option<WaitedId> {
        let process = asker.process;
        let segment = waited.segment();
        let is_plain = segment.address.memory() == 0 && segment.bytes <= REQUEST_BYTES_MAX;
        if !is_plain || self.gone(process).is_some() {
            return None;
        }
        let operation = match waited {
            Waited::Read(segment) => self.read_alone(process, segment),
            Waited::Write(address, data) => {
                let client = self.driver.client();
                client.submit_write(process, address.0, data.to_vec())
            }
        };
        self.asked.insert(operation, Asked::Alone(process));
        self.send();
        let is_read = matches!(waited, Waited::Read(_));
        Some(WaitedId { operation, process, segment, is_read, tries: Tries::first(self.answers) })
    }

    fn read_alone(&mut self, process: ProcessId, segment: Segment) -> OperationId {
        let (address, bytes) = (segment.address.0, segment.bytes as u32);
        self.driver.client().submit(process, Request::Read { address, bytes })
    }

    /// How it ended, with what was read in `to`; else how long the machine may rest.
    pub(super) fn look_alone(
        &mut self,
        id: &mut WaitedId,
        to: &mut [u8],
    ) -> Result<Result<(), Error>, Duration> {
        self.send_gathered();
        self.turn();
        while let Some(event) = self.driver.client().poll_event() {
            if event.operation == id.operation {
                self.asked.remove(id.operation);
                self.heard_of(id.process, &event.outcome);
                return self.finish(id, event.outcome, to);
            }
            self.hear(event);
        }
        if let Some(place) = self.alone.iter().position(|event| event.operation == id.operation) {
            let Event { outcome, .. } = self.alone.swap_remove(place);
            return self.finish(id, outcome, to);
        }
        if let Some(problem) = self.broken.clone() {
            self.asked.remove(id.operation);
            return Ok(Err(Error::Refused { node: self.node.clone(), problem }));
        }
        self.wake();
        Err(self.rest())
    }

    /// Its outcome is there: how it ended, or how long the machine may rest while another try is
    /// under way.
    fn finish(
        &mut self,
        id: &mut WaitedId,
        outcome: Result<Completed, OperationError>,
        to: &mut [u8],
    ) -> Result<Result<(), Error>, Duration> {
        self.parked.retain(|(operation, _)| *operation != id.operation);
        let error = match outcome {
            Ok(Completed::Bytes(bytes)) => {
                to.copy_from_slice(&bytes);
                return Ok(Ok(()));
            }
            Ok(_) => return Ok(Ok(())),
            Err(error) => error,
        };
        let is_lost = matches!(error, OperationError::Lost);
        if is_lost
            && id.is_read
            && self.gone(id.process).is_none()
            && id.tries.read_again(self.answers)
        {
            id.operation = self.read_alone(id.process, id.segment);
            self.asked.insert(id.operation, Asked::Alone(id.process));
            self.send();
            return Err(self.rest());
        }
        if is_lost {
            return Ok(Err(self.no_answer(id.tries.count)));
        }
        let work = if id.is_read { Work::Read } else { Work::Write };
        let running = Running::of_one(id.process, work, id.tries);
        Ok(Err(running.error_of(&self.node, id.segment, error)))
    }
}

impl Waited<'_> {
    fn segment(&self) -> Segment {
        match *self {
            Waited::Read(segment) => segment,
            Waited::Write(address, data) => Segment { address, bytes: data.len() as u64 },
        }
    }
}
