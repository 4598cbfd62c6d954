//! Tasks of one machine thread, which run in the order in which they were woken.
//!
//! An operation knows the task that awaits it by number. Wakers would cost atomics, which would be
//! most of a task's overhead. A task that awaits anything else is woken by its waker.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use slab::Slab;

use crate::attempts::Attention;
use crate::notify::{Current, Inbox, Notify, PollId, Polling, TaskKey, parts};
use crate::shared::Shared;
use crate::wait::{Attempt, Step, Unfinished, Waiter, Why};

struct TaskWaker {
    inbox: Arc<Inbox>,
    key: TaskKey,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<TaskWaker>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<TaskWaker>) {
        self.inbox.wake(self.key);
    }
}

type Code = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    /// The task's code with its waker; `None` while it is polled.
    code: Option<(Code, Waker)>,
    is_ready: bool,
}

struct List {
    shared: Shared,
    /// Index in the pool's lists, and a number unique in the program.
    index: u32,
    name: u64,
    inbox: Arc<Inbox>,
    tasks: RefCell<Slab<Task>>,
    ready: RefCell<VecDeque<u32>>,
    polls: Cell<u64>,
}

/// Number of the next list.
static LISTS: AtomicU64 = AtomicU64::new(0);

impl List {
    fn new(shared: Shared) -> List {
        let inbox = Arc::new(Inbox::default());
        let index = shared.with(|core| core.new_list(inbox.clone()));
        List {
            shared,
            index,
            name: LISTS.fetch_add(1, Ordering::Relaxed),
            inbox,
            tasks: RefCell::default(),
            ready: RefCell::default(),
            polls: Cell::new(0),
        }
    }

    fn spawn(&self, code: Code) {
        // A task that was woken earlier runs earlier.
        self.take_in();
        let mut tasks = self.tasks.borrow_mut();
        let entry = tasks.vacant_entry();
        let task = u32::try_from(entry.key()).expect("fewer than 2^32 tasks");
        let key = TaskKey { list: self.index, task };
        let waker = Waker::from(Arc::new(TaskWaker { inbox: self.inbox.clone(), key }));
        entry.insert(Task { code: Some((code, waker)), is_ready: true });
        self.ready.borrow_mut().push_back(task);
    }

    /// Marks a task ready to be polled once, however often it is woken before.
    fn wake(&self, task: u32) {
        if let Some(found) = self.tasks.borrow_mut().get_mut(task as usize)
            && !std::mem::replace(&mut found.is_ready, true)
        {
            self.ready.borrow_mut().push_back(task);
        }
    }

    fn wake_all(&self) {
        let all: Vec<u32> = self.tasks.borrow().iter().map(|(task, _)| task as u32).collect();
        all.into_iter().for_each(|task| self.wake(task));
    }

    fn take_in(&self) {
        self.inbox.drain(|task| self.wake(task));
    }

    /// Polls all ready tasks, and those that they wake.
    fn run_ready(&self) {
        self.take_in();
        while let Some(task) = self.next_ready() {
            self.poll(task);
            self.take_in();
        }
    }

    fn next_ready(&self) -> Option<u32> {
        self.ready.borrow_mut().pop_front()
    }

    fn poll(&self, task: u32) {
        // A task woken during its last poll has ended, and another may have its index.
        let code = self.tasks.borrow_mut().get_mut(task as usize).and_then(|found| {
            found.is_ready = false;
            found.code.take()
        });
        let Some((mut code, waker)) = code else { return };
        self.polls.set(self.polls.get() + 1);
        let polling = Polling::begin(Current {
            key: TaskKey { list: self.index, task },
            poll: Some(PollId { list: self.name, poll: self.polls.get() }),
            pool: self.shared.address(),
            waker: parts(&waker),
        });
        let is_done = code.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        drop(polling);
        if is_done {
            // Dropping the code may use the list.
            drop(code);
            self.tasks.borrow_mut().remove(task as usize);
        } else {
            self.tasks.borrow_mut()[task as usize].code = Some((code, waker));
        }
    }

    /// Runs all tasks until they complete.
    fn run(&self, attention: Option<Attention<'_>>) -> Result<(), Unfinished> {
        let told = Vec::new();
        let done = self.shared.wait(&mut ListAttempt { list: self, told, waiter: None, attention });
        self.inbox.set_waiter(None);
        done
    }
}

