//! Ctrl-C: a flag that runs look at, and an end even where nothing looks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::output::say;

/// What a run gets to end by itself and clear away what it began to write.
static PATIENCE_MS: AtomicU64 = AtomicU64::new(500);
/// As shells say "ended by SIGINT".
const EXIT_CODE: i32 = 130;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The command has come to its end by itself.
static OVER: AtomicBool = AtomicBool::new(false);
static LEFT: OnceLock<String> = OnceLock::new();

/// Says what an interrupted command leaves behind, once it leaves something.
pub(crate) fn leaves(what: String) {
    // A command says it once.
    let _ = LEFT.set(what);
}

/// What an interrupted command leaves behind.
pub(crate) fn left() -> &'static str {
    LEFT.get().map_or("no file was written", String::as_str)
}

/// Set by Ctrl-C, SIGTERM and SIGHUP.
pub(crate) fn flag() -> &'static AtomicBool {
    &INTERRUPTED
}

/// Sets the flag when a signal comes. Who does not look at it, as while a pipe gives no input, is
/// ended after [`PATIENCE_MS`], and by a second signal at once.
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

/// Gives a command that has more to do at its end so long for it.
#[cfg(feature = "serve")]
pub(crate) fn patience(patience: Duration) {
    let ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    PATIENCE_MS.store(ms, Ordering::Relaxed);
}

/// The command has ended in its time. What is left to do is the system's, as giving back memory,
/// and keeps its exit code.
#[cfg(feature = "serve")]
pub(crate) fn is_over() {
    OVER.store(true, Ordering::Relaxed);
}
