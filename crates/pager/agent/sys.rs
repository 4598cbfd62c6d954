//! Numbers of system calls and their constants on x86-64.

pub const READ: usize = 0;
pub const WRITE: usize = 1;
pub const CLOSE: usize = 3;
pub const MMAP: usize = 9;
pub const MPROTECT: usize = 10;
pub const BRK: usize = 12;
pub const PREAD: usize = 17;
pub const MUNMAP: usize = 11;
pub const SIGPROCMASK: usize = 14;
pub const IOCTL: usize = 16;
pub const MADVISE: usize = 28;
pub const GETPID: usize = 39;
pub const SOCKET: usize = 41;
pub const CONNECT: usize = 42;
pub const SENDTO: usize = 44;
pub const SENDMSG: usize = 46;
pub const RECVMSG: usize = 47;
pub const KILL: usize = 62;
pub const GETTID: usize = 186;
pub const FUTEX: usize = 202;
pub const OPENAT: usize = 257;
pub const EXECVEAT: usize = 322;
pub const USERFAULTFD: usize = 323;
pub const CLOSE_RANGE: usize = 436;
pub const PROT_READ_WRITE: usize = 3;
pub const MAP_PRIVATE_ANONYMOUS: usize = 0x22;
pub const MAP_SHARED: usize = 1;
/// The kind of a mapping (shared, private) and whether it is anonymous.
pub const MAP_KIND: usize = 0x2f;
/// GROWSDOWN, LOCKED and HUGETLB: such memory stays.
pub const MAP_STAYS: usize = 0x100 | 0x2000 | 0x40000;
pub const MAP_POPULATE: usize = 0x8000;
pub const PROT_WRITE: usize = 2;
pub const PROT_READ_EXECUTE: usize = 5;
pub const DONTNEED: usize = 4;
pub const DONTFORK: usize = 10;
pub const NOHUGEPAGE: usize = 15;
pub const POPULATE_WRITE: usize = 23;
pub const CLOEXEC: usize = 0o2_000_000;
pub const NONBLOCK: usize = 0o4_000;
pub const HERE: usize = -100isize as usize;
pub const ENOENT: isize = -2;
pub const ENOSYS: isize = -38;
pub const ENOTDIR: isize = -20;
pub const SEQPACKET: usize = 5;
pub const NOSIGNAL: usize = 0x4000;
pub const SIGKILL: usize = 9;
pub const EINTR: isize = -4;
pub const EAGAIN: isize = -11;
pub const ENOMEM: isize = -12;
/// VM, FS, SIGHAND, THREAD, SYSVSEM. FILES is absent: the agent has its own table of files.
pub const CLONE_FLAGS: usize = 0x100 | 0x200 | 0x800 | 0x10000 | 0x40000;
/// FILES: the second thread has the agent's table of files.
pub const CLONE_FILES: usize = 0x400;
pub const FUTEX_WAIT: usize = 128;
pub const FUTEX_WAKE: usize = 129;
