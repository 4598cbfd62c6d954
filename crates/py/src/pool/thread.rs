//! Threads.

use ethermem::{Address, Chase, Comparison, Error, Filter, Permissions, Ps, RmwOperation, Segment};
use pyo3::prelude::*;

use super::Shared;
use super::buffer;
use super::error::raised;
use super::pending::{Answer, Pending};
use super::region::Region;
use crate::error::Failure;

/// An ordered stream of operations of a process, on a compute node. Operations on one page (4 KiB)
/// stay in order if one of them writes; others may be done in any order.
#[pyclass(frozen, module = "ethermem._native")]
pub(crate) struct Thread {
    pool: Shared,
    thread: ethermem::Thread,
}

impl Thread {
    pub(crate) fn new(pool: Shared, thread: ethermem::Thread) -> Thread {
        Thread { pool, thread }
    }

    pub(crate) fn inner(&self) -> &ethermem::Thread {
        &self.thread
    }

    fn word(&self, operation: ethermem::Pending<u64>) -> Pending {
        Pending::of(&self.pool, operation, |word| Ok(Answer::Word(word)))
    }

    fn done(&self, operation: ethermem::Pending<()>) -> Pending {
        Pending::of(&self.pool, operation, |()| Ok(Answer::Nothing))
    }

    fn bytes(&self, operation: ethermem::Pending<Vec<u8>>) -> Pending {
        Pending::of(&self.pool, operation, |bytes| Ok(Answer::Bytes(bytes)))
    }
}

pub(crate) fn permissions(bits: u8) -> PyResult<Permissions> {
    let refused = || Failure::Input(format!("permissions = {bits}: must be 0 to 3"));
    Ok(Permissions::from_bits(bits).ok_or_else(refused)?)
}

fn segments(places: &[(u64, u64)]) -> Vec<Segment> {
    let segment = |&(address, bytes)| Segment { address: Address(address), bytes };
    places.iter().map(segment).collect()
}

#[pymethods]
impl Thread {
    /// Number of the thread's process, which `Region.share` takes.
    #[getter]
    fn process(&self) -> u32 {
        self.thread.process().0
    }

    /// Index of the thread's compute node, from 0.
    #[getter]
    fn compute(&self) -> u16 {
        self.thread.compute()
    }

    /// Picoseconds since the pool was opened.
    fn now_ps(&self) -> u64 {
        self.thread.now().0
    }

    /// Creates another thread of the same process, on the same compute node or the given one.
    #[pyo3(signature = (compute_node=None))]
    fn fork(&self, compute_node: Option<u16>) -> PyResult<Thread> {
        let node = compute_node.unwrap_or(self.thread.compute());
        Ok(Thread::new(self.pool.clone(), self.thread.fork_on(node).map_err(raised)?))
    }

    /// Allocates a `Region` of zeros, on the given memory node or the next in round-robin order.
    #[pyo3(signature = (bytes, permissions=3, memory_node=None))]
    fn alloc(&self, bytes: u64, permissions: u8, memory_node: Option<u16>) -> PyResult<Pending> {
        let permissions = self::permissions(permissions)?;
        let allocating = match memory_node {
            Some(node) => self.thread.alloc_on(node, bytes, permissions),
            None => self.thread.alloc(bytes, permissions),
        };
        let pool = self.pool.clone();
        Ok(Pending::of(&self.pool, allocating, |region| Ok(Answer::Region(pool, region))))
    }

    /// A region that another thread has allocated, of this process or shared with it.
    fn region(&self, address: u64, bytes: u64) -> Region {
        Region::new(self.pool.clone(), self.thread.region(Address(address), bytes))
    }

    /// Reads `bytes` bytes from `address` on.
    fn read(&self, address: u64, bytes: u64) -> Pending {
        self.bytes(self.thread.read(Address(address), bytes))
    }

    /// Fills a writable buffer, such as a NumPy array, with the bytes from `address` on, and waits
    /// for completion. No other thread may use the buffer meanwhile.
    fn read_into(&self, address: u64, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        let read = |to: &mut [u8]| self.thread.read_into(Address(address), to);
        buffer::fill(buffer, read)?.map_err(raised)
    }

