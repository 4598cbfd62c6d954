//! The extension module `ethermem._native`: the simulator as Python calls it.
//!
//! Nothing is decided here. Arguments come as text, results go as JSON; `python/ethermem` gives
//! them their types, and `_native.pyi` there describes this module.

mod attended;
mod error;
mod simulate;
mod sweep;

use pyo3::prelude::*;

/// The simulator, for the package `ethermem` alone.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::attended::Stop;
    #[pymodule_export]
    use crate::error::{EthermemError, FileError, InputError, InvariantError};
    #[pymodule_export]
    use crate::simulate::simulate;
    #[pymodule_export]
    use crate::sweep::{Sweep, run_task};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", env!("ETHERMEM_VERSION"))?;
        module.add("FABRICS", ethermem_sim::fabrics::FABRIC_NAMES)
    }
}
