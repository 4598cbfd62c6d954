//! Threads submit operations in an order; regions are memory that threads allocate.

mod region;

use std::fmt;

use ethermem_units::Ps;
use ethermem_wire::RmwOperation;
use smallvec::{SmallVec, smallvec};

use crate::address::{Address, Permissions, ProcessId};
use crate::attempts;
use crate::backend::{Access, Lent, Waited};
use crate::core::{Core, Submitted, ThreadId};
use crate::error::Error;
use crate::notify::{Current, Notify};
use crate::operation::{ACCESS_BYTES_MAX, Asker, Op, Reply, Segment, Segments};
use crate::pending::{Convert, Pending};
use crate::shared::Shared;

pub use region::Region;

/// An ordered stream of operations of a process, on a compute node.
///
/// Every operation is submitted when its method is called. Over a network it is sent at once if
/// nothing is in flight. Otherwise it is batched, and sent once there are many, a thread waits for
/// a result or calls [`crate::Pool::step`], and after 10 ms at the latest. Operations that touch
/// the same page stay in order if one of them writes; others may be done in any order. Clones are
/// the same thread.
#[derive(Clone)]
pub struct Thread {
    shared: Shared,
    id: ThreadId,
    process: ProcessId,
    compute: u16,
}

impl Thread {
    pub(crate) fn new(shared: Shared, id: ThreadId, process: ProcessId, compute: u16) -> Thread {
        Thread { shared, id, process, compute }
    }

    /// The thread's process.
    #[must_use]
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// Index of the thread's compute node, from 0.
    #[must_use]
    pub fn compute(&self) -> u16 {
        self.compute
    }

    /// Creates another thread of the same process, on the given compute node.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`].
    pub fn fork_on(&self, compute: u16) -> Result<Thread, Error> {
        self.shared.check()?;
        let asker = Asker { process: self.process, compute };
        let id = self.shared.with(|core| {
            core.check_compute(compute)?;
            Ok(core.new_thread(asker))
        })?;
        Ok(Thread::new(self.shared.clone(), id, self.process, compute))
    }

    /// Creates another thread of the same process, on the same node.
    #[must_use]
    pub fn fork(&self) -> Thread {
        self.fork_on(self.compute).expect("its own node is there, in its own process")
    }

    /// Time since the pool was opened.
    #[must_use]
    pub fn now(&self) -> Ps {
        self.shared.with(|core| core.now())
    }

    /// Allocates a region of zeros, on the next memory node in round-robin order.
    pub fn alloc(&self, bytes: u64, permissions: Permissions) -> Pending<Region> {
        let memory = self.shared.check().map_or(0, |()| self.shared.with(Core::next_memory));
        self.alloc_on(memory, bytes, permissions)
    }

    /// Allocates a region of zeros, on the given memory node.
    pub fn alloc_on(&self, memory: u16, bytes: u64, permissions: Permissions) -> Pending<Region> {
        let thread = self.clone();
        let region = move |reply| {
            let Reply::Address(address) = reply else { unreachable!("an allocation") };
            Region::new(thread, address, bytes)
        };
        let op = length(bytes).and_then(|()| {
            self.shared.check()?;
            self.shared.with(|core| core.check_memory(memory))?;
            Ok(Op::Alloc { memory, bytes, permissions })
        });
        self.submit(op, Convert::With(Box::new(region)))
    }

    /// A region that another thread has allocated, of this process or shared with it. The first
    /// access checks that.
    #[must_use]
    pub fn region(&self, address: Address, bytes: u64) -> Region {
        Region::new(self.clone(), address, bytes)
    }

    /// Reads `bytes` bytes from `address` on.
    pub fn read(&self, address: Address, bytes: u64) -> Pending<Vec<u8>> {
        let op = length(bytes).map(|()| Op::Read(smallvec![Segment { address, bytes }]));
        self.submit(op, Convert::Plain(Reply::into_bytes))
    }