    /// Writes the bytes of a buffer from `address` on, and waits for completion. No other thread
    /// may change the buffer meanwhile.
    fn write_from(&self, address: u64, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let write = |bytes: &[u8]| self.thread.write_from(Address(address), bytes);
        buffer::lend(data, write)?.map_err(raised)
    }

    /// Writes the bytes of a buffer from `address` on.
    fn write(&self, address: u64, data: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let written = buffer::read(data, |bytes| self.thread.write(Address(address), bytes))?;
        Ok(self.done(written))
    }

    /// Reads several ranges, `(address, bytes)` each, one after the other, as one operation.
    #[expect(clippy::needless_pass_by_value, reason = "Python gives a list")]
    fn gather(&self, places: Vec<(u64, u64)>) -> Pending {
        self.bytes(self.thread.gather(&segments(&places)))
    }

    /// Fills a writable buffer with the bytes of several ranges, `(address, bytes)` each, one after
    /// the other, as one operation, and waits for completion. The buffer's length is the sum of
    /// theirs.
    #[expect(clippy::needless_pass_by_value, reason = "Python gives a list")]
    fn gather_into(&self, places: Vec<(u64, u64)>, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = places.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let gather = |to: &mut [u8]| {
            if to.len() as u64 != bytes {
                let line = format!("a buffer of {} B: must be {bytes}, as the places", to.len());
                return Err(Failure::Input(line).into());
            }
            self.thread.gather_into(&segments(&places), to).map_err(raised)
        };
        buffer::fill(buffer, gather)?
    }

