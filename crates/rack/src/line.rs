//! The shared words of one direction of a connection: which bytes are in the ring, which are in the
//! kernel's socket, and when the producer must put a bell byte into the socket.
//!
//! The stream is a sequence of turns: even turns lie in the kernel's socket, odd turns in the ring.
//! The producer alone ends a turn, and stores where it ended before it begins the next one. Bells
//! are bytes of the socket during odd turns. `model/tests/rack.rs` runs this file in the orders of
//! two threads; `docs/internals/rack-sockets.md` has the invariants.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// The consumer sets this bit of the head to stop the producer at this very byte.
pub const CLOSED: u64 = 1 << 63;
/// The bell's low bit: no bell is needed. The rest counts bells.
const RUNG: u64 = 1;
/// Most bells that a consumer takes at once, whatever the shared words say.
const BELLS_MAX: u64 = 64;
/// Attempts to count a bell, while the consumer changes the same word.
const BELL_ATTEMPTS: u32 = 64;
/// Most turns without a byte that a consumer follows at once: a producer makes at most two.
const EMPTY_TURNS_MAX: u32 = 8;

/// A value on cache lines of its own; processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Apart<T>(pub T);

/// Words that the producer stores.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Produced {
    /// Bytes put into the ring since the start, and [`CLOSED`].
    pub head: AtomicU64,
    /// Number of the producer's turn.
    pub turn: AtomicU64,
    /// Position at which an even and an odd turn ended: of the socket, and of the ring.
    ends: [AtomicU64; 2],
    /// Position in the socket at which the next even turn begins, after all bells.
    kernel_start: AtomicU64,
    /// Position up to which the bells of the ring's bytes are in the socket.
    rung: AtomicU64,
}

/// Words that the consumer stores.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Consumed {
    /// Bytes taken from the ring since the start.
    pub tail: AtomicU64,
    /// Number of the turn that the consumer has reached.
    pub turn: AtomicU64,
}

/// Words on which a thread sleeps; each is 1 while a thread does.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Waits {
    /// The consumer waits for bytes.
    pub data: AtomicU32,
    /// The producer waits for room.
    pub room: AtomicU32,
}

/// The shared words of one direction.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Line {
    /// Words that the producer stores.
    pub produced: Apart<Produced>,
    /// Words that the consumer stores.
    pub consumed: Apart<Consumed>,
    bell: Apart<AtomicU64>,
    /// Words on which a thread sleeps.
    pub waits: Apart<Waits>,
}

impl Line {
    /// True if the ring seems to have bytes: a guess of a thread that holds no lock.
    #[must_use]
    pub fn has_bytes(&self) -> bool {
        let head = self.produced.0.head.load(Ordering::Acquire) & !CLOSED;
        head != self.consumed.0.tail.load(Ordering::Acquire)
    }
}

/// The producer's own position; the other end cannot change it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Producer {
    /// Number of its turn.
    pub turn: u64,
    /// Bytes put into the ring.
    pub head: u64,
    /// The consumer's position when it was loaded last.
    pub seen: u64,
    /// Bytes put into the kernel's socket, bells included.
    pub kernel: u64,
    /// The next bytes of the ring need a bell in any case.
    must_ring: bool,
}

