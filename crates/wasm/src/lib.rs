//! Operations that users bring to a memory node, as WebAssembly modules.
//!
//! A [`Module`] is an [`Offload`](ethermem_clio::offload::Offload): whatever runs operations runs
//! it, a memory node a slice at a time, a pool of this program in one go. What it may import, and
//! what bounds it, is in `docs/internals/wasm.md`.

mod access;
mod call;
mod host;
mod load;
mod meter;
mod module;

pub use load::{Load, Loader};
pub use meter::{MODULE_BYTES_MAX, MeterError};
pub use module::{FUEL_MAX, LoadError, MEMORY_BYTES_MAX, Module, ModuleOptions, Runtime};
