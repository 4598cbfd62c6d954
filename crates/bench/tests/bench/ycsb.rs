//! YCSB on every pool, and its results where they can be computed.

use ethermem_bench::BenchError;
use ethermem_bench::ycsb::{
    Distribution, Extent, Settings, StoreKind, Workload, WriteEnd, YcsbConfig, YcsbResult, run,
};
use ethermem_sim::registry::FABRIC_NAMES;

use crate::NEVER;

fn small(pool: &str, workload: Workload) -> YcsbConfig {
    YcsbConfig {
        records: 200,
        operations: 1000,
        warmup_operations: 100,
        clients: 3,
        ..YcsbConfig::new(pool, workload)
    }
}

fn ran(config: &YcsbConfig) -> YcsbResult {
    run(config, &NEVER).unwrap_or_else(|error| panic!("{}: {error}", config.pool))
}

fn mean(result: &YcsbResult, op: &str) -> f64 {
    result.latencies.iter().find(|row| row.op == op).unwrap_or_else(|| panic!("{op}")).mean_ns
}

#[test]
fn every_workload_on_every_pool() {
    let fabrics = FABRIC_NAMES.iter().map(|fabric| format!("sim:{fabric}?nodes=6"));
    for pool in std::iter::once("local:".to_owned()).chain(fabrics) {
        for workload in Workload::ALL {
            let result = ran(&small(&pool, workload));
            let all = result.all().unwrap();
            assert_eq!((all.operations, result.lost), (1000, 0), "{pool} {workload}");
            let named: Vec<&str> = result.latencies[1..].iter().map(|row| row.op).collect();
            let expected: &[&str] = match workload {
                Workload::A | Workload::B => &["read", "update"],
                Workload::C => &["read"],
                Workload::D => &["read", "insert"],
                Workload::E => &["insert", "scan"],
                Workload::F => &["read", "update", "read-modify-write"],
            };
            assert_eq!(named, expected, "{pool} {workload}");
            let whole = [result.reads_per_s, result.writes_per_s].iter().sum::<f64>();
            assert!((whole / result.requests_per_s - 1.0).abs() < 1e-12, "{pool} {workload}");
        }
    }
}

#[test]
fn the_same_seed_the_same_bytes_and_another_seed_others() {
    for workload in [Workload::D, Workload::F] {
        let config = small("sim:edm?nodes=6", workload);
        assert_eq!(ran(&config), ran(&config));
        let other = ran(&YcsbConfig { seed: 2, ..config.clone() });
        assert_ne!(other.latencies, ran(&config).latencies, "{workload}");
    }
}

#[test]
fn one_client_takes_the_mixture_of_its_two_times() {
    let config = YcsbConfig {
        clients: 1,
        operations: 5000,
        reads: Extent::Field,
        writes: WriteEnd::InMemory,
        local_to_remote: Some("50:50".parse().unwrap()),
        ..small("sim:edm?nodes=2&link_gbps=25", Workload::A)
    };
    let result = ran(&config);
    let share = result.remote_share;
    assert!(share > 0.3 && share < 0.7, "{share}");
    // The fabric is idle: each remote read of 100 B takes 340.48 ns and 82 of DRAM, each write
    // 332.80.
    let all = result.all().unwrap();
    let (least, most) = (332.80 + 82.0, 340.48 + 82.0);
    let mixture = |remote: f64| 82.0 * (1.0 - share) + remote * share;
    assert!(all.mean_ns > mixture(least) && all.mean_ns < mixture(most), "{all:?} at {share}");
    assert!((all.max_ns - most).abs() < 1e-6, "{all:?}");
    let remote = ran(&YcsbConfig { local_to_remote: None, ..config });
    assert_eq!(remote.remote_share, 1.0);
    assert!((mean(&remote, "read") - most).abs() < 1e-6);
    assert!((mean(&remote, "update") - least).abs() < 1e-6);
    let posted = ran(&YcsbConfig { writes: WriteEnd::AtNode, ..remote.config });
    assert!((mean(&posted, "update") - 332.80).abs() < 1e-6);
}

