//! System calls, their constants and structures on x86-64.

use core::arch::asm;

pub const READ: usize = 0;
pub const WRITE: usize = 1;
pub const CLOSE: usize = 3;
pub const LSEEK: usize = 8;
pub const MMAP: usize = 9;
pub const MUNMAP: usize = 11;
pub const SIGPROCMASK: usize = 14;
pub const IOCTL: usize = 16;
pub const YIELD: usize = 24;
pub const MREMAP: usize = 25;
pub const PREAD: usize = 17;
pub const PWRITE: usize = 18;
pub const READV: usize = 19;
pub const WRITEV: usize = 20;
pub const DUP: usize = 32;
pub const GETPID: usize = 39;
pub const SENDFILE: usize = 40;
pub const SOCKET: usize = 41;
pub const CONNECT: usize = 42;
pub const SENDTO: usize = 44;
pub const RECVFROM: usize = 45;
pub const SENDMSG: usize = 46;
pub const RECVMSG: usize = 47;
pub const SHUTDOWN: usize = 48;
pub const BIND: usize = 49;
pub const LISTEN: usize = 50;
pub const GETSOCKNAME: usize = 51;
pub const GETPEERNAME: usize = 52;
pub const SETSOCKOPT: usize = 54;
pub const GETSOCKOPT: usize = 55;
pub const KILL: usize = 62;
pub const FCNTL: usize = 72;
pub const FTRUNCATE: usize = 77;
pub const UNLINK: usize = 87;
pub const GETUID: usize = 107;
pub const SIGPENDING: usize = 127;
pub const SPLICE: usize = 275;
pub const FUTEX: usize = 202;
pub const GETAFFINITY: usize = 204;
pub const EPOLL_CTL: usize = 233;
pub const OPENAT: usize = 257;
pub const PSELECT: usize = 270;
pub const PPOLL: usize = 271;
pub const EPOLL_PWAIT: usize = 281;
pub const ACCEPT4: usize = 288;
pub const DUP3: usize = 292;
pub const RECVMMSG: usize = 299;
pub const SENDMMSG: usize = 307;
pub const MEMFD_CREATE: usize = 319;
pub const PIDFD_OPEN: usize = 434;
pub const CLOSE_RANGE: usize = 436;
pub const EPOLL_PWAIT2: usize = 441;

pub const EINTR: isize = -4;
pub const EBADF: isize = -9;
pub const EAGAIN: isize = -11;
pub const ENOMEM: isize = -12;
pub const EBUSY: isize = -16;
pub const EINVAL: isize = -22;
pub const EMSGSIZE: isize = -90;
pub const ENOBUFS: isize = -105;
pub const ECONNRESET: isize = -104;
pub const EINPROGRESS: isize = -115;

pub const AF_UNIX: u16 = 1;
pub const AF_INET: u16 = 2;
pub const STREAM: usize = 1;
pub const SEQPACKET: usize = 5;
pub const SOCK_NONBLOCK: usize = 0o4000;
pub const SOCK_CLOEXEC: usize = 0o2_000_000;
pub const O_NONBLOCK: usize = 0o4000;
pub const O_RDWR_CLOEXEC: usize = 0o2_000_002;
pub const O_CREATE_NEW: usize = 0o300;
pub const O_NOFOLLOW: usize = 0o400_000;
pub const SOL_SOCKET: usize = 1;
pub const SO_TYPE: usize = 3;
pub const SO_LINGER: usize = 13;
pub const SO_PEERCRED: usize = 17;
pub const SO_RCVLOWAT: usize = 18;
pub const SO_RCVTIMEO: usize = 20;
pub const SO_SNDTIMEO: usize = 21;
pub const SO_DOMAIN: usize = 39;
pub const SO_ERROR: usize = 4;
pub const SO_COOKIE: usize = 57;
pub const SO_ZEROCOPY: usize = 60;
pub const SOL_TCP: usize = 6;
pub const TCP_NODELAY: usize = 1;
pub const TCP_CORK: usize = 3;
pub const SCM_RIGHTS: i32 = 1;

