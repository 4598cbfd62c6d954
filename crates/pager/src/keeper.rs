//! The keeper is a small process between the pager and the program. It ensures that the program,
//! and every process that it started in whatever way, dies with the pager.
//!
//! The keeper shares only the pager's table of files (`CLONE_FILES`). It therefore holds every
//! userfaultfd of the pager from the instant at which the kernel creates it. When the pager is
//! killed none of them is closed, so a thread that touches an absent page waits and never sees a
//! zero. The keeper is the program's parent and the subreaper of its descendants. It kills its
//! children until it has none, and ends. When the keeper is killed its children become the pager's,
//! which then does this.
//!
//! The keeper starts by a bare system call in a process that may have threads, so nothing here
//! allocates, locks or panics.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc::{self, c_char, c_int, pid_t};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{Pid, getpid, pipe2, read, write};

use crate::error::Error;
use crate::peer::Peer;

/// Signal that makes the keeper kill the program. The pager sends it, and the kernel does when the
/// pager has ended. Service managers do not send this signal to all processes of a service.
const END: c_int = 64;
const CHILDREN: &CStr = c"/proc/thread-self/children";

/// A program to be started.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) path: CString,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
    /// Signals that it blocks.
    pub(crate) mask: SigSet,
    /// A file to be deleted if the pager does not.
    pub(crate) leftover: CString,
}

/// Data for the keeper and the program's first process: only numbers and addresses.
struct Bare {
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    leftover: *const c_char,
    mask: libc::sigset_t,
    pager: pid_t,
    /// Socket on which the first process reports its number, waits, and reports why it could not
    /// begin.
    gate: RawFd,
    /// Pipe on which the keeper reports how the first process ended.
    end: RawFd,
}

/// The keeper of a program.
#[derive(Debug)]
pub(crate) struct Keeper {
    held: Peer,
    /// The program's first process.
    pub(crate) first: Peer,
    status: OwnedFd,
    _end: OwnedFd,
}

/// A first process that waits before it becomes the program.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) keeper: Keeper,
    gate: OwnedFd,
}

fn system(what: &'static str) -> impl Fn(Errno) -> Error {
    move |error| Error::System { what, error: error.into() }
}

fn addresses(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Starts a keeper, and under it a process that waits before it becomes the program.
pub(crate) fn start(plan: &Plan) -> Result<Ready, Error> {
    if std::fs::read(CHILDREN.to_str().unwrap_or_default()).is_err() {
        let error = io::Error::from(Errno::ENOSYS);
        return Err(Error::System { what: "a kernel with CONFIG_PROC_CHILDREN", error });
    }
    let kind = SockType::SeqPacket;
    let (gate, far) = socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC)
        .map_err(system("a pair of sockets"))?;
    let flags = nix::fcntl::OFlag::O_CLOEXEC | nix::fcntl::OFlag::O_NONBLOCK;
    let (status, end) = pipe2(flags).map_err(system("a pipe"))?;
    let (arguments, environment) = (addresses(&plan.arguments), addresses(&plan.environment));
    let bare = Bare {
        path: plan.path.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        leftover: plan.leftover.as_ptr(),
        mask: *plan.mask.as_ref(),
        pager: getpid().as_raw(),
        gate: far.as_raw_fd(),
        end: end.as_raw_fd(),
    };
    // SAFETY: the new process has a copy of this one's memory, and only does async-signal-safe
    // calls.
    let keeper = match unsafe { clone(libc::CLONE_FILES | libc::SIGCHLD) } {
        // SAFETY: this is the new process.
        0 => unsafe { keep(&bare) },
        number => Errno::result(number).map_err(system("a keeper"))?,
    };
    let keeper = Pid::from_raw(keeper);
    let lost = |error| Error::System { what: "the keeper", error };
    let held = Peer::of_number(keeper).map_err(lost)?;
    let mut number = [0; 4];
    let first = said(&gate, &held, &mut number).and_then(|bytes| {
        let number = (bytes == number.len()).then(|| pid_t::from_ne_bytes(number));
        Peer::of_number(Pid::from_raw(number.filter(|it| *it > 0).ok_or(Errno::ESRCH)?))
    });
    // The first process has its own end. When that closes, this end is notified.
    drop(far);
    match first {
        Ok(first) => Ok(Ready { keeper: Keeper { held, first, status, _end: end }, gate }),
        Err(error) => {
            let _ = held.signal(libc::SIGKILL);
            let _ = end_children();
            Err(lost(error))
        }
    }
}

