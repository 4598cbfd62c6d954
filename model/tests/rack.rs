//! One direction of a rack's connection between two threads, in every order in which they may go
//! on with at most so many preemptions: `crates/rack/src/line.rs` as it is, on loom's atomics.
//!
//! The kernel's socket is a queue under a lock, which is stronger than the socket by nothing that
//! the words rely on: what one end has put there, the other end finds in order.

mod sync {
    /// The tests at the foot of `line.rs` run here, too.
    pub(crate) use loom::model as check;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

#[path = "../../crates/rack/src/line.rs"]
mod line;

use std::collections::VecDeque;
use std::sync::Arc;

use line::{Armed, Closed, Consumer, Line, Next, Producer};
use loom::sync::Mutex;
use loom::thread;

const SIZE: u64 = 2;
/// A byte of the socket that is a bell; the stream's bytes are numbers below it.
const BELL: u64 = 99;

#[derive(Default)]
struct Connection {
    line: Line,
    socket: Mutex<VecDeque<u64>>,
    /// Bytes of the ring, by their position; only their order is checked.
    ring: Mutex<Vec<u64>>,
}

impl Connection {
    fn put(&self, producer: &mut Producer, byte: u64) {
        self.socket.lock().unwrap().push_back(byte);
        producer.kernel += 1;
    }

    /// Sends one byte, as `tx.rs` does without waiting.
    fn send(&self, producer: &mut Producer, byte: u64) {
        if !producer.in_ring() && producer.may_enter_ring(&self.line) {
            producer.enter_ring(&self.line);
        }
        if producer.in_ring() {
            if producer.room(&self.line, SIZE).is_ok_and(|room| room > 0) {
                self.ring.lock().unwrap().push(byte);
                match producer.publish(&self.line, 1) {
                    Ok(rings) => {
                        if rings {
                            self.put(producer, BELL);
                        }
                        return producer.rang(&self.line);
                    }
                    Err(Closed) => drop(self.ring.lock().unwrap().pop()),
                }
            }
            producer.enter_kernel(&self.line);
        }
        self.put(producer, byte);
    }

    /// Takes one byte if there is one, as `rx.rs` does without waiting.
    fn receive(&self, consumer: &mut Consumer) -> Option<u64> {
        match consumer.next(&self.line, SIZE) {
            Next::Fault => panic!("the producer stored words that cannot be"),
            Next::Ring(0) => None,
            Next::Ring(_) => {
                let byte = self.ring.lock().unwrap()[consumer.tail as usize];
                consumer.advance(&self.line, 1);
                Some(byte)
            }
            Next::Bells(count) => {
                self.take_bells(consumer, count);
                None
            }
            Next::Kernel(limit) => {
                let queued = self.socket.lock().unwrap().len() as u64;
                if queued == 0 || consumer.next(&self.line, SIZE) != Next::Kernel(limit) {
                    return None;
                }
                let byte = self.socket.lock().unwrap().pop_front().unwrap();
                consumer.kernel += 1;
                Some(byte)
            }
        }
    }

    fn take_bells(&self, consumer: &mut Consumer, count: u64) {
        for _ in 0..count {
            let Some(byte) = self.socket.lock().unwrap().pop_front() else { return };
            assert_eq!(byte, BELL, "a byte of the stream is no bell");
            consumer.took_bells(1);
        }
    }

    /// Before the consumer sleeps in the kernel: true if it may, because the socket is empty and
    /// the next byte will be there, or a bell for it.
    fn arms(&self, consumer: &mut Consumer) -> bool {
        match consumer.next(&self.line, SIZE) {
            Next::Ring(0) => match consumer.arm(&self.line) {
                Armed::Empty(bells) => {
                    self.take_bells(consumer, bells);
                    true
                }
                Armed::Arrived(_) => false,
            },
            Next::Kernel(_) => true,
            _ => false,
        }
    }
}

/// Sends `count` bytes; the consumer sleeps until the socket has a byte whenever it has armed. A
/// lost wake-up is a deadlock, which loom reports as a thread that never ends.
fn run(count: u64, closes_after: Option<u64>, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let connection = Arc::new(Connection::default());
        let of_producer = Arc::clone(&connection);
        let producer = thread::spawn(move || {
            let mut producer = Producer::default();
            for byte in 0..count {
                of_producer.send(&mut producer, byte);
            }
        });
        let mut consumer = Consumer::default();
        let mut got = 0;
        while got < count {
            if closes_after == Some(got) {
                Consumer::close(&connection.line);
            }
            if let Some(byte) = connection.receive(&mut consumer) {
                assert_eq!(byte, got, "each byte comes once, in order");
                got += 1;
                continue;
            }
            if connection.arms(&mut consumer) {
                while connection.socket.lock().unwrap().is_empty() {
                    thread::yield_now();
                }
            }
        }
        producer.join().unwrap();
    });
}

#[test]
fn bytes_come_in_order_and_no_wake_up_is_lost() {
    run(3, None, 2);
}

#[test]
fn a_full_ring_overflows_into_the_socket_and_the_stream_returns() {
    run(5, None, 2);
}

#[test]
fn a_ring_that_closes_at_any_byte_loses_none() {
    for at in 0..3 {
        run(4, Some(at), 2);
    }
}

/// The consumer returns to the kernel after some bytes: it takes what is in memory, and the bells.
/// Whoever reads the socket then finds the rest of the stream there, and no bell.
fn run_return(count: u64, after: u64, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let connection = Arc::new(Connection::default());
        let of_producer = Arc::clone(&connection);
        let producer = thread::spawn(move || {
            let mut producer = Producer::default();
            for byte in 0..count {
                of_producer.send(&mut producer, byte);
            }
        });
        let mut consumer = Consumer::default();
        let mut got = Vec::new();
        while (got.len() as u64) < after {
            match connection.receive(&mut consumer) {
                Some(byte) => got.push(byte),
                None => thread::yield_now(),
            }
        }
        Consumer::close(&connection.line);
        loop {
            match consumer.next(&connection.line, SIZE) {
                Next::Kernel(None) => break,
                Next::Ring(0) if consumer.is_rung(&connection.line) => {
                    let bells = consumer.bells(&connection.line);
                    connection.take_bells(&mut consumer, bells);
                    break;
                }
                _ => match connection.receive(&mut consumer) {
                    Some(byte) => got.push(byte),
                    None => thread::yield_now(),
                },
            }
        }
        producer.join().unwrap();
        got.extend(connection.socket.lock().unwrap().iter());
        assert_eq!(got, (0..count).collect::<Vec<_>>());
    });
}

#[test]
fn a_return_to_the_kernel_leaves_each_byte_once_and_no_bell() {
    for after in 0..3 {
        run_return(4, after, 2);
    }
}
