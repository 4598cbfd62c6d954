//! A rack: its memory fabric, its memories, its pool and its queues.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;

use ethermem_dfabric::address::{Node, RegionId};
use ethermem_dfabric::cache::DramCache;
use ethermem_dfabric::interrupt::InterruptRegister;
use ethermem_dfabric::loads::LoadWindow;
use ethermem_dfabric::nic::{NicId, ReceiveSpread};
use ethermem_dfabric::pool::{Freed, MemoryPool, PoolError, Preference};
use ethermem_dfabric::ring::{Consumer, Producer, PushError, RingMemory};
use ethermem_dfabric::switch_node::SwitchNode;
use ethermem_engine::FabricConfig;
use ethermem_engine::engine::{Handle, Sim};
use ethermem_engine::metrics::{MemoryKind, MemoryUse};
use ethermem_placement::NodeId;
use ethermem_units::{Bytes, Ps};
use ethermem_wire::dfabric::{Descriptor, DescriptorWords, FabricAddress, Identity, SECTION_BYTES};
use ethermem_workload::{Kind, NodeIndex};

use super::config::{DfabricConfig, IntraRack, Rate};
use super::copy::{Ask, Trains};
use super::memory::Memory;
use super::meter::{Meter, User};
use super::slab::Slab;
use super::{Event, parts};
use crate::cxl::{Cxl, Order};

/// References to Buffers of a rack at once, beside those that wait in the NICs' RX queues.
pub(super) const HOLDS_MAX: u32 = 1 << 17;
/// Buffers of the nodes' own at once. The node and the SN may hold each; the other references are
/// for what NICs have received.
const OWN_MAX: u32 = HOLDS_MAX / 4;
/// Sections of a memory: 2 GiB.
pub(super) const SECTIONS: u32 = 1_024;

/// A number of a rack.
pub(super) type RackId = u16;

/// What happens when a transfer over the memory fabric ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// Lines of a copy have come, or are written.
    Lines { ask: u32, lines: u32 },
    /// A NIC has the packet with this number of its TX queue.
    Read { nic: u16, number: u64 },
    /// A packet that a NIC received is in its Buffer.
    Written { packet: u32 },
    /// A DRAM cache has the Buffer of a packet.
    Fetched { packet: u32 },
}

/// A read or a write of a memory, over the memory fabric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) kind: Kind,
    /// The port that reads or writes.
    pub(super) port: u16,
    /// The port of the memory.
    pub(super) memory: u16,
    pub(super) bytes: u64,
    pub(super) what: What,
    /// The message whose data it moves.
    pub(super) message: Option<Handle>,
    /// Of a read: when its memory begins with it, and the lines that were asked for.
    pub(super) read: Option<(Ps, u64)>,
    /// What reads or writes.
    pub(super) user: User,
}

/// A TxQ or an RxQ, with both of its ends.
pub(super) struct Queue {
    words: Box<[AtomicU64]>,
    producer: Producer,
    consumer: Consumer,
}

impl Queue {
    fn new(entries: u32) -> Queue {
        let words = (0..entries * 4 + 1).map(|_| AtomicU64::new(0)).collect();
        Queue { words, producer: Producer::default(), consumer: Consumer::default() }
    }

    /// Stores an entry; false if the queue is full.
    pub(super) fn push(&mut self, words: DescriptorWords) -> bool {
        let memory = RingMemory::new(&self.words).expect("a power of two of entries");
        match self.producer.push(&memory, words) {
            Ok(()) => true,
            Err(PushError::Full) => false,
            Err(PushError::Fault(fault)) => panic!("the fabric itself consumes: {fault:?}"),
        }
    }

    pub(super) fn pop(&mut self) -> Option<DescriptorWords> {
        self.consumer.pop(&RingMemory::new(&self.words).expect("a power of two of entries"))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.producer.head() == self.consumer.tail()
    }
}

/// A TxQ: its ring, and what its node keeps while the ring is full.
pub(super) struct TxQ {
    pub(super) ring: Queue,
    pub(super) outbox: VecDeque<DescriptorWords>,
    /// When each entry of the ring was stored: a load finds those that were there as it began.
    pub(super) stored: VecDeque<Ps>,
    /// True while its tail is being loaded.
    pub(super) loading: bool,
    /// True while its last entry waits for room in a NIC's queue.
    pub(super) blocked: bool,
}

/// An RxQ, and the packets from it that its node loads.
pub(super) struct RxQ {
    pub(super) ring: Queue,
    /// In the order of the queue, and true for those that are loaded: the stack takes them in this
    /// order, whatever memory a packet is in.
    pub(super) loading: VecDeque<(u32, bool)>,
}

