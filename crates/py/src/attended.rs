//! Long calls: other Python threads run meanwhile, and Ctrl-C interrupts the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::Failure;

/// Longest delay until a signal is noticed.
const LOOK: Duration = Duration::from_millis(50);
/// How long an interrupted run may take to end by itself and remove partial output. A run that
/// reads from a pipe without a writer does not end, and is left behind.
const PATIENCE: Duration = Duration::from_millis(500);

/// Interrupts calls on other threads, which receive no signal: those that were given this object.
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

/// Does `work` on a thread of its own, without the interpreter's lock, and waits for it. `stop`, or
/// a signal whose handler raises, sets the flag that `work` receives.
pub(crate) fn attended<T: Send + 'static>(
    py: Python<'_>,
    stop: Option<&Stop>,
    work: impl FnOnce(&AtomicBool) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let interrupt = stop.map(|stop| Arc::clone(&stop.0)).unwrap_or_default();
    let (sender, mut receiver) = channel();
    let flag = Arc::clone(&interrupt);
    thread::spawn(move || {
        // After an interrupt no thread waits any more.
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

/// Waits while other Python threads run. `&mut` because a receiver serves one thread at a time.
fn wait<T: Send>(
    py: Python<'_>,
    receiver: &mut Receiver<T>,
    time: Duration,
) -> Result<T, RecvTimeoutError> {
    py.detach(move || receiver.recv_timeout(time))
}
