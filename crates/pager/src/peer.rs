//! A process at the other end of a socket, identified by the kernel.
//!
//! Nothing that a process says of itself is in this module. A [`Peer`] holds the process by a pidfd
//! and by its folder of `/proc`, opened while the pidfd showed that the process lives. Reads
//! through the folder concern this process, or fail. A number that the kernel reused for another
//! process is never followed.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc::{self, c_int, c_long};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::Pid;

use crate::threads::threads;

/// Limit of ancestors that are followed between a process and the pager.
const GENERATIONS_MAX: usize = 4096;

/// A live process, held so that its number cannot be reused.
#[derive(Debug)]
pub(crate) struct Peer {
    number: Pid,
    pidfd: OwnedFd,
    /// Descriptor of `/proc/PID`.
    folder: OwnedFd,
}

/// Opens a pidfd of the process of this number.
fn pidfd_open(number: Pid) -> nix::Result<OwnedFd> {
    // SAFETY: the call takes only numbers.
    let file = unsafe { libc::syscall(libc::SYS_pidfd_open, c_long::from(number.as_raw()), 0) };
    let file = Errno::result(file)?;
    // SAFETY: the kernel just created the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(RawFd::try_from(file).unwrap_or(-1)) })
}

/// Sends `signal` to the process of `pidfd`; 0 tests whether it exists.
fn signal(pidfd: &OwnedFd, signal: c_int) -> nix::Result<()> {
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: without a siginfo argument the call takes only numbers.
    let result =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, none, 0) };
    Errno::result(result).map(drop)
}

/// Value of a line of `/proc/PID/status` or of a pidfd's `fdinfo`.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The descriptor becomes readable once the process has ended.
impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Peer {
    /// The process of a pidfd, if it lives.
    pub(crate) fn of(pidfd: OwnedFd) -> io::Result<Peer> {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
        let number = field(&info, "Pid").and_then(|number| number.parse::<i32>().ok());
        // A process of another namespace has the number 0, an ended one -1.
        let number = number.filter(|number| *number > 0).ok_or(Errno::ESRCH)?;
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = open(Path::new(&format!("/proc/{number}")), flags, Mode::empty())?;
        // The process still lives, so the folder is its own.
        signal(&pidfd, 0)
            .or_else(|error| if error == Errno::EPERM { Ok(()) } else { Err(error) })?;
        Ok(Peer { number: Pid::from_raw(number), pidfd, folder })
    }

    /// The process that has this number at present.
    pub(crate) fn of_number(number: Pid) -> io::Result<Peer> {
        Peer::of(pidfd_open(number)?)
    }

    /// The same process, held once more.
    pub(crate) fn again(&self) -> io::Result<Peer> {
        let (pidfd, folder) = (self.pidfd.try_clone()?, self.folder.try_clone()?);
        Ok(Peer { number: self.number, pidfd, folder })
    }

    /// Numbers of the process's threads; none once it has ended.
    pub(crate) fn threads(&self) -> Vec<Pid> {
        threads(&self.path("task")).unwrap_or_default()
    }

    /// True if the process has a thread of this number.
    pub(crate) fn has_thread(&self, thread: Pid) -> bool {
        Path::new(&self.path(&format!("task/{thread}"))).exists()
    }

    /// The process's number in this process's namespace.
    pub(crate) fn number(&self) -> Pid {
        self.number
    }

    /// A path in the process's `/proc` folder.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/proc/self/fd/{}/{rest}", self.folder.as_raw_fd())
    }

    fn read(&self, rest: &str) -> io::Result<String> {
        std::fs::read_to_string(self.path(rest))
    }

    /// Number of the process's parent.
    fn parent(&self) -> io::Result<Pid> {
        let status = self.read("status")?;
        let parent = field(&status, "PPid").and_then(|number| number.parse().ok());
        parent.map(Pid::from_raw).ok_or_else(|| Errno::ESRCH.into())
    }

    /// True if `ancestor` is among the process's ancestors. A process whose parent ended becomes
    /// its subreaper's child, so no descendant of a subreaper leaves it.
    pub(crate) fn descends_from(&self, ancestor: Pid) -> bool {
        let mut above: Option<Peer> = None;
        for _ in 0..GENERATIONS_MAX {
            let child = above.as_ref().unwrap_or(self);
            let Ok(parent) = child.parent() else { return false };
            if parent == ancestor {
                return true;
            }
            if parent.as_raw() <= 1 {
                return false;
            }
            let Ok(held) = Peer::of_number(parent) else {
                // The parent ended meanwhile: the child has another parent now, or has ended too.
                continue;
            };
            // The number was the child's parent before and is still, so the held process is the
            // parent.
            if child.parent().is_ok_and(|again| again == parent) {
                above = Some(held);
            }
        }
        false
    }

    /// True if `pidfd` refers to this process.
    pub(crate) fn is(&self, pidfd: &OwnedFd) -> bool {
        // Where pidfds have a file system of their own, a process has one inode there for ever.
        let one = fstat(&self.pidfd).map(|it| (it.st_dev, it.st_ino));
        let other = fstat(pidfd).map(|it| (it.st_dev, it.st_ino));
        let number = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()));
        let number = number.ok().and_then(|info| field(&info, "Pid")?.parse::<i32>().ok());
        one.is_ok() && one == other && number == Some(self.number.as_raw())
    }

    /// The thread of this process that has the number `said` in its own namespace, as numbered in
    /// this one. Threads of another PID namespace have other numbers there.
    pub(crate) fn thread(&self, said: u64) -> Option<Pid> {
        let said = i32::try_from(said).ok().filter(|said| *said > 0)?;
        if self.own_number(&format!("task/{said}/status")) == Some(said) {
            return Some(Pid::from_raw(said));
        }
        let is_it = |task: &Pid| self.own_number(&format!("task/{task}/status")) == Some(said);
        self.threads().into_iter().find(is_it)
    }

    /// The number that a thread has in its innermost PID namespace.
    fn own_number(&self, status: &str) -> Option<i32> {
        let status = self.read(status).ok()?;
        field(&status, "NSpid")?.split_ascii_whitespace().next_back()?.parse().ok()
    }

    /// True if the process is in this process's PID namespace.
    pub(crate) fn is_of_this_namespace(&self) -> bool {
        self.own_number("status") == Some(self.number.as_raw())
    }

    /// True if a signal or a tracer stopped the process, so that it cannot send anything until it
    /// continues.
    pub(crate) fn is_stopped(&self) -> bool {
        let status = self.read("status").unwrap_or_default();
        field(&status, "State").is_some_and(|state| state.starts_with(['T', 't']))
    }

    /// True if the process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        signal(&self.pidfd, 0) == Err(Errno::ESRCH)
    }

    /// Sends the process a signal.
    pub(crate) fn signal(&self, number: c_int) -> nix::Result<()> {
        signal(&self.pidfd, number)
    }

    /// Path of the process's file, for people.
    pub(crate) fn file(&self) -> String {
        let file = std::fs::read_link(self.path("exe"));
        file.map_or_else(|_| format!("process {}", self.number), |path| path.display().to_string())
    }
}

