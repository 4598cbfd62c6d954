//! Telling tasks and wakers that an operation ended.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use crate::wait::Waiter;

/// A task's name in its pool. That of a task that has ended is used again, so one may be woken for
/// what another awaited, which does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskKey {
    /// Which of the pool's lists of tasks.
    pub(crate) list: u32,
    pub(crate) task: u32,
}

/// Who is told that an operation ended.
pub(crate) enum Notify {
    Task(TaskKey),
    Waker(Waker),
}

/// One poll of a task, named for the whole program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PollId {
    pub(crate) list: u64,
    pub(crate) poll: u64,
}

/// What a machine thread polls now.
#[derive(Clone, Copy)]
pub(crate) struct Current {
    pub(crate) key: TaskKey,
    /// None once operations have ended in it.
    pub(crate) poll: Option<PollId>,
    /// Address of its pool's state, which is there as long as the task is polled.
    pub(crate) pool: usize,
    /// The two parts of its waker.
    pub(crate) waker: (usize, usize),
}

thread_local! {
    static CURRENT: Cell<Option<Current>> = const { Cell::new(None) };
}

impl Current {
    /// The task that this machine thread polls, if it is of the pool whose state is there.
    #[inline]
    pub(crate) fn of(pool: usize) -> Option<Current> {
        CURRENT.get().filter(|current| current.pool == pool)
    }

    /// Whether this wakes the task.
    #[inline]
    pub(crate) fn is_woken_by(&self, waker: &Waker) -> bool {
        self.waker == parts(waker)
    }

    /// Operations have ended: what this poll has seen before is out of date.
    pub(crate) fn forget_poll() {
        CURRENT.set(CURRENT.get().map(|current| Current { poll: None, ..current }));
    }
}

/// The parts by which wakers are told apart.
pub(crate) fn parts(waker: &Waker) -> (usize, usize) {
    (waker.data().addr(), std::ptr::from_ref(waker.vtable()).addr())
}

/// Sets what is polled, and back again at its end.
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

/// Where other machine threads, and wakers, leave the tasks that they wake.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    woken: Mutex<Woken>,
    /// Whether it may hold any: looked at far more often than it does.
    any: AtomicBool,
}

#[derive(Debug, Default)]
struct Woken {
    tasks: Vec<u32>,
    /// Of the machine thread that runs the list.
    waiter: Option<Arc<Waiter>>,
}

impl Inbox {
    /// Leaves a task, and wakes the machine thread that runs its list.
    pub(crate) fn wake(&self, key: TaskKey) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        woken.tasks.push(key.task);
        self.any.store(true, Ordering::Release);
        if let Some(waiter) = &woken.waiter {
            waiter.ring();
        }
    }

    /// What is in the inbox already is found by the first look into it.
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
