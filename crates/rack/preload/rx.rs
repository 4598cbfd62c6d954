//! Receiving: from the ring or from the kernel's socket, whichever has the next byte.

use core::hint::spin_loop;
use core::sync::atomic::{Ordering, fence};

use crate::buffers::Buffers;
use crate::conn::{End, Use, View};
use crate::ledger::Count;
use crate::line::{Armed, Consumer, Next};
use crate::{mailbox, rack, restart, sys, tx};

/// How long a thread sleeps on memory before it looks at the socket, in milliseconds.
const SLEEP_MS: i64 = 10;
/// Such sleeps before the thread sleeps in the kernel, where a bell wakes it.
const SLEEPS: u32 = 3;
/// How long a bell that was counted may be on its way, in polls of the socket.
const BELL_POLLS: u32 = 200;
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

/// Receives into the buffers; the result is the kernel's.
pub fn receive(used: &Use, end: &End, buffers: &mut Buffers, total: usize, flags: u32) -> isize {
    let mut sleeps = 0;
    loop {
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
                    return if buffers.done > 0 { buffers.done as isize } else { sys::EAGAIN };
                }
                if let Err(error) = wait(used, end, in_ring, &mut sleeps) {
                    would_block(used, end);
                    return if buffers.done > 0 { buffers.done as isize } else { error };
                }
            }
        }
    }
}

