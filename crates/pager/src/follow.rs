//! Executions by programs that the agent was written into: there is no C library's `exec` that the
//! agent could stand before, so the kernel tells of them.
//!
//! Such a program gets a seccomp filter that lets every system call pass but `execve` and
//! `execveat`: with those the thread waits until the pager has heard of it, and then they are done
//! as they were asked for. Forks and executed programs inherit it.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc::{self, c_long, seccomp_notif, seccomp_notif_resp, sock_filter};
use nix::sys::uio::{RemoteIoVec, process_vm_writev};
use nix::unistd::Pid;

use crate::inject::Stopped;

/// `AUDIT_ARCH_X86_64` of linux/audit.h.
const X86_64: u32 = 0xc000_003e;

/// What tells of executions by a program, and by all that it starts.
#[derive(Debug)]
pub(crate) struct Executions {
    file: OwnedFd,
}

/// A thread that is about to execute a program, and waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    id: u64,
    pub(crate) thread: Pid,
}

impl AsFd for Executions {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// `struct seccomp_data` begins with the number of the call and the machine's kind.
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

/// Bytes that the program's memory must have for [`follow`].
pub(crate) const FILTER_BYTES: usize = 128;

/// Whether executions are told of.
#[derive(Debug)]
pub(crate) enum Followed {
    /// From now on.
    New(Executions),
    /// As the parent's are.
    Already,
    /// They are not, and why.
    Refused(Errno),
}

/// Makes a program before its first instruction tell of executions, with the help of
/// [`FILTER_BYTES`] of its memory at `place`.
///
/// # Errors
///
/// When the program must not go on: it was told to wait for answers that nobody can give.
pub(crate) fn follow(stopped: &mut Stopped, place: u64) -> io::Result<Followed> {
    // That it can be fetched must be sure before it is made: a file is set aside for it.
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

/// A system call that makes a file.
fn call(number: c_long, [a, b, c]: [c_long; 3]) -> nix::Result<OwnedFd> {
    // SAFETY: the calls that are made here take numbers alone.
    let file = Errno::result(unsafe { libc::syscall(number, a, b, c) })?;
    // SAFETY: the kernel just made it, for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(RawFd::try_from(file).unwrap_or(-1)) })
}

impl Executions {
    /// The next thread that waits; none when it is gone meanwhile.
    pub(crate) fn next(&self) -> Option<Waiting> {
        // SAFETY: all zeroes are a value, and what the kernel wants.
        let mut told: seccomp_notif = unsafe { std::mem::zeroed() };
        let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
        // SAFETY: the request fills in what it is given.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), request, &raw mut told) };
        let thread = Pid::from_raw(told.pid.cast_signed());
        Errno::result(result).is_ok().then_some(Waiting { id: told.id, thread })
    }

    /// Lets the thread do what it asked for.
    pub(crate) fn go_on(&self, waiting: Waiting) {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let answer = seccomp_notif_resp { id: waiting.id, val: 0, error: 0, flags };
        // SAFETY: the request reads what it is given. Who waits no longer needs no answer.
        let _ = unsafe {
            libc::ioctl(self.file.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer)
        };
    }
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use super::{FILTER_BYTES, X86_64, filter};

    /// What the filter answers: the place behind its last step, which is the last answer, counts
    /// as "tell".
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
