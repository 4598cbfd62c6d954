//! DFabric: racks on a memory fabric, joined by a pool of NICs (protocol in `ethermem_dfabric`).
//!
//! What decides is the pure crate's: pool and references, rings, switch node, NICs, streams, tags
//! of caches. The folder gives them time: of flits, which are fabric `cxl`'s, of memories, of
//! polls, of frames. A message within a rack is loads or stores. A message to another rack is a
//! stream of segments, each a Buffer whose reference goes through the queues; so is a write within
//! a rack, if the scenario says so.

mod config;
mod copy;
mod endpoint;
mod memory;
mod meter;
mod nic;
mod parts;
mod rack;
mod slab;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ethermem_dfabric::stream::RoundTrips;
use ethermem_engine::engine::{Fabric, Handle, Sim, Violation};
use ethermem_engine::metrics::{FabricStats, MemoryTraffic, PacketCounts};
use ethermem_engine::topology::{
    Frame, Layout, LinkUse, PortKind, Sharing, Transmitter, link_stats,
};
use ethermem_engine::{FabricConfig, NODES_MAX};
use ethermem_units::{BitsPerSecond, Bytes, Ps};
use ethermem_wire::dfabric::{ACKNOWLEDGEMENT_BYTES, Acknowledgement, SEGMENT_BYTES};
use ethermem_workload::{Kind, LinkBlocks, Message, NodeIndex};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;

use config::Times;
pub(crate) use config::check_racks;
pub use config::{DfabricConfig, IntraRack};
use copy::{Ask, Shapes, Then};
use endpoint::{Carries, Packet, Stream};
use rack::{Rack, RackId, What};
use slab::Slab;

use crate::cxl::{self, Cxl};

/// The events of the fabric.
#[derive(Clone, Copy)]
pub enum Event {
    /// An event of a rack's memory fabric.
    Flit(u16, cxl::Event),
    /// A transfer has passed its port of the memory fabric.
    Start(u16, u32),
    /// A transfer has ended.
    Done(u16, u32),
    /// A train of a node's lines has ended, or its ports are quiet.
    Train(u16, u16, u32),
    /// A node's stack has a packet for a TxQ.
    Post(u16, u32),
    /// The switch node has loaded the tail of a TxQ.
    Tail(u16, u32),
    /// A NIC is told of a descriptor.
    Doorbell(u16, u16),
    /// A NIC has sent a packet.
    Sent(u16, u16),
    /// A packet is at the switch between the racks.
    AtCore(u32),
    /// A packet is whole at a NIC.
    AtNic(u32),
    /// A packet's descriptor is in an RxQ.
    Stored(u16, u32, u32),
    /// A packet has passed its receiver's stack.
    Up(u32),
    /// An acknowledgement that took no room has come.
    Acknowledged(u32),
    /// A stream's timer must be looked at.
    Timer(u32),
    /// The memory has the data that a message asks for.
    Respond(Handle),
}

/// DFabric.
pub struct Dfabric {
    rules: DfabricConfig,
    times: Times,
    link: BitsPerSecond,
    request_bytes: u64,
    racks: Vec<Rack>,
    shapes: Shapes,
    rack_of: Vec<RackId>,
    /// By rack: its first NIC among all.
    first_nic: Vec<usize>,
    /// The links of all NICs to the switch between the racks, and back.
    up: Vec<Transmitter>,
    down: Vec<Transmitter>,
    up_latency: Ps,
    down_latency: Ps,
    /// Of 2^32 frames, how many are lost.
    loss: u64,
    draws: SplitMix64,
    messages: Vec<Option<Message>>,
    streams: BTreeMap<u32, Stream>,
    streams_opened: u32,
    /// By the two nodes of streams.
    round_trips: BTreeMap<(NodeIndex, NodeIndex), RoundTrips>,
    packets: Slab<Packet>,
    /// Acknowledgements on their way, where they take no room.
    acks: Slab<Acknowledgement>,
    counts: PacketCounts,
}

impl Dfabric {
    /// A transfer over the memory fabric of a rack has ended.
    fn done(&mut self, sim: &mut Sim<Event>, rack: RackId, id: u32) {
        let of = &mut self.racks[usize::from(rack)];
        let transfer = of.transfers.remove(id);
        match transfer.what {
            What::Lines { ask, lines } => match of.loaded(sim, transfer.port, (ask, lines)) {
                Some(Then::Finish(message)) => sim.finish(message, sim.now()),
                Some(Then::Up(packet)) => self.loaded(sim, packet),
                None => {}
            },
            What::Read { nic, number } => self.read(sim, rack, (nic, number)),
            What::Written { packet } => self.written(sim, packet),
            What::Fetched { packet } => self.fetched(sim, packet),
        }
    }

