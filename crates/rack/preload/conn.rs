//! The connections of this process: which descriptors have one, and the state of each end.
//!
//! A slot belongs to one process. An [`End`] is memory that forked processes share, as they share
//! the kernel's socket: positions and locks are there, so that any of them may go on.

use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::ledger::Count;
use crate::line::{Consumer, Line, Producer};
use crate::lock::Lock;
use crate::offer::{Address, HEADER_BYTES, memory_bytes};
use crate::shared::References;
use crate::{rack, sys, tx};

/// Descriptors from this number on stay with the kernel.
pub const DESCRIPTORS: usize = 65_536;
/// Most connections and listeners of one process.
const SLOTS: usize = 32_768;
const END_BYTES: usize = 4096;
/// This bit marks the descriptor of a listener's mailbox.
const MAILBOX: u32 = 1 << 31;

/// The slot of each descriptor plus 1, or 0.
static TABLE: [AtomicU32; DESCRIPTORS] = [const { AtomicU32::new(0) }; DESCRIPTORS];
static ALL: [Slot; SLOTS] = [const { Slot::free() }; SLOTS];
/// Slots before this one may be in use.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);
static HIGHEST_DESCRIPTOR: AtomicI32 = AtomicI32::new(0);
/// Where the search for a free slot begins.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// How far an end is.
pub mod stage {
    /// The kernel still connects.
    pub const CONNECTING: u32 = 1;
    /// Accepted; the offer may still come.
    pub const ACCEPTED: u32 = 2;
    /// Offered; the other end may join.
    pub const OFFERED: u32 = 3;
    /// Both ends have the memory.
    pub const JOINED: u32 = 4;
    /// The kernel carries it to its end.
    pub const KERNEL: u32 = 5;
}

/// One end of a connection, in memory shared by forked processes.
#[repr(C)]
pub struct End {
    pub tx: Lock,
    pub rx: Lock,
    /// Descriptors in all processes.
    pub refs: AtomicU32,
    pub stage: AtomicU32,
    /// The socket was put into an epoll set: an empty ring always rings.
    pub epolled: AtomicU32,
    /// Nothing more is sent through memory.
    pub stay: AtomicU32,
    /// The program's own values of `TCP_NODELAY` and `TCP_CORK`: the kernel's are the bells'.
    pub nodelay: AtomicU32,
    pub cork: AtomicU32,
    /// Threads that sleep in the kernel until the socket is readable: an empty ring rings then.
    pub asleep: AtomicU32,
    /// The socket's error that a look at the socket took, to be told to the program; or 0.
    pub error: AtomicU32,
    /// The other end stored words that cannot be.
    faulty: AtomicU32,
    /// Bytes of the stream may lie in a file that [`crate::left`] keeps.
    pub left: AtomicU32,
    /// When the other end was last checked for life, in milliseconds.
    pub checked_ms: AtomicU64,
    /// Bytes behind the producer's head that the program fills to send them by reference.
    pub reserved: AtomicU64,
    /// The other end's address that the program is told, if it is of another rack; or 0.
    pub shown: AtomicU64,
    pub producer: UnsafeCell<Producer>,
    pub consumer: UnsafeCell<Consumer>,
    /// References that the program has to received bytes.
    pub held: UnsafeCell<References>,
    pub local: Address,
    pub peer: Address,
    /// This end accepted.
    pub accepted: bool,
}

impl End {
    /// True if the next bytes of an empty ring must ring: a thread may sleep in the kernel.
    pub fn always_rings(&self) -> bool {
        self.epolled.load(Ordering::SeqCst) != 0 || self.asleep.load(Ordering::SeqCst) != 0
    }

    /// Counts a connection whose other end is broken or lies, once.
    pub fn count_fault(&self) {
        if self.faulty.swap(1, Ordering::AcqRel) == 0 {
            rack::count(Count::Faults, 1);
        }
    }

    /// True if the connection has returned to the kernel for good.
    pub fn is_kernel(&self) -> bool {
        self.stage.load(Ordering::Acquire) == stage::KERNEL
    }
}

