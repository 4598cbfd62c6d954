//! `local:`: memory of this process. An operation completes when it is submitted. The exceptions
//! are locks that another thread holds, which are retried, and sleeps.

use std::time::{Duration, Instant};

use ethermem_offload::NodeMemory;
use ethermem_pool::{
    Access, Address, Asker, Backend, Ended, Error, Facts, Op, OpId, Opened, Outcome, ProcessId,
    Progress, Reply, Segment, Wait,
};
use ethermem_units::Ps;
use ethermem_wire::RmwOperation;

use crate::node::{Node, NodeView};
use crate::open_error::OpenError;
use crate::scheme::Url;

/// Longest pause between two tries of a lock.
const LOCK_WAIT_MAX: Duration = Duration::from_micros(50);

/// Opens `local:`.
pub(crate) fn open(url: &Url<'_>) -> Result<Opened, OpenError> {
    if !url.place.is_empty() {
        return Err(OpenError::Place { scheme: "local", found: url.place.to_owned() });
    }
    let memory_bytes = url.parameters()?.number("memory_bytes").unwrap_or(u64::MAX);
    Ok(Opened { backend: Box::new(Local::new(memory_bytes)), facts: Facts::new(1, 1) })
}

/// The backend of `local:`.
struct Local {
    node: Node,
    opened: Instant,
    waiting: Vec<ParkedOperation>,
    /// Time without a completion while operations waited.
    patience: Duration,
}

struct ParkedOperation {
    id: OpId,
    what: What,
}

enum What {
    Lock { process: ProcessId, word: Address, holder: u64 },
    Until(Ps),
}

impl Local {
    fn new(memory_bytes: u64) -> Local {
        let (node, opened) = (Node::new(0, memory_bytes), Instant::now());
        Local { node, opened, waiting: Vec::new(), patience: Duration::ZERO }
    }

    fn read(&self, asker: Asker, segments: &[Segment]) -> Outcome {
        // The buffer grows with the bytes that are found: the segment may not be mapped.
        let mut bytes = Vec::new();
        for segment in segments {
            let part = self.node.read(asker.process, segment.address, segment.bytes)?;
            bytes.extend_from_slice(part);
        }
        Ok(Reply::Bytes(bytes))
    }

    fn write(&mut self, asker: Asker, segments: &[Segment], data: &[u8]) -> Outcome {
        // As in the other backends, an address on no node is refused before anything is sent.
        let nowhere = segments.iter().find(|segment| !self.node.has(segment.address));
        if let Some(&Segment { address, bytes }) = nowhere {
            return Err(Error::Unmapped { address, bytes });
        }
        let (mut rest, mut done) = (data, Ok(Reply::Done));
        for segment in segments {
            let (part, others) = rest.split_at(segment.bytes as usize);
            let written = self.node.write(asker.process, segment.address, part);
            done = done.and_then(|reply| written.map(|()| reply));
            rest = others;
        }
        done
    }

    /// Tries to take a lock, and returns whether it was taken.
    fn try_lock(&mut self, process: ProcessId, word: Address, holder: u64) -> Result<bool, Error> {
        let take = RmwOperation::CompareAndSwap { expected: 0, desired: holder };
        self.node.modify(process, word, take).map(|before| before == 0)
    }

    fn wait(&mut self, id: OpId, what: What) -> Option<Outcome> {
        self.waiting.push(ParkedOperation { id, what });
        None
    }
}

impl Backend for Local {
    fn now(&self) -> Ps {
        let passed = self.opened.elapsed().as_nanos();
        Ps(u64::try_from(passed).unwrap_or(u64::MAX).saturating_mul(1000))
    }

    fn begin(&mut self, id: OpId, asker: Asker, op: Op) -> Option<Outcome> {
        let process = asker.process;
        let done = match op {
            Op::Read(segments) => self.read(asker, &segments),
            Op::Write(segments, data) => self.write(asker, &segments, &data),
            Op::Modify(address, operation) => {
                self.node.modify(process, address, operation).map(Reply::Word)
            }
            Op::Lock { word, holder } => match self.try_lock(process, word, holder) {
                Ok(true) => Ok(Reply::Done),
                Ok(false) => return self.wait(id, What::Lock { process, word, holder }),
                Err(error) => Err(error),
            },
            Op::Alloc { bytes, permissions, .. } => {
                self.node.alloc(process, bytes, permissions).map(Reply::Address)
            }
            Op::Free(address, bytes) => {
                let region = Segment { address, bytes };
                self.node.free(process, region).map(|()| Reply::Done)
            }
            Op::Share { region, with, permissions } => {
                let shared = self.node.share(process, region, with, permissions);
                shared.map(|()| Reply::Done)
            }
            Op::Offload { name, offload, arguments, .. } => {
                let offload = offload.expect("the node is here");
                let mut view = NodeView::new(&mut self.node, process);
                let ended = offload.run(&mut NodeMemory::new(&mut view), &arguments);
                ended.map(Reply::Bytes).map_err(|error| Error::of_offload(&name, error))
            }
            Op::Fence | Op::Flush => Ok(Reply::Done),
            Op::Sleep(until) if until > self.now() => return self.wait(id, What::Until(until)),
            Op::Sleep(_) => Ok(Reply::Done),
        };
        Some(done)
    }

    fn progress(&mut self, ended: &mut Ended) -> Progress {
        let ended = &mut ended.operations;
        let (now, before) = (self.now(), ended.len());
        let mut wake = LOCK_WAIT_MAX;
        for waiting in std::mem::take(&mut self.waiting) {
            let done = match waiting.what {
                What::Lock { process, word, holder } => {
                    match self.try_lock(process, word, holder) {
                        Ok(true) => Some(Ok(Reply::Done)),
                        Ok(false) => None,
                        Err(error) => Some(Err(error)),
                    }
                }
                What::Until(until) if until <= now => Some(Ok(Reply::Done)),
                What::Until(until) => {
                    wake = wake.min(Duration::from_nanos((until - now).0 / 1000));
                    None
                }
            };
            match done {
                Some(outcome) => ended.push((waiting.id, outcome)),
                None => self.waiting.push(waiting),
            }
        }
        if ended.len() > before {
            self.patience = Duration::ZERO;
            Progress::Ended
        } else if self.waiting.is_empty() {
            Progress::Idle
        } else {
            // The first pauses are so short that the machine thread only yields.
            self.patience = (self.patience * 2 + Duration::from_nanos(100)).min(wake);
            Progress::Wait(self.patience)
        }
    }

    fn waits(&self) -> Option<(usize, Wait)> {
        let first = match self.waiting.first()?.what {
            What::Lock { word, .. } => Wait::Lock(word),
            What::Until(_) => Wait::Sleep,
        };
        Some((self.waiting.len(), first))
    }

    fn at_once(&mut self, asker: Asker, access: Access<'_>) -> Option<Result<u64, Error>> {
        let process = asker.process;
        Some(match access {
            Access::Read(from, to) => {
                let found = self.node.read(process, from, to.len() as u64);
                found.map(|bytes| to.copy_from_slice(bytes)).map(|()| 0)
            }
            Access::Write(to, from) => self.node.write(process, to, from).map(|()| 0),
            Access::Modify(word, operation) => self.node.modify(process, word, operation),
        })
    }
}
