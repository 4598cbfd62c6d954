//! An operation: cut into requests that can be executed alone, and put together again.

use ethermem_wire::clio::{ClioStatus, Epoch, NodeFacts, ProcessId, Reply, Request};
use thiserror::Error;

/// An operation of a client: those that began within 2^32 of each other have different names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

/// What an operation gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completed {
    /// It was done.
    Done,
    /// The lock is the process's; it was a dead one's.
    OwnerDied,
    /// What was read.
    Bytes(Vec<u8>),
    /// The word before an atomic.
    Word(u64),
    /// Where it is.
    Address(u64),
    /// The process that was made.
    Created(ProcessId),
    /// What the node is.
    Facts(NodeFacts),
}

/// Why an operation was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OperationError {
    /// The node refused it, or a part of it. Whether a retry can help, the status says.
    #[error("refused by the node, from byte {at} on: {status:?} ({detail})")]
    Refused {
        /// Why.
        status: ClioStatus,
        /// What the status says it is.
        detail: u64,
        /// Where in the operation the first part begins that was refused, in bytes.
        at: u64,
    },
    /// No answer in time. A read was not done; whether anything else was is not known, and it will
    /// not be from now on.
    #[error("no answer within the time for retries")]
    Lost,
    /// The node was started anew: what was on it is gone. A retry cannot help.
    #[error("the node was started anew, as epoch {}", .0.0)]
    Restarted(Epoch),
    /// It has no bytes, or more than an operation may have. A retry cannot help.
    #[error("{0} B: allowed are 1 to 2^32 - 1")]
    Length(u64),
}

/// For what a read may give, room is made at once up to this.
const RESERVED_BYTES: usize = 16 << 20;

/// A place of several that are read as one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    address: u64,
    /// Where in the operation it begins, and ends.
    from: u64,
    end: u64,
}

/// What is asked for, with its data.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    /// To read all of them, one after the other.
    Gather(Vec<Place>),
    Write {
        address: u64,
        data: Vec<u8>,
    },
    Offload {
        name: String,
        arguments: Vec<u8>,
    },
    /// Of a fixed length.
    Short(Request<'static>),
}

/// Where parts of a long access meet: words, and what people keep in cache lines, are not cut.
const CUT_BYTES: u64 = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) process: ProcessId,
    ask: Ask,
    /// Bytes that were given out in parts.
    cut: u64,
    /// Of a gather: the place of the next part.
    place: u32,
    /// How many parts are under way.
    pub(super) open: usize,
    /// What was read, in its place.
    bytes: Vec<u8>,
    result: Option<Completed>,
    pub(super) error: Option<OperationError>,
}

/// A part of an operation: its request is made anew for each try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) from: u64,
    pub(super) bytes: u32,
    /// Of a gather: in which place.
    pub(super) place: u32,
}

impl Operation {
    pub(super) fn new(process: ProcessId, ask: Ask) -> Operation {
        Operation {
            process,
            ask,
            cut: 0,
            place: 0,
            open: 0,
            bytes: Vec::new(),
            result: None,
            error: None,
        }
    }

    /// Reads bytes from several addresses on, so many from each, which are not 0; `None` where
    /// there are none.
    pub(super) fn gather(
        process: ProcessId,
        places: impl Iterator<Item = (u64, u64)>,
    ) -> Option<Operation> {
        let mut from = 0;
        let place = |(address, bytes): (u64, u64)| {
            let place = Place { address, from, end: from.saturating_add(bytes) };
            from = place.end;
            place
        };
        let places: Vec<Place> = places.map(place).collect();
        let is_whole = !places.is_empty() && places.iter().all(|place| place.from < place.end);
        is_whole.then(|| Operation::new(process, Ask::Gather(places)))
    }

