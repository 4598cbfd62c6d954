//! One operation in flight to a memory node: its requests, and the meaning of their responses.

use ethermem_clio::transport::{Completed, OperationError};
use ethermem_offload::{ENDED_FAILED, ENDED_RESULT, ENDED_STOPPED, Stop};
use ethermem_pool::{
    Address, Error, Op, OpId, Outcome, Permissions, ProcessId, Reply, Segment, Segments,
};
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{ClioStatus, Request};
use smallvec::{SmallVec, smallvec};

use crate::OFFLOAD_BYTES_MAX;

/// Longest request in bytes: the largest length on the wire, in whole pages.
pub(super) const REQUEST_BYTES_MAX: u64 = 1 << 30;
const WORD_BYTES: u64 = 8;
/// Largest number of tries of a read while the node lives, each for `timeout_ms`.
const READ_TRIES_MAX: u32 = 4;
/// An empty range.
const NOWHERE: Segment = Segment { address: Address::NULL, bytes: 0 };

/// An operation in flight.
pub(super) struct Running {
    pub(super) id: OpId,
    pub(super) process: ProcessId,
    pub(super) work: Work,
    /// Number of requests without an outcome.
    pub(super) open: usize,
    pub(super) tries: Tries,
    reply: Reply,
    /// First error of any request.
    error: Option<Error>,
}

/// Number of tries of an operation, each for as long as an operation may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tries {
    pub(super) count: u32,
    /// Number of responses that the pool had received by the last try.
    answers: u64,
}

impl Tries {
    /// State of the first try.
    pub(super) fn first(answers: u64) -> Tries {
        Tries { count: 1, answers }
    }

    /// Decides whether a read without a response in time is tried again. It is if the node has sent
    /// any response since, because the node then lives and was busy. A read is idempotent; a write
    /// is not retried, as a node remembers completed requests only for a time.
    pub(super) fn read_again(&mut self, answers: u64) -> bool {
        let is_tried = self.count < READ_TRIES_MAX && answers != self.answers;
        if is_tried {
            *self = Tries { count: self.count + 1, answers };
        }
        is_tried
    }
}

/// The operation, as far as its responses require it.
pub(super) enum Work {
    Read,
    Gather(Segments),
    Write,
    Modify,
    Lock { word: Address, holder: u64 },
    Alloc(u64),
    Free(Segment),
    Share(Segment, Permissions),
    Offload(String),
    Fence,
}

/// Requests, each with the range that it touches; most operations have one.
pub(super) type Asks = SmallVec<[(Ask, Segment); 1]>;

/// A request for the transport.
pub(super) enum Ask {
    Short(Request<'static>),
    Gather(Segments),
    Write(u64, Vec<u8>),
    Offload(String, Vec<u8>),
}

impl Running {
    /// A read of one range with its request, without an allocated list, because most operations are
    /// such reads.
    pub(super) fn read(
        id: OpId,
        process: ProcessId,
        op: &Op,
        tries: Tries,
    ) -> Option<(Running, Ask, Segment)> {
        let Op::Read(segments) = op else { return None };
        let [segment] = segments[..] else { return None };
        if segment.bytes > REQUEST_BYTES_MAX {
            return None;
        }
        Some((Running::of_one(id, process, Work::Read, tries), read(segment), segment))
    }

    /// An operation of one request.
    fn of_one(id: OpId, process: ProcessId, work: Work, tries: Tries) -> Running {
        Running { id, process, work, open: 1, tries, reply: Reply::Done, error: None }
    }

    /// An operation and its requests, each with the range that it touches.
    pub(super) fn new(id: OpId, process: ProcessId, op: Op, tries: Tries) -> (Running, Asks) {
        let none = |ask| smallvec![(Ask::Short(ask), NOWHERE)];
        let word = |address| Segment { address, bytes: WORD_BYTES };
        let (work, asks) = match op {
            Op::Read(segments) => {
                let ask = Ask::Gather(segments.clone());
                (Work::Gather(segments), smallvec![(ask, NOWHERE)])
            }
            Op::Write(segments, data) => {
                let asks = writes(&segments, data);
                (Work::Write, asks)
            }
            Op::Modify(address, operation) => {
                (Work::Modify, smallvec![(modify(address, operation), word(address))])
            }
            Op::Lock { word: address, holder } => (
                Work::Lock { word: address, holder },
                smallvec![(lock(address, holder), word(address))],
            ),
            Op::Alloc { bytes, permissions, .. } => {
                (Work::Alloc(bytes), none(Request::Allocate { bytes, at: 0, permissions }))
            }
            Op::Free(address, bytes) => {
                let segment = Segment { address, bytes };
                (Work::Free(segment), none(Request::Free { address: address.0 }))
            }
            Op::Share { region, with, permissions } => {
                let address = region.address.0;
                let share = Request::Share { address, at: 0, with, permissions };
                (Work::Share(region, permissions), none(share))
            }
            Op::Fence | Op::Flush => (Work::Fence, none(Request::Fence)),
            Op::Offload { name, arguments, .. } => {
                let ask = Ask::Offload(name.clone(), arguments);
                (Work::Offload(name), smallvec![(ask, NOWHERE)])
            }
            Op::Sleep(_) => unreachable!("it has a way of its own"),
        };
        let open = asks.len();
        (Running { open, ..Running::of_one(id, process, work, tries) }, asks)
    }

