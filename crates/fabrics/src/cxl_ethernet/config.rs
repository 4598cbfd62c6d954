//! Parameters of CXL over Ethernet.

use std::ops::RangeInclusive;

use ethermem_cxl::agent::ACCESSES_MAX;
use ethermem_cxl::cache::CacheConfig;
use ethermem_cxl::compute::ComputeConfig;
use ethermem_cxl::memory::{Backpressure, MemoryConfig};
use ethermem_cxl::rate::{ControlConfig, ControlConfigError, Mbps};
use ethermem_cxl::retry::Retransmission;
use ethermem_cxl::stages::StageLatencies;
use ethermem_cxl::translate::TranslatorConfig;
use ethermem_cxl::{Storage, rate};
use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{
    BUFFER_BYTES, Table, as_integer, as_number, buffer_or, bytes, delay_ns, delay_or, timeout_or,
    timeout_us,
};
use ethermem_engine::topology::{LinkTiming, MAC, STANDARD_PCS};
use ethermem_units::{Bytes, Clock, Cycles, Ps};
use ethermem_wire::cxl::Mac;
use ethermem_workload::InputError;

use super::SECTION_LINES;

/// The CXL IP of the compute node's board (Table I).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CxlIp {
    /// Synthesized logic behind PCIe Gen4 x8: the U280 of the prototype.
    #[default]
    Soft,
    /// Hardened logic behind PCIe Gen5 x16: Intel's Agilex.
    Hard,
}

/// What an access to the memory takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryKind {
    /// `fabric.memory_access_ns`, as in every fabric.
    #[default]
    Fabric,
    /// A channel of DDR4-2400 with its banks, and the controller of the prototype.
    Ddr4,
}

/// When a write ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// When its last byte is in the memory, as in every fabric.
    #[default]
    Posted,
    /// When the processor has its last response.
    Acknowledged,
}

/// The parameters of the fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct CxlEthernetConfig {
    /// Time between processor and CXL agent, in each direction.
    pub host: Ps,
    /// The clock of agent, packet managers and translator.
    pub agent_clock: Clock,
    /// The clock of the Ethernet MAC.
    pub mac_clock: Clock,
    /// The clock of the memory node's data path.
    pub memory_clock: Clock,
    /// Bytes of the data path, and of an entry of a FIFO.
    pub width: Bytes,
    /// Both MACs, both PHYs and one cable, in one direction.
    pub ethernet: Ps,
    /// Entries of the FIFO in front of a MAC, and behind it.
    pub fifo_entries: u32,
    /// Entries of the memory node's FIFO above which it signals congestion.
    pub fifo_threshold: u32,
    /// How it signals.
    pub backpressure: Backpressure,
    /// Time after which congestion is signalled again while it lasts.
    pub signal_interval: Ps,
    /// Buffer of a switch port.
    pub buffer: Bytes,
    /// Bytes of a link's packets in a switch above which the switch pauses it; `None` for the
    /// default at the link's rate.
    pub pause: Option<Bytes>,
    /// What is sent again after a loss.
    pub retransmission: Retransmission,
    /// Most requests of a pair that are sent and not answered.
    pub window: u32,
    /// Time without a response after which a request is sent again.
    pub retry_after: Ps,
    /// Time after which an access is given up.
    pub give_up_after: Ps,
    /// Congestion control.
    pub control: ControlConfig,
    /// Entries of a memory node's TLB.
    pub tlb_entries: u32,
    /// Accesses to its memory under way at once.
    pub accesses_max: u32,
    /// What an access to it takes.
    pub memory: MemoryKind,
    /// When a write ends.
    pub writes: Writes,
    /// Frames lost on the last link of their way, of a million.
    pub loss_ppm: u32,
    /// Bytes of a compute node's cache, for accesses with addresses; 0 for none.
    pub cache: Bytes,
    /// True if memories are timed at their best: TLBs hit, rows are open. For the time alone.
    pub at_best: bool,
}

