//! DFabric's parameters.

use ethermem_dfabric::accelerator::AcceleratorCycles;
use ethermem_dfabric::nic::NicConfig;
use ethermem_dfabric::poller::PollMode;
use ethermem_dfabric::small_queue::{ChargeEnd, SmallQueueConfig};
use ethermem_dfabric::stream::{SenderConfig, Spread};
use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{BUFFER_BYTES, Table, as_number, bytes, delay_ns, timeout_or};
use ethermem_engine::topology::Frame;
use ethermem_units::{BitsPerSecond, Bytes, Ps};
use ethermem_workload::{InputError, NodeIndex};

use crate::cxl::CxlConfig;

/// Bytes in front of the data of a Buffer: a line, so that data begins with a line.
pub(super) const HEAD_BYTES: u64 = 64;

/// How a write within a rack moves its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntraRack {
    /// The node stores lines into the memory of the other one.
    Lines,
    /// The node passes a reference, and the other one loads the header alone (4.3).
    Reference,
    /// As by reference, and the other node loads the data, too.
    Value,
}

/// Parameters of `fabric.kind = "dfabric"`.
#[derive(Clone, Debug, PartialEq)]
pub struct DfabricConfig {
    /// Racks over which the nodes are divided.
    pub racks: u16,
    /// NICs of a rack beside one for each node (M).
    pub extra_nics: u16,
    /// Ratio of the rate of a link of the memory fabric to the rate of a NIC.
    pub theta: u64,
    /// How a write within a rack moves its data.
    pub intra_rack: IntraRack,
    /// Levels of switches of the memory fabric.
    pub switch_levels: u16,
    /// Memory devices of a rack beside the nodes' memory; `None`: twice the bandwidth of its NICs.
    pub memory_devices: Option<u16>,
    /// Time of an access to a memory device.
    pub device: Ps,
    /// Bandwidth of a memory device in bits per second; `None`: a link of the fabric's.
    pub device_gbps: Option<f64>,
    /// Time of an access of a node to its own memory, or to the DRAM cache in its port.
    pub local: Ps,
    /// Bandwidth of a node's memory.
    pub local_gbps: f64,
    /// TxQs, and RxQs, of a node.
    pub queues: u16,
    /// Entries of a TxQ and of an RxQ.
    pub queue_entries: u32,
    /// How tails of TxQs are polled.
    pub poll: PollMode,
    /// Entries of a NIC's TX queue, and Buffers of its RX queue.
    pub nic_entries: u32,
    /// Packets that a NIC reads from memory at once.
    pub dma_reads: u32,
    /// Bytes of a Buffer.
    pub buffer_bytes: u64,
    /// Buffer of a port of the switch between the racks.
    pub port_bytes: Bytes,
    /// Time through the network between the racks, beside the standard parts.
    pub core: Ps,
    /// Bytes of a node's DRAM cache; 0: it has none.
    pub cache_bytes: u64,
    /// Shorter packets are not cached.
    pub filter_bytes: u32,
    /// Loads and stores of a node under way at once.
    pub loads_max: u32,
    /// Segments of a stream under way at once.
    pub window: u32,
    /// Subflows of a stream.
    pub subflows: u16,
    /// Bytes of a subflow under way at once.
    pub subflow_bytes: u64,
    /// Which subflow gets the next segment.
    pub spread: Spread,
    /// Least time after which a segment is sent again.
    pub timeout: Ps,
    /// When a segment's charge to its small queue ends; `None`: there is no small queue.
    pub small_queue: Option<ChargeEnd>,
    /// Frames lost on the last link of their way, of a million.
    pub loss_ppm: u32,
    /// Length of a slice in which bytes of memories are counted; 0: they are not.
    pub memory_slice: Ps,
    /// True for the time alone, which is the least possible. Polls in turn find entries at once,
    /// and memories, queues and paths of packets differ. Acknowledgements take no room, and a
    /// device's reads none from its writes.
    pub at_best: bool,
}

const POLLS: [(&str, PollMode); 2] =
    [("concurrent", PollMode::Concurrent), ("in-turn", PollMode::InTurn)];
