//! Notification of tasks and wakers when an operation completes.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use crate::wait::Waiter;

/// Identifier of a task in its pool. The identifier of an ended task is reused, so a task may be
/// woken for what an earlier task awaited. Such a spurious wake-up is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskKey {
    /// Index of the list of tasks in the pool.
    pub(crate) list: u32,
    pub(crate) task: u32,
}

/// Recipient of the notification that an operation completed.
pub(crate) enum Notify {
    Task(TaskKey),
    Waker(Waker),
}

/// One poll of a task, unique in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PollId {
    pub(crate) list: u64,
    pub(crate) poll: u64,
}

/// The task that a machine thread polls at present.
#[derive(Clone, Copy)]
pub(crate) struct Current {
    pub(crate) key: TaskKey,
    /// The poll; `None` once operations have completed during it.
    pub(crate) poll: Option<PollId>,
    /// Address of the pool's state, valid as long as the task is polled.
    pub(crate) pool: usize,
    /// Data pointer and vtable of the task's waker.
    pub(crate) waker: (usize, usize),
}

thread_local! {
    static CURRENT: Cell<Option<Current>> = const { Cell::new(None) };
}

impl Current {
    /// The task that this machine thread polls, if it belongs to the pool with its state at `pool`.
    #[inline]
    pub(crate) fn of(pool: usize) -> Option<Current> {
        CURRENT.get().filter(|current| current.pool == pool)
    }

    /// True if `waker` wakes the task.
    #[inline]
    pub(crate) fn is_woken_by(&self, waker: &Waker) -> bool {
        self.waker == parts(waker)
    }

    /// Marks the current poll as out of date, because operations have completed.
    pub(crate) fn forget_poll() {
        CURRENT.set(CURRENT.get().map(|current| Current { poll: None, ..current }));
    }
}

/// Data pointer and vtable, which identify a waker.
pub(crate) fn parts(waker: &Waker) -> (usize, usize) {
    (waker.data().addr(), std::ptr::from_ref(waker.vtable()).addr())
}

/// Sets the task that is polled, and restores the previous one on drop.
pub(crate) struct Polling(Option<Current>);

impl Polling {
    pub(crate) fn begin(current: Current) -> Polling {
        Polling(CURRENT.replace(Some(current)))
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Tasks woken by other machine threads and by wakers.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    woken: Mutex<Woken>,
    /// True if the inbox may hold tasks. It is checked far more often than it is true.
    any: AtomicBool,
}

#[derive(Debug, Default)]
struct Woken {
    tasks: Vec<u32>,
    /// Waiter of the machine thread that runs the list.
    waiter: Option<Arc<Waiter>>,
}

impl Inbox {
    /// Adds a task, and wakes the machine thread that runs its list.
    pub(crate) fn wake(&self, key: TaskKey) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        woken.tasks.push(key.task);
        self.any.store(true, Ordering::Release);
        if let Some(waiter) = &woken.waiter {
            waiter.ring();
        }
    }

    /// Sets the waiter. Tasks already in the inbox are found when the list next looks into it.
    pub(crate) fn set_waiter(&self, waiter: Option<Arc<Waiter>>) {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).waiter = waiter;
    }

    pub(crate) fn drain(&self, mut each: impl FnMut(u32)) {
        if self.any.load(Ordering::Acquire) {
            let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
            self.any.store(false, Ordering::Release);
            woken.tasks.drain(..).for_each(&mut each);
        }
    }
}
