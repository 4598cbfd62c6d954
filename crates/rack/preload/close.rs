//! The end of connections: descriptors that close, streams that end, and the return to the kernel.

use core::sync::atomic::Ordering;

use crate::conn::{self, End, Use, View, stage};
use crate::ledger::Count;
use crate::left::{self, Keeper};
use crate::line::{Consumer, Next};
use crate::{rack, rx, sys, tx};

/// Longest time for which a return to the kernel waits for a peer that is about to ring.
const DRAIN_NS: u64 = 1_000_000_000;

/// `close`.
pub fn close(fd: i32) -> isize {
    if !forget(fd) {
        return sys::close(fd);
    }
    let Some(used) = conn::find(fd) else { return sys::close(fd) };
    before(&used);
    conn::remove(&used);
    let closed = sys::close(fd);
    wake_all(&used);
    closed
}

/// False if this process may not change what it knows about `fd`, or knows nothing.
fn forget(fd: i32) -> bool {
    if rack::process() == 0 || !conn::is_known(fd) || rack::is_borrowed() {
        return false;
    }
    conn::forget_mailbox(fd);
    true
}

/// Before another descriptor takes the place of `fd`.
pub fn replaced(fd: i32) {
    if !forget(fd) {
        return;
    }
    if let Some(used) = conn::find(fd) {
        before(&used);
        conn::remove(&used);
    }
}

/// The last descriptor of an end settles it, as the kernel will close its socket.
fn before(used: &Use) {
    let Some(end) = used.end() else {
        let mailbox = used.slot.mailbox.load(Ordering::Acquire);
        if mailbox >= 0 && used.slot.fds.load(Ordering::Acquire) == 1 {
            conn::forget_mailbox(mailbox);
            sys::close(mailbox);
        }
        return;
    };
    // Two processes may close at once: one of them is the last.
    if end.refs.fetch_sub(1, Ordering::AcqRel) != 1 {
        return;
    }
    settle(used, end);
}

/// Before the kernel closes the socket of an end.
fn settle(used: &Use, end: &End) {
    let Some(view) = used.slot.view(false) else { return left::close(used, end) };
    {
        let _held = end.tx.lock();
        end.stay.store(1, Ordering::Release);
    }
    let _held = end.rx.lock();
    Consumer::close(view.line);
    // SAFETY: the lock of this direction is held.
    let consumer = unsafe { &mut *end.consumer.get() };
    let mut next = consumer.next(view.line, view.size);
    if let Next::Bells(count) = next {
        rx::take_bells(used.fd, consumer, count);
        next = consumer.next(view.line, view.size);
    }
    match next {
        // A bell that nothing has read would make the kernel reset the connection.
        Next::Ring(0) => rx::take_stale_bells(used.fd, consumer, &view),
        // The kernel resets a connection that closes with bytes unread.
        Next::Ring(_) => {
            sys::set_option(used.fd, sys::SOL_SOCKET, sys::SO_LINGER, &[1i32, 0]);
        }
        _ => {}
    }
}

/// Wakes whatever sleeps on the connection's memory, so that it looks at the socket.
fn wake_all(used: &Use) {
    for view in [used.slot.view(false), used.slot.view(true)].into_iter().flatten() {
        tx::wake(&view.line.waits.0.data);
        tx::wake(&view.line.waits.0.room);
    }
}

/// `shutdown`.
pub fn shutdown(fd: i32, how: i32) -> isize {
    // SAFETY: nothing is passed by address.
    let raw = || unsafe { sys::call4(sys::SHUTDOWN, fd as usize, how as usize, 0, 0) };
    let Some(used) = conn::connection(fd) else { return raw() };
    let Some(end) = used.end() else { return raw() };
    let result = {
        let _held = end.tx.lock();
        if how != sys::SHUT_RD {
            end.stay.store(1, Ordering::Release);
        }
        raw()
    };
    wake_all(&used);
    result
}

