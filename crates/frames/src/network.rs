//! The ports, packets and flows of one network, and the way of a packet.

use ethermem_engine::config::FabricConfig;
use ethermem_engine::engine::{Handle, Loss, Sim};
use ethermem_engine::metrics::PacketCounts;
use ethermem_engine::output::{Timeline, TrackId};
use ethermem_engine::topology::{
    Balancing, Layout, LinkTracks, PortId, PortKind, Sharing, Transmitter,
};
use ethermem_units::{Blocks, Ps};
use ethermem_workload::NodeIndex;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::flow::NO_FLOW;
use super::port::{Port, Sent};
use super::spray::{Spray, ecmp_spine};
use super::timers::{Entry, Timers};
use super::transport::{End, Left, Outgoing, Sizes, Transport};
use super::{
    Discipline, FlowId, Flows, Frame, Heading, Ingress, Opening, Packet, PacketId, Packets,
    Purpose, SharedBuffer, UNPAUSED_RANK, Verdict,
};

/// The events of a network of packets.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A packet is decided on by a switch: it arrives at this port.
    Arrive(PacketId, PortId),
    /// A packet is whole at its host, and is handed up.
    Deliver(PacketId),
    /// A port with waiting packets has sent the previous one.
    Free(PortId),
    /// The deadlines that were set in order must be checked.
    Timers,
    /// The deadline of a flow must be checked.
    Timer(FlowId),
    /// The switch behind a port pauses it.
    Pause(PortId),
    /// A paused port resumes.
    Resume(PortId),
    /// One end of a node's activity must continue.
    Wake(End, NodeIndex),
    /// The memory has the data that a request asked for.
    Respond(FlowId),
}

/// The network of a transport: its ports, packets and flows.
pub struct Network<T: Transport> {
    pub(super) layout: Layout,
    pub(super) ports: Vec<Port<T::Queue>>,
    pub(super) packets: Packets<T::Header>,
    pub(super) flows: Flows<T::Flow>,
    pub(super) sizes: Sizes,
    pub(super) counts: PacketCounts,
    timers: Timers,
    memory_access: Ps,
    /// The spines that packets of each node take next; empty where a flow keeps its spine.
    spray: Vec<Spray>,
    flows_opened: u64,
    /// The time at which a message last finished.
    pub(super) finished: Ps,
    dropped: Vec<PacketId>,
    /// The packets that came through each port and are still in the switch behind it; empty where
    /// links are never paused.
    pub(super) ingress: Vec<Option<Ingress>>,
    /// The buffer that the links of each switch share; empty where links are never paused.
    pub(super) shared: Vec<SharedBuffer>,
    /// Packets that have begun to leave, or have a place in an ordered queue, if the transport
    /// paces.
    pub(super) left: Vec<Left>,
    /// The messages whose data begins to leave with the next packet of a connection.
    pub(super) riding: Vec<Handle>,
    /// The rows of the timeline by port, if one is drawn.
    tracks: Vec<TrackId>,
}

impl<T: Transport> Network<T> {
    pub(super) fn new(config: &FabricConfig, seed: u64, layout: Layout, transport: &T) -> Self {
        let port = |id: PortId| {
            let kind = layout.kind(id);
            let slot = layout.slot(kind);
            let sharing = Sharing::of_frames(&config.background);
            let link = Transmitter::new(slot, &config.background, sharing, seed, id.into());
            // Draws from the run's seed, independent of the draws of its background frames.
            let own =
                SplitMix64::seed_from_u64(seed ^ (u64::from(id) + 1).rotate_left(32)).next_u64();
            Port::new(link, transport.queue(kind, own), layout.latency(kind))
        };
        let limits = |port| transport.pause_limits(layout.kind(port)).map(Ingress::new);
        let ingress: Vec<Option<Ingress>> = (0..layout.ports()).map(limits).collect();
        let pauses = ingress.iter().any(Option::is_some);
        let shared = |switch| SharedBuffer::new(transport.shared_bytes(layout.tier(switch)));
        let shared = (0..if pauses { layout.switches() } else { 0 }).map(shared).collect();
        let balancing = layout.balancing().unwrap_or(T::balancing());
        let sprays = layout.spines() > 0 && balancing != Balancing::Ecmp;
        let spray = |node| Spray::new(layout.spines(), balancing, seed ^ u64::from(node));
        let spray = (0..if sprays { config.nodes } else { 0 }).map(spray).collect();
        let trims = T::Queue::TRIMS.then_some(0);
        let counts = PacketCounts {
            pauses: pauses.then_some(0),
            trimmed: trims,
            returned: trims,
            ..PacketCounts::default()
        };
        Network {
            ports: (0..layout.ports()).map(port).collect(),
            packets: Packets::default(),
            flows: Flows::new(),
            sizes: Sizes::of::<T>(config),
            counts,
            timers: Timers::default(),
            memory_access: config.memory_access,
            spray,
            flows_opened: 0,
            finished: Ps::ZERO,
            dropped: Vec::new(),
            ingress: if pauses { ingress } else { Vec::new() },
            shared,
            left: Vec::new(),
            riding: Vec::new(),
            tracks: Vec::new(),
            layout,
        }
    }