/// The consumer closed the ring, or its words cannot be: the producer goes on by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl Producer {
    /// True if the current turn is in the ring.
    #[must_use]
    pub fn in_ring(&self) -> bool {
        self.turn % 2 == 1
    }

    /// Free bytes of a ring of `size` bytes.
    ///
    /// # Errors
    /// [`Closed`] if the consumer's position cannot be.
    pub fn room(&mut self, line: &Line, size: u64) -> Result<u64, Closed> {
        let tail = line.consumed.0.tail.load(Ordering::Acquire);
        if tail < self.seen || tail > self.head {
            return Err(Closed);
        }
        self.seen = tail;
        Ok(size - (self.head - tail))
    }

    /// Publishes `bytes` that were copied behind the head. Returns true if the caller must put a
    /// bell into the socket.
    ///
    /// # Errors
    /// [`Closed`]; the bytes are then not published.
    pub fn publish(&mut self, line: &Line, bytes: u64) -> Result<bool, Closed> {
        let head = &line.produced.0.head;
        let next = self.head + bytes;
        head.compare_exchange(self.head, next, Ordering::AcqRel, Ordering::Acquire)
            .map_err(|_| Closed)?;
        self.head = next;
        fence(Ordering::SeqCst);
        let must = core::mem::take(&mut self.must_ring);
        let bell = &line.bell.0;
        let mut was = bell.load(Ordering::Acquire);
        // An honest consumer changes the word at most twice meanwhile; a liar only harms itself.
        for _ in 0..BELL_ATTEMPTS {
            if !must && was & RUNG == RUNG {
                return Ok(false);
            }
            let next = (was & !RUNG).wrapping_add(2) | RUNG;
            match bell.compare_exchange(was, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(now) => was = now,
            }
        }
        Ok(true)
    }

    /// Takes back a bell that the socket did not accept.
    pub fn unring(&self, line: &Line) {
        line.bell.0.fetch_sub(2, Ordering::AcqRel);
        line.bell.0.fetch_and(!RUNG, Ordering::AcqRel);
    }

    /// Notes that the socket has the bells of all that was published.
    pub fn rang(&self, line: &Line) {
        line.produced.0.rung.store(self.head, Ordering::Release);
    }

    /// True if the ring may be used next: it is open, and the consumer has reached this turn.
    #[must_use]
    pub fn may_enter_ring(&self, line: &Line) -> bool {
        line.consumed.0.turn.load(Ordering::Acquire) == self.turn
            && line.produced.0.head.load(Ordering::Acquire) == self.head
    }

    /// Ends a turn in the socket; the next bytes go into the ring.
    pub fn enter_ring(&mut self, line: &Line) {
        self.end_turn(line, self.kernel);
        self.must_ring = true;
    }

    /// Ends a turn in the ring; the next bytes go into the socket.
    pub fn enter_kernel(&mut self, line: &Line) {
        line.produced.0.kernel_start.store(self.kernel, Ordering::Relaxed);
        self.end_turn(line, self.head);
    }

    fn end_turn(&mut self, line: &Line, end: u64) {
        line.produced.0.ends[(self.turn % 2) as usize].store(end, Ordering::Relaxed);
        self.turn += 1;
        line.produced.0.turn.store(self.turn, Ordering::Release);
    }
}

/// The consumer's own position; the other end cannot change it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Consumer {
    /// Number of the turn that it reached.
    pub turn: u64,
    /// Bytes taken from the ring.
    pub tail: u64,
    /// Bytes taken from the kernel's socket, bells included.
    pub kernel: u64,
    /// Bells taken.
    bells: u64,
    /// The program has references to bytes from here on.
    pin: u64,
    is_pinned: bool,
}

/// Where the next bytes of the stream are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// In the kernel's socket; at most so many, where the producer has gone on to the ring.
    Kernel(Option<u64>),
    /// In the ring: so many bytes; 0 if it is empty.
    Ring(u64),
    /// So many bells must be taken from the socket first.
    Bells(u64),
    /// The words cannot be: the producer is broken or lies.
    Fault,
}

/// What [`Consumer::arm`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Armed {
    /// The ring is empty, and the next bytes ring a bell. So many bells are to be taken.
    Empty(u64),
    /// Bytes have arrived, and so many bells for them lie in the socket, or are on their way.
    Arrived(u64),
}

impl Consumer {
    /// Where the next bytes are, in a ring of `size` bytes.
    pub fn next(&mut self, line: &Line, size: u64) -> Next {
        for _ in 0..EMPTY_TURNS_MAX {
            let turn = line.produced.0.turn.load(Ordering::Acquire);
            if turn < self.turn || turn - self.turn > 2 {
                return Next::Fault;
            }
            let ended = turn > self.turn;
            let end = line.produced.0.ends[(self.turn % 2) as usize].load(Ordering::Acquire);
            if self.turn.is_multiple_of(2) {
                match end.checked_sub(self.kernel) {
                    _ if !ended => return Next::Kernel(None),
                    None => return Next::Fault,
                    Some(0) => {}
                    Some(left) => return Next::Kernel(Some(left)),
                }
            } else {
                let head = line.produced.0.head.load(Ordering::Acquire) & !CLOSED;
                let end = if ended { end } else { head };
                match end.checked_sub(self.tail) {
                    Some(0) if ended => {}
                    Some(bytes) if bytes <= size - self.kept() => return Next::Ring(bytes),
                    _ => return Next::Fault,
                }
                let start = line.produced.0.kernel_start.load(Ordering::Acquire);
                match start.checked_sub(self.kernel) {
                    Some(0) => {}
                    Some(bells) if bells <= u64::from(u32::MAX) => return Next::Bells(bells),
                    _ => return Next::Fault,
                }
            }
            self.turn += 1;
            line.consumed.0.turn.store(self.turn, Ordering::Release);
        }
        Next::Fault
    }

