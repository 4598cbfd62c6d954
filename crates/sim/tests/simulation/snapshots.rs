//! One small run per fabric and policy, with all its numbers, in `golden/sim`: a diff shows what a
//! change moves. With `UPDATE_GOLDEN=1` in the environment, the test writes the files.

use std::path::Path;

use ethermem_sim::registry;

use crate::support::{run_scenario, scenario};

/// Further runs of EDM: the name of the snapshot, and its additions to the common scenario.
const EDM_RUNS: &[(&str, &str)] = &[
    ("edm-srpt", "policy = \"srpt\""),
    ("edm-srpt-relaxed", "policy = \"srpt\"\norder = \"relaxed\""),
    ("edm-srpt-published", "policy = \"srpt-published\""),
    ("edm-fcfs", "policy = \"fcfs\""),
    ("edm-auto", "policy = \"auto\""),
];

/// Name of the snapshot, fabric, and the additions to the common scenario.
fn runs() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let others = registry::FABRIC_NAMES.iter().filter(|&&fabric| fabric != "edm");
    EDM_RUNS
        .iter()
        .map(|&(name, keys)| (name, "edm", keys))
        .chain(others.map(|&fabric| (fabric, fabric, "")))
}

#[test]
fn results_are_those_of_the_snapshots() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/sim");
    for (name, fabric, edm) in runs() {
        let scenario = scenario(&format!(
            "[fabric]\nnodes = 8\n[fabric.edm]\n{edm}\n[workload]\nload = 0.6\n\
             size_cdf = \"memcached\"\nread_fraction = 0.4\nrmw_fraction = 0.2\nmessages = 300"
        ));
        let result = run_scenario(&scenario, fabric, None);
        if let Some(matching) = result.matching {
            assert!(matching.size_max <= 8, "{name}: {matching:?}");
        }
        let mut json = serde_json::to_value(&result).expect("a result is JSON");
        let object = json.as_object_mut().expect("an object");
        // These fields describe the engine's work, and not the result.
        for field in ["wall_s", "events"] {
            object.shift_remove(field).expect("a field of every result");
        }
        let text = format!("{json:#}\n");
        let path = folder.join(format!("{name}.json"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).expect("golden/sim is writable");
        }
        let golden = std::fs::read_to_string(&path).expect("golden/sim has every run");
        for (number, (golden, now)) in golden.lines().zip(text.lines()).enumerate() {
            assert_eq!(golden, now, "{name}, line {}", number + 1);
        }
        assert_eq!(golden.len(), text.len(), "{name} is longer or shorter");
    }
}
