//! The calls of sockets, as the C library declares them.

use core::ffi::CStr;
use core::mem::{size_of, transmute_copy};

use crate::buffers::Buffers;
use crate::conn::{self, Use};
use crate::offer::Address;
use crate::sys::{self, InetAddress, Iovec, Message};
use crate::{close, left, mailbox, nics, rack, rx, tx};
use core::sync::atomic::Ordering;

unsafe extern "C" {
    fn __errno_location() -> *mut i32;
    fn dlsym(library: *const u8, name: *const core::ffi::c_char) -> usize;
}

/// The function that the program would call without this library.
///
/// # Safety
/// `F` must be the type of a pointer to that function.
pub unsafe fn next<F: Copy>(name: &CStr) -> Option<F> {
    const NEXT: *const u8 = usize::MAX as *const u8;
    // SAFETY: the name ends with a zero.
    let found = unsafe { dlsym(NEXT, name.as_ptr()) };
    // SAFETY: the caller knows the type.
    (found != 0).then(|| unsafe { transmute_copy(&found) })
}

/// The C library's form of a result: -1, and the error apart.
pub fn result(result: isize) -> isize {
    if result >= 0 {
        return result;
    }
    // SAFETY: the C library gives the place of this thread's error.
    unsafe { *__errno_location() = -result as i32 };
    -1
}

/// Calls that a socket in memory cannot take, and hands to the kernel.
const KERNEL_SENDS: u32 = sys::MSG_OOB | sys::MSG_ZEROCOPY | 0x2000_0000;
const KERNEL_RECEIVES: u32 = sys::MSG_OOB | sys::MSG_ERRQUEUE;

/// Sends buffers on a connection; `None` if the kernel has to.
///
/// # Safety
/// `iov` must point to `count` buffers.
pub unsafe fn sends(fd: i32, iov: *const Iovec, count: usize, flags: u32) -> Option<isize> {
    let used = conn::connection(fd)?;
    let end = used.end()?;
    if flags & KERNEL_SENDS != 0 {
        close::leave(&used, end);
        return None;
    }
    // SAFETY: passed on.
    let (mut buffers, total) = unsafe { Buffers::new(iov, count) }?;
    if total == 0 {
        return None;
    }
    Some(tx::send(&used, end, &mut buffers, total, flags))
}

