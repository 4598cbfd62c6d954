//! Tasks: each is woken, whatever completes what it awaits.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::{pool, sleep};
use crate::Unfinished;

/// Completes at its second poll, of which no waker knows.
async fn second_poll() {
    let mut polls = 0;
    poll_fn(|_| {
        polls += 1;
        if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn every_task_is_polled_before_a_stall_is_said() {
    let (pool, _) = pool();
    let tasks = pool.tasks();
    for _ in 0..3 {
        tasks.spawn(second_poll());
    }
    assert_eq!(tasks.try_run(), Ok(()));
    let tasks = pool.tasks();
    tasks.spawn(std::future::pending());
    assert_eq!(tasks.try_run(), Err(Unfinished::Stalled));
}

/// Channels and timers wake a task by the waker that they own.
#[test]
fn a_waker_that_is_used_up_wakes_its_task() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    let tasks = pool.tasks();
    let (door, is_open): (Rc<Cell<Option<Waker>>>, Rc<Cell<bool>>) = Default::default();
    let (waits_at, opens, ends) = (door.clone(), is_open.clone(), stepped.clone());
    tasks.spawn(async move {
        poll_fn(|context| {
            if is_open.get() {
                return Poll::Ready(());
            }
            waits_at.set(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
        // The other task waits for this, so that the pool is never idle before it.
        ends.end(0);
    });
    tasks.spawn(async move {
        let handle = sleep(&thread);
        opens.set(true);
        door.take().expect("the first task waits").wake();
        handle.await.expect("it completes");
    });
    tasks.run();
    assert_eq!(stepped.rests(), 0);
}

/// A task that runs another list of tasks drives the pool for its own list, too.
#[test]
fn what_completes_for_a_task_of_another_list_reaches_it() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    let tasks = pool.tasks();
    let (waits, ends) = (thread.fork(), stepped.clone());
    tasks.spawn(async move {
        sleep(&waits).await.expect("it completes");
        ends.end(2);
    });
    let (inner, ends) = (pool.clone(), stepped.clone());
    tasks.spawn(async move {
        let list = inner.tasks();
        let (other, told) = (thread.fork(), ends.clone());
        // Another task has the number that the first one has in its list.
        list.spawn(async move { sleep(&other).await.expect("it completes") });
        list.spawn(async move {
            told.end(0);
            told.end(1);
        });
        list.run();
        let last = sleep(&thread);
        last.await.expect("the first task went on");
    });
    tasks.run();
    assert_eq!(stepped.rests(), 0);
}

#[test]
fn tasks_that_tasks_add_run_in_turn_before_the_list_ends() {
    let (pool, _) = pool();
    let (tasks, told) = (pool.tasks(), Rc::new(RefCell::new(Vec::new())));
    let spawner = tasks.spawner();
    for name in [1, 2] {
        let (spawner, told) = (spawner.clone(), told.clone());
        tasks.spawn(async move {
            told.borrow_mut().push(name);
            spawner.spawn(async move { told.borrow_mut().push(name + 10) });
        });
    }
    tasks.run();
    assert_eq!(*told.borrow(), [1, 2, 11, 12]);
}

/// As runtimes' `yield_now` does.
#[test]
fn code_that_wakes_itself_is_polled_again() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    for (round, by_value) in [(0, false), (1, true)] {
        let mut handle = None;
        pool.run(poll_fn(|context| {
            if handle.is_some() {
                stepped.end(round);
                return Poll::Ready(());
            }
            handle = Some(sleep(&thread));
            if by_value {
                let waker = context.waker().clone();
                waker.wake();
            } else {
                context.waker().wake_by_ref();
            }
            Poll::Pending
        }));
        handle.expect("it was begun").wait().expect("it completes");
    }
}
