//! The sources of messages: synthetic arrivals and traces, with one interface. No source holds all
//! messages in memory. A [`program`] is a graph whose messages leave when what they depend on is
//! done.

mod cdf_file;
mod lines;
mod message;
mod pattern;
mod poisson;
pub mod program;
#[cfg(test)]
#[path = "../../units/tests/support/property.rs"]
mod property;
mod sizes;
mod summary;
mod trace;

pub use ethermem_files::InputError;
pub(crate) use ethermem_files::found;
use ethermem_units::{BitsPerSecond, Bytes};

pub use cdf_file::{built_in, built_in_names, read_size_cdf};
pub use message::{ClosedLoop, Kind, Message, MessageSource, NodeIndex, SourceError};
pub use pattern::{Pattern, unit};
pub use poisson::{LinkBlocks, Offered, Poisson, PoissonConfig};
use program::{ExecutionTraceConfig, ProgramConfig};
pub use sizes::{MESSAGE_BYTES_MAX, PointError, SizeDistribution};
pub use summary::SizeSummary;
#[doc(hidden)]
pub use trace::check_trace;
pub use trace::{TextTrace, TraceConfig, TraceFormat, WriteTraceError, write_trace};

/// The part of a scenario that defines the messages.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadConfig {
    /// Synthetic arrivals.
    Poisson(PoissonConfig),
    /// The rows of a file.
    Trace(TraceConfig),
    /// A graph of messages that wait for what they need.
    Program(ProgramConfig),
    /// Such a graph, from the execution traces of its nodes.
    ExecutionTrace(ExecutionTraceConfig),
}

impl WorkloadConfig {
    /// Opens the source of messages for a network of `nodes` links of rate `link`. `seed` and
    /// `link_blocks`, the blocks that a message takes of its links, are used by synthetic sources
    /// only.
    ///
    /// # Errors
    /// The errors of [`Poisson::new`] and [`TraceConfig::open`]; a program has no arrivals of its
    /// own.
    ///
    /// # Panics
    /// In the cases of [`Poisson::new`].
    pub fn open(
        &self,
        nodes: u16,
        link: BitsPerSecond,
        seed: u64,
        link_blocks: &dyn Fn(Kind, Bytes) -> LinkBlocks,
    ) -> Result<Box<dyn MessageSource>, SourceError> {
        Ok(match self {
            WorkloadConfig::Poisson(config) => {
                Box::new(Poisson::new(config, nodes, link, seed, link_blocks)?)
            }
            WorkloadConfig::Trace(config) => config.open(nodes)?,
            WorkloadConfig::Program(_) | WorkloadConfig::ExecutionTrace(_) => {
                let problem = "its messages arrive when a fabric has delivered others: must be \
                               workload.kind = \"poisson\" or \"trace\"";
                return Err(SourceError(format!("workload.kind = \"program\": {problem}")));
            }
        })
    }
}
