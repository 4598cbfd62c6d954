//! Invariants of every scenario, whatever its text is: the fuzz target and proptest check them.

use std::path::Path;

use ethermem_engine::NODES_MAX;

use super::Scenario;
use crate::workload::program::{ProgramConfig, STEPS_MAX};
use crate::workload::{LinkBlocks, Poisson, WorkloadConfig};
use crate::{Kind, MessageSource};

const FABRICS: [&str; 2] = ["edm", "raw-ethernet"];

/// Reads `text` as a scenario. If it has synthetic messages, draws the first of them.
///
/// # Panics
/// If an accepted scenario cannot be run, or an error has more than one line.
pub fn check_scenario(text: &str) {
    let scenario = match Scenario::parse(text, Path::new("fuzzed"), &FABRICS) {
        Ok(scenario) => scenario,
        Err(error) => {
            let error = error.to_string();
            assert!(!error.contains(char::is_control), "{error:?}");
            return;
        }
    };
    let (nodes, link) = (scenario.fabric.nodes, scenario.fabric.link);
    assert!((2..=NODES_MAX).contains(&nodes), "{nodes} nodes");
    assert!(scenario.run.warmup_fraction + scenario.run.cooldown_fraction < 1.0);
    if let WorkloadConfig::Program(config) = &scenario.workload {
        check_program(config, nodes);
    }
    let WorkloadConfig::Poisson(poisson) = &scenario.workload else {
        return;
    };
    assert!(poisson.load > 0.0 && poisson.load + scenario.fabric.background.load < 1.001);
    let blocks = |_: Kind, bytes: ethermem_units::Bytes| LinkBlocks {
        compute_uplink: bytes.to_blocks().0 as f64,
        ..LinkBlocks::default()
    };
    // Only a load that would take days is refused here, since that depends on the fabric.
    let Ok(mut source) = Poisson::new(poisson, nodes, link, scenario.run.seed, &blocks) else {
        return;
    };
    for _ in 0..100 {
        let Ok(Some(message)) = source.next_message() else {
            return;
        };
        assert!(message.compute < nodes && message.memory < nodes, "{message:?}");
        assert_ne!(message.compute, message.memory);
    }
}

/// Largest program that the check builds: larger ones take too long for so many texts.
const STEPS_BUILT: u64 = 20_000;

/// Checks that an accepted program can be built, and is as large as its parameters say.
fn check_program(config: &ProgramConfig, nodes: u16) {
    let steps = config.size(nodes).steps();
    assert!(steps <= STEPS_MAX, "{steps} steps");
    if steps <= STEPS_BUILT {
        let program = config.program(nodes, 1).expect("an accepted program can be built");
        assert_eq!(program.steps().len() as u64, steps, "{config:?}");
    }
}
