//! Who is ahead where EDM's paper says that it is.

use ethermem_sim::metrics::KindStats;
use ethermem_sim::registry::FABRIC_NAMES;

use crate::support::{run_scenario, scenario};

/// EDM itself, its artifact, and bounds that nobody can build.
const NO_RIVALS: [&str; 4] = ["edm", "edm-artifact", "ideal", "output-queued"];

/// 64 B, reads and writes, at load 0.9: in mean and 99th percentile, in slowdown and in ns. Of
/// fewer messages all have arrived before TCP's first is done, whose time alone is nine times
/// EDM's: then its slowdown is the lesser.
#[test]
fn edm_is_ahead_of_every_rival_on_short_messages_at_high_load() {
    let numbers = |fabric: &str| {
        let scenario = scenario(
            "[fabric]\nnodes = 144\n[workload]\nload = 0.9\nmessage_bytes = 64\n\
             read_fraction = 0.5\nmessages = 50000",
        );
        let KindStats { slowdown_mean, slowdown_p99, latency_ns_mean, latency_ns_p99, .. } =
            run_scenario(&scenario, fabric, None).kinds.all;
        [slowdown_mean, slowdown_p99, latency_ns_mean, latency_ns_p99]
            .map(|number| number.expect("messages ended"))
    };
    let edm = numbers("edm");
    let rivals = FABRIC_NAMES.iter().filter(|fabric| !NO_RIVALS.contains(fabric));
    let mut compared = 0;
    for rival in rivals {
        let theirs = numbers(rival);
        let ahead = edm.iter().zip(&theirs).all(|(edm, theirs)| edm < theirs);
        assert!(ahead, "{rival} {theirs:?}, EDM {edm:?}");
        compared += 1;
    }
    assert_eq!(compared, FABRIC_NAMES.len() - NO_RIVALS.len());
}
