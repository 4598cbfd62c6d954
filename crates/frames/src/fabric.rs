//! A transport on a network of packets, as a fabric of the engine.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::{Balancing, Topology};
use ethermem_engine::engine::{Fabric, Handle, LineCaches, LineCounters, Sim, Violation};
use ethermem_engine::metrics::{FabricStats, PacketCounts};
use ethermem_engine::output::Timeline;
use ethermem_engine::topology::{Layout, LinkUse, PortId, Slots, Transmitter, link_stats};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, LinkBlocks, Message, NodeIndex};

use super::flow::NO_FLOW;
use super::network::{Event, Network};
use super::transport::{Net, Sizes, Transport};
use super::{FlowId, Ingress, PacketId, Purpose, SharedBuffer};

/// A transport on a network of packets, as a fabric of the engine.
pub struct PacketFabric<T: Transport> {
    transport: T,
    network: Network<T>,
    /// Number of bytes by which a long message alone grows by one more packet.
    period: Bytes,
}

impl<T: Transport> PacketFabric<T> {
    fn start(&mut self, sim: &mut Sim<Event>, flow: FlowId) {
        self.transport.start(&mut Net { sim, network: &mut self.network }, flow);
        self.pace(sim);
    }

    /// Tells the transport which packets have begun to leave.
    #[inline]
    fn pace(&mut self, sim: &mut Sim<Event>) {
        if !T::PACES {
            return;
        }
        while let Some(left) = self.network.left.pop() {
            self.transport.on_left(&mut Net { sim, network: &mut self.network }, left);
        }
    }

    fn expire(&mut self, sim: &mut Sim<Event>, flow: FlowId) {
        self.transport.on_timer(&mut Net { sim, network: &mut self.network }, flow);
    }

    /// Handles the drop of a packet of a flow that nothing repairs.
    #[cold]
    fn lose(&mut self, sim: &mut Sim<Event>, flow: FlowId) {
        if let Some(request) = self.network.lose(sim, flow) {
            self.transport.on_answered(&mut Net { sim, network: &mut self.network }, request);
        }
    }

    /// Handles a pause frame that arrived at a port.
    fn pause(&mut self, sim: &mut Sim<Event>, port: PortId, paused: bool) {
        self.network.set_paused(sim, port, paused);
        if port < self.network.layout.nodes() {
            let net = &mut Net { sim, network: &mut self.network };
            self.transport.on_pause(net, port, paused);
        }
    }

    #[inline]
    fn deliver(&mut self, sim: &mut Sim<Event>, id: PacketId) {
        let packet = self.network.take(id);
        let answered = self.network.answered(&packet);
        let net = &mut Net { sim, network: &mut self.network };
        if let Some(request) = answered {
            self.transport.on_answered(net, request);
        }
        self.transport.on_packet(net, &packet);
        self.network.flows.release(packet.flow);
    }

    /// Number of slots of its link that a node's interface has taken.
    #[must_use]
    pub fn uplink_slots(&self, node: NodeIndex) -> Slots {
        self.network.ports[usize::from(node)].link.slots()
    }

    /// Maximum bytes that came through a node's link after it was told to pause, and the headroom
    /// for them, in bytes. `None` where the link is never paused.
    #[must_use]
    pub fn headroom_bytes(&self, node: NodeIndex) -> Option<(u64, u64)> {
        self.network.ingress.get(usize::from(node))?.as_ref().map(Ingress::headroom)
    }

    /// Number of bytes that wait at the switch's port to a node, including the rest of a started
    /// frame.
    #[must_use]
    pub fn egress_bytes(&self, node: NodeIndex, now: Ps) -> u64 {
        let port: PortId = self.network.layout.nodes() + node;
        self.network.queued_bytes(port, now)
    }
}

impl<T: Transport> Fabric for PacketFabric<T> {
    type Event = Event;
    type Parameters = T::Parameters;
    const LEAF_SPINE: bool = true;
    const EVENT_GAP_SHIFT: u32 = 7;

    /// A transport that expects packets in order would repair the order of sprayed packets alone,
    /// by luck more or less often than in company.
    fn quiet(config: &FabricConfig) -> FabricConfig {
        let mut quiet = config.quiet();
        if T::balancing() == Balancing::Ecmp
            && let Topology::LeafSpine(clos) = &mut quiet.topology
        {
            clos.balancing = None;
        }
        quiet
    }

    fn build(config: &FabricConfig, seed: u64) -> PacketFabric<T> {
        let layout = Layout::new(config, config.packet.stack.unwrap_or(T::stack_of(config)));
        let mut transport = T::new(config, &layout);
        transport.seed(seed);
        let network = Network::new(config, seed, layout, &transport);
        let sizes = &network.sizes;
        let period = Bytes(if T::streams(config).is_some() {
            sizes.stream_max()
        } else {
            sizes.payload_max
        });
        PacketFabric { transport, network, period }
    }

    fn draw_on(&mut self, timeline: &mut Timeline) {
        self.network.draw_on(timeline);
    }

    fn submit_delay(&self) -> Ps {
        self.transport.submit_delay()
    }

