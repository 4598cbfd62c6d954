//! The lock of the preloaded library's ends, between processes: a holder that is killed loses it.

#[allow(unused, unreachable_pub, reason = "the library uses the rest of it")]
#[path = "../preload/lock.rs"]
mod lock;
#[allow(unused, unreachable_pub, reason = "the library uses the rest of it")]
#[path = "../preload/sys.rs"]
mod sys;

mod rack {
    pub(crate) fn process() -> u32 {
        std::process::id()
    }
}

use std::sync::mpsc::channel;
use std::time::Duration;

use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};

use lock::Lock;

/// A lock in a page that a forked process shares.
fn shared() -> &'static Lock {
    // SAFETY: this maps new memory; zeros are a free lock.
    unsafe {
        let at = sys::call(sys::MMAP, [0, 4096, 3, 0x21, usize::MAX, 0]);
        assert!(at > 0, "{at}");
        &*(at as *const Lock)
    }
}

fn is_free_within(lock: &'static Lock, limit: Duration) -> bool {
    let (said, heard) = channel();
    std::thread::spawn(move || {
        drop(lock.lock());
        let _ = said.send(());
    });
    heard.recv_timeout(limit).is_ok()
}

#[test]
fn a_holder_that_ended_loses_the_lock_before_its_parent_waits_for_it() {
    let lock = shared();
    // SAFETY: the child calls nothing but the lock and the kernel.
    let child = match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            core::mem::forget(lock.lock());
            // SAFETY: the process ends here; 231 is exit_group.
            unsafe { sys::call4(231, 0, 0, 0, 0) };
            unreachable!()
        }
    };
    assert!(is_free_within(lock, Duration::from_secs(5)), "the child is a zombie");
    waitpid(child, None).unwrap();
}

#[test]
fn holders_take_turns() {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    const EACH: u64 = 100_000;
    let lock = shared();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                for _ in 0..EACH {
                    let _held = lock.lock();
                    let was = COUNT.load(std::sync::atomic::Ordering::Relaxed);
                    COUNT.store(was + 1, std::sync::atomic::Ordering::Relaxed);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(COUNT.load(std::sync::atomic::Ordering::Relaxed), 4 * EACH);
}