    /// The memory has the data of a request from another rack.
    fn respond(&mut self, sim: &mut Sim<Event>, handle: Handle) {
        let Message { compute, memory, bytes, .. } =
            self.messages[handle as usize].expect("it has not ended");
        let bytes = self.request_bytes + bytes.0;
        self.open(sim, (handle, Carries::Response), (memory, compute), bytes);
    }
}

/// Frames of a stream of so many bytes, and of its acknowledgements, in blocks.
fn stream_blocks(rules: &DfabricConfig, bytes: u64) -> (f64, f64) {
    let segments = bytes.div_ceil(rules.segment_bytes());
    let frame = |data| Frame::of(SEGMENT_BYTES as u64 + data).line_blocks().0;
    let last = bytes - (segments - 1) * rules.segment_bytes();
    let data = (segments - 1) * frame(rules.segment_bytes()) + frame(last);
    let back = segments * Frame::of(ACKNOWLEDGEMENT_BYTES as u64).line_blocks().0;
    (data as f64, back as f64)
}

fn uses(links: &[Transmitter]) -> Vec<LinkUse<'_>> {
    let whole = |link| LinkUse { link, ordered: None, taken: link.slots().total };
    links.iter().map(whole).collect()
}

impl Fabric for Dfabric {
    type Event = Event;
    type Parameters = DfabricConfig;
    const FORGETS: bool = true;
    const EVENT_GAP_SHIFT: u32 = 7;
    const NODES_MAX: u16 = NODES_MAX;

    fn build(config: &FabricConfig, seed: u64) -> Dfabric {
        let rules = config.of::<DfabricConfig>().clone();
        let racks: Vec<Rack> =
            (0..rules.racks).map(|rack| Rack::new(config, &rules, rack)).collect();
        let nics = || racks.iter().map(|rack| rack.nics.len());
        let first_nic = nics().scan(0, |first, nics| {
            *first += nics;
            Some(*first - nics)
        });
        let all = nics().sum::<usize>() as u64;
        let sharing = Sharing::of_frames(&config.background);
        let link = |stream| {
            let slot = config.link.block_time();
            Transmitter::new(slot, &config.background, sharing, seed, stream)
        };
        let layout = Layout::new(config, Ps::ZERO);
        let up_latency = layout.latency(PortKind::HostUp);
        let down_latency = layout.latency(PortKind::HostDown);
        Dfabric {
            times: rules.times(config, up_latency + down_latency),
            link: config.link,
            request_bytes: config.packet.memory_header.0.max(1),
            rack_of: (0..config.nodes).map(|node| rules.rack_of(config.nodes, node)).collect(),
            first_nic: first_nic.collect(),
            up: (0..all).map(link).collect(),
            down: (all..2 * all).map(link).collect(),
            up_latency,
            down_latency,
            loss: (u64::from(rules.loss_ppm) << 32) / 1_000_000,
            draws: SplitMix64::seed_from_u64(seed),
            messages: Vec::new(),
            streams: BTreeMap::new(),
            streams_opened: 0,
            round_trips: BTreeMap::new(),
            packets: Slab::new(),
            acks: Slab::new(),
            shapes: Shapes::new(config, &rules),
            counts: PacketCounts::default(),
            racks,
            rules,
        }
    }

    fn submit(&mut self, sim: &mut Sim<Event>, handle: Handle, message: &Message) {
        let at = handle as usize;
        if at >= self.messages.len() {
            self.messages.resize(at + 1, None);
        }
        self.messages[at] = Some(*message);
        let Message { kind, compute, memory, bytes, .. } = *message;
        let (rack, node) = self.member(compute);
        let (of_memory, there) = self.member(memory);
        let is_stream =
            rack != of_memory || kind == Kind::Write && self.rules.intra_rack != IntraRack::Lines;
        if !is_stream {
            let ask = Ask::of(message, there.0, handle);
            let shape = self.shapes.of(&ask);
            return self.racks[usize::from(rack)].copy(sim, node.0, ask, shape);
        }
        let (carries, bytes) = match kind {
            Kind::Write => (Carries::Write, self.request_bytes + bytes.0),
            Kind::Read | Kind::ReadModifyWrite => (Carries::Request, self.request_bytes),
        };
        self.open(sim, (handle, carries), (compute, memory), bytes);
    }