/// A node of the rack.
pub(super) struct Member {
    pub(super) loads: LoadWindow,
    /// Copies with lines whose loads have not begun.
    pub(super) asks: VecDeque<u32>,
    pub(super) cache: Option<DramCache>,
    /// What the DRAM cache moves, if the scenario requests it.
    pub(super) cache_meter: Option<Box<Meter>>,
    pub(super) interrupt: InterruptRegister,
}

/// A NIC, beside its physical queues.
#[derive(Default)]
pub(super) struct Nic {
    /// Packets of its TX queue of which it was told, and of them those that it reads or has.
    pub(super) told: u64,
    pub(super) reading: u64,
    /// Packets that were sent.
    pub(super) sent: u64,
    /// By place in the TX queue: true if the NIC has the packet.
    pub(super) has: VecDeque<bool>,
    pub(super) sending: bool,
    /// Packets received, in their order, and true for those in memory.
    pub(super) landing: VecDeque<(u32, bool)>,
    /// The completion queue.
    pub(super) completions: VecDeque<u32>,
    /// True while the first completion waits for room in an RxQ.
    pub(super) stalled: bool,
}

/// A rack.
pub(super) struct Rack {
    pub(super) id: RackId,
    /// The first node, and how many there are.
    pub(super) first: NodeIndex,
    pub(super) nodes: u16,
    devices: u16,
    pub(super) fabric: Cxl,
    pub(super) transfers: Slab<Transfer>,
    pub(super) asks: Slab<Ask>,
    pub(super) memories: Vec<Memory>,
    pub(super) pool: MemoryPool,
    pub(super) switch: SwitchNode,
    spread: ReceiveSpread,
    pub(super) tx: Vec<TxQ>,
    pub(super) rx: Vec<RxQ>,
    /// Polling in turn: the queue whose tail is being loaded, and the end of the last load.
    pub(super) turn: Option<u32>,
    pub(super) turned: Ps,
    pub(super) members: Vec<Member>,
    pub(super) nics: Vec<Nic>,
    /// Streams that wait for a Buffer.
    pub(super) starved: VecDeque<u32>,
    buffer_bytes: u64,
    /// True if the nodes' own Regions are cached, too: nodes load Buffers of each other.
    caches_own: bool,
    /// Receive buffers in RX queues of NICs.
    posted: u64,
    /// Buffers of the nodes' own that are held.
    own: u32,
    pub(super) port: Ps,
    pub(super) trains: Trains,
}

/// The name of a node among all racks.
pub(super) fn identity(node: NodeIndex) -> Identity {
    Identity(0x0a00_0000 | u32::from(node))
}

/// The node of a name.
pub(super) fn node_of(identity: Identity) -> NodeIndex {
    (identity.0 & 0xffff) as u16
}

impl Rack {
    pub(super) fn new(config: &FabricConfig, rules: &DfabricConfig, id: RackId) -> Rack {
        let of_rack = |node: &NodeIndex| rules.rack_of(config.nodes, *node) == id;
        let first = (0..config.nodes).find(of_rack).expect("each rack has a node");
        let nodes = (0..config.nodes).filter(of_rack).count() as u16;
        let nics = nodes + rules.extra_nics;
        let devices = rules.devices(nics);
        let ports = nodes + devices + nics;
        let fabric = Cxl::network(
            (rules.fabric(config), Order::Whole),
            ports,
            rules.fabric_rate(config),
            (config.propagation, config.memory_access),
        );
        let device_gbps = rules.device_gbps.unwrap_or(rules.fabric_rate(config).as_gbps_f64());
        let memory = |port| {
            let is_local = port < nodes;
            let rate = Rate::of_gbps(if is_local { rules.local_gbps } else { device_gbps });
            let access = (!is_local).then_some(rules.device);
            let meter = Meter::new(rules.memory_slice);
            Memory::new(rate, access, is_local || rules.at_best, meter)
        };
        let tx = || TxQ {
            ring: Queue::new(rules.queue_entries),
            outbox: VecDeque::new(),
            stored: VecDeque::new(),
            loading: false,
            blocked: false,
        };
        let rx = || RxQ { ring: Queue::new(rules.queue_entries), loading: VecDeque::new() };
        let queues = u32::from(nodes + 1) * u32::from(rules.queues);
        let mut rack = Rack {
            id,
            first,
            nodes,
            devices,
            fabric,
            transfers: Slab::new(),
            asks: Slab::new(),
            memories: (0..nodes + devices).map(memory).collect(),
            pool: parts::pool(rules, nodes, devices, nics),
            switch: parts::switch(config, rules, (first, nodes, nics)),
            spread: parts::spread(config, rules, nodes, devices),
            tx: (0..queues).map(|_| tx()).collect(),
            rx: (0..queues).map(|_| rx()).collect(),
            turn: None,
            turned: Ps::ZERO,
            members: (0..nodes).map(|_| parts::member(rules)).collect(),
            nics: (0..nics).map(|_| Nic::default()).collect(),
            starved: VecDeque::new(),
            buffer_bytes: rules.buffer_bytes,
            caches_own: rules.intra_rack == IntraRack::Value,
            posted: 0,
            own: 0,
            port: rules.fabric(config).port,
            trains: Trains::new(nodes),
        };
        rack.grant_receive(rules);
        (0..nics).for_each(|nic| rack.refill(nic));
        rack
    }

