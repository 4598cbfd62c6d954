//! The pool's processes at its node: created, kept alive, and ended.

use std::time::{Duration, Instant};

use ethermem_clio::transport::{Completed, OperationError};
use ethermem_pool::{Error, ProcessId};
use ethermem_wire::clio::{ClioStatus, Epoch, NodeFacts, Request};

use super::asked::Asked;
use super::{REST_MAX, Remote};

/// Number of keep-alives per lease, so that some may be lost.
const BEATS_IN_LEASE: u32 = 4;

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Alive,
    /// The node has restarted since.
    Restarted,
    Ended,
}

impl Remote {
    /// Creates a process. A number that a thread of this pool had before a restart of the node is
    /// not reused: that thread would access the new process's memory.
    pub(super) fn create_process(&mut self) -> Result<ProcessId, Error> {
        let mut taken = Vec::new();
        let mut life = self.life;
        let made = loop {
            let asked = self.ask(ProcessId(0), Request::CreateProcess);
            if self.life != life {
                // Earlier processes are gone, and their numbers may belong to other pools.
                life = self.life;
                taken.clear();
                if matches!(asked, Ok(_) | Err(Error::Restarted { .. })) {
                    continue;
                }
            }
            match asked {
                Ok(Completed::Created(process)) if self.processes.contains_key(&process) => {
                    taken.push(process);
                }
                Ok(Completed::Created(process)) => break Ok(process),
                Ok(_) => unreachable!("a process is made or refused"),
                Err(error) => break Err(error),
            }
        };
        for process in taken {
            let asked = self.driver.client().submit(process, Request::EndProcess);
            self.asked.insert(asked, Asked::End);
        }
        self.send();
        made.inspect(|&process| {
            self.processes.insert(process, Life::Alive);
        })
    }

    /// The error of operations of a process that no longer exists.
    pub(super) fn gone(&self, process: ProcessId) -> Option<Error> {
        let node = || self.node.clone();
        match self.processes.get(&process) {
            Some(Life::Alive) => None,
            Some(Life::Restarted) => Some(Error::Restarted { node: node() }),
            Some(Life::Ended) | None => Some(Error::ProcessEnded { node: node() }),
        }
    }

    /// Records a restart that the transport has noticed. It must be recorded at once: an operation
    /// begun before the next poll would otherwise go to a process of the restarted node.
    pub(super) fn notice(&mut self) {
        let epoch = self.driver.client().epoch();
        if epoch == self.epoch {
            return;
        }
        if self.epoch != Epoch::UNKNOWN {
            self.life += 1;
            self.doubts += 1;
            for life in self.processes.values_mut().filter(|life| **life == Life::Alive) {
                *life = Life::Restarted;
            }
        }
        self.epoch = epoch;
        if let Some(facts) = self.driver.client().facts() {
            self.lease = lease(&facts);
        }
    }

    pub(super) fn heard_of(
        &mut self,
        process: ProcessId,
        outcome: &Result<Completed, OperationError>,
    ) {
        if matches!(outcome, Ok(_) | Err(OperationError::Refused { .. })) {
            self.answers += 1;
        }
        if matches!(outcome, Err(OperationError::Lost)) {
            self.doubts += 1;
        }
        if let Err(OperationError::Refused { status: ClioStatus::NoSuchProcess, detail, .. }) =
            outcome
            && *detail == u64::from(process.0)
        {
            self.processes.insert(process, Life::Ended);
            self.doubts += 1;
        }
    }

    /// Sends keep-alives, because the node ends processes of a silent client, waited for or not.
    pub(super) fn keep_alive(&mut self) {
        if let Some(lease) = self.lease
            && self.beat.elapsed() >= lease / BEATS_IN_LEASE
        {
            self.beat = Instant::now();
            for process in self.alive() {
                let asked = self.driver.client().submit(process, Request::KeepAlive);
                self.asked.insert(asked, Asked::Alive(process));
            }
            self.send();
        }
    }

    /// Time until processes must be kept alive again.
    pub(super) fn until_beat(&self) -> Duration {
        self.lease.map_or(Duration::MAX, |lease| {
            (lease / BEATS_IN_LEASE).saturating_sub(self.beat.elapsed())
        })
    }

    fn alive(&self) -> Vec<ProcessId> {
        let alive = self.processes.iter().filter(|(_, life)| **life == Life::Alive);
        alive.map(|(&process, _)| process).collect()
    }

    /// Ends all processes within at most `most`, and returns whether the node has confirmed each.
    pub(super) fn end_processes(&mut self, most: Duration) -> bool {
        for process in self.alive() {
            let asked = self.driver.client().submit(process, Request::EndProcess);
            self.asked.insert(asked, Asked::End);
            self.processes.insert(process, Life::Ended);
        }
        self.send();
        let (began, sleeper) = (Instant::now(), self.driver.sleeper());
        let ends = |asked: &Asked| matches!(asked, Asked::End);
        while self.asked.iter().any(ends) && self.broken.is_none() && began.elapsed() < most {
            self.turn();
            while let Some(event) = self.driver.client().poll_event() {
                self.hear(event);
            }
            sleeper.sleep(self.driver.rest().unwrap_or(REST_MAX).min(REST_MAX));
        }
        !self.asked.iter().any(ends)
    }
}

fn lease(facts: &NodeFacts) -> Option<Duration> {
    // A lease longer than any pool lives counts as none.
    (facts.lease_ms > 0 && facts.lease_ms < u64::MAX / 1_000_000)
        .then(|| Duration::from_millis(facts.lease_ms))
}

#[cfg(test)]
mod tests {
    use ethermem_units::Bytes;
    use ethermem_wire::clio::Epoch;

    use super::*;

    #[test]
    fn a_lease_is_what_may_be_over_while_a_pool_lives() {
        let of = |lease_ms| {
            let (page_bytes, data_bytes_max, lifetime_us_max) = (4096, 1400, 1000);
            let (epoch, memory) = (Epoch(1), Bytes(1 << 20));
            let sizes =
                NodeFacts { epoch, page_bytes, data_bytes_max, lifetime_us_max, memory, lease_ms };
            lease(&sizes)
        };
        let longest = u64::MAX / 1_000_000 - 1;
        for lease_ms in [1, 60_000, longest] {
            assert_eq!(of(lease_ms), Some(Duration::from_millis(lease_ms)));
        }
        for lease_ms in [0, longest + 1, u64::MAX] {
            assert_eq!(of(lease_ms), None);
        }
    }
}