    /// The request for the next try of a lock.
    pub(super) fn again(&mut self) -> (Ask, Segment) {
        let Work::Lock { word, holder } = self.work else {
            unreachable!("only locks are tried again")
        };
        self.open = 1;
        (lock(word, holder), Segment { address: word, bytes: WORD_BYTES })
    }

    /// The request for another try of a read without a response in time, if it is tried again.
    pub(super) fn read_again(&mut self, answers: u64, touched: Segment) -> Option<Ask> {
        let ask = match &self.work {
            Work::Read => read(touched),
            Work::Gather(segments) => Ask::Gather(segments.clone()),
            _ => return None,
        };
        self.tries.read_again(answers).then_some(ask)
    }

    /// Handles the outcome of a request that touches `segment`. Returns whether it is a lock that
    /// another thread holds.
    pub(super) fn take(
        &mut self,
        node: &str,
        segment: Segment,
        outcome: Result<Completed, OperationError>,
    ) -> bool {
        self.open -= 1;
        match outcome {
            Ok(Completed::Bytes(bytes)) if matches!(self.work, Work::Offload(_)) => {
                match self.result(node, bytes) {
                    Ok(result) => self.reply = Reply::Bytes(result),
                    Err(error) => self.error = Some(error),
                }
            }
            Ok(Completed::Bytes(bytes)) => self.reply = Reply::Bytes(bytes),
            Ok(Completed::Word(word)) => self.reply = Reply::Word(word),
            Ok(Completed::Address(address)) => self.reply = Reply::Address(Address(address)),
            Ok(Completed::OwnerDied) => {
                self.error.get_or_insert(Error::OwnerDied { address: segment.address });
            }
            Ok(
                Completed::Done
                | Completed::Landed(_)
                | Completed::Created(_)
                | Completed::Facts(_),
            ) => {}
            Err(OperationError::Refused { status: ClioStatus::Held, .. }) => return true,
            Err(error) => {
                let error = self.work.error_of(self.process, node, segment, error);
                self.error.get_or_insert(error);
            }
        }
        false
    }

    /// For a lock: its word and its future holder.
    pub(super) fn lock(&self) -> Option<(Address, u64)> {
        match self.work {
            Work::Lock { word, holder } => Some((word, holder)),
            _ => None,
        }
    }

    /// Gives up trying.
    pub(super) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    pub(super) fn outcome(self) -> Outcome {
        match (self.error, self.work) {
            (Some(error), _) => Err(error),
            // Where it is shared is where it was.
            (None, Work::Share(..)) => Ok(Reply::Done),
            (None, _) => Ok(self.reply),
        }
    }

    /// The result of an operation at the node, from its response.
    fn result(&self, node: &str, mut bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let Work::Offload(name) = &self.work else { unreachable!("it is one") };
        let stop = bytes.get(1).and_then(|&number| Stop::from_number(number));
        match (bytes.first(), stop) {
            (Some(&ENDED_RESULT), _) => {
                bytes.drain(..1);
                Ok(bytes)
            }
            (Some(&ENDED_FAILED), _) => {
                let problem = String::from_utf8_lossy(&bytes[1..]).into_owned();
                Err(Error::Offload { name: name.clone(), problem })
            }
            (Some(&ENDED_STOPPED), Some(why)) => {
                let problem = String::from_utf8_lossy(&bytes[2..]).into_owned();
                Err(Error::OffloadStopped { name: name.clone(), why, problem })
            }
            _ => {
                let problem = format!("offload `{name}` ended in no known way");
                Err(Error::Refused { node: node.to_owned(), problem })
            }
        }
    }
}

impl Work {
    /// The error of a request of this operation, which touches `segment`.
    pub(super) fn error_of(
        &self,
        process: ProcessId,
        node: &str,
        segment: Segment,
        error: OperationError,
    ) -> Error {
        let (status, detail, at) = match error {
            OperationError::Refused { status, detail, at } => (status, detail, at),
            OperationError::Lost => return Error::Lost,
            OperationError::Restarted(_) => return Error::Restarted { node: node.to_owned() },
            OperationError::Length(bytes) if matches!(self, Work::Offload(_)) => {
                return Error::TooLong { bytes, most: OFFLOAD_BYTES_MAX };
            }
            OperationError::Length(_) => {
                return Error::Refused { node: node.to_owned(), problem: error.to_string() };
            }
        };
        let Segment { address, bytes } = match self {
            Work::Free(segment) => *segment,
            Work::Gather(segments) => place(segments, at),
            Work::Share(segment, ..) => *segment,
            // The response has only the address.
            Work::Offload(_) => Segment { address: Address(detail), bytes: 0 },
            _ => segment,
        };
        match (status, self) {
            (ClioStatus::Unmapped, _) => Error::Unmapped { address, bytes },
            (ClioStatus::Permission, work) => {
                Error::Permission { address, needed: work.permissions() }
            }
            (ClioStatus::Misaligned, _) => Error::Misaligned { address },
            (ClioStatus::Full | ClioStatus::Quota, Work::Alloc(bytes)) => {
                Error::Full { bytes: *bytes, free: detail }
            }
            (ClioStatus::NoSuchOffload, Work::Offload(name)) => Error::NoSuchOffload {
                name: name.clone(),
                allowed: "those that the node was started with, or the tenant has loaded"
                    .to_owned(),
            },
            (ClioStatus::NoSuchProcess, _) if detail == u64::from(process.0) => {
                Error::ProcessEnded { node: node.to_owned() }
            }
            _ => Error::Refused { node: node.to_owned(), problem: problem(status, detail) },
        }
    }