    /// Bytes that were taken and not given back.
    fn kept(&self) -> u64 {
        if self.is_pinned { self.tail - self.pin } else { 0 }
    }

    /// True if all that was published has its bells in the socket. Of a closed ring this stays so.
    #[must_use]
    pub fn is_rung(&self, line: &Line) -> bool {
        let head = line.produced.0.head.load(Ordering::Acquire) & !CLOSED;
        line.produced.0.rung.load(Ordering::Acquire) == head
    }

    /// Bytes of the stream that are here, if the socket had `in_kernel` bytes, bells included. The
    /// socket keeps the order, so no bell on its way is taken for a byte.
    #[must_use]
    pub fn queued(&self, line: &Line, size: u64, in_kernel: u64) -> u64 {
        let produced = &line.produced.0;
        let ahead = produced.turn.load(Ordering::Acquire).saturating_sub(self.turn);
        let is_even = self.turn.is_multiple_of(2);
        let mut count = 0u64;
        if is_even {
            let end = produced.ends[0].load(Ordering::Acquire);
            let left = if ahead == 0 { u64::MAX } else { end.saturating_sub(self.kernel) };
            count = in_kernel.min(left);
        }
        let turns_to_ring = u64::from(is_even);
        if ahead >= turns_to_ring {
            let head = produced.head.load(Ordering::Acquire) & !CLOSED;
            count = count.saturating_add(head.saturating_sub(self.tail).min(size));
        }
        if ahead > turns_to_ring {
            let start = produced.kernel_start.load(Ordering::Acquire);
            let later = in_kernel.saturating_sub(start.saturating_sub(self.kernel));
            count = count.saturating_add(later);
        }
        count
    }

    /// Takes `bytes` of the ring, and gives them back to the producer where nothing is pinned.
    pub fn advance(&mut self, line: &Line, bytes: u64) {
        self.tail += bytes;
        self.give(line);
    }

    /// Keeps all bytes from this position on, until the position advances or there is none.
    pub fn pin(&mut self, line: &Line, at: Option<u64>) {
        self.is_pinned = at.is_some();
        self.pin = at.unwrap_or(0);
        self.give(line);
    }

    fn give(&self, line: &Line) {
        let free = if self.is_pinned { self.pin.min(self.tail) } else { self.tail };
        line.consumed.0.tail.store(free, Ordering::Release);
    }

    /// Notes bells that were taken from the socket.
    pub fn took_bells(&mut self, count: u64) {
        self.bells += count;
        self.kernel += count;
    }

    /// Bells that lie in the socket, or are on their way.
    #[must_use]
    pub fn bells(&self, line: &Line) -> u64 {
        let count = line.bell.0.load(Ordering::Acquire) >> 1;
        count.saturating_sub(self.bells).min(BELLS_MAX)
    }

    /// The producer need not ring: the consumer looks by itself, or sleeps on [`Waits::data`].
    pub fn quiet(&self, line: &Line) {
        let bell = &line.bell.0;
        if bell.load(Ordering::Acquire) & RUNG == 0 {
            bell.fetch_or(RUNG, Ordering::AcqRel);
        }
    }

    /// Makes the producer ring for the next bytes of an empty ring. The caller takes the bells of
    /// [`Armed::Empty`] from the socket, and none of [`Armed::Arrived`].
    pub fn arm(&self, line: &Line) -> Armed {
        let bell = &line.bell.0;
        let mut was = bell.load(Ordering::Acquire);
        if was & RUNG == RUNG {
            was = bell.fetch_and(!RUNG, Ordering::AcqRel);
        }
        let before = (was >> 1).saturating_sub(self.bells).min(BELLS_MAX);
        fence(Ordering::SeqCst);
        let head = line.produced.0.head.load(Ordering::Acquire) & !CLOSED;
        let turn = line.produced.0.turn.load(Ordering::Acquire);
        if head == self.tail && turn == self.turn {
            return Armed::Empty(before);
        }
        self.quiet(line);
        Armed::Arrived(self.bells(line))
    }

