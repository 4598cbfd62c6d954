//! Lossless Ethernet: hop-by-hop priority flow control (IEEE 802.1Qbb), with DCQCN from end to end
//! above it (SIGCOMM 2015).

mod buffer;
mod config;
mod dcqcn;
mod pair;
mod queue;

use std::collections::BTreeMap;

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::{Layout, PortKind, Tier};
use ethermem_frames::{
    End, FlowId, Left, Net, Outgoing, Packet, PacketFabric, PauseLimits, Purpose, Transport,
    UNPAUSED_RANK,
};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, NodeIndex};

pub use config::PfcConfig;

use crate::budget::ROCE_STACK;
pub use buffer::Thresholds;

use buffer::faster;
pub use dcqcn::{Reaction, Rules};
use pair::QueuePair;
pub use queue::{LosslessQueue, Red};

/// PFC and DCQCN on the packet network.
pub type Pfc = PacketFabric<Dcqcn>;

/// The rate of the paper's links, in Gb/s.
const PAPER_GBPS: f64 = 40.0;
/// Values for that rate: Kmin, Kmax, the byte counter and R_AI; the last two are ours. The scenario
/// reference has their sources.
const ECN_MIN_BYTES: f64 = 5_000.0;
const ECN_MAX_BYTES: f64 = 200_000.0;
const BYTE_COUNTER_BYTES: f64 = 10_000_000.0;
const ADDITIVE_MBPS: f64 = 40.0;
const HYPER_MBPS: f64 = 400.0;
const RATE_MIN_MBPS: f64 = 40.0;

/// The transport: rate-limited senders without a repair of losses.
pub struct Dcqcn {
    rules: Rules,
    cnp_interval: Ps,
    ack_messages: usize,
    ack_delay: Ps,
    /// The queue pairs from one node to another: places in the list.
    places: BTreeMap<(NodeIndex, NodeIndex), Places>,
    pairs: Vec<QueuePair>,
    config: FabricConfig,
    layout: Layout,
}

/// The queue pairs from one node to another.
#[derive(Debug, Default)]
struct Places {
    /// The one of messages of a packet, which share it.
    short: Option<usize>,
    /// Those of longer messages, one at a time in each.
    long: Vec<usize>,
}

/// Both ends of a message, or the place of a queue pair.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    pair: usize,
    received: u32,
    /// True if it answers a request, whose end needs no acknowledgement.
    response: bool,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Data, or a request.
    Data,
    /// This many writes of the queue pair have arrived.
    Acknowledgement(u32),
    /// CNP: a packet was marked.
    Notification,
}

impl PfcConfig {
    /// The RED parameters of a link whose rate is `faster` times a node's; `scale` is the node's
    /// rate relative to the paper's. Configured thresholds scale only with `faster`.
    fn red(&self, scale: f64, faster: f64) -> Red {
        let bytes = |given: Option<Bytes>, paper: f64| {
            (given.map_or(paper * scale, |bytes| bytes.0 as f64) * faster) as u64
        };
        Red {
            least_bytes: bytes(self.ecn_min, ECN_MIN_BYTES),
            most_bytes: bytes(self.ecn_max, ECN_MAX_BYTES),
            chance_max: self.ecn_chance,
        }
    }

    fn rules(&self, link_gbps: f64) -> Rules {
        let scale = link_gbps / PAPER_GBPS;
        let share = |given: Option<f64>, paper: f64| {
            (given.unwrap_or(paper * scale) / (link_gbps * 1e3)).min(1.0)
        };
        Rules {
            alpha_initial: self.alpha_initial,
            gain: self.gain,
            alpha_timer: self.alpha_timer,
            increase_timer: self.increase_timer,
            byte_counter: self
                .byte_counter
                .map_or((BYTE_COUNTER_BYTES * scale) as u64, |bytes| bytes.0),
            recovery_stages: self.recovery_stages,
            additive: share(self.additive_mbps, ADDITIVE_MBPS),
            hyper: share(self.hyper_mbps, HYPER_MBPS),
            rate_min: share(self.rate_min_mbps, RATE_MIN_MBPS),
        }
    }

