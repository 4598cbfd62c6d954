//! Coroutines of Python as tasks of a pool, in its time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyStopIteration, PyTypeError};
use pyo3::prelude::*;

use super::Shared;
use super::error::raised;
use super::pending::{Pending, State, attended};

/// Coroutines that run together, as many clients on as many nodes: in one machine thread, in an
/// order that depends only on the pool.
#[pyclass(frozen, module = "ethermem._native")]
pub(crate) struct Tasks {
    pool: Shared,
    coroutines: Mutex<Vec<Py<PyAny>>>,
}

impl Tasks {
    pub(crate) fn new(pool: Shared) -> Tasks {
        Tasks { pool, coroutines: Mutex::default() }
    }
}

#[pymethods]
impl Tasks {
    /// Adds a coroutine.
    fn spawn(&self, coroutine: Py<PyAny>) {
        self.coroutines.lock().unwrap_or_else(PoisonError::into_inner).push(coroutine);
    }

    /// Runs all coroutines until they complete, and returns their results. The first that fails
    /// ends all others at their next await, and its error is raised.
    fn run(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let coroutines =
            std::mem::take(&mut *self.coroutines.lock().unwrap_or_else(PoisonError::into_inner));
        run(py, &self.pool, coroutines)
    }
}

/// Runs coroutines together; see [`Tasks::run`].
pub(crate) fn run(
    py: Python<'_>,
    pool: &Shared,
    coroutines: Vec<Py<PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    attended(py, |is_interrupted| {
        let (tasks, failed) = (pool.tasks(), Rc::new(Cell::new(None)));
        let stop = Rc::new(Cell::new(false));
        let results: Vec<_> = coroutines.iter().map(|_| Rc::new(RefCell::new(None))).collect();
        for (coroutine, result) in coroutines.into_iter().zip(results.iter().cloned()) {
            let (failed, stop, pool) = (failed.clone(), stop.clone(), pool.clone());
            tasks.spawn(async move {
                match drive(&pool, coroutine, &stop).await {
                    Ok(value) => drop(result.replace(value)),
                    Err(error) if !stop.replace(true) => failed.set(Some(error)),
                    Err(_) => {}
                }
            });
        }
        let done = tasks.run_attended(is_interrupted);
        match failed.take() {
            Some(error) => Ok(Err(error)),
            None => done.map(|()| Ok(results.iter().filter_map(|result| result.take()).collect())),
        }
    })?
}

/// One step of a coroutine: the awaited operation, or the result.
enum Step {
    Awaits(State),
    Returned(Py<PyAny>),
}

/// Runs a coroutine to its end; `None` if it was ended because another one failed.
async fn drive(
    pool: &Shared,
    coroutine: Py<PyAny>,
    stop: &Cell<bool>,
) -> PyResult<Option<Py<PyAny>>> {
    let mut answer = Python::attach(|py| Ok(py.None()));
    loop {
        let step = Python::attach(|py| {
            if stop.get() {
                coroutine.call_method0(py, "close")?;
                return Ok(None);
            }
            py.check_signals()?;
            resume(py, pool, &coroutine, answer).map(Some)
        })?;
        let outcome = match step {
            None => return Ok(None),
            Some(Step::Returned(value)) => return Ok(Some(value)),
            Some(Step::Awaits(State::Ended(outcome))) => outcome,
            Some(Step::Awaits(State::Open(operation))) => operation.await,
            Some(Step::Awaits(State::Taken)) => unreachable!("taking it fails then"),
        };
        answer = match outcome {
            Ok(value) => Python::attach(|py| value.into_python(py)),
            Err(error) => Err(raised(error)),
        };
    }
}

fn resume(
    py: Python<'_>,
    pool: &Shared,
    coroutine: &Py<PyAny>,
    answer: PyResult<Py<PyAny>>,
) -> PyResult<Step> {
    let sent = match answer {
        Ok(value) => coroutine.call_method1(py, "send", (value,)),
        Err(error) => coroutine.call_method1(py, "throw", (error,)),
    };
    match sent {
        Ok(awaited) => {
            let pending = awaited.bind(py).cast::<Pending>().map_err(|_| {
                PyTypeError::new_err("awaited is no operation: must be an operation of this pool")
            })?;
            Ok(Step::Awaits(pending.get().take_of(pool)?))
        }
        Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
            Ok(Step::Returned(error.value(py).getattr("value")?.unbind()))
        }
        Err(error) => Err(error),
    }
}
