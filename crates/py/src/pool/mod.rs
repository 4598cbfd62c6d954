//! Remote memory: the library's pool for Python.

mod buffer;
mod error;
mod pending;
mod region;
mod store;
mod tasks;
mod thread;

use std::sync::{Arc, Mutex, PoisonError};

use ethermem::OpenError;
use pyo3::prelude::*;

pub(crate) use error::{
    AccessError, EndingError, ForkedError, FullError, LengthError, LostError, MisalignedError,
    NoAnswerError, NodeError, NotHeldError, OffloadError, OffloadStoppedError, OwnerDiedError,
    PoolError, ProcessEndedError, RefusedError, RestartedError, StalledError, UncertainError,
    UnmappedError, UnreachableError, mark_retryable,
};
pub(crate) use pending::Pending;
pub(crate) use region::Region;
pub(crate) use store::{Client, Store};
pub(crate) use tasks::Tasks;
pub(crate) use thread::Thread;

use crate::error::Failure;
use error::raised;

/// The pool that an object belongs to.
pub(crate) type Shared = Arc<ethermem::Pool>;

/// Remote memory, on the fabric that its URL names.
#[pyclass(frozen, module = "ethermem._native")]
pub(crate) struct Pool {
    pool: Shared,
    closed: Mutex<bool>,
}

impl Pool {
    pub(crate) fn shared(&self) -> &Shared {
        &self.pool
    }
}

#[pymethods]
impl Pool {
    /// Opens the pool that `url` names: `local:`, `sim:edm?nodes=144&link_gbps=100`,
    /// `udp://host:7400`, `ring://eth0`, `node://host:7400`.
    #[staticmethod]
    fn open(py: Python<'_>, url: &str) -> PyResult<Pool> {
        let opened = py.detach(|| ethermem::Pool::open(url));
        let pool = opened.map_err(|error| match error {
            OpenError::Unreachable { .. } => UnreachableError::new_err(error.to_string()),
            _ => Failure::Input(error.to_string()).into(),
        })?;
        Ok(Pool { pool: Arc::new(pool), closed: Mutex::default() })
    }

    /// URL by which it was opened.
    #[getter]
    fn url(&self) -> &str {
        self.pool.url()
    }

    /// The transport of a `node:` pool, with the measured round trips of both transports, or the
    /// reason why there is only one. `None` if the URL leaves no choice.
    #[getter]
    fn choice(&self) -> Option<&str> {
        self.pool.choice()
    }

    /// Numbers of compute nodes and of memory nodes.
    #[getter]
    fn nodes(&self) -> (u16, u16) {
        self.pool.nodes()
    }

    /// Picoseconds since it was opened: in the fabric's virtual time if it has one.
    fn now_ps(&self) -> u64 {
        self.pool.now().0
    }

    /// Number of events that the simulated fabric has handled; 0 on other pools.
    #[getter]
    fn events(&self) -> u64 {
        self.pool.events()
    }

    /// True if time is a simulated fabric's, which advances only in operations and sleeps.
    #[getter]
    fn is_simulated(&self) -> bool {
        self.pool.is_simulated()
    }

    /// Runs until an operation ends or for a short rest. Returns false if nothing is in flight.
    fn step(&self, py: Python<'_>) -> bool {
        py.detach(|| self.pool.step())
    }

    /// Creates a process and its first thread, on the given compute node or the next in round-robin
    /// order.
    #[pyo3(signature = (compute_node=None))]
    fn thread(&self, compute_node: Option<u16>) -> PyResult<Thread> {
        let thread = match compute_node {
            Some(node) => self.pool.thread_on(node),
            None => self.pool.thread(),
        };
        Ok(Thread::new(self.pool.clone(), thread.map_err(raised)?))
    }

    /// Makes a list of coroutines that run together.
    fn tasks(&self) -> Tasks {
        Tasks::new(self.pool.clone())
    }

    /// Runs a coroutine that awaits operations of this pool, and returns its result.
    fn run(&self, py: Python<'_>, coroutine: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let mut results = tasks::run(py, &self.pool, vec![coroutine])?;
        Ok(results.pop().unwrap_or_else(|| py.None()))
    }

    /// Ends background traffic, and checks the invariants of a simulated fabric. A second call is a
    /// no-op.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *closed, true) {
            return Ok(());
        }
        drop(closed);
        let pool = ethermem::Pool::clone(&self.pool);
        py.detach(|| pool.close()).map_err(raised)
    }

    fn __enter__(slf: Py<Pool>) -> Py<Pool> {
        slf
    }

    /// Closes the pool. An exception in flight takes precedence over an error of closing.
    #[pyo3(signature = (kind, _error, _trace))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if kind.is_some() { Ok(()) } else { self.close(py) }
    }

    fn __repr__(&self) -> String {
        format!("Pool({:?})", self.pool.url())
    }
}