    /// Opens a flow of a message. Its spine is a hash of its number; ECMP hashes addresses and
    /// ports.
    pub(super) fn open(
        &mut self,
        handle: Handle,
        (source, destination): (NodeIndex, NodeIndex),
        purpose: Purpose,
        bytes: u64,
        request: FlowId,
    ) -> FlowId {
        self.flows_opened += 1;
        let spine = ecmp_spine(self.flows_opened, self.layout.spines());
        let packets = self.sizes.packets(bytes) as u32;
        self.flows.open(Opening {
            source,
            destination,
            purpose,
            bytes,
            packets,
            handle,
            request,
            spine,
        })
    }

    /// Opens a standing flow: one direction between two nodes, for packets of many messages. All
    /// its packets take one spine, by a hash.
    pub(super) fn open_standing(&mut self, source: NodeIndex, destination: NodeIndex) -> FlowId {
        self.flows_opened += 1;
        let spine = ecmp_spine(self.flows_opened, self.layout.spines());
        self.flows.open_standing(Opening {
            source,
            destination,
            purpose: Purpose::Data,
            bytes: 0,
            packets: 0,
            handle: Handle::MAX,
            request: NO_FLOW,
            spine,
        })
    }

    #[inline]
    pub(super) fn send(&mut self, sim: &mut Sim<Event>, id: FlowId, out: Outgoing<T::Header>) {
        let frame = match out.from {
            End::Source => self.sizes.data(out.data_bytes),
            End::Destination => self.sizes.control(),
        };
        self.send_frame(sim, id, frame, out);
    }

    /// Sends a packet with a frame of its own size.
    #[inline]
    pub(super) fn send_frame(
        &mut self,
        sim: &mut Sim<Event>,
        id: FlowId,
        frame: Frame,
        out: Outgoing<T::Header>,
    ) {
        let flow = &self.flows[id];
        let (source, destination) = match out.from {
            End::Source => (flow.source, flow.destination),
            End::Destination => (flow.destination, flow.source),
        };
        let spray = self.spray.get_mut(usize::from(source));
        let spine = spray.map_or(flow.spine, Spray::next_spine);
        self.flows.hold(id);
        self.counts.sent += 1;
        let packet = self.packets.insert(Packet {
            flow: id,
            source,
            destination,
            frame,
            data_bytes: out.data_bytes as u16,
            rank: out.rank,
            marked: false,
            trimmed: false,
            heading: Heading::Out,
            spine,
            header: out.header,
        });
        self.enqueue(sim, source, packet);
    }

