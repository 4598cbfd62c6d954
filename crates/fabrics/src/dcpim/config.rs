//! dcPIM's parameters.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{BUFFER_BYTES, Table, bytes, delay_or, packets, timeout_or, window_or};
use ethermem_engine::topology::Layout;
use ethermem_frames::{Frame, Transport};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::InputError;

use super::Hosts;
use super::epochs::Epochs;

/// dcPIM's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DcpimConfig {
    /// IP and transport headers of a packet.
    pub header: Bytes,
    /// Buffer of a switch port.
    pub buffer: Bytes,
    /// Number of priorities of switches; the first one is for packets without data.
    pub priorities: u32,
    /// Flows of at most this many packets have the first priority of data. Flows of at most the
    /// square of it have the second, and so on.
    pub priority_packets: u32,
    /// Flows of at most this many packets are sent at once; `None` for a bandwidth-delay product.
    pub short_packets: Option<u32>,
    /// Number of rounds of a matching.
    pub rounds: u32,
    /// Number of rounds, from the first, that prefer the flow with the fewest remaining packets.
    pub shortest_rounds: u32,
    /// Number of channels of a host, each with an equal share of the link.
    pub channels: u32,
    /// Duration of a round, in round trips of a packet without data (beta).
    pub slack: f64,
    /// Duration of an epoch's sending, in durations of its matching (alpha).
    pub sending: f64,
    /// If true, a channel that both hosts have free is used from its match on.
    pub prompt: bool,
    /// Maximum difference between the clocks of two hosts; `None` for 100 ns, or half of what a
    /// matching allows if that is less.
    pub skew: Option<Ps>,
    /// Maximum tokens of a flow in flight; `None` for a bandwidth-delay product.
    pub window: Option<u32>,
    /// Time after the last token until a full window gets one more; `None` for 1.1 bandwidth-delay
    /// products.
    pub window_timeout: Option<Ps>,
    /// Time after the last token of a flow until missing packets get new tokens; `None` for a
    /// bandwidth-delay product.
    pub resend: Option<Ps>,
    /// Factor by which a source waits longer for each further answer.
    pub patience_growth: f64,
    /// If true, every receiver has all channels of every source from the start. A message alone is
    /// timed so, since its wait for a match depends on its arrival time.
    pub(super) matched: bool,
}

impl Default for DcpimConfig {
    fn default() -> DcpimConfig {
        DcpimConfig {
            header: Bytes(40),
            buffer: Bytes(500_000),
            priorities: 8,
            priority_packets: 7,
            short_packets: None,
            rounds: 4,
            shortest_rounds: 1,
            channels: 4,
            slack: 1.3,
            sending: 1.0,
            prompt: true,
            skew: None,
            window: None,
            window_timeout: None,
            resend: None,
            patience_growth: 2.0,
            matched: false,
        }
    }
}

impl DcpimConfig {
    /// The difference of two clocks from which on no request or no grant of a matching is in time.
    fn skew_max(&self, layout: &Layout) -> Ps {
        let one_way = layout.one_way(Frame::of(self.header.0));
        let last_answer = Epochs::new(self, one_way * 2).answer(0, self.rounds - 1);
        Ps(last_answer.0.saturating_sub(one_way.0))
    }

    /// The maximum difference between the clocks of two hosts.
    pub(super) fn skew_of(&self, layout: &Layout) -> Ps {
        let usual = Ps::from_ns(100).min(Ps(self.skew_max(layout).0 / 2));
        self.skew.unwrap_or(usual)
    }
}

impl Parameters for DcpimConfig {
    const TABLE: &'static str = "dcpim";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<DcpimConfig, InputError> {
        let default = DcpimConfig::default();
        let small = |key, default: u32, least: u64, most: u64| -> Result<u32, InputError> {
            Ok(table.integer(key, default.into(), least..=most)? as u32)
        };
        Ok(DcpimConfig {
            header: bytes(table, "header_bytes", default.header, (0, 128))?,
            buffer: bytes(table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
            priorities: small("priorities", default.priorities, 2, 64)?,
            priority_packets: packets(table, "priority_packets", default.priority_packets)?,
            short_packets: window_or(table, "short_packets", "a bandwidth-delay product")?,
            rounds: small("rounds", default.rounds, 1, 64)?,
            shortest_rounds: small("shortest_rounds", default.shortest_rounds, 0, 64)?,
            channels: small("channels", default.channels, 1, 64)?,
            slack: table.number("slack", default.slack, 1.0..=100.0)?,
            sending: table.number("sending", default.sending, 1.0..=1_000.0)?,
            prompt: table.flag("prompt", default.prompt)?,
            skew: delay_or(table, "skew_ns", "100, less in a short matching")?,
            window: window_or(table, "window_packets", "a bandwidth-delay product")?,
            window_timeout: timeout_or(table, "window_timeout_us", "1.1 bandwidth-delay products")?,
            resend: timeout_or(table, "resend_us", "a bandwidth-delay product")?,
            patience_growth: table.number(
                "patience_growth",
                default.patience_growth,
                1.0..=16.0,
            )?,
            matched: false,
        })
    }

    fn quiet(&mut self) {
        self.matched = true;
    }

    fn check(&self, config: &FabricConfig) -> Result<(), (&'static str, String)> {
        let layout = Layout::new(config, config.packet.stack.unwrap_or(Hosts::stack()));
        let most = self.skew_max(&layout);
        if most == Ps::ZERO {
            let problem = "with slack = 1 a host would have no time to answer in";
            return Err(("rounds", problem.to_owned()));
        }
        match self.skew {
            Some(skew) if skew >= most => {
                let problem = format!(
                    "must be under {}: in {} rounds no host would answer another in time",
                    most.as_ns_f64(),
                    self.rounds
                );
                Err(("skew_ns", problem))
            }
            _ => Ok(()),
        }
    }
}
