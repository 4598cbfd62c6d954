//! Which signals interrupt a call. The kernel restarts a call after a handler with `SA_RESTART`,
//! but never a sleep with a time limit, so the library must know about the program's handlers.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::calls::next;
use crate::sys;

const SA_RESTART: u64 = 0x1000_0000;
/// `sa_flags` in the C library's `struct sigaction`, which begins with the handler and the mask.
const FLAGS_AT: usize = 8 + 128;
/// Signals that the processor raises, which no thread may block: SIGILL, SIGTRAP, SIGBUS, SIGFPE
/// and SIGSEGV.
const RAISED: u64 = 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10;

/// Signals whose handlers interrupt calls, by bit.
static INTERRUPTING: AtomicU64 = AtomicU64::new(0);

/// True if the program has installed a handler that interrupts calls.
pub fn interrupts() -> bool {
    INTERRUPTING.load(Ordering::Acquire) != 0
}

/// Signals that would interrupt a call of this thread wait while this lives: one that comes while
/// the call copies is still seen when it waits.
pub struct Held {
    /// The thread's own mask.
    pub before: u64,
    waiting: u64,
}

/// Holds the signals back, if there are any.
pub fn hold() -> Option<Held> {
    const BLOCK: usize = 0;
    let waiting = INTERRUPTING.load(Ordering::Acquire) & !RAISED;
    let mut before = 0u64;
    let (at, old) = (&raw const waiting as usize, &raw mut before as usize);
    // SAFETY: both masks have 8 bytes.
    let done = waiting != 0 && unsafe { sys::call4(sys::SIGPROCMASK, BLOCK, at, old, 8) } == 0;
    done.then_some(Held { before, waiting: waiting & !before })
}

impl Held {
    /// True if a signal waits.
    pub fn has_signal(&self) -> bool {
        let mut pending = 0u64;
        // SAFETY: the mask has 8 bytes.
        unsafe { sys::call4(sys::SIGPENDING, &raw mut pending as usize, 8, 0, 0) };
        pending & self.waiting != 0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        const SET: usize = 2;
        let at = &raw const self.before as usize;
        // SAFETY: the mask has 8 bytes.
        unsafe { sys::call4(sys::SIGPROCMASK, SET, at, 0, 8) };
    }
}

type Sigaction = unsafe extern "C" fn(i32, *const u8, *mut u8) -> i32;

#[unsafe(no_mangle)]
unsafe extern "C" fn sigaction(signal: i32, action: *const u8, old: *mut u8) -> i32 {
    if !action.is_null() {
        // SAFETY: the program passes a `struct sigaction`.
        let (handler, flags) =
            unsafe { (action.cast::<usize>().read(), action.add(FLAGS_AT).cast::<u32>().read()) };
        // 0 and 1 are the default action and ignoring.
        let bit = 1u64.checked_shl((signal - 1) as u32).unwrap_or(0);
        if handler > 1 && u64::from(flags) & SA_RESTART == 0 {
            INTERRUPTING.fetch_or(bit, Ordering::AcqRel);
        } else {
            INTERRUPTING.fetch_and(!bit, Ordering::AcqRel);
        }
    }
    // SAFETY: the C library's function has this type.
    unsafe { next::<Sigaction>(c"sigaction").map_or(-1, |real| real(signal, action, old)) }
}
