//! Operations in flight.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use ethermem::Unfinished;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::Shared;
use super::error::{StalledError, raised};
use super::region::Region;
use super::store::Store;

/// Result of an operation.
pub(crate) enum Answer {
    Nothing,
    Bytes(Vec<u8>),
    Word(u64),
    Flag(bool),
    Region(Shared, ethermem::Region),
    Chased(Option<ethermem::Chased>),
    Store(Shared, ethermem_kv::Store),
}

impl Answer {
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self {
            Answer::Nothing => py.None(),
            Answer::Bytes(bytes) => PyBytes::new(py, &bytes).into_any().unbind(),
            Answer::Word(word) => word.into_pyobject(py)?.into_any().unbind(),
            Answer::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any().unbind(),
            Answer::Region(pool, region) => Py::new(py, Region::new(pool, region))?.into_any(),
            Answer::Store(pool, store) => Py::new(py, Store::new(pool, store))?.into_any(),
            Answer::Chased(None) => py.None(),
            Answer::Chased(Some(found)) => {
                let value = PyBytes::new(py, &found.value);
                (found.address.0, value).into_pyobject(py)?.into_any().unbind()
            }
        })
    }
}

/// The store's errors include the pool's.
pub(crate) type Outcome = Result<Answer, ethermem_kv::Error>;
pub(crate) type Open = Pin<Box<dyn Future<Output = Outcome> + Send>>;

pub(crate) enum State {
    Ended(Outcome),
    Open(Open),
    Taken,
}

/// A submitted operation: `wait()` for it, `poll()` it, or `await` it in a coroutine of `Pool.run`
/// or `Pool.tasks`. Its result is returned once.
#[pyclass(frozen, module = "ethermem._native")]
pub(crate) struct Pending {
    pool: Shared,
    state: Mutex<State>,
}

impl Pending {
    /// Begins an operation, and polls whether it has ended at once.
    pub(crate) fn new(
        pool: &Shared,
        operation: impl Future<Output = Outcome> + Send + 'static,
    ) -> Pending {
        let mut operation: Open = Box::pin(operation);
        let state = match look(&mut operation) {
            Some(outcome) => State::Ended(outcome),
            None => State::Open(operation),
        };
        Pending { pool: pool.clone(), state: Mutex::new(state) }
    }

    /// An operation whose result is converted by `convert`.
    pub(crate) fn of<T: 'static>(
        pool: &Shared,
        operation: ethermem::Pending<T>,
        convert: impl FnOnce(T) -> Outcome + Send + 'static,
    ) -> Pending {
        Pending::new(pool, async move { convert(operation.await?) })
    }

    /// Takes the state out, for a coroutine of `pool`.
    pub(crate) fn take_of(&self, pool: &Shared) -> PyResult<State> {
        if Arc::ptr_eq(&self.pool, pool) {
            return self.take();
        }
        let line = "an operation of another pool is awaited: must be one of this pool";
        Err(PyRuntimeError::new_err(line))
    }

    fn take(&self) -> PyResult<State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Taken) {
            State::Taken => Err(PyRuntimeError::new_err("a result is given once")),
            state => Ok(state),
        }
    }
}

/// Waits without the interpreter's lock. A signal handler that raises ends the wait.
pub(crate) fn attended<R: Send>(
    py: Python<'_>,
    wait: impl FnOnce(&mut (dyn FnMut() -> bool + Send)) -> Result<R, Unfinished> + Send,
) -> PyResult<R> {
    let mut signal = None;
    let waited = py.detach(|| {
        wait(&mut || {
            signal = Python::attach(|py| py.check_signals().err());
            signal.is_some()
        })
    });
    match (signal, waited) {
        (_, Ok(result)) => Ok(result),
        (Some(raised), Err(_)) => Err(raised),
        (None, Err(unfinished)) => Err(StalledError::new_err(unfinished.to_string())),
    }
}

fn look(operation: &mut Open) -> Option<Outcome> {
    match operation.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

#[pymethods]
impl Pending {
    /// Waits for the result. On a simulated fabric, virtual time advances meanwhile. Other Python
    /// threads run, and Ctrl-C ends the waiting, but not the operation.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.finish(py)?.into_python(py)
    }

    /// Returns whether the result is there, without waiting. On a simulated fabric, each poll
    /// advances virtual time by one event of the pool.
    fn poll(&self, py: Python<'_>) -> bool {
        if self.ended() {
            return true;
        }
        py.detach(|| self.pool.step());
        self.ended()
    }

    fn __await__(slf: Py<Pending>) -> Waiting {
        Waiting(Mutex::new(Some(slf)))
    }
}

impl Pending {
    /// Waits as `Pending.wait`.
    pub(crate) fn finish(&self, py: Python<'_>) -> PyResult<Answer> {
        let mut operation = match self.take()? {
            State::Open(operation) => operation,
            State::Ended(outcome) => return outcome.map_err(raised),
            State::Taken => unreachable!("taking it fails then"),
        };
        attended(py, |is_interrupted| self.pool.run_attended(&mut operation, is_interrupted))?
            .map_err(raised)
    }

    fn ended(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Open(operation) = &mut *state
            && let Some(outcome) = look(operation)
        {
            *state = State::Ended(outcome);
        }
        !matches!(*state, State::Open(_))
    }
}

/// Hands the operation to the driver of the coroutine, and its result back to the coroutine.
#[pyclass(frozen, module = "ethermem._native")]
pub(crate) struct Waiting(Mutex<Option<Py<Pending>>>);

#[pymethods]
impl Waiting {
    fn __iter__(slf: Py<Waiting>) -> Py<Waiting> {
        slf
    }

    fn __next__(&self) -> PyResult<Py<Pending>> {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Called again, it returns None as the result: any other result arrives by `send`.
        pending.take().ok_or_else(|| PyStopIteration::new_err(()))
    }

    #[expect(clippy::unused_self, reason = "a coroutine sends to what it awaits")]
    fn send(&self, value: Py<PyAny>) -> PyResult<Py<Pending>> {
        Err(PyStopIteration::new_err((value,)))
    }
}
