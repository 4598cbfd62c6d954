//! An operation, which is cut into requests that can be executed alone, and put together again.

use ethermem_units::Ns;
use ethermem_wire::clio::{ClioStatus, Epoch, NodeFacts, ProcessId, Reply, Request};
use thiserror::Error;

/// The name of a client's operation. Operations that began within 2^32 of each other have different
/// names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completed {
    /// The operation was done, without a result.
    Done,
    /// The process has the lock; its previous holder is a dead process.
    OwnerDied,
    /// The bytes that were read.
    Bytes(Vec<u8>),
    /// The bytes are in the caller's buffer, except for these, each with its offset: they arrived
    /// while the buffer was not at hand.
    Landed(Vec<(u64, Vec<u8>)>),
    /// The word before an atomic.
    Word(u64),
    /// The address of the allocation or share.
    Address(u64),
    /// The process that was made.
    Created(ProcessId),
    /// The facts of the node.
    Facts(NodeFacts),
}

/// Why an operation was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OperationError {
    /// The node refused the operation or a part of it. The status says whether a retry can help.
    #[error("refused by the node, from byte {at} on: {status:?} ({detail})")]
    Refused {
        /// The reason.
        status: ClioStatus,
        /// The number whose meaning the status gives.
        detail: u64,
        /// Offset in the operation of the first refused part, in bytes.
        at: u64,
    },
    /// No answer arrived in time. A read had no effect. It is unknown whether another operation was
    /// done, but it will not be done later.
    #[error("no answer within the time for retries")]
    Lost,
    /// The node was restarted: its former content is gone. A retry cannot help.
    #[error("the node was started anew, as epoch {}", .0.0)]
    Restarted(Epoch),
    /// The operation has zero bytes, or more than the maximum. A retry cannot help.
    #[error("{0} B: must be 1 to 2^32 - 1")]
    Length(u64),
}

/// Maximum bytes that are reserved at once for the result of a read.
const RESERVED_BYTES: usize = 16 << 20;

/// One of several places that are read together.
#[derive(Clone, Copy, Debug)]
pub(super) struct GatheredRange {
    address: u64,
    /// Offsets in the operation of its start and its end.
    from: u64,
    end: u64,
}

/// The content of an operation, with its data.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    /// A read of several places, in order.
    Gather(Vec<GatheredRange>),
    Write {
        address: u64,
        bytes: u64,
        data: WriteData,
    },
    Offload {
        name: String,
        arguments: Vec<u8>,
    },
    /// A request of a fixed length.
    Short(Request<'static>),
}

/// The data of a write that its operation has. A caller may lend the others for a call.
#[derive(Clone, Debug)]
pub(super) struct WriteData {
    /// Offset in the operation of the first octet.
    from: u64,
    octets: Vec<u8>,
}

impl WriteData {
    /// All data of a write.
    pub(super) fn whole(octets: Vec<u8>) -> WriteData {
        WriteData { from: 0, octets }
    }

    fn end(&self) -> u64 {
        self.from + self.octets.len() as u64
    }

    fn part(&self, part: Part) -> Option<&[u8]> {
        let from = usize::try_from(part.from.checked_sub(self.from)?).ok()?;
        self.octets.get(from..)?.get(..part.bytes as usize)
    }
}

/// Where the bytes of a read go.
#[derive(Debug)]
pub(super) enum Sink<'s> {
    /// To the operation.
    Own,
    /// To the caller's buffer.
    Caller(&'s mut [u8]),
    /// They are in the caller's buffer.
    Landed,
}

/// Parts of a long access meet at multiples of this: words and cache lines are never cut.
const CUT_BYTES: u64 = 64;

/// An operation in progress.
#[cfg_attr(test, derive(Clone))]
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) process: ProcessId,
    ask: Ask,
    /// Number of bytes that were sent in parts.
    cut: u64,
    /// For a gather: the place of the next part.
    place: u32,
    /// Number of parts in flight.
    pub(super) open: usize,
    /// True while it is in the list of operations with parts that were not sent.
    pub(super) waits: bool,
    /// True if a retry was due while the data of its part were not at hand.
    pub(super) is_overdue: bool,
    /// Since when it waits to be sent, once that was looked at.
    pub(super) waits_since: Option<Ns>,
    /// The bytes read so far, each at its offset.
    bytes: Vec<u8>,
    /// For a read into the caller's buffer: parts that arrived without it.
    apart: Option<Vec<(u64, Vec<u8>)>>,
    result: Option<Completed>,
    pub(super) error: Option<OperationError>,
}

