//! Data that a server publishes for other threads.

use std::sync::{Arc, Mutex};

use ethermem_clio::memory::MapCounters;
use ethermem_clio::node::{NodeCounters, TenantUse};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{Epoch, TenantId};

use crate::carrier::Sent;

/// Bounds of [`Latencies`]: powers of two from 256 ns to 8.4 ms.
const LEAST_BITS: u32 = 8;
const BOUNDS: usize = 16;

/// Counters outside of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Responses that the socket refused; their clients retransmit.
    pub answers_dropped: u64,
    /// Number of times that the server went to sleep.
    pub sleeps: u64,
    /// Number of times that polling was given up for other programs on the same processor.
    pub gave_way: u64,
    /// Octets of datagrams received.
    pub received_bytes: u64,
    /// Octets of responses sent.
    pub sent_bytes: u64,
    /// Malformed raw Ethernet frames for the node.
    pub frames_dropped: u64,
    /// Raw Ethernet frames for which the ring had no room, because the node was too slow.
    pub frames_overrun: u64,
    /// Number of times that the ring was reopened, for another interface, MTU or address.
    pub rings_renewed: u64,
}

impl ServerCounters {
    pub(crate) fn count(&mut self, answers: Sent) {
        self.sent_bytes += answers.bytes;
        self.answers_dropped += answers.refused;
    }
}

/// Histogram of serving times, from socket to socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Counts by bucket; the last one has times above all bounds.
    pub counts: [u64; BOUNDS + 1],
    /// Sum of all times.
    pub sum: Ns,
}

impl Latencies {
    /// Upper bound of bucket `at`; `None` for the last.
    #[must_use]
    pub fn bound(at: usize) -> Option<Ns> {
        (at < BOUNDS).then(|| Ns(1 << (LEAST_BITS + at as u32)))
    }

    pub(crate) fn add(&mut self, took: Ns) {
        let bits = u64::BITS - took.0.saturating_sub(1).leading_zeros();
        let at = bits.saturating_sub(LEAST_BITS) as usize;
        self.counts[at.min(BOUNDS)] += 1;
        self.sum = self.sum.saturating_add(took);
    }
}

/// A node's published state at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Time since the start.
    pub uptime: Ns,
    /// Life of the node, which changes with a restart.
    pub epoch: Epoch,
    /// Memory that it serves.
    pub memory: Bytes,
    /// Memory that is not allocated.
    pub free: Bytes,
    /// Number of processes of all tenants.
    pub processes: usize,
    /// True while the node is shutting down.
    pub ending: bool,
    /// Counters of the node.
    pub node: NodeCounters,
    /// Counters of address translation.
    pub map: MapCounters,
    /// Counters outside of the node.
    pub server: ServerCounters,
    /// Use by each tenant, sorted by number.
    pub tenants: Vec<(TenantId, TenantUse)>,
    /// Serving times of one in sixteen answered datagrams.
    pub serving: Latencies,
}

/// The newest snapshot. The server never waits for it: while a reader holds it, an update is
/// skipped.
pub type Published = Arc<Mutex<Snapshot>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_whose_bound_it_is_within() {
        let at = |ns: u64| {
            let mut latencies = Latencies::default();
            latencies.add(Ns(ns));
            latencies.counts.iter().position(|&count| count == 1).unwrap()
        };
        for (ns, bucket) in [(0, 0), (256, 0), (257, 1), (512, 1), (8_388_608, 15), (8_388_609, 16)]
        {
            assert_eq!(at(ns), bucket, "{ns} ns");
            assert!(Latencies::bound(bucket).is_none_or(|bound| ns <= bound.0), "{ns} ns");
        }
        assert_eq!((at(u64::MAX), Latencies::bound(16)), (16, None));
        assert_eq!(Latencies::bound(0), Some(Ns(256)));
    }
}