    fn handle(&mut self, sim: &mut Sim<Event>, event: Event) {
        match event {
            Event::Flit(rack, event) => self.racks[usize::from(rack)].flit(sim, event),
            Event::Start(rack, id) => self.racks[usize::from(rack)].start(sim, id),
            Event::Done(rack, id) => self.done(sim, rack, id),
            Event::Train(rack, from, number) => {
                self.racks[usize::from(rack)].train(sim, from, number);
            }
            Event::Post(rack, packet) => self.post(sim, rack, packet),
            Event::Tail(rack, queue) => self.tail(sim, rack, queue),
            Event::Doorbell(rack, nic) => self.doorbell(sim, rack, nic),
            Event::Sent(rack, nic) => self.sent(sim, rack, nic),
            Event::AtCore(packet) => self.at_core(sim, packet),
            Event::AtNic(packet) => self.at_nic(sim, packet),
            Event::Stored(rack, queue, packet) => self.stored(sim, rack, (queue, packet)),
            Event::Up(packet) => self.up(sim, packet),
            Event::Acknowledged(id) => {
                let ack = self.acks.remove(id);
                self.on_ack(sim, &ack);
            }
            Event::Timer(stream) => self.timer(sim, stream),
            Event::Respond(handle) => self.respond(sim, handle),
        }
    }

    fn period(&self) -> Bytes {
        // Four segments: as many as subflows by default, and whole rounds of the flits' packing.
        Bytes(4 * self.rules.segment_bytes())
    }

    fn steady_after(&self) -> Bytes {
        Bytes(u64::from(self.rules.window) * self.rules.segment_bytes())
    }

    fn twin(&self, compute: NodeIndex, memory: NodeIndex) -> (NodeIndex, NodeIndex) {
        let rack = |node: NodeIndex| &self.racks[usize::from(self.rack_of[usize::from(node)])];
        let (from, to) = (rack(compute), rack(memory));
        if from.id == to.id {
            return (0, 1);
        }
        // Racks are alike, but the last one may have fewer nodes, and so fewer NICs.
        let like = |rack: &Rack, other: usize| {
            let is_whole = rack.nodes == self.racks[0].nodes;
            if is_whole { self.racks[other].first } else { rack.first }
        };
        (like(from, 0), like(to, if from.nodes == self.racks[0].nodes { 1 } else { 0 }))
    }

    /// As all messages went to another rack: `load` is of the NICs.
    fn blocks(config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        let rules = config.of::<DfabricConfig>();
        let head = config.packet.memory_header.0.max(1);
        let (request, asked) = stream_blocks(rules, head);
        let (data, answered) = stream_blocks(rules, head + bytes.0);
        let mut blocks = LinkBlocks::unscheduled(kind, request, data);
        let is_write = kind == Kind::Write;
        let at_memory = if is_write { answered } else { asked };
        let at_compute = if is_write { 0.0 } else { answered };
        blocks.memory_uplink += at_memory;
        blocks.compute_downlink += at_memory;
        blocks.compute_uplink += at_compute;
        blocks.memory_downlink += at_compute;
        blocks
    }

    fn close(&self, ended: Ps) -> Result<FabricStats, Violation> {
        let counts = self.counts;
        let left = [self.packets.len(), self.streams.len()];
        if counts.sent != counts.delivered + counts.dropped || left != [0; 2] {
            let text = format!("{counts:?}, and {left:?} packets and streams are left");
            return Err(Violation(text));
        }
        for rack in &self.racks {
            let broken = |what| Violation(format!("rack {}: {what}", rack.id));
            rack.check_idle(ended).map_err(broken)?;
        }
        let nics = link_stats(&uses(&self.up), &uses(&self.down), ended);
        // Every message uses its nodes' links to the memory fabric, and some the NICs.
        let fabrics: Vec<&Cxl> = self.racks.iter().map(|rack| &rack.fabric).collect();
        let nodes = self.racks.iter().map(|rack| rack.nodes);
        let mut stats = cxl::stats_of(fabrics.into_iter().zip(nodes), ended);
        (stats.queue, stats.frames) = (nics.queue, nics.frames);
        stats.packets = Some(counts);
        stats.memories = (self.rules.memory_slice > Ps::ZERO).then(|| MemoryTraffic {
            slice_ns: self.rules.memory_slice.as_ns_f64(),
            uses: self.racks.iter().flat_map(Rack::memory_uses).collect(),
        });
        Ok(stats)
    }
}