/// A part of an operation. Its request is built again for each try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) from: u64,
    pub(super) bytes: u32,
    /// For a gather: the index of its place.
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
            waits: true,
            is_overdue: false,
            waits_since: None,
            bytes: Vec::new(),
            apart: None,
            result: None,
            error: None,
        }
    }

    /// A read into a buffer of the caller.
    pub(super) fn read_into(process: ProcessId, address: u64, bytes: u32) -> Operation {
        let ask = Ask::Short(Request::Read { address, bytes });
        Operation { apart: Some(Vec::new()), ..Operation::new(process, ask) }
    }

    /// A write whose caller lends the data.
    pub(super) fn write_lent(process: ProcessId, address: u64, bytes: u64) -> Operation {
        let ask = Ask::Write { address, bytes, data: WriteData::whole(Vec::new()) };
        Operation::new(process, ask)
    }

    /// A read of several places: addresses and numbers of bytes, which must not be 0. `None` for an
    /// empty list.
    pub(super) fn gather(
        process: ProcessId,
        places: impl Iterator<Item = (u64, u64)>,
    ) -> Option<Operation> {
        let mut from = 0;
        let place = |(address, bytes): (u64, u64)| {
            let place = GatheredRange { address, from, end: from.saturating_add(bytes) };
            from = place.end;
            place
        };
        let places: Vec<GatheredRange> = places.map(place).collect();
        let is_whole = !places.is_empty() && places.iter().all(|place| place.from < place.end);
        is_whole.then(|| Operation::new(process, Ask::Gather(places)))
    }

    /// For an operation that can be cut: the address of its unsent rest, and the length of the
    /// rest.
    fn left(&self) -> Option<(u64, u64)> {
        let (address, total) = match &self.ask {
            Ask::Gather(places) => {
                let Some(place) = places.get(self.place as usize) else { return Some((0, 0)) };
                let address = place.address.wrapping_add(self.cut - place.from);
                return Some((address, place.end - self.cut));
            }
            Ask::Write { address, bytes, .. } => (*address, *bytes),
            Ask::Short(Request::Read { address, bytes }) => (*address, u64::from(*bytes)),
            Ask::Short(_) | Ask::Offload { .. } => return None,
        };
        Some((address.wrapping_add(self.cut), total - self.cut))
    }

    /// The next part of at most `most` bytes, which must exceed [`CUT_BYTES`]; `None` when all
    /// parts are cut.
    pub(super) fn next_part(&self, most: u64) -> Option<Part> {
        let Some((address, left)) = self.left() else {
            return (self.cut == 0).then_some(Part { from: 0, bytes: 1, place: 0 });
        };
        let end = address.wrapping_add(most);
        let bytes = if left <= most { left } else { most - end % CUT_BYTES } as u32;
        (left > 0).then_some(Part { from: self.cut, bytes, place: self.place })
    }

    /// True if parts are left that were not sent.
    pub(super) fn is_unsent(&self) -> bool {
        self.left().map_or(self.cut == 0, |(_, left)| left > 0)
    }

    /// About how many parts of at most `most` bytes are not sent.
    pub(super) fn unsent_parts(&self, most: u64) -> u64 {
        self.left().map_or(u64::from(self.cut == 0), |(_, left)| left.div_ceil(most))
    }

    /// Records that the part is in flight.
    pub(super) fn give_out(&mut self, part: Part) {
        self.cut += u64::from(part.bytes);
        self.open += 1;
        if let Ask::Gather(places) = &self.ask
            && places[part.place as usize].end == self.cut
        {
            self.place += 1;
        }
    }

    /// The request of a part, with the data of a write as [`Operation::data`] gives them.
    pub(super) fn request<'d>(&'d self, part: Part, data: &'d [u8]) -> Request<'d> {
        let Part { from, bytes, place } = part;
        match &self.ask {
            Ask::Gather(places) => {
                let GatheredRange { address, from: first, .. } = places[place as usize];
                Request::Read { address: address.wrapping_add(from - first), bytes }
            }
            Ask::Write { address, .. } => {
                Request::Write { address: address.wrapping_add(from), data }
            }
            Ask::Short(Request::Read { address, .. }) => {
                Request::Read { address: address.wrapping_add(from), bytes }
            }
            Ask::Offload { name, arguments } => Request::Offload { name, arguments },
            Ask::Short(request) => *request,
        }
    }

    /// The data of a part of a write, for which `lent` may be all of its data; of another operation
    /// an empty slice. `None` while the data are not at hand.
    pub(super) fn data<'d>(&'d self, part: Part, lent: Option<&'d [u8]>) -> Option<&'d [u8]> {
        let Ask::Write { bytes, data, .. } = &self.ask else { return Some(&[]) };
        let lent = lent.filter(|lent| lent.len() as u64 == *bytes);
        match lent {
            Some(lent) => lent.get(part.from as usize..)?.get(..part.bytes as usize),
            None => data.part(part),
        }
    }

    /// True for a write that does not have all data that it may still need.
    pub(super) fn lacks_data(&self) -> bool {
        matches!(&self.ask, Ask::Write { bytes, data, .. } if data.end() < *bytes)
    }

    /// Copies data of a lent write up to byte `to`, from where the copy ends. A copy begins at the
    /// first byte without an answer: that of the first part in flight, `first_open`, or of the
    /// unsent rest. It takes `memory`.
    pub(super) fn copy(
        &mut self,
        lent: &[u8],
        first_open: Option<u64>,
        to: u64,
        memory: &mut Vec<u8>,
    ) {
        let unsent = self.cut;
        let Ask::Write { bytes, data, .. } = &mut self.ask else { return };
        let is_new = data.octets.is_empty();
        let from = if is_new { first_open.unwrap_or(unsent).min(unsent) } else { data.end() };
        let to = to.min(*bytes);
        if lent.len() as u64 != *bytes || to <= from {
            return;
        }
        if is_new {
            data.octets = core::mem::take(memory);
            data.octets.clear();
            data.octets.reserve_exact((*bytes - from) as usize);
            data.from = from;
        }
        data.octets.extend_from_slice(&lent[from as usize..to as usize]);
    }

    /// The memory of a write's data.
    pub(super) fn into_memory(self) -> Vec<u8> {
        match self.ask {
            Ask::Write { data, .. } => data.octets,
            _ => Vec::new(),
        }
    }

    /// True if its request and its answer each go alone in a datagram, whatever their lengths.
    pub(super) fn goes_alone(&self) -> bool {
        matches!(self.ask, Ask::Offload { .. })
    }

    /// Maximum octets of the body that answers a part; `most` where the length is unknown before.
    pub(super) fn answer_bytes(&self, part: Part, most: u64) -> u64 {
        match &self.ask {
            Ask::Offload { .. } => most,
            Ask::Gather(_) | Ask::Short(Request::Read { .. }) => part.bytes.into(),
            _ => 32,
        }
    }

    /// Stores the answer of a part. Returns false if it does not fit the request; it is then
    /// ignored.
    pub(super) fn take(&mut self, part: Part, reply: &Reply<'_>, sink: Sink<'_>) -> bool {
        let completed = match *reply {
            Reply::Bytes(bytes) if self.goes_alone() => Completed::Bytes(bytes.to_vec()),
            Reply::Bytes(bytes) if self.apart.is_some() => return self.land(part, bytes, sink),
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

    /// Records the error of a refused part. The error of the first refused part is the operation's.
    fn refuse(&mut self, error: OperationError) {
        let place = |error: &OperationError| match error {
            OperationError::Refused { at, .. } => *at,
            _ => 0,
        };
        if self.error.as_ref().is_none_or(|known| place(&error) < place(known)) {
            self.error = Some(error);
        }
    }

    /// Stores read bytes in the caller's buffer, or apart. Returns false if they do not fit.
    fn land(&mut self, part: Part, bytes: &[u8], sink: Sink<'_>) -> bool {
        let is_read = matches!(self.ask, Ask::Short(Request::Read { .. }));
        if !is_read || bytes.len() != part.bytes as usize {
            return false;
        }
        match sink {
            Sink::Landed => {}
            Sink::Caller(to) => {
                let place =
                    to.get_mut(part.from as usize..).and_then(|to| to.get_mut(..bytes.len()));
                let Some(place) = place else { return false };
                place.copy_from_slice(bytes);
            }
            Sink::Own => self.apart.get_or_insert_default().push((part.from, bytes.to_vec())),
        }
        true
    }

    /// Stores read bytes at their offset. Returns false if they do not fit.
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
        // Parts mostly arrive in order, so memory is not zeroed first where it can be avoided.
        // Requested bytes may never arrive: for a long read, room is made for twice what has
        // arrived.
        let end = from + bytes.len();
        if end > self.bytes.capacity() {
            let room = total.min(RESERVED_BYTES.max(2 * end));
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.resize(from, 0);
        self.bytes.extend_from_slice(bytes);
        true
    }

    /// The outcome, when all parts have theirs, or when no more are sent after an error.
    pub(super) fn outcome(&mut self) -> Option<Result<Completed, OperationError>> {
        if self.open > 0 {
            return None;
        }
        if let Some(error) = self.error {
            return Some(Err(error));
        }
        if self.is_unsent() {
            return None;
        }
        if let Some(apart) = self.apart.take() {
            return Some(Ok(Completed::Landed(apart)));
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
            let octets: Vec<u8> = (0..total).map(|at| at as u8).collect();
            let ask = Ask::Write { address, bytes: total, data: WriteData::whole(octets) };
            let mut operation = Operation::new(ProcessId(1), ask);
            let mut seen = Vec::new();
            while let Some(part) = operation.next_part(130) {
                let data = operation.data(part, None).expect("it has all");
                let Request::Write { address: at, data } = operation.request(part, data) else {
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

    /// A copy begins where it is needed, goes on where it ended, and is used only where the caller
    /// lends nothing.
    #[test]
    fn the_data_of_a_lent_write_are_its_callers_or_a_copy_of_those_that_are_not_done() {
        let octets: Vec<u8> = (0..1000_u32).map(|at| at as u8).collect();
        let lent = Some(&octets[..]);
        let part = |from, bytes| Part { from, bytes, place: 0 };
        let mut write = Operation::write_lent(ProcessId(1), 64, 1000);
        write.give_out(part(0, 320));
        write.give_out(part(320, 320));
        for at in [part(0, 320), part(320, 320), part(999, 1), part(0, 1000)] {
            let own = &octets[at.from as usize..][..at.bytes as usize];
            assert_eq!((write.data(at, lent), write.data(at, None)), (Some(own), None));
        }
        assert_eq!(write.data(part(999, 2), lent), None);
        assert_eq!(write.data(part(0, 1), Some(&octets[1..])), None, "it is another length");
        let mut memory = Vec::with_capacity(5000);
        write.copy(&octets, Some(320), 320, &mut memory);
        write.copy(&octets[1..], Some(320), 900, &mut memory);
        assert!(write.lacks_data() && memory.capacity() == 5000, "nothing was to be copied");
        let mut later = write.clone();
        later.copy(&octets, None, 700, &mut Vec::new());
        assert_eq!(later.data(part(640, 60), None), Some(&octets[640..700]), "all have answers");
        assert_eq!(later.data(part(320, 320), None), None);
        write.copy(&octets, Some(320), 700, &mut memory);
        assert!(write.lacks_data() && memory.capacity() == 0, "it has taken the memory");
        assert_eq!(write.data(part(320, 320), None), Some(&octets[320..640]));
        assert_eq!(write.data(part(640, 60), None), Some(&octets[640..700]));
        for apart in [part(319, 2), part(640, 61), part(0, 320), part(990, 10)] {
            assert_eq!(write.data(apart, None), None);
        }
        // A copy has no gaps, whatever has its answer meanwhile.
        write.copy(&octets, None, 5000, &mut memory);
        assert!(!write.lacks_data());
        assert_eq!(write.data(part(640, 360), None), Some(&octets[640..]));
        assert_eq!(write.data(part(320, 680), None), Some(&octets[320..]));
        let copy = write.into_memory();
        assert_eq!((copy.len(), copy.capacity()), (680, 5000));
    }

    /// A read of an enormous length takes memory only for the bytes that arrive. They are put
    /// together in whatever order they arrive.
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
                assert!(operation.take(part, &Reply::Bytes(&bytes), Sink::Own));
                let most = RESERVED_BYTES.max(2 * (come + 1) * PART);
                assert!(operation.bytes.capacity() <= most, "{}", operation.bytes.capacity());
            }
            assert_eq!(operation.bytes.len(), total);
            let is_its_own = |(at, bytes): (usize, &[u8])| bytes.iter().all(|&b| b == at as u8);
            assert!(operation.bytes.chunks(PART).enumerate().all(is_its_own));
        }
    }
}
