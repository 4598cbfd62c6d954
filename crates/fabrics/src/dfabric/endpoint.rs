//! The nodes' stacks: streams, and what their nodes do with packets.

use ethermem_dfabric::address::Node;
use ethermem_dfabric::cache::{Fetch, Lookup};
use ethermem_dfabric::loads::LoadWindow;
use ethermem_dfabric::pool::SkbRef;
use ethermem_dfabric::small_queue::{ChargeEnd, SmallQueue};
use ethermem_dfabric::stream::{
    self, Arrival, FiveTuple, Receiver, RoundTrips, Transmit, pinned_path,
};
use ethermem_engine::engine::{Handle, Sim};
use ethermem_engine::topology::{FRAME_OVERHEAD_BYTES, Frame};
use ethermem_units::{Bytes, Ps};
use ethermem_wire::dfabric::{
    ACKNOWLEDGEMENT_BYTES, Acknowledgement, Descriptor, DescriptorKind, FabricAddress, Header,
    SEGMENT_BYTES, Segment,
};
use ethermem_workload::{Kind, NodeIndex};

use super::config::{HEAD_BYTES, IntraRack};
use super::copy::{Ask, Then};
use super::meter::{User, Way};
use super::rack::{RackId, Transfer, What, identity, node_of};
use super::{Dfabric, Event};

/// The longest header.
const HEADER_BYTES: usize = ACKNOWLEDGEMENT_BYTES;
/// The longest packet: a header and the data of the largest Buffer.
const PACKET_BYTES: usize = SEGMENT_BYTES + 8_192;
/// The first port of subflows; the ports are what ECMP tells subflows apart by.
const PORT: u16 = 40_000;

/// A packet, from its descriptor at its sender to its release at its receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    octets: [u8; HEADER_BYTES],
    header: u8,
    /// Bytes of data.
    pub(super) data: u32,
    /// Number of its segment.
    pub(super) number: u32,
    /// The memory in which it was received.
    pub(super) memory: u16,
    /// The entry that now stands for it in a queue.
    pub(super) descriptor: Descriptor,
    /// The rack and the NIC to which it goes.
    pub(super) path: (RackId, u16),
    /// The stream whose small queue it is charged to.
    stream: Option<u32>,
    /// The message whose first data it has.
    pub(super) leaves: Option<Handle>,
    fetch: Option<Fetch>,
    skb: Option<SkbRef>,
}

impl Packet {
    /// Bytes of header and data.
    pub(super) fn bytes(&self) -> u32 {
        u32::from(self.header) + self.data
    }

    pub(super) fn frame(&self) -> Frame {
        Frame::of(self.bytes().into())
    }

    /// Reads the header from the octets of the packet; data is zeros.
    fn parse(&self) -> Header {
        let mut octets = [0; PACKET_BYTES];
        octets[..HEADER_BYTES].copy_from_slice(&self.octets);
        octets[usize::from(self.header)..HEADER_BYTES].fill(0);
        let packet = Header::parse(&octets[..self.bytes() as usize]);
        packet.expect("the network does not change octets").0
    }
}

/// What a stream moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carries {
    /// The request of a read or an atomic.
    Request,
    /// The data of a write.
    Write,
    /// The data of a response.
    Response,
}

/// A stream between two nodes, with both of its ends.
pub(super) struct Stream {
    message: Handle,
    carries: Carries,
    from: NodeIndex,
    to: NodeIndex,
    /// Bytes that are in no segment.
    left: u64,
    /// Segments that hold Buffers, and the most that may.
    kept: u32,
    window: u32,
    sender: stream::Sender,
    receiver: Receiver,
    small: SmallQueue,
    /// `sk_buf` objects of segments that wait for earlier ones.
    skbs: Vec<(FabricAddress, SkbRef)>,
    is_starved: bool,
    /// The TxQ of its first subflow.
    queue: u16,
    /// When its timer is looked at next.
    wake: Ps,
}

impl Stream {
    fn is_over(&self) -> bool {
        self.left == 0 && self.kept == 0 && self.sender.is_idle() && self.receiver.is_complete()
    }
}