    /// Stops the producer at this byte. What was published before can still be taken.
    pub fn close(line: &Line) {
        line.produced.0.head.fetch_or(CLOSED, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::check;

    const SIZE: u64 = 16;

    #[test]
    fn bytes_go_by_the_kernel_then_by_the_ring_then_by_the_kernel() {
        check(|| {
            let (line, mut from, mut to) =
                (Line::default(), Producer::default(), Consumer::default());
            from.kernel += 5;
            assert_eq!(to.next(&line, SIZE), Next::Kernel(None));
            to.kernel += 2;
            from.enter_ring(&line);
            assert_eq!(to.next(&line, SIZE), Next::Kernel(Some(3)));
            assert_eq!(to.queued(&line, SIZE, 3), 3);
            assert_eq!(from.publish(&line, 4), Ok(true), "the first bytes ring in any case");
            // The bell is counted, and on its way.
            assert_eq!(to.queued(&line, SIZE, 3), 7);
            from.kernel += 1;
            to.kernel += 3;
            assert_eq!(to.queued(&line, SIZE, 1), 4);
            assert_eq!(to.next(&line, SIZE), Next::Ring(4));
            assert_eq!(from.publish(&line, 1), Ok(false), "a bell is in the socket");
            to.advance(&line, 5);
            assert_eq!(from.room(&line, SIZE), Ok(SIZE));
            from.enter_kernel(&line);
            assert_eq!(to.next(&line, SIZE), Next::Bells(1));
            to.took_bells(1);
            assert_eq!(to.next(&line, SIZE), Next::Kernel(None));
        });
    }

    #[test]
    fn a_closed_ring_takes_no_more_and_keeps_what_it_has() {
        check(|| {
            let (line, mut from, mut to) =
                (Line::default(), Producer::default(), Consumer::default());
            from.enter_ring(&line);
            assert_eq!(from.publish(&line, 3), Ok(true));
            Consumer::close(&line);
            assert_eq!(from.publish(&line, 1), Err(Closed));
            from.kernel += 1;
            from.enter_kernel(&line);
            assert!(!from.may_enter_ring(&line));
            assert_eq!(to.next(&line, SIZE), Next::Ring(3));
            to.advance(&line, 3);
            assert_eq!(to.next(&line, SIZE), Next::Bells(1));
        });
    }

    #[test]
    fn a_bell_that_the_socket_refuses_is_rung_again() {
        check(|| {
            let (line, mut from, mut to) =
                (Line::default(), Producer::default(), Consumer::default());
            from.enter_ring(&line);
            assert_eq!(from.publish(&line, 2), Ok(true));
            from.unring(&line);
            assert_eq!(to.bells(&line), 0);
            assert_eq!(from.publish(&line, 1), Ok(true));
            assert_eq!(to.next(&line, SIZE), Next::Ring(3));
            assert_eq!(to.queued(&line, SIZE, 1), 3, "the socket has one bell");
            to.advance(&line, 3);
            assert_eq!(to.arm(&line), Armed::Empty(1));
            assert_eq!(from.publish(&line, 1), Ok(true), "an armed ring rings");
        });
    }

    #[test]
    fn pinned_bytes_are_not_given_back() {
        check(|| {
            let (line, mut from, mut to) =
                (Line::default(), Producer::default(), Consumer::default());
            from.enter_ring(&line);
            assert_eq!(from.publish(&line, 10), Ok(true));
            assert_eq!(to.next(&line, SIZE), Next::Ring(10));
            to.pin(&line, Some(0));
            to.advance(&line, 4);
            to.advance(&line, 6);
            assert_eq!(from.room(&line, SIZE), Ok(6));
            to.pin(&line, Some(4));
            assert_eq!(from.room(&line, SIZE), Ok(10));
            // A producer that overwrites what is pinned claims more than the ring has.
            line.produced.0.head.store(SIZE + 5, Ordering::Relaxed);
            assert_eq!(to.next(&line, SIZE), Next::Fault);
            line.produced.0.head.store(10, Ordering::Relaxed);
            to.pin(&line, None);
            assert_eq!(from.room(&line, SIZE), Ok(SIZE));
        });
    }

    #[test]
    fn positions_that_cannot_be_are_faults() {
        check(|| {
            let (line, mut from, mut to) =
                (Line::default(), Producer::default(), Consumer::default());
            from.enter_ring(&line);
            line.produced.0.head.store(SIZE + 1, Ordering::Relaxed);
            assert_eq!(to.next(&line, SIZE), Next::Fault);
            line.produced.0.turn.store(9, Ordering::Relaxed);
            assert_eq!(to.next(&line, SIZE), Next::Fault);
            line.consumed.0.tail.store(1, Ordering::Relaxed);
            assert_eq!(from.room(&line, SIZE), Err(Closed));
        });
    }
}
