//! Parameters of Clio's transport and memory node.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{
    BUFFER_BYTES, Table, as_integer, buffer_or, bytes, packets, timeout_us, window_or,
};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::InputError;

/// Time of the paper's board and hosts per packet, beside MAC, PCS, line and switch, in each
/// direction at each end. It is the rest of the paper's 2.5 us median for 16 B on links of 10 Gb/s.
pub const CLIO_STACK: Ps = Ps::from_ns(207);

/// The parameters of the fabric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClioConfig {
    /// Bytes of the headers of IP, UDP and Clio in a packet.
    pub header: Bytes,
    /// Buffer of a switch port.
    pub buffer: Bytes,
    /// Maximum requests in flight from a client to a memory node before the first answer; `None`
    /// for a bandwidth-delay product.
    pub window_initial: Option<u32>,
    /// Maximum requests in flight from a client to a memory node.
    pub window_max: u32,
    /// A round trip that exceeds the shortest one by more than this shrinks the window.
    pub queueing_target: Ps,
    /// Maximum bytes of answers in flight to a client; `None` for what its link carries in two
    /// unloaded round trips and the queueing target.
    pub incast: Option<Bytes>,
    /// Minimum time after which a request is retried.
    pub retry_min: Ps,
    /// Maximum time after which a request is retried.
    pub retry_max: Ps,
    /// Clock period of the memory node's fast path.
    pub clock: Ps,
    /// Bytes that the fast path takes per cycle.
    pub width: Bytes,
    /// Number of entries of the TLB.
    pub tlb_entries: u32,
    /// Number of processes whose memory is accessed, at every memory node.
    pub processes: u16,
    /// Number of accessed pages of each process.
    pub pages: u32,
    /// Mean additional time of the memory node per packet, exponentially distributed.
    pub jitter: Ps,
}

impl Default for ClioConfig {
    fn default() -> ClioConfig {
        ClioConfig {
            header: Bytes(44),
            buffer: Bytes(225_000),
            window_initial: None,
            window_max: 256,
            queueing_target: Ps::from_ns(5_000),
            incast: None,
            retry_min: Ps::from_ns(50_000),
            retry_max: Ps::from_ns(10_000_000),
            clock: Ps::from_ns(4),
            width: Bytes(64),
            tlb_entries: 16,
            processes: 1,
            pages: 1,
            jitter: Ps::ZERO,
        }
    }
}

/// Maximum number of entries of a memory node's page table: more would take too much memory.
const PAGES_MAX: u64 = 1 << 20;

impl Parameters for ClioConfig {
    const TABLE: &'static str = "clio";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<ClioConfig, InputError> {
        let default = ClioConfig::default();
        let duration = |key, default: Ps, (least, most): (f64, f64)| {
            let ns = table.number(key, default.as_ns_f64(), least..=most)?;
            Ok::<Ps, InputError>(Ps::from_ns_f64(ns).expect("it is in range"))
        };
        let mut config = ClioConfig {
            header: bytes(table, "header_bytes", default.header, (0, 128))?,
            buffer: bytes(table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
            window_initial: window_or(
                table,
                "window_requests_initial",
                "a bandwidth-delay product",
            )?,
            window_max: packets(table, "window_requests_max", default.window_max)?,
            queueing_target: timeout_us(table, "queueing_target_us", default.queueing_target)?,
            incast: buffer_or(table, "incast_bytes", "two round trips and queueing_target_us", 1)?,
            retry_min: timeout_us(table, "retry_min_us", default.retry_min)?,
            retry_max: timeout_us(table, "retry_max_us", default.retry_max)?,
            clock: duration("clock_ns", default.clock, (0.001, 1_000.0))?,
            width: bytes(table, "width_bytes", default.width, (1, 4_096))?,
            tlb_entries: tlb_entries(table, default.tlb_entries)?,
            processes: table.integer("processes", default.processes.into(), 1..=10_000)? as u16,
            ..default
        };
        let pages_max = PAGES_MAX / u64::from(config.processes);
        config.pages = table.integer("pages", default.pages.into(), 1..=pages_max)? as u32;
        config.jitter = duration("jitter_ns", default.jitter, (0.0, 1_000_000.0))?;
        if config.retry_max < config.retry_min {
            let us = |at: Ps| at.as_ns_f64() / 1e3;
            let problem = format!(
                "must be at least retry_min_us, {}; {} is the default",
                us(config.retry_min),
                us(default.retry_max),
            );
            return Err(table.error("retry_max_us", problem));
        }
        Ok(config)
    }

    fn quiet(&mut self) {
        (self.processes, self.pages, self.jitter) = (1, 1, Ps::ZERO);
        // Windows outlive messages: the time of a message alone would depend on earlier messages.
        self.window_initial = None;
    }
}

fn tlb_entries(table: &Table<'_>, default: u32) -> Result<u32, InputError> {
    let read = |entries: &u64| (4..=65_536).contains(entries) && entries.is_power_of_two();
    let entries = table.read("tlb_entries", default, "a power of two, 4 to 65536", |value| {
        as_integer(value).filter(read)
    })?;
    Ok(entries.map_or(default, |entries| entries as u32))
}