const SPREADS: [(&str, Spread); 2] = [("turns", Spread::Turns), ("least", Spread::Least)];
const INTRA_RACK: [(&str, IntraRack); 3] =
    [("lines", IntraRack::Lines), ("reference", IntraRack::Reference), ("value", IntraRack::Value)];
const SMALL_QUEUES: [(&str, Option<ChargeEnd>); 3] =
    [("taken", Some(ChargeEnd::Taken)), ("freed", Some(ChargeEnd::Freed)), ("off", None)];

fn power_of_two(
    table: &Table<'_>,
    key: &str,
    default: u64,
    (least, most): (u64, u64),
) -> Result<u64, InputError> {
    let allowed = format!("powers of two from {least} to {most}");
    let value = table.read(key, default, &allowed, |value| {
        let is_fit = |value: &u64| value.is_power_of_two() && (least..=most).contains(value);
        ethermem_engine::keys::as_integer(value).filter(is_fit)
    })?;
    Ok(value.unwrap_or(default))
}

/// The default is longer on slower links: what is waited for takes longer.
fn timeout(table: &Table<'_>, config: &FabricConfig) -> Result<Ps, InputError> {
    let slower = (100.0 / config.link.as_gbps_f64()).max(1.0);
    let given = timeout_or(table, "timeout_us", "200, longer below 100 Gb/s")?;
    Ok(given.unwrap_or(Ps((2e8 * slower) as u64)))
}

fn gbps(table: &Table<'_>, key: &str, default: &str) -> Result<Option<f64>, InputError> {
    table.read(key, default, "0.01 to 100000", |value| {
        as_number(value).filter(|gbps| (0.01..=100_000.0).contains(gbps))
    })
}

impl Parameters for DfabricConfig {
    const TABLE: &'static str = "dfabric";

    fn read(table: &Table<'_>, config: &FabricConfig) -> Result<DfabricConfig, InputError> {
        let count = |key, default: u64, most| {
            Ok::<_, InputError>(table.integer(key, default, 1..=most)? as u32)
        };
        // In the order of the page.
        Ok(DfabricConfig {
            racks: count("racks", 2, 64)? as u16,
            extra_nics: table.integer("extra_nics", 0, 0..=64)? as u16,
            theta: table.integer("theta", 4, 1..=64)?,
            intra_rack: table.choice("intra_rack", &INTRA_RACK)?,
            switch_levels: count("switch_levels", 1, 8)? as u16,
            memory_devices: table
                .integer_or_auto("memory_devices", 1..=512)?
                .map(|devices| devices as u16),
            device: delay_ns(table, "device_ns", 50)?,
            device_gbps: gbps(table, "device_gbps", "theta times link_gbps")?,
            local: delay_ns(table, "local_ns", 50)?,
            local_gbps: gbps(table, "local_gbps", "400")?.unwrap_or(400.0),
            queues: count("queues", 4, 64)? as u16,
            queue_entries: power_of_two(table, "queue_entries", 64, (2, 4_096))? as u32,
            poll: table.choice("poll", &POLLS)?,
            nic_entries: count("nic_entries", 64, 4_096)?,
            dma_reads: count("dma_reads", 8, 64)?,
            buffer_bytes: power_of_two(table, "buffer_bytes", 4_096, (256, 8_192))?,
            port_bytes: bytes(table, "port_bytes", Bytes(262_144), BUFFER_BYTES)?,
            core: delay_ns(table, "core_ns", 0)?,
            cache_bytes: cache_bytes(table)?,
            filter_bytes: table.integer("filter_bytes", 256, 0..=8_192)? as u32,
            loads_max: count("loads_max", 64, 4_096)?,
            window: power_of_two(table, "window_segments", 64, (1, 64))? as u32,
            subflows: count("subflows", 4, 64)? as u16,
            subflow_bytes: table.integer("subflow_bytes", 65_536, 1..=1 << 30)?,
            spread: table.choice("spread", &SPREADS)?,
            timeout: timeout(table, config)?,
            small_queue: table.choice("small_queue", &SMALL_QUEUES)?,
            loss_ppm: table.integer("loss_ppm", 0, 0..=500_000)? as u32,
            memory_slice: memory_slice(table)?,
            at_best: false,
        })
    }