    /// Checks that the buffers of a network's switches have room for the headroom of its links.
    ///
    /// # Errors
    /// A text that says how many bytes the headroom takes.
    pub fn check_buffers(&self, config: &FabricConfig) -> Result<(), String> {
        if self.thresholds == Thresholds::Static {
            return Ok(());
        }
        let layout = Layout::new(config, Ps::ZERO);
        let tiers: &[Tier] =
            if layout.spines() == 0 { &[Tier::Leaf] } else { &[Tier::Leaf, Tier::Spine] };
        tiers.iter().try_for_each(|&tier| buffer::shared_bytes(config, &layout, tier).map(drop))
    }
}

impl Dcqcn {
    /// The queue pair for a message: of all short ones between two nodes, or an idle one for a long
    /// one, so that nothing waits behind that. It is opened if there is none.
    fn pair(
        &mut self,
        net: &mut Net<'_, Dcqcn>,
        ends: (NodeIndex, NodeIndex),
        is_long: bool,
    ) -> usize {
        let known = self.places.entry(ends).or_default();
        let idle = |place: &&usize| self.pairs[**place].is_idle();
        let found = if is_long { known.long.iter().find(idle) } else { known.short.as_ref() };
        if let Some(&place) = found {
            return place;
        }
        let place = self.pairs.len();
        if is_long {
            known.long.push(place);
        } else {
            known.short = Some(place);
        }
        let timer = net.open_standing(ends.0, ends.1);
        net.flow_mut(timer).state.pair = place;
        self.pairs.push(QueuePair::new(timer, &self.rules));
        place
    }

    /// Sends the next packet of a queue pair, unless one is at the interface or its rate forbids
    /// it.
    fn pump(&mut self, net: &mut Net<'_, Dcqcn>, place: usize) {
        let now = net.now();
        let pair = &mut self.pairs[place];
        while let Some(&(id, generation)) = pair.messages.front() {
            let flow = net.flow(id);
            if flow.is_lost() || flow.generation != generation {
                pair.drop_first();
                continue;
            }
            if pair.waiting {
                return;
            }
            if pair.opens > now {
                let at = pair.opens;
                return self.arm(net, place, End::Source, at);
            }
            let position = pair.take(flow.packets);
            let data_bytes = net.data_bytes(id, position);
            let rank = UNPAUSED_RANK + 1;
            let header = Header::Data;
            return net.send(id, Outgoing { from: End::Source, data_bytes, rank, header });
        }
    }

    fn arm(&mut self, net: &mut Net<'_, Dcqcn>, place: usize, end: End, at: Ps) {
        let pair = &mut self.pairs[place];
        net.arm(pair.timer, pair.deadlines.set(end, at));
    }

    fn control(net: &mut Net<'_, Dcqcn>, id: FlowId, header: Header) {
        let from = End::Destination;
        net.send(id, Outgoing { from, data_bytes: 0, rank: UNPAUSED_RANK, header });
    }

    fn on_data(&mut self, net: &mut Net<'_, Dcqcn>, packet: &Packet<Header>) {
        let now = net.now();
        let id = packet.flow;
        let flow = net.flow_mut(id);
        let purpose = flow.purpose;
        flow.state.received += 1;
        let complete = flow.state.received == flow.packets;
        let Ends { pair: place, response, .. } = flow.state;
        let pair = &mut self.pairs[place];
        // Every marked packet may cause a notification, also the last one of a message.
        if packet.marked && now >= pair.notify_after {
            pair.notify_after = now + self.cnp_interval;
            Self::control(net, id, Header::Notification);
        }
        if !complete {
            return;
        }
        net.deliver(id);
        match purpose {
            Purpose::Request { .. } => {}
            // The responder of a read keeps nothing, and is not told.
            Purpose::Data if response => net.settle(id),
            Purpose::Data => match self.pairs[place].owe(id) {
                owed if owed >= self.ack_messages => self.acknowledge(net, place),
                1 => self.arm(net, place, End::Destination, now + self.ack_delay),
                _ => {}
            },
        }
    }

    /// Acknowledges all writes of a queue pair that have arrived.
    fn acknowledge(&mut self, net: &mut Net<'_, Dcqcn>, place: usize) {
        self.arm(net, place, End::Destination, Ps::MAX);
        if let Some((count, last)) = self.pairs[place].acknowledge() {
            Self::control(net, last, Header::Acknowledgement(count));
        }
    }
}

