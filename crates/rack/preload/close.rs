//! The end of connections: descriptors that close, streams that end, and the return to the kernel.

use core::sync::atomic::Ordering;

use crate::conn::{self, End, Use, stage};
use crate::ledger::Count;
use crate::line::{Consumer, Next};
use crate::{rack, rx, sys, tx};

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
    if end.refs.load(Ordering::Acquire) != 1 {
        return;
    }
    let Some(view) = used.slot.view(false) else { return };
    {
        let _held = end.tx.lock();
        end.stay.store(1, Ordering::Release);
    }
    let _held = end.rx.lock();
    Consumer::close(view.line);
    // SAFETY: the lock of this direction is held.
    let consumer = unsafe { &mut *end.consumer.get() };
    match consumer.next(view.line, view.size) {
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

/// Returns a connection to the kernel: no byte is put into a ring any more. What the ring has for
/// this end, this process can still receive. Returns the number of those bytes.
pub fn leave(used: &Use, end: &End) -> u64 {
    end.stay.store(1, Ordering::Release);
    let Some((to, from)) = used.slot.view(true).zip(used.slot.view(false)) else {
        end.stage.store(stage::KERNEL, Ordering::Release);
        return 0;
    };
    {
        let _held = end.tx.lock();
        rack::count(Count::Returned, 1);
        // SAFETY: the lock of this direction is held.
        let producer = unsafe { &mut *end.producer.get() };
        if producer.in_ring() {
            producer.enter_kernel(to.line);
            tx::wake(&to.line.waits.0.data);
        }
    }
    Consumer::close(from.line);
    rx::available(used, end)
}
