//! Tasks: their order, and that every one proceeds.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use ethermem::{Pending, Permissions, Pool, Ps, Unfinished};

use super::every_pool;

/// Polls with the waker of the calling task.
async fn is_there(pending: &mut Pending<()>) -> bool {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *pending).poll(context).is_ready())).await
}

/// Pools on which nothing completes except by driving the pool.
fn simulated() -> impl Iterator<Item = Pool> {
    every_pool().into_iter().filter(Pool::is_simulated)
}

#[test]
fn an_operation_that_one_task_began_is_awaited_by_another() {
    for pool in simulated() {
        let thread = pool.thread().unwrap();
        let tasks = pool.tasks();
        let (spawner, done) = (tasks.spawner(), Rc::new(Cell::new(false)));
        let told = done.clone();
        tasks.spawn(async move {
            let mut sleep = thread.sleep(Ps::from_ns(1_000));
            assert!(!is_there(&mut sleep).await);
            spawner.spawn(async move {
                sleep.await.unwrap();
                told.set(true);
            });
        });
        tasks.run();
        assert!(done.get(), "{pool:?}");
    }
}

#[test]
fn what_ended_while_its_task_waited_for_another_is_there() {
    for pool in simulated() {
        let thread = pool.thread().unwrap();
        let tasks = pool.tasks();
        tasks.spawn(async move {
            let mut short = thread.sleep(Ps::from_ns(1_000));
            assert!(!is_there(&mut short).await);
            thread.fork().sleep(Ps::from_ns(500_000)).wait().unwrap();
            assert!(is_there(&mut short).await);
        });
        tasks.run();
    }
}

#[test]
fn tasks_wake_one_another_in_order() {
    let pool = Pool::open("sim:edm?nodes=2").unwrap();
    let thread = pool.thread().unwrap();
    let (tasks, told) = (pool.tasks(), Rc::new(RefCell::new(Vec::new())));
    let doors: Rc<RefCell<Vec<Waker>>> = Rc::default();
    let open = Rc::new(Cell::new(false));
    for name in 0..3 {
        let (told, doors, open) = (told.clone(), doors.clone(), open.clone());
        tasks.spawn(async move {
            poll_fn(|context| {
                if open.get() {
                    return Poll::Ready(());
                }
                doors.borrow_mut().push(context.waker().clone());
                Poll::Pending
            })
            .await;
            told.borrow_mut().push(name);
        });
    }
    let said = told.clone();
    tasks.spawn(async move {
        thread.sleep(Ps::from_ns(10)).await.unwrap();
        open.set(true);
        // The last task is woken first, and one of them twice.
        let woken: Vec<Waker> = doors.take();
        woken.iter().rev().chain(&woken[..1]).for_each(Waker::wake_by_ref);
        said.borrow_mut().push(9);
    });
    tasks.run();
    assert_eq!(*told.borrow(), [9, 2, 1, 0]);
}

/// Each thread drives the pool, so each completes operations that the others wait for.
#[test]
fn tasks_of_several_machine_threads_share_a_pool() {
    for url in ["local:", "sim:edm?nodes=8"] {
        let pool = Pool::open(url).unwrap();
        let owner = pool.thread().unwrap();
        let counter = owner.alloc(16, Permissions::READ_WRITE).wait().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let tasks = pool.tasks();
                    for _ in 0..4 {
                        let counter = counter.by(&owner.fork());
                        tasks.spawn(async move {
                            for _ in 0..200 {
                                let thread = counter.thread();
                                thread.lock(counter.at(8)).await.unwrap();
                                thread.fetch_add(counter.at(0), 1).await.unwrap();
                                thread.unlock(counter.at(8)).await.unwrap();
                            }
                        });
                    }
                    tasks.run();
                });
            }
        });
        let counted = counter.read(0, 8).wait().unwrap();
        assert_eq!(counted, 3_200_u64.to_le_bytes(), "{url}");
    }
}

#[test]
#[should_panic(expected = "not of this pool")]
fn a_task_that_waits_for_nothing_of_the_pool_is_said() {
    let tasks = Pool::open("sim:edm?nodes=2").unwrap().tasks();
    tasks.spawn(std::future::pending());
    tasks.run();
}

/// A wait for a lock that is never released goes on until the caller interrupts it.
#[test]
fn a_wait_asks_now_and_then_whether_to_give_up() {
    for url in super::remote_urls() {
        let pool = Pool::open(url).unwrap();
        let holder = pool.thread().unwrap();
        let waiter = holder.fork();
        let address = pool.run(async {
            let region = holder.alloc(8, Permissions::READ_WRITE).await.unwrap();
            holder.lock(region.address()).await.unwrap();
            region.address()
        });
        let mut asked = 0;
        let mut enough = || {
            asked += 1;
            asked == 3
        };
        let told = pool.run_attended(waiter.lock(address), &mut enough);
        assert!(matches!(told, Err(Unfinished::Interrupted)), "{url}: {told:?}");
        assert_eq!(asked, 3, "{url}");
        let tasks = pool.tasks();
        let (mut asked, done) = (0, Rc::new(Cell::new(false)));
        let (another, told) = (holder.fork(), done.clone());
        tasks.spawn(async move {
            another.lock(address).await.unwrap();
            told.set(true);
        });
        let ended = tasks.run_attended(|| {
            asked += 1;
            asked == 2
        });
        assert!(matches!(ended, Err(Unfinished::Interrupted)), "{url}: {ended:?}");
        assert!(asked == 2 && !done.get(), "{url}");
        pool.run(holder.unlock(address)).unwrap();
        assert!(pool.run_attended(waiter.sleep(Ps::from_ns(1)), || true).is_ok(), "{url}");
    }
}

#[test]
fn threads_take_the_compute_nodes_in_turn_and_regions_the_memory_nodes() {
    let pool = Pool::open("sim:edm?nodes=7&memory_nodes=3").unwrap();
    let nodes: Vec<u16> = (0..9).map(|_| pool.thread().unwrap().compute()).collect();
    assert_eq!(nodes, [0, 1, 2, 3, 0, 1, 2, 3, 0]);
    let thread = pool.thread_on(2).unwrap();
    let mut memories = Vec::new();
    for _ in 0..7 {
        let region = pool.run(thread.alloc(8, Permissions::READ_WRITE)).unwrap();
        memories.push(region.address().memory());
    }
    assert_eq!(memories, [0, 1, 2, 0, 1, 2, 0]);
}