impl Transport for Dcqcn {
    type Flow = Ends;
    type Header = Header;
    type Queue = LosslessQueue;
    type Parameters = PfcConfig;
    const PACES: bool = true;

    fn new(config: &FabricConfig, layout: &Layout) -> Dcqcn {
        let pfc = &config.of::<PfcConfig>();
        let link_gbps = config.link.as_gbps_f64();
        Dcqcn {
            rules: pfc.rules(link_gbps),
            cnp_interval: pfc.cnp_interval,
            ack_messages: pfc.ack_messages as usize,
            ack_delay: pfc.ack_delay,
            places: BTreeMap::new(),
            pairs: Vec::new(),
            config: config.clone(),
            layout: layout.clone(),
        }
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.of::<PfcConfig>().header
    }

    fn stack() -> Ps {
        ROCE_STACK
    }

    fn queue(&self, kind: PortKind, seed: u64) -> LosslessQueue {
        // A host's interface is paced, and marks no packet.
        if kind == PortKind::HostUp {
            return LosslessQueue::new(Red::NEVER, seed);
        }
        let scale = self.config.link.as_gbps_f64() / PAPER_GBPS;
        let red = self.config.of::<PfcConfig>().red(scale, faster(&self.layout, kind));
        LosslessQueue::new(red, seed)
    }

    fn pause_limits(&self, kind: PortKind) -> Option<PauseLimits> {
        // Hosts accept every packet.
        let limits = || buffer::limits(&self.config, &self.layout, kind);
        (kind != PortKind::HostDown).then(limits)
    }

    fn shared_bytes(&self, tier: Tier) -> u64 {
        match self.config.of::<PfcConfig>().thresholds {
            Thresholds::Static => 0,
            Thresholds::Dynamic => buffer::shared_bytes(&self.config, &self.layout, tier)
                .expect("the scenario was refused where it is too small"),
        }
    }

    fn start(&mut self, net: &mut Net<'_, Dcqcn>, id: FlowId) {
        let flow = net.flow(id);
        let (ends, generation) = ((flow.source, flow.destination), flow.generation);
        let response = flow.is_response();
        let is_long = flow.packets > 1;
        let pair = self.pair(net, ends, is_long);
        net.flow_mut(id).state = Ends { pair, response, received: 0 };
        self.pairs[pair].messages.push_back((id, generation));
        self.pump(net, pair);
    }

    fn on_left(&mut self, net: &mut Net<'_, Dcqcn>, left: Left) {
        let place = net.flow(left.flow).state.pair;
        let pair = &mut self.pairs[place];
        pair.waiting = false;
        pair.reaction.sent(left.bytes, left.start, &self.rules);
        let gap = Ps((left.line.0 as f64 / pair.reaction.rate()) as u64);
        pair.opens = left.start + gap;
        self.pump(net, place);
    }

    fn on_timer(&mut self, net: &mut Net<'_, Dcqcn>, timer: FlowId) {
        let place = net.flow(timer).state.pair;
        let (source, destination) = self.pairs[place].deadlines.due(net.now());
        if destination {
            self.acknowledge(net, place);
        }
        if source {
            self.pump(net, place);
        }
        let earlier = self.pairs[place].deadlines.earlier();
        net.arm(timer, earlier);
    }

    fn on_packet(&mut self, net: &mut Net<'_, Dcqcn>, packet: &Packet<Header>) {
        let place = net.flow(packet.flow).state.pair;
        match packet.header {
            Header::Data => self.on_data(net, packet),
            Header::Acknowledgement(count) => {
                for _ in 0..count {
                    net.settle(self.pairs[place].next_acknowledged());
                }
            }
            Header::Notification => {
                let now = net.now();
                self.pairs[place].reaction.notified(now, &self.rules);
            }
        }
    }

    /// A write alone is acknowledged; a read's response is not.
    fn feedback_packets(_config: &FabricConfig, kind: Kind, _packets: u64) -> u64 {
        u64::from(kind == Kind::Write)
    }
}
