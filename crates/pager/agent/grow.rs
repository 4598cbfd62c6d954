//! Memory that the program maps, and forks: the pager learns of both before the program can use
//! them.
//!
//! The C library calls its own `mmap` and `brk` without a symbol that could be interposed, as
//! `malloc` does. So the first instructions of both functions become a jump to those below. Once
//! the pager has said so ([`GO`](super::protocol::GO)), the calling thread waits here until its
//! new memory is registered. It cannot speak to the pager itself, as the program may close any of
//! its files: a second thread of the agent does.

use core::arch::asm;
use core::mem::size_of;
use core::ptr::addr_of;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::exec::{self, ended};
use super::protocol::{Ask, PAGE_BYTES};
use super::{Own, call, call3, die, sys};

/// No thread waits.
const IDLE: u32 = 0;
/// A thread waits, and the pager has not been asked.
const POSTED: u32 = 1;
/// The pager has been asked.
const SENT: u32 = 2;

/// What one thread of the program asks of the pager. Others wait for the lock.
#[repr(C)]
pub struct Asking {
    lock: AtomicU32,
    state: AtomicU32,
    kind: AtomicU64,
    start: AtomicU64,
    bytes: AtomicU64,
}

impl Asking {
    pub fn new() -> Asking {
        let word = || AtomicU64::new(0);
        let (lock, state) = (AtomicU32::new(0), AtomicU32::new(IDLE));
        Asking { lock, state, kind: word(), start: word(), bytes: word() }
    }

    /// Lets the waiting thread proceed.
    pub(super) fn grant(&self) {
        self.state.store(IDLE, Ordering::Release);
        wake(&self.state);
    }
}

/// True once new mappings wait for their registration. A fork's child inherits it.
pub(super) static IS_HELD: AtomicU32 = AtomicU32::new(0);
/// Address of this process's [`Own`], and the process that has it: a fork's child does not, until
/// its agent is attached.
static OWN: AtomicUsize = AtomicUsize::new(0);
static OWNER: AtomicU32 = AtomicU32::new(0);
/// The C library's end of the heap, where its `brk` was replaced.
static BREAK: AtomicUsize = AtomicUsize::new(0);

pub(super) fn wait(word: &AtomicU32, value: u32) {
    call(sys::FUTEX, [addr_of!(*word) as usize, sys::FUTEX_WAIT, value as usize, 0, 0, 0]);
}

pub(super) fn wake(word: &AtomicU32) {
    const ALL: usize = i32::MAX as usize;
    call(sys::FUTEX, [addr_of!(*word) as usize, sys::FUTEX_WAKE, ALL, 0, 0, 0]);
}

/// Lets the process that has `own` ask its pager.
pub(super) fn attached(own: usize) {
    OWN.store(own, Ordering::Relaxed);
    OWNER.store(call3(sys::GETPID, 0, 0, 0) as u32, Ordering::Release);
}

/// Serves the threads that ask; the second thread of the agent runs this.
pub(super) extern "C" fn serve(own: usize) -> ! {
    // SAFETY: `own` is what `run_beside` wrote, and lasts as long as the process.
    let own = unsafe { &*(own as *const Own) };
    let asking = &own.asking;
    loop {
        let state = asking.state.load(Ordering::Acquire);
        if state != POSTED {
            wait(&asking.state, state);
            continue;
        }
        let ask = Ask {
            kind: asking.kind.load(Ordering::Relaxed),
            start: asking.start.load(Ordering::Relaxed),
            bytes: asking.bytes.load(Ordering::Relaxed),
        };
        // The answer may come before the call below returns.
        asking.state.store(SENT, Ordering::Release);
        let (at, bytes) = (addr_of!(ask) as usize, size_of::<Ask>());
        loop {
            match call(sys::SENDTO, [own.socket, at, bytes, sys::NOSIGNAL, 0, 0]) {
                sys::EINTR => continue,
                sent if sent == bytes as isize => break,
                _ => die(),
            }
        }
    }
}

/// Asks the pager, and waits for its answer. Signals are blocked meanwhile: a handler may map
/// memory, too.
fn ask(kind: u64, start: usize, bytes: usize) {
    let own = OWN.load(Ordering::Relaxed);
    let process = call3(sys::GETPID, 0, 0, 0) as u32;
    if own == 0 || OWNER.load(Ordering::Acquire) != process {
        return;
    }
    // SAFETY: this process attached its agent, so `own` lasts as long as the process.
    let asking = unsafe { &(*(own as *const Own)).asking };
    let mut mask = u64::MAX;
    let place = addr_of!(mask) as usize;
    let to = &raw mut mask as usize;
    call(sys::SIGPROCMASK, [2, place, to, 8, 0, 0]);
    while asking.lock.swap(1, Ordering::Acquire) != 0 {
        wait(&asking.lock, 1);
    }
    asking.kind.store(kind, Ordering::Relaxed);
    asking.start.store(start as u64, Ordering::Relaxed);
    asking.bytes.store(bytes as u64, Ordering::Relaxed);
    asking.state.store(POSTED, Ordering::Release);
    wake(&asking.state);
    loop {
        match asking.state.load(Ordering::Acquire) {
            IDLE => break,
            state => wait(&asking.state, state),
        }
    }
    asking.lock.store(0, Ordering::Release);
    wake(&asking.lock);
    call(sys::SIGPROCMASK, [2, place, 0, 8, 0, 0]);
}

