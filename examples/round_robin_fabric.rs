//! A fabric of one's own: `docs/add-a-fabric.md` builds it step by step.
//!
//! MAC frames over switches and interfaces that serve the messages that wait in turn, a frame each,
//! beside the same frames first come, first served:
//!
//! ```sh
//! cargo run -p ethermem-sim --example round_robin_fabric -- scenarios/app-spark.toml
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::path::Path;

use ethermem_sim::fabrics::raw_ethernet::Frames;
use ethermem_sim::metrics::RunResult;
use ethermem_sim::output::{TableStyle, runs_table};
use ethermem_sim::packet::{Discipline, FlowId, PacketFabric, PacketId, Packets};
use ethermem_sim::registry::{FABRIC_NAMES, FabricEntry, find};
use ethermem_sim::run::{RunOptions, run};
use ethermem_sim::scenario::Scenario;

/// Packets by flow, and the flow that was served last.
#[derive(Default)]
struct InTurn {
    waiting: BTreeMap<FlowId, VecDeque<PacketId>>,
    last: FlowId,
}

impl Discipline<()> for InTurn {
    fn offer(
        &mut self,
        packets: &mut Packets<()>,
        id: PacketId,
        _queued_bytes: u64,
        _dropped: &mut Vec<PacketId>,
    ) -> bool {
        self.waiting.entry(packets[id].flow).or_default().push_back(id);
        true
    }

    fn take(&mut self, _packets: &Packets<()>) -> Option<PacketId> {
        let behind = (Bound::Excluded(self.last), Bound::Unbounded);
        let next = self.waiting.range(behind).next().or(self.waiting.iter().next());
        self.last = *next?.0;
        let queue = self.waiting.get_mut(&self.last)?;
        let id = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&self.last);
        }
        id
    }
}

const ROUND_ROBIN: FabricEntry = FabricEntry::new::<PacketFabric<Frames<InTurn>>>(
    "round-robin",
    "MAC frames, messages served in turn",
);

fn compare(scenario: &Scenario) -> Result<[RunResult; 2], String> {
    let first_come = find("raw-ethernet").ok_or("no raw-ethernet")?;
    let result = |fabric| run(scenario, RunOptions::of(fabric)).map_err(|error| error.to_string());
    Ok([result(&ROUND_ROBIN)?, result(first_come)?])
}

fn main() -> Result<(), String> {
    let file =
        std::env::args().nth(1).ok_or("give a scenario, such as scenarios/app-spark.toml")?;
    let scenario = Scenario::load(Path::new(&file), FABRIC_NAMES).map_err(|e| e.to_string())?;
    println!("{}", runs_table(&compare(&scenario)?, TableStyle::Plain));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_pass_long_ones_and_all_arrive() {
        let text = "[fabric]\nkind = \"raw-ethernet\"\nnodes = 16\n[workload]\nload = 0.6\n\
                    size_cdf = \"../workloads/spark.csv\"\nmessages = 2000";
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/test.toml");
        let scenario = Scenario::parse(text, &file, FABRIC_NAMES).unwrap();
        let [in_turn, first_come] = compare(&scenario).unwrap();
        assert_eq!(in_turn.messages_finished, 2000);
        let mean = |run: &RunResult| run.kinds.all.slowdown_mean.unwrap();
        assert!(
            mean(&in_turn) < mean(&first_come) / 2.0,
            "{} {}",
            mean(&in_turn),
            mean(&first_come)
        );
    }
    #[test]
    fn the_guide_says_what_it_prints() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let guide = std::fs::read_to_string(root.join("docs/add-a-fabric.md")).unwrap();
        let file = root.join("scenarios/app-spark.toml");
        let runs = compare(&Scenario::load(&file, FABRIC_NAMES).unwrap()).unwrap();
        let [in_turn, first_come] = runs.map(|run| run.kinds.all.slowdown_mean.unwrap());
        let said = format!("mean slowdown {in_turn:.2} and {first_come:.1}.");
        assert!(guide.contains(&said), "{said}");
    }
}
