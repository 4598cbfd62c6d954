//! The rack's settings in this process, its ledger, and the time.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::ledger::{Count, Ledger, MAGIC, Row};
use crate::offer::{NETWORKS_MAX, NODES_MAX, VARIABLE, is_ring, share_bytes};
use crate::sys;

/// Longest time for which a thread polls memory before it sleeps, in microseconds.
pub const SPIN_US_MAX: u32 = 50;
const NAME_MAX: usize = 64;
/// Longest path of the ledger, in bytes.
pub const PATH_MAX: usize = 256;

static PROCESS: AtomicU32 = AtomicU32::new(0);
static RUN: AtomicU32 = AtomicU32::new(0);
static LEDGER: AtomicUsize = AtomicUsize::new(0);
static ROW: AtomicUsize = AtomicUsize::new(0);
static RING_BYTES: AtomicU64 = AtomicU64::new(0);
static POOL_BYTES: AtomicU64 = AtomicU64::new(0);
static PROCESSORS: AtomicU32 = AtomicU32::new(1);
static NODES: [AtomicU32; NODES_MAX] = [const { AtomicU32::new(0) }; NODES_MAX];
static NODE_COUNT: AtomicUsize = AtomicUsize::new(0);
/// Networks of other racks: the address, and the bits of its prefix in the lowest byte.
static NETWORKS: [AtomicU64; NETWORKS_MAX] = [const { AtomicU64::new(0) }; NETWORKS_MAX];
static NETWORK_COUNT: AtomicUsize = AtomicUsize::new(0);

struct Text<const MAX: usize>(UnsafeCell<([u8; MAX], usize)>);
// SAFETY: a text is stored before the program starts, and only read later.
unsafe impl<const MAX: usize> Sync for Text<MAX> {}
static NAME: Text<NAME_MAX> = Text(UnsafeCell::new(([0; NAME_MAX], 0)));
static PATH: Text<PATH_MAX> = Text(UnsafeCell::new(([0; PATH_MAX], 0)));

impl<const MAX: usize> Text<MAX> {
    fn get(&self) -> &[u8] {
        // SAFETY: it is not stored any more.
        let (bytes, length) = unsafe { &*self.0.get() };
        &bytes[..*length]
    }

    /// Only before the program starts; false if it is too long.
    fn set(&self, text: &[u8]) -> bool {
        // SAFETY: the program has not started.
        let (bytes, length) = unsafe { &mut *self.0.get() };
        let Some(place) = bytes.get_mut(..text.len()) else { return false };
        place.copy_from_slice(text);
        *length = text.len();
        true
    }
}

unsafe extern "C" {
    fn clock_gettime(clock: i32, time: *mut sys::Time) -> i32;
}

/// This process, as it was after the last fork.
pub fn process() -> u32 {
    PROCESS.load(Ordering::Relaxed)
}

/// True in a process that `vfork` made: it has the memory of its parent, and must not change it.
pub fn is_borrowed() -> bool {
    // SAFETY: the call has no arguments.
    unsafe { sys::call4(sys::GETPID, 0, 0, 0, 0) as u32 != process() }
}

/// True if the library is at work: it was started by the command, and has a row in the ledger.
pub fn is_on() -> bool {
    ROW.load(Ordering::Acquire) != 0
}

pub fn ring_bytes() -> u64 {
    RING_BYTES.load(Ordering::Relaxed)
}

pub fn spins() -> bool {
    PROCESSORS.load(Ordering::Relaxed) > 1
}

pub fn name() -> &'static [u8] {
    NAME.get()
}

/// The ledger's path.
pub fn path() -> &'static [u8] {
    PATH.get()
}

/// True if the rack has a node with this address.
pub fn has(ip: u32) -> bool {
    let count = NODE_COUNT.load(Ordering::Acquire);
    NODES[..count].iter().any(|node| node.load(Ordering::Relaxed) == ip)
}

/// True if a program of another rack has this address.
pub fn is_other(ip: u32) -> bool {
    let count = NETWORK_COUNT.load(Ordering::Acquire);
    let mut networks = NETWORKS[..count].iter().map(|network| network.load(Ordering::Relaxed));
    networks.any(|network| u64::from((ip ^ (network >> 8) as u32).leading_zeros()) >= network & 63)
}

/// The client of another rack behind a socket of the process of NICs.
pub fn client(socket: u64) -> Option<u64> {
    if NETWORK_COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    ledger().and_then(|ledger| ledger.client(socket))
}

/// Nanoseconds of a clock that only advances.
pub fn now_ns() -> u64 {
    let mut time = sys::Time::default();
    // SAFETY: the C library stores a time.
    unsafe { clock_gettime(1, &raw mut time) };
    time.seconds as u64 * 1_000_000_000 + time.rest as u64
}

fn row() -> Option<&'static Row> {
    // SAFETY: the ledger stays mapped to the end of the process.
    unsafe { (ROW.load(Ordering::Acquire) as *const Row).as_ref() }
}

fn ledger() -> Option<&'static Ledger> {
    // SAFETY: as above.
    unsafe { (LEDGER.load(Ordering::Acquire) as *const Ledger).as_ref() }
}

pub fn count(what: Count, by: u64) {
    if let Some(row) = row() {
        row.add(what, by);
    }
}

/// Files with unread bytes in the whole rack.
pub fn left_files() -> Option<&'static AtomicU64> {
    ledger().map(|ledger| &ledger.left_files)
}

/// Takes an end's share of a connection's memory from the pool.
pub fn take(ring_bytes: u64) -> bool {
    let limit = POOL_BYTES.load(Ordering::Relaxed);
    ledger().is_some_and(|ledger| ledger.take(share_bytes(ring_bytes), limit))
}