impl Dfabric {
    /// Opens a stream of a message, and sends what it may.
    pub(super) fn open(
        &mut self,
        sim: &mut Sim<Event>,
        (message, carries): (Handle, Carries),
        (from, to): (NodeIndex, NodeIndex),
        bytes: u64,
    ) {
        let number = self.streams_opened;
        self.streams_opened = number.wrapping_add(1);
        let queues = u32::from(self.rules.queues);
        let config = self.rules.sender(bytes.div_ceil(self.rules.segment_bytes()));
        let built = (stream::Sender::new(config, 0), Receiver::new(config.window, 0));
        let (Ok(sender), Ok(receiver)) = built else { panic!("the window is a power of two") };
        let stream = Stream {
            message,
            carries,
            from,
            to,
            left: bytes,
            kept: 0,
            window: config.window,
            sender,
            receiver,
            small: SmallQueue::new(self.rules.small_queue(self.link)),
            skbs: Vec::new(),
            is_starved: false,
            queue: if self.rules.at_best { 0 } else { (number % queues) as u16 },
            wake: Ps::MAX,
        };
        self.pump(sim, number, stream);
    }

    /// Sends what a stream may send, and keeps it.
    fn pump(&mut self, sim: &mut Sim<Event>, number: u32, mut stream: Stream) {
        let trips = *self.trips(&stream);
        self.fill(number, &mut stream);
        while stream.small.may_send() {
            let Some(transmit) = stream.sender.poll_transmit(sim.now(), &trips) else { break };
            self.transmit_segment(sim, number, &mut stream, transmit);
            self.fill(number, &mut stream);
        }
        // A timeout gets shorter with faster round trips, and may be over already.
        let wake = stream.sender.next_wake(&trips).map(|wake| wake.max(sim.now()));
        if let Some(wake) = wake.filter(|wake| *wake < stream.wake) {
            stream.wake = wake;
            sim.at(wake, Event::Timer(number));
        }
        self.streams.insert(number, stream);
    }

    /// What is known of the round trips between the two nodes of a stream.
    fn trips(&mut self, stream: &Stream) -> &mut RoundTrips {
        let pair = (stream.from, stream.to);
        let is_within = self.member(stream.from).0 == self.member(stream.to).0;
        let one_way = if is_within { self.times.ack_within } else { self.times.ack };
        // No segment and its acknowledgement are faster than two acknowledgements alone.
        let least = self.rules.timeout.max(one_way * 2);
        self.round_trips.entry(pair).or_insert_with(|| RoundTrips::new(least))
    }

    /// Pushes segments, as far as the window and the memory have room.
    fn fill(&mut self, number: u32, stream: &mut Stream) {
        let (rack, node) = self.member(stream.from);
        while stream.left > 0 && stream.kept < stream.window && !stream.is_starved {
            let of = &mut self.racks[usize::from(rack)];
            let Some(buffer) = of.alloc(node.0) else {
                stream.is_starved = true;
                of.starved.push_back(number);
                return;
            };
            let length = stream.left.min(self.rules.segment_bytes());
            stream.left -= length;
            stream.kept += 1;
            let pushed = stream.sender.push(buffer, length as u32, stream.left == 0);
            pushed.expect("the window has room");
        }
    }

    fn transmit_segment(
        &mut self,
        sim: &mut Sim<Event>,
        number: u32,
        stream: &mut Stream,
        transmit: Transmit,
    ) {
        let Transmit { subflow, data, length, is_last, is_again, .. } = transmit;
        let (rack, node) = self.member(stream.from);
        let of = &mut self.racks[usize::from(rack)];
        // Within a rack no packet is lost. As Linux, the stack leaves alone what is still queued,
        // or with its receiver.
        let is_out = !of.pool.may_write(node, data) || of.pool.references(node, data) > 1;
        if is_again && is_out && of.has(identity(stream.to)) {
            return;
        }
        // TCP keeps what it may send again.
        of.pool.retain(node, data).expect("the node holds it");
        let segment = Segment {
            destination: identity(stream.to),
            source: identity(stream.from),
            stream: number,
            subflow,
            number: transmit.number,
            length,
            is_last,
        };
        let is_first = transmit.number == 0 && !is_again && stream.carries != Carries::Request;
        self.counts.retransmitted += u64::from(is_again);
        let charges = !is_again || self.rules.small_queue != Some(ChargeEnd::Freed);
        if charges {
            stream.small.charge(Bytes(length.into()));
        }
        let packet = Outgoing {
            header: Header::Segment(segment),
            data: length,
            buffer: data,
            ends: (stream.from, stream.to),
            subflow: (subflow, stream.queue + subflow),
            stream: Some(number),
            leaves: is_first.then_some(stream.message),
        };
        self.send(sim, packet);
    }

