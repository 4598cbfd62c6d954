//! The extension module `ethermem._native`: the simulator and the pool as Python calls them.
//!
//! The module decides nothing. For the simulator, arguments arrive as text and results leave as
//! JSON, and `python/ethermem` gives them types; the pool is the library's. `_native.pyi` there
//! describes this module.

mod attended;
mod error;
mod experiments;
mod pool;
mod simulate;
mod sweep;

use pyo3::prelude::*;

/// The simulator, only for the package `ethermem`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::attended::Stop;
    #[pymodule_export]
    use crate::error::{EthermemError, FileError, InputError, InvariantError, ProgramError};
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[pymodule_export]
    use crate::experiments::study;
    #[pymodule_export]
    use crate::experiments::{capacity, compare, report};
    #[pymodule_export]
    use crate::pool::{
        AccessError, Client, EndingError, ForkedError, FullError, LengthError, LostError,
        MisalignedError, NoAnswerError, NodeError, NotHeldError, OffloadError, OffloadStoppedError,
        OwnerDiedError, Pending, Pool, PoolError, ProcessEndedError, RefusedError, Region,
        RestartedError, StalledError, Store, Tasks, Thread, UncertainError, UnmappedError,
        UnreachableError,
    };
    #[pymodule_export]
    use crate::simulate::simulate;
    #[pymodule_export]
    use crate::sweep::{Sweep, run_task};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::pool::mark_retryable(module.py())?;
        module.add("VERSION", env!("ETHERMEM_VERSION"))?;
        module.add("FABRICS", ethermem_sim::registry::FABRIC_NAMES)
    }
}