    /// Sections for the receive buffers, on all memory devices.
    fn grant_receive(&mut self, rules: &DfabricConfig) {
        let bytes = self.nics.len() as u64 * u64::from(rules.nic_entries) * self.buffer_bytes;
        let each = bytes.div_ceil(u64::from(self.devices)).div_ceil(SECTION_BYTES);
        for device in self.nodes..self.nodes + self.devices {
            for _ in 0..each {
                self.grant(Node(self.nodes), Preference::Device(NodeId(device)));
            }
        }
    }

    /// Grants a Section, if there is one. Regions whose Buffers are received are cached.
    fn grant(&mut self, node: Node, preference: Preference) -> bool {
        let Ok(granted) = self.pool.grant(node, 0, preference) else { return false };
        if node == Node(self.nodes) || self.caches_own {
            let region: RegionId = granted.section.region();
            for cache in self.members.iter_mut().filter_map(|member| member.cache.as_mut()) {
                let added = cache.add_region(region, granted.buffer_bytes);
                added.expect("a line of the cache is a Buffer");
            }
        }
        true
    }

    /// Fills the RX queue of a NIC, as far as there are Buffers.
    pub(super) fn refill(&mut self, nic: u16) {
        loop {
            let bytes = self.buffer_bytes as u32;
            let Rack { switch, pool, spread, .. } = self;
            match switch.fill_receive(pool, spread, NicId(nic), bytes) {
                Ok(true) => self.posted += 1,
                Ok(false) => return,
                Err(PoolError::NoBuffer { .. }) => {
                    if !self.grant(Node(self.nodes), Preference::Near) {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }

    /// The Buffer for a packet that a NIC has received; `None`: there is none.
    pub(super) fn receive_buffer(&mut self, nic: u16) -> Option<FabricAddress> {
        let buffer = self.switch.nics_mut().arrive(NicId(nic))?;
        self.posted -= 1;
        self.refill(nic);
        Some(buffer)
    }

    /// A Buffer of a node's own; the daemon asks for a Section where it has none.
    pub(super) fn alloc(&mut self, node: u16) -> Option<FabricAddress> {
        let size = Bytes(self.buffer_bytes);
        while self.own < OWN_MAX {
            match self.pool.alloc_shared_buffer(Node(node), size, Preference::Near) {
                Ok(buffer) => {
                    self.own += 1;
                    return Some(buffer);
                }
                Err(PoolError::NoBuffer { .. }) => {
                    if !self.grant(Node(node), Preference::Device(NodeId(node))) {
                        return None;
                    }
                }
                Err(_) => return None,
            }
        }
        None
    }

    /// A reference to a Buffer of a node's own was given up.
    pub(super) fn released(&mut self, freed: Freed) {
        self.own -= u32::from(freed.is_free);
    }

    /// A node's stack has no more use for a received packet: `kfree_shared_skb`.
    pub(super) fn free_received(
        &mut self,
        node: u16,
        skb: ethermem_dfabric::pool::SkbRef,
        at: FabricAddress,
    ) {
        let device = self.pool.device_of(at);
        let freed = self.pool.kfree_shared_skb(Node(node), skb).expect("it is freed once");
        let Some(freed) = freed else { return };
        if freed.flush {
            self.flush(node, freed.buffer);
        }
        match device {
            Some(NodeId(port)) if port < self.nodes => self.released(freed),
            Some(device) if freed.is_free => {
                self.spread.release(device, self.buffer_bytes as u32);
            }
            _ => {}
        }
    }

    pub(super) fn flush(&mut self, node: u16, buffer: FabricAddress) {
        if let Some(member) = self.members.get_mut(usize::from(node))
            && let Some(cache) = &mut member.cache
        {
            cache.flush(buffer);
        }
    }

    /// The time at which a node's processor has stored these bytes from now on.
    pub(super) fn store(
        &mut self,
        sim: &mut Sim<Event>,
        (node, buffer): (Node, FabricAddress),
        bytes: u64,
    ) -> Ps {
        let memory = self.memory_of(buffer);
        self.unfold_to(sim, memory);
        let memory = &mut self.memories[usize::from(memory)];
        memory.store(sim.now(), bytes, User::node(node.0))
    }

    /// True if a node is of this rack.
    pub(super) fn has(&self, node: Identity) -> bool {
        node_of(node).checked_sub(self.first).is_some_and(|at| at < self.nodes)
    }

    /// The memory in which an address is.
    pub(super) fn memory_of(&self, address: FabricAddress) -> u16 {
        self.pool.device_of(address).expect("no device is lost").0
    }

    /// The memory device of a received packet, if it is chosen packet by packet.
    pub(super) fn device(&self, number: u32) -> u16 {
        self.nodes + (number % u32::from(self.devices)) as u16
    }

    /// The port of a NIC.
    pub(super) fn nic_port(&self, nic: u16) -> u16 {
        self.nodes + self.devices + nic
    }

    /// The invariants of a rack in which nothing is under way.
    pub(super) fn check_idle(&self, ended: Ps) -> Result<(), String> {
        ethermem_engine::engine::Fabric::close(&self.fabric, ended).map_err(|broken| broken.0)?;
        let rings = self.tx.iter().map(|queue| &queue.ring);
        let rings = rings.chain(self.rx.iter().map(|queue| &queue.ring));
        let queued = rings.filter(|ring| !ring.is_empty()).count();
        let outbox = self.tx.iter().filter(|queue| !queue.outbox.is_empty()).count();
        let (copies, trains) = (self.asks.len(), self.trains.len());
        let under_way = [self.transfers.len(), copies, trains, queued, outbox];
        if under_way != [0; 5] {
            let what = "transfers, copies, trains, rings, outboxes are left";
            return Err(format!("{under_way:?} {what}"));
        }
        let waits = |nic: &Nic| !nic.has.is_empty() || !nic.landing.is_empty() || nic.stalled;
        if let Some(nic) = self.nics.iter().position(waits) {
            return Err(format!("NIC {nic} has packets left"));
        }
        let accounts = self.pool.accounts();
        if accounts.references != self.posted || accounts.skbs != 0 {
            let posted = self.posted;
            return Err(format!("{posted} receive buffers, and these accounts: {accounts:?}"));
        }
        let counters = self.switch.counters();
        if counters.refused + counters.dropped + counters.unreachable > 0 {
            return Err(format!("the switch node refused its own rack: {counters:?}"));
        }
        Ok(())
    }

    /// What the memories and the DRAM caches have moved.
    pub(super) fn memory_uses(&self) -> impl Iterator<Item = MemoryUse> {
        let memories = (0..).zip(&self.memories).map(|(port, memory)| {
            let name = match port {
                port if port < self.nodes => (MemoryKind::Node, self.first + port),
                port => (MemoryKind::Device, port - self.nodes),
            };
            (name, &memory.meter)
        });
        let caches = (0..)
            .zip(&self.members)
            .map(|(node, member)| ((MemoryKind::Cache, self.first + node), &member.cache_meter));
        memories
            .chain(caches)
            .filter_map(|(name, meter)| Some((name, meter.as_ref()?)))
            .flat_map(|((memory, number), meter)| meter.uses((self.id, memory, number), self.first))
    }

    /// A node has loaded a packet. Returns the packets that its stack takes now.
    pub(super) fn take_loaded(&mut self, packet: u32, descriptor: &Descriptor) -> Vec<u32> {
        let node = node_of(descriptor.destination) - self.first;
        let queue = self.switch.queue(Node(node), descriptor.subflow);
        let loading = &mut self.rx[queue as usize].loading;
        for one in loading.iter_mut() {
            one.1 |= one.0 == packet;
        }
        let ready = loading.iter().take_while(|one| one.1).count();
        loading.drain(..ready).map(|one| one.0).collect()
    }

    /// The TxQ of a descriptor.
    pub(super) fn tx_of(&self, descriptor: &Descriptor) -> u32 {
        let node = node_of(descriptor.source) - self.first;
        self.switch.queue(Node(node), descriptor.subflow)
    }
}
