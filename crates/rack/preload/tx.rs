//! Sending: into the ring while it has room, by the kernel's socket otherwise.
//!
//! A blocking call waits for room for a few milliseconds, and then goes on by the kernel, whose
//! socket knows about timeouts, signals and dead peers. A non-blocking call polls memory for a few
//! microseconds, as a reader that runs makes room in less time than the kernel needs for the bytes.
//! Then it goes on by the kernel: so the socket is writable exactly when a call can send.

use core::hint::spin_loop;
use core::sync::atomic::{Ordering, fence};

use crate::buffers::Buffers;
use crate::conn::{End, Use, View};
use crate::ledger::Count;
use crate::line::Producer;
use crate::{mailbox, rack, restart, rx, sys};

/// Bytes that are published at once, so that the receiver copies while the sender does.
pub const PIECE_BYTES: usize = 32 << 10;
/// Bytes that the kernel may still hold when the stream of a blocking call returns to the ring.
const KERNEL_QUEUE_BYTES: usize = 16 << 10;
/// How long a blocking call waits at least for the kernel's queue while its reader takes nothing.
const DRAIN_MS_LEAST: u32 = 10;
/// How long it waits while the reader has always gone on before: on a busy machine it has no
/// processor for tens of milliseconds.
pub const DRAIN_MS_MOST: u32 = 80;
/// Longest time for which a non-blocking call polls memory for room, and the shortest, in
/// microseconds.
pub const ROOM_US_MAX: u32 = 100;
const ROOM_US_LEAST: u32 = 2;
/// How often a non-blocking call on one processor lets the reader run.
const ROOM_YIELDS: u32 = 2;
/// How long a blocking call waits for room in the ring.
const ROOM_MS: i64 = 10;
/// How often a sender whose peer does not read asks if it lives.
const ALIVE_MS: u64 = 1;

enum Step {
    Sent,
    /// Wait for room in the ring.
    Full,
    /// The kernel's socket is full.
    KernelFull,
    /// The kernel's error.
    Failed(isize),
}

/// Sends the buffers; the result is the kernel's.
pub fn send(used: &Use, end: &End, buffers: &mut Buffers, total: usize, flags: u32) -> isize {
    let mut waited = false;
    let mut room = Room::new(used);
    // A call that does not wait is not interrupted.
    let waits = || restart::interrupts() && !is_nonblocking(used.fd, flags);
    let mut signals = if total > PIECE_BYTES && waits() { restart::hold() } else { None };
    loop {
        let held = end.tx.lock();
        let step = step(used, end, buffers, total, flags, waited);
        drop(held);
        if signals.is_none() && buffers.done < total && waits() {
            signals = restart::hold();
        }
        match step {
            Step::Sent if buffers.done == total => return total as isize,
            Step::Sent => waited = false,
            Step::Failed(error) => return finish(buffers, error),
            Step::Full if is_nonblocking(used.fd, flags) => waited = !room.poll(used, end),
            Step::Full => {
                wait_for_room(used, end, 1);
                if signals.as_ref().is_some_and(restart::Held::has_signal) {
                    return finish(buffers, sys::EINTR);
                }
                waited = true;
            }
            Step::KernelFull => {
                let mask = signals.as_ref().map(|signals| &signals.before);
                match wait_for_kernel(used.fd, flags, mask) {
                    Err(error) => return finish(buffers, error),
                    Ok(Wait::Limited) => {}
                    Ok(Wait::Unlimited) => wait_for_drain(used, end, mask),
                }
            }
        }
    }
}

fn finish(buffers: &Buffers, error: isize) -> isize {
    if buffers.done > 0 { buffers.done as isize } else { error }
}

fn step(
    used: &Use,
    end: &End,
    buffers: &mut Buffers,
    total: usize,
    flags: u32,
    waited: bool,
) -> Step {
    let may_join = mailbox::advance(used, end);
    // SAFETY: the lock of this direction is held, here and in the functions below.
    let producer = unsafe { &mut *end.producer.get() };
    let Some(view) = may_join.then(|| used.slot.view(true)).flatten() else {
        return by_kernel(used, end, producer, buffers, total, flags);
    };
    let stays = end.stay.load(Ordering::Acquire) != 0;
    if !enter(used, end, producer, &view, flags) {
        return by_kernel(used, end, producer, buffers, total, flags);
    }
    let by_ring = !stays && put(used, end, producer, &view, buffers, total);
    if by_ring {
        return Step::Sent;
    }
    let full = !stays && producer.room(view.line, view.size) == Ok(0);
    if full && !waited && is_alive(used.fd) {
        return Step::Full;
    }
    rack::count(Count::Overflows, 1);
    producer.enter_kernel(view.line);
    wake_reader(&view);
    by_kernel(used, end, producer, buffers, total, flags)
}

/// True if the next bytes go into the ring, as far as it has room.
pub fn enter(used: &Use, end: &End, producer: &mut Producer, view: &View, flags: u32) -> bool {
    if producer.in_ring() {
        return true;
    }
    let enters = has_joined(used)
        && end.stay.load(Ordering::Acquire) == 0
        && producer.may_enter_ring(view.line)
        && has_room_for_bell(used.fd, flags);
    if enters {
        producer.enter_ring(view.line);
    }
    enters
}