/// True if the next turn has bytes already: a call takes them, too, as the kernel's would.
fn has_more(used: &Use, end: &End, flags: u32) -> bool {
    let Some(view) = used.slot.view(false).filter(|_| flags & sys::MSG_PEEK == 0) else {
        return false;
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
    // SAFETY: the lock of this direction is held.
    let consumer = unsafe { &mut *end.consumer.get() };
    let Some(view) = may_join.then(|| used.slot.view(false)).flatten() else {
        return by_kernel(used, None, consumer, buffers, total, flags, None);
    };
    match consumer.next(view.line, view.size) {
        Next::Fault => {
            end.stay.store(1, Ordering::Release);
            fault()
        }
        Next::Bells(count) => {
            if take_bells(used.fd, consumer, count) {
                Step::Got
            } else {
                look(used, consumer, &view)
            }
        }
        Next::Kernel(limit) => by_kernel(used, Some(&view), consumer, buffers, total, flags, limit),
        Next::Ring(0) => {
            take_stale_bells(used.fd, consumer, &view);
            look(used, consumer, &view)
        }
        Next::Ring(available) => {
            let bytes = available.min((total - buffers.done) as u64) as usize;
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
fn fault() -> Step {
    const ECONNRESET: isize = -104;
    rack::count(Count::Faults, 1);
    Step::Failed(ECONNRESET)
}

/// After bytes were taken: an empty ring has no bell in the socket.
fn settle(used: &Use, end: &End, consumer: &mut Consumer, view: &View) {
    if consumer.next(view.line, view.size) != Next::Ring(0) {
        return;
    }
    if end.epolled.load(Ordering::Acquire) != 0 {
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
fn take_bells(fd: i32, consumer: &mut Consumer, count: u64) -> bool {
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
fn look(used: &Use, consumer: &mut Consumer, view: &View) -> Step {
    let found = sys::peek(used.fd);
    if found == sys::EAGAIN || found == sys::EINTR {
        return Step::Empty(true);
    }
    // What was published before the end is looked at before the end is believed.
    match consumer.next(view.line, view.size) {
        Next::Ring(0) if found == 0 => Step::End,
        Next::Ring(0) if found < 0 => {
            Step::Failed(sys::recv_bytes(used.fd, &mut [0], sys::MSG_DONTWAIT))
        }
        // A bell is counted before it is sent, and a turn ends before its next byte: this byte is
        // neither, so the peer is broken.
        Next::Ring(0) if consumer.bells(view.line) == 0 => fault(),
        Next::Bells(_) if found == 0 => Step::End,
        _ => Step::Got,
    }
}

/// Receives from the kernel's socket, without waiting, and no byte of a later turn.
fn by_kernel(
    used: &Use,
    view: Option<&View>,
    consumer: &mut Consumer,
    buffers: &mut Buffers,
    total: usize,
    flags: u32,
    limit: Option<u64>,
) -> Step {
    let queued = sys::ioctl_number(used.fd, sys::FIONREAD) as u64;
    // Bytes that were queued before the turn was seen to go on belong to it.
    let is_same = match (view, used.slot.view(false)) {
        (Some(view), _) => consumer.next(view.line, view.size) == Next::Kernel(limit),
        (None, later) => later.is_none(),
    };
    if !is_same {
        return Step::Got;
    }
    let bytes = queued.min(limit.unwrap_or(u64::MAX)).min((total - buffers.done) as u64) as usize;
    if bytes == 0 {
        let found = sys::peek(used.fd);
        return match found {
            0 if view.is_none_or(|it| consumer.next(it.line, it.size) == Next::Kernel(limit)) => {
                Step::End
            }
            0 | 1 => Step::Got,
            sys::EAGAIN => Step::Empty(false),
            _ => Step::Failed(sys::recv_bytes(used.fd, &mut [0], sys::MSG_DONTWAIT)),
        };
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

/// Arms the bell of an end's empty ring. True if bytes are here instead.
pub fn arm(used: &Use, end: &End) -> bool {
    let Some(view) = used.slot.view(false) else { return false };
    // SAFETY: the caller holds the lock of this direction.
    let consumer = unsafe { &mut *end.consumer.get() };
    match consumer.next(view.line, view.size) {
        Next::Ring(0) => arm_with(used, consumer, &view),
        Next::Ring(_) => true,
        Next::Bells(count) => take_bells(used.fd, consumer, count),
        Next::Kernel(_) | Next::Fault => false,
    }
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

/// Bytes of the ring that can be received now, without a lock.
pub fn available(used: &Use, end: &End) -> u64 {
    let Some(view) = used.slot.view(false) else { return 0 };
    let _held = end.rx.lock();
    // SAFETY: the lock of this direction is held.
    let consumer = unsafe { &mut *end.consumer.get() };
    match consumer.next(view.line, view.size) {
        Next::Ring(bytes) => bytes,
        _ => 0,
    }
}

/// Bytes of the stream that can be received now.
pub fn queued(used: &Use, end: &End) -> u64 {
    let in_kernel = || sys::ioctl_number(used.fd, sys::FIONREAD) as u64;
    let _held = end.rx.lock();
    let Some(view) = used.slot.view(false) else { return in_kernel() };
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

/// Waits for bytes: first it polls memory, then it sleeps on memory, then in the kernel.
fn wait(used: &Use, end: &End, in_ring: bool, sleeps: &mut u32) -> Result<(), isize> {
    let view = used.slot.view(false).filter(|_| in_ring);
    let Some(view) = view else { return sleep_in_kernel(used.fd) };
    // SAFETY: only a copy is read: another thread that receives makes this wait end early.
    let consumer = unsafe { *end.consumer.get() };
    consumer.quiet(view.line);
    if spin(used, &view, &consumer) {
        return Ok(());
    }
    let mut limit = sys::Time::default();
    sys::option(used.fd, sys::SOL_SOCKET, sys::SO_RCVTIMEO, &mut limit);
    if *sleeps < SLEEPS && limit == sys::Time::default() {
        *sleeps += 1;
        let word = &view.line.waits.0.data;
        word.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let result = if is_unchanged(&view, &consumer) {
            sys::futex_wait(word.as_ptr(), 1, SLEEP_MS)
        } else {
            0
        };
        let is_signal = result == sys::EINTR && restart::interrupts();
        return if is_signal && is_unchanged(&view, &consumer) { Err(sys::EINTR) } else { Ok(()) };
    }
    let arrived = {
        let _held = end.rx.lock();
        arm(used, end)
    };
    if arrived { Ok(()) } else { sleep_in_kernel(used.fd) }
}

/// Polls memory for a while. True if something has changed.
fn spin(used: &Use, view: &View, consumer: &Consumer) -> bool {
    let budget_us = used.slot.spin_us.load(Ordering::Relaxed);
    if !rack::spins() {
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

/// Sleeps until the socket has a byte, or an end, or an error; the call honours timeouts and
/// signals as the kernel's does.
fn sleep_in_kernel(fd: i32) -> Result<(), isize> {
    match sys::recv_bytes(fd, &mut [0], sys::MSG_PEEK) {
        error if error == sys::EAGAIN || error == sys::EINTR => Err(error),
        _ => Ok(()),
    }
}
