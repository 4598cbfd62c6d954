//! A rack of today (2025), DFabric's baseline: a NIC for each node, a ToR switch, TCP (6.1).
//!
//! It is fabric `tcp` on a network of racks: the ToRs' ports have the paper's buffer, and each ToR
//! has so many uplinks of a NIC's rate to the switches that join the racks.

mod config;
#[cfg(test)]
mod tests;

use ethermem_engine::config::{LeafSpine, Topology};
use ethermem_engine::engine::{Fabric, Handle, Sim, Violation};
use ethermem_engine::metrics::FabricStats;
use ethermem_engine::output::Timeline;
use ethermem_engine::{FabricConfig, NODES_MAX};
use ethermem_frames::{Event, PacketFabric, Stream};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, LinkBlocks, Message, NodeIndex};

pub use config::TorRackConfig;

use crate::tcp::{HasTcp, NewReno, TcpConfig};

impl HasTcp for TorRackConfig {
    fn tcp(&self) -> &TcpConfig {
        &self.tcp
    }
}

type Packets = PacketFabric<Stream<NewReno<TorRackConfig>>>;

/// Racks with a ToR each.
pub struct TorRack(Packets);

/// The scenario's nodes in racks, which the core joins.
fn racked(config: &FabricConfig) -> FabricConfig {
    let rules = config.of::<TorRackConfig>();
    let clos = LeafSpine {
        rack_nodes: config.nodes.div_ceil(rules.racks),
        spines: rules.uplinks_of(config.nodes),
        propagation: config.propagation + Ps(rules.core.0 / 2),
        balancing: None,
        link: Some(config.link),
    };
    let topology =
        if rules.racks == 1 { Topology::SingleSwitch } else { Topology::LeafSpine(clos) };
    FabricConfig { topology, ..config.clone() }
}

impl Fabric for TorRack {
    type Event = Event;
    type Parameters = TorRackConfig;
    const EVENT_GAP_SHIFT: u32 = 7;
    const NODES_MAX: u16 = NODES_MAX;

    fn build(config: &FabricConfig, seed: u64) -> TorRack {
        TorRack(Packets::build(&racked(config), seed))
    }

    fn draw_on(&mut self, timeline: &mut Timeline) {
        self.0.draw_on(timeline);
    }

    fn submit_delay(&self) -> Ps {
        self.0.submit_delay()
    }

    fn submit(&mut self, sim: &mut Sim<Event>, handle: Handle, message: &Message) {
        self.0.submit(sim, handle, message);
    }

    fn handle(&mut self, sim: &mut Sim<Event>, event: Event) {
        self.0.handle(sim, event);
    }

    fn period(&self) -> Bytes {
        self.0.period()
    }

    fn steady_after(&self) -> Bytes {
        self.0.steady_after()
    }

    fn twin(&self, compute: NodeIndex, memory: NodeIndex) -> (NodeIndex, NodeIndex) {
        self.0.twin(compute, memory)
    }

    fn blocks(config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        Packets::blocks(config, kind, bytes)
    }

    fn close(&self, ended: Ps) -> Result<FabricStats, Violation> {
        self.0.close(ended)
    }
}
