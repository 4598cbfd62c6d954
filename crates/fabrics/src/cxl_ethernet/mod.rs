//! CXL over Ethernet (2023): loads and stores of lines, in frames, to memory nodes.
//!
//! Every node has both sides of the protocol (`ethermem_cxl`), and every frame is the octets of
//! `ethermem_wire::cxl`: what is simulated is what would run. The folder adds time: of the
//! processor's way to its board, of the stages, of the FIFOs and of the memory. A message without
//! addresses is accesses of lines, its own and never cached; one with addresses goes through the
//! cache, and its bytes are in the frames.

mod caches;
mod compute;
mod config;
mod memory;
mod placed;
mod queue;

pub use config::{CxlEthernetConfig, CxlIp, MemoryKind, Writes};
pub use queue::Fifo;

use ethermem_cxl::compute::{MemoryNodeAt, SectionUse};
use ethermem_cxl::stages::StageLatencies;
use ethermem_engine::FabricConfig;
use ethermem_engine::engine::{LineCaches, LineCounters, Loss};
use ethermem_engine::topology::{Layout, PortKind};
use ethermem_frames::{
    End, FRAME_OVERHEAD_BYTES, FlowId, Frame, Net, Outgoing, Packet, PacketFabric, PauseLimits,
    Threshold, Transport,
};
use ethermem_units::{Bytes, Ps};
use ethermem_wire::cxl::{
    AccessId, ByteMask, FCS_BYTES, FRAME_BYTES_MAX, Frame as CxlFrame, LINE_BYTES, LineAddress,
    Mac, Packet as CxlPacket, Pause, Request, RequestPacket, Response, ResponsePacket, Sequence,
};
use ethermem_workload::{Kind, LinkBlocks, NodeIndex};

use caches::Placements;
use compute::{Answered, Compute, Peer, Work};
use memory::{INITIAL, Memory, Times};

/// CXL over Ethernet on the packet network.
pub type CxlEthernet = PacketFabric<Boards>;

/// Lines of a section of CMem, and of a page of a memory node: 1 MiB.
const SECTION_LINES: u64 = 1 << 14;
/// The longest frame with its check sequence.
const OCTETS_MAX: usize = FRAME_BYTES_MAX + FCS_BYTES;

/// A frame, as it is on the link between preamble and gap.
#[derive(Clone, Copy, Debug)]
pub struct Octets {
    octets: [u8; OCTETS_MAX],
    length: u8,
}

impl Octets {
    fn as_slice(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }

    /// The sizes of the frame.
    fn frame(&self) -> Frame {
        Frame::of(u64::from(self.length) - FRAME_OVERHEAD_BYTES)
    }
}

/// A message under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// `None` for a message with addresses.
    kind: Option<Kind>,
    bytes: u64,
    /// Number of accesses.
    lines: u32,
    /// Lines that have a response, and written lines that are in the memory.
    answered: u32,
    written: u32,
    /// True for an atomic that has its line and writes it.
    writes_back: bool,
    ended: bool,
    failed: bool,
}

/// An access of a message.
#[derive(Clone, Copy, Debug)]
struct Access {
    flow: FlowId,
    generation: u32,
}

/// The boards of all nodes.
pub struct Boards {
    rules: CxlEthernetConfig,
    times: Times,
    stages: StageLatencies,
    pause: PauseLimits,
    /// The sides of each node; made when a node is first used so.
    computes: Vec<Option<Box<Compute>>>,
    memories: Vec<Option<Box<Memory>>>,
    placements: Placements,
}

/// The address of a node of the network.
fn mac(node: NodeIndex) -> Mac {
    let [high, low] = node.to_be_bytes();
    Mac([2, 0, 0, 0, high, low])
}

/// The node of an address that a frame begins with.
fn node_at(octets: &[u8]) -> NodeIndex {
    u16::from_be_bytes([octets[4], octets[5]])
}

/// The bytes of a link's packets above which a switch of 40 Gb/s pauses the link (SIGCOMM 2015).
const PAUSE_BYTES_AT_40: f64 = 24_470.0;

impl Boards {
    fn compute(&mut self, at: NodeIndex) -> &mut Compute {
        self.computes[usize::from(at)].as_mut().expect("it has accesses")
    }