    /// A packet is given to a node's stack.
    fn send(&mut self, sim: &mut Sim<Event>, out: Outgoing) {
        let (rack, node) = self.member(out.ends.0);
        let mut octets = [0; HEADER_BYTES];
        let header = out.header.emit(&mut octets).expect("room for the longest header");
        let path = self.path(out.ends, out.subflow.0);
        let descriptor = Descriptor {
            kind: DescriptorKind::Transfer,
            reference: out.buffer,
            length: header as u32 + out.data,
            destination: identity(out.ends.1),
            source: identity(out.ends.0),
            subflow: out.subflow.1 % self.rules.queues,
            cookie: 0,
        };
        let id = self.packets.insert(Packet {
            octets,
            header: header as u8,
            data: out.data,
            number: match out.header {
                Header::Segment(segment) => segment.number,
                Header::Acknowledgement(_) => 0,
            },
            memory: 0,
            descriptor,
            path,
            stream: out.stream,
            leaves: out.leaves,
            fetch: None,
            skb: None,
        });
        self.packets[id].descriptor.cookie = id.into();
        // The data is stored to the node's own memory.
        let of = &mut self.racks[usize::from(rack)];
        let stored = of.store(sim, (node, descriptor.reference), descriptor.length.into());
        sim.at(stored + self.times.local + self.times.stack, Event::Post(rack, id));
    }

    /// The NIC at the other rack to which the core leads a subflow: by ECMP, one for each subflow.
    /// Within a rack it is not used.
    fn path(&self, (from, to): (NodeIndex, NodeIndex), subflow: u16) -> (RackId, u16) {
        let (rack, _) = self.member(to);
        let nics = self.racks[usize::from(rack)].nics.len() as u16;
        if self.rules.at_best {
            return (rack, subflow % nics);
        }
        let tuple = FiveTuple {
            source: identity(from).0,
            destination: identity(to).0,
            source_port: PORT + subflow,
            destination_port: PORT,
        };
        (rack, pinned_path(&tuple, nics))
    }

    /// A charge to a small queue has reached an instant.
    pub(super) fn discharge(&mut self, sim: &mut Sim<Event>, work: &Descriptor, at: ChargeEnd) {
        let header = SEGMENT_BYTES as u32;
        let Some(number) = self.packets[work.cookie as u32].stream.take() else { return };
        let Some(mut stream) = self.streams.remove(&number) else { return };
        let is_over = stream.small.reach(at, Bytes((work.length - header).into()));
        match is_over {
            true => self.pump(sim, number, stream),
            false => drop(self.streams.insert(number, stream)),
        }
    }

    /// A descriptor is at the head of an RxQ: the node is interrupted, and reads its RxQs.
    pub(super) fn stored(
        &mut self,
        sim: &mut Sim<Event>,
        rack: RackId,
        (queue, packet): (u32, u32),
    ) {
        let of = &mut self.racks[usize::from(rack)];
        let is_room = of.rx[queue as usize].ring.push(self.packets[packet].descriptor.words());
        assert!(is_room, "an RxQ overflows");
        let node = (queue / u32::from(self.rules.queues)) as u16;
        let interrupt = &mut of.members[usize::from(node)].interrupt;
        if !interrupt.store(sim.now()) {
            return;
        }
        interrupt.serve();
        for queue in queue - queue % u32::from(self.rules.queues)..=queue {
            while let Some(words) = self.racks[usize::from(rack)].rx[queue as usize].ring.pop() {
                let descriptor = Descriptor::parse(&words).expect("the switch node stored it");
                let loading = &mut self.racks[usize::from(rack)].rx[queue as usize].loading;
                loading.push_back((descriptor.cookie as u32, false));
                self.consumed(sim, rack, queue);
                self.receive(sim, (rack, node), &descriptor);
            }
        }
    }

