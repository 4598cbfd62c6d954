//! The way of one message through a fabric.

use ethermem_units::Ps;
use ethermem_workload::Message;

/// A message that finished, and the times of its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MessageWay {
    /// The message.
    pub message: Message,
    /// The time at which its request was at the memory node; `None` for writes.
    pub at_memory: Option<Ps>,
    /// The time at which the first byte of its data left its node.
    pub leaves: Ps,
    /// The time of its end.
    pub finished: Ps,
    /// Its time alone in the fabric.
    pub alone: Ps,
}