    /// Joins a compute node and a memory node, once.
    fn join(&mut self, net: &mut Net<'_, Boards>, compute: NodeIndex, memory: NodeIndex) {
        let (rules, nodes) = (&self.rules, self.computes.len() as u16);
        let is_placed = self.placements.is_on;
        let near = self.computes[usize::from(compute)]
            .get_or_insert_with(|| Box::new(Compute::new(rules, compute, nodes, is_placed)));
        if near.peers[usize::from(memory)].is_some() {
            return;
        }
        let far = self.memories[usize::from(memory)]
            .get_or_insert_with(|| Box::new(Memory::new(rules, memory, nodes)));
        let flow = net.open_standing(compute, memory);
        let index = near.node.attach(MemoryNodeAt { mac: mac(memory), initial: INITIAL });
        let used = SectionUse { node: index, is_cached: false };
        near.node.map(index.0.into(), used).expect("each memory node has its section");
        near.resent.push((0, 0));
        near.peers[usize::from(memory)] = Some(Peer { index, flow });
        far.attach(compute, index.0.into(), flow);
    }

    /// Lets a compute side do all that it can do now.
    fn go_on(&mut self, net: &mut Net<'_, Boards>, at: NodeIndex) {
        let now = net.now();
        loop {
            self.maintain(net, at);
            self.transmit(net, at);
            let Some(answered) = self.compute(at).answered(now) else { break };
            match net.flow(answered.access.flow).state.kind {
                None => self.answer_placed(net, at, answered),
                Some(kind) => self.answer(net, at, answered, kind),
            }
            self.compute(at).begin(now);
        }
        let compute = self.computes[usize::from(at)].as_mut().expect("it has accesses");
        let mut wake = compute.node.next_wake(now).unwrap_or(Ps::MAX);
        if wake <= now {
            // A frame waits for the FIFO's clock, or for room in it.
            let room = if compute.mac_free > now { compute.mac_free } else { now + net.line(0) };
            wake = room;
        }
        if let Some(signal) = compute.signal_at {
            wake = wake.min(signal);
        }
        if wake < compute.woken {
            compute.woken = wake;
            net.wake(End::Source, at, wake);
        }
    }

    /// Sends frames, as long as the FIFO in front of the MAC has room.
    fn transmit(&mut self, net: &mut Net<'_, Boards>, at: NodeIndex) {
        let now = net.now();
        let fifo_bytes = u64::from(self.rules.fifo_entries) * LINE_BYTES as u64;
        let (rules, compute) = (&self.rules, self.computes[usize::from(at)].as_mut());
        let compute = compute.expect("it has accesses");
        while compute.mac_free <= now && net.uplink_bytes(at) + OCTETS_MAX as u64 <= fifo_bytes {
            let mut octets = [0; OCTETS_MAX];
            let sent = compute.node.poll_transmit(now, &mut octets);
            let Some(length) = sent.expect("there is room for the longest frame") else { return };
            let memory = node_at(&octets);
            let Peer { index, flow } = compute.peers[usize::from(memory)].expect("it was joined");
            let counters = compute.node.requester_counters(index).expect("it was attached");
            let (resent, timeouts) = (counters.resent.iter().sum(), counters.resent[2]);
            let before =
                std::mem::replace(&mut compute.resent[usize::from(index.0)], (resent, timeouts));
            net.count_again(resent - before.0, timeouts - before.1);
            let cycles = rules.entries(length);
            compute.mac_free = now + rules.mac_clock.period * cycles;
            let line = line_of(&octets);
            let is_write = length > LEAST_OCTETS;
            if is_write
                && let Some(access) = compute.access_of(line)
                && net.flow(access.flow).generation == access.generation
            {
                net.leaves(access.flow);
            }
            let header = Octets { octets, length: length as u8 };
            let data_bytes = if is_write { LINE_BYTES as u64 } else { 0 };
            let outgoing = Outgoing { from: End::Source, data_bytes, rank: 1, header };
            net.send_frame(flow, header.frame(), outgoing);
        }
    }

