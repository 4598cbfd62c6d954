//! Tests: the effect of each parameter of a simulated pool.

use super::*;
use crate::table::SCHEMES;

fn sim_of(text: &str) -> SimConfig {
    let read = Url::read(&SCHEMES, text).and_then(|url| config(&url));
    read.unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn memory_is_shared_out_to_the_nodes_unless_it_is_said() {
    let local = |text: &str| {
        let url = Url::read(&SCHEMES, text).expect("it is a URL");
        url.parameters().expect("it is allowed").number("memory_bytes").expect("it has a default")
    };
    assert_eq!(local("local:"), 64 << 30);
    assert_eq!(local("local:?memory_bytes=1"), 1);
    for (url, nodes, bytes) in [
        ("sim:edm?nodes=8", 4, 16 << 30),
        ("sim:edm?nodes=9", 4, 16 << 30),
        ("sim:edm?nodes=8&memory_nodes=1", 1, 64 << 30),
        ("sim:edm?nodes=8&memory_nodes=7", 7, (64 << 30) / 7),
        ("sim:edm?nodes=8&memory_nodes=2&memory_bytes=5", 2, 5),
        ("sim:dfabric?racks=2&nodes=2", 1, 64 << 30),
        // The table of a fabric's keys has an underscore where its name has a hyphen.
        ("sim:tor-rack?uplinks=1&nodes=4", 2, 32 << 30),
    ] {
        let config = sim_of(url);
        assert_eq!((config.memory_nodes, config.memory_bytes), (nodes, bytes), "{url}");
        assert!(!config.background, "{url}");
    }
}

#[test]
fn traffic_beside_goes_on_for_a_day_and_a_half() {
    let config = sim_of("sim:edm?nodes=16&load=0.5");
    assert!(config.background);
    let WorkloadConfig::Poisson(poisson) = &config.scenario.workload else { panic!("no load") };
    let offered = offered(&config.scenario).expect("a workload").expect("a rate");
    let took = poisson.messages as f64 / offered.messages_per_s;
    assert!((took - 36.0 * 3600.0).abs() < 1.0, "{took} s");
}

#[test]
fn a_key_of_the_scenario_is_given_once() {
    let url = Url::read(&SCHEMES, "sim:edm?nodes=2&nodes=4").expect("it is a URL");
    let said = config(&url).err().expect("it is ambiguous").to_string();
    assert_eq!(said, "parameter `nodes`: `2` and `4`: must be given once");
}
