//! Receiving: from the ring or from the kernel's socket, whichever has the next byte.

use core::hint::spin_loop;
use core::sync::atomic::{Ordering, fence};

use crate::buffers::Buffers;
use crate::conn::{End, Use, View};
use crate::line::{Armed, Consumer, Next};
use crate::restart::{self, Held};
use crate::{left, mailbox, rack, sys, tx};

/// How long a thread sleeps on memory before it looks at the socket, in milliseconds.
const SLEEP_MS: i64 = 10;
/// Such sleeps before the thread sleeps in the kernel, where a bell wakes it.
const SLEEPS: u32 = 3;
/// How long a bell that was counted may be on its way, in polls of the socket.
const BELL_POLLS: u32 = 200;
/// How often a thread on one processor lets the other end run before it sleeps.
const YIELDS: u32 = 3;
/// Shortest time for which a thread polls memory, in microseconds.
const LEAST_SPIN_US: u32 = 2;

enum Step {
    Got,
    /// Nothing is here; the flag says if the ring is the place where it will come.
    Empty(bool),
    /// The stream has ended.
    End,
    Failed(isize),
}

/// Rounds of a call without a byte, after which it looks at its limit. An honest peer needs few.
const ROUNDS: u32 = 1000;

/// The end of a call whose peer changes words, so that each round finds something else to wait for.
struct Patience {
    rounds: u32,
    done: usize,
    since_ns: u64,
}

impl Patience {
    /// True if the call has to end. A call without a limit lasts as long as its peer.
    fn is_over(&mut self, fd: i32, done: usize, flags: u32) -> bool {
        if done != self.done {
            *self = Patience { rounds: 0, done, since_ns: 0 };
        }
        self.rounds += 1;
        if !self.rounds.is_multiple_of(ROUNDS) {
            return false;
        }
        let now_ns = rack::now_ns();
        if self.since_ns == 0 {
            self.since_ns = now_ns;
        }
        let mut limit = sys::Time::default();
        sys::option(fd, sys::SOL_SOCKET, sys::SO_RCVTIMEO, &mut limit);
        // The rest is in microseconds.
        let limit_ns = limit.seconds as u64 * 1_000_000_000 + limit.rest as u64 * 1000;
        let waits = flags & sys::MSG_DONTWAIT == 0 && !sys::is_nonblocking(fd);
        !waits || (limit != sys::Time::default() && now_ns - self.since_ns >= limit_ns)
    }
}

/// Receives into the buffers; the result is the kernel's.
pub fn receive(used: &Use, end: &End, buffers: &mut Buffers, total: usize, flags: u32) -> isize {
    let mut sleeps = 0;
    let mut signals = None;
    let mut patience = Patience { rounds: 0, done: 0, since_ns: 0 };
    loop {
        if patience.is_over(used.fd, buffers.done, flags) {
            return finish(buffers, sys::EAGAIN);
        }
        let held = end.rx.lock();
        let step = step(used, end, buffers, total, flags);
        let goes_on = matches!(step, Step::Got) && buffers.done > 0 && has_more(used, end, flags);
        drop(held);
        let all = flags & sys::MSG_WAITALL != 0 && flags & sys::MSG_PEEK == 0;
        let is_enough = buffers.done == total || (buffers.done > 0 && !all && !goes_on);
        match step {
            _ if is_enough => return buffers.done as isize,
            Step::Got => sleeps = 0,
            Step::End => return buffers.done as isize,
            Step::Failed(_) if buffers.done > 0 => return buffers.done as isize,
            Step::Failed(error) => return error,
            Step::Empty(in_ring) => {
                if flags & sys::MSG_DONTWAIT != 0 || sys::is_nonblocking(used.fd) {
                    if would_block(used, end) {
                        continue;
                    }
                    return finish(buffers, sys::EAGAIN);
                }
                // A signal between a look at memory and the sleep must still end the sleep.
                if signals.is_none() {
                    signals = restart::hold();
                }
                if let Err(error) = wait(used, end, in_ring, &mut sleeps, &mut signals) {
                    would_block(used, end);
                    return finish(buffers, error);
                }
            }
        }
    }
}

fn finish(buffers: &Buffers, error: isize) -> isize {
    if buffers.done > 0 { buffers.done as isize } else { error }
}