/// Waits for all tasks of a list.
struct ListAttempt<'a, 'i> {
    list: &'a List,
    /// Reused to avoid reallocation.
    told: Vec<Notify>,
    waiter: Option<Arc<Waiter>>,
    attention: Option<Attention<'i>>,
}

impl Attempt for ListAttempt<'_, '_> {
    type Output = ();

    const RUNS_CODE: bool = true;

    fn poll(&mut self, waiter: &Arc<Waiter>, why: Why) -> Option<()> {
        if self.waiter.is_none() {
            self.waiter = Some(Arc::clone(waiter));
            self.list.inbox.set_waiter(Some(Arc::clone(waiter)));
        }
        if why == Why::Idle {
            // Another machine thread may have completed an operation without having notified yet.
            self.list.wake_all();
        }
        self.list.run_ready();
        self.list.tasks.borrow().is_empty().then_some(())
    }

    fn poll_to_park(&mut self, _: &Arc<Waiter>) -> Option<()> {
        // The operations that tasks await wake them through the inbox, which rings the waiter.
        None
    }

    fn step(&mut self) -> Step {
        let list = self.list;
        let step = list.shared.step_telling(&mut self.told);
        for notify in self.told.drain(..) {
            match notify {
                Notify::Task(key) if key.list == list.index => {
                    list.wake(key.task);
                    if let Some(waiter) = &self.waiter {
                        waiter.mark();
                    }
                }
                Notify::Task(key) => list.shared.wake(key),
                Notify::Waker(waker) => waker.wake(),
            }
        }
        step
    }

    fn rest(&mut self, most: Duration) {
        self.list.shared.rest(most);
    }

    fn attends(&self) -> bool {
        self.attention.is_some()
    }

    fn is_interrupted(&mut self) -> bool {
        self.attention.as_mut().is_some_and(Attention::is_interrupted)
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if self.shared.check().is_ok() {
            self.shared.with(|core| core.end_list(self.index));
        }
    }
}

/// Tasks of one pool: many clients, on as many nodes, in one machine thread. The order in which
/// they proceed depends only on the pool.
pub struct Tasks(Rc<List>);

impl Tasks {
    pub(crate) fn new(shared: Shared) -> Tasks {
        Tasks(Rc::new(List::new(shared)))
    }

    /// Adds a task.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.spawn(Box::pin(task));
    }

    /// A handle that adds tasks from within tasks.
    #[must_use]
    pub fn spawner(&self) -> Spawner {
        Spawner(Rc::downgrade(&self.0))
    }

    /// Runs all tasks until they complete.
    ///
    /// # Panics
    /// As [`crate::Pool::run`].
    pub fn run(self) {
        self.0.run(None).unwrap_or_else(|unfinished| panic!("{unfinished}"));
    }

    /// As [`Tasks::run`], but returns an error instead of panicking.
    ///
    /// # Errors
    /// As [`crate::Pool::try_run`].
    pub fn try_run(self) -> Result<(), Unfinished> {
        self.0.run(None)
    }

    /// As [`Tasks::try_run`], but polls about every 20 ms whether to give up.
    ///
    /// # Errors
    /// As [`crate::Pool::run_attended`].
    pub fn run_attended(self, mut is_interrupted: impl FnMut() -> bool) -> Result<(), Unfinished> {
        self.0.run(Some(Attention::new(&mut is_interrupted)))
    }
}

/// Adds tasks to their list.
#[derive(Clone)]
pub struct Spawner(Weak<List>);

impl Spawner {
    /// Adds a task.
    ///
    /// # Panics
    /// When the list has been dropped.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.upgrade().expect("the list of tasks is there").spawn(Box::pin(task));
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::pool;

    /// A program that makes a list for each of its requests must not grow.
    #[test]
    fn a_list_that_was_dropped_gives_its_place_back() {
        let (pool, _) = pool();
        for _ in 0..3 {
            let (first, second) = (pool.tasks(), pool.tasks());
            assert_eq!((first.0.index, second.0.index), (0, 1));
            drop((second, first));
        }
    }
}
