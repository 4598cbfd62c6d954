//! Ctrl-C: a flag that runs poll, and a forced end where nothing polls it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::output::say;

/// Time in ms that a run has to end by itself and remove partial output.
static PATIENCE_MS: AtomicU64 = AtomicU64::new(500);
/// Exit code by which shells report SIGINT.
const EXIT_CODE: i32 = 130;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// True once the command has ended by itself.
static OVER: AtomicBool = AtomicBool::new(false);
static LEFT: OnceLock<String> = OnceLock::new();

/// Sets the description of what an interrupted command leaves behind, once it leaves something.
pub(crate) fn leaves(what: String) {
    // A command sets it only once.
    let _ = LEFT.set(what);
}

/// Description of what an interrupted command leaves behind.
pub(crate) fn left() -> &'static str {
    LEFT.get().map_or("no file was written", String::as_str)
}

/// The flag that Ctrl-C, SIGTERM and SIGHUP set.
pub(crate) fn flag() -> &'static AtomicBool {
    &INTERRUPTED
}

/// Sets the flag when a signal arrives. A command that does not poll it, such as one that reads an
/// empty pipe, is ended after [`PATIENCE_MS`], and by a second signal at once.
pub(crate) fn listen() {
    let listening = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_CODE);
        }
        std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(PATIENCE_MS.load(Ordering::Relaxed)));
            if OVER.load(Ordering::Relaxed) {
                return;
            }
            say(format_args!("interrupted; {}", left()));
            std::process::exit(EXIT_CODE);
        });
    });
    if let Err(error) = listening {
        say(format_args!("note: Ctrl-C ends this without clearing away unfinished files: {error}"));
    }
}

/// Extends the time for a command that has more to do at its end.
pub(crate) fn patience(patience: Duration) {
    let ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    PATIENCE_MS.store(ms, Ordering::Relaxed);
}

/// Notes that the command has ended in time. The rest, such as freeing memory, is the system's
/// work, and keeps the exit code.
pub(crate) fn is_over() {
    OVER.store(true, Ordering::Relaxed);
}