/// Returns a connection to the kernel: no byte is put into a ring any more. What the rings have for
/// this end is put aside for whoever reads the socket next, as it comes before the kernel's bytes.
pub fn leave(used: &Use, end: &End) {
    end.stay.store(1, Ordering::Release);
    let _sends = end.tx.lock();
    let _receives = end.rx.lock();
    // `None` also where it has returned before.
    let views = used.slot.view(true).zip(used.slot.view(false));
    if let Some((to, from)) = views {
        rack::count(Count::Returned, 1);
        // SAFETY: the locks of both directions are held.
        let (producer, consumer) = unsafe { (&mut *end.producer.get(), &mut *end.consumer.get()) };
        if producer.in_ring() {
            producer.enter_kernel(to.line);
        }
        Consumer::close(from.line);
        let mut keeper = Keeper::new(used.fd);
        let is_whole = drain(used.fd, end, consumer, &from, &mut keeper);
        let bytes = keeper.bytes;
        if !is_whole {
            keeper.discard();
        }
        if !is_whole || !keeper.finish(end) {
            // Without these bytes, no reader may go on: all get an error instead of a gap.
            rack::count(Count::Carried, bytes.max(1));
            reset(used.fd);
        }
        for (option, kept) in [(sys::TCP_NODELAY, &end.nodelay), (sys::TCP_CORK, &end.cork)] {
            let own = kept.load(Ordering::Relaxed) as i32;
            sys::set_option(used.fd, sys::SOL_TCP, option, &own);
        }
        wake_all(used);
    }
    end.stage.store(stage::KERNEL, Ordering::Release);
}

/// Puts aside all bytes of a closed ring, and of the socket's turn before it, and takes the bells.
/// False if the other end's words cannot be, or the bytes find no room.
fn drain(fd: i32, end: &End, consumer: &mut Consumer, view: &View, keeper: &mut Keeper) -> bool {
    let until = rack::now_ns() + DRAIN_NS;
    let mut room = [0u8; 4096];
    while rack::now_ns() < until {
        let (from, length) = match consumer.next(view.line, view.size) {
            Next::Kernel(None) => return true,
            Next::Fault => break,
            Next::Bells(count) if !rx::take_bells(fd, consumer, count) => return rx::has_ended(fd),
            Next::Bells(_) => continue,
            Next::Ring(0) => {
                if !consumer.is_rung(view.line) && !rx::has_ended(fd) {
                    core::hint::spin_loop();
                    continue;
                }
                rx::take_stale_bells(fd, consumer, view);
                if consumer.bells(view.line) == 0 || rx::has_ended(fd) {
                    return true;
                }
                continue;
            }
            Next::Ring(bytes) => {
                let at = consumer.tail & (view.size - 1);
                let length = bytes.min(view.size - at);
                // SAFETY: the position is within the ring.
                (unsafe { view.ring.add(at as usize).cast_const() }, length)
            }
            Next::Kernel(Some(bytes)) => {
                let most = bytes.min(room.len() as u64) as usize;
                let got = sys::recv_bytes(fd, &mut room[..most], sys::MSG_DONTWAIT);
                if got == sys::EAGAIN {
                    let _ = sys::poll_one(fd, sys::POLLIN, 1);
                    continue;
                }
                if got <= 0 {
                    return true;
                }
                consumer.kernel += got as u64;
                (room.as_ptr(), got as u64)
            }
        };
        // SAFETY: so many bytes are in the ring, or in the array.
        if !unsafe { keeper.put(from, length as usize) } {
            return false;
        }
        if from != room.as_ptr() {
            consumer.advance(view.line, length);
        }
    }
    end.count_fault();
    false
}

/// Resets a connection that stays open as a descriptor: both ends get an error.
pub fn reset(fd: i32) {
    let name = sys::InetAddress { family: 0, port: 0, ip: 0, zero: 0 };
    let (at, bytes) = (&raw const name as usize, size_of::<sys::InetAddress>());
    // SAFETY: the address has the length.
    unsafe { sys::call4(sys::CONNECT, fd as usize, at, bytes, 0) };
}

/// Before a program is executed: the kernel closes this descriptor.
pub fn drop_at_exec(used: &Use, end: &End) {
    if end.refs.fetch_sub(1, Ordering::AcqRel) == 1 {
        settle(used, end);
    }
}

/// The program was not executed after all.
pub fn keep_after_exec(end: &End) {
    end.refs.fetch_add(1, Ordering::AcqRel);
}

/// True if this is the only descriptor of an end.
pub fn is_sole(end: &End) -> bool {
    end.refs.load(Ordering::Acquire) == 1
}

/// Resets a connection with bytes that the next program cannot find, because it will not have this
/// library.
pub fn strand(fd: i32) {
    if left::has(fd) {
        reset(fd);
    }
}
