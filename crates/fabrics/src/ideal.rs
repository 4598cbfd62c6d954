//! The lower bound: every message alone on its path.
//!
//! There is no logic, no queue, no framing and no contention. A message takes transceivers,
//! propagation, and the serialisation of its data, cut through the switch. No fabric on these links
//! can be faster.

use ethermem_engine::FabricConfig;
use ethermem_engine::engine::{Fabric, Handle, Sim, Violation};
use ethermem_engine::metrics::FabricStats;
use ethermem_units::{Blocks, Bytes, Cycles, Ps};
use ethermem_workload::{Kind, LinkBlocks, Message};

use ethermem_engine::topology::LinkTiming;

/// The fabric of the lower bound.
pub struct Ideal {
    config: FabricConfig,
    started: u64,
}

/// The empty type of its events, since every completion is known at submission.
#[derive(Clone, Copy)]
pub enum Never {}

impl Ideal {
    fn time(&self, message: &Message) -> Ps {
        let hop = LinkTiming::of(&self.config).hop(Cycles(0));
        let crossings = match message.kind {
            Kind::Write => 1,
            Kind::Read | Kind::ReadModifyWrite => 2,
        };
        let data = self.config.link.blocks_time(message.bytes.to_blocks() - Blocks(1));
        let access = if crossings == 2 { self.config.memory_access } else { Ps::ZERO };
        hop * (2 * crossings) + data + access
    }
}

impl Fabric for Ideal {
    type Event = Never;
    type Parameters = ();

    fn build(config: &FabricConfig, _seed: u64) -> Ideal {
        Ideal { config: config.clone(), started: 0 }
    }

    fn submit(&mut self, sim: &mut Sim<Never>, handle: Handle, message: &Message) {
        self.started += 1;
        sim.finish(handle, sim.now() + self.time(message));
    }

    fn handle(&mut self, _sim: &mut Sim<Never>, event: Never) {
        match event {}
    }

    fn period(&self) -> Bytes {
        Bytes(256)
    }

    fn blocks(_config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        // A request is one block, and data has no framing.
        let (request, data) = (1.0, bytes.to_blocks().0 as f64);
        LinkBlocks::unscheduled(kind, request, data)
    }

    fn close(&self, _ended: Ps) -> Result<FabricStats, Violation> {
        Ok(FabricStats::default())
    }
}
