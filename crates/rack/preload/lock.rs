//! A lock in memory that processes share. A process that ends while it holds the lock loses it.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::{rack, sys};

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;
const SPINS: u32 = 200;
/// How long a waiting process sleeps before it checks the holder for life, in milliseconds.
const CHECK_MS: i64 = 10;
const ESRCH: isize = -3;

/// The lock, and the process that holds it.
#[repr(C)]
pub struct Lock {
    word: AtomicU32,
    holder: AtomicU32,
}

/// It is held while this lives.
pub struct Held<'a>(&'a Lock);

impl Lock {
    pub const fn new() -> Lock {
        Lock { word: AtomicU32::new(FREE), holder: AtomicU32::new(0) }
    }

    pub fn lock(&self) -> Held<'_> {
        let swap =
            |from, to| self.word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        let mut is_held = swap(FREE, HELD).is_ok();
        for _ in 0..SPINS {
            if is_held {
                break;
            }
            spin_loop();
            is_held = swap(FREE, HELD).is_ok();
        }
        while !is_held && self.word.swap(CONTENDED, Ordering::AcqRel) != FREE {
            sys::futex_wait(self.word.as_ptr(), CONTENDED, CHECK_MS);
            let holder = self.holder.load(Ordering::Acquire);
            // SAFETY: signal 0 only asks if the process lives.
            let lives = unsafe { sys::call4(sys::KILL, holder as usize, 0, 0, 0) };
            if holder != 0 && lives == ESRCH {
                let rack = rack::process();
                let taken = |now| {
                    self.holder.compare_exchange(now, rack, Ordering::AcqRel, Ordering::Acquire)
                };
                is_held = taken(holder).is_ok();
            }
        }
        self.holder.store(rack::process(), Ordering::Release);
        Held(self)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.holder.store(0, Ordering::Release);
        if self.0.word.swap(FREE, Ordering::AcqRel) == CONTENDED {
            sys::futex_wake(self.0.word.as_ptr());
        }
    }
}
