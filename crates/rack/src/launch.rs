//! Runs a program with the library preloaded, and adds up what it did.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::unistd::Pid;

use crate::accounts::{Accounts, Report};
use crate::offer::VARIABLE;
use crate::{Config, Error, uring};

/// The library that is preloaded into programs.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));
const PRELOAD: &str = "LD_PRELOAD";
/// Signals with which this process's caller may end or control the program.
const FORWARDED: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Time that a program has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// Runs `words` in the rack, to its end.
///
/// # Errors
/// [`Error`], if the program was not started.
pub fn run(config: &Config, words: &[OsString]) -> Result<(Report, ExitStatus), Error> {
    let program = words.first().cloned().unwrap_or_default();
    let failed = |what: String| {
        let program = program.to_string_lossy().into_owned();
        Error::Program { program, what }
    };
    check(&program).map_err(failed)?;
    let accounts = Accounts::open(&config.name)?;
    let library = library().map_err(|error| failed(format!("its library: {error}")))?;
    let mut preload = library.path().as_os_str().to_owned();
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let run = std::process::id();
    let mut command = Command::new(&program);
    command.args(&words[1..]).env(PRELOAD, preload);
    command.env(VARIABLE, settings(config, run, accounts.path()));
    let mask: SigSet = FORWARDED.into_iter().collect();
    let before = mask.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let before = before.map_err(|error| failed(error.to_string()))?;
    // The program must not inherit that these signals are blocked: it would never see them.
    // SAFETY: all these calls may be used between fork and exec.
    unsafe {
        command.pre_exec(move || {
            before.thread_set_mask()?;
            uring::refuse()
        });
    }
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let has_ended = Arc::new(AtomicBool::new(false));
    forward(mask, &child, &has_ended);
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    has_ended.store(true, Ordering::Release);
    Ok((accounts.settle(&config.name), status))
}

/// Passes signals on to the program. One that still runs [`GRACE`] after SIGTERM is killed; SIGINT
/// is a program's own affair, such as an interpreter's.
fn forward(mask: SigSet, child: &Child, has_ended: &Arc<AtomicBool>) {
    let Ok(number) = i32::try_from(child.id()) else { return };
    let program = Pid::from_raw(number);
    let has_ended = Arc::clone(has_ended);
    std::thread::spawn(move || {
        let mut is_told = false;
        while let Ok(signal) = mask.wait() {
            // Signals fail only if the program has ended.
            if !has_ended.load(Ordering::Acquire) {
                let _ = kill(program, signal);
            }
            if signal != Signal::SIGTERM || is_told {
                continue;
            }
            is_told = true;
            let has_ended = Arc::clone(&has_ended);
            std::thread::spawn(move || {
                std::thread::sleep(GRACE);
                if !has_ended.load(Ordering::Acquire) {
                    let _ = kill(program, Signal::SIGKILL);
                }
            });
        }
    });
}

/// Writes the library to a file that every program of the run may load.
fn library() -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("ethermem-rack-").suffix(".so").tempfile()?;
    file.write_all(LIBRARY)?;
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(file)
}

fn settings(config: &Config, run: u32, accounts: &Path) -> String {
    let numbers: Vec<String> =
        config.nodes.iter().map(|node| u32::from(node.address).to_string()).collect();
    let others = config.others.iter().flat_map(|other| &other.programs);
    let others: Vec<String> =
        others.map(|it| format!("{}/{}", u32::from(it.address), it.bits)).collect();
    let (name, ring, pool) = (&config.name, config.ring_bytes, config.pool_bytes);
    let (accounts, nodes, others) = (accounts.display(), numbers.join(","), others.join(","));
    format!("{name};{ring};{pool};{run};{accounts};{nodes};{others}")
}

/// Refuses a program that loads no library: its sockets would stay with the kernel in silence.
fn check(program: &OsStr) -> Result<(), String> {
    let path = find(program).ok_or("no such program")?;
    let file = File::open(&path).map_err(|error| error.to_string())?;
    let mut start = [0u8; 2];
    if (&file).read_exact(&mut start).is_ok() && &start == b"#!" {
        return Ok(());
    }
    match loads_libraries(&file) {
        Some(true) => Ok(()),
        Some(false) => {
            Err("is statically linked, so no library can be preloaded into it".to_owned())
        }
        None => Err("is no program for this machine".to_owned()),
    }
}

/// The file of `program`, found as the shell finds it.
fn find(program: &OsStr) -> Option<PathBuf> {
    let named = Path::new(program);
    if named.components().count() > 1 {
        return Some(named.to_owned()).filter(|path| path.is_file());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(named))
        .find(|path| path.metadata().is_ok_and(|it| it.is_file() && it.mode() & 0o111 != 0))
}

/// True if an ELF file of 64 bits names a loader; `None` for other files.
fn loads_libraries(file: &File) -> Option<bool> {
    const HEADER_BYTES: usize = 64;
    const SEGMENT_BYTES: u64 = 56;
    const LOADER: u32 = 3;
    let mut header = [0u8; HEADER_BYTES];
    file.read_exact_at(&mut header, 0).ok()?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let offset = u64::from_le_bytes(header[32..40].try_into().ok()?);
    let count = u16::from_le_bytes(header[56..58].try_into().ok()?);
    let mut kind = [0u8; 4];
    for index in 0..u64::from(count) {
        let at = offset.checked_add(index * SEGMENT_BYTES)?;
        file.read_exact_at(&mut kind, at).ok()?;
        if u32::from_le_bytes(kind) == LOADER {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_without_a_loader_are_refused() {
        assert_eq!(check(OsStr::new("sh")), Ok(()));
        assert!(check(OsStr::new("no-such-program")).unwrap_err().contains("no such program"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("static");
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(64, 0);
        std::fs::write(&path, &bytes).unwrap();
        assert!(check(path.as_os_str()).unwrap_err().contains("statically linked"));
        std::fs::write(&path, "text").unwrap();
        assert!(check(path.as_os_str()).unwrap_err().contains("no program"));
    }
}