    /// A node has the reference of a packet: its stack loads the packet, through the DRAM cache if
    /// it is long enough.
    fn receive(
        &mut self,
        sim: &mut Sim<Event>,
        (rack, node): (RackId, u16),
        descriptor: &Descriptor,
    ) {
        let (packet, address) = (descriptor.cookie as u32, descriptor.reference);
        let length = descriptor.length;
        let of = &mut self.racks[usize::from(rack)];
        let may = of.pool.check_access(Node(node), address, length.into());
        may.expect("the mapping table has what was passed");
        let skb = of.pool.build_shared_skb(Node(node), address, length);
        let received = &mut self.packets[packet];
        received.skb = Some(skb.expect("as many as references"));
        // By reference, the stack loads the header alone. `kfree_shared_skb` needs no data.
        let is_reference =
            self.rules.intra_rack == IntraRack::Reference && of.has(descriptor.source);
        let loaded = if is_reference { received.header.into() } else { length };
        let cache = of.members[usize::from(node)].cache.as_mut().filter(|_| !is_reference);
        let lookup = cache.map_or(Lookup::Bypass, |cache| cache.load(address, loaded));
        let memory = received.memory;
        match lookup {
            Lookup::Miss { fetch, .. } => {
                received.fetch = Some(fetch);
                let (kind, what) = (Kind::Read, What::Fetched { packet });
                let (bytes, message) = (loaded.into(), None);
                let (port, read, user) = (node, None, User::node(node));
                let fill = Transfer { kind, port, memory, bytes, what, message, read, user };
                of.transfer(sim, fill);
            }
            Lookup::Bypass => {
                let lines = LoadWindow::lines(address.number(), loaded.into());
                let (kind, then) = (Kind::Read, Then::Up(packet));
                let (bytes, missing) = (loaded.into(), lines as u32);
                of.copy(sim, node, Ask { kind, memory, bytes, missing, then }, None);
            }
            Lookup::Hit(_) | Lookup::Pending(_) => panic!("a Buffer is flushed when it is freed"),
        }
    }

    /// A DRAM cache has a packet.
    pub(super) fn fetched(&mut self, sim: &mut Sim<Event>, packet: u32) {
        let received = &mut self.packets[packet];
        let fetch = received.fetch.take().expect("it was fetched");
        let bytes = received.bytes().into();
        let to = node_of(received.descriptor.destination);
        let (rack, node) = self.member(to);
        let member = &mut self.racks[usize::from(rack)].members[usize::from(node.0)];
        let cache = member.cache.as_mut().expect("it began the fetch");
        assert!(cache.filled(fetch), "nothing changes a received Buffer");
        if let Some(meter) = &mut member.cache_meter {
            let now = sim.now();
            meter.count(User::node(node.0), Way::Write, (now, now), bytes);
            meter.count(User::node(node.0), Way::Read, (now, now + self.times.local), bytes);
        }
        self.loaded(sim, packet);
    }

    /// A node has loaded a packet: it is then in its own memory. Packets of an RxQ pass the stack
    /// in their order.
    pub(super) fn loaded(&mut self, sim: &mut Sim<Event>, packet: u32) {
        let descriptor = self.packets[packet].descriptor;
        let (rack, _) = self.member(node_of(descriptor.destination));
        let at = sim.now() + self.times.local + self.times.stack;
        for packet in self.racks[usize::from(rack)].take_loaded(packet, &descriptor) {
            sim.at(at, Event::Up(packet));
        }
    }

    /// A packet has passed its receiver's stack.
    pub(super) fn up(&mut self, sim: &mut Sim<Event>, id: u32) {
        let packet = self.packets.remove(id);
        let skb = packet.skb.expect("its stack wrapped it");
        let at = packet.descriptor.reference;
        let (rack, node) = self.member(node_of(packet.descriptor.destination));
        let was_full = !self.racks[usize::from(rack)].pool.has_reference();
        match packet.parse() {
            Header::Segment(segment) => self.on_segment(sim, (rack, node.0), segment, (at, skb)),
            Header::Acknowledgement(ack) => {
                self.racks[usize::from(rack)].free_received(node.0, skb, at);
                self.on_ack(sim, &ack);
            }
        }
        if was_full {
            self.retry(sim, rack);
        }
        self.feed(sim, rack);
    }

    fn on_segment(
        &mut self,
        sim: &mut Sim<Event>,
        (rack, node): (RackId, u16),
        segment: Segment,
        (at, skb): (FabricAddress, SkbRef),
    ) {
        let of = &mut self.racks[usize::from(rack)];
        let Some(stream) = self.streams.get_mut(&segment.stream) else {
            // A copy that was sent again, although the first one had come.
            return of.free_received(node, skb, at);
        };
        let was_complete = stream.receiver.is_complete();
        match stream.receiver.on_segment(&segment, at) {
            Arrival::Kept => stream.skbs.push((at, skb)),
            Arrival::Duplicate | Arrival::Outside => of.free_received(node, skb, at),
            Arrival::Mismatch => panic!("a sender's copies are alike"),
        }
        while let Some(delivery) = stream.receiver.poll_delivery() {
            let found = stream.skbs.iter().position(|kept| kept.0 == delivery.data);
            let (at, skb) = stream.skbs.swap_remove(found.expect("it was kept"));
            of.free_received(node, skb, at);
        }
        let ack = stream.receiver.acknowledge(&segment);
        let ends = (stream.to, stream.from);
        let queue = stream.queue + segment.subflow;
        let is_complete = stream.receiver.is_complete() && !was_complete;
        let (message, carries) = (stream.message, stream.carries);
        self.acknowledge(sim, (rack, node), ack, (ends, queue));
        if is_complete {
            self.complete_stream(sim, message, carries);
        }
    }

