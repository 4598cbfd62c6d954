//! The processes of a pool at its node: made, kept alive, and ended.

use std::time::{Duration, Instant};

use ethermem_clio::transport::{Completed, OperationError};
use ethermem_pool::{Error, ProcessId};
use ethermem_wire::clio::{ClioStatus, Epoch, NodeFacts, Request};

use super::asked::Asked;
use super::{REST_MAX, Remote};

/// Processes are kept alive so many times in a lease, so that some may be lost.
const BEATS_IN_LEASE: u32 = 4;

/// What became of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Alive,
    /// The node has started anew since.
    Restarted,
    Ended,
}

impl Remote {
    /// A number that a thread of this pool has had, in an earlier life of the node, is not used
    /// again: the thread would have the new process's memory.
    pub(super) fn create_process(&mut self) -> Result<ProcessId, Error> {
        let mut taken = Vec::new();
        let mut life = self.life;
        let made = loop {
            let asked = self.ask(ProcessId(0), Request::CreateProcess);
            if self.life != life {
                // What was made before is gone, and its number may be another pool's.
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

    /// Why nothing can be asked for a process any more.
    pub(super) fn gone(&self, process: ProcessId) -> Option<Error> {
        let node = || self.node.clone();
        match self.processes.get(&process) {
            Some(Life::Alive) => None,
            Some(Life::Restarted) => Some(Error::Restarted { node: node() }),
            Some(Life::Ended) | None => Some(Error::ProcessEnded { node: node() }),
        }
    }

    /// What the transport has come to know of the node's life. At once, and not when somebody asks
    /// how an operation ended: what is begun meanwhile would go to a process of the new life.
    pub(super) fn notice(&mut self) {
        let epoch = self.driver.client().epoch();
        if epoch == self.epoch {
            return;
        }
        if self.epoch != Epoch::UNKNOWN {
            self.life += 1;
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
        if let Err(OperationError::Refused { status: ClioStatus::NoSuchProcess, detail, .. }) =
            outcome
            && *detail == u64::from(process.0)
        {
            self.processes.insert(process, Life::Ended);
        }
    }

    /// They live as long as their client is heard of, whether or not anybody waits.
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

    fn alive(&self) -> Vec<ProcessId> {
        let alive = self.processes.iter().filter(|(_, life)| **life == Life::Alive);
        alive.map(|(&process, _)| process).collect()
    }

    /// Ends all processes, for so long at most; whether the node has said so of each.
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
    // What is longer than a pool could live is no lease.
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