/// True if the other end has the memory, too.
fn has_joined(used: &Use) -> bool {
    used.slot.header().is_some_and(|it| it.joined.load(Ordering::Acquire) == 1)
}

/// Puts bytes into the ring. False if it takes none.
fn put(
    used: &Use,
    end: &End,
    producer: &mut Producer,
    view: &View,
    buffers: &mut Buffers,
    total: usize,
) -> bool {
    let (seen, unread) = (producer.seen, producer.head != producer.seen);
    let Ok(room) = producer.room(view.line, view.size) else {
        end.count_fault();
        end.stay.store(1, Ordering::Release);
        return false;
    };
    // A reserved buffer lies where these bytes would.
    if room == 0 || end.reserved.load(Ordering::Acquire) != 0 {
        return false;
    }
    if unread && producer.seen == seen && !check_alive(used.fd, end) {
        return false;
    }
    let bytes = (total - buffers.done).min(PIECE_BYTES).min(room as usize);
    let before = (buffers.done, producer.head);
    let mut ahead = buffers.fork();
    ahead.copy(view, before.1, bytes, true);
    if !publish(used, end, producer, view, bytes as u64) {
        return false;
    }
    *buffers = ahead;
    true
}

/// Publishes bytes behind the head. False if the ring has been closed.
pub fn publish(used: &Use, end: &End, from: &mut Producer, view: &View, bytes: u64) -> bool {
    let Ok(rings) = from.publish(view.line, bytes) else {
        end.stay.store(1, Ordering::Release);
        return false;
    };
    rack::count(Count::MemoryBytes, bytes);
    if rings {
        ring_bell(used.fd, from, view);
    }
    from.rang(view.line);
    wake_reader(view);
    true
}

fn ring_bell(fd: i32, producer: &mut Producer, view: &View) {
    const PATIENCE: u32 = 100;
    for _ in 0..PATIENCE {
        let sent = sys::send_bytes(fd, &[0], sys::MSG_DONTWAIT | sys::MSG_NOSIGNAL);
        if sent == 1 {
            producer.kernel += 1;
            rack::count(Count::Bells, 1);
            return;
        }
        if sent != sys::EAGAIN && sent != sys::EINTR {
            break;
        }
        let _ = sys::poll_one(fd, sys::POLLOUT, 1);
    }
    producer.unring(view.line);
}

fn wake_reader(view: &View) {
    wake(&view.line.waits.0.data);
}

/// Wakes the thread that sleeps on a word, if there is one.
pub fn wake(word: &core::sync::atomic::AtomicU32) {
    fence(Ordering::SeqCst);
    if word.load(Ordering::Relaxed) != 0 && word.swap(0, Ordering::AcqRel) != 0 {
        sys::futex_wake(word.as_ptr());
    }
}

/// Sends by the kernel's socket, without waiting.
fn by_kernel(
    used: &Use,
    end: &End,
    producer: &mut Producer,
    buffers: &mut Buffers,
    total: usize,
    flags: u32,
) -> Step {
    let error = rx::take_error(end);
    if error != 0 {
        return Step::Failed(error);
    }
    let mut flags = (flags & !sys::MSG_MORE) | sys::MSG_DONTWAIT;
    if buffers.done > 0 {
        // A call that has sent a part returns its bytes, and raises no signal.
        flags |= sys::MSG_NOSIGNAL;
    }
    let sent = buffers.few(total - buffers.done).send(used.fd, flags);
    if sent >= 0 {
        buffers.skip(sent as usize);
        producer.kernel += sent as u64;
        rack::count(Count::KernelBytes, sent as u64);
        return Step::Sent;
    }
    if sent == sys::EAGAIN { Step::KernelFull } else { Step::Failed(sent) }
}

fn is_nonblocking(fd: i32, flags: u32) -> bool {
    flags & sys::MSG_DONTWAIT != 0 || sys::is_nonblocking(fd)
}

/// True if the socket takes a bell behind the bytes that it has, and the other end is there. A
/// third of a writable socket's memory is free. A call that may wait does so until the kernel has
/// few bytes, so that its stream stays in memory.
fn has_room_for_bell(fd: i32, flags: u32) -> bool {
    sys::poll_one(fd, sys::POLLOUT | sys::POLLRDHUP, 0) == Ok(sys::POLLOUT)
        && (sys::ioctl_number(fd, sys::SIOCOUTQ) <= KERNEL_QUEUE_BYTES || is_nonblocking(fd, flags))
}

/// True unless the other end has closed, or will send no more: then the kernel's socket knows what
/// a call must return.
fn is_alive(fd: i32) -> bool {
    !rx::has_ended(fd)
}

fn check_alive(fd: i32, end: &End) -> bool {
    let now_ms = rack::now_ns() / 1_000_000;
    if now_ms < end.checked_ms.load(Ordering::Relaxed) + ALIVE_MS {
        return true;
    }
    end.checked_ms.store(now_ms, Ordering::Relaxed);
    is_alive(fd)
}

