//! One operation in flight on a simulated fabric: its messages, and the effect of each.

use std::sync::Arc;

use ethermem_offload::{NodeMemory, Offload};
use ethermem_pool::{
    Address, Asker, Error, Op, OpId, Outcome, Permissions, ProcessId, Reply, Segment, Segments,
};
use ethermem_sim::Kind;
use ethermem_wire::{RMW_BYTES, RmwOperation};

use super::caching::Key;
use crate::node::{Node, NodeView};

/// The range of one message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Index of the memory node, from 0.
    pub(super) memory: u16,
    /// The caller's range that this is part of; it is allowed, refused and reported as a whole.
    pub(super) place: Segment,
    /// Offset of its first byte in `place`.
    pub(super) at: u64,
    pub(super) bytes: u64,
    /// Offset of its first byte in the operation's bytes.
    pub(super) offset: u64,
}

impl Default for Part {
    fn default() -> Part {
        let place = Segment { address: Address::NULL, bytes: 0 };
        Part { memory: 0, place, at: 0, bytes: 0, offset: 0 }
    }
}

/// Direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// To the memory node, or to the node and back for a read.
    Request,
    /// From the memory node, as the end of a call.
    Answer,
    /// Through the cache of the compute node, which has lines of this region.
    Cached(Key),
    /// Dirty lines to their memory nodes.
    Clean,
}

/// A message in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageState {
    pub(super) id: OpId,
    pub(super) part: Part,
    pub(super) phase: Phase,
    /// True if its effect at the memory node has happened.
    pub(super) acted: bool,
}

/// An operation in flight.
pub(super) struct Running {
    pub(super) id: OpId,
    pub(super) asker: Asker,
    work: Work,
    /// True while it waits for others, or for a time, without a message in flight.
    pub(super) waits: bool,
    /// True once the caches have nothing dirty of what it needs at its memory node.
    pub(super) is_clean: bool,
    /// Number of messages in flight.
    pub(super) messages: u32,
    /// Memory accesses of its calls that are not yet accounted for.
    pub(super) accesses: u64,
    pub(super) tries: u32,
    /// The first error; boxed, because errors are rare.
    error: Option<Box<Error>>,
}

pub(super) enum Work {
    /// `bytes` is empty until the first of them have arrived.
    Read {
        segments: Segments,
        bytes: Vec<u8>,
    },
    Write {
        segments: Segments,
        data: Vec<u8>,
    },
    Modify {
        address: Address,
        operation: RmwOperation,
        before: u64,
    },
    Lock {
        word: Address,
        holder: u64,
        before: u64,
    },
    Call(Box<Call>),
    Fence,
    Flush,
    Sleep,
}

pub(super) struct Call {
    pub(super) service: Service,
    pub(super) memory: u16,
    reply: Reply,
}

/// The work of a memory node's slow path and of its offloads.
pub(super) enum Service {
    Alloc { bytes: u64, permissions: Permissions },
    Free(Segment),
    Share { region: Segment, with: ProcessId, permissions: Permissions },
    Offload { name: String, offload: Arc<dyn Offload>, arguments: Vec<u8> },
}

impl Running {
    /// An operation that has sent nothing yet. It is refused if its memory node is not among the
    /// `memory_nodes`.
    pub(super) fn new(id: OpId, asker: Asker, op: Op, memory_nodes: u16) -> Result<Running, Error> {
        let known = |address: Address, bytes: u64| {
            let known = address.memory() < memory_nodes;
            if known { Ok(address.memory()) } else { Err(Error::Unmapped { address, bytes }) }
        };
        let all_known = |segments: &Segments| {
            segments.iter().try_for_each(|s| known(s.address, s.bytes).map(|_| ()))
        };
        let call =
            |service, memory| Work::Call(Box::new(Call { service, memory, reply: Reply::Done }));
        let work = match op {
            Op::Read(segments) => {
                all_known(&segments)?;
                Work::Read { segments, bytes: Vec::new() }
            }
            Op::Write(segments, data) => {
                all_known(&segments)?;
                Work::Write { segments, data }
            }
            Op::Modify(address, operation) => {
                known(address, RMW_BYTES.0)?;
                Work::Modify { address, operation, before: 0 }
            }
            Op::Lock { word, holder } => {
                known(word, RMW_BYTES.0)?;
                Work::Lock { word, holder, before: 0 }
            }
            Op::Alloc { memory, bytes, permissions } => {
                call(Service::Alloc { bytes, permissions }, memory)
            }
            Op::Free(address, bytes) => {
                call(Service::Free(Segment { address, bytes }), known(address, bytes)?)
            }
            Op::Share { region, with, permissions } => {
                let memory = known(region.address, region.bytes)?;
                call(Service::Share { region, with, permissions }, memory)
            }
            Op::Offload { memory, name, offload, arguments, .. } => {
                let offload = offload.expect("the nodes are here");
                call(Service::Offload { name, offload, arguments }, memory)
            }
            Op::Fence => Work::Fence,
            Op::Flush => Work::Flush,
            Op::Sleep(_) => Work::Sleep,
        };
        Ok(Running {
            id,
            asker,
            work,
            waits: false,
            is_clean: false,
            messages: 0,
            accesses: 0,
            tries: 0,
            error: None,
        })
    }