/// True if a file is a userfaultfd. The pager checks this before any other request: the request may
/// mean anything to another kind of file, and a read may block for ever.
pub(crate) fn is_userfaultfd(file: impl AsFd) -> bool {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()));
    link.is_ok_and(|link| link == Path::new("anon_inode:[userfaultfd]"))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    use nix::unistd::{Pid, getpid, getppid, gettid};

    use super::{Peer, is_userfaultfd, pidfd_open};

    #[test]
    fn descent_is_what_the_kernel_says() {
        let this = Peer::of_number(getpid()).expect("this process lives");
        assert!(this.descends_from(getppid()));
        assert!(!this.descends_from(getpid()), "nobody descends from itself");
        let mut child = Command::new("sleep").arg("60").spawn().expect("it starts");
        let number = Pid::from_raw(child.id().cast_signed());
        let peer = Peer::of_number(number).expect("it lives");
        assert!(peer.descends_from(getpid()) && peer.descends_from(getppid()));
        assert!(!this.descends_from(number));
        assert!(!peer.has_ended());
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert!(peer.has_ended() && !peer.descends_from(getpid()));
        assert!(Peer::of_number(number).is_err());
        assert!(std::fs::read(peer.path("maps")).is_err(), "the folder is of no other process");
    }

    #[test]
    fn a_pidfd_is_of_one_process_and_its_threads_are_its_own() {
        let this = Peer::of_number(getpid()).expect("this process lives");
        assert!(this.is(&pidfd_open(getpid()).expect("a pidfd")));
        assert!(!this.is(&pidfd_open(getppid()).expect("a pidfd")));
        assert!(this.is_of_this_namespace());
        let thread = gettid();
        assert_eq!(this.thread(thread.as_raw() as u64), Some(thread));
        for lie in [0, 1, getppid().as_raw() as u64, u64::MAX, 1 << 31, (1 << 32) + 1] {
            assert_eq!(this.thread(lie), None, "{lie}");
        }
    }

    #[test]
    fn what_is_no_userfaultfd_is_refused() {
        let null = std::fs::File::open("/dev/null").expect("opened");
        assert!(!is_userfaultfd(&null));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("it starts");
        assert!(!is_userfaultfd(child.stdin.as_ref().expect("piped")));
        drop(child.stdin.take());
        child.wait().expect("ended");
    }

    #[test]
    fn what_stands_still_and_what_a_process_runs_is_known() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("it starts");
        let number = Pid::from_raw(child.id().cast_signed());
        let peer = Peer::of_number(number).expect("it lives");
        assert!(!peer.is_stopped());
        peer.signal(nix::libc::SIGSTOP).expect("it is ours");
        let flags = nix::sys::wait::WaitPidFlag::WUNTRACED;
        nix::sys::wait::waitpid(number, Some(flags)).expect("it stops");
        assert!(peer.is_stopped());
        let runs = std::fs::read_link(peer.path("exe")).expect("it has a file");
        assert_eq!(peer.file(), runs.display().to_string());
        // SAFETY: the call takes only numbers.
        let kept = unsafe { nix::libc::fcntl(peer.folder.as_raw_fd(), nix::libc::F_GETFD) };
        assert_eq!(kept, nix::libc::FD_CLOEXEC, "no program that is started has the folder");
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert_eq!(peer.file(), format!("process {number}"));
        assert!(!peer.is_stopped());
    }

    #[test]
    fn a_userfaultfd_is_known() {
        // A mode for every user: only faults of user code are reported.
        const USER_MODE_ONLY: i32 = 1;
        let flags = nix::libc::O_CLOEXEC | USER_MODE_ONLY;
        // SAFETY: the call takes only numbers, and its result is checked.
        let file = unsafe { nix::libc::syscall(nix::libc::SYS_userfaultfd, flags) };
        if file < 0 {
            let line = format!("SKIPPED: userfaultfd: {}\n", std::io::Error::last_os_error());
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
            return;
        }
        // SAFETY: the kernel just created the descriptor, and nothing else owns it.
        let file = unsafe { OwnedFd::from_raw_fd(file as i32) };
        assert!(is_userfaultfd(&file));
    }
}
