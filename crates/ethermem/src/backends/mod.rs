//! The backends, a module for each kind of pool, behind the trait of `ethermem_pool`.

#[cfg(feature = "remote")]
pub(crate) mod cached;
pub(crate) mod local;
#[cfg(feature = "remote")]
pub(crate) mod remote;
#[cfg(feature = "sim")]
pub(crate) mod sim;
