//! Where messages come from: synthetic arrivals and traces, one interface, nothing held in memory.

mod cdf_file;
mod error;
mod lines;
mod pattern;
mod poisson;
mod sizes;
mod trace;

pub use cdf_file::{built_in, built_in_names, read as read_size_cdf_from, read_size_cdf};
pub use error::InputError;
pub(crate) use error::found;
pub use pattern::Pattern;
pub use poisson::{ATOMIC_BYTES, LinkBlocks, Offered, Poisson, PoissonConfig};
pub use sizes::{MESSAGE_BYTES_MAX, PointError, SizeDistribution};
pub use trace::{TraceConfig, TraceFormat};

/// The part of a scenario that says what messages there are.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadConfig {
    /// Synthetic arrivals.
    Poisson(PoissonConfig),
    /// The rows of a file.
    Trace(TraceConfig),
}