/// Receives into buffers on a connection; `None` if the kernel has to.
///
/// # Safety
/// `iov` must point to `count` buffers.
pub unsafe fn receives(fd: i32, iov: *const Iovec, count: usize, flags: u32) -> Option<isize> {
    let used = conn::connection(fd)?;
    let end = used.end()?;
    if flags & KERNEL_RECEIVES != 0 {
        return None;
    }
    // SAFETY: passed on.
    let (mut buffers, total) = unsafe { Buffers::new(iov, count) }?;
    if total == 0 {
        return Some(0);
    }
    Some(rx::receive(&used, end, &mut buffers, total, flags))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn listen(fd: i32, backlog: i32) -> i32 {
    // SAFETY: nothing is passed by address.
    let listens = unsafe { sys::call4(sys::LISTEN, fd as usize, backlog as usize, 0, 0) };
    if listens == 0 && rack::is_on() {
        mailbox::open(fd);
    }
    result(listens) as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn connect(fd: i32, address: *const InetAddress, bytes: u32) -> i32 {
    // SAFETY: the address is the program's.
    if let Some(done) = unsafe { by_nics(fd, address, bytes) } {
        return result(done) as i32;
    }
    // SAFETY: the address is the program's.
    let done =
        unsafe { sys::call4(sys::CONNECT, fd as usize, address as usize, bytes as usize, 0) };
    let begun = done == 0 || done == sys::EINPROGRESS;
    let is_long = bytes as usize >= size_of::<InetAddress>();
    // SAFETY: the kernel has read an address of this length.
    if begun && rack::is_on() && is_long && unsafe { (*address).family } == sys::AF_INET {
        // SAFETY: as above.
        if rack::has(u32::from_be(unsafe { (*address).ip })) {
            mailbox::connected(fd, done == 0);
        }
    }
    result(done) as i32
}

/// Connects to another rack over all NICs; `None` if the kernel has to connect.
unsafe fn by_nics(fd: i32, address: *const InetAddress, bytes: u32) -> Option<isize> {
    if !rack::is_on() || address.is_null() || (bytes as usize) < size_of::<InetAddress>() {
        return None;
    }
    // SAFETY: the program passes an address of this length.
    let name = unsafe { address.read_unaligned() };
    let server = Address { ip: u32::from_be(name.ip), port: u32::from(u16::from_be(name.port)) };
    let is_there = name.family == sys::AF_INET && server.port != 0 && rack::is_other(server.ip);
    if is_there && !rack::is_borrowed() { nics::connect(fd, server) } else { None }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getpeername(fd: i32, address: *mut u8, bytes: *mut u32) -> i32 {
    // SAFETY: the program passes a length, or null.
    let room = if bytes.is_null() { 0 } else { unsafe { bytes.read_unaligned() } };
    let (to, length) = (address as usize, bytes as usize);
    // SAFETY: the addresses are the program's.
    unsafe {
        let done = sys::call4(sys::GETPEERNAME, fd as usize, to, length, 0);
        if done == 0 {
            nics::tell(fd, address, room);
        }
        result(done) as i32
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn accept4(fd: i32, address: *mut u8, bytes: *mut u32, flags: i32) -> i32 {
    // SAFETY: the program passes a length, or null.
    let room = if bytes.is_null() { 0 } else { unsafe { bytes.read_unaligned() } };
    let (to, length) = (address as usize, bytes as usize);
    // SAFETY: the addresses are the program's.
    let accepted = unsafe { sys::call4(sys::ACCEPT4, fd as usize, to, length, flags as usize) };
    if accepted >= 0 && rack::is_on() {
        if let Some(used) = conn::find(fd) {
            if used.slot.mailbox.load(Ordering::Acquire) >= 0 {
                mailbox::accepted(accepted as i32, used.slot);
            }
        }
        nics::accepted(accepted as i32);
        // SAFETY: the program's address has so much room.
        unsafe { nics::tell(accepted as i32, address, room) };
    }
    result(accepted) as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn accept(fd: i32, address: *mut u8, bytes: *mut u32) -> i32 {
    // SAFETY: passed on.
    unsafe { accept4(fd, address, bytes, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendto(
    fd: i32,
    from: *const u8,
    length: usize,
    flags: i32,
    address: *const u8,
    bytes: u32,
) -> isize {
    let iov = Iovec { base: from.cast_mut(), len: length };
    let a = [fd as usize, from as usize, length, flags as usize, address as usize, bytes as usize];
    // SAFETY: the buffer and the address are the program's.
    unsafe {
        let sent = sends(fd, &raw const iov, 1, flags as u32);
        result(sent.unwrap_or_else(|| sys::call(sys::SENDTO, a)))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn send(fd: i32, from: *const u8, length: usize, flags: i32) -> isize {
    // SAFETY: passed on.
    unsafe { sendto(fd, from, length, flags, core::ptr::null(), 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvfrom(
    fd: i32,
    to: *mut u8,
    length: usize,
    flags: i32,
    address: *mut u8,
    bytes: *mut u32,
) -> isize {
    let iov = Iovec { base: to, len: length };
    let a = [fd as usize, to as usize, length, flags as usize, address as usize, bytes as usize];
    // SAFETY: the buffer and the address are the program's. A stream's call stores no address.
    unsafe {
        let Some(got) = receives(fd, &raw const iov, 1, flags as u32) else {
            return result(sys::call(sys::RECVFROM, a));
        };
        if got >= 0 && !address.is_null() && !bytes.is_null() {
            *bytes = 0;
        }
        result(got)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recv(fd: i32, to: *mut u8, length: usize, flags: i32) -> isize {
    // SAFETY: passed on.
    unsafe { recvfrom(fd, to, length, flags, core::ptr::null_mut(), core::ptr::null_mut()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __recv_chk(fd: i32, to: *mut u8, n: usize, _: usize, flags: i32) -> isize {
    // SAFETY: passed on.
    unsafe { recv(fd, to, n, flags) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __recvfrom_chk(
    fd: i32,
    to: *mut u8,
    n: usize,
    _: usize,
    flags: i32,
    address: *mut u8,
    bytes: *mut u32,
) -> isize {
    // SAFETY: passed on.
    unsafe { recvfrom(fd, to, n, flags, address, bytes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendmsg(fd: i32, message: *const Message, flags: i32) -> isize {
    if rack::is_on() && !message.is_null() {
        // SAFETY: the message is the program's.
        let message = unsafe { &*message };
        if message.control_len == 0 || message.control.is_null() {
            // SAFETY: the buffers are the program's.
            let sent = unsafe { sends(fd, message.iov, message.iov_len, flags as u32) };
            if let Some(sent) = sent {
                return result(sent);
            }
        } else {
            // SAFETY: the control messages are the program's.
            unsafe { with_control(fd, message) };
        }
    }
    // SAFETY: the message is the program's.
    result(unsafe { sys::call4(sys::SENDMSG, fd as usize, message as usize, flags as usize, 0) })
}

/// Returns what the kernel must have: descriptors that are passed on, and a connection whose
/// message has control messages.
unsafe fn with_control(fd: i32, message: &Message) {
    if let Some(used) = conn::connection(fd) {
        used.end().map(|end| close::leave(&used, end));
    }
    // SAFETY: passed on.
    unsafe {
        each_descriptor(message, |passed| {
            let used: Option<Use> = conn::connection(passed);
            used.and_then(|used| used.end().map(|end| close::leave(&used, end)));
        });
    }
}

/// Calls `use_` with each descriptor that a message passes.
///
/// # Safety
/// The control messages must be as long as the message says.
unsafe fn each_descriptor(message: &Message, use_: impl Fn(i32)) {
    const HEADER: usize = size_of::<sys::Control>();
    let mut at = 0;
    while !message.control.is_null() && at + HEADER <= message.control_len {
        // SAFETY: the header is within the control messages.
        let control = unsafe { message.control.add(at).cast::<sys::Control>().read_unaligned() };
        if control.len < HEADER || control.len > message.control_len - at {
            return;
        }
        if control.level == sys::SOL_SOCKET as i32 && control.kind == sys::SCM_RIGHTS {
            for index in 0..(control.len - HEADER) / size_of::<i32>() {
                // SAFETY: the index is within this control message.
                use_(unsafe {
                    message.control.add(at + HEADER).cast::<i32>().add(index).read_unaligned()
                });
            }
        }
        at += control.len.next_multiple_of(size_of::<usize>());
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvmsg(fd: i32, message: *mut Message, flags: i32) -> isize {
    // SAFETY: the message is the program's. A stream's call stores no address.
    unsafe {
        if rack::is_on() && !message.is_null() {
            let got = receives(fd, (*message).iov, (*message).iov_len, flags as u32);
            if let Some(got) = got {
                if got >= 0 {
                    (*message).name_len = 0;
                    (*message).control_len = 0;
                    (*message).flags = 0;
                }
                return result(got);
            }
        }
        let got = sys::call4(sys::RECVMSG, fd as usize, message as usize, flags as usize, 0);
        if got >= 0 && rack::is_on() {
            each_descriptor(&*message, left::adopt);
        }
        result(got)
    }
}

/// A message of `sendmmsg` and `recvmmsg`.
#[repr(C)]
struct Counted {
    message: Message,
    bytes: u32,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendmmsg(fd: i32, messages: *mut Counted, count: u32, flags: i32) -> i32 {
    let a = [fd as usize, messages as usize, count as usize, flags as usize];
    if conn::connection(fd).is_none() {
        // SAFETY: the messages are the program's.
        return result(unsafe { sys::call4(sys::SENDMMSG, a[0], a[1], a[2], a[3]) }) as i32;
    }
    for index in 0..count {
        // SAFETY: the index is below the count.
        let one = unsafe { &mut *messages.add(index as usize) };
        // SAFETY: passed on.
        let sent = unsafe { sendmsg(fd, &raw const one.message, flags) };
        if sent < 0 {
            return if index > 0 { index as i32 } else { -1 };
        }
        one.bytes = sent as u32;
    }
    count as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvmmsg(
    fd: i32,
    messages: *mut Counted,
    count: u32,
    flags: i32,
    time: *mut sys::Time,
) -> i32 {
    let a = [fd as usize, messages as usize, count as usize, flags as usize, time as usize, 0];
    if conn::connection(fd).is_none() || count == 0 {
        // SAFETY: the messages are the program's.
        return result(unsafe { sys::call(sys::RECVMMSG, a) }) as i32;
    }
    // One message is a result that the kernel may give, too.
    // SAFETY: there is one.
    unsafe {
        let got = recvmsg(fd, &raw mut (*messages).message, flags & !0x10000);
        if got < 0 {
            return -1;
        }
        (*messages).bytes = got as u32;
    }
    1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn shutdown(fd: i32, how: i32) -> i32 {
    result(close::shutdown(fd, how)) as i32
}

/// The library's own value of an option that the bells need.
fn kept(used: &Use, level: i32, name: i32) -> Option<&'static core::sync::atomic::AtomicU32> {
    let end = used.end().filter(|end| !end.is_kernel())?;
    used.slot.header()?;
    match (level as usize, name as usize) {
        (sys::SOL_TCP, sys::TCP_NODELAY) => Some(&end.nodelay),
        (sys::SOL_TCP, sys::TCP_CORK) => Some(&end.cork),
        _ => None,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn setsockopt(
    fd: i32,
    level: i32,
    name: i32,
    value: *const i32,
    bytes: u32,
) -> i32 {
    const INT: u32 = size_of::<i32>() as u32;
    if let Some(used) = conn::connection(fd).filter(|_| !value.is_null() && bytes >= INT) {
        // SAFETY: the value has at least an int.
        let number = unsafe { value.read_unaligned() };
        if let Some(kept) = kept(&used, level, name) {
            kept.store(u32::from(number != 0), Ordering::Relaxed);
            return 0;
        }
        let is_socket = level as usize == sys::SOL_SOCKET;
        let leaves = (name as usize == sys::SO_RCVLOWAT && number > 1)
            || (name as usize == sys::SO_ZEROCOPY && number != 0);
        if is_socket && leaves {
            used.end().map(|end| close::leave(&used, end));
        }
    }
    let a = [fd as usize, level as usize, name as usize, value as usize, bytes as usize, 0];
    // SAFETY: the value is the program's.
    result(unsafe { sys::call(sys::SETSOCKOPT, a) }) as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockopt(
    fd: i32,
    level: i32,
    name: i32,
    value: *mut i32,
    bytes: *mut u32,
) -> i32 {
    let a = [fd as usize, level as usize, name as usize, value as usize, bytes as usize, 0];
    // SAFETY: the value is the program's.
    let got = unsafe { sys::call(sys::GETSOCKOPT, a) };
    if got == 0 && level as usize == sys::SOL_TCP {
        if let Some(kept) = conn::connection(fd).and_then(|used| kept(&used, level, name)) {
            // SAFETY: the kernel has stored an int there.
            unsafe { value.write_unaligned(kept.load(Ordering::Relaxed) as i32) };
        }
    }
    // SAFETY: as above.
    let is_zero = || unsafe { value.read_unaligned() == 0 };
    let is_error = level as usize == sys::SOL_SOCKET && name as usize == sys::SO_ERROR;
    if got == 0 && is_error && is_zero() {
        if let Some(end) = conn::connection(fd).and_then(|used| used.end()) {
            // SAFETY: as above.
            unsafe { value.write_unaligned(-rx::take_error(end) as i32) };
        }
    }
    result(got) as i32
}