    fn submit(&mut self, sim: &mut Sim<Event>, handle: Handle, message: &Message) {
        let ends = (message.compute, message.memory);
        let (purpose, bytes) = match message.kind {
            Kind::Write => (Purpose::Data, message.bytes.0),
            Kind::Read | Kind::ReadModifyWrite => {
                (Purpose::Request { response_bytes: message.bytes.0 }, 0)
            }
        };
        let flow = self.network.open(handle, ends, purpose, bytes, NO_FLOW);
        self.transport.begin(&mut Net { sim, network: &mut self.network }, flow, message.kind);
        self.pace(sim);
    }

    #[inline]
    fn handle(&mut self, sim: &mut Sim<Event>, event: Event) {
        match event {
            Event::Arrive(id, port) => {
                if let Some(flow) = self.network.arrive(sim, id, port) {
                    self.lose(sim, flow);
                }
            }
            Event::Deliver(id) => self.deliver(sim, id),
            Event::Free(port) => self.network.free(sim, port),
            Event::Respond(request) => {
                let flow = self.network.respond(request);
                self.start(sim, flow);
            }
            Event::Timers => {
                while let Some(flow) = self.network.due(sim) {
                    self.expire(sim, flow);
                }
            }
            Event::Timer(flow) => {
                if self.network.looked(sim, flow) {
                    self.expire(sim, flow);
                }
                self.network.flows.release(flow);
            }
            Event::Wake(end, node) => {
                self.transport.on_wake(&mut Net { sim, network: &mut self.network }, end, node);
            }
            Event::Pause(port) => self.pause(sim, port, true),
            Event::Resume(port) => self.pause(sim, port, false),
        }
        self.pace(sim);
    }

    fn period(&self) -> Bytes {
        self.transport.period().unwrap_or(self.period)
    }

    fn steady_after(&self) -> Bytes {
        self.transport.steady_after()
    }

    fn twin(&self, compute: NodeIndex, memory: NodeIndex) -> (NodeIndex, NodeIndex) {
        self.network.layout.twin(compute, memory)
    }

    fn caches(&mut self) -> Option<&mut dyn LineCaches> {
        self.transport.caches()
    }

    fn line_counters(&self) -> Option<LineCounters> {
        self.transport.line_counters()
    }

    fn blocks(config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        if let Some(blocks) = T::blocks(config, kind, bytes) {
            return blocks;
        }
        let sizes = Sizes::of::<T>(config);
        let control = f64::from(sizes.control().line);
        let (request, data, feedback) = match T::streams(config) {
            // Packets are full where the links are: less is shared at a lower load.
            Some(covered) => {
                let data = sizes.stream_blocks(bytes.0);
                let packets = data / f64::from(sizes.data(sizes.payload_max).line);
                (sizes.stream_blocks(0), data, packets / f64::from(covered) * control)
            }
            None => {
                let answers = T::feedback_packets(config, kind, sizes.packets(bytes.0));
                let request = f64::from(sizes.data(0).line);
                (request, sizes.data_blocks(bytes.0) as f64, answers as f64 * control)
            }
        };
        let mut blocks = LinkBlocks::unscheduled(kind, request, data);
        let (uplink, downlink) = match kind {
            Kind::Write => (&mut blocks.memory_uplink, &mut blocks.compute_downlink),
            Kind::Read | Kind::ReadModifyWrite => {
                (&mut blocks.compute_uplink, &mut blocks.memory_downlink)
            }
        };
        *uplink += feedback;
        *downlink += feedback;
        blocks
    }

    fn close(&self, ended: Ps) -> Result<FabricStats, Violation> {
        let (network, counts) = (&self.network, &self.network.counts);
        if counts.sent != counts.delivered + counts.dropped || network.packets.in_flight() > 0 {
            return Err(Violation(format!(
                "{} packets sent, {} delivered, {} dropped, {} left behind",
                counts.sent,
                counts.delivered,
                counts.dropped,
                network.packets.in_flight()
            )));
        }
        if network.flows.open_count() > 0 {
            return Err(Violation(format!("{} flows never end", network.flows.open_count())));
        }
        for (port, ingress) in network.ingress.iter().enumerate() {
            let Some(ingress) = ingress else { continue };
            let (most, room) = ingress.headroom();
            if most > room {
                return Err(Violation(format!(
                    "{most} bytes came through port {port} after it was to pause, of {room} allowed"
                )));
            }
            if !ingress.is_idle() {
                return Err(Violation(format!("port {port} is still paused, or its packets kept")));
            }
        }
        if !network.shared.iter().all(SharedBuffer::is_idle) {
            return Err(Violation("a shared buffer still holds something".to_owned()));
        }
        self.transport.close().map_err(Violation)?;
        let uses: Vec<LinkUse<'_>> = network
            .ports
            .iter()
            .map(|port| LinkUse {
                link: &port.link,
                ordered: Some(port.backlog()),
                taken: port.taken(network.finished),
            })
            .collect();
        let nodes = usize::from(network.layout.nodes());
        let mut stats = link_stats(&uses[..nodes], &uses[nodes..2 * nodes], ended);
        let links = uses.iter().map(|of| of.link);
        stats.frames = Transmitter::frame_stats(links, ended);
        let trimmed = network.ports.iter().map(|port| port.trimmed).sum();
        stats.packets = Some(PacketCounts { trimmed: counts.trimmed.map(|_| trimmed), ..*counts });
        Ok(stats)
    }
}