/// True if the next turn has bytes already: a call takes them, too, as the kernel's would.
fn has_more(used: &Use, end: &End, flags: u32) -> bool {
    if flags & sys::MSG_PEEK != 0 {
        return false;
    }
    let Some(view) = used.slot.view(false) else {
        // The kernel's bytes follow those that were put aside.
        return left::is_used(used) && sys::ioctl_number(used.fd, sys::FIONREAD) > 0;
    };
    // SAFETY: the caller holds the lock of this direction.
    let consumer = unsafe { &mut *end.consumer.get() };
    match consumer.next(view.line, view.size) {
        Next::Ring(bytes) => bytes > 0,
        Next::Kernel(_) if consumer.turn == 0 => false,
        Next::Kernel(_) => sys::ioctl_number(used.fd, sys::FIONREAD) > 0,
        Next::Bells(count) => sys::ioctl_number(used.fd, sys::FIONREAD) as u64 > count,
        Next::Fault => false,
    }
}

/// Before a non-blocking call says that nothing is here: an epoll set must get an edge for the next
/// bytes. True if some have come.
fn would_block(used: &Use, end: &End) -> bool {
    if end.epolled.load(Ordering::Acquire) == 0 {
        return false;
    }
    let _held = end.rx.lock();
    arm(used, end)
}

fn step(used: &Use, end: &End, buffers: &mut Buffers, total: usize, flags: u32) -> Step {
    let may_join = mailbox::advance(used, end);
    if left::take(used, end, buffers, total, flags) {
        return Step::Got;
    }
    // SAFETY: the lock of this direction is held.
    let consumer = unsafe { &mut *end.consumer.get() };
    let Some(view) = may_join.then(|| used.slot.view(false)).flatten() else {
        return by_kernel(used, end, None, consumer, buffers, total, flags, None);
    };
    match consumer.next(view.line, view.size) {
        Next::Fault => {
            end.stay.store(1, Ordering::Release);
            fault(end)
        }
        Next::Bells(count) => {
            if take_bells(used.fd, consumer, count) {
                Step::Got
            } else {
                look(used, end, consumer, &view)
            }
        }
        Next::Kernel(limit) => {
            by_kernel(used, end, Some(&view), consumer, buffers, total, flags, limit)
        }
        Next::Ring(0) => {
            take_stale_bells(used.fd, consumer, &view);
            look(used, end, consumer, &view)
        }
        Next::Ring(available) => {
            let mut bytes = available.min((total - buffers.done) as u64) as usize;
            if flags & sys::MSG_PEEK == 0 {
                // The sender has room for the first piece while the next ones are copied.
                bytes = bytes.min(tx::PIECE_BYTES);
            }
            if flags & sys::MSG_TRUNC == 0 {
                buffers.copy(&view, consumer.tail, bytes, false);
            } else {
                buffers.skip(bytes);
            }
            if flags & sys::MSG_PEEK == 0 {
                consumer.advance(view.line, bytes as u64);
                tx::wake(&view.line.waits.0.room);
                settle(used, end, consumer, &view);
            }
            Step::Got
        }
    }
}

/// The peer's words cannot be.
fn fault(end: &End) -> Step {
    end.count_fault();
    Step::Failed(sys::ECONNRESET)
}

/// Looks at the next byte of the socket, as [`sys::peek`]. A look takes the socket's error from the
/// kernel, so the end keeps it for the call that has to return it.
pub fn probe(fd: i32, end: &End) -> isize {
    let kept = end.error.load(Ordering::Acquire);
    if kept != 0 {
        return -(kept as isize);
    }
    keep(end, sys::peek(fd))
}

fn keep(end: &End, found: isize) -> isize {
    if found < 0 && found != sys::EAGAIN && found != sys::EINTR {
        end.error.store(-found as u32, Ordering::Release);
    }
    found
}

/// The error that a look took, to be returned once; or 0.
pub fn take_error(end: &End) -> isize {
    -(end.error.swap(0, Ordering::AcqRel) as isize)
}