    /// Of what can be cut: the address of what was not given out yet, and how much of it there is.
    fn left(&self) -> Option<(u64, u64)> {
        let (address, total) = match &self.ask {
            Ask::Gather(places) => {
                let Some(place) = places.get(self.place as usize) else { return Some((0, 0)) };
                let address = place.address.wrapping_add(self.cut - place.from);
                return Some((address, place.end - self.cut));
            }
            Ask::Write { address, data } => (*address, data.len() as u64),
            Ask::Short(Request::Read { address, bytes }) => (*address, u64::from(*bytes)),
            Ask::Short(_) | Ask::Offload { .. } => return None,
        };
        Some((address.wrapping_add(self.cut), total - self.cut))
    }

    /// The next part of at most `most` bytes, which are more than [`CUT_BYTES`]; `None` when all
    /// were cut off.
    pub(super) fn next_part(&self, most: u64) -> Option<Part> {
        let Some((address, left)) = self.left() else {
            return (self.cut == 0).then_some(Part { from: 0, bytes: 1, place: 0 });
        };
        let end = address.wrapping_add(most);
        let bytes = if left <= most { left } else { most - end % CUT_BYTES } as u32;
        (left > 0).then_some(Part { from: self.cut, bytes, place: self.place })
    }

    /// The part is under way from now on.
    pub(super) fn give_out(&mut self, part: Part) {
        self.cut += u64::from(part.bytes);
        self.open += 1;
        if let Ask::Gather(places) = &self.ask
            && places[part.place as usize].end == self.cut
        {
            self.place += 1;
        }
    }