    /// The processor has a response.
    fn answer(&mut self, net: &mut Net<'_, Boards>, at: NodeIndex, answered: Answered, kind: Kind) {
        let Answered { access: Access { flow: id, generation }, failed, .. } = answered;
        let now = net.now();
        let writes = self.rules.writes;
        let to_host = self.rules.host + self.rules.cycles(self.stages.agent_response);
        let flow = net.flow_mut(id);
        assert_eq!(flow.generation, generation, "a message lasts until all its responses came");
        let memory = flow.destination;
        let state = &mut flow.state;
        state.answered += 1;
        state.failed |= failed;
        let Progress { bytes, lines, answered, writes_back, ended, failed, .. } = *state;
        if answered < lines {
            return;
        }
        if kind == Kind::ReadModifyWrite && !writes_back && !failed {
            state.writes_back = true;
            state.answered = 0;
            return self.compute(at).queue(Work::of_lines(id, generation, memory, bytes, true));
        }
        let posted = kind == Kind::Write && writes == Writes::Posted;
        if !ended {
            match (failed, posted) {
                (true, _) => net.lose(id, Loss::Timeout),
                (false, true) => net.end(id, now),
                (false, false) => net.end(id, now + to_host),
            }
        }
        net.settle(id);
    }

    /// Lets a memory side do all that it can do now.
    fn serve(&mut self, net: &mut Net<'_, Boards>, at: NodeIndex) {
        let now = net.now();
        let memory = self.memories[usize::from(at)].as_mut().expect("it has requests");
        memory.node.on_timer(now);
        loop {
            memory.drain(now, &self.times);
            let begun = memory.access(now, &self.times);
            let ended = memory.ended(now);
            if begun.is_none() && ended.is_none() {
                break;
            }
            begun.iter().for_each(|begun| self.placements.begun(at, begun));
            ended.iter().for_each(|ended| self.placements.ended(at, ended));
            let under_way = |begun: memory::Begun| {
                let compute = self.computes[usize::from(begun.compute)].as_ref()?;
                let access = compute.access_of(begun.line)?;
                let is_it = net.flow(access.flow).generation == access.generation;
                is_it.then_some(access.flow)
            };
            let of_begun = begun.filter(|begun| begun.is_read).and_then(under_way);
            let of_read = ended.filter(|ended| ended.is_read).and_then(under_way);
            let of_write = ended.filter(|ended| !ended.is_read).and_then(under_way);
            of_begun.into_iter().for_each(|flow| net.at_memory(flow));
            of_read.into_iter().for_each(|flow| net.leaves(flow));
            of_write.into_iter().for_each(|flow| wrote(net, flow, self.rules.writes));
        }
        let mut octets = [0; OCTETS_MAX];
        while let Some(length) = memory.node.poll_transmit(&mut octets).expect("room for a frame") {
            let compute = node_at(&octets);
            let client = memory.clients[usize::from(compute)].expect("it was attached");
            let header = Octets { octets, length: length as u8 };
            let data_bytes = if length > LEAST_OCTETS { LINE_BYTES as u64 } else { 0 };
            let outgoing = Outgoing { from: End::Destination, data_bytes, rank: 1, header };
            net.send_frame(client.flow, header.frame(), outgoing);
        }
        if let Some(wake) = memory.next_wake().filter(|&wake| wake < memory.woken) {
            memory.woken = wake;
            net.wake(End::Destination, at, wake);
        }
    }

    /// Gives a compute side the signal of a pause, if it is time for it: the paper's nodes hear one
    /// PFC frame after the other while a link is paused.
    fn signal(&mut self, now: Ps, at: NodeIndex) {
        let interval = self.rules.signal_interval;
        let compute = self.compute(at);
        if compute.signal_at.is_none_or(|due| due > now) {
            return;
        }
        compute.signal_at = Some(now + interval);
        let mut octets = [0; OCTETS_MAX];
        let frame = Pause::of(mac(at), usize::from(PRIORITY), u16::MAX);
        let length = frame.emit_with_fcs(&mut octets).expect("there is room for a pause frame");
        let heard = compute.node.on_frame(now, &octets[..length]);
        heard.expect("a pause frame is well formed");
    }
}

/// The priority of all frames, as `ComputeConfig::published` has it.
const PRIORITY: u8 = 3;
/// The shortest frame, which carries no data.
const LEAST_OCTETS: usize = 64;