/// A connection or a listener of this process.
#[repr(C, align(64))]
pub struct Slot {
    pub used: AtomicU32,
    /// Descriptors of this process.
    pub fds: AtomicU32,
    /// Calls in progress.
    users: AtomicU32,
    /// Attempts left to find the offer.
    pub tries: AtomicU32,
    /// Microseconds for which the next wait polls memory.
    pub spin_us: AtomicU32,
    /// Microseconds for which the next non-blocking call polls for room.
    pub room_us: AtomicU32,
    /// How long a blocking call waits for a reader that takes nothing from the kernel's socket, so
    /// that it may enter the ring.
    pub drain_ms: AtomicU32,
    /// The listener that accepted it, plus 1.
    pub listener: AtomicU32,
    end: AtomicUsize,
    memory: AtomicUsize,
    pub ring_bytes: AtomicU64,
    /// The listener's mailbox, or -1.
    pub mailbox: AtomicI32,
    /// An epoll set that is owed an event: its bytes arrived without a bell.
    pub owed: AtomicI32,
    pub owed_events: AtomicU32,
    pub owed_data: AtomicU64,
    /// The descriptor by which the set has the socket.
    pub owed_fd: AtomicI32,
    /// Where the file of unread bytes is mapped, and its bytes.
    pub left: AtomicUsize,
    pub left_bytes: AtomicUsize,
    /// Both rings, each mapped twice in a row, for references: from this end, and to it.
    pub mirrors: [AtomicUsize; 2],
}

/// The first bytes of a connection's memory.
#[repr(C)]
pub struct Header {
    pub version: u64,
    pub ring_bytes: u64,
    pub joined: AtomicU32,
}

/// One direction, as this end uses it.
#[derive(Clone, Copy)]
pub struct View {
    pub line: &'static Line,
    pub ring: *mut u8,
    pub size: u64,
}

const LINES_AT: usize = 1024;
const _: () = assert!(LINES_AT + 2 * size_of::<Line>() <= HEADER_BYTES);
const _: () = assert!(size_of::<End>() <= END_BYTES);

impl Slot {
    const fn free() -> Slot {
        Slot {
            used: AtomicU32::new(0),
            fds: AtomicU32::new(0),
            users: AtomicU32::new(0),
            tries: AtomicU32::new(0),
            spin_us: AtomicU32::new(0),
            room_us: AtomicU32::new(0),
            drain_ms: AtomicU32::new(0),
            listener: AtomicU32::new(0),
            end: AtomicUsize::new(0),
            memory: AtomicUsize::new(0),
            ring_bytes: AtomicU64::new(0),
            mailbox: AtomicI32::new(-1),
            owed: AtomicI32::new(-1),
            owed_events: AtomicU32::new(0),
            owed_data: AtomicU64::new(0),
            owed_fd: AtomicI32::new(-1),
            left: AtomicUsize::new(0),
            left_bytes: AtomicUsize::new(0),
            mirrors: [const { AtomicUsize::new(0) }; 2],
        }
    }

    pub fn end(&self) -> Option<&'static End> {
        // SAFETY: the page stays mapped while the slot has descriptors or calls in progress.
        unsafe { (self.end.load(Ordering::Acquire) as *const End).as_ref() }
    }

    pub fn header(&self) -> Option<&'static Header> {
        // SAFETY: as for the end's page.
        unsafe { (self.memory.load(Ordering::Acquire) as *const Header).as_ref() }
    }

    /// The direction to the other end, or from it; `None` without memory, or after the return to
    /// the kernel.
    pub fn view(&self, sends: bool) -> Option<View> {
        let at = self.memory.load(Ordering::Acquire);
        if at == 0 {
            return None;
        }
        let size = self.ring_bytes.load(Ordering::Acquire);
        let end = self.end().filter(|end| !end.is_kernel())?;
        let second = usize::from(end.accepted == sends);
        // SAFETY: the mapping has a header, two lines and two rings, and its size is sealed.
        unsafe {
            let base = at as *mut u8;
            let line = base.add(LINES_AT + second * size_of::<Line>()).cast::<Line>();
            let ring = base.add(HEADER_BYTES + second * size as usize);
            Some(View { line: &*line, ring, size })
        }
    }

    pub fn set_memory(&self, at: usize, ring_bytes: u64) {
        self.ring_bytes.store(ring_bytes, Ordering::Release);
        self.memory.store(at, Ordering::Release);
    }

    pub fn number(&self) -> u32 {
        let offset = core::ptr::from_ref(self) as usize - ALL.as_ptr() as usize;
        (offset / size_of::<Slot>()) as u32
    }
}

/// A call in progress on a descriptor: its slot stays while this lives.
pub struct Use {
    pub fd: i32,
    pub slot: &'static Slot,
}

impl Drop for Use {
    fn drop(&mut self) {
        if self.slot.users.fetch_sub(1, Ordering::SeqCst) == 1 {
            discard(self.slot);
        }
    }
}

impl Use {
    pub fn end(&self) -> Option<&'static End> {
        self.slot.end()
    }
}

fn entry(fd: i32) -> Option<&'static AtomicU32> {
    TABLE.get(usize::try_from(fd).ok()?)
}

