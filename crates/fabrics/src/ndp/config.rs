//! NDP's parameters.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{Table, buffer_or, bytes, timeout_us, window_or};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::InputError;

use super::{HostQueue, PullOrder};

/// NDP's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NdpConfig {
    /// IP and NDP headers of a packet.
    pub header: Bytes,
    /// Capacity of a switch port's data queue, in full packets.
    pub queue_packets: u32,
    /// Capacity of its header queue; `None` for the data queue's capacity.
    pub header_queue: Option<Bytes>,
    /// Number of headers sent per data packet while both wait.
    pub headers_per_data: u32,
    /// Probability that an arriving packet without room is trimmed, and not the last waiting one.
    pub trim_arriving: f64,
    /// Number of packets that a flow sends without a pull; `None` for a bandwidth-delay product and
    /// a data queue.
    pub window_packets_initial: Option<u32>,
    /// The order of a host's data packets.
    pub host_queue: HostQueue,
    /// The order of pulls.
    pub pull_order: PullOrder,
    /// Silence after which a flow sends without a pull.
    pub timeout: Ps,
}

impl Default for NdpConfig {
    fn default() -> NdpConfig {
        NdpConfig {
            header: Bytes(40),
            queue_packets: 8,
            header_queue: None,
            headers_per_data: 10,
            trim_arriving: 0.5,
            window_packets_initial: None,
            host_queue: HostQueue::Turns,
            pull_order: PullOrder::Fair,
            timeout: Ps::from_ns(1_000_000),
        }
    }
}

impl Parameters for NdpConfig {
    const TABLE: &'static str = "ndp";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<NdpConfig, InputError> {
        let default = NdpConfig::default();
        let window = "a bandwidth-delay product and queue_packets";
        let host_queues = [("turns", HostQueue::Turns), ("arrival", HostQueue::Arrival)];
        let orders = [("fair", PullOrder::Fair), ("fewest-missing", PullOrder::FewestMissing)];
        let per_data = default.headers_per_data.into();
        let config = NdpConfig {
            header: bytes(table, "header_bytes", default.header, (0, 128))?,
            queue_packets: table.integer(
                "queue_packets",
                default.queue_packets.into(),
                1..=10_000,
            )? as u32,
            header_queue: buffer_or(
                table,
                "header_queue_bytes",
                "the room of queue_packets",
                1_000,
            )?,
            headers_per_data: table.integer("headers_per_data", per_data, 1..=1_000)? as u32,
            trim_arriving: table.number(
                "trim_arriving_fraction",
                default.trim_arriving,
                0.0..=1.0,
            )?,
            window_packets_initial: window_or(table, "window_packets_initial", window)?,
            host_queue: table.choice("host_queue", &host_queues)?,
            pull_order: table.choice("pull_order", &orders)?,
            timeout: timeout_us(table, "rto_us", default.timeout)?,
        };
        Ok(config)
    }
}
