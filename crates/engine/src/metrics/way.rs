//! The way of one message through a fabric.

use ethermem_units::Ps;
use ethermem_workload::Message;

/// A message that finished, and the instants of its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MessageWay {
    /// The message.
    pub message: Message,
    /// When its request was at the memory node; `None` for writes.
    pub at_memory: Option<Ps>,
    /// When the first byte of its data left its node.
    pub leaves: Ps,
    /// When it ended.
    pub finished: Ps,
    /// How long it takes alone.
    pub alone: Ps,
}
