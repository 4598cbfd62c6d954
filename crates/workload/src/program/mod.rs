//! Programs: messages that leave when what they depend on is done.
//!
//! A [`Program`] is a graph of steps: a message from one node to another, or a computation of one
//! node. A [`ProgramRun`] says which steps may begin; the world executes them and says when each
//! has ended. Applications are closed loops of this form: collectives of training
//! ([`ring_allreduce`], [`hierarchical_allreduce`], [`all_to_all`], [`gather`], [`broadcast`]),
//! supersteps of graphs ([`Supersteps`]), a shuffle ([`Shuffle`]), clients of a key-value store
//! ([`KeyValue`]). The same graph runs on every fabric.

mod applications;
mod collectives;
mod graph;
mod run;
#[cfg(test)]
mod tests;

pub use applications::{KeyValue, Shuffle, Supersteps};
pub use collectives::{
    BroadcastShape, all_to_all, broadcast, gather, hierarchical_allreduce, ring_allreduce,
};
pub use graph::{Builder, Program, ProgramError, Step, StepId, Work};
pub use run::{ProgramRun, StepFault};
