//! Ethernet frames that share the links with memory traffic: how memory delays them.

use ethermem_units::Ps;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::kind::nearest_rank;

/// Number of exact digits of the histograms, of which every link has its own. A percentile is at
/// most 0.1 % above the exact one.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Latencies of the frames of one or several links.
#[derive(Clone, Debug)]
pub(crate) struct FrameTimes {
    latency_ps_sum: u128,
    latency_max: Ps,
    latency_ps: Histogram<u32>,
}

impl FrameTimes {
    pub(crate) fn new() -> FrameTimes {
        FrameTimes {
            latency_ps_sum: 0,
            latency_max: Ps::ZERO,
            // The histogram grows by itself to the largest value seen.
            latency_ps: Histogram::new(SIGNIFICANT_DIGITS).expect("at most 5 digits"),
        }
    }

    pub(crate) fn record(&mut self, latency: Ps) {
        self.latency_ps_sum += u128::from(latency.0);
        self.latency_max = self.latency_max.max(latency);
        self.latency_ps.record(latency.0).expect("the histogram grows");
    }

    pub(crate) fn add(&mut self, other: &FrameTimes) {
        self.latency_ps_sum += other.latency_ps_sum;
        self.latency_max = self.latency_max.max(other.latency_max);
        self.latency_ps.add(&other.latency_ps).expect("the histogram grows");
    }

    /// Number of frames recorded.
    pub(crate) fn frames(&self) -> u64 {
        self.latency_ps.len()
    }

    fn mean_ns(&self) -> Option<f64> {
        let frames = self.frames();
        (frames > 0).then(|| self.latency_ps_sum as f64 / frames as f64 / 1_000.0)
    }

    fn percentile_ns(&self, per_mille: u64) -> Option<f64> {
        let ps = Ps(nearest_rank(&self.latency_ps, per_mille)).min(self.latency_max);
        (self.frames() > 0).then(|| ps.as_ns_f64())
    }
}

/// Counters of the Ethernet frames on all links. A latency is one link's: from the frame's arrival
/// at its transmitter to its last block on the line. `None` where no frame was sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct FrameStats {
    /// Number of frames sent.
    pub sent: u64,
    /// Number of blocks of frames that still waited at the end of the run.
    pub waiting_blocks: u64,
    /// Latency of a frame on an otherwise idle link, in ns: its serialisation.
    pub unloaded_ns: f64,
    /// Mean latency.
    pub latency_ns_mean: Option<f64>,
    /// Median latency.
    pub latency_ns_p50: Option<f64>,
    /// 99 % of frames take at most this long.
    pub latency_ns_p99: Option<f64>,
    /// Longest latency.
    pub latency_ns_max: Option<f64>,
    /// Mean latency over `unloaded_ns`.
    pub slowdown_mean: Option<f64>,
    /// Median latency over `unloaded_ns`.
    pub slowdown_p50: Option<f64>,
    /// 99 % of frames have at most this slowdown.
    pub slowdown_p99: Option<f64>,
    /// Mean latency of these frames on links without memory traffic, where they wait only for each
    /// other.
    pub latency_ns_mean_without_memory: Option<f64>,
    /// 99th percentile of that latency.
    pub latency_ns_p99_without_memory: Option<f64>,
}

impl FrameStats {
    /// `times` with memory traffic and `quiet` without, of frames that take `unloaded` alone.
    pub(crate) fn new(
        times: &FrameTimes,
        quiet: &FrameTimes,
        unloaded: Ps,
        waiting_blocks: u64,
    ) -> FrameStats {
        let unloaded_ns = unloaded.as_ns_f64();
        let slowdown = |latency_ns: Option<f64>| latency_ns.map(|latency| latency / unloaded_ns);
        let [p50, p99] = [500, 990].map(|per_mille| times.percentile_ns(per_mille));
        let mean = times.mean_ns();
        FrameStats {
            sent: times.frames(),
            waiting_blocks,
            unloaded_ns,
            latency_ns_mean: mean,
            latency_ns_p50: p50,
            latency_ns_p99: p99,
            latency_ns_max: times.percentile_ns(1_000),
            slowdown_mean: slowdown(mean),
            slowdown_p50: slowdown(p50),
            slowdown_p99: slowdown(p99),
            latency_ns_mean_without_memory: quiet.mean_ns(),
            latency_ns_p99_without_memory: quiet.percentile_ns(990),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_by_hand() {
        let (mut times, mut other, mut quiet) =
            (FrameTimes::new(), FrameTimes::new(), FrameTimes::new());
        for latency in [1_000, 2_000] {
            times.record(Ps(latency));
        }
        other.record(Ps(6_000));
        times.add(&other);
        quiet.record(Ps(1_500));
        let stats = FrameStats::new(&times, &quiet, Ps(1_000), 7);
        assert_eq!((stats.sent, stats.waiting_blocks, stats.unloaded_ns), (3, 7, 1.0));
        assert_eq!((stats.latency_ns_mean, stats.latency_ns_max), (Some(3.0), Some(6.0)));
        assert_eq!((stats.slowdown_p50, stats.slowdown_p99), (Some(2.0), Some(6.0)));
        assert_eq!(stats.latency_ns_mean_without_memory, Some(1.5));
        let none = FrameStats::new(&FrameTimes::new(), &FrameTimes::new(), Ps(1_000), 0);
        assert_eq!((none.latency_ns_mean, none.slowdown_p99), (None, None));
    }
}
