//! The calls of descriptors of any kind, as the C library declares them.

use core::mem::size_of;

use crate::calls::{receives, result, sends};
use crate::conn;
use crate::sys::{self, Iovec};
use crate::{close, rack, rx};

/// Bytes that `sendfile` copies at once.
const FILE_BYTES: usize = 16 << 10;
/// Most bytes of one `sendfile`, as the kernel's.
const SENDFILE_MAX: usize = 0x7fff_f000;

#[unsafe(no_mangle)]
unsafe extern "C" fn read(fd: i32, to: *mut u8, length: usize) -> isize {
    let iov = Iovec { base: to, len: length };
    // SAFETY: the buffer is the program's.
    unsafe {
        let got = receives(fd, &raw const iov, 1, 0);
        result(got.unwrap_or_else(|| sys::call4(sys::READ, fd as usize, to as usize, length, 0)))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __read_chk(fd: i32, to: *mut u8, length: usize, _: usize) -> isize {
    // SAFETY: passed on.
    unsafe { read(fd, to, length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: i32, from: *const u8, length: usize) -> isize {
    let iov = Iovec { base: from.cast_mut(), len: length };
    // SAFETY: the buffer is the program's.
    unsafe {
        let sent = sends(fd, &raw const iov, 1, 0);
        result(
            sent.unwrap_or_else(|| sys::call4(sys::WRITE, fd as usize, from as usize, length, 0)),
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readv(fd: i32, iov: *const Iovec, count: i32) -> isize {
    // SAFETY: the buffers are the program's.
    unsafe {
        let got = receives(fd, iov, usize::try_from(count).unwrap_or(usize::MAX), 0);
        let raw = || sys::call4(sys::READV, fd as usize, iov as usize, count as usize, 0);
        result(got.unwrap_or_else(raw))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn writev(fd: i32, iov: *const Iovec, count: i32) -> isize {
    // SAFETY: the buffers are the program's.
    unsafe {
        let sent = sends(fd, iov, usize::try_from(count).unwrap_or(usize::MAX), 0);
        let raw = || sys::call4(sys::WRITEV, fd as usize, iov as usize, count as usize, 0);
        result(sent.unwrap_or_else(raw))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendfile(out: i32, input: i32, offset: *mut i64, count: usize) -> isize {
    if conn::connection(out).is_none() {
        let a = [out as usize, input as usize, offset as usize, count];
        // SAFETY: the offset is the program's.
        return result(unsafe { sys::call4(sys::SENDFILE, a[0], a[1], a[2], a[3]) });
    }
    // SAFETY: an offset is the program's, if there is one.
    let start = unsafe {
        if offset.is_null() {
            sys::call4(sys::LSEEK, input as usize, 0, 1, 0)
        } else {
            *offset as isize
        }
    };
    if start < 0 {
        return result(if offset.is_null() { start } else { sys::EINVAL });
    }
    let (mut room, mut done, mut error) = ([0u8; FILE_BYTES], 0usize, 0);
    let count = count.min(SENDFILE_MAX);
    while done < count {
        let some = room.len().min(count - done);
        let (to, at) = (room.as_mut_ptr() as usize, start as usize + done);
        // SAFETY: the kernel stores at most what the array holds.
        let got = unsafe { sys::call4(sys::PREAD, input as usize, to, some, at) };
        if got <= 0 {
            error = got;
            break;
        }
        let iov = Iovec { base: room.as_mut_ptr(), len: got as usize };
        // SAFETY: the buffer is the array.
        let sent = unsafe { sends(out, &raw const iov, 1, 0) }.unwrap_or(sys::EBADF);
        if sent < 0 {
            error = sent;
            break;
        }
        done += sent as usize;
        if sent < got {
            break;
        }
    }
    // SAFETY: the offset is the program's; otherwise the file's own position moves.
    unsafe {
        if offset.is_null() {
            sys::call4(sys::LSEEK, input as usize, start as usize + done, 0, 0);
        } else {
            *offset = (start as usize + done) as i64;
        }
    }
    result(if done > 0 { done as isize } else { error })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendfile64(out: i32, input: i32, offset: *mut i64, count: usize) -> isize {
    // SAFETY: passed on.
    unsafe { sendfile(out, input, offset, count) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn splice(
    from: i32,
    from_at: *mut i64,
    to: i32,
    to_at: *mut i64,
    count: usize,
    flags: u32,
) -> isize {
    // A pipe would take the socket's bells for bytes: programs take this error for "not here".
    if conn::connection(from).is_some() || conn::connection(to).is_some() {
        return result(sys::EINVAL);
    }
    let a = [from as usize, from_at as usize, to as usize, to_at as usize, count, flags as usize];
    // SAFETY: the offsets are the program's.
    result(unsafe { sys::call(sys::SPLICE, a) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close(fd: i32) -> i32 {
    result(close::close(fd)) as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close_range(first: u32, last: u32, flags: i32) -> i32 {
    const CLOEXEC: i32 = 4;
    if rack::is_on() && flags & CLOEXEC == 0 {
        for fd in first..=last.min(u32::from(u16::MAX)) {
            close::replaced(fd as i32);
        }
    }
    let a = [first as usize, last as usize, flags as usize];
    // SAFETY: nothing is passed by address.
    result(unsafe { sys::call4(sys::CLOSE_RANGE, a[0], a[1], a[2], 0) }) as i32
}

/// Notes that `to` is another descriptor of what `from` is.
fn duplicated(from: i32, to: isize) {
    if to >= 0 && rack::is_on() && conn::is_known(from) && !rack::is_borrowed() {
        if let Some(used) = conn::find(from) {
            conn::add(to as i32, &used);
        }
    }
}

/// A program that is executed next will use its standard streams without this library's state.
fn becomes_standard(from: i32, to: i32) {
    const STANDARD_LAST: i32 = 2;
    if to <= STANDARD_LAST {
        if let Some(used) = conn::connection(from) {
            used.end().map(|end| close::leave(&used, end));
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup(fd: i32) -> i32 {
    // SAFETY: nothing is passed by address.
    let copy = unsafe { sys::call4(sys::DUP, fd as usize, 0, 0, 0) };
    duplicated(fd, copy);
    result(copy) as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup3(fd: i32, to: i32, flags: i32) -> i32 {
    if fd != to && sys::fcntl(fd, sys::F_GETFL, 0) >= 0 {
        becomes_standard(fd, to);
        close::replaced(to);
    }
    // SAFETY: nothing is passed by address.
    let copy = unsafe { sys::call4(sys::DUP3, fd as usize, to as usize, flags as usize, 0) };
    duplicated(fd, copy);
    result(copy) as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup2(fd: i32, to: i32) -> i32 {
    if fd != to {
        // SAFETY: passed on.
        return unsafe { dup3(fd, to, 0) };
    }
    let flags = sys::fcntl(fd, sys::F_GETFL, 0);
    if flags < 0 { result(sys::EBADF) as i32 } else { fd }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl(fd: i32, command: i32, argument: usize) -> i32 {
    let answer = sys::fcntl(fd, command as usize, argument);
    if command == sys::F_DUPFD || command == sys::F_DUPFD_CLOEXEC {
        duplicated(fd, answer);
    }
    result(answer) as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl64(fd: i32, command: i32, argument: usize) -> i32 {
    // SAFETY: passed on.
    unsafe { fcntl(fd, command, argument) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(fd: i32, request: u64, argument: *mut i32) -> i32 {
    if request as usize == sys::FIONREAD && !argument.is_null() {
        if let Some(used) = conn::connection(fd) {
            let queued = used.end().map(|end| rx::queued(&used, end)).unwrap_or_default();
            // SAFETY: the program passes room for an int.
            unsafe { argument.write_unaligned(i32::try_from(queued).unwrap_or(i32::MAX)) };
            return 0;
        }
    }
    // SAFETY: the argument is the program's.
    result(unsafe { sys::call4(sys::IOCTL, fd as usize, request as usize, argument as usize, 0) })
        as i32
}

const _: () = assert!(size_of::<Iovec>() == 16);
