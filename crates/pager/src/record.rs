//! What is written down about a run.

use std::time::Duration;

use ethermem_trace::Access;

/// Is told of what happens, on the pager's thread.
pub trait Recorder {
    /// A remote access begins. For a page that is written back, the thread is 0: none waits. Pages
    /// that are read along with another come behind it, at the same time, for the same thread.
    fn access(&mut self, access: &Access);
    /// An access that was to take `wanted` took `real`, until its page was put.
    fn delayed(&mut self, wanted: Duration, real: Duration);
}

/// Writes nothing down.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Recorder for Nothing {
    fn access(&mut self, _: &Access) {}
    fn delayed(&mut self, _: Duration, _: Duration) {}
}