/// Called before a fork: the pager makes room for the pages that the two will share, each of which
/// a write copies without a fault that is reported.
pub(super) extern "C" fn forks() {
    ask(Ask::FORKS, 0, 0);
}

fn up(address: usize) -> usize {
    address.wrapping_add(PAGE_BYTES - 1) & !(PAGE_BYTES - 1)
}

/// The C library's `mmap`.
extern "C" fn mmap(
    address: usize,
    bytes: usize,
    protection: u32,
    flags: u32,
    file: i32,
    offset: usize,
) -> usize {
    let (protection, flags) = (protection as usize, flags as usize);
    let is_plain = flags & sys::MAP_KIND == sys::MAP_PRIVATE_ANONYMOUS;
    let is_served = is_plain && flags & sys::MAP_STAYS == 0;
    let is_held = || is_served && IS_HELD.load(Ordering::SeqCst) != 0;
    // Pages that the call itself brings would precede the registration.
    let is_late = flags & sys::MAP_POPULATE != 0 && is_held();
    let asked = if is_late { flags & !sys::MAP_POPULATE } else { flags };
    let file = file as isize as usize;
    let at = call(sys::MMAP, [address, bytes, protection, asked, file, offset]);
    if (-4095..0).contains(&at) {
        return ended(at) as isize as usize;
    }
    let at = at as usize;
    if is_held() {
        ask(Ask::GROWN, at, up(bytes));
        if is_late && protection & sys::PROT_WRITE != 0 {
            call3(sys::MADVISE, at, up(bytes), sys::POPULATE_WRITE);
        }
    }
    at
}

/// The C library's `brk`.
extern "C" fn brk(to: usize) -> i32 {
    let place = BREAK.load(Ordering::Relaxed) as *mut usize;
    // SAFETY: the C library's own word, which its `brk` writes as this one does.
    let (before, now) = unsafe {
        let before = *place;
        let now = call3(sys::BRK, to, 0, 0) as usize;
        *place = now;
        (before, now)
    };
    if now < to {
        return ended(sys::ENOMEM);
    }
    if before != 0 && up(now) > up(before) && IS_HELD.load(Ordering::SeqCst) != 0 {
        ask(Ask::GROWN, up(before), up(now) - up(before));
    }
    0
}

/// Replaces the C library's `mmap` and `brk`. Where they do not look as expected, may not be
/// written, or may be running in another thread, they stay: the pager then notices new memory a
/// little later.
pub(super) fn hold_mappings() {
    if !exec::has_one_thread() {
        return;
    }
    replace(address_of!("mmap"), sys::MMAP, mmap as *const () as usize);
    let end = address_of!("__curbrk");
    if end != 0 {
        BREAK.store(end, Ordering::Relaxed);
        replace(address_of!("brk"), sys::BRK, brk as *const () as usize);
    }
}

const JUMP_BYTES: usize = 14;
/// Bytes of a function within which it calls the kernel.
const HEAD_BYTES: usize = 40;

/// Makes the function at `function`, which does nothing but the system call `number`, jump to `to`.
fn replace(function: usize, number: usize, to: usize) {
    if function == 0 || !calls(function, number) {
        return;
    }
    let page = function & !(PAGE_BYTES - 1);
    let bytes = up(function + JUMP_BYTES) - page;
    const ALL: usize = sys::PROT_READ_EXECUTE | sys::PROT_WRITE;
    if call3(sys::MPROTECT, page, bytes, ALL) < 0 {
        return;
    }
    // `jmp [rip]`, and the address behind it.
    let head = 0x25ff_u64.to_le_bytes();
    let place = function as *mut u8;
    // SAFETY: the function is longer than the jump, as its system call shows, and its pages were
    // made writable.
    unsafe {
        for (at, byte) in to.to_le_bytes().into_iter().enumerate() {
            place.add(6 + at).write_volatile(byte);
        }
        for (at, byte) in head.into_iter().take(6).enumerate() {
            place.add(at).write_volatile(byte);
        }
    }
    call3(sys::MPROTECT, page, bytes, sys::PROT_READ_EXECUTE);
}

/// True if the function begins with `mov eax, number; syscall`, behind a few other instructions.
fn calls(function: usize, number: usize) -> bool {
    let wanted = [0xb8, number as u8, 0, 0, 0, 0x0f, 0x05];
    let mut at = 0;
    while at + wanted.len() <= HEAD_BYTES {
        let mut alike = 0;
        // SAFETY: a function of the C library, which is not the last of its pages.
        while alike < wanted.len()
            && unsafe { ((function + at + alike) as *const u8).read_volatile() } == wanted[alike]
        {
            alike += 1;
        }
        if alike == wanted.len() {
            return true;
        }
        at += 1;
    }
    false
}