#[test]
fn a_read_modify_write_is_its_read_and_its_update() {
    let config = YcsbConfig { clients: 1, ..small("sim:edm?nodes=2", Workload::F) };
    let result = ran(&config);
    let sum = mean(&result, "read") + mean(&result, "update");
    assert!((mean(&result, "read-modify-write") - sum).abs() < 1e-6, "{result:?}");
    assert!(result.requests_per_s > 1.4 * result.operations_per_s, "{result:?}");
}

#[test]
fn a_scan_reads_many_records_at_once() {
    let config = YcsbConfig { clients: 1, ..small("sim:edm?nodes=2", Workload::E) };
    let scans = mean(&ran(&config), "scan");
    let read = mean(&ran(&YcsbConfig { workload: Workload::C, ..config }), "read");
    // A scan has 50.5 records in the mean, fewer near the last key, over one link.
    assert!(scans > 3.0 * read && scans < 50.5 * read, "{scans} ns, a read {read} ns");
}

#[test]
fn a_store_whose_index_the_node_walks_takes_fewer_round_trips() {
    for pool in ["local:", "sim:edm?nodes=4", "sim:dctcp?nodes=4"] {
        for workload in [Workload::A, Workload::C, Workload::D, Workload::F] {
            let of = |store| {
                let settings = Settings { store: Some(store), ..Settings::default() };
                let few = small(pool, workload);
                let config = settings.config(pool, workload);
                let (records, operations) = (few.records, few.operations);
                let config = YcsbConfig { records, operations, clients: 3, ..config };
                let result = ran(&config);
                assert_eq!(result.all().unwrap().operations, 1000, "{pool} {workload}");
                result
            };
            let [objects, client, node] =
                [StoreKind::Objects, StoreKind::KvClient, StoreKind::KvNode].map(of);
            if pool != "local:" {
                let [objects, client, node] =
                    [objects, client, node].map(|result| mean(&result, "read"));
                // The client needs a round trip for the bucket and one for each record.
                assert!(client > 1.5 * objects && node < client, "{objects} {client} {node}");
            }
        }
    }
}

#[test]
fn what_a_key_value_store_does_not_do_is_refused_by_name() {
    let kv = YcsbConfig {
        store: StoreKind::KvNode,
        updates: Extent::Record,
        ..small("sim:edm?nodes=4", Workload::A)
    };
    for (config, told) in [
        (
            YcsbConfig { workload: Workload::E, ..kv.clone() },
            "workload E: store kv-node keeps no order to scan in; allowed with objects",
        ),
        (
            YcsbConfig { updates: Extent::Field, ..kv.clone() },
            "updates field: store kv-node writes whole values; allowed with objects",
        ),
        (
            YcsbConfig { local_to_remote: Some("1:1".parse().unwrap()), ..kv.clone() },
            "local-to-remote: store kv-node is in the pool alone; allowed with objects",
        ),
    ] {
        assert_eq!(run(&config, &NEVER), Err(BenchError::Refused(told.to_owned())));
    }
    let little = YcsbConfig { pool: "sim:edm?nodes=4&memory_bytes=90000".to_owned(), ..kv };
    let told = run(&little, &NEVER).unwrap_err().to_string();
    assert!(told.contains("200 records of 1000 B need more than 200000 B in all"), "{told}");
}

#[test]
fn distributions_can_be_chosen() {
    for distribution in [Distribution::Zipfian, Distribution::Latest, Distribution::Uniform] {
        let config = YcsbConfig { distribution, ..small("local:", Workload::B) };
        assert_eq!(ran(&config).all().unwrap().operations, 1000, "{distribution:?}");
    }
}

#[test]
fn a_pool_without_room_says_what_is_needed() {
    let refused = run(&small("sim:edm?nodes=4&memory_bytes=50000", Workload::A), &NEVER);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "pool sim:edm?nodes=4&memory_bytes=50000: 200 records of 1000 B need 100000 B on each of 2 \
         memory nodes (memory_bytes=100000): no room for 100000 B: 50000 B are free"
    );
}

#[test]
fn a_split_is_of_modelled_time_alone() {
    let ratio = Some("1:1".parse().unwrap());
    let config = YcsbConfig { local_to_remote: ratio, ..small("local:", Workload::A) };
    let told = run(&config, &NEVER).unwrap_err();
    assert!(matches!(&told, BenchError::Refused(told) if told.starts_with("local-to-remote: ")));
}