/// Between processor and agent, one way: half of what 415 ns for all hits leave beside the mean of
/// 14 and 16 cycles (section V, Table II).
const HOST_SOFT: Ps = Ps(177_500);
/// With a hard CXL IP, a local access takes 418 ns instead of 735 (Table I).
const HOST_HARD: Ps = Ps(177_500 - 317_000 / 2);
/// Sections of a CMem with addresses: as many as lines have numbers for.
const SECTIONS_MAX: usize = (1 << 40) / SECTION_LINES as usize;
/// Entries of a FIFO that has room for all that a message has under way: a frame with a line takes
/// two.
const ENTRIES_ALONE: u32 = 4 * ACCESSES_MAX as u32;
/// Rates and times that the paper or we give at 100 Gb/s.
const PAPER_GBPS: f64 = 100.0;

const BACKPRESSURES: [(&str, Backpressure); 2] =
    [("congestion", Backpressure::Congestion), ("none", Backpressure::None)];
const RETRANSMISSIONS: [(&str, Retransmission); 2] =
    [("selective", Retransmission::Selective), ("go-back-n", Retransmission::GoBackN)];
const MEMORIES: [(&str, MemoryKind); 2] =
    [("fabric", MemoryKind::Fabric), ("ddr4-2400", MemoryKind::Ddr4)];
const WRITES: [(&str, Writes); 2] =
    [("posted", Writes::Posted), ("acknowledged", Writes::Acknowledged)];

impl Parameters for CxlEthernetConfig {
    const TABLE: &'static str = "cxl_ethernet";

    fn read(table: &Table<'_>, config: &FabricConfig) -> Result<CxlEthernetConfig, InputError> {
        let compute = ComputeConfig::published(Mac([0; 6]));
        let memory = MemoryConfig::published(Mac([0; 6]));
        let host = host(table)?;
        let clock = |key, default: Ps| {
            let ns = table.number(key, default.as_ns_f64(), 0.001..=1_000.0)?;
            Ok::<_, InputError>(Clock { period: Ps::from_ns_f64(ns).expect("it is in range") })
        };
        let count = |key, default: u32, most| {
            Ok::<_, InputError>(table.integer(key, default.into(), 1..=most)? as u32)
        };
        // In the order of the page.
        let agent_clock = clock("agent_clock_ns", Ps(4_000))?;
        let mac_clock = clock("mac_clock_ns", Ps(3_103))?;
        let memory_clock = clock("memory_clock_ns", Ps(3_333))?;
        let width = bytes(table, "width_bytes", Bytes(64), (1, 4_096))?;
        let ethernet = delay_ns(table, "ethernet_ns", 376)?;
        let fifo_entries = table.integer("fifo_entries", 512, 2..=1 << 20)?;
        let threshold = (fifo_entries.min(memory.fifo_threshold.into()), "105");
        Ok(CxlEthernetConfig {
            host,
            agent_clock,
            mac_clock,
            memory_clock,
            width,
            ethernet,
            fifo_entries: fifo_entries as u32,
            fifo_threshold: table.bounded(
                "fifo_threshold",
                threshold,
                (0, fifo_entries, "fifo_entries"),
            )? as u32,
            backpressure: table.choice("backpressure", &BACKPRESSURES)?,
            signal_interval: timeout_us(table, "signal_interval_us", memory.signal_interval)?,
            buffer: bytes(table, "buffer_bytes", Bytes(225_000), BUFFER_BYTES)?,
            pause: buffer_or(table, "pause_bytes", "24470 at 40 Gb/s", 0)?,
            retransmission: table.choice("retransmission", &RETRANSMISSIONS)?,
            window: count("window_requests", compute.window, 1 << 15)?,
            retry_after: retry_after(table, config, compute.retry_after)?,
            give_up_after: give_up_after(table, config)?,
            control: control(table, config)?,
            tlb_entries: count("tlb_entries", memory.translator.tlb_entries as u32, 1 << 16)?,
            accesses_max: count("accesses_max", memory.accesses_max, 65_535)?,
            memory: table.choice("memory", &MEMORIES)?,
            writes: table.choice("writes", &WRITES)?,
            loss_ppm: table.integer("loss_ppm", 0, 0..=500_000)? as u32,
            cache: cache(table)?,
            at_best: false,
        })
    }

