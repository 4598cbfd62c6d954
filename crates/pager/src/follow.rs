//! Executions by programs into which the agent was written. They have no C library's `exec` that
//! the agent could interpose, so the kernel reports executions.
//!
//! Such a program gets a seccomp filter that lets every system call pass except `execve` and
//! `execveat`. At those the thread waits until the pager has heard of it; then the kernel does the
//! call unchanged. Forks and executed programs inherit the filter.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc::{self, c_long, seccomp_notif, seccomp_notif_resp, sock_filter};
use nix::sys::uio::{RemoteIoVec, process_vm_writev};
use nix::unistd::Pid;

use crate::inject::Stopped;

/// `AUDIT_ARCH_X86_64` of linux/audit.h.
const X86_64: u32 = 0xc000_003e;

/// The descriptor that reports executions by a program and by all its descendants.
#[derive(Debug)]
pub(crate) struct Executions {
    file: OwnedFd,
}

/// A thread that is about to execute a program, and waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PausedThread {
    id: u64,
    pub(crate) thread: Pid,
}

impl AsFd for Executions {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The filter on `struct seccomp_data`, which begins with the call's number and the architecture.
/// [`follow`] appends the last answer.
fn filter() -> [sock_filter; 6] {
    const NUMBER: u32 = 0;
    const MACHINE: u32 = 4;
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let jump = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    let equal = |k: u32, jt, jf| sock_filter { code: jump, jt, jf, k };
    [
        step(load, MACHINE),
        equal(X86_64, 0, 3),
        step(load, NUMBER),
        equal(libc::SYS_execve as u32, 2, 0),
        equal(libc::SYS_execveat as u32, 1, 0),
        step(answer, libc::SECCOMP_RET_ALLOW),
    ]
}

/// Bytes of the program's memory that [`follow`] needs.
pub(crate) const FILTER_BYTES: usize = 128;

/// How a program's executions are reported.
#[derive(Debug)]
pub(crate) enum Followed {
    /// They are reported from now on.
    New(Executions),
    /// They are reported through the parent's descriptor.
    Already,
    /// They are not reported, for this reason.
    Refused(Errno),
}

/// Makes a program that is before its first instruction report executions, using [`FILTER_BYTES`]
/// of its memory at `place`.
///
/// # Errors
///
/// When the program must not proceed: it would wait for answers that no process can give.
pub(crate) fn follow(stopped: &mut Stopped, place: u64) -> io::Result<Followed> {
    // A descriptor is reserved before the filter is installed, so that fetching the listener cannot
    // fail.
    let number = c_long::from(stopped.program().as_raw());
    let open = || call(libc::SYS_pidfd_open, [number, 0, 0]);
    let (program, aside) = match (open(), open()) {
        (Ok(program), Ok(aside)) => (program, aside),
        (Err(error), _) | (_, Err(error)) => return Ok(Followed::Refused(error)),
    };
    let filter = filter();
    let told = sock_filter { k: libc::SECCOMP_RET_USER_NOTIF, ..filter[filter.len() - 1] };
    let mut bytes = Vec::with_capacity(FILTER_BYTES);
    bytes.extend((filter.len() as u64 + 1).to_le_bytes());
    bytes.extend((place + 16).to_le_bytes());
    for sock_filter { code, jt, jf, k } in filter.into_iter().chain([told]) {
        bytes.extend(code.to_le_bytes());
        bytes.extend([jt, jf]);
        bytes.extend(k.to_le_bytes());
    }
    let to = RemoteIoVec { base: place as usize, len: bytes.len() };
    if process_vm_writev(stopped.program(), &[IoSlice::new(&bytes)], &[to])? != bytes.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER
        | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
        | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    let arguments = [libc::SECCOMP_SET_MODE_FILTER.into(), flags, place, 0, 0, 0];
    let there = match stopped.call(libc::SYS_seccomp, arguments) {
        Ok(there) => there,
        Err(error) => {
            return match error.raw_os_error().map(Errno::from_raw) {
                None => Err(error),
                Some(Errno::EBUSY) => Ok(Followed::Already),
                Some(refused) => Ok(Followed::Refused(refused)),
            };
        }
    };
    drop(aside);
    let file = call(libc::SYS_pidfd_getfd, [program.as_raw_fd().into(), there as c_long, 0])?;
    stopped.call(libc::SYS_close, [there, 0, 0, 0, 0, 0])?;
    Ok(Followed::New(Executions { file }))
}

/// A system call that creates a file descriptor.
fn call(number: c_long, [a, b, c]: [c_long; 3]) -> nix::Result<OwnedFd> {
    // SAFETY: the calls made here take only numbers.
    let file = Errno::result(unsafe { libc::syscall(number, a, b, c) })?;
    // SAFETY: the kernel just created the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(RawFd::try_from(file).unwrap_or(-1)) })
}

impl Executions {
    /// The next thread that waits; `None` if it has ended meanwhile.
    pub(crate) fn next(&self) -> Option<PausedThread> {
        // SAFETY: all zeroes are a valid value, and the kernel requires them.
        let mut told: seccomp_notif = unsafe { std::mem::zeroed() };
        let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
        // SAFETY: the request writes a notification into `told`.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), request, &raw mut told) };
        let thread = Pid::from_raw(told.pid.cast_signed());
        Errno::result(result).is_ok().then_some(PausedThread { id: told.id, thread })
    }

    /// Lets the thread proceed with its call.
    pub(crate) fn go_on(&self, waiting: PausedThread) {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let answer = seccomp_notif_resp { id: waiting.id, val: 0, error: 0, flags };
        // SAFETY: the request only reads the answer. A thread that no longer waits needs no answer.
        let _ = unsafe {
            libc::ioctl(self.file.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer)
        };
    }
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use super::{FILTER_BYTES, X86_64, filter};

    /// Evaluates the filter. [`super::follow`] appends the answer "tell", so a jump past the end
    /// counts as that answer.
    fn tells(machine: u32, number: u32) -> bool {
        let steps = filter();
        let (mut at, mut loaded) = (0, 0);
        while let Some(step) = steps.get(at) {
            at += 1;
            match u32::from(step.code) & 7 {
                libc::BPF_LD => loaded = if step.k == 4 { machine } else { number },
                libc::BPF_JMP => {
                    at += usize::from(if loaded == step.k { step.jt } else { step.jf });
                }
                _ => return false,
            }
        }
        at == steps.len()
    }

    #[test]
    fn executions_are_told_of_and_nothing_else() {
        for number in 0..600 {
            let is_execution = [libc::SYS_execve, libc::SYS_execveat].contains(&number.into());
            assert_eq!(tells(X86_64, number), is_execution, "{number}");
            assert!(!tells(0x4000_0003, number), "{number} of 32 bits");
        }
        assert!(16 + 8 * (filter().len() + 1) <= FILTER_BYTES);
    }
}