    /// Fills `to` with the bytes from `address` on where the access completes at once: on `local:`,
    /// when this thread has nothing in flight. Returns `None` where the thread must wait.
    pub fn read_now(&self, address: Address, to: &mut [u8]) -> Option<Result<(), Error>> {
        if let Err(error) = length(to.len() as u64) {
            return Some(Err(error));
        }
        if let Err(error) = self.shared.check() {
            return Some(Err(error));
        }
        let read = self.shared.with(|core| core.at_once(self.id, Access::Read(address, to)));
        read.map(|read| read.map(drop))
    }

    /// Fills `to` with the bytes from `address` on, and waits for completion.
    ///
    /// # Errors
    /// As [`Thread::read`]. `to` may have some of the bytes then.
    pub fn read_into(&self, address: Address, to: &mut [u8]) -> Result<(), Error> {
        let bytes = to.len() as u64;
        length(bytes)?;
        match self.wait_directly(Waited::Read(Segment { address, bytes }), to) {
            Some(result) => result,
            None => {
                to.copy_from_slice(&self.read(address, bytes).wait()?);
                Ok(())
            }
        }
    }

    /// Writes `data` from `address` on, and waits for completion. It is faster than waiting for the
    /// handle of [`Thread::write`].
    ///
    /// # Errors
    /// As [`Thread::write`].
    pub fn write_from(&self, address: Address, data: &[u8]) -> Result<(), Error> {
        length(data.len() as u64)?;
        match self.wait_directly(Waited::Write(address, data), &mut []) {
            Some(result) => result,
            None => self.write(address, data).wait(),
        }
    }

    /// Takes the backend's direct path where there is one and this thread has nothing in flight,
    /// and waits for completion.
    fn wait_directly(&self, waited: Waited<'_>, to: &mut [u8]) -> Option<Result<(), Error>> {
        if let Err(error) = self.shared.check() {
            return Some(Err(error));
        }
        let begun = self.shared.with(|core| {
            let access = match waited {
                Waited::Read(from) => Access::Read(from.address, &mut *to),
                Waited::Write(to, from) => Access::Write(to, from),
            };
            match core.at_once(self.id, access) {
                Some(ended) => Some(Err(ended.map(drop))),
                None => core.begin_waited(self.id, waited).map(Ok),
            }
        })?;
        Some(match begun {
            Err(ended) => ended,
            Ok(id) => {
                let lent = match waited {
                    Waited::Read(_) => Lent::To(to),
                    Waited::Write(_, data) => Lent::From(data),
                };
                attempts::wait_for(&self.shared, id, lent)
            }
        })
    }

    /// Writes `data` from `address` on.
    pub fn write(&self, address: Address, data: &[u8]) -> Pending<()> {
        let bytes = data.len() as u64;
        if let Err(error) = length(bytes) {
            return self.refuse(error, Convert::Plain(drop));
        }
        let submit =
            |core: &mut Core, notify| match core.at_once(self.id, Access::Write(address, data)) {
                Some(written) => Submitted::Ended(written.map(|_| Reply::Done)),
                None => {
                    let segments: Segments = smallvec![Segment { address, bytes }];
                    core.submit(self.id, Op::Write(segments, data.to_vec()), notify)
                }
            };
        self.pending(submit, Convert::Plain(drop))
    }

    /// Reads several ranges, one after the other, as one operation. Each range is read or refused
    /// by itself, and one refused range fails the operation.
    pub fn gather(&self, places: &[Segment]) -> Pending<Vec<u8>> {
        let segments: Segments = SmallVec::from_slice(places);
        let op = lengths(&segments).map(|_| Op::Read(segments));
        self.submit(op, Convert::Plain(Reply::into_bytes))
    }

    /// Fills `to` with the bytes of several ranges, one after the other, as one operation, and
    /// waits for completion.
    ///
    /// # Errors
    /// As [`Thread::gather`].
    ///
    /// # Panics
    /// When the length of `to` differs from the sum of the ranges' lengths.
    pub fn gather_into(&self, places: &[Segment], to: &mut [u8]) -> Result<(), Error> {
        let bytes = places.iter().fold(0_u64, |sum, place| sum.saturating_add(place.bytes));
        assert_eq!(bytes, to.len() as u64, "places of so many bytes together, and a buffer of");
        to.copy_from_slice(&self.gather(places).wait()?);
        Ok(())
    }

