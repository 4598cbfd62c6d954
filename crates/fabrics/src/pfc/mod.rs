//! Lossless Ethernet: hop-by-hop priority flow control (IEEE 802.1Qbb), with DCQCN from end to end
//! above it (SIGCOMM 2015).

mod buffer;
mod config;
mod dcqcn;
mod queue;

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::{Layout, PortKind, Tier};
use ethermem_frames::{
    End, FlowId, Left, Net, Outgoing, Packet, PacketFabric, PauseLimits, Purpose, Transport,
    UNPAUSED_RANK,
};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::Kind;

pub use config::PfcConfig;

pub use buffer::Thresholds;
use buffer::faster;
pub use dcqcn::{Reaction, Rules};
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
    config: FabricConfig,
    layout: Layout,
}

/// Both ends of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    next: u32,
    reaction: Reaction,
    received: u32,
    /// The time before which no notification is sent.
    notify_after: Ps,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Data, or a request.
    Data,
    /// The whole flow has arrived.
    Acknowledgement,
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
    fn transmit(&mut self, net: &mut Net<'_, Dcqcn>, id: FlowId) {
        let position = net.flow(id).state.next;
        net.flow_mut(id).state.next += 1;
        let data_bytes = net.data_bytes(id, position);
        let rank = UNPAUSED_RANK + 1;
        net.send(id, Outgoing { from: End::Source, data_bytes, rank, header: Header::Data });
    }

    fn on_data(&mut self, net: &mut Net<'_, Dcqcn>, packet: &Packet<Header>) {
        let now = net.now();
        let flow = net.flow_mut(packet.flow);
        let (purpose, packets) = (flow.purpose, flow.packets);
        let ends = &mut flow.state;
        ends.received += 1;
        let complete = ends.received == packets;
        let notify = packet.marked && !complete && now >= ends.notify_after;
        if notify {
            ends.notify_after = now + self.cnp_interval;
        }
        if complete {
            net.deliver(packet.flow);
        }
        let header = match purpose {
            Purpose::Data if complete => Header::Acknowledgement,
            _ if notify => Header::Notification,
            _ => return,
        };
        let from = End::Destination;
        net.send(packet.flow, Outgoing { from, data_bytes: 0, rank: UNPAUSED_RANK, header });
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
            config: config.clone(),
            layout: layout.clone(),
        }
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.of::<PfcConfig>().header
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

    fn start(&mut self, net: &mut Net<'_, Dcqcn>, flow: FlowId) {
        let reaction = Reaction::new(&self.rules);
        net.flow_mut(flow).state = Ends { reaction, ..Ends::default() };
        self.transmit(net, flow);
    }

    fn on_left(&mut self, net: &mut Net<'_, Dcqcn>, left: Left) {
        let flow = net.flow_mut(left.flow);
        if flow.state.next == flow.packets || flow.is_lost() {
            return;
        }
        flow.state.reaction.sent(left.bytes, left.start, &self.rules);
        let gap = Ps((left.line.0 as f64 / flow.state.reaction.rate()) as u64);
        net.arm(left.flow, left.start + gap);
    }

    fn on_timer(&mut self, net: &mut Net<'_, Dcqcn>, flow: FlowId) {
        self.transmit(net, flow);
    }

    fn on_packet(&mut self, net: &mut Net<'_, Dcqcn>, packet: &Packet<Header>) {
        match packet.header {
            Header::Data => self.on_data(net, packet),
            Header::Acknowledgement => net.settle(packet.flow),
            Header::Notification => {
                let now = net.now();
                net.flow_mut(packet.flow).state.reaction.notified(now, &self.rules);
            }
        }
    }

    fn feedback_packets(_config: &FabricConfig, _kind: Kind, _packets: u64) -> u64 {
        1
    }
}