/// Descriptors from this number on have no slot.
pub fn highest_descriptor() -> i32 {
    HIGHEST_DESCRIPTOR.load(Ordering::Acquire)
}

fn set(fd: i32, number: u32) {
    if let Some(entry) = entry(fd) {
        entry.store(number, Ordering::Release);
        HIGHEST_DESCRIPTOR.fetch_max(fd + 1, Ordering::AcqRel);
    }
}

/// True if the library knows something about a descriptor.
pub fn is_known(fd: i32) -> bool {
    entry(fd).is_some_and(|entry| entry.load(Ordering::Acquire) != 0)
}

/// The slot of a descriptor, if it has one.
pub fn find(fd: i32) -> Option<Use> {
    let entry = entry(fd)?;
    let number = entry.load(Ordering::Acquire);
    if number == 0 || number & MAILBOX != 0 {
        return None;
    }
    let slot = &ALL[number as usize - 1];
    slot.users.fetch_add(1, Ordering::AcqRel);
    let used = Use { fd, slot };
    (entry.load(Ordering::Acquire) == number).then_some(used)
}

/// Keeps a slot while a call looks at it without a descriptor.
pub fn hold(slot: &'static Slot) -> Use {
    slot.users.fetch_add(1, Ordering::AcqRel);
    Use { fd: -1, slot }
}

/// The slot of a descriptor that is a connection.
pub fn connection(fd: i32) -> Option<Use> {
    find(fd).filter(|used| used.end().is_some())
}

/// Slots of this process that have descriptors.
pub fn all() -> impl Iterator<Item = &'static Slot> {
    let highest = HIGHEST.load(Ordering::Acquire);
    ALL[..highest].iter().filter(|slot| slot.fds.load(Ordering::Acquire) > 0)
}

pub fn by_number(number: u32) -> Option<&'static Slot> {
    ALL.get(number as usize)
}

/// A slot for `fd`; `None` if all are in use, or the number is too large.
pub fn insert(fd: i32) -> Option<&'static Slot> {
    entry(fd)?;
    let start = NEXT.load(Ordering::Relaxed);
    for step in 0..SLOTS {
        let number = (start + step) % SLOTS;
        let slot = &ALL[number];
        if slot.used.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_err() {
            continue;
        }
        NEXT.store((number + 1) % SLOTS, Ordering::Relaxed);
        HIGHEST.fetch_max(number + 1, Ordering::AcqRel);
        slot.spin_us.store(rack::SPIN_US_MAX, Ordering::Relaxed);
        slot.room_us.store(tx::ROOM_US_MAX, Ordering::Relaxed);
        slot.drain_ms.store(tx::DRAIN_MS_MOST, Ordering::Relaxed);
        slot.owed.store(-1, Ordering::Relaxed);
        slot.mailbox.store(-1, Ordering::Relaxed);
        slot.listener.store(0, Ordering::Relaxed);
        slot.fds.store(1, Ordering::Release);
        set(fd, number as u32 + 1);
        return Some(slot);
    }
    None
}

/// Gives a new slot its end.
pub fn insert_end(fd: i32, stage: u32, local: Address, peer: Address) -> Option<&'static Slot> {
    const SHARED_ANONYMOUS: usize = 0x21;
    // SAFETY: this maps new memory at an address that the kernel chooses.
    let at = unsafe { sys::call(sys::MMAP, [0, END_BYTES, 3, SHARED_ANONYMOUS, usize::MAX, 0]) };
    if at < 0 {
        return None;
    }
    let page = at as *mut End;
    // SAFETY: the page is new, zero, and as large as an end; zeros are valid in every field.
    unsafe {
        (*page).refs = AtomicU32::new(1);
        (*page).stage = AtomicU32::new(stage);
        (*page).local = local;
        (*page).peer = peer;
        (*page).accepted = stage == stage::ACCEPTED;
    }
    let Some(slot) = insert(fd) else {
        // SAFETY: nothing refers to the page.
        unsafe { sys::call4(sys::MUNMAP, at as usize, END_BYTES, 0, 0) };
        return None;
    };
    slot.end.store(at as usize, Ordering::Release);
    Some(slot)
}

/// Makes `fd` another descriptor of a slot.
pub fn add(fd: i32, used: &Use) {
    if entry(fd).is_none() {
        return;
    }
    used.slot.fds.fetch_add(1, Ordering::AcqRel);
    if let Some(end) = used.end() {
        end.refs.fetch_add(1, Ordering::AcqRel);
    }
    set(fd, used.slot.number() + 1);
}

