//! A lock in memory that processes share. A process that ends while it holds the lock loses it.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::{rack, sys};

const FREE: u32 = 0;
/// This bit says that others wait; the rest is the process that holds the lock.
const CONTENDED: u32 = 1 << 31;
const SPINS: u32 = 200;
/// How long a waiting process sleeps before it checks the holder for life, in milliseconds.
const CHECK_MS: i64 = 10;
const ESRCH: isize = -3;

/// The lock: holder and waiters are one word, so that a holder is known whenever it is killed.
#[repr(C)]
pub struct Lock {
    word: AtomicU32,
}

/// It is held while this lives.
pub struct Held<'a>(&'a Lock);

impl Lock {
    pub const fn new() -> Lock {
        Lock { word: AtomicU32::new(FREE) }
    }

    fn swap(&self, from: u32, to: u32) -> bool {
        self.word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub fn lock(&self) -> Held<'_> {
        let own = rack::process();
        for _ in 0..SPINS {
            if self.swap(FREE, own) {
                return Held(self);
            }
            spin_loop();
        }
        // Others may sleep: the next holder wakes them.
        let own = own | CONTENDED;
        while !self.swap(FREE, own) {
            let was = self.word.load(Ordering::Acquire);
            let waits = was | CONTENDED;
            if was == FREE || (was != waits && !self.swap(was, waits)) {
                continue;
            }
            sys::futex_wait(self.word.as_ptr(), waits, CHECK_MS);
            let same = self.word.load(Ordering::Acquire) == waits;
            if same && !is_alive(waits & !CONTENDED) && self.swap(waits, own) {
                break;
            }
        }
        Held(self)
    }

    /// Frees the copy that a fork's child has of a lock that is not shared.
    pub fn reset(&self) {
        self.word.store(FREE, Ordering::Release);
    }
}

/// False if a process has ended, also one whose parent has not asked for its end.
fn is_alive(process: u32) -> bool {
    // SAFETY: nothing is passed by address; signal 0 only asks if the process is there.
    let (there, fd) = unsafe {
        let there = sys::call4(sys::KILL, process as usize, 0, 0, 0) != ESRCH;
        (there, sys::call4(sys::PIDFD_OPEN, process as usize, 0, 0, 0))
    };
    if fd < 0 {
        return there;
    }
    let ended = sys::poll_one(fd as i32, sys::POLLIN, 0).is_ok_and(|found| found != 0);
    sys::close(fd as i32);
    !ended
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.0.word.swap(FREE, Ordering::AcqRel) & CONTENDED != 0 {
            sys::futex_wake(self.0.word.as_ptr());
        }
    }
}