    pub(super) fn work(&self) -> &Work {
        &self.work
    }

    /// What an atomic does with its word.
    pub(super) fn operation(&self) -> Option<RmwOperation> {
        match self.work {
            Work::Modify { operation, .. } => Some(operation),
            Work::Lock { holder, .. } => Some(take(holder)),
            _ => None,
        }
    }

    /// Takes bytes that a message has read, or the word before an atomic.
    pub(super) fn take(&mut self, part: Part, read: &[u8]) {
        match &mut self.work {
            Work::Read { segments, bytes } => {
                let total: usize = segments.iter().map(|segment| segment.bytes as usize).sum();
                let from = part.offset as usize;
                bytes.resize(total, 0);
                bytes[from..from + read.len()].copy_from_slice(read);
            }
            Work::Modify { before, .. } | Work::Lock { before, .. } => {
                *before = u64::from_le_bytes(read.try_into().expect("a word is 8 B"));
            }
            _ => unreachable!("nothing else reads through a cache"),
        }
    }

    /// True if each of its messages is answered by another one.
    pub(super) fn is_call(&self) -> bool {
        matches!(self.work, Work::Call(_) | Work::Fence)
    }

    /// Its message, if it has exactly one and is no call, as is usual.
    pub(super) fn message(&self, part_bytes_max: u64) -> Option<(Kind, Part)> {
        let part = |place: Segment| {
            let (memory, bytes) = (place.address.memory(), place.bytes);
            Part { memory, place, bytes, ..Part::default() }
        };
        let only = |segments: &Segments| match segments[..] {
            [place] if place.bytes <= part_bytes_max => Some(part(place)),
            _ => None,
        };
        match &self.work {
            Work::Read { segments, .. } => only(segments).map(|part| (Kind::Read, part)),
            Work::Write { segments, .. } => only(segments).map(|part| (Kind::Write, part)),
            Work::Modify { address, .. } | Work::Lock { word: address, .. } => {
                let word = Segment { address: *address, bytes: RMW_BYTES.0 };
                Some((Kind::ReadModifyWrite, part(word)))
            }
            Work::Call(_) | Work::Fence | Work::Flush | Work::Sleep => None,
        }
    }

    /// Its messages: their kind, their parts, and whether they are calls. `used` lists the memory
    /// nodes that the process has used.
    pub(super) fn messages(
        &self,
        part_bytes_max: u64,
        used: impl Fn() -> Vec<u16>,
    ) -> (Kind, Vec<Part>, bool) {
        let to = |memory| Part { memory, ..Part::default() };
        match &self.work {
            Work::Read { segments, .. } => (Kind::Read, split(segments, part_bytes_max), false),
            Work::Write { segments, .. } => (Kind::Write, split(segments, part_bytes_max), false),
            Work::Modify { .. } | Work::Lock { .. } => unreachable!("it has one message"),
            Work::Call(call) => {
                let bytes = match &call.service {
                    Service::Offload { arguments, .. } => arguments.len() as u64,
                    _ => 0,
                };
                (Kind::Write, vec![Part { bytes, ..to(call.memory) }], true)
            }
            Work::Fence => (Kind::Write, used().into_iter().map(to).collect(), true),
            Work::Flush | Work::Sleep => (Kind::Write, Vec::new(), false),
        }
    }

