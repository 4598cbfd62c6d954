//! What follows the end of an operation of the inner backend.

use ethermem_pool::{Asker, Ended, Error, Op, Outcome, ProcessId, Reply};
use smallvec::SmallVec;

use super::{Asked, Awaits, Cached, Purpose, Work};

impl Cached {
    /// Handles what the inner backend has handed over.
    pub(super) fn settle_ended(&mut self, ended: &mut Ended) {
        ended.waited.append(&mut self.ended.waited);
        if self.ended.operations.is_empty() {
            return;
        }
        let mut operations = std::mem::take(&mut self.ended.operations);
        for (id, outcome) in operations.drain(..) {
            self.settle(id.place(), outcome);
        }
        self.ended.operations = operations;
        self.notice_doubt();
        self.unpark();
        self.settle_due();
    }

    /// Handles what ended when it began.
    pub(super) fn settle_due(&mut self) {
        while let Some((asked, outcome)) = self.due.pop_front() {
            self.settle(asked, outcome);
            self.unpark();
        }
    }

    fn settle(&mut self, asked: usize, outcome: Outcome) {
        let Asked { process, purpose } = self.asked.remove(asked);
        let error = outcome.as_ref().err().cloned();
        if let Some(error @ (Error::Restarted { .. } | Error::ProcessEnded { .. })) = &error {
            self.lose(process, error);
        }
        match purpose {
            Purpose::Passed(id) => self.done.push((id, outcome)),
            Purpose::Alloc { id, bytes, permissions } => {
                if let Ok(Reply::Address(address)) = outcome {
                    self.recent = None;
                    self.regions.add(process, address, bytes, permissions);
                }
                self.done.push((id, outcome));
            }
            Purpose::Pass(place) => {
                self.passed(place);
                let Work::Pass(pass) = self.works.remove(place) else {
                    unreachable!("it ends with its operation")
                };
                debug_assert!(pass.is_sent());
                self.done.push((pass.id, outcome));
            }
            Purpose::Fetch(fetches) => self.fetched(&fetches, outcome),
            Purpose::WriteBack(lines) => self.written(process, &lines, error.as_ref()),
            Purpose::Probe(doubts) => self.probed(process, doubts, error),
        }
    }

    fn fetched(&mut self, fetches: &[u32], outcome: Outcome) {
        self.fetches -= 1;
        let (bytes, error) = match outcome {
            Ok(Reply::Bytes(bytes)) => (bytes, None),
            Ok(_) => unreachable!("a read gives bytes"),
            Err(error) => (Vec::new(), Some(error)),
        };
        let lines = bytes.as_chunks().0;
        for (at, &fetch) in fetches.iter().enumerate() {
            self.cache.fill(fetch, lines.get(at));
            self.filled(fetch, error.as_ref());
        }
    }

    fn written(&mut self, process: ProcessId, lines: &[u64], error: Option<&Error>) {
        let Some(error) = error else {
            for &line in lines {
                if self.leaving.acknowledged(line) {
                    self.write_back(SmallVec::from_slice(&[line]));
                }
            }
            return;
        };
        let is_owned = |line: u64| self.regions.at_line(line).is_some();
        let is_lost = !error.is_uncertain();
        if is_lost && lines.iter().any(|&line| is_owned(line)) {
            self.failures.entry(process).or_insert_with(|| error.clone());
        }
        for &line in lines {
            if is_lost || self.regions.at_line(line).is_none() {
                self.leaving.drop_line(line);
            } else {
                self.leaving.unanswered(line, error);
            }
        }
        self.fail(error, |awaits, _| awaits == Awaits::Leaving);
    }

    /// Everything of a process is gone, and so are its writes that were not flushed.
    fn lose(&mut self, process: ProcessId, error: &Error) {
        self.doubtful.remove(&process);
        if self.regions.has(process) {
            self.recent = None;
            self.regions.remove_all(process);
            self.leaving.purge(&self.regions);
            self.failures.entry(process).or_insert_with(|| error.clone());
        }
    }

    /// Asks the node whether it still has a process, unless that is being asked.
    pub(super) fn probe(&mut self, asker: Asker) {
        if self.probing.insert(asker.process) {
            self.ask(asker, Purpose::Probe(self.doubts), Op::Fence);
        }
    }

    fn probed(&mut self, process: ProcessId, doubts: u64, error: Option<Error>) {
        self.probing.remove(&process);
        match error {
            None if doubts == self.inner.doubts() => drop(self.doubtful.remove(&process)),
            // Something happened meanwhile: the next access asks again.
            None => {}
            // Without regions its accesses go to the node, and get the node's error.
            Some(Error::Restarted { .. } | Error::ProcessEnded { .. }) => {}
            Some(error) => {
                self.fail(&error, |awaits, asker| {
                    awaits == Awaits::Probe && asker.process == process
                });
            }
        }
    }

    /// Gives parked works an error, with which they end when they are tried next.
    fn fail(&mut self, error: &Error, is_meant: impl Fn(Awaits, Asker) -> bool) {
        for &place in &self.parked {
            let (held, awaits, asker) = match &mut self.works[place] {
                Work::Access(access) => (&mut access.error, access.awaits, access.asker),
                Work::Pass(pass) => (&mut pass.error, pass.awaits, pass.asker),
                Work::Flush(_) | Work::Taken => continue,
            };
            if is_meant(awaits, asker) {
                held.get_or_insert_with(|| error.clone());
            }
        }
    }
}