    /// The request of a part.
    pub(super) fn request(&self, part: Part) -> Request<'_> {
        let Part { from, bytes, place } = part;
        match &self.ask {
            Ask::Gather(places) => {
                let Place { address, from: first, .. } = places[place as usize];
                Request::Read { address: address.wrapping_add(from - first), bytes }
            }
            Ask::Write { address, data } => Request::Write {
                address: address.wrapping_add(from),
                data: &data[from as usize..][..bytes as usize],
            },
            Ask::Short(Request::Read { address, .. }) => {
                Request::Read { address: address.wrapping_add(from), bytes }
            }
            Ask::Offload { name, arguments } => Request::Offload { name, arguments },
            Ask::Short(request) => *request,
        }
    }

    /// Whether its request and its answer are each alone in their datagrams, as long as they are.
    pub(super) fn goes_alone(&self) -> bool {
        matches!(self.ask, Ask::Offload { .. })
    }

    /// Octets of the body that answers a part, at most; `most` of what nobody knows before.
    pub(super) fn answer_bytes(&self, part: Part, most: u64) -> u64 {
        match &self.ask {
            Ask::Offload { .. } => most,
            Ask::Gather(_) | Ask::Short(Request::Read { .. }) => part.bytes.into(),
            _ => 32,
        }
    }

    /// Puts the answer of a part into its place. Whether it is one: a wrong one is not taken.
    pub(super) fn take(&mut self, part: Part, reply: &Reply<'_>) -> bool {
        let completed = match *reply {
            Reply::Bytes(bytes) if self.goes_alone() => Completed::Bytes(bytes.to_vec()),
            Reply::Bytes(bytes) => return self.put(part, bytes),
            Reply::Done => Completed::Done,
            Reply::OwnerDied => Completed::OwnerDied,
            Reply::Word(word) => Completed::Word(word),
            Reply::Address(address) => Completed::Address(address),
            Reply::Created(process) => Completed::Created(process),
            Reply::Facts(facts) => Completed::Facts(facts),
            Reply::Padding(_) => return false,
            Reply::Refused(status, detail) => {
                self.refuse(OperationError::Refused { status, detail, at: part.from });
                return true;
            }
        };
        self.result = Some(completed);
        true
    }

    /// Of several parts that are refused, the first one's error is the operation's.
    fn refuse(&mut self, error: OperationError) {
        let place = |error: &OperationError| match error {
            OperationError::Refused { at, .. } => *at,
            _ => 0,
        };
        if self.error.as_ref().is_none_or(|known| place(&error) < place(known)) {
            self.error = Some(error);
        }
    }

    /// Puts what was read into its place. Whether there is one.
    fn put(&mut self, part: Part, bytes: &[u8]) -> bool {
        let total = match &self.ask {
            Ask::Gather(places) => places.last().map_or(0, |last| last.end) as usize,
            Ask::Short(Request::Read { bytes, .. }) => *bytes as usize,
            _ => return false,
        };
        if bytes.len() != part.bytes as usize {
            return false;
        }
        if bytes.len() == total {
            self.bytes = bytes.to_vec();
            return true;
        }
        let from = part.from as usize;
        if from < self.bytes.len() {
            self.bytes[from..][..bytes.len()].copy_from_slice(bytes);
            return true;
        }
        // Parts come in their order mostly: what need not be zeros first is not. And what was asked
        // for need not be there: of much, room is made for twice of what has come.
        let end = from + bytes.len();
        if end > self.bytes.capacity() {
            let room = total.min(RESERVED_BYTES.max(2 * end));
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.resize(from, 0);
        self.bytes.extend_from_slice(bytes);
        true
    }

    /// The outcome, when all parts have theirs; or none will be sent any more after an error.
    pub(super) fn outcome(&mut self, most: u64) -> Option<Result<Completed, OperationError>> {
        if self.open > 0 {
            return None;
        }
        if let Some(error) = self.error {
            return Some(Err(error));
        }
        if self.next_part(most).is_some() {
            return None;
        }
        let bytes = core::mem::take(&mut self.bytes);
        Some(Ok(self.result.take().unwrap_or(Completed::Bytes(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_meet_at_multiples_of_64_and_cover_all() {
        for (address, total) in [(0, 5000), (7, 5000), (63, 129), (1000, 1), (1, 128), (60, 131)] {
            let ask = Ask::Write { address, data: (0..total).map(|at| at as u8).collect() };
            let mut operation = Operation::new(ProcessId(1), ask);
            let mut seen = Vec::new();
            while let Some(part) = operation.next_part(130) {
                let Request::Write { address: at, data } = operation.request(part) else {
                    panic!("a part of a write is a write");
                };
                assert_eq!(at, address + seen.len() as u64);
                assert!(seen.is_empty() || at % 64 == 0, "{at} in {address} and {total}");
                assert!(data.len() <= 130);
                seen.extend_from_slice(data);
                operation.give_out(part);
            }
            assert!(seen.iter().enumerate().all(|(at, &octet)| octet == at as u8));
            assert_eq!(seen.len(), total as usize);
        }
    }

    /// A read as long as nothing that is there takes memory for what comes, and not for what was
    /// asked for; and what does come is put together, in whatever order.
    #[test]
    fn memory_for_a_long_read_is_made_as_its_parts_come() {
        const PART: usize = 1 << 20;
        let total = 48 * PART;
        for asked in [total as u64, (1 << 32) - 1] {
            let mut operation = Operation::gather(ProcessId(1), [(0, asked)].into_iter()).unwrap();
            let mut parts = Vec::new();
            for _ in 0..total / PART {
                let part = operation.next_part(PART as u64).unwrap();
                operation.give_out(part);
                parts.push(part);
            }
            for pair in parts.chunks_mut(2) {
                pair.reverse();
            }
            for (come, part) in (1..).zip(parts) {
                let bytes = vec![(part.from >> 20) as u8; PART];
                assert!(operation.take(part, &Reply::Bytes(&bytes)));
                let most = RESERVED_BYTES.max(2 * (come + 1) * PART);
                assert!(operation.bytes.capacity() <= most, "{}", operation.bytes.capacity());
            }
            assert_eq!(operation.bytes.len(), total);
            let is_its_own = |(at, bytes): (usize, &[u8])| bytes.iter().all(|&b| b == at as u8);
            assert!(operation.bytes.chunks(PART).enumerate().all(is_its_own));
        }
    }
}
