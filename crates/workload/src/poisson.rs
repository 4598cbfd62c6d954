//! Poisson arrivals: messages arrive independently, at a rate that gives a load.

use ethermem_units::{BitsPerSecond, Bytes, Ps};
use ethermem_wire::RMW_BYTES;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::pattern::{EndsSampler, Pattern, unit};
use super::sizes::{SHARE_MIN, SizeDistribution};
use crate::message::{Kind, Message, MessageSource, SourceError};

/// Maximum expected duration of a run. An exponential gap drawn from 53 bits is at most 37 times
/// its mean. So no arrival reaches 2^63 ps, half of what [`Ps`] holds.
const RUN_PS_MAX: f64 = (1_u64 << 57) as f64;

/// A synthetic workload.
#[derive(Clone, Debug, PartialEq)]
pub struct PoissonConfig {
    /// The traffic pattern.
    pub pattern: Pattern,
    /// Share of the busiest link's block slots that messages and their control blocks take.
    pub load: f64,
    /// Distribution of the bytes of reads and writes.
    pub sizes: SizeDistribution,
    /// Share of the messages that are reads.
    pub read_fraction: f64,
    /// Share of the messages that are atomics; the rest are writes.
    pub rmw_fraction: f64,
    /// Number of messages.
    pub messages: u64,
}

impl PoissonConfig {
    /// Share of the messages that are of this kind; 0 for what only rounding has left.
    #[must_use]
    pub fn share(&self, kind: Kind) -> f64 {
        let share = match kind {
            Kind::Read => self.read_fraction,
            Kind::Write => 1.0 - self.read_fraction - self.rmw_fraction,
            Kind::ReadModifyWrite => self.rmw_fraction,
        };
        if share > SHARE_MIN { share } else { 0.0 }
    }

    /// Distribution of the bytes of messages of this kind.
    #[must_use]
    pub fn sizes_of(&self, kind: Kind) -> SizeDistribution {
        match kind {
            Kind::Read | Kind::Write => self.sizes.clone(),
            Kind::ReadModifyWrite => SizeDistribution::fixed(RMW_BYTES),
        }
    }

    /// Distribution of the bytes of all messages.
    #[must_use]
    pub fn drawn_sizes(&self) -> SizeDistribution {
        self.sizes.mixed_with(self.share(Kind::ReadModifyWrite), RMW_BYTES)
    }
}

/// Number of blocks that one message puts on the links of its ends, control blocks included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkBlocks {
    /// Blocks from the compute node to the switch.
    pub compute_uplink: f64,
    /// Blocks from the switch to the compute node.
    pub compute_downlink: f64,
    /// Blocks from the memory node to the switch.
    pub memory_uplink: f64,
    /// Blocks from the switch to the memory node.
    pub memory_downlink: f64,
}

impl LinkBlocks {
    /// The blocks of a message whose data takes `data` blocks on each of its two links. Where the
    /// data comes from the memory node, a request of `request` blocks precedes it.
    #[must_use]
    pub fn unscheduled(kind: Kind, request: f64, data: f64) -> LinkBlocks {
        match kind {
            Kind::Write => {
                LinkBlocks { compute_uplink: data, memory_downlink: data, ..LinkBlocks::default() }
            }
            Kind::Read | Kind::ReadModifyWrite => LinkBlocks {
                compute_uplink: request,
                memory_downlink: request,
                memory_uplink: data,
                compute_downlink: data,
            },
        }
    }
}

/// The load that a synthetic workload offers to the network, as exact expectations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offered {
    /// Share of the busiest link's block slots.
    pub load: f64,
    /// Mean blocks that a message puts on the busiest link, over all messages of the run.
    pub blocks_per_message: f64,
    /// Arrival rate of the whole network, in messages per second.
    pub messages_per_s: f64,
    /// Mean data bytes of a message.
    pub bytes_mean: f64,
    /// Data rate of the whole network, in Gb/s.
    pub goodput_gbps_total: f64,
    /// Data rate of the link that carries the most data, in Gb/s.
    pub goodput_gbps_busiest: f64,
}

/// Poisson arrivals over the whole network, drawn one at a time.
///
/// A seed draws the same messages whatever the load, the link rate and the blocks per message are;
/// these only stretch the time between them.
#[derive(Clone, Debug)]
pub struct Poisson {
    rng: Xoshiro256PlusPlus,
    ends: EndsSampler,
    sizes: SizeDistribution,
    /// A draw below this value is a read; a draw below `rmw_end` is an atomic.
    read_end: f64,
    rmw_end: f64,
    gap_ps_mean: f64,
    now: Ps,
    /// The fraction of a picosecond that `now` omits, so that rounding does not change the rate.
    now_ps_fraction: f64,
    next_index: u64,
    messages: u64,
    offered: Offered,
}