    /// Permissions that the access needs.
    fn permissions(&self) -> Permissions {
        match self {
            Work::Read | Work::Gather(_) => Permissions::READ,
            Work::Write => Permissions::WRITE,
            Work::Share(_, permissions) => *permissions,
            _ => Permissions::READ_WRITE,
        }
    }
}

/// Text for a status that has no error of its own.
pub(super) fn problem(status: ClioStatus, detail: u64) -> String {
    match status {
        ClioStatus::NoSuchProcess => format!("it has no process {detail}"),
        // An allocation over its quota has an error of its own, and nothing else takes memory, so
        // what is left here are processes.
        ClioStatus::Quota => {
            format!("the tenant may have no more processes at once; {detail} are left")
        }
        ClioStatus::AddressTaken => "the address is in use there".to_owned(),
        ClioStatus::AddressOverflows => "its page table has no place for it".to_owned(),
        ClioStatus::BadLength => format!("must be 1 to {detail} B"),
        status => format!("{status:?}, {detail}"),
    }
}

/// The range that holds byte `at` of all ranges, one after the other.
fn place(segments: &Segments, at: u64) -> Segment {
    let mut end = 0;
    let has = |segment: &&Segment| {
        end += segment.bytes;
        at < end
    };
    segments.iter().find(has).copied().unwrap_or(NOWHERE)
}

fn read(Segment { address, bytes }: Segment) -> Ask {
    Ask::Short(Request::Read { address: address.0, bytes: bytes as u32 })
}

fn modify(address: Address, operation: RmwOperation) -> Ask {
    Ask::Short(Request::Modify { address: address.0, operation })
}

/// The node itself puts the process in front of the holder.
fn lock(word: Address, holder: u64) -> Ask {
    Ask::Short(Request::Lock { address: word.0, holder: holder as u32 })
}

fn writes(segments: &Segments, data: Vec<u8>) -> Asks {
    let parts: SmallVec<[Segment; 1]> = split(segments).collect();
    if let [part] = parts[..] {
        return smallvec![(Ask::Write(part.address.0, data), part)];
    }
    let mut from = 0;
    let ask = |&part: &Segment| {
        let data = data[from..][..part.bytes as usize].to_vec();
        from += data.len();
        (Ask::Write(part.address.0, data), part)
    };
    parts.iter().map(ask).collect()
}

/// The ranges of one request each, in order.
fn split(segments: &Segments) -> impl Iterator<Item = Segment> {
    segments.iter().flat_map(|&Segment { address, bytes }| {
        (0..bytes.div_ceil(REQUEST_BYTES_MAX)).map(move |index| {
            let from = index * REQUEST_BYTES_MAX;
            Segment { address: address.add(from), bytes: (bytes - from).min(REQUEST_BYTES_MAX) }
        })
    })
}

#[cfg(test)]
mod meaning;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_through_all_segments() {
        let segment = |address, bytes| Segment { address: Address(address), bytes };
        let long = REQUEST_BYTES_MAX + 5;
        let segments: Segments = smallvec![segment(100, long), segment(7, 3)];
        let parts: Vec<_> = split(&segments).collect();
        let second = segment(100 + REQUEST_BYTES_MAX, 5);
        assert_eq!(parts, [segment(100, REQUEST_BYTES_MAX), second, segment(7, 3)]);
    }

    #[test]
    fn a_place_of_a_gather_that_is_refused_is_named() {
        let segment = |address, bytes| Segment { address: Address(address), bytes };
        let segments: Segments = smallvec![segment(4096, 2), segment(8, 4), segment(64, 1)];
        for (at, failed) in [(0, 0), (1, 0), (2, 1), (5, 1), (6, 2)] {
            let op = Op::Read(segments.clone());
            let (mut running, asks) = Running::new(OpId::new(0), ProcessId(1), op, Tries::first(0));
            let [(Ask::Gather(_), touched)] = asks[..] else { panic!("it is one request") };
            let refused = OperationError::Refused { status: ClioStatus::Unmapped, detail: 0, at };
            running.take("node", touched, Err(refused));
            assert_eq!(running.open, 0);
            let Segment { address, bytes } = segments[failed];
            assert_eq!(running.outcome(), Err(Error::Unmapped { address, bytes }), "{at}");
        }
    }
}