pub const MSG_OOB: u32 = 1;
pub const MSG_PEEK: u32 = 2;
pub const MSG_TRUNC: u32 = 0x20;
pub const MSG_DONTWAIT: u32 = 0x40;
pub const MSG_WAITALL: u32 = 0x100;
pub const MSG_ERRQUEUE: u32 = 0x2000;
pub const MSG_NOSIGNAL: u32 = 0x4000;
pub const MSG_MORE: u32 = 0x8000;
pub const MSG_ZEROCOPY: u32 = 0x400_0000;
pub const MSG_CMSG_CLOEXEC: u32 = 0x4000_0000;

pub const F_DUPFD: i32 = 0;
pub const F_GETFL: usize = 3;
pub const F_ADD_SEALS: usize = 1033;
pub const F_GET_SEALS: usize = 1034;
pub const F_DUPFD_CLOEXEC: i32 = 1030;
pub const SEALS: isize = 1 | 2 | 4;
pub const FIONREAD: usize = 0x541b;
pub const SIOCOUTQ: usize = 0x5411;
pub const MFD_CLOEXEC_SEALING: usize = 3;

pub const POLLIN: i16 = 1;
pub const POLLOUT: i16 = 4;
pub const POLLERR: i16 = 8;
pub const POLLHUP: i16 = 0x10;
pub const POLLNVAL: i16 = 0x20;
pub const POLLPRI: i16 = 2;
pub const POLLRDNORM: i16 = 0x40;
pub const POLLRDHUP: i16 = 0x2000;
pub const EPOLLIN: u32 = 1;
pub const EPOLLOUT: u32 = 4;
pub const EPOLLRDNORM: u32 = 0x40;
pub const EPOLLET: u32 = 1 << 31;
pub const EPOLLONESHOT: u32 = 1 << 30;
pub const EPOLL_DEL: i32 = 2;
pub const EPOLL_MOD: usize = 3;