/// Gives back what was taken, where nothing was mapped.
pub fn give(ring_bytes: u64) {
    if let Some(ledger) = ledger() {
        ledger.give(share_bytes(ring_bytes));
    }
}

/// Counts an end's share that was mapped.
pub fn mapped(ring_bytes: u64) {
    count(Count::Mapped, share_bytes(ring_bytes));
}

/// Counts a share that a fork's child also has: the memory exists already.
pub fn mapped_by_fork(ring_bytes: u64) {
    if let Some(ledger) = ledger() {
        let _ = ledger.take(share_bytes(ring_bytes), u64::MAX);
    }
    mapped(ring_bytes);
}

/// Counts a share that was unmapped, and gives it back.
pub fn unmapped(ring_bytes: u64) {
    count(Count::Unmapped, share_bytes(ring_bytes));
    give(ring_bytes);
}

/// Notes which process this is, and takes its row.
pub fn enter_process() {
    // SAFETY: the call has no arguments.
    let process = unsafe { sys::call4(sys::GETPID, 0, 0, 0, 0) as u32 };
    PROCESS.store(process, Ordering::Relaxed);
    let row = ledger().and_then(|ledger| ledger.row(RUN.load(Ordering::Relaxed), process));
    ROW.store(row.map_or(0, |row| core::ptr::from_ref(row) as usize), Ordering::Release);
}

/// At the normal end of a process: its mappings end with it, and its accounts are settled here.
pub fn leave_process() {
    if is_borrowed() {
        return;
    }
    for ring_bytes in crate::conn::all_memory() {
        unmapped(ring_bytes);
    }
    ROW.store(0, Ordering::Release);
    LEDGER.store(0, Ordering::Release);
}

/// Reads the settings from the environment. False without them, or where they cannot be used.
pub fn configure(environment: *const *const u8) -> bool {
    let Some(text) = find(environment, VARIABLE.as_bytes()) else { return false };
    let mut fields = text.split(|byte| *byte == b';');
    let mut field = || fields.next().unwrap_or_default();
    let name = field();
    let numbers = [number(field()), number(field()), number(field())];
    let [Some(ring), Some(pool), Some(run)] = numbers else { return false };
    let path = field();
    if !is_ring(ring) || name.is_empty() || run == 0 || !NAME.set(name) || !PATH.set(path) {
        return false;
    }
    RING_BYTES.store(ring, Ordering::Relaxed);
    POOL_BYTES.store(pool, Ordering::Relaxed);
    RUN.store(run as u32, Ordering::Relaxed);
    let nodes = field().split(|byte| *byte == b',').filter_map(number).take(NODES_MAX);
    for (place, ip) in NODES.iter().zip(nodes) {
        place.store(ip as u32, Ordering::Relaxed);
        NODE_COUNT.fetch_add(1, Ordering::Release);
    }
    let networks = field().split(|byte| *byte == b',').filter_map(network).take(NETWORKS_MAX);
    for (place, network) in NETWORKS.iter().zip(networks) {
        place.store(network, Ordering::Relaxed);
        NETWORK_COUNT.fetch_add(1, Ordering::Release);
    }
    let mut set = [0u64; 16];
    // SAFETY: the kernel stores at most the size of the set.
    unsafe { sys::call4(sys::GETAFFINITY, 0, size_of_val(&set), set.as_mut_ptr() as usize, 0) };
    PROCESSORS.store(set.iter().map(|word| word.count_ones()).sum(), Ordering::Relaxed);
    map_ledger(path)
}

fn map_ledger(path: &[u8]) -> bool {
    let mut zero_ended = [0u8; PATH_MAX];
    if path.is_empty() || path.len() >= PATH_MAX {
        return false;
    }
    zero_ended[..path.len()].copy_from_slice(path);
    let flags = sys::O_RDWR_CLOEXEC | sys::O_NOFOLLOW;
    // SAFETY: the path ends with a zero.
    let fd = unsafe { sys::call4(sys::OPENAT, 0, zero_ended.as_ptr() as usize, flags, 0) };
    if fd < 0 {
        return false;
    }
    let bytes = size_of::<Ledger>();
    // SAFETY: the position in a file is asked, and the file is mapped where the kernel chooses.
    let at = unsafe {
        let is_whole = sys::call4(sys::LSEEK, fd as usize, 0, 2, 0) == bytes as isize;
        let at = sys::call(sys::MMAP, [0, bytes, 3, 1, fd as usize, 0]);
        if is_whole { at } else { -1 }
    };
    sys::close(fd as i32);
    if at < 0 {
        return false;
    }
    LEDGER.store(at as usize, Ordering::Release);
    ledger().is_some_and(|ledger| ledger.magic.load(Ordering::Acquire) == MAGIC)
}

/// An address and the bits of its prefix.
fn network(text: &[u8]) -> Option<u64> {
    let slash = text.iter().position(|byte| *byte == b'/')?;
    let (address, bits) = (number(&text[..slash])?, number(&text[slash + 1..])?);
    (bits <= 32).then_some(address << 8 | bits)
}

fn number(text: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let add = |sum: u64, byte| sum.checked_mul(10)?.checked_add(digit(byte)?);
    if text.is_empty() { None } else { text.iter().try_fold(0, add) }
}

/// The value of a variable of an environment.
pub fn find(environment: *const *const u8, name: &[u8]) -> Option<&'static [u8]> {
    let mut at = environment;
    // SAFETY: the environment is an array of zero-ended texts that ends with a null pointer.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            let text = core::ffi::CStr::from_ptr((*at).cast()).to_bytes();
            if let Some(value) = text.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
                return Some(value);
            }
            at = at.add(1);
        }
    }
    None
}