/// After bytes were taken: an empty ring has no bell in the socket.
pub fn settle(used: &Use, end: &End, consumer: &mut Consumer, view: &View) {
    if consumer.next(view.line, view.size) != Next::Ring(0) {
        return;
    }
    if end.always_rings() {
        arm_with(used, consumer, view);
    } else {
        consumer.quiet(view.line);
        take_stale_bells(used.fd, consumer, view);
    }
}

/// Takes the bells of an empty ring.
pub fn take_stale_bells(fd: i32, consumer: &mut Consumer, view: &View) {
    let bells = consumer.bells(view.line);
    if bells > 0 {
        take_bells(fd, consumer, bells);
    }
}

/// Takes bells out of the socket; false if not all of them were there.
pub fn take_bells(fd: i32, consumer: &mut Consumer, count: u64) -> bool {
    let mut room = [0u8; 64];
    let mut left = count;
    for _ in 0..BELL_POLLS {
        let some = (left as usize).min(room.len());
        let got = sys::recv_bytes(fd, &mut room[..some], sys::MSG_DONTWAIT);
        if got > 0 {
            consumer.took_bells(got as u64);
            left -= got as u64;
            if left == 0 {
                return true;
            }
        } else if got == sys::EAGAIN {
            spin_loop();
        } else {
            return false;
        }
    }
    false
}

/// Looks at the socket of an empty ring: has the stream ended, or failed?
fn look(used: &Use, end: &End, consumer: &mut Consumer, view: &View) -> Step {
    let found = probe(used.fd, end);
    // What was published before the end is looked at before the end is believed.
    match consumer.next(view.line, view.size) {
        Next::Ring(0) if is_none(found) => Step::Empty(true),
        // A bell is on its way, if the peer did not lie: the socket is the place to wait.
        Next::Bells(_) if is_none(found) => Step::Empty(false),
        Next::Ring(0) | Next::Bells(_) if found == 0 => Step::End,
        Next::Ring(0) | Next::Bells(_) if found < 0 => Step::Failed(take_error(end)),
        // A bell is counted before it is sent, and a turn ends before its next byte: this byte is
        // neither, so the peer is broken.
        Next::Ring(0) if consumer.bells(view.line) == 0 => fault(end),
        _ => Step::Got,
    }
}

fn is_none(found: isize) -> bool {
    found == sys::EAGAIN || found == sys::EINTR
}

/// Receives from the kernel's socket, without waiting, and no byte of a later turn.
fn by_kernel(
    used: &Use,
    end: &End,
    view: Option<&View>,
    consumer: &mut Consumer,
    buffers: &mut Buffers,
    total: usize,
    flags: u32,
    limit: Option<u64>,
) -> Step {
    let queued = sys::ioctl_number(used.fd, sys::FIONREAD) as u64;
    // Bytes that were queued before the turn was seen to go on belong to it.
    let is_same = |consumer: &mut Consumer| match view {
        Some(view) => consumer.next(view.line, view.size) == Next::Kernel(limit),
        None => used.slot.view(false).is_none(),
    };
    if !is_same(consumer) {
        return Step::Got;
    }
    let most = (total - buffers.done).min(limit.unwrap_or(u64::MAX) as usize);
    let mut bytes = (queued as usize).min(most);
    if bytes == 0 {
        let found = probe(used.fd, end);
        if !is_same(consumer) {
            return Step::Got;
        }
        match found {
            0 => return Step::End,
            // The kernel counts no byte behind an urgent one.
            1 => bytes = most.min(1),
            _ if is_none(found) => return Step::Empty(false),
            _ => return Step::Failed(take_error(end)),
        }
    }
    let passed = (flags & !sys::MSG_WAITALL) | sys::MSG_DONTWAIT;
    let got = buffers.few(bytes).receive(used.fd, passed);
    match got {
        0 => Step::End,
        sys::EAGAIN => Step::Empty(false),
        _ if got < 0 => Step::Failed(got),
        _ => {
            buffers.skip(got as usize);
            if flags & sys::MSG_PEEK == 0 {
                consumer.kernel += got as u64;
            }
            Step::Got
        }
    }
}

/// True if the socket has been closed by its other end, or is broken: no bell comes any more.
pub fn has_ended(fd: i32) -> bool {
    let gone = sys::POLLRDHUP | sys::POLLHUP | sys::POLLERR;
    sys::poll_one(fd, sys::POLLRDHUP, 0).is_ok_and(|found| found & gone != 0)
}

