//! What comes from the node: outcomes of requests, and the end of the socket.

use std::time::{Duration, Instant};

use ethermem_clio::transport::{Completed, Event, OperationError};
use ethermem_pool::{Address, Error};
use ethermem_wire::clio::ClioStatus;

use super::asked::Asked;
use super::{LOCK_WAIT_MAX, ParkedOperation, Remote};

/// Shortest pause between two tries of a lock.
const LOCK_WAIT_MIN: Duration = Duration::from_micros(2);

impl Remote {
    /// Takes what has come, and handles it.
    pub(super) fn listen(&mut self) {
        self.turn();
        while let Some(event) = self.driver.client().poll_event() {
            self.hear(event);
        }
        if let Some(problem) = self.broken.clone() {
            self.break_off(&problem);
        }
    }

    /// Handles the outcome of a request.
    pub(super) fn hear(&mut self, event: Event) {
        let Event { operation, outcome } = event;
        let Some(asked) = self.asked.remove(operation) else { return };
        let (id, touched) = match asked {
            Asked::Part(id, touched) => (id, touched),
            Asked::Alive(process) => return self.heard_of(process, &outcome),
            Asked::End | Asked::Here => return,
            Asked::Alone(waited) => {
                self.heard_of(self.alone[waited.place()].process, &outcome);
                self.alone[waited.place()].outcome = Some(outcome);
                return self.ended_alone.push(waited);
            }
        };
        let running = self.running[id.place()].as_mut().expect("its request was under way");
        let (process, lock) = (running.process, running.lock());
        if matches!(outcome, Err(OperationError::Lost))
            && let Some(ask) = running.read_again(self.answers, touched)
        {
            self.submit(id, process, ask, touched);
            return self.send();
        }
        self.heard_of(process, &outcome);
        let outcome = match lock {
            Some(lock) => self.own_lock(lock, outcome),
            None => outcome,
        };
        let running = self.running[id.place()].as_mut().expect("its request was under way");
        let held = running.take(&self.node, touched, outcome);
        let open = running.open;
        if held {
            let rest = LOCK_WAIT_MIN;
            let known = self.waiting.iter_mut().find(|waiting| waiting.id == id);
            let now = Instant::now();
            match known {
                Some(ParkedOperation { until, rest: Some(rest), .. }) => {
                    *rest = (*rest * 2).min(LOCK_WAIT_MAX);
                    *until = now + *rest;
                }
                _ => self.waiting.push(ParkedOperation { id, until: now + rest, rest: Some(rest) }),
            }
        } else if open == 0 {
            self.end(id);
        }
    }

    /// Handles the outcome of a lock's try whose earlier try was lost: the caller finds itself
    /// holding the lock, and would wait for itself. The lost response may have said that a dead
    /// process had held the lock, so the caller is told that.
    fn own_lock(
        &mut self,
        lock: (Address, u64),
        outcome: Result<Completed, OperationError>,
    ) -> Result<Completed, OperationError> {
        match outcome {
            Err(OperationError::Lost) => {
                self.lost_locks.insert(lock);
            }
            Ok(_) => {
                self.lost_locks.remove(&lock);
            }
            Err(OperationError::Refused { status: ClioStatus::Held, detail, .. })
                if detail == lock.1 && self.lost_locks.remove(&lock) =>
            {
                return Ok(Completed::OwnerDied);
            }
            Err(_) => {}
        }
        outcome
    }

    /// Fails everything in flight, because the socket is broken.
    fn break_off(&mut self, problem: &str) {
        self.doubts += 1;
        for running in self.running.iter_mut().filter_map(Option::take) {
            let (node, problem) = (self.node.clone(), problem.to_owned());
            self.ended.push((running.id, Err(Error::Refused { node, problem })));
            self.open -= 1;
        }
        self.asked.clear();
        self.waiting.retain(|waiting| waiting.rest.is_none());
    }
}