    /// Writes to several ranges, `(address, data)` each, as one operation.
    #[expect(clippy::needless_pass_by_value, reason = "Python gives a list")]
    fn scatter(&self, places: Vec<(u64, Bound<'_, PyAny>)>) -> PyResult<Pending> {
        let copied = places
            .iter()
            .map(|(address, data)| Ok((Address(*address), buffer::read(data, <[u8]>::to_vec)?)));
        let copied: Vec<(Address, Vec<u8>)> = copied.collect::<PyResult<_>>()?;
        let places: Vec<(Address, &[u8])> =
            copied.iter().map(|(address, data)| (*address, data.as_slice())).collect();
        Ok(self.done(self.thread.scatter(&places)))
    }

    /// Stores `desired` into the little-endian word at `address` if it equals `expected`, and
    /// returns the previous word.
    fn compare_and_swap(&self, address: u64, expected: u64, desired: u64) -> Pending {
        self.word(self.thread.compare_and_swap(Address(address), expected, desired))
    }

    /// Adds to the word at `address`, modulo 2^64, and returns the previous word.
    fn fetch_add(&self, address: u64, addend: u64) -> Pending {
        self.word(self.thread.fetch_add(Address(address), addend))
    }

    /// Stores a word, and returns the previous one.
    fn swap(&self, address: u64, word: u64) -> Pending {
        self.word(self.thread.swap(Address(address), word))
    }

    /// Executes any atomic of one operand on the word at `address`, and returns the previous word.
    /// `operation` is `add`, `swap`, `and`, `or` or `xor`.
    fn modify(&self, address: u64, operation: &str, operand: u64) -> PyResult<Pending> {
        let operation = match operation {
            "add" => RmwOperation::FetchAndAdd(operand),
            "swap" => RmwOperation::Swap(operand),
            "and" => RmwOperation::And(operand),
            "or" => RmwOperation::Or(operand),
            "xor" => RmwOperation::Xor(operand),
            other => {
                let line = format!("operation = '{other}': must be one of add, swap, and, or, xor");
                return Err(Failure::Input(line).into());
            }
        };
        Ok(self.word(self.thread.modify(Address(address), operation)))
    }

    /// Sets bit 0 of the word at `address`, and returns whether it was set before.
    fn test_and_set(&self, address: u64) -> Pending {
        let testing = self.thread.test_and_set(Address(address));
        Pending::of(&self.pool, testing, |set| Ok(Answer::Flag(set)))
    }

    /// Acquires the lock whose word is at `address`, once it is free. 0 is a free lock.
    fn lock(&self, address: u64) -> Pending {
        self.done(self.thread.lock(Address(address)))
    }

    /// Releases a lock, after all earlier operations of this thread are done.
    fn unlock(&self, address: u64) -> Pending {
        let thread = self.thread.clone();
        Pending::new(&self.pool, async move {
            thread.unlock(Address(address)).await?;
            Ok(Answer::Nothing)
        })
    }

    /// Completes when all earlier operations of this thread have completed.
    fn release(&self) -> Pending {
        self.done(self.thread.release())
    }

    /// As `release`, and every memory node that its process has used has done all earlier requests.
    fn fence(&self) -> Pending {
        self.done(self.thread.fence())
    }

    /// Completes after a time, in picoseconds of the pool's time.
    fn sleep(&self, time_ps: u64) -> Pending {
        self.done(self.thread.sleep(Ps(time_ps)))
    }

    /// Runs the operation `name` at the memory node of the address `at` in one round trip.
    /// `touches` are the ranges, `(address, bytes)` each, that it uses.
    #[pyo3(signature = (name, at, arguments, touches=Vec::new()))]
    #[expect(clippy::needless_pass_by_value, reason = "Python gives a list")]
    fn offload(
        &self,
        name: &str,
        at: u64,
        arguments: &Bound<'_, PyAny>,
        touches: Vec<(u64, u64)>,
    ) -> PyResult<Pending> {
        let touches = segments(&touches);
        let running = buffer::read(arguments, |arguments| {
            self.thread.offload(name, Address(at), arguments, &touches)
        })?;
        Ok(self.bytes(running))
    }

    /// Follows pointers from element to element until the key is found, at the memory node. Returns
    /// the element's address and its `value_bytes` bytes at `value_offset`, or None. Offsets are in
    /// bytes within an element: of the next one's address, of its key, of the value.
    #[pyo3(signature = (
        start, key, *, next_offset, key_offset, value_offset=0, value_bytes=0, elements_max=1 << 20
    ))]
    #[expect(clippy::too_many_arguments, reason = "callers name them")]
    fn chase(
        &self,
        start: u64,
        key: &Bound<'_, PyAny>,
        next_offset: u32,
        key_offset: u32,
        value_offset: u32,
        value_bytes: u32,
        elements_max: u32,
    ) -> PyResult<Pending> {
        let chase = Chase {
            start: Address(start),
            next_offset,
            key_offset,
            value_offset,
            value_bytes,
            elements_max,
            key: buffer::read(key, <[u8]>::to_vec)?,
        };
        let running = self.thread.offload(Chase::NAME, chase.start, &chase.encode(), &[]);
        Ok(Pending::of(&self.pool, running, |found| {
            let chased = Chase::result(&found).map(Answer::Chased);
            chased.map_err(|error| Error::of_offload(Chase::NAME, error).into())
        }))
    }

    /// Selects those of `records` records of `record_bytes` bytes each, from `start` on, whose
    /// field compares to `operand` as stated, at the memory node. `comparison` is `less`, `equal`
    /// or `greater`; the field is an eight-byte little-endian word at `field_offset` bytes.
    #[pyo3(signature = (start, *, record_bytes, records, comparison, operand, field_offset=0))]
    fn filter(
        &self,
        start: u64,
        record_bytes: u32,
        records: u32,
        comparison: &str,
        operand: u64,
        field_offset: u32,
    ) -> PyResult<Pending> {
        let comparison = match comparison {
            "less" => Comparison::Less,
            "equal" => Comparison::Equal,
            "greater" => Comparison::Greater,
            other => {
                let problem =
                    format!("comparison = '{other}': must be one of less, equal, greater");
                return Err(Failure::Input(problem).into());
            }
        };
        let start = Address(start);
        let filter = Filter { start, record_bytes, records, field_offset, comparison, operand };
        Ok(self.bytes(self.thread.offload(Filter::NAME, start, &filter.encode(), &[])))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.thread)
    }
}
