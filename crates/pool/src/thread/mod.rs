//! Threads, which submit operations in an order, and regions, which threads allocate.

mod region;

use std::fmt;

use ethermem_units::Ps;
use ethermem_wire::RmwOperation;
use smallvec::{SmallVec, smallvec};

use crate::address::{Address, Permissions, ProcessId};
use crate::attempts;
use crate::backend::{Access, Waited};
use crate::core::{Core, Submitted, ThreadId};
use crate::error::Error;
use crate::notify::{Current, Notify};
use crate::operation::{ACCESS_BYTES_MAX, Asker, Op, Reply, Segment, Segments};
use crate::pending::{Convert, Pending};
use crate::shared::Shared;

pub use region::Region;

/// A stream of operations with an order of its own, of a process, on a compute node.
///
/// Every operation is submitted when its method is called. Over a network it goes at once where
/// nothing is under way, and else with others: once there are many, or somebody waits for a result
/// or calls [`crate::Pool::step`], and within 10 ms whatever anybody does. Those that touch the
/// same page keep their order where one of them writes; others may be done in any. Clones are the
/// same thread.
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

    /// Its process.
    #[must_use]
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// Its compute node, from 0.
    #[must_use]
    pub fn compute(&self) -> u16 {
        self.compute
    }

    /// Another thread of the same process, on a compute node.
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

    /// Another thread of the same process, on the same node.
    #[must_use]
    pub fn fork(&self) -> Thread {
        self.fork_on(self.compute).expect("its own node is there, in its own process")
    }

    /// Time since the pool was opened.
    #[must_use]
    pub fn now(&self) -> Ps {
        self.shared.with(|core| core.now())
    }

    /// A region of zeros, on the next of the memory nodes in turn.
    pub fn alloc(&self, bytes: u64, permissions: Permissions) -> Pending<Region> {
        let memory = self.shared.check().map_or(0, |()| self.shared.with(Core::next_memory));
        self.alloc_on(memory, bytes, permissions)
    }

    /// A region of zeros, on a memory node.
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

    /// A region that another thread has allocated, of this process or shared with it. Whether that
    /// is so shows with the first access.
    #[must_use]
    pub fn region(&self, address: Address, bytes: u64) -> Region {
        Region::new(self.clone(), address, bytes)
    }

    /// The bytes from `address` on.
    pub fn read(&self, address: Address, bytes: u64) -> Pending<Vec<u8>> {
        let op = length(bytes).map(|()| Op::Read(smallvec![Segment { address, bytes }]));
        self.submit(op, Convert::Plain(Reply::into_bytes))
    }

    /// Fills `to` with the bytes from `address` on where that takes no way and no time: on
    /// `local:`, when nothing of this thread is under way. `None` where it must be waited for.
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

    /// Fills `to` with the bytes from `address` on, and waits for that.
    ///
    /// # Errors
    /// As [`Thread::read`].
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

    /// Writes `data` from `address` on, and waits for that: shorter than to wait for what
    /// [`Thread::write`] gives.
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

    /// Does what this machine thread waits for, where nothing of this thread is in flight and the
    /// backend has a way that is shorter than the way of other operations.
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
            Ok(id) => attempts::wait_for(&self.shared, id, to),
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

    /// The bytes of several places, one after the other, as one operation. Each place is read or
    /// refused by itself, and one that is refused fails it.
    pub fn gather(&self, places: &[Segment]) -> Pending<Vec<u8>> {
        let segments: Segments = SmallVec::from_slice(places);
        let op = lengths(&segments).map(|_| Op::Read(segments));
        self.submit(op, Convert::Plain(Reply::into_bytes))
    }

    /// Fills `to` with the bytes of several places, one after the other, as one operation, and
    /// waits for that.
    ///
    /// # Errors
    /// As [`Thread::gather`].
    ///
    /// # Panics
    /// When `to` is not as long as all of the places together.
    pub fn gather_into(&self, places: &[Segment], to: &mut [u8]) -> Result<(), Error> {
        let bytes = places.iter().fold(0_u64, |sum, place| sum.saturating_add(place.bytes));
        assert_eq!(bytes, to.len() as u64, "places of so many bytes together, and a buffer of");
        to.copy_from_slice(&self.gather(places).wait()?);
        Ok(())
    }

    /// Writes to several places, as one operation. Each place is written or refused by itself, and
    /// one that is refused fails it; where one is of no memory node of the pool, none is written.
    /// Places that overlap are written in any order.
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

    /// Stores `desired` into the little-endian word at `address` if it is `expected`, and gives
    /// the word before.
    pub fn compare_and_swap(&self, address: Address, expected: u64, desired: u64) -> Pending<u64> {
        self.modify(address, RmwOperation::CompareAndSwap { expected, desired })
    }

    /// Adds to the word at `address`, around the end, and gives the word before.
    pub fn fetch_add(&self, address: Address, addend: u64) -> Pending<u64> {
        self.modify(address, RmwOperation::FetchAndAdd(addend))
    }

    /// Stores a word, and gives the one before.
    pub fn swap(&self, address: Address, word: u64) -> Pending<u64> {
        self.modify(address, RmwOperation::Swap(word))
    }

    /// Sets bit 0 of the word at `address`, and says whether it was set.
    pub fn test_and_set(&self, address: Address) -> Pending<bool> {
        self.atomic(address, RmwOperation::Or(1), |reply| reply.into_word() & 1 == 1)
    }

    /// Any atomic: gives the word before.
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

    /// Takes the lock that the word at `address` is, once nobody holds it. A word of 0 is a free
    /// lock.
    ///
    /// Over a network the word also says whose the lock is: one whose process has died is given to
    /// the next, with [`Error::OwnerDied`], as a robust mutex is.
    pub fn lock(&self, address: Address) -> Pending<()> {
        let holder = self.shared.check().map(|()| self.lock_word());
        let op = holder.map(|holder| Op::Lock { word: address, holder });
        self.submit(op, Convert::Plain(drop))
    }

    /// Gives back a lock, when all operations of this thread before are done.
    ///
    /// # Errors
    /// [`Error::NotHeld`], and then nothing has changed.
    pub async fn unlock(&self, address: Address) -> Result<(), Error> {
        self.release().await?;
        let holder = self.lock_word();
        let held = self.compare_and_swap(address, holder, 0).await?;
        if held == holder { Ok(()) } else { Err(Error::NotHeld { address }) }
    }

    /// As [`Thread::unlock`], and waits for it.
    ///
    /// # Errors
    /// As [`Thread::unlock`].
    pub fn unlock_wait(&self, address: Address) -> Result<(), Error> {
        let unlocked = attempts::run(&self.shared, self.unlock(address), None);
        unlocked.unwrap_or_else(|unfinished| panic!("{unfinished}"))
    }

    /// What a lock that this thread holds says.
    fn lock_word(&self) -> u64 {
        self.shared.with(|core| core.lock_word(self.id))
    }

    /// Ends when all operations of this thread before have ended.
    pub fn release(&self) -> Pending<()> {
        self.pending(|core, notify| core.release(self.id, notify), Convert::Plain(drop))
    }

    /// Ends when all operations of this thread before have ended, and every memory node that its
    /// process has used has done what it was asked before.
    pub fn fence(&self) -> Pending<()> {
        self.pending(|core, notify| core.fence(self.id, notify), Convert::Plain(drop))
    }

    /// Runs the operation `name` at the memory node of `at`: one round trip, whatever it does
    /// there. `touches` are the places that it uses; operations of this thread there are ordered
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

    /// Ends after a while.
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

    /// An operation that fails at once.
    pub(crate) fn refuse<T>(&self, error: Error, convert: Convert<T>) -> Pending<T> {
        Pending::new(&self.shared, Submitted::Ended(Err(error)), convert, None)
    }

    fn submit<T>(&self, op: Result<Op, Error>, convert: Convert<T>) -> Pending<T> {
        match op {
            Ok(op) => self.pending(|core, notify| core.submit(self.id, op, notify), convert),
            Err(error) => self.refuse(error, convert),
        }
    }

    /// What is submitted. The task that is polled now will be told, since it is who awaits it
    /// mostly: it need not ask first.
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

/// Each of the parts, and all together: gives the sum.
fn lengths(segments: &Segments) -> Result<u64, Error> {
    let mut total: u64 = 0;
    for segment in segments {
        length(segment.bytes)?;
        total = total.saturating_add(segment.bytes);
    }
    length(total)?;
    Ok(total)
}