    /// Without a Buffer there is no acknowledgement; the segment is sent again, and so asks again.
    fn acknowledge(
        &mut self,
        sim: &mut Sim<Event>,
        (rack, node): (RackId, u16),
        ack: Acknowledgement,
        (ends, queue): ((NodeIndex, NodeIndex), u16),
    ) {
        if self.rules.at_best {
            let id = self.acks.insert(ack);
            let is_within = self.member(ends.0).0 == self.member(ends.1).0;
            let took = if is_within { self.times.ack_within } else { self.times.ack };
            return sim.at(sim.now() + took, Event::Acknowledged(id));
        }
        let Some(buffer) = self.racks[usize::from(rack)].alloc(node) else { return };
        let packet = Outgoing {
            header: Header::Acknowledgement(ack),
            data: 0,
            buffer,
            ends,
            subflow: (ack.subflow, queue),
            stream: None,
            leaves: None,
        };
        self.send(sim, packet);
    }

    fn complete_stream(&mut self, sim: &mut Sim<Event>, message: Handle, carries: Carries) {
        let now = sim.now();
        match carries {
            Carries::Request => {
                sim.at_memory(message, now);
                sim.at(now + self.times.memory, Event::Respond(message));
            }
            Carries::Write | Carries::Response => sim.finish(message, now),
        }
    }

    pub(super) fn on_ack(&mut self, sim: &mut Sim<Event>, ack: &Acknowledgement) {
        let Some(mut stream) = self.streams.remove(&ack.stream) else { return };
        let taken = stream.sender.on_ack(ack, sim.now(), self.trips(&stream));
        taken.expect("what came was sent");
        let (rack, node) = self.member(stream.from);
        while let Some((_, data)) = stream.sender.poll_acked() {
            stream.kept -= 1;
            let of = &mut self.racks[usize::from(rack)];
            let freed = of.pool.release(node, data).expect("the node kept it");
            of.released(freed);
        }
        if self.rules.small_queue == Some(ChargeEnd::Freed) {
            self.discharge_freed(&mut stream);
        }
        if stream.is_over() {
            return;
        }
        self.pump(sim, ack.stream, stream);
    }

    /// What the receiver has freed is what is not in flight and not due: all but the kept ones.
    fn discharge_freed(&self, stream: &mut Stream) {
        let kept = u64::from(stream.kept) * self.rules.segment_bytes();
        let charged = stream.small.charged().0;
        stream.small.reach(ChargeEnd::Freed, Bytes(charged.saturating_sub(kept)));
    }

    pub(super) fn timer(&mut self, sim: &mut Sim<Event>, number: u32) {
        let Some(mut stream) = self.streams.remove(&number) else { return };
        stream.wake = Ps::MAX;
        let now = sim.now();
        let trips = self.trips(&stream);
        if stream.sender.next_wake(trips).is_some_and(|wake| wake <= now) {
            stream.sender.on_timer(now, trips);
            self.counts.timeouts += 1;
        }
        self.pump(sim, number, stream);
    }

    /// A Buffer may be free: the stream that has waited longest looks again.
    pub(super) fn feed(&mut self, sim: &mut Sim<Event>, rack: RackId) {
        let Some(number) = self.racks[usize::from(rack)].starved.pop_front() else { return };
        if let Some(mut stream) = self.streams.remove(&number) {
            stream.is_starved = false;
            self.pump(sim, number, stream);
        }
    }
}

/// A packet that a stack is to send.
#[derive(Clone, Copy)]
struct Outgoing {
    header: Header,
    data: u32,
    buffer: FabricAddress,
    ends: (NodeIndex, NodeIndex),
    /// The subflow of its stream, and its TxQ.
    subflow: (u16, u16),
    stream: Option<u32>,
    leaves: Option<Handle>,
}

const _: () = assert!(SEGMENT_BYTES as u64 <= HEAD_BYTES && FRAME_OVERHEAD_BYTES == 18);
