//! Sweeps: their points as tasks, which run in any process.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ethermem_sim::output::{TableStyle, to_json};
use ethermem_sim::scenario::Setting;
use ethermem_sim::sweep::{Record, Session, Task, TaskFailure, summaries_table};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::attended::{Stop, attended};
use crate::error::Failure;

/// A sweep in progress, with its journal, which is locked until the sweep is closed.
#[pyclass(frozen, module = "ethermem._native")]
pub(crate) struct Sweep(Mutex<Option<Arc<Session>>>);

impl Sweep {
    fn session(&self) -> PyResult<Arc<Session>> {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        session.clone().ok_or_else(|| PyValueError::new_err("the sweep is closed"))
    }
}

#[pymethods]
impl Sweep {
    #[new]
    fn new(py: Python<'_>, file: PathBuf, settings: Vec<String>, out: PathBuf) -> PyResult<Sweep> {
        attended(py, None, move |_| {
            let settings = settings.iter().map(|setting| setting.parse());
            let settings: Vec<Setting> = settings.collect::<Result<_, _>>()?;
            let session = Session::open(&file, &settings, &out)?;
            Ok(Sweep(Mutex::new(Some(Arc::new(session)))))
        })
    }

    /// Number of its points.
    #[getter]
    fn points(&self) -> PyResult<usize> {
        Ok(self.session()?.sweep().points.len())
    }

    /// The file that stores finished points.
    #[getter]
    fn journal(&self) -> PyResult<String> {
        Ok(self.session()?.journal().display().to_string())
    }

    /// Indices of the points to run, in the best order.
    fn missing(&self) -> PyResult<Vec<usize>> {
        Ok(self.session()?.missing())
    }

    /// A point as `run_task` takes it, in this process or another.
    fn task(&self, index: usize) -> PyResult<String> {
        let session = self.session()?;
        let sweep = session.sweep();
        let point = sweep.points.get(index);
        let point = point.ok_or_else(|| PyIndexError::new_err("no such point"))?;
        Ok(to_json(&sweep.task(point).map_err(Failure::from)?))
    }

    /// Stores a record that `run_task` returned; returns when it is on disk.
    fn add(&self, py: Python<'_>, record: &str) -> PyResult<()> {
        let record: Record = serde_json::from_str(record)
            .map_err(|error| Failure::Input(format!("not a record of a point: {error}")))?;
        let session = self.session()?;
        Ok(py.detach(|| session.add(record)).map_err(Failure::from)?)
    }

    /// Unlocks the journal, even if another object, such as a traceback, still references the
    /// sweep.
    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Writes the results. Returns the statistics of each place over its seeds, as JSON and as the
    /// table that the command prints.
    fn write(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let session = self.session()?;
        attended(py, None, move |_| {
            let summaries = session.write()?;
            let axes = &session.sweep().axes;
            Ok((to_json(&summaries), summaries_table(axes, &summaries, TableStyle::Plain)))
        })
    }
}

/// Runs a point of a sweep, and returns its record.
#[pyfunction]
#[pyo3(signature = (task, stop=None))]
pub(crate) fn run_task(py: Python<'_>, task: String, stop: Option<&Stop>) -> PyResult<String> {
    attended(py, stop, move |interrupt| {
        let task: Task = serde_json::from_str(&task)
            .map_err(|error| Failure::Input(format!("not a task of a sweep: {error}")))?;
        match task.run(interrupt) {
            Ok(record) => Ok(to_json(&record)),
            Err(TaskFailure::Input(error)) => Err(error.into()),
            Err(TaskFailure::Run(failure)) => Err(Failure::of_run(&failure, &task.command())),
        }
    })
}
