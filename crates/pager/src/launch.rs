//! Starting a program with the agent preloaded, and ending as it ended.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use tempfile::NamedTempFile;

use crate::agent::IMAGE;
use crate::error::Error;
use crate::protocol::SOCKET_VARIABLE;

const PRELOAD: &str = "LD_PRELOAD";

/// A program that was started, and what it needs while it runs.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) child: Child,
    /// The agent's image, which programs that the program executes load, too.
    _image: NamedTempFile,
}

/// Signals that whoever started us may send to end or to steer the program.
pub(crate) const FORWARDED: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Starts `command` with its agents told to announce themselves at `name`.
pub(crate) fn start(command: &[OsString], name: &str, mask: SigSet) -> Result<Launched, Error> {
    let (program, arguments) = command.split_first().ok_or(Error::NoProgram)?;
    let path = find(program)?;
    check(&path)?;
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
    let mut command = Command::new(program);
    command.args(arguments).env(PRELOAD, preload).env(SOCKET_VARIABLE, name);
    // SAFETY: both calls may be made between fork and exec.
    unsafe {
        command.pre_exec(move || {
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None)?;
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            Ok(())
        });
    }
    let child = command.spawn().map_err(|error| Error::Start { path, error })?;
    Ok(Launched { child, _image: image })
}

/// The file of `program`, as the shell finds it.
fn find(program: &OsString) -> Result<PathBuf, Error> {
    let named = Path::new(program);
    if named.components().count() > 1 {
        return Ok(named.to_owned());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(named))
        .find(|path| path.metadata().is_ok_and(|it| it.is_file() && it.mode() & 0o111 != 0))
        .ok_or_else(|| Error::NotFound { program: program.clone() })
}

/// Whether the agent can be preloaded into the program at `path`.
fn check(path: &Path) -> Result<(), Error> {
    let mut head = Vec::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(64 << 10).read_to_end(&mut head));
    read.map_err(|error| Error::Start { path: path.to_owned(), error })?;
    if head.starts_with(b"#!") {
        return Ok(());
    }
    match interpreter(&head) {
        Some(Some(name)) if name.contains("ld-linux") => Ok(()),
        Some(Some(name)) => Err(Error::Loader { path: path.to_owned(), loader: name }),
        Some(None) => Err(Error::Static { path: path.to_owned() }),
        None => Err(Error::Format { path: path.to_owned() }),
    }
}

/// The loader that a 64-bit ELF program names, if it names one; none for other files.
fn interpreter(head: &[u8]) -> Option<Option<String>> {
    const LOADER: u32 = 3;
    let word = |at: usize| head.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let half = |at: usize| head.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes);
    if head.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, entry, count) = (word(32)? as usize, half(54)?, half(56)?);
    for index in 0..usize::from(count) {
        let at = table + index * usize::from(entry);
        let kind = u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?);
        if kind == LOADER {
            let (start, bytes) = (word(at + 8)? as usize, word(at + 32)? as usize);
            let name = head.get(start..start + bytes.saturating_sub(1))?;
            return Some(Some(String::from_utf8_lossy(name).into_owned()));
        }
    }
    Some(None)
}

/// Ends this process as `status` says the program ended.
pub fn end_as(status: std::process::ExitStatus) -> io::Result<i32> {
    use std::os::unix::process::ExitStatusExt;
    if let Some(signal) = status.signal().and_then(|number| Signal::try_from(number).ok()) {
        // A signal that dumps core has done so once.
        nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0)?;
        // SAFETY: the default action takes no handler. SIGKILL has no other, and refuses.
        let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) };
        SigSet::from(signal).thread_unblock()?;
        nix::sys::signal::raise(signal)?;
    }
    Ok(status.code().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::interpreter;

    #[test]
    fn a_loader_is_found_in_programs_that_have_one() {
        let shell = std::fs::read("/bin/sh").expect("every machine has a shell");
        let loader = interpreter(&shell).flatten().expect("it is dynamically linked");
        assert!(loader.contains("ld-linux"), "{loader}");
        assert_eq!(interpreter(b"no program"), None);
        for bytes in 0..shell.len().min(400) {
            let _ = interpreter(&shell[..bytes]);
        }
    }
}