    /// What company may change to a message's advantage is at its best: see `at_best`.
    fn quiet(&mut self) {
        self.loss_ppm = 0;
        self.memory_slice = Ps::ZERO;
        self.at_best = true;
        // Every segment has a subflow and a queue of its own, and so the NIC that is free first.
        let each = self.subflow_bytes.div_ceil(self.segment_bytes()).min(64) as u32;
        self.window = self.window.min((u32::from(self.subflows) * each).next_power_of_two());
        (self.subflows, self.queues, self.queue_entries) = (64, 64, 2);
        self.subflow_bytes = 1 << 30;
        self.timeout = self.timeout.max(Ps::from_ns(1_000_000_000));
    }

    fn check(&self, config: &FabricConfig) -> Result<(), (&'static str, String)> {
        let rate = BitsPerSecond::from_gbps(config.link.as_gbps_f64() as u64 * self.theta);
        if !rate.is_ok_and(|rate| rate.block_time().0.is_multiple_of(2)) {
            let problem = "a block of the fabric must take an even number of picoseconds";
            return Err(("theta", problem.to_owned()));
        }
        check_racks(self.racks, config.nodes)?;
        let rack = u64::from(config.nodes.div_ceil(self.racks));
        let queues = rack * u64::from(self.queues);
        if queues > 1 << 14 {
            return Err(("queues", format!("{queues} of a rack's nodes: must be at most 16384")));
        }
        Ok(())
    }
}

/// Checks that racks of equal size, but for the last one, make this number of racks.
pub(crate) fn check_racks(racks: u16, nodes: u16) -> Result<(), (&'static str, String)> {
    let each = nodes.div_ceil(racks);
    let made = nodes.div_ceil(each);
    if made == racks {
        return Ok(());
    }
    let problem = format!("{nodes} nodes make {made} racks of at most {each} nodes, not {racks}");
    Err(("racks", problem))
}

/// The length of a slice of time of the memories' traffic.
fn memory_slice(table: &Table<'_>) -> Result<Ps, InputError> {
    let ns = table.read("memory_slice_ns", 0, "0, 1000 to 1000000000", |value| {
        let is_fit = |ns: &u64| *ns == 0 || (1_000..=1_000_000_000).contains(ns);
        ethermem_engine::keys::as_integer(value).filter(is_fit)
    })?;
    Ok(Ps::from_ns(ns.unwrap_or(0)))
}

/// The size of a DRAM cache of four ways.
fn cache_bytes(table: &Table<'_>) -> Result<u64, InputError> {
    let allowed = "0, powers of two from 65536 to 2147483648";
    let bytes = table.read("cache_bytes", 1 << 20, allowed, |value| {
        let is_fit = |bytes: &u64| {
            *bytes == 0 || bytes.is_power_of_two() && (1 << 16..=1 << 31).contains(bytes)
        };
        ethermem_engine::keys::as_integer(value).filter(is_fit)
    })?;
    Ok(bytes.unwrap_or(1 << 20))
}

/// A rate that need not be whole: bytes take a time that is rounded up to a picosecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    ps_per_byte: f64,
}

impl Rate {
    pub(super) fn of_gbps(gbps: f64) -> Rate {
        Rate { ps_per_byte: 8_000.0 / gbps }
    }

    pub(super) fn time(self, bytes: u64) -> Ps {
        Ps((bytes as f64 * self.ps_per_byte).ceil() as u64)
    }
}

