//! What a rack is built of: its memory pool, its switch node, its receive buffers, its nodes.

use std::collections::VecDeque;

use ethermem_dfabric::address::Node;
use ethermem_dfabric::cache::{CacheConfig, DramCache};
use ethermem_dfabric::interrupt::{InterruptRegister, Moderation};
use ethermem_dfabric::loads::LoadWindow;
use ethermem_dfabric::nic::{MemoryDevice, NicId, ReceiveSpread, TxQueue};
use ethermem_dfabric::pool::{MemoryPool, PoolConfig, Protection};
use ethermem_dfabric::switch_node::{SwitchConfig, SwitchNode};
use ethermem_engine::FabricConfig;
use ethermem_placement::NodeId;
use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::config::DfabricConfig;
use super::copy::LINE_BYTES;
use super::meter::Meter;
use super::rack::{HOLDS_MAX, Member, SECTIONS, identity};

/// Bulk reads of a DRAM cache at once.
const FETCHES_MAX: u32 = 64;
/// Ways of a DRAM cache.
const WAYS: u32 = 4;
/// Segments of a stream under way at once: `window_segments` is at most this.
const SEGMENTS_MAX: u32 = 64;

pub(super) fn pool(rules: &DfabricConfig, nodes: u16, devices: u16, nics: u16) -> MemoryPool {
    let holds_max = HOLDS_MAX + u32::from(nics) * rules.nic_entries;
    let config = PoolConfig {
        nodes_max: nodes + 1,
        class_bytes: vec![rules.buffer_bytes],
        holds_max,
        skbs_max: holds_max,
        // A Region of a node has as many Sections as its memory; the SN has all devices.
        regions_max: u32::from(nodes) * (SECTIONS / 512) + u32::from(devices) * (SECTIONS / 512),
        sections_kept: 1,
        buffers_low: 0,
        protection: Protection::Buffer,
    };
    let mut pool = MemoryPool::new(&config).expect("the scenario was checked");
    for device in (0..nodes + devices).map(NodeId) {
        pool.add_device(device, SECTIONS).expect("each device joins once");
    }
    for node in (0..nodes).map(Node) {
        pool.join(node, SECTIONS, &[NodeId(node.0)]).expect("each node joins once");
    }
    let all: Vec<NodeId> = (nodes..nodes + devices).map(NodeId).collect();
    let quota = SECTIONS * u32::from(devices);
    pool.join(Node(nodes), quota, &all).expect("the switch node joins once");
    pool
}

pub(super) fn switch(
    config: &FabricConfig,
    rules: &DfabricConfig,
    (first, nodes, nics): (NodeIndex, u16, u16),
) -> SwitchNode {
    let switch = SwitchConfig {
        node: Node(nodes),
        nodes: nodes + 1,
        queues: rules.queues,
        rx_entries: rules.queue_entries,
        mode: rules.poll,
        // Each node's port has an accelerator of its own (4.7).
        loads_max: u32::from(nodes) * u32::from(rules.queues),
    };
    let nics = vec![rules.nic(config); usize::from(nics)];
    let mut switch = SwitchNode::new(switch, &nics);
    if rules.at_best {
        // Packets are of equal lengths: in turn, each has the NIC that is free first.
        let queues = u32::from(nodes) * u32::from(rules.queues);
        for queue in 0..queues {
            let nic = queue % u32::from(rules.queues) % nics.len() as u32;
            switch.nics_mut().pin(TxQueue(queue), NicId(nic as u16));
        }
    }
    for node in 0..config.nodes {
        match node.checked_sub(first).filter(|at| *at < nodes) {
            Some(at) => switch.join(Node(at), identity(node)),
            None => switch.add_remote(identity(node)),
        }
    }
    switch
}

pub(super) fn spread(
    config: &FabricConfig,
    rules: &DfabricConfig,
    nodes: u16,
    devices: u16,
) -> ReceiveSpread {
    // All devices have one bandwidth, so any value spreads alike.
    let bandwidth = rules.fabric_rate(config);
    let device = |port| MemoryDevice { device: NodeId(port), bandwidth };
    ReceiveSpread::new(&(nodes..nodes + devices).map(device).collect::<Vec<_>>())
}

pub(super) fn member(rules: &DfabricConfig) -> Member {
    // At its best, a packet that is several rounds of loads finds a way.
    let is_slow = rules.buffer_bytes > u64::from(rules.loads_max) * LINE_BYTES;
    let ways = if rules.at_best && is_slow { SEGMENTS_MAX } else { WAYS };
    let cache = CacheConfig {
        capacity_bytes: rules.cache_bytes.max(u64::from(ways) * rules.buffer_bytes),
        ways,
        line_bytes: rules.buffer_bytes,
        filter_bytes: rules.filter_bytes,
        fetches_max: FETCHES_MAX,
    };
    let cache = (rules.cache_bytes > 0).then(|| DramCache::new(cache));
    let slice = if rules.cache_bytes > 0 { rules.memory_slice } else { Ps::ZERO };
    Member {
        loads: LoadWindow::new(rules.loads_max),
        asks: VecDeque::new(),
        cache: cache.transpose().expect("the scenario was checked"),
        cache_meter: Meter::new(slice),
        interrupt: InterruptRegister::new(Moderation::OFF),
    }
}