/// Reads what arrives on `gate`, unless the keeper ends first.
fn said(gate: &OwnedFd, keeper: &Peer, to: &mut [u8]) -> io::Result<usize> {
    loop {
        let mut ready = [
            PollFd::new(gate.as_fd(), PollFlags::POLLIN),
            PollFd::new(keeper.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut ready, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        return if ready[0].any() == Some(true) {
            Ok(read(gate, to)?)
        } else {
            Err(Errno::ESRCH.into())
        };
    }
}

impl Ready {
    /// Lets the first process become the program, or returns the kernel's error.
    pub(crate) fn go(self) -> Result<Keeper, (io::Error, Keeper)> {
        let mut number = [0; 4];
        let failed = write(&self.gate, &[1])
            .map_err(io::Error::from)
            .and_then(|_| said(&self.gate, &self.keeper.held, &mut number));
        match failed {
            Ok(0) => Ok(self.keeper),
            Ok(_) => {
                let error = io::Error::from_raw_os_error(c_int::from_ne_bytes(number));
                Err((error, self.keeper))
            }
            Err(error) => Err((error, self.keeper)),
        }
    }
}

impl Keeper {
    /// True if `process` is the keeper.
    pub(crate) fn is(&self, process: Pid) -> bool {
        self.held.number() == process
    }

    /// The `waitpid` status of the program's first process, once it has ended; it is told once.
    pub(crate) fn status(&self) -> Option<c_int> {
        let mut status = [0; 4];
        match read(&self.status, &mut status) {
            Ok(4) => Some(c_int::from_ne_bytes(status)),
            _ => None,
        }
    }

    /// Sends a signal to the program's first process.
    pub(crate) fn pass_on(&self, number: c_int) {
        let _ = self.first.signal(number);
    }

    /// Sends a signal to the processes that the first one left when it ended.
    pub(crate) fn pass_on_to_the_rest(&self, number: c_int) {
        let keeper = self.held.number();
        let path = self.held.path(&format!("task/{keeper}/children"));
        let children = std::fs::read_to_string(path).unwrap_or_default();
        for child in children.split_ascii_whitespace().filter_map(|child| child.parse().ok()) {
            // A number that was reused meanwhile is no descendant's.
            if let Ok(child) = Peer::of_number(Pid::from_raw(child))
                && child.descends_from(keeper)
            {
                let _ = child.signal(number);
            }
        }
    }

    /// Kills every process of the program, and the keeper. Later reports on traced threads are
    /// ignored.
    pub(crate) fn end(&self) {
        // If the keeper was killed, its children are this process's.
        let _ = self.held.signal(END);
        let _ = end_children_of(|number| self.is(number));
    }
}

/// Kills all children of this process, and their children, which become its own, until none is
/// left.
pub(crate) fn end_children() -> io::Result<()> {
    end_children_of(|_| false)
}

/// As [`end_children`], except for a child that ends by itself.
fn end_children_of(spared: impl Fn(Pid) -> bool) -> io::Result<()> {
    loop {
        for task in std::fs::read_dir("/proc/self/task")? {
            let children = std::fs::read_to_string(task?.path().join("children"));
            for child in children.unwrap_or_default().split_ascii_whitespace() {
                let Ok(child) = child.parse().map(Pid::from_raw) else { continue };
                if !spared(child) {
                    // A child's number is not reused until it is waited for.
                    let _ = nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL);
                }
            }
        }
        let mut status = 0;
        // SAFETY: the status has room.
        match Errno::result(unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) }) {
            Err(Errno::ECHILD) => return Ok(()),
            _ => continue,
        }
    }
}

