//! The interface for recording a run.

use std::time::Duration;

use ethermem_trace::Access;
use ethermem_units::Ns;

/// Receives a run's events, on the pager's thread.
pub trait Recorder {
    /// A remote access begins. For a page that is written back the thread is 0, as none waits.
    /// Prefetched pages follow the page that caused them, with equal time and thread.
    fn access(&mut self, access: &Access);
    /// A delayed access, which should have taken `wanted`, took `real` until its page was put.
    fn delayed(&mut self, wanted: Duration, real: Duration);
    /// A thread waits for a delayed page that is asked for, or already on its way, at `from`, and
    /// due at `until`. Calls are in the order of `from`.
    fn waits(&mut self, _process: u32, _thread: u32, _from: Ns, _until: Ns) {}
}

/// A recorder that records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Recorder for Nothing {
    fn access(&mut self, _: &Access) {}
    fn delayed(&mut self, _: Duration, _: Duration) {}
}