    /// Writes to several ranges, as one operation. Each range is written or refused by itself, and
    /// one refused range fails the operation. If a range is on no memory node of the pool, none is
    /// written. Ranges that overlap are written in any order.
    pub fn scatter(&self, places: &[(Address, &[u8])]) -> Pending<()> {
        let segment =
            |&(address, data): &(Address, &[u8])| Segment { address, bytes: data.len() as u64 };
        let segments: Segments = places.iter().map(segment).collect();
        let op = lengths(&segments).map(|total| {
            let mut all = Vec::with_capacity(total as usize);
            places.iter().for_each(|(_, data)| all.extend_from_slice(data));
            Op::Write(segments, all)
        });
        self.submit(op, Convert::Plain(drop))
    }

    /// Stores `desired` into the little-endian word at `address` if it equals `expected`, and
    /// returns the previous word.
    pub fn compare_and_swap(&self, address: Address, expected: u64, desired: u64) -> Pending<u64> {
        self.modify(address, RmwOperation::CompareAndSwap { expected, desired })
    }

    /// Adds to the word at `address`, modulo 2^64, and returns the previous word.
    pub fn fetch_add(&self, address: Address, addend: u64) -> Pending<u64> {
        self.modify(address, RmwOperation::FetchAndAdd(addend))
    }

    /// Stores a word, and returns the previous one.
    pub fn swap(&self, address: Address, word: u64) -> Pending<u64> {
        self.modify(address, RmwOperation::Swap(word))
    }

    /// Sets bit 0 of the word at `address`, and returns whether it was set before.
    pub fn test_and_set(&self, address: Address) -> Pending<bool> {
        self.atomic(address, RmwOperation::Or(1), |reply| reply.into_word() & 1 == 1)
    }

    /// Executes any atomic, and returns the previous word.
    pub fn modify(&self, address: Address, operation: RmwOperation) -> Pending<u64> {
        self.atomic(address, operation, Reply::into_word)
    }

    fn atomic<T>(
        &self,
        address: Address,
        operation: RmwOperation,
        convert: fn(Reply) -> T,
    ) -> Pending<T> {
        let submit = |core: &mut Core, notify| match core
            .at_once(self.id, Access::Modify(address, operation))
        {
            Some(before) => Submitted::Ended(before.map(Reply::Word)),
            None => core.submit(self.id, Op::Modify(address, operation), notify),
        };
        self.pending(submit, Convert::Plain(convert))
    }

    /// Acquires the lock whose word is at `address`, once it is free. A word of 0 is a free lock.
    ///
    /// Over a network the word also identifies the holder. A lock whose process has died passes to
    /// the next waiter, with [`Error::OwnerDied`], as a robust mutex does.
    pub fn lock(&self, address: Address) -> Pending<()> {
        let holder = self.shared.check().map(|()| self.lock_word());
        let op = holder.map(|holder| Op::Lock { word: address, holder });
        self.submit(op, Convert::Plain(drop))
    }

    /// Releases a lock, after all earlier operations of this thread are done.
    ///
    /// # Errors
    /// [`Error::NotHeld`], and then the word is unchanged.
    pub async fn unlock(&self, address: Address) -> Result<(), Error> {
        self.release().await?;
        let holder = self.lock_word();
        let held = self.compare_and_swap(address, holder, 0).await?;
        if held == holder { Ok(()) } else { Err(Error::NotHeld { address }) }
    }

    /// As [`Thread::unlock`], but blocks until it completes.
    ///
    /// # Errors
    /// As [`Thread::unlock`].
    pub fn unlock_wait(&self, address: Address) -> Result<(), Error> {
        let unlocked = attempts::run(&self.shared, self.unlock(address), None);
        unlocked.unwrap_or_else(|unfinished| panic!("{unfinished}"))
    }

    /// Content of a lock's word while this thread holds the lock.
    fn lock_word(&self) -> u64 {
        self.shared.with(|core| core.lock_word(self.id))
    }

