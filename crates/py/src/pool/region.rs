//! Regions.

use ethermem::{Permissions, ProcessId};
use pyo3::prelude::*;

use super::Shared;
use super::buffer;
use super::error::raised;
use super::pending::{Answer, Pending};
use super::thread::{Thread, permissions};

/// A region of remote memory, and a thread to access it by. `with` frees it at its end.
#[pyclass(frozen, module = "ethermem._native")]
pub(crate) struct Region {
    pool: Shared,
    region: ethermem::Region,
}

impl Region {
    pub(crate) fn new(pool: Shared, region: ethermem::Region) -> Region {
        Region { pool, region }
    }
}

#[pymethods]
impl Region {
    /// Address of its first byte.
    #[getter]
    fn address(&self) -> u64 {
        self.region.address().0
    }

    /// Length in bytes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.region.bytes()
    }

    /// Address of the byte at an offset.
    fn at(&self, offset: u64) -> u64 {
        self.region.at(offset).0
    }

    /// Thread that accesses the region.
    #[getter]
    fn thread(&self) -> Thread {
        Thread::new(self.pool.clone(), self.region.thread().clone())
    }

    /// The same region, accessed by another thread.
    fn by(&self, thread: &Thread) -> Region {
        Region::new(self.pool.clone(), self.region.by(thread.inner()))
    }

    /// Reads `bytes` bytes from an offset on.
    fn read(&self, offset: u64, bytes: u64) -> Pending {
        Pending::of(&self.pool, self.region.read(offset, bytes), |read| Ok(Answer::Bytes(read)))
    }

    /// Fills a writable buffer, such as a NumPy array, from an offset on, and waits for completion.
    /// No other thread may use the buffer meanwhile.
    fn read_into(&self, offset: u64, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        buffer::fill(buffer, |to| self.region.read_into(offset, to))?.map_err(raised)
    }

    /// Writes the bytes of a buffer, such as a NumPy array, from an offset on. The buffer may be
    /// changed as soon as this returns.
    fn write(&self, offset: u64, data: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let written = buffer::read(data, |bytes| self.region.write(offset, bytes))?;
        Ok(Pending::of(&self.pool, written, |()| Ok(Answer::Nothing)))
    }

    /// Writes the bytes of a buffer from an offset on, and waits for completion. No other thread
    /// may change the buffer meanwhile.
    fn write_from(&self, offset: u64, data: &Bound<'_, PyAny>) -> PyResult<()> {
        buffer::lend(data, |bytes| self.region.write_from(offset, bytes))?.map_err(raised)
    }

    /// Grants another process access at the same address, or revokes it with permissions of 0.
    fn share(&self, with_process: u32, permissions: u8) -> PyResult<Pending> {
        let permissions: Permissions = self::permissions(permissions)?;
        let shared = self.region.share(ProcessId(with_process), permissions);
        Ok(Pending::of(&self.pool, shared, |()| Ok(Answer::Nothing)))
    }

    /// Frees the region. Only its owner may.
    fn free(&self) -> Pending {
        Pending::of(&self.pool, self.region.clone().free(), |()| Ok(Answer::Nothing))
    }

    fn __enter__(slf: Py<Region>) -> Py<Region> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<Py<PyAny>>,
        _error: Option<Py<PyAny>>,
        _trace: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        self.free().finish(py).map(drop)
    }

    fn __repr__(&self) -> String {
        format!("Region({}, {} B)", self.region.address(), self.region.bytes())
    }
}