/// Marks `fd` as the mailbox of a slot.
pub fn set_mailbox(fd: i32, slot: &Slot) {
    set(fd, MAILBOX | (slot.number() + 1));
    slot.mailbox.store(fd, Ordering::Release);
}

/// The slot whose mailbox `fd` was; its number may have another meaning from now on.
pub fn forget_mailbox(fd: i32) {
    let Some(entry) = entry(fd) else { return };
    let number = entry.load(Ordering::Acquire);
    if number & MAILBOX != 0 {
        entry.store(0, Ordering::Release);
        ALL[(number & !MAILBOX) as usize - 1].mailbox.store(-1, Ordering::Release);
    }
}

/// Removes a descriptor. The caller has counted it off its end.
pub fn remove(used: &Use) {
    if let Some(entry) = entry(used.fd) {
        entry.store(0, Ordering::Release);
    }
    used.slot.fds.fetch_sub(1, Ordering::AcqRel);
}

/// Frees a slot without descriptors and calls.
fn discard(slot: &'static Slot) {
    let is_idle = || slot.fds.load(Ordering::SeqCst) == 0 && slot.users.load(Ordering::SeqCst) == 0;
    // A call that ends while this thread looks relies on it to look again.
    while is_idle() {
        if slot.used.compare_exchange(1, 2, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return;
        }
        if is_idle() {
            return free(slot);
        }
        slot.used.store(1, Ordering::SeqCst);
    }
}

fn free(slot: &'static Slot) {
    let memory = slot.memory.swap(0, Ordering::AcqRel);
    let end = slot.end.swap(0, Ordering::AcqRel);
    if slot.owed.load(Ordering::Acquire) >= 0 {
        crate::ready::forgive(slot);
    }
    if memory != 0 {
        unmap(memory, slot.ring_bytes.load(Ordering::Acquire));
    }
    let left = slot.left.swap(0, Ordering::AcqRel);
    crate::shared::unmap(slot);
    // SAFETY: no descriptor and no call refers to the pages.
    unsafe {
        if end != 0 {
            sys::call4(sys::MUNMAP, end, END_BYTES, 0, 0);
        }
        if left != 0 {
            sys::call4(sys::MUNMAP, left, slot.left_bytes.load(Ordering::Acquire), 0, 0);
        }
    }
    slot.used.store(0, Ordering::Release);
}

/// Unmaps a connection's memory, and settles the accounts.
pub fn unmap(memory: usize, ring_bytes: u64) {
    let bytes = memory_bytes(ring_bytes);
    // SAFETY: the caller has removed the last reference to the mapping.
    unsafe { sys::call4(sys::MUNMAP, memory, bytes, 0, 0) };
    rack::unmapped(ring_bytes);
}

/// Maps a connection's memory, within the pool.
pub fn map(fd: i32, ring_bytes: u64) -> Option<usize> {
    if !rack::take(ring_bytes) {
        return None;
    }
    let bytes = memory_bytes(ring_bytes);
    // SAFETY: this maps a file whose size the caller has checked, at an address of the kernel.
    let at =
        unsafe { sys::call(sys::MMAP, [null_mut::<u8>() as usize, bytes, 3, 1, fd as usize, 0]) };
    if at < 0 {
        rack::give(ring_bytes);
        return None;
    }
    rack::mapped(ring_bytes);
    Some(at as usize)
}

/// Before a fork: the child will have all descriptors, too. What has not joined will not.
pub fn before_fork() {
    for slot in all() {
        let Some(end) = slot.end() else { continue };
        end.refs.fetch_add(slot.fds.load(Ordering::Acquire), Ordering::AcqRel);
        let stage = &end.stage;
        for early in [stage::CONNECTING, stage::ACCEPTED] {
            let to = stage::KERNEL;
            let _ = stage.compare_exchange(early, to, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}

/// In a fork's child: the calls of other threads are not here. Its mappings are counted again.
pub fn after_fork() {
    let highest = HIGHEST.load(Ordering::Acquire);
    for slot in &ALL[..highest] {
        slot.users.store(0, Ordering::Release);
        if slot.memory.load(Ordering::Acquire) != 0 {
            let ring_bytes = slot.ring_bytes.load(Ordering::Acquire);
            rack::mapped_by_fork(ring_bytes);
        }
    }
}

/// At the end of the process: its mappings end with it.
pub fn all_memory() -> impl Iterator<Item = u64> {
    let highest = HIGHEST.load(Ordering::Acquire);
    let has = |slot: &&Slot| slot.memory.load(Ordering::Acquire) != 0;
    ALL[..highest].iter().filter(has).map(|slot| slot.ring_bytes.load(Ordering::Acquire))
}