/// The line that a request names, little-endian behind header, command, sequence and identifier.
fn line_of(octets: &[u8; OCTETS_MAX]) -> LineAddress {
    let number = (20..25).rev().fold(0, |number, at| number << 8 | u64::from(octets[at]));
    LineAddress::new(number).expect("40 bits name a line")
}

/// A line of a message is in the memory.
fn wrote(net: &mut Net<'_, Boards>, id: FlowId, writes: Writes) {
    let state = &mut net.flow_mut(id).state;
    let of_write = state.kind == Some(Kind::Write);
    state.written += 1;
    let is_last = state.written == state.lines;
    if of_write && is_last && !state.ended && writes == Writes::Posted {
        state.ended = true;
        let now = net.now();
        net.end(id, now);
    }
}

impl Transport for Boards {
    type Flow = Progress;
    type Header = Octets;
    type Queue = Fifo;
    type Parameters = CxlEthernetConfig;

    fn new(config: &FabricConfig, layout: &Layout) -> Boards {
        let rules = config.of::<CxlEthernetConfig>().clone();
        let nodes = usize::from(layout.nodes());
        let scaled = PAUSE_BYTES_AT_40 * config.link.as_gbps_f64() / 40.0;
        let xoff_bytes = rules.pause.map_or(scaled as u64, |bytes| bytes.0);
        let xon_bytes = xoff_bytes.saturating_sub(2 * Frame::of(1_500).line_bytes());
        Boards {
            times: Times::of(&rules, config.memory_access),
            stages: StageLatencies::published(),
            // What has no room in its queue is dropped, and sent again; links need no headroom.
            pause: PauseLimits {
                threshold: Threshold::Static { xoff_bytes, xon_bytes },
                headroom_bytes: u64::MAX,
                drops: true,
            },
            rules,
            computes: (0..nodes).map(|_| None).collect(),
            memories: (0..nodes).map(|_| None).collect(),
            placements: Placements::default(),
        }
    }

    fn header_bytes(_config: &FabricConfig) -> Bytes {
        Bytes(0)
    }

    fn stack_of(config: &FabricConfig) -> Ps {
        config.of::<CxlEthernetConfig>().stack(config)
    }

    fn submit_delay(&self) -> Ps {
        self.rules.host + self.rules.cycles(self.stages.agent_request)
    }

    fn queue(&self, kind: PortKind, seed: u64) -> Fifo {
        Fifo::new(kind, self.rules.buffer.0, self.rules.loss_ppm, seed)
    }

    fn pause_limits(&self, kind: PortKind) -> Option<PauseLimits> {
        (kind != PortKind::HostDown).then_some(self.pause)
    }

    fn begin(&mut self, net: &mut Net<'_, Boards>, id: FlowId, kind: Kind) {
        let flow = net.flow_mut(id);
        let bytes = match flow.purpose {
            ethermem_frames::Purpose::Data => flow.bytes,
            ethermem_frames::Purpose::Request { response_bytes } => response_bytes,
        };
        let lines = Work::lines(bytes);
        flow.state = Progress { kind: Some(kind), bytes, lines, ..Progress::default() };
        if self.begin_placed(net, id) {
            return;
        }
        let flow = net.flow(id);
        let (compute, memory) = (flow.source, flow.destination);
        let is_write = kind == Kind::Write;
        let generation = flow.generation;
        self.join(net, compute, memory);
        let work = Work::of_lines(id, generation, memory, bytes, is_write);
        let now = net.now();
        let node = self.compute(compute);
        node.queue(work);
        node.begin(now);
        self.go_on(net, compute);
    }

    fn start(&mut self, _net: &mut Net<'_, Boards>, _flow: FlowId) {
        unreachable!("the network opens no response: memory nodes answer by themselves");
    }

    fn on_packet(&mut self, net: &mut Net<'_, Boards>, packet: &Packet<Octets>) {
        let now = net.now();
        let octets = packet.header.as_slice();
        let at = packet.destination;
        // A bad frame is counted where it is dropped; retransmission makes up for it.
        if net.flow(packet.flow).source == at {
            let compute = self.compute(at);
            let _ = compute.node.on_frame(now, octets);
            self.go_on(net, at);
        } else {
            let memory = self.memories[usize::from(at)].as_mut().expect("it was joined");
            let _ = memory.node.on_frame(now, octets);
            self.serve(net, at);
        }
    }