pub const SHUT_RD: i32 = 0;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Iovec {
    pub base: *mut u8,
    pub len: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Message {
    pub name: *mut u8,
    pub name_len: u32,
    pub iov: *mut Iovec,
    pub iov_len: usize,
    pub control: *mut u8,
    pub control_len: usize,
    pub flags: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Control {
    pub len: usize,
    pub level: i32,
    pub kind: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct InetAddress {
    pub family: u16,
    pub port: u16,
    pub ip: u32,
    pub zero: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PollFd {
    pub fd: i32,
    pub events: i16,
    pub revents: i16,
}

#[repr(C, packed)]
#[derive(Clone, Copy)]
pub struct EpollEvent {
    pub events: u32,
    pub data: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Time {
    pub seconds: i64,
    pub rest: i64,
}

/// A system call; the result is -errno on failure.
///
/// # Safety
/// The arguments must be valid for the call.
pub unsafe fn call(number: usize, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the caller passes the arguments that the system call requires.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result,
             in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4],
             in("r9") a[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// A system call of at most four arguments.
///
/// # Safety
/// As [`call`].
pub unsafe fn call4(number: usize, a: usize, b: usize, c: usize, d: usize) -> isize {
    // SAFETY: passed on.
    unsafe { call(number, [a, b, c, d, 0, 0]) }
}

pub fn close(fd: i32) -> isize {
    // SAFETY: nothing is passed by address.
    unsafe { call4(CLOSE, fd as usize, 0, 0, 0) }
}

/// `fcntl(fd, command, argument)`.
pub fn fcntl(fd: i32, command: usize, argument: usize) -> isize {
    // SAFETY: the commands of this library take numbers.
    unsafe { call4(FCNTL, fd as usize, command, argument, 0) }
}

pub fn is_nonblocking(fd: i32) -> bool {
    let flags = fcntl(fd, F_GETFL, 0);
    flags >= 0 && flags as usize & O_NONBLOCK != 0
}

/// A number that an `ioctl` stores; 0 if it fails.
pub fn ioctl_number(fd: i32, request: usize) -> usize {
    let mut number = 0i32;
    // SAFETY: both requests of this library store an int.
    let result = unsafe { call4(IOCTL, fd as usize, request, &raw mut number as usize, 0) };
    if result < 0 { 0 } else { number.max(0) as usize }
}

/// Reads a socket's option into `value`; false if it has none.
pub fn option<T: Copy>(fd: i32, level: usize, name: usize, value: &mut T) -> bool {
    let mut bytes = size_of::<T>() as u32;
    let a = [fd as usize, level, name, &raw mut *value as usize, &raw mut bytes as usize, 0];
    // SAFETY: the kernel stores at most `bytes` into the value, and any bytes are a valid one.
    unsafe { call(GETSOCKOPT, a) == 0 }
}

pub fn set_option<T: Copy>(fd: i32, level: usize, name: usize, value: &T) -> isize {
    let a = [fd as usize, level, name, &raw const *value as usize, size_of::<T>(), 0];
    // SAFETY: the kernel reads the value.
    unsafe { call(SETSOCKOPT, a) }
}

/// Polls one descriptor; negative timeouts wait for ever.
pub fn poll_one(fd: i32, events: i16, timeout_ms: i64) -> Result<i16, isize> {
    poll_masked(fd, events, timeout_ms, None)
}

/// As [`poll_one`], with another mask of signals meanwhile.
pub fn poll_masked(
    fd: i32,
    events: i16,
    timeout_ms: i64,
    mask: Option<&u64>,
) -> Result<i16, isize> {
    let mut poll = PollFd { fd, events, revents: 0 };
    let time = Time { seconds: timeout_ms / 1000, rest: timeout_ms % 1000 * 1_000_000 };
    let time = if timeout_ms < 0 { 0 } else { &raw const time as usize };
    let mask = mask.map_or(0, |mask| core::ptr::from_ref(mask) as usize);
    // SAFETY: one entry, a time and a mask are passed.
    let found = unsafe { call(PPOLL, [&raw mut poll as usize, 1, time, mask, 8, 0]) };
    if found < 0 { Err(found) } else { Ok(poll.revents) }
}

/// Looks at the next byte of a socket without waiting: as `recv`, 1, 0 at the end, or -errno.
pub fn peek(fd: i32) -> isize {
    recv_bytes(fd, &mut [0], MSG_PEEK | MSG_DONTWAIT)
}

pub fn recv_bytes(fd: i32, to: &mut [u8], flags: u32) -> isize {
    let a = [fd as usize, to.as_mut_ptr() as usize, to.len(), flags as usize, 0, 0];
    // SAFETY: the kernel stores at most the slice's length.
    unsafe { call(RECVFROM, a) }
}

pub fn send_bytes(fd: i32, from: &[u8], flags: u32) -> isize {
    let a = [fd as usize, from.as_ptr() as usize, from.len(), flags as usize, 0, 0];
    // SAFETY: the kernel reads the slice.
    unsafe { call(SENDTO, a) }
}

/// Sleeps while `word` has `value`, for at most so many milliseconds.
pub fn futex_wait(word: *const u32, value: u32, timeout_ms: i64) -> isize {
    let time = Time { seconds: 0, rest: timeout_ms * 1_000_000 };
    let a = [word as usize, 0, value as usize, &raw const time as usize, 0, 0];
    // SAFETY: the word is mapped while the caller uses the connection.
    unsafe { call(FUTEX, a) }
}

pub fn futex_wake(word: *const u32) {
    // SAFETY: as above.
    unsafe { call(FUTEX, [word as usize, 1, i32::MAX as usize, 0, 0, 0]) };
}
