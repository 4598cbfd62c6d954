//! The bound of an egress queue of the switch: `docs/internals/egress-bound.md`.

use ethermem_edm::sched::SchedulerConfig;
use ethermem_edm::{Policy, budget as edm};
use ethermem_engine::FabricConfig;
use ethermem_engine::topology::LinkTiming;
use ethermem_units::{Cycles, Ps};

use super::{EdmParameters, flight};

/// Number of blocks of the default window beyond a round trip's: for messages that wait for busy
/// links. No run of ours without background frames had more outstanding at a port.
const WINDOW_WAITING_BLOCKS: u32 = 1_024;
/// That number for `Policy::SrptPublished`, which does not count control blocks, so that a queue
/// grows while its port is saturated. 34,665 blocks were seen; the published behaviour must stay
/// visible.
const WINDOW_WAITING_BLOCKS_PUBLISHED: u32 = 1 << 16;

/// The scheduler of a fabric. Its window is the scenario's, or a round trip's with spare room.
pub(super) fn scheduler(config: &FabricConfig) -> SchedulerConfig {
    let slot = config.link.block_time();
    let mut scheduler =
        SchedulerConfig::new(config.nodes, config.of::<EdmParameters>(), config.pcs_clock, slot);
    let waiting = match config.of::<EdmParameters>().policy {
        Policy::SrptPublished => WINDOW_WAITING_BLOCKS_PUBLISHED,
        Policy::Srpt | Policy::SrptClasses | Policy::Fcfs | Policy::Auto => WINDOW_WAITING_BLOCKS,
    };
    let round_trip = grant_to_egress(config) + scheduler.lookahead() + scheduler.iteration();
    let blocks = round_trip.0.div_ceil(slot.0) as u32 + waiting;
    scheduler.egress_window_blocks.get_or_insert(blocks);
    scheduler
}

/// Time from a grant's time to the first block of its data at the egress, without waiting.
fn grant_to_egress(config: &FabricConfig) -> Ps {
    let timing = LinkTiming::of(config);
    let stages = [
        edm::GENERATE_GRANT,
        edm::RECEIVE_REQUEST,
        edm::GRANT_QUEUE,
        edm::GENERATE_DATA,
        edm::FORWARD,
    ];
    let hops = timing.hop(edm::PCS) * 2;
    hops + timing.cycles(stages.into_iter().sum::<Cycles>()) + config.memory_access
}

/// The bound in blocks, for a scheduler with a window.
pub(super) fn egress_blocks(scheduler: &SchedulerConfig, batching: bool) -> u64 {
    let window = u64::from(scheduler.egress_window_blocks.unwrap_or(u32::MAX));
    let chunk = u64::from(scheduler.chunk_blocks(scheduler.chunk.0 as u32));
    let least = u64::from(scheduler.chunk_blocks(1));
    // A batch may have a chunk for each of its bytes.
    let data = if batching { (window * least * scheduler.chunk.0).div_ceil(chunk) } else { window };
    // There is one /G/ or request for each open grant.
    let control = window / least * flight::request_blocks(true).0;
    // A block that is being sent does not count.
    data + control + chunk
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use ethermem_engine::config::Reader;
    use ethermem_engine::engine::{Engine, Fabric, Loss, Observer, RunError};
    use ethermem_units::{Bytes, Ps};
    use ethermem_workload::{Kind, Message, MessageSource, SourceError};

    use super::super::{Edm, EdmParameters};
    use super::FabricConfig;

    /// Writes of one chunk each to node 0 from all other nodes, at once.
    struct Writes(u16);

    impl MessageSource for Writes {
        fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
            self.0 -= 1;
            let (compute, bytes) = (self.0, Bytes(256));
            let kind = Kind::Write;
            let message = Message {
                index: compute.into(),
                arrival: Ps::ZERO,
                kind,
                compute,
                memory: 0,
                bytes,
            };
            Ok((compute > 0).then_some(message))
        }

        fn messages_total(&self) -> Option<u64> {
            None
        }
    }

    struct Nobody;

    impl Observer for Nobody {
        fn outcome(&mut self, _message: &Message, _outcome: Result<Ps, Loss>) {}
    }

    #[test]
    fn a_queue_longer_than_its_bound_stops_the_run() {
        let run = |bound: Option<u64>| {
            let reader = Reader::of::<EdmParameters>().into_iter();
            let config = FabricConfig::parse("[fabric]\nnodes = 8", "edm", reader);
            let config = config.expect("a configuration");
            let mut fabric = Edm::build(&config, 1);
            fabric.queue_blocks_bound = bound.unwrap_or(fabric.queue_blocks_bound);
            let goes_on = AtomicBool::new(false);
            Engine::new(fabric).run(&mut Writes(8), &mut Nobody, &goes_on, &|_| {})
        };
        assert!(run(None).is_ok());
        // A chunk of 34 blocks is always in the queue while it is sent.
        let Err(RunError::Violation(violation)) = run(Some(33)) else { panic!("33 blocks held") };
        assert!(violation.0.contains("33 at most"), "{violation:?}");
    }
}
