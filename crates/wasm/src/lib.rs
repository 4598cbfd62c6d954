//! Operations that users bring to a memory node, as WebAssembly modules.
//!
//! A [`Module`] is an [`Offload`](ethermem_clio::offload::Offload). A memory node executes it a
//! slice at a time, and an in-process pool in one go. `docs/internals/wasm.md` lists what a module
//! may import, and its limits.

mod access;
mod call;
mod host;
mod load;
mod meter;
mod module;

pub use load::{Load, Loader};
pub use meter::{MODULE_BYTES_MAX, MeterError};
pub use module::{FUEL_MAX, LoadError, MEMORY_BYTES_MAX, Module, ModuleOptions, Runtime};
