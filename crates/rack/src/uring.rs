//! Keeps io_uring from the programs of a rack. A ring's calls reach sockets past the preloaded
//! library, and a stream that goes through memory would end in them or lose bytes. Programs that
//! can use a ring find a kernel without it, and use calls that the library sees.

use std::io::{Error, Result};

use nix::errno::Errno;
use nix::libc::{
    self, BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_JUMP, BPF_K, BPF_LD, BPF_RET, BPF_STMT,
    BPF_W, SECCOMP_MODE_FILTER, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SYS_io_uring_setup, c_ulong,
    sock_filter, sock_fprog,
};
use nix::sys::prctl::set_no_new_privs;

/// Bit of the numbers of system calls with 32-bit pointers on a 64-bit kernel.
const X32: u32 = 1 << 30;
/// The call's number: the same on every architecture.
const SETUP: u32 = SYS_io_uring_setup as u32;

/// Refuses new rings to this process and to all that it starts, with `ENOSYS`. May be called
/// between fork and exec.
///
/// A process without `CAP_SYS_ADMIN` may refuse itself a call only if the programs that it starts
/// can gain no privilege, so set-user-id programs then run without theirs.
///
/// # Errors
/// The kernel's, if it has io_uring and no filter of system calls.
pub(crate) fn refuse() -> Result<()> {
    let refused = filter().or_else(|_| {
        set_no_new_privs()?;
        filter()
    });
    refused.or_else(|error| if is_here() { Err(error) } else { Ok(()) })
}

fn filter() -> Result<()> {
    // SAFETY: these only make instructions of numbers.
    let mut program: [sock_filter; 5] = unsafe {
        [
            // The first word of what a filter sees is the call's number.
            BPF_STMT((BPF_LD | BPF_W | BPF_ABS) as u16, 0),
            BPF_STMT((BPF_ALU | BPF_AND | BPF_K) as u16, !X32),
            BPF_JUMP((BPF_JMP | BPF_JEQ | BPF_K) as u16, SETUP, 0, 1),
            BPF_STMT((BPF_RET | BPF_K) as u16, SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
            BPF_STMT((BPF_RET | BPF_K) as u16, SECCOMP_RET_ALLOW),
        ]
    };
    let program = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the kernel copies the filter, which is here until the call returns.
    let result = unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, c_ulong::from(SECCOMP_MODE_FILTER), &raw const program)
    };
    Errno::result(result).map_err(Error::from).map(drop)
}

/// True if this process could have a ring.
fn is_here() -> bool {
    // SAFETY: without parameters the kernel makes no ring.
    let result = unsafe { libc::syscall(SYS_io_uring_setup, 1, std::ptr::null_mut::<u8>()) };
    result >= 0 || Errno::last() == Errno::EFAULT
}

#[cfg(test)]
mod tests {
    use std::io::{Error, Result, Write};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use nix::libc;
    use nix::unistd::geteuid;

    use super::{is_here, refuse};

    const NOBODY: u32 = 65534;

    /// Starts a program as `uid`, if the closure of its process allows it.
    fn started(uid: u32, may: fn() -> Result<()>) -> Result<bool> {
        let mut command = Command::new("/bin/true");
        command.uid(uid);
        // SAFETY: the closures of these tests make system calls alone.
        unsafe { command.pre_exec(may) };
        command.status().map(|status| status.success())
    }

    /// Also seen where the output of tests that pass is not.
    fn skipped(why: &str) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
    }

    fn unless_here() -> Result<()> {
        if is_here() { Err(Error::from_raw_os_error(libc::EEXIST)) } else { Ok(()) }
    }

    #[test]
    fn no_user_can_make_a_ring_after_it_was_refused() {
        let own = geteuid().as_raw();
        let users = if own == 0 { vec![0, NOBODY] } else { vec![own] };
        for uid in users {
            let refused = started(uid, || {
                refuse()?;
                unless_here()
            });
            assert!(refused.expect("it is refused"), "{uid}");
            // Where the kernel has no rings, nothing was shown.
            if started(uid, unless_here).is_ok() {
                skipped(&format!("this kernel has no io_uring for user {uid}"));
            }
        }
    }

    #[test]
    fn who_keeps_its_privileges_is_not_told_to_drop_them() {
        if !geteuid().is_root() {
            return skipped("privileges that a filter keeps need root");
        }
        let has_dropped = || {
            refuse()?;
            let dropped = nix::sys::prctl::get_no_new_privs()?;
            if dropped { Err(Error::from_raw_os_error(libc::EEXIST)) } else { Ok(()) }
        };
        assert!(started(0, has_dropped).expect("root may filter"));
        let nobody = started(NOBODY, has_dropped).expect_err("others may not");
        assert_eq!(nobody.raw_os_error(), Some(libc::EEXIST));
    }
}
