//! A program under valgrind's tool `lackey`: starts it, and reads its trace through a pipe.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use crate::error::Error;
use crate::launch::{find, way_into};
use crate::run::{hold_signals, system};

const TRACER: &str = "valgrind";
/// Options of the tracer. A child of a fork is silent, as its lines would be between those of its
/// parent; a program that a child executes runs by itself. `.valgrindrc` and `VALGRIND_OPTS` have
/// no say: they could write other text between the lines.
const OPTIONS: [&str; 7] = [
    "--command-line-only=yes",
    "--tool=lackey",
    "--trace-mem=yes",
    "--basic-counts=no",
    "--child-silent-after-fork=yes",
    "--vgdb=no",
    "--quiet",
];
/// Bytes that one read takes from the pipe: what a pipe holds.
const PIECE_BYTES: usize = 1 << 16;
/// The tracer writes each line by a call of its own. After a short piece the pipe may fill for this
/// long, so that this process does not wake for each of them.
const PAUSE: Duration = Duration::from_millis(1);

/// Runs `command` under the tracer to its end. `each` gets the trace piece by piece. Returns how
/// the program ended.
///
/// # Errors
/// When the tracer or the program cannot be started, or a system call fails.
pub(crate) fn trace(
    command: &[OsString],
    each: &mut dyn FnMut(&[u8]),
) -> Result<ExitStatus, Error> {
    let program = command.first().ok_or(Error::NoProgram)?;
    way_into(&find(program)?)?;
    let tracer = find(&TRACER.into()).map_err(|_| Error::NoTracer)?;
    let (signals, before) = hold_signals()?;
    let traced = start(tracer.as_os_str().to_owned(), command, before)
        .and_then(|(child, reader)| follow(child, reader, &signals, each));
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)
        .map_err(system("signals cannot be restored"))?;
    traced
}

fn start(
    tracer: OsString,
    command: &[OsString],
    mask: SigSet,
) -> Result<(Child, PipeReader), Error> {
    let (reader, writer) = io::pipe().map_err(|error| Error::System { what: "pipe", error })?;
    let descriptor = writer.as_raw_fd();
    let mut tracing = Command::new(&tracer);
    tracing.args(OPTIONS).arg(format!("--log-fd={descriptor}")).arg("--").args(command);
    let prepare = move || {
        // The program must not outlive this process, which takes its trace.
        // SAFETY: the calls are those that a new process may make, and pass no address that does
        // not outlive them.
        unsafe {
            Errno::result(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong))?;
            Errno::result(libc::fcntl(descriptor, libc::F_SETFD, 0))?;
        }
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None)?;
        Ok(())
    };
    // SAFETY: `prepare` makes system calls alone, and allocates nothing.
    unsafe { tracing.pre_exec(prepare) };
    let child = tracing.spawn().map_err(|error| Error::Start { path: tracer.into(), error })?;
    Ok((child, reader))
}

/// Reads the trace and passes signals on, until the program has ended.
fn follow(
    mut child: Child,
    mut reader: PipeReader,
    signals: &SigSet,
    each: &mut dyn FnMut(&[u8]),
) -> Result<ExitStatus, Error> {
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let queue = SignalFd::with_flags(signals, flags).map_err(system("signalfd"))?;
    let waited = |error| Error::System { what: "wait", error };
    let mut piece = vec![0; PIECE_BYTES];
    let mut status = None;
    loop {
        // After the end the rest of the pipe is read. A child of the program may live on and have
        // the pipe, so its end is not waited for.
        let timeout = if status.is_some() { PollTimeout::ZERO } else { PollTimeout::NONE };
        let mut polled = [
            PollFd::new(reader.as_fd(), PollFlags::POLLIN),
            PollFd::new(queue.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut polled, timeout) {
            Err(Errno::EINTR) => continue,
            result => result.map_err(system("poll"))?,
        };
        let [text, signal] = polled.map(|polled| polled.any().unwrap_or(true));
        if signal {
            pass_on(&queue, &child);
            status = child.try_wait().map_err(waited)?;
        }
        if text {
            match reader.read(&mut piece) {
                Ok(0) => break,
                Ok(bytes) => {
                    each(&piece[..bytes]);
                    if bytes < PIECE_BYTES / 4 && status.is_none() {
                        std::thread::sleep(PAUSE);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::System { what: "the trace", error }),
            }
        } else if status.is_some() {
            break;
        }
    }
    match status {
        Some(status) => Ok(status),
        None => wait(&mut child, &queue).map_err(waited),
    }
}

/// Waits for a child that has closed its trace, and passes signals on.
fn wait(child: &mut Child, queue: &SignalFd) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let mut polled = [PollFd::new(queue.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => pass_on(queue, child),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Passes on signals that another process has sent. The terminal sends its own to the program, too.
fn pass_on(queue: &SignalFd, child: &Child) {
    while let Ok(Some(signal)) = queue.read_signal() {
        let number = Signal::try_from(signal.ssi_signo.cast_signed());
        if let (Ok(number), true) = (number, signal.ssi_code <= 0)
            && number != Signal::SIGCHLD
        {
            // The child is a zombie at worst, as nothing has reaped it.
            let _ = kill(Pid::from_raw(child.id().cast_signed()), number);
        }
    }
}
