//! Programs: messages that leave when what they depend on is done.
//!
//! A [`Program`] is a graph of steps: a message from one node to another, or a computation of one
//! node. A [`ProgramRun`] says which steps may begin; the world executes them and says when each
//! has ended. Applications are closed loops of this form: collectives of training
//! ([`ring_allreduce`], [`hierarchical_allreduce`], [`all_to_all`], [`gather`], [`broadcast`]),
//! supersteps of graphs ([`Supersteps`]), a shuffle ([`Shuffle`]), clients of a key-value store
//! ([`KeyValue`]). Execution traces of the field are programs, too ([`ExecutionTraceConfig`]). A
//! [`ProgramConfig`] names one with its parameters. The same graph runs on every
//! fabric: a [`ProgramSource`] says when each message leaves.

mod applications;
mod bound;
mod chakra;
mod collectives;
mod config;
mod graph;
mod repeat;
mod run;
mod source;
#[cfg(test)]
mod tests;

pub use applications::{KeyValue, Shuffle, Supersteps};
pub use chakra::ExecutionTraceConfig;
#[doc(hidden)]
pub use chakra::check_execution_trace;
pub use collectives::{
    BroadcastShape, all_to_all, broadcast, gather, hierarchical_allreduce, ring_all_gather,
    ring_allreduce, ring_reduce_scatter,
};
pub use config::{Algorithm, ProgramConfig, ProgramSize};
pub use graph::{Builder, EDGES_MAX, Program, ProgramError, STEPS_MAX, Step, StepId, Work};
pub use run::{ProgramRun, StepFault};
pub use source::{ProgramSource, Unfinished};