    /// Completes when all earlier operations of this thread have completed.
    pub fn release(&self) -> Pending<()> {
        self.pending(|core, notify| core.release(self.id, notify), Convert::Plain(drop))
    }

    /// Completes when all earlier operations of this thread have completed, and every memory node
    /// that its process has used has done all earlier requests.
    pub fn fence(&self) -> Pending<()> {
        self.pending(|core, notify| core.fence(self.id, notify), Convert::Plain(drop))
    }

    /// Runs the operation `name` at the memory node of `at` in one round trip, whatever it does
    /// there. `touches` are the ranges that it uses; operations of this thread on them are ordered
    /// with it.
    pub fn offload(
        &self,
        name: &str,
        at: Address,
        arguments: &[u8],
        touches: &[Segment],
    ) -> Pending<Vec<u8>> {
        let found =
            self.shared.check().and_then(|()| self.shared.with(|core| core.offload_at(name, at)));
        let touches: Segments = SmallVec::from_slice(touches);
        let checked = if touches.is_empty() { Ok(0) } else { lengths(&touches) };
        let op = checked.and(found).map(|offload| Op::Offload {
            memory: at.memory(),
            touches,
            name: name.to_owned(),
            offload,
            arguments: arguments.to_vec(),
        });
        self.submit(op, Convert::Plain(Reply::into_bytes))
    }

    /// Completes after `time`.
    pub fn sleep(&self, time: Ps) -> Pending<()> {
        let submit = |core: &mut Core, notify| {
            let until = Ps(core.now().0.saturating_add(time.0));
            core.submit(self.id, Op::Sleep(until), notify)
        };
        self.pending(submit, Convert::Plain(drop))
    }

    pub(crate) fn free(&self, address: Address, bytes: u64) -> Pending<()> {
        let op = length(bytes).map(|()| Op::Free(address, bytes));
        self.submit(op, Convert::Plain(drop))
    }

    pub(crate) fn share(
        &self,
        region: Segment,
        with: ProcessId,
        permissions: Permissions,
    ) -> Pending<()> {
        let op = length(region.bytes).map(|()| Op::Share { region, with, permissions });
        self.submit(op, Convert::Plain(drop))
    }

    /// Makes an operation that fails at once.
    pub(crate) fn refuse<T>(&self, error: Error, convert: Convert<T>) -> Pending<T> {
        Pending::new(&self.shared, Submitted::Ended(Err(error)), convert, None)
    }

    fn submit<T>(&self, op: Result<Op, Error>, convert: Convert<T>) -> Pending<T> {
        match op {
            Ok(op) => self.pending(|core, notify| core.submit(self.id, op, notify), convert),
            Err(error) => self.refuse(error, convert),
        }
    }

    /// The handle of a submitted operation. The task that is polled at present will be notified
    /// without having to ask, because it is usually the one that awaits the result.
    #[inline]
    fn pending<T>(
        &self,
        submit: impl FnOnce(&mut Core, Option<Notify>) -> Submitted,
        convert: Convert<T>,
    ) -> Pending<T> {
        if let Err(error) = self.shared.check() {
            return self.refuse(error, convert);
        }
        let task = Current::of(self.shared.address());
        let notify = task.map(|task| Notify::Task(task.key));
        let submitted = self.shared.with(|core| submit(core, notify));
        Pending::new(&self.shared, submitted, convert, task.and_then(|task| task.poll))
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Thread({} of {:?} on node {})", self.id, self.process, self.compute)
    }
}

fn length(bytes: u64) -> Result<(), Error> {
    let most = ACCESS_BYTES_MAX;
    match bytes {
        0 => Err(Error::Empty { most }),
        bytes if bytes > most => Err(Error::TooLong { bytes, most }),
        _ => Ok(()),
    }
}

/// Checks the length of each range and of all together, and returns the sum in bytes.
fn lengths(segments: &Segments) -> Result<u64, Error> {
    let mut total: u64 = 0;
    for segment in segments {
        length(segment.bytes)?;
        total = total.saturating_add(segment.bytes);
    }
    length(total)?;
    Ok(total)
}