/// `clone` as `fork` does it, without a stack of its own, but with these flags.
///
/// # Safety
/// As for `fork`.
unsafe fn clone(flags: c_int) -> pid_t {
    // SAFETY: the caller upholds this function's contract.
    unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(flags), 0, 0, 0, 0) as pid_t }
}

/// Runs the keeper.
///
/// # Safety
/// To be called in a process of its own, with what `bare` names.
unsafe fn keep(bare: &Bare) -> ! {
    // SAFETY: the calls are allowed after a fork, and use memory of this process.
    unsafe {
        let (mut all, mut awaited) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::sigemptyset(&raw mut awaited);
        libc::sigaddset(&raw mut awaited, libc::SIGCHLD);
        libc::sigaddset(&raw mut awaited, END);
        libc::prctl(libc::PR_SET_PDEATHSIG, END);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::prctl(libc::PR_SET_NAME, c"ethermem-keeper".as_ptr());
        let keeper = libc::getpid();
        // The child has a copy of the table of files, so that the program gets no later file.
        let first = clone(libc::SIGCHLD);
        if first == 0 {
            become_program(bare, keeper);
        }
        // The parent may have set it to ignored, and then no child could be waited for.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        stay_last();
        let mut is_over = first < 0;
        loop {
            is_over |= libc::getppid() != bare.pager;
            if is_over {
                kill_children();
            }
            let how = if is_over { libc::__WALL } else { libc::__WALL | libc::WNOHANG };
            let mut status = 0;
            let ended = libc::waitpid(-1, &raw mut status, how);
            if ended == first {
                libc::write(bare.end, (&raw const status).cast(), size_of::<c_int>());
            } else if ended < 0 && *libc::__errno_location() == libc::ECHILD {
                break;
            }
            if ended == 0 {
                let mut told: libc::siginfo_t = std::mem::zeroed();
                let signal = libc::sigwaitinfo(&raw const awaited, &raw mut told);
                is_over |= signal == END && told.si_pid() == bare.pager;
            }
        }
        if libc::getppid() != bare.pager {
            libc::unlink(bare.leftover);
        }
        libc::_exit(0)
    }
}

/// Makes the kernel prefer other processes when it kills for lack of memory.
unsafe fn stay_last() {
    // SAFETY: names and content are constants; without permission, nothing is changed.
    unsafe {
        let file =
            libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file >= 0 {
            libc::write(file, c"-1000".as_ptr().cast(), 5);
            libc::close(file);
        }
    }
}

/// Kills every child of this process, which has one thread.
unsafe fn kill_children() {
    // SAFETY: the calls read into memory of this function.
    unsafe {
        let file = libc::open(CHILDREN.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let mut text = [0u8; 4096];
        let mut number: pid_t = 0;
        loop {
            let bytes = libc::read(file, text.as_mut_ptr().cast(), text.len());
            if bytes <= 0 {
                break;
            }
            for byte in text.iter().take(bytes.unsigned_abs()) {
                if byte.is_ascii_digit() {
                    number = number.wrapping_mul(10).wrapping_add(pid_t::from(*byte - b'0'));
                } else if number > 0 {
                    libc::kill(number, libc::SIGKILL);
                    number = 0;
                }
            }
        }
        libc::close(file);
    }
}

/// The program's first process: reports its number, waits for permission, and becomes the program.
unsafe fn become_program(bare: &Bare, keeper: pid_t) -> ! {
    // SAFETY: the calls are allowed after a fork, and use memory of this process.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let number = libc::getpid();
        let mut may = 0u8;
        let said = libc::write(bare.gate, (&raw const number).cast(), size_of::<pid_t>());
        if said < 0
            || libc::read(bare.gate, (&raw mut may).cast(), 1) != 1
            || libc::getppid() != keeper
        {
            libc::_exit(127);
        }
        // As the standard library does when it starts programs; it ignores this signal itself.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const bare.mask, std::ptr::null_mut());
        libc::execve(bare.path, bare.arguments, bare.environment);
        let error = *libc::__errno_location();
        libc::write(bare.gate, (&raw const error).cast(), size_of::<c_int>());
        libc::_exit(127)
    }
}
