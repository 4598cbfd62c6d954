//! Long calls: other Python threads run meanwhile, and Ctrl-C ends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::Failure;

/// How long a signal may wait to be seen.
const LOOK: Duration = Duration::from_millis(50);
/// What a run gets to end by itself and clear away what it began to write. A read from a pipe that
/// nobody writes does not end, and is left behind.
const PATIENCE: Duration = Duration::from_millis(500);

/// Ends calls on other threads, where no signal comes: those that were given it.
#[pyclass(frozen, module = "ethermem._native")]
#[derive(Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Stop {
        Stop::default()
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does `work` on a thread of its own, without the interpreter's lock, and waits for it. `stop`,
/// and a signal whose handler raises, set the flag that `work` is given.
pub(crate) fn attended<T: Send + 'static>(
    py: Python<'_>,
    stop: Option<&Stop>,
    work: impl FnOnce(&AtomicBool) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let interrupt = stop.map(|stop| Arc::clone(&stop.0)).unwrap_or_default();
    let (sender, mut receiver) = channel();
    let flag = Arc::clone(&interrupt);
    thread::spawn(move || {
        // Nobody waits any more after an interrupt.
        let _ = sender.send(work(&flag));
    });
    loop {
        match wait(py, &mut receiver, LOOK) {
            Ok(result) => return result.map_err(PyErr::from),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(raised) = py.check_signals() {
                    interrupt.store(true, Ordering::Relaxed);
                    let _ = wait(py, &mut receiver, PATIENCE);
                    return Err(raised);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                let what = "the thread of a run ended without a result".to_owned();
                return Err(Failure::Broken { what, command: "the same call".to_owned() }.into());
            }
        }
    }
}

/// Other Python threads run meanwhile. `&mut` because a receiver serves one thread at a time.
fn wait<T: Send>(
    py: Python<'_>,
    receiver: &mut Receiver<T>,
    time: Duration,
) -> Result<T, RecvTimeoutError> {
    py.detach(move || receiver.recv_timeout(time))
}
