//! Which signals interrupt a call. The kernel restarts a call after a handler with `SA_RESTART`,
//! but never a sleep with a time limit, so the library must know about the program's handlers.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::calls::next;

const SA_RESTART: u64 = 0x1000_0000;
/// `sa_flags` in the C library's `struct sigaction`, which begins with the handler and the mask.
const FLAGS_AT: usize = 8 + 128;

static INTERRUPTS: AtomicBool = AtomicBool::new(false);

/// True if the program has installed a handler that interrupts calls.
pub fn interrupts() -> bool {
    INTERRUPTS.load(Ordering::Acquire)
}

type Sigaction = unsafe extern "C" fn(i32, *const u8, *mut u8) -> i32;

#[unsafe(no_mangle)]
unsafe extern "C" fn sigaction(signal: i32, action: *const u8, old: *mut u8) -> i32 {
    if !action.is_null() {
        // SAFETY: the program passes a `struct sigaction`.
        let (handler, flags) =
            unsafe { (action.cast::<usize>().read(), action.add(FLAGS_AT).cast::<u32>().read()) };
        // 0 and 1 are the default action and ignoring.
        if handler > 1 && u64::from(flags) & SA_RESTART == 0 {
            INTERRUPTS.store(true, Ordering::Release);
        }
    }
    // SAFETY: the C library's function has this type.
    unsafe { next::<Sigaction>(c"sigaction").map_or(-1, |real| real(signal, action, old)) }
}