/// Waits a while for room for so many bytes.
pub fn wait_for_room(used: &Use, end: &End, bytes: u64) {
    let Some(view) = used.slot.view(true) else { return };
    // SAFETY: only a copy is read; the lock is not needed for a guess.
    let head = unsafe { (*end.producer.get()).head };
    let most = view.size.saturating_sub(bytes);
    let is_full = || head.wrapping_sub(view.line.consumed.0.tail.load(Ordering::Acquire)) > most;
    if rack::spins() {
        let until = rack::now_ns() + u64::from(rack::SPIN_US_MAX) * 1000;
        while is_full() && rack::now_ns() < until {
            for _ in 0..16 {
                spin_loop();
            }
        }
    }
    let word = &view.line.waits.0.room;
    word.store(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    if is_full() {
        sys::futex_wait(word.as_ptr(), 1, ROOM_MS);
    }
    word.store(0, Ordering::Relaxed);
}

/// How long a non-blocking call may still poll for room, over all its bytes. A connection whose
/// reader makes none in time gets less of it.
struct Room {
    budget_ns: u64,
}

impl Room {
    fn new(used: &Use) -> Room {
        Room { budget_ns: u64::from(used.slot.room_us.load(Ordering::Relaxed)) * 1000 }
    }

    /// Polls memory. True if there is room.
    fn poll(&mut self, used: &Use, end: &End) -> bool {
        let Some(view) = used.slot.view(true) else { return false };
        // SAFETY: only a copy is read; the lock is not needed for a guess.
        let head = unsafe { (*end.producer.get()).head };
        let tail = &view.line.consumed.0.tail;
        let is_full = || head.wrapping_sub(tail.load(Ordering::Acquire)) >= view.size;
        // A peer whose own bytes are unread may wait for this thread to read them.
        let may_read = || !used.slot.view(false).is_some_and(|from| from.line.has_bytes());
        if !rack::spins() {
            let yields = if self.budget_ns == 0 { 0 } else { ROOM_YIELDS };
            self.budget_ns = 0;
            for _ in 0..yields {
                // SAFETY: the call has no arguments.
                unsafe { sys::call4(sys::YIELD, 0, 0, 0, 0) };
            }
            return !is_full();
        }
        let start = rack::now_ns();
        let mut took_ns = 0;
        while is_full() && may_read() && took_ns < self.budget_ns {
            for _ in 0..16 {
                spin_loop();
            }
            took_ns = rack::now_ns() - start;
        }
        self.budget_ns = self.budget_ns.saturating_sub(took_ns);
        let room_us = &used.slot.room_us;
        let was = room_us.load(Ordering::Relaxed);
        let is_full = is_full();
        let next = if is_full { (was / 2).max(ROOM_US_LEAST) } else { (was * 2).min(ROOM_US_MAX) };
        room_us.store(next, Ordering::Relaxed);
        !is_full
    }
}

/// The program's limit of how long a call waits.
enum Wait {
    Limited,
    Unlimited,
}

/// Waits until the kernel's socket takes bytes, as a blocking call does.
fn wait_for_kernel(fd: i32, flags: u32, mask: Option<&u64>) -> Result<Wait, isize> {
    if is_nonblocking(fd, flags) {
        return Err(sys::EAGAIN);
    }
    let limit_ms = rx::limit_ms(fd, sys::SO_SNDTIMEO);
    let limited = limit_ms.is_some();
    match sys::poll_masked(fd, sys::POLLOUT, limit_ms.unwrap_or(-1), mask) {
        Ok(0) => Err(sys::EAGAIN),
        Err(sys::EINTR) if limited || restart::interrupts() => Err(sys::EINTR),
        _ => Ok(if limited { Wait::Limited } else { Wait::Unlimited }),
    }
}

/// Waits until the kernel's queue is short enough for the ring. The socket takes bytes again when a
/// third of it is free, so a sender that is faster than its reader would stay with the kernel.
fn wait_for_drain(used: &Use, end: &End, mask: Option<&u64>) {
    if !has_joined(used) || end.stay.load(Ordering::Acquire) != 0 {
        return;
    }
    let queue = || sys::ioctl_number(used.fd, sys::SIOCOUTQ);
    let drain_ms = &used.slot.drain_ms;
    let limit_ms = drain_ms.load(Ordering::Relaxed);
    let (mut before, mut idle_ms) = (queue(), 0);
    while before > KERNEL_QUEUE_BYTES {
        if idle_ms >= limit_ms {
            drain_ms.store((limit_ms / 2).max(DRAIN_MS_LEAST), Ordering::Relaxed);
            return;
        }
        // A signal or the end of the connection ends the wait.
        if sys::poll_masked(used.fd, 0, 1, mask) != Ok(0) {
            return;
        }
        let now = queue();
        idle_ms = if now < before { 0 } else { idle_ms + 1 };
        before = now;
    }
    drain_ms.store(DRAIN_MS_MOST, Ordering::Relaxed);
}
