//! The denominator of every slowdown is the message's time alone, whatever was timed before it.

use std::path::Path;

use ethermem_sim::registry::{FABRIC_NAMES, find};
use ethermem_sim::run::{RunOptions, run};
use ethermem_sim::scenario::Scenario;

/// A distance at which each message is alone: all state that outlives a message has passed.
const APART_NS: u64 = 10_000_000;
const MESSAGES: u64 = 60;

/// Keys of fabrics that remain busy long after a message has ended.
const SLOW: [&str; 4] = [
    "",
    "link_gbps = 10\n",
    "link_gbps = 10\n[fabric.fastpass]\ntimeslot_bytes = 9000\n",
    "topology = \"leaf-spine\"\n[fabric.leaf_spine]\nrack_nodes = 4\nspines = 2\n\
     balancing = \"ecmp\"\n[fabric.fastpass]\ntimeslot_bytes = 9000\n",
];

/// Messages of varying lengths and pairs, each alone in time.
fn trace(longest: u64) -> String {
    let mut rows = "arrival_ns,kind,compute,memory,bytes\n".to_owned();
    for index in 0..MESSAGES {
        let kind = if index % 2 == 0 { "write" } else { "read" };
        let (compute, step) = (index * 5 % 16, 1 + index * 7 % 15);
        let (memory, bytes) = ((compute + step) % 16, 1 + index * index * 977 % longest);
        let arrival = index * APART_NS;
        rows += &format!("{arrival},{kind},{compute},{memory},{bytes}\n");
    }
    rows
}

#[test]
fn a_message_that_is_alone_has_a_slowdown_of_one() {
    let mut runs = 0;
    let folder = tempfile::tempdir().expect("a folder");
    for name in FABRIC_NAMES {
        let fabric = find(name).expect("a fabric of the registry");
        let rows = trace(fabric.message_bytes_max.min(40_000));
        std::fs::write(folder.path().join("t.csv"), rows).expect("a file of a test");
        for keys in SLOW {
            let text = format!(
                "[fabric]\nkind = \"{name}\"\nnodes = 16\n{keys}\
                 [workload]\nkind = \"trace\"\ntrace = \"t.csv\"\n"
            );
            let file = folder.path().join("s.toml");
            let scenario = Scenario::parse(&text, Path::new(&file), FABRIC_NAMES);
            let scenario = scenario.unwrap_or_else(|error| panic!("{name}: {error}"));
            let all = match run(&scenario, RunOptions::of(fabric)) {
                Ok(result) => result.kinds.all,
                Err(error) => {
                    let one_switch = error.to_string().ends_with("\"single-switch\" alone");
                    assert!(one_switch && keys.contains("leaf-spine"), "{name}: {error}");
                    continue;
                }
            };
            runs += 1;
            assert_eq!(all.slowdown_min, Some(1.0), "{name}: {keys}");
            // A long message waits for a matching of dcPIM, depending on its arrival time. Its time
            // alone leaves that wait out. DFabric's leaves out what chance decides, as ECMP does if
            // it leads two subflows of a message to one NIC.
            if !["dcpim", "dfabric"].contains(name) {
                assert_eq!(all.slowdown_max, Some(1.0), "{name}: {keys}");
            }
        }
    }
    assert!(runs > 3 * FABRIC_NAMES.len(), "{runs}");
}
