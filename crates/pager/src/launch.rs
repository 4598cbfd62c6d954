//! Starts a program with the agent in it, and ends this process as the program ended.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::{SigSet, Signal};
use object::elf::{EM_X86_64, ET_DYN, ET_EXEC, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};
use tempfile::NamedTempFile;

use crate::agent::IMAGE;
use crate::error::Error;
use crate::follow::Followed;
use crate::inject::inject;
use crate::keeper::{self, Keeper, Plan};
use crate::protocol::SOCKET_VARIABLE;

pub(crate) const PRELOAD: &str = "LD_PRELOAD";

/// A program that was started, and the files that it needs while it runs.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) keeper: Keeper,
    /// The agent's image, which executed programs also load.
    _image: NamedTempFile,
}

/// Signals with which this process's caller may end or control the program.
pub(crate) const FORWARDED: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Starts `command` with its agents told to connect to `name`. Also returns whether the program's
/// executions are reported, where the agent was written into it.
pub(crate) fn start(
    command: &[OsString],
    name: &str,
    mask: SigSet,
) -> Result<(Launched, Followed), Error> {
    let program = command.first().ok_or(Error::NoProgram)?;
    let path = find(program)?;
    let way = way_into(&path)?;
    let mut image = tempfile::Builder::new()
        .prefix("ethermem-agent-")
        .suffix(".so")
        .tempfile()
        .map_err(Error::Image)?;
    image.write_all(IMAGE).map_err(Error::Image)?;
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(image.path(), readable).map_err(Error::Image)?;
    let mut preload = image.path().as_os_str().to_owned();
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let unnamed = |_| Error::NotFound { program: program.clone() };
    let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(unnamed);
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    variables.insert(PRELOAD.into(), preload);
    variables.insert(SOCKET_VARIABLE.into(), name.into());
    let environment = variables.into_iter().map(|(name, value)| {
        let mut both = name;
        both.push("=");
        both.push(value);
        text(&both)
    });
    let plan = Plan {
        path: text(path.as_os_str())?,
        arguments: command.iter().map(|word| text(word)).collect::<Result<_, _>>()?,
        environment: environment.collect::<Result<_, _>>()?,
        mask,
        leftover: text(image.path().as_os_str())?,
    };
    let (keeper, followed) = begin(&plan, path, way)?;
    Ok((Launched { keeper, _image: image }, followed))
}

/// Starts a keeper and, under it, the program, with the agent written into it where no loader
/// preloads it.
fn begin(plan: &Plan, path: PathBuf, way: Way) -> Result<(Keeper, Followed), Error> {
    let ready = keeper::start(plan)?;
    let number = ready.keeper.first.number();
    let seized = match way {
        Way::Preloaded => Ok(()),
        Way::Injected => ptrace::seize(number, ptrace::Options::PTRACE_O_TRACEEXEC),
    };
    if let Err(error) = seized {
        ready.keeper.end();
        return Err(Error::Inject { path, error: error.into() });
    }
    let keeper = match ready.go() {
        Ok(keeper) => keeper,
        Err((error, keeper)) => {
            keeper.end();
            return Err(Error::Start { path, error });
        }
    };
    if way == Way::Preloaded {
        return Ok((keeper, Followed::Already));
    }
    match inject(number) {
        Ok(followed) => Ok((keeper, followed)),
        Err(error) => {
            // The program may be stopped, and would wait for ever.
            keeper.end();
            Err(Error::Inject { path, error })
        }
    }
}

/// The file of `program`, found as the shell finds it.
pub(crate) fn find(program: &OsString) -> Result<PathBuf, Error> {
    let named = Path::new(program);
    if program.as_bytes().contains(&b'/') {
        return Ok(named.to_owned());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(named))
        .find(|path| path.metadata().is_ok_and(|it| it.is_file() && it.mode() & 0o111 != 0))
        .ok_or_else(|| Error::NotFound { program: program.clone() })
}

/// How the agent enters a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// glibc's loader preloads it.
    Preloaded,
    /// It is written into the program.
    Injected,
}

pub(crate) fn way_into(path: &Path) -> Result<Way, Error> {
    let failed = |error| Error::Start { path: path.to_owned(), error };
    let file = std::fs::File::open(path).map_err(failed)?;
    let content = ReadCache::new(file);
    let script = (&content).read_bytes_at(0, 2);
    if script.is_ok_and(|bytes| bytes == b"#!") {
        return Ok(Way::Preloaded);
    }
    way_into_file(&content).ok_or_else(|| Error::Format { path: path.to_owned() })
}

/// How the agent enters a program for this machine's architecture; `None` for other files.
fn way_into_file<'f>(file: impl ReadRef<'f>) -> Option<Way> {
    let header = FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let is_program = matches!(header.e_type(endian), ET_EXEC | ET_DYN);
    if !is_program || header.e_machine(endian) != EM_X86_64 {
        return None;
    }
    for segment in header.program_headers(endian, file).ok()? {
        if let Some(loader) = segment.interpreter(endian, file).ok()? {
            let is_glibc = loader.windows(8).any(|part| part == b"ld-linux");
            return Some(if is_glibc { Way::Preloaded } else { Way::Injected });
        }
    }
    Some(Way::Injected)
}

/// Ends this process with the program's `status`.
pub fn end_as(status: std::process::ExitStatus) -> io::Result<i32> {
    use std::os::unix::process::ExitStatusExt;
    if let Some(signal) = status.signal() {
        // The program has already dumped core, if its signal does that.
        nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0)?;
        // The signal is a number, as real-time signals have no names. The default action takes no
        // handler. SIGKILL has no other action, so the call fails harmlessly.
        // SAFETY: the set is filled in before it is read, and nothing else is passed by address.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, signal);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
            Errno::result(libc::raise(signal))?;
        }
    }
    Ok(status.code().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::{Way, way_into_file};
    use crate::agent::IMAGE;

    #[test]
    fn a_loader_is_found_in_programs_that_have_one() {
        let shell = std::fs::read("/bin/sh").expect("every machine has a shell");
        assert_eq!(way_into_file(&shell[..]), Some(Way::Preloaded));
        assert_eq!(way_into_file(IMAGE), Some(Way::Injected), "it names no loader");
        assert_eq!(way_into_file(&b"no program"[..]), None);
        let head = &shell[..shell.len().min(400)];
        for bytes in 0..head.len() {
            let _ = way_into_file(&head[..bytes]);
        }
    }
}