    fn quiet(&mut self) {
        self.loss_ppm = 0;
        // TLBs and rows outlive messages, as does the rate: the time of a message alone would
        // depend on earlier ones.
        self.at_best = true;
        self.control.initial = self.control.line;
        // A message that is alone is not slowed by its own signals, which in company may reach
        // others in its place. Then nothing may be lost for want of room, or repeated meanwhile.
        self.backpressure = Backpressure::None;
        self.fifo_entries = self.fifo_entries.max(ENTRIES_ALONE);
        self.retry_after = Ps::from_ns(1_000_000_000);
        self.give_up_after = self.retry_after;
    }

    fn check(&self, _config: &FabricConfig) -> Result<(), (&'static str, String)> {
        let problem = |error| match error {
            // In the keys and the unit of the scenario. Rates over the link's were lowered to it.
            ControlConfigError::Initial(_, floor, _) => {
                let floor = f64::from(floor) / 1e3;
                format!("must be at least rate_min_gbps, {floor}")
            }
            error => error.to_string(),
        };
        let control = rate::RateControl::new(self.control).map(|_| ());
        control.map_err(|error| ("rate_initial_gbps", problem(error)))
    }
}

/// The size of the cache: sets of the published number of ways are a power of two.
fn cache(table: &Table<'_>) -> Result<Bytes, InputError> {
    const CACHE_BYTES: RangeInclusive<u64> = 256..=1 << 30;
    let CacheConfig { bytes, .. } = CacheConfig::published();
    let allowed =
        format!("0, or a power of two from {} to {}", CACHE_BYTES.start(), CACHE_BYTES.end());
    let is_one = |bytes: u64| bytes.is_power_of_two() && CACHE_BYTES.contains(&bytes);
    let own = table.read("cache_bytes", bytes, &allowed, |value| {
        as_integer(value).filter(|&bytes| bytes == 0 || is_one(bytes))
    })?;
    Ok(Bytes(own.unwrap_or(bytes.into())))
}

/// Time between processor and agent, one way.
fn host(table: &Table<'_>) -> Result<Ps, InputError> {
    let host = match table.choice("cxl_ip", &[("soft", CxlIp::Soft), ("hard", CxlIp::Hard)])? {
        CxlIp::Soft => HOST_SOFT,
        CxlIp::Hard => HOST_HARD,
    };
    let default = "177.5, or 19 with a hard CXL IP";
    Ok(delay_or(table, "host_ns", default)?.unwrap_or(host))
}

fn retry_after(table: &Table<'_>, config: &FabricConfig, default: Ps) -> Result<Ps, InputError> {
    patience(table, config, ("retry_after_us", "20, longer below 100 Gb/s"), default)
}

fn give_up_after(table: &Table<'_>, config: &FabricConfig) -> Result<Ps, InputError> {
    let default = Ps::from_ns(10_000_000);
    patience(table, config, ("give_up_us", "10000, longer below 100 Gb/s"), default)
}

/// A time whose default is longer on slower links: what is waited for takes longer.
fn patience(
    table: &Table<'_>,
    config: &FabricConfig,
    (key, default): (&str, &str),
    at_paper: Ps,
) -> Result<Ps, InputError> {
    let slower = (PAPER_GBPS / config.link.as_gbps_f64()).max(1.0);
    let given = timeout_or(table, key, default)?;
    Ok(given.unwrap_or(Ps((at_paper.0 as f64 * slower) as u64)))
}