impl Poisson {
    /// The workload `config` over `nodes` links of rate `link`, on a fabric where a message takes
    /// `link_blocks` of its links.
    ///
    /// # Errors
    /// [`SourceError`] for a load so low that the run would last longer than 40 hours.
    ///
    /// # Panics
    /// If `config` is not valid in a scenario, or messages take no blocks.
    pub fn new(
        config: &PoissonConfig,
        nodes: u16,
        link: BitsPerSecond,
        seed: u64,
        link_blocks: &dyn Fn(Kind, Bytes) -> LinkBlocks,
    ) -> Result<Poisson, SourceError> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let ends = EndsSampler::new(config.pattern, nodes, &mut rng);
        let offered = offered(config, &ends, nodes, link, link_blocks);
        let gap_ps_mean = 1e12 / offered.messages_per_s;
        let run_ps = gap_ps_mean * config.messages as f64;
        if run_ps > RUN_PS_MAX {
            return Err(SourceError(format!(
                "workload.load = {}: the messages would arrive over {:.1e} h: must be at most 40 h",
                config.load,
                run_ps / 3.6e15
            )));
        }
        Ok(Poisson {
            rng,
            ends,
            sizes: config.sizes.clone(),
            read_end: config.read_fraction,
            rmw_end: config.read_fraction + config.rmw_fraction,
            gap_ps_mean,
            now: Ps::ZERO,
            now_ps_fraction: 0.0,
            next_index: 0,
            messages: config.messages,
            offered,
        })
    }

    /// The load that the workload offers.
    #[must_use]
    pub fn offered(&self) -> Offered {
        self.offered
    }

    #[inline]
    fn advance(&mut self) -> Ps {
        // libm's logarithm has equal bits on every platform; the standard library's may differ.
        let gap = -libm::log(unit(self.rng.next_u64())) * self.gap_ps_mean + self.now_ps_fraction;
        let whole = gap as u64;
        self.now_ps_fraction = gap - whole as f64;
        self.now += Ps(whole);
        self.now
    }

    #[inline]
    fn kind(&mut self) -> Kind {
        let draw = unit(self.rng.next_u64());
        if draw < self.read_end {
            Kind::Read
        } else if draw < self.rmw_end {
            Kind::ReadModifyWrite
        } else {
            Kind::Write
        }
    }
}

impl MessageSource for Poisson {
    #[inline]
    fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
        if self.next_index == self.messages {
            return Ok(None);
        }
        let arrival = self.advance();
        let kind = self.kind();
        let ends = self.ends.sample(kind, &mut self.rng);
        let size = self.sizes.sample(self.rng.next_u64());
        let bytes = if kind == Kind::ReadModifyWrite { RMW_BYTES } else { size };
        let index = self.next_index;
        self.next_index += 1;
        let (compute, memory) = (ends.compute, ends.memory);
        Ok(Some(Message { index, arrival, kind, compute, memory, bytes }))
    }

    fn messages_total(&self) -> Option<u64> {
        Some(self.messages)
    }
}

/// The rate that gives the busiest link its load. It is computed from the exact mean of a message's
/// blocks on every link of every node.
fn offered(
    config: &PoissonConfig,
    ends: &EndsSampler,
    nodes: u16,
    link: BitsPerSecond,
    link_blocks: &dyn Fn(Kind, Bytes) -> LinkBlocks,
) -> Offered {
    let blocks = kind_means(config, |kind, bytes| {
        let blocks = link_blocks(kind, bytes);
        [
            blocks.compute_uplink,
            blocks.compute_downlink,
            blocks.memory_uplink,
            blocks.memory_downlink,
        ]
    });
    let data = kind_means(config, |kind, bytes| {
        let bytes = bytes.0 as f64;
        match kind {
            Kind::Write => [bytes, 0.0, 0.0, bytes],
            Kind::Read | Kind::ReadModifyWrite => [0.0, bytes, bytes, 0.0],
        }
    });
    let blocks_per_message = busiest_link(ends, nodes, &blocks);
    assert!(blocks_per_message > 0.0, "a message takes blocks of the links it crosses");
    let messages_per_s = config.load * 1e12 / (link.block_time().0 as f64 * blocks_per_message);
    let bytes_mean = data.iter().map(|[uplink, downlink, ..]| uplink + downlink).sum();
    let gbps = |bytes: f64| bytes * 8.0 * messages_per_s / 1e9;
    Offered {
        load: config.load,
        blocks_per_message,
        messages_per_s,
        bytes_mean,
        goodput_gbps_total: gbps(bytes_mean),
        goodput_gbps_busiest: gbps(busiest_link(ends, nodes, &data)),
    }
}

/// For every kind: its share of the messages, times its mean of `value` over the sizes.
fn kind_means(
    config: &PoissonConfig,
    value: impl Fn(Kind, Bytes) -> [f64; 4],
) -> [[f64; 4]; Kind::ALL.len()] {
    Kind::ALL.map(|kind| {
        let share = config.share(kind);
        if share == 0.0 {
            return [0.0; 4];
        }
        let mean = match kind {
            Kind::ReadModifyWrite => value(kind, RMW_BYTES),
            _ => config.sizes.expectation(|bytes| value(kind, bytes)),
        };
        mean.map(|mean| share * mean)
    })
}

/// The largest mean over all uplinks and downlinks. `means` has the blocks of each kind's messages
/// on the (compute uplink, compute downlink, memory uplink, memory downlink), weighted by its
/// share.
fn busiest_link(ends: &EndsSampler, nodes: u16, means: &[[f64; 4]; Kind::ALL.len()]) -> f64 {
    let mut busiest = 0.0_f64;
    for node in 0..nodes {
        let (mut uplink, mut downlink) = (0.0, 0.0);
        for (kind, mean) in Kind::ALL.into_iter().zip(means) {
            let shares = ends.shares(kind, node);
            uplink += shares.compute * mean[0] + shares.memory * mean[2];
            downlink += shares.compute * mean[1] + shares.memory * mean[3];
        }
        busiest = busiest.max(uplink).max(downlink);
    }
    busiest
}

#[cfg(test)]
mod tests;