    /// Handles a packet that arrives at a port of a switch. Returns its flow if the switch of a
    /// lossless network has no room for it.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        sim: &mut Sim<Event>,
        id: PacketId,
        port: PortId,
    ) -> Option<FlowId> {
        if !self.ingress.is_empty() && !self.keep(sim, port, id) {
            self.counts.dropped += 1;
            return Some(self.packets.remove(id).flow);
        }
        self.enqueue(sim, port, id);
        None
    }

    /// Handles a dropped packet that nothing repairs: its flow's message never ends. Returns the
    /// request that the flow answers, if nothing of the flow had arrived yet.
    #[cold]
    pub(super) fn lose(&mut self, sim: &mut Sim<Event>, id: FlowId) -> Option<FlowId> {
        let flow = &mut self.flows[id];
        let request = std::mem::replace(&mut flow.request, NO_FLOW);
        if !flow.is_lost() {
            sim.lose(flow.handle, Loss::Fault);
            self.flows.lose(id);
        }
        self.flows.release(id);
        (request != NO_FLOW).then_some(request)
    }

    /// Removes a packet that has left the network.
    #[inline]
    pub(super) fn take(&mut self, id: PacketId) -> Packet<T::Header> {
        let packet = self.packets.remove(id);
        self.counts.delivered += 1;
        self.counts.marked += u64::from(packet.marked);
        packet
    }

    #[inline]
    fn enqueue(&mut self, sim: &mut Sim<Event>, at: PortId, id: PacketId) {
        let port = &mut self.ports[usize::from(at)];
        port.finish(self.finished);
        let offered = port.offer(sim.now(), &mut self.packets, id, &mut self.dropped);
        match offered {
            Ok(Some(sent)) => self.started(sim, at, sent),
            Ok(None) => {}
            Err(()) => self.dropped.push(id),
        }
        self.wake(sim, at);
        while let Some(id) = self.dropped.pop() {
            if T::Queue::TRIMS && self.packets[id].heading == Heading::Turning {
                self.turn(sim, at, id);
                continue;
            }
            if !self.ingress.is_empty() && at >= self.layout.nodes() {
                self.unkeep(sim, at, id);
            }
            let packet = self.packets.remove(id);
            self.counts.dropped += 1;
            self.flows.release(packet.flow);
        }
    }

    /// Sends a packet back on the way it came, from the switch of this port.
    fn turn(&mut self, sim: &mut Sim<Event>, at: PortId, id: PacketId) {
        let packet = &mut self.packets[id];
        let (source, destination) = (packet.source, packet.destination);
        let through = self.layout.previous(at, source, destination, packet.spine);
        packet.heading = Heading::Back;
        (packet.source, packet.destination) = (destination, source);
        let back = self.layout.reverse(through);
        self.counts.returned = self.counts.returned.map(|returned| returned + 1);
        self.enqueue(sim, back, id);
    }

    /// Handles a port that has sent a packet while others wait.
    #[inline]
    pub(super) fn free(&mut self, sim: &mut Sim<Event>, at: PortId) {
        let port = &mut self.ports[usize::from(at)];
        port.finish(self.finished);
        port.waking = false;
        // A pause frame or a background frame was sent first.
        if port.link.opens(sim.now()) > sim.now() {
            return self.wake(sim, at);
        }
        if let Some(sent) = port.next(sim.now(), &self.packets) {
            self.started(sim, at, sent);
        }
        self.wake(sim, at);
    }

    #[inline]
    fn started(&mut self, sim: &mut Sim<Event>, at: PortId, sent: Sent) {
        // The packet is at hand here, so the port need not load it where it arrives next.
        let packet = &self.packets[sent.id];
        let next = self.layout.next(at, packet.destination, packet.spine);
        let (lead, event) = match next {
            Some(next) => (self.layout.lead(at, next, packet.frame), Event::Arrive(sent.id, next)),
            None => (Ps::ZERO, Event::Deliver(sent.id)),
        };
        sim.at(sent.whole - lead, event);
        if sim.is_watched() && at < self.layout.nodes() {
            self.watch(sim, sent);
        }
        if T::PACES && at < self.layout.nodes() {
            self.leave(at, sent);
        }
        if !self.ingress.is_empty() && at >= self.layout.nodes() {
            self.unkeep(sim, at, sent.id);
        }
        if let Some(timeline) = sim.timeline() {
            self.draw(timeline, at, sent);
        }
    }

    /// Reports that data leaves its node.
    #[cold]
    fn watch(&mut self, sim: &mut Sim<Event>, sent: Sent) {
        let packet = &self.packets[sent.id];
        let flow = &self.flows[packet.flow];
        if flow.is_standing() {
            return self.riding.drain(..).for_each(|handle| sim.leaves(handle, sent.start));
        }
        if packet.data_bytes > 0 && !flow.is_lost() {
            sim.leaves(flow.handle, sent.start);
        }
    }

    /// Records that a packet of a flow's source begins to leave.
    #[inline]
    fn leave(&mut self, at: PortId, sent: Sent) {
        let packet = &self.packets[sent.id];
        if self.flows[packet.flow].source == packet.source {
            let slot = self.layout.slot(self.layout.kind(at));
            let line = slot * packet.frame.line_blocks().0;
            let bytes = packet.frame.line_bytes();
            self.left.push(Left { flow: packet.flow, start: sent.start, line, bytes });
        }
    }

    /// Charges a packet that arrives at a port to its switch's buffer until that port sends it.
    /// Returns false if there is no room for it.
    fn keep(&mut self, sim: &mut Sim<Event>, at: PortId, id: PacketId) -> bool {
        let packet = &self.packets[id];
        let through = self.layout.previous(at, packet.source, packet.destination, packet.spine);
        let Some(ingress) = &mut self.ingress[usize::from(through)] else { return true };
        if packet.rank == UNPAUSED_RANK {
            return true;
        }
        let shared = &mut self.shared[usize::from(self.layout.switch_behind(through))];
        match ingress.add(packet.frame.line_bytes(), shared) {
            Verdict::Go => {}
            Verdict::Refused => return false,
            Verdict::Stop => {
                self.counts.pauses = self.counts.pauses.map(|pauses| pauses + 1);
                self.tell(sim, through, Event::Pause(through));
            }
        }
        true
    }

    /// Releases a packet that a switch's port sends from the switch's buffer.
    fn unkeep(&mut self, sim: &mut Sim<Event>, at: PortId, id: PacketId) {
        let packet = &self.packets[id];
        let through = self.layout.previous(at, packet.source, packet.destination, packet.spine);
        let Some(ingress) = &mut self.ingress[usize::from(through)] else { return };
        let shared = &mut self.shared[usize::from(self.layout.switch_behind(through))];
        if packet.rank != UNPAUSED_RANK && ingress.remove(packet.frame.line_bytes(), shared) {
            self.tell(sim, through, Event::Resume(through));
        }
    }

    /// Sends a pause frame against the direction of a port. It goes behind the frame being sent
    /// there, and before all that wait.
    fn tell(&mut self, sim: &mut Sim<Event>, through: PortId, event: Event) {
        let frame = Frame::of(0);
        let port = &mut self.ports[usize::from(self.layout.reverse(through))];
        port.finish(self.finished);
        let start = port.link.send(sim.now(), frame.line_blocks(), Blocks(0));
        let tail = port.link.tail(Blocks(u64::from(frame.tail) + 1));
        sim.at(start + tail + self.layout.pause_latency(self.layout.kind(through)), event);
    }

    /// Handles a pause frame that arrived at a port.
    pub(super) fn set_paused(&mut self, sim: &mut Sim<Event>, at: PortId, paused: bool) {
        self.ports[usize::from(at)].queue.pause(paused);
        self.wake(sim, at);
    }

    #[cold]
    fn draw(&self, timeline: &mut Timeline, at: PortId, sent: Sent) {
        let packet = &self.packets[sent.id];
        let args = [
            ("from", u64::from(packet.source)),
            ("to", u64::from(packet.destination)),
            ("data bytes", u64::from(packet.data_bytes)),
        ];
        timeline.slice(self.tracks[usize::from(at)], "frame", sent.start, sent.end, &args);
    }

    /// Creates a row for every link.
    pub(super) fn draw_on(&mut self, timeline: &mut Timeline) {
        let nodes = self.layout.nodes();
        let links = LinkTracks::new(timeline, nodes);
        let (up, down) = (0..nodes).map(|node| (links.up(node), links.down(node))).unzip();
        let (up, down): (Vec<_>, Vec<_>) = (up, down);
        self.tracks = [up, down].concat();
        for port in 2 * nodes..self.layout.ports() {
            self.tracks.push(timeline.track("leaves and spines", &self.layout.name(port)));
        }
    }

    #[inline]
    fn wake(&mut self, sim: &mut Sim<Event>, at: PortId) {
        let port = &mut self.ports[usize::from(at)];
        if !port.waking && !port.is_empty() && !port.queue.is_blocked() {
            port.waking = true;
            let opens = port.link.opens(sim.now());
            sim.at(opens.max(sim.now()), Event::Free(at));
        }
    }

    /// Ends the message of a flow at `at`, and its destination's part of the flow.
    pub(super) fn end(&mut self, sim: &mut Sim<Event>, id: FlowId, at: Ps) {
        self.finished = sim.now();
        sim.finish(self.flows[id].handle, at);
        self.flows.receive(id);
    }

    pub(super) fn deliver(&mut self, sim: &mut Sim<Event>, id: FlowId) {
        let flow = &self.flows[id];
        match flow.purpose {
            Purpose::Data => {
                self.finished = sim.now();
                sim.finish(flow.handle, sim.now());
            }
            Purpose::Request { .. } => {
                sim.at_memory(flow.handle, sim.now());
                self.flows.hold(id);
                sim.at(sim.now() + self.memory_access, Event::Respond(id));
            }
        }
        self.flows.receive(id);
    }

    /// Opens the response to a request.
    pub(super) fn respond(&mut self, id: FlowId) -> FlowId {
        let request = &self.flows[id];
        let Purpose::Request { response_bytes } = request.purpose else {
            unreachable!("only a request is answered");
        };
        let (handle, ends) = (request.handle, (request.destination, request.source));
        // The request's source waits for the response, so the request still exists when it arrives.
        self.flows.release(id);
        self.open(handle, ends, Purpose::Data, response_bytes, id)
    }

    /// The request that an arriving packet answers, if it is the first such packet.
    #[inline]
    pub(super) fn answered(&mut self, packet: &Packet<T::Header>) -> Option<FlowId> {
        let flow = &mut self.flows[packet.flow];
        if flow.request == NO_FLOW || packet.destination != flow.destination {
            return None;
        }
        Some(std::mem::replace(&mut flow.request, NO_FLOW))
    }

    #[inline]
    pub(super) fn arm(&mut self, sim: &mut Sim<Event>, id: FlowId, deadline: Ps) {
        let flow = &mut self.flows[id];
        flow.deadline = deadline;
        if deadline < flow.look {
            self.schedule(sim, id, deadline);
        }
    }

    /// Schedules a check of a flow's deadline at `at`. It goes to the list in order if it is not
    /// before the list's last; otherwise it gets an event of its own.
    fn schedule(&mut self, sim: &mut Sim<Event>, id: FlowId, at: Ps) {
        self.flows[id].look = at;
        let (flows, entry) =
            (&self.flows, Entry { at, flow: id, generation: self.flows[id].generation });
        if self.timers.push(entry, |entry| flows[entry.flow].generation != entry.generation) {
            if self.timers.needs_event(at) {
                sim.at(at, Event::Timers);
            }
        } else {
            self.flows.hold(id);
            sim.at(at, Event::Timer(id));
        }
    }

    /// The next flow of the list whose check is due. `None` if no check is due; then the next check
    /// is scheduled.
    pub(super) fn due(&mut self, sim: &mut Sim<Event>) -> Option<FlowId> {
        let now = sim.now();
        while let Some(entry) = self.timers.pop_due(now) {
            if self.flows[entry.flow].generation == entry.generation && self.looked(sim, entry.flow)
            {
                return Some(entry.flow);
            }
        }
        let flows = &self.flows;
        let ended = |entry: Entry| flows[entry.flow].generation != entry.generation;
        if let Some(at) = self.timers.next(now, ended) {
            sim.at(at, Event::Timers);
        }
        None
    }

    /// True if the deadline of a flow has come. If it was put off, another check is scheduled.
    pub(super) fn looked(&mut self, sim: &mut Sim<Event>, id: FlowId) -> bool {
        let flow = &mut self.flows[id];
        if flow.look > sim.now() {
            return false;
        }
        flow.look = Ps::MAX;
        let deadline = flow.deadline;
        if deadline == Ps::MAX {
            return false;
        }
        if deadline <= sim.now() {
            flow.deadline = Ps::MAX;
            return true;
        }
        self.schedule(sim, id, deadline);
        false
    }

    /// The time at which everything that a node's interface was given has left.
    #[inline]
    pub(super) fn interface_free(&self, node: NodeIndex, now: Ps) -> Ps {
        let port = &self.ports[usize::from(node)];
        let slot = self.layout.slot(PortKind::HostUp);
        port.link.free().max(now) + slot * port.backlog().blocks().0
    }

    /// Time that a packet with this much data takes on a node's link.
    #[inline]
    pub(super) fn line(&self, data_bytes: u64) -> Ps {
        self.layout.slot(PortKind::HostUp) * self.sizes.data(data_bytes).line_blocks().0
    }

    /// Number of bytes that wait at a port or are still to be sent.
    pub(super) fn queued_bytes(&self, port: PortId, now: Ps) -> u64 {
        self.ports[usize::from(port)].queued_bytes(now)
    }
}