    fn on_wake(&mut self, net: &mut Net<'_, Boards>, end: End, at: NodeIndex) {
        let now = net.now();
        if end == End::Destination {
            let memory = self.memories[usize::from(at)].as_mut().expect("it was joined");
            if now >= memory.woken {
                memory.woken = Ps::MAX;
            }
            return self.serve(net, at);
        }
        let compute = self.compute(at);
        if now >= compute.woken {
            compute.woken = Ps::MAX;
        }
        compute.node.on_timer(now);
        self.signal(now, at);
        self.go_on(net, at);
    }

    fn on_pause(&mut self, net: &mut Net<'_, Boards>, node: NodeIndex, paused: bool) {
        let now = net.now();
        // A node that only answers has no control of its rate.
        let Some(compute) = &mut self.computes[usize::from(node)] else { return };
        compute.signal_at = paused.then_some(now);
        if paused {
            self.signal(now, node);
            self.go_on(net, node);
        }
    }

    fn caches(&mut self) -> Option<&mut dyn LineCaches> {
        caches::of(self)
    }

    fn line_counters(&self) -> Option<LineCounters> {
        (self.rules.cache.0 > 0).then(|| Boards::line_counters(self))
    }

    fn blocks(_config: &FabricConfig, kind: Kind, bytes: Bytes) -> Option<LinkBlocks> {
        let lines = Work::lines(bytes.0);
        let whole = (bytes.0 / LINE_BYTES as u64) as f64;
        let part = f64::from(lines) - whole;
        let writes = whole * write_blocks(ByteMask::FULL) + part * write_blocks(ByteMask(1));
        let (requests, data) =
            (f64::from(lines) * request_blocks(), f64::from(lines) * data_blocks());
        let acknowledgements = f64::from(lines) * acknowledgement_blocks();
        let (out, back) = match kind {
            Kind::Write => (writes, acknowledgements),
            Kind::Read => (requests, data),
            Kind::ReadModifyWrite => (requests + writes, data + acknowledgements),
        };
        Some(LinkBlocks {
            compute_uplink: out,
            memory_downlink: out,
            memory_uplink: back,
            compute_downlink: back,
        })
    }

    /// As many lines as the agent has under way: credits come back in turns of so many.
    fn period(&self) -> Option<Bytes> {
        Some(Bytes(256 * LINE_BYTES as u64))
    }

    fn steady_after(&self) -> Bytes {
        Bytes(512 * LINE_BYTES as u64)
    }

    fn close(&self) -> Result<(), String> {
        for (node, compute) in self.computes.iter().enumerate() {
            let Some(compute) = compute else { continue };
            compute.node.check();
            if !compute.is_idle() {
                return Err(format!("accesses of node {node} never end"));
            }
        }
        let busy = self.memories.iter().flatten().any(|memory| !memory.is_idle());
        if busy { Err("a memory node still holds something".to_owned()) } else { Ok(()) }
    }
}

/// The blocks that a packet takes on a link.
fn blocks(packet: CxlPacket) -> f64 {
    let mut octets = [0; OCTETS_MAX];
    let frame = CxlFrame { to: mac(0), from: mac(1), packet };
    let length = frame.emit_with_fcs(&mut octets).expect("there is room for the longest frame");
    let line = Octets { octets, length: length as u8 }.frame().line_blocks();
    line.0 as f64
}

fn request(request: Request) -> CxlPacket {
    let line = LineAddress::new(0).expect("the first line");
    CxlPacket::Request(RequestPacket { sequence: INITIAL, id: AccessId(0), line, request })
}

fn response(response: Response) -> CxlPacket {
    CxlPacket::Response(ResponsePacket { sequence: Sequence(0), id: AccessId(0), response })
}

fn request_blocks() -> f64 {
    blocks(request(Request::Read))
}

fn write_blocks(mask: ByteMask) -> f64 {
    let data = [0; LINE_BYTES];
    let whole = mask.is_full();
    blocks(request(if whole { Request::Write(data) } else { Request::MaskedWrite(mask, data) }))
}

fn data_blocks() -> f64 {
    blocks(response(Response::Read(Ok([0; LINE_BYTES]))))
}

fn acknowledgement_blocks() -> f64 {
    blocks(response(Response::Write(Ok(()))))
}

#[cfg(test)]
mod tests;