/// Arms the bell of an end's empty ring. True if bytes are here instead.
pub fn arm(used: &Use, end: &End) -> bool {
    let Some(view) = used.slot.view(false) else { return left::unread(used, end) > 0 };
    // SAFETY: the caller holds the lock of this direction.
    let consumer = unsafe { &mut *end.consumer.get() };
    match consumer.next(view.line, view.size) {
        Next::Ring(0) => arm_with(used, consumer, &view),
        Next::Ring(_) => true,
        Next::Bells(count) => take_bells(used.fd, consumer, count),
        // The call that receives tells the error.
        Next::Fault => true,
        Next::Kernel(_) => false,
    }
}

/// As [`arm`] for a thread that will not sleep: the bell is armed only if others may.
pub fn glance(used: &Use, end: &End) -> bool {
    let view = used.slot.view(false).filter(|_| !end.always_rings());
    let Some(view) = view else { return arm(used, end) };
    // SAFETY: the caller holds the lock of this direction.
    let consumer = unsafe { &mut *end.consumer.get() };
    if consumer.next(view.line, view.size) != Next::Ring(0) {
        return arm(used, end);
    }
    consumer.quiet(view.line);
    take_stale_bells(used.fd, consumer, &view);
    false
}

fn arm_with(used: &Use, consumer: &mut Consumer, view: &View) -> bool {
    match consumer.arm(view.line) {
        Armed::Empty(0) => false,
        Armed::Empty(bells) => {
            take_bells(used.fd, consumer, bells);
            false
        }
        Armed::Arrived(_) => true,
    }
}

/// Bytes of memory that can be received now.
pub fn available(used: &Use, end: &End) -> u64 {
    let _held = end.rx.lock();
    let Some(view) = used.slot.view(false) else { return left::unread(used, end) };
    // SAFETY: the lock of this direction is held.
    let consumer = unsafe { &mut *end.consumer.get() };
    match consumer.next(view.line, view.size) {
        Next::Ring(bytes) => bytes,
        _ => 0,
    }
}

/// True if the next bytes will come into the ring, which is empty.
pub fn awaits_ring(used: &Use, end: &End) -> bool {
    let _held = end.rx.lock();
    let Some(view) = used.slot.view(false) else { return false };
    // SAFETY: the lock of this direction is held.
    let consumer = unsafe { &mut *end.consumer.get() };
    consumer.next(view.line, view.size) == Next::Ring(0)
}

/// Bytes of the stream that can be received now.
pub fn queued(used: &Use, end: &End) -> u64 {
    let in_kernel = || sys::ioctl_number(used.fd, sys::FIONREAD) as u64;
    let _held = end.rx.lock();
    let Some(view) = used.slot.view(false) else { return left::unread(used, end) + in_kernel() };
    // SAFETY: the lock of this direction is held.
    let consumer = unsafe { &*end.consumer.get() };
    consumer.queued(view.line, view.size, in_kernel())
}

/// True while the words say what they said when this end found the ring empty.
pub fn is_unchanged(view: &View, consumer: &Consumer) -> bool {
    let produced = &view.line.produced.0;
    produced.head.load(Ordering::Acquire) & !crate::line::CLOSED == consumer.tail
        && produced.turn.load(Ordering::Acquire) == consumer.turn
}

/// Waits for bytes: first it polls memory, then it sleeps on memory, then in the kernel. A futex
/// cannot let signals in as it begins to sleep, so a call whose signals are held back skips it.
fn wait(
    used: &Use,
    end: &End,
    in_ring: bool,
    sleeps: &mut u32,
    signals: &mut Option<Held>,
) -> Result<(), isize> {
    let view = used.slot.view(false).filter(|_| in_ring);
    let Some(view) = view else { return sleep_in_kernel(used.fd, end, signals) };
    let consumer = {
        let _held = end.rx.lock();
        // SAFETY: the lock of this direction is held. Later only the copy is read: another thread
        // that receives makes this wait end early.
        let consumer = unsafe { *end.consumer.get() };
        // A thread that sleeps in the kernel relies on the bell that it has armed.
        if !end.always_rings() {
            consumer.quiet(view.line);
        }
        consumer
    };
    if spin(used, &view, &consumer) {
        return Ok(());
    }
    let limit_ms = limit_ms(used.fd, sys::SO_RCVTIMEO);
    if *sleeps < SLEEPS && limit_ms.is_none() && signals.is_none() {
        *sleeps += 1;
        return sleep_on_memory(&view, &consumer);
    }
    end.asleep.fetch_add(1, Ordering::SeqCst);
    let arrived = {
        let _held = end.rx.lock();
        arm(used, end)
    };
    let slept = if arrived { Ok(()) } else { sleep_in_kernel(used.fd, end, signals) };
    end.asleep.fetch_sub(1, Ordering::SeqCst);
    slept
}