    /// Applies a message that has arrived at the memory node, and returns the number of memory
    /// accesses beyond its own.
    pub(super) fn act(&mut self, node: &mut Node, part: Part) -> u64 {
        let process = self.asker.process;
        let range = part.offset as usize..(part.offset + part.bytes) as usize;
        let of_place = part.at as usize..(part.at + part.bytes) as usize;
        let Segment { address: place, bytes: place_bytes } = part.place;
        let mut accesses = 0;
        let done = match &mut self.work {
            Work::Read { segments, bytes } => {
                node.read(process, place, place_bytes).map(|found| {
                    let found = &found[of_place];
                    let total: usize = segments.iter().map(|segment| segment.bytes as usize).sum();
                    if found.len() == total {
                        *bytes = found.to_vec();
                        return;
                    }
                    // Only found bytes extend the buffer: the rest may not be mapped.
                    bytes.resize(bytes.len().max(range.end), 0);
                    bytes[range].copy_from_slice(found);
                })
            }
            Work::Write { data, .. } => {
                let to = node.writable(process, place, place_bytes, Permissions::WRITE);
                to.map(|to| to[of_place].copy_from_slice(&data[range]))
            }
            Work::Modify { address, operation, before } => {
                node.modify(process, *address, *operation).map(|word| *before = word)
            }
            Work::Lock { word, holder, before } => {
                node.modify(process, *word, take(*holder)).map(|word| *before = word)
            }
            Work::Call(call) => {
                let done;
                (done, accesses) = call.service.run(node, process);
                done.map(|done| call.reply = done)
            }
            Work::Fence | Work::Flush | Work::Sleep => Ok(()),
        };
        if let Err(error) = done {
            self.fail(error);
        }
        accesses
    }

    /// Records an error; the first one becomes the operation's result.
    pub(super) fn fail(&mut self, error: Error) {
        self.error.get_or_insert_with(|| Box::new(error));
    }

    /// Length of a call's response in bytes.
    pub(super) fn answer_bytes(&self) -> u64 {
        match &self.work {
            Work::Call(call) => match &call.reply {
                Reply::Bytes(bytes) => bytes.len() as u64,
                _ => 0,
            },
            _ => 0,
        }
    }

    /// True for a lock that another thread holds.
    pub(super) fn must_retry(&self) -> bool {
        self.refused_lock().is_some()
    }

    /// Word of a lock that another thread held at the last try.
    pub(super) fn refused_lock(&self) -> Option<Address> {
        match self.work {
            Work::Lock { word, before: 1.., .. } if self.error.is_none() => Some(word),
            _ => None,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Its outcome, taken out of it.
    pub(super) fn outcome(&mut self) -> Outcome {
        if let Some(error) = self.error.take() {
            return Err(*error);
        }
        Ok(match &mut self.work {
            Work::Read { bytes, .. } => Reply::Bytes(std::mem::take(bytes)),
            Work::Modify { before, .. } => Reply::Word(*before),
            Work::Call(call) => std::mem::replace(&mut call.reply, Reply::Done),
            Work::Write { .. } | Work::Lock { .. } | Work::Fence | Work::Flush | Work::Sleep => {
                Reply::Done
            }
        })
    }
}

impl Service {
    /// Runs the work; returns its result and the number of memory accesses beyond its own.
    fn run(&mut self, node: &mut Node, process: ProcessId) -> (Outcome, u64) {
        let done = match self {
            Service::Alloc { bytes, permissions } => {
                node.alloc(process, *bytes, *permissions).map(Reply::Address)
            }
            Service::Free(region) => node.free(process, *region).map(|()| Reply::Done),
            Service::Share { region, with, permissions } => {
                let shared = node.share(process, *region, *with, *permissions);
                shared.map(|()| Reply::Done)
            }
            Service::Offload { name, offload, arguments } => {
                let mut view = NodeView::new(node, process);
                let mut memory = NodeMemory::new(&mut view);
                let ended = offload.run(&mut memory, arguments).map(Reply::Bytes);
                let ended = ended.map_err(|error| Error::of_offload(name, error));
                return (ended, memory.accesses());
            }
        };
        (done, 0)
    }
}

/// How a lock takes its word.
fn take(holder: u64) -> RmwOperation {
    RmwOperation::CompareAndSwap { expected: 0, desired: holder }
}

/// Parts of at most `part_bytes_max` bytes, in order.
fn split(segments: &Segments, part_bytes_max: u64) -> Vec<Part> {
    let mut offset = 0;
    let mut parts = Vec::new();
    for &place in segments {
        let (memory, mut at) = (place.address.memory(), 0);
        while at < place.bytes {
            let bytes = (place.bytes - at).min(part_bytes_max);
            parts.push(Part { memory, place, at, bytes, offset });
            at += bytes;
            offset += bytes;
        }
    }
    parts
}