/// The times of a rack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// A load of the SN of the tail of a TxQ, which is in the node's memory.
    pub load: Ps,
    /// From a loaded tail to the descriptor in a NIC's queue.
    pub to_nic: Ps,
    /// From a loaded tail to the entry of an RxQ of the same rack.
    pub pass: Ps,
    /// From a completion, which the SN loads from its own memory, to the entry of an RxQ.
    pub from_nic: Ps,
    /// A node's own memory.
    pub local: Ps,
    /// The protocol stack of a node, for a packet.
    pub stack: Ps,
    /// The memory that a request asks for.
    pub memory: Ps,
    /// From a stack to a stack of another rack, at least: what an acknowledgement takes.
    pub ack: Ps,
    /// From a stack to a stack of the same rack, at least.
    pub ack_within: Ps,
}

impl DfabricConfig {
    /// Bytes of data of a full segment.
    pub(super) fn segment_bytes(&self) -> u64 {
        self.buffer_bytes - HEAD_BYTES
    }

    /// The rack of a node: racks are equal, but the last one may have fewer nodes.
    pub(super) fn rack_of(&self, nodes: u16, node: NodeIndex) -> u16 {
        node / nodes.div_ceil(self.racks)
    }

    /// Rate of a link of the memory fabric (C).
    pub(super) fn fabric_rate(&self, config: &FabricConfig) -> BitsPerSecond {
        let gbps = config.link.as_gbps_f64() as u64 * self.theta;
        BitsPerSecond::from_gbps(gbps).expect("the scenario was checked")
    }

    /// The memory fabric of a rack.
    pub(super) fn fabric(&self, config: &FabricConfig) -> CxlConfig {
        let own = *config.of::<CxlConfig>();
        CxlConfig { switch: own.switch * u64::from(self.switch_levels), ..own }
    }

    /// The times of racks with this latency of Ethernet between their NICs, without frames.
    pub(super) fn times(&self, config: &FabricConfig, ethernet: Ps) -> Times {
        let fabric = self.fabric(config);
        let cycles = AcceleratorCycles::fpga();
        let flit = fabric.flit.time(self.fabric_rate(config));
        // A store of the SN to a node or a NIC, or one way of a load: a flit, its link, the port.
        let hop = flit + config.propagation + fabric.port;
        let load = hop * 2 + self.local;
        let to_nic = cycles.clock.duration(cycles.to_nic()) + hop;
        let pass = cycles.clock.duration(cycles.intra_rack()) + hop;
        let from_nic = self.local + cycles.clock.duration(cycles.from_nic()) + hop;
        let (local, memory) = (self.local, config.memory_access);
        let stack = config.packet.stack.unwrap_or(crate::budget::TCP_STACK);
        let way = (fabric.port + flit + config.propagation) * 2 + fabric.switch;
        let frame = config.link.block_time() * (2 * u64::from(Frame::LEAST.tail));
        let nics = way * 5 + memory + self.device + to_nic + from_nic + load;
        let ack = (stack + local) * 2 + nics + ethernet + self.core + frame;
        let ack_within = (stack + local) * 2 + load + pass + way * 2 + memory;
        Times { load, to_nic, pass, from_nic, local, stack, memory, ack, ack_within }
    }

    /// Memory devices of a rack with so many NICs: what its NICs receive is written, and read.
    pub(super) fn devices(&self, nics: u16) -> u16 {
        self.memory_devices.unwrap_or((u64::from(nics) * 2).div_ceil(self.theta) as u16)
    }

    pub(super) fn nic(&self, config: &FabricConfig) -> NicConfig {
        let entries = self.nic_entries;
        NicConfig { rate: config.link, tx_entries: entries, rx_entries: entries }
    }

    /// The sender of a stream of so many segments.
    pub(super) fn sender(&self, segments: u64) -> SenderConfig {
        let window = segments.min(self.window.into()).next_power_of_two() as u32;
        SenderConfig {
            window: window.min(self.window),
            subflows: self.subflows,
            subflow_bytes: self.subflow_bytes,
            spread: self.spread,
        }
    }

    pub(super) fn small_queue(&self, config: BitsPerSecond) -> SmallQueueConfig {
        match self.small_queue {
            Some(end) => SmallQueueConfig::linux(end, Bytes(self.buffer_bytes), config),
            None => SmallQueueConfig::OFF,
        }
    }
}