pub fn sleep_on_memory(view: &View, consumer: &Consumer) -> Result<(), isize> {
    let word = &view.line.waits.0.data;
    word.store(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    let result =
        if is_unchanged(view, consumer) { sys::futex_wait(word.as_ptr(), 1, SLEEP_MS) } else { 0 };
    let is_signal = result == sys::EINTR && restart::interrupts();
    if is_signal && is_unchanged(view, consumer) { Err(sys::EINTR) } else { Ok(()) }
}

/// Polls memory for a while. True if something has changed.
pub fn spin(used: &Use, view: &View, consumer: &Consumer) -> bool {
    let budget_us = used.slot.spin_us.load(Ordering::Relaxed);
    if !rack::spins() {
        // Others may run for long: a signal of that time would not be seen.
        let yields = if restart::interrupts() { 0 } else { YIELDS };
        for _ in 0..yields {
            if !is_unchanged(view, consumer) {
                return true;
            }
            // SAFETY: the call has no arguments.
            unsafe { sys::call4(sys::YIELD, 0, 0, 0, 0) };
        }
        return !is_unchanged(view, consumer);
    }
    let until = rack::now_ns() + u64::from(budget_us) * 1000;
    loop {
        for _ in 0..32 {
            if !is_unchanged(view, consumer) {
                let next = (budget_us * 2).min(rack::SPIN_US_MAX);
                used.slot.spin_us.store(next, Ordering::Relaxed);
                return true;
            }
            spin_loop();
        }
        if rack::now_ns() >= until {
            let next = (budget_us / 2).max(LEAST_SPIN_US);
            used.slot.spin_us.store(next, Ordering::Relaxed);
            return false;
        }
    }
}

/// The program's limit of how long a call waits, in milliseconds.
pub fn limit_ms(fd: i32, name: usize) -> Option<i64> {
    let mut limit = sys::Time::default();
    sys::option(fd, sys::SOL_SOCKET, name, &mut limit);
    // The rest is in microseconds.
    (limit != sys::Time::default()).then(|| limit.seconds * 1000 + (limit.rest + 999) / 1000)
}

/// Sleeps until the socket has a byte, or an end, or an error; the call honours timeouts and
/// signals as the kernel's does.
fn sleep_in_kernel(fd: i32, end: &End, signals: &mut Option<Held>) -> Result<(), isize> {
    if end.error.load(Ordering::Acquire) != 0 {
        return Ok(());
    }
    // `ppoll` waits for so many bytes, but a look at the socket for one.
    let mut least = 1i32;
    sys::option(fd, sys::SOL_SOCKET, sys::SO_RCVLOWAT, &mut least);
    if let Some(held) = signals.as_ref().filter(|_| least <= 1) {
        let limit_ms = limit_ms(fd, sys::SO_RCVTIMEO).unwrap_or(-1);
        match sys::poll_masked(fd, sys::POLLIN, limit_ms, Some(&held.before)) {
            Ok(0) => return Err(sys::EAGAIN),
            Err(sys::EINTR) => return Err(sys::EINTR),
            // A queue of errors alone is an event of `ppoll` that no receiving call takes.
            Ok(found) if found & sys::POLLERR == 0 => return Ok(()),
            _ => {}
        }
    }
    *signals = None;
    match keep(end, sys::recv_bytes(fd, &mut [0], sys::MSG_PEEK)) {
        error if is_none(error) => Err(error),
        _ => Ok(()),
    }
}