/// The congestion control: times as published, rates of the link.
fn control(table: &Table<'_>, config: &FabricConfig) -> Result<ControlConfig, InputError> {
    let published = ControlConfig::published();
    let line = Mbps((config.link.as_gbps_f64() * 1e3) as u32);
    let gbps = |key, default: &str| {
        let read = |gbps: &f64| (0.001..=400.0).contains(gbps);
        let gbps =
            table.read(key, default, "0.001 to 400", |value| as_number(value).filter(read))?;
        Ok::<_, InputError>(gbps.map(|gbps| Mbps((gbps * 1e3) as u32)))
    };
    let initial = gbps("rate_initial_gbps", "the link's rate")?.unwrap_or(line);
    let floor = gbps("rate_min_gbps", "1")?.unwrap_or(published.floor);
    let step = gbps("step_gbps", "1")?.unwrap_or(published.step);
    Ok(ControlConfig {
        line,
        floor: floor.min(line),
        initial: initial.min(line),
        step: step.min(line),
        t1: timeout_us(table, "t1_us", published.t1)?,
        t2: timeout_us(table, "t2_us", published.t2)?,
        t3: timeout_us(table, "t3_us", published.t3)?,
        t4: timeout_us(table, "t4_us", published.t4)?,
        t5: timeout_us(table, "t5_us", published.t5)?,
        t6: timeout_us(table, "t6_us", published.t6)?,
    })
}

/// Cycles of either packet manager that a frame of each direction passes on its way.
pub(super) fn managers() -> Cycles {
    let stages = StageLatencies::published();
    stages.response_build + stages.response_parse
}

impl CxlEthernetConfig {
    /// Time of so many cycles of the agent's clock.
    pub(super) fn cycles(&self, cycles: Cycles) -> Ps {
        self.agent_clock.duration(cycles)
    }

    /// Time of a frame at either end beside the parts that every fabric's network has: the rest of
    /// the FPGA's Ethernet, and half of the packet managers' work on a response.
    pub(super) fn stack(&self, config: &FabricConfig) -> Ps {
        let timing = LinkTiming::of(config);
        let standard = timing.cycles(MAC) * 2 + timing.hop(STANDARD_PCS);
        let ethernet = Ps(self.ethernet.0.saturating_sub(standard.0));
        Ps((ethernet + self.cycles(managers())).0 / 2)
    }

    /// Entries of a FIFO that a frame of so many octets takes.
    pub(super) fn entries(&self, octets: usize) -> u64 {
        (octets as u64).div_ceil(self.width.0)
    }

    /// A compute node; `is_placed` says that accesses have addresses.
    pub(super) fn compute(&self, mac: Mac, nodes: u16, is_placed: bool) -> ComputeConfig {
        let bytes = self.cache.0 as u32;
        let published = CacheConfig::published();
        let is_cached = is_placed && bytes > 0;
        ComputeConfig {
            cache: is_cached.then_some(CacheConfig { bytes, ..published }),
            section_lines: SECTION_LINES,
            sections_max: if is_placed { SECTIONS_MAX } else { nodes.into() },
            control: self.control,
            retransmission: self.retransmission,
            window: self.window,
            retry_after: self.retry_after,
            give_up_after: self.give_up_after,
            storage: Storage::OnDemand,
            ..ComputeConfig::published(mac)
        }
    }

    pub(super) fn memory(&self, mac: Mac, nodes: u16) -> MemoryConfig {
        MemoryConfig {
            peers_max: nodes.into(),
            window: self.window,
            retransmission: self.retransmission,
            accesses_max: self.accesses_max,
            fifo_entries: self.fifo_entries,
            fifo_threshold: self.fifo_threshold,
            backpressure: self.backpressure,
            signal_interval: self.signal_interval,
            translator: TranslatorConfig {
                page_lines: SECTION_LINES,
                tlb_entries: self.tlb_entries as usize,
                buckets: usize::from(nodes).next_power_of_two().max(16),
            },
            storage: Storage::OnDemand,
            ..MemoryConfig::published(mac)
        }
    }
}
