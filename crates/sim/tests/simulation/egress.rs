//! The egress queue of EDM's switch under what is worst for it.

use crate::support::{run_scenario, scenario};

#[test]
fn explore() {
    for nodes in [16, 64] {
        for (pattern, size, reads, batching) in [
            ("all-to-all", 64, 0.5, true),
            ("all-to-all", 64, 0.5, false),
            ("all-to-all", 5840, 0.5, true),
            ("incast", 64, 0.0, true),
            ("incast", 64, 0.0, false),
            ("incast", 8, 0.0, true),
            ("incast", 8, 0.0, false),
            ("incast", 8, 1.0, false),
            ("incast", 64, 1.0, true),
            ("incast", 5840, 0.0, true),
            ("incast", 5840, 0.5, true),
            ("permutation", 64, 0.5, true),
            ("permutation", 5840, 0.5, true),
            ("hot-spot", 64, 0.5, true),
        ] {
            for messages in [10_000, 40_000] {
                let s = scenario(&format!(
                    "[fabric]\nnodes = {nodes}\n[fabric.edm]\nbatching={batching}\n[workload]\npattern = \"{pattern}\"\nload = 1.0\nmessage_bytes = {size}\nread_fraction = {reads}\nmessages = {messages}"
                ));
                let r = run_scenario(&s, "edm", None);
                println!(
                    "{nodes} {pattern} {size} reads {reads} batching {batching} {messages}: {:?}",
                    r.queue
                );
            }
        }
    }
}
