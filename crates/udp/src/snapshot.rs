//! What a server tells whoever looks at it from another thread.

use std::sync::{Arc, Mutex};

use ethermem_clio::memory::MapCounters;
use ethermem_clio::node::{NodeCounters, TenantUse};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{Epoch, TenantId};

use crate::carrier::Sent;

/// Bounds of [`Latencies`]: powers of two from 256 ns to 8.4 ms.
const LEAST_BITS: u32 = 8;
const BOUNDS: usize = 16;

/// What happened to datagrams outside of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Answers that the socket did not take: their clients ask again.
    pub answers_dropped: u64,
    /// Times that the server went to sleep.
    pub sleeps: u64,
    /// Octets of datagrams that came.
    pub received_bytes: u64,
    /// Octets of answers that were sent.
    pub sent_bytes: u64,
    /// Frames of raw Ethernet that are for the node, and malformed.
    pub frames_dropped: u64,
    /// Frames of raw Ethernet for which the ring had no room: the node did not keep up.
    pub frames_overrun: u64,
    /// Times that the ring was made anew, for another interface of its name, MTU or address.
    pub rings_renewed: u64,
}

impl ServerCounters {
    pub(crate) fn count(&mut self, answers: Sent) {
        self.sent_bytes += answers.bytes;
        self.answers_dropped += answers.refused;
    }
}

/// How long datagrams took, from the socket to the socket, in buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// By bucket; the last has what is longer than all bounds.
    pub counts: [u64; BOUNDS + 1],
    /// Of all.
    pub sum: Ns,
}

impl Latencies {
    /// The longest of bucket `at`; `None` of the last.
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

/// See the module: of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Since the start.
    pub uptime: Ns,
    /// Which life of the node.
    pub epoch: Epoch,
    /// All that it serves.
    pub memory: Bytes,
    /// What of it is not allocated.
    pub free: Bytes,
    /// Of all tenants.
    pub processes: usize,
    /// Whether it is about to end.
    pub ending: bool,
    /// What happened in the node.
    pub node: NodeCounters,
    /// What happened to translations.
    pub map: MapCounters,
    /// What happened outside.
    pub server: ServerCounters,
    /// By their numbers.
    pub tenants: Vec<(TenantId, TenantUse)>,
    /// Of one in sixteen datagrams that were answered.
    pub serving: Latencies,
}

/// The newest snapshot. The server never waits for it: while somebody reads, the next is left out.
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
