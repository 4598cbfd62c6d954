//! Single operations, exact to the picosecond where the fabric is idle.

use ethermem_bench::BenchError;
use ethermem_bench::micro::{MicroConfig, MicroOp, MicroResult, run};

use crate::NEVER;

fn point(pool: &str, op: MicroOp, bytes: u64, depth: u32) -> MicroConfig {
    MicroConfig { pool: pool.to_owned(), op, bytes, depth, operations: 200, seed: 1 }
}

fn measured(pool: &str, op: MicroOp, bytes: u64, depth: u32) -> MicroResult {
    run(&point(pool, op, bytes, depth), &NEVER).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn one_at_a_time_takes_what_the_budget_says() {
    let pool = "sim:edm?nodes=2&link_gbps=25";
    // Table 1 of EDM's paper plus serialization of 64 B; a read also waits 82 ns for DRAM.
    for (op, exact) in [(MicroOp::Read, 299.52 + 28.16 + 82.0), (MicroOp::Write, 320.0)] {
        let result = measured(pool, op, 64, 1);
        for found in [result.mean_ns, result.p50_ns, result.p99_ns] {
            assert!((found - exact).abs() < 1e-6, "{op}: {result:?}, exact {exact}");
        }
        assert_eq!((result.operations, result.lost, result.time), (200, 0, "fabric"));
        let rate = 1e9 / exact;
        assert!((result.operations_per_s / rate - 1.0).abs() < 1e-9, "{result:?}");
    }
}

#[test]
fn depth_brings_operations_until_the_link_is_full() {
    let pool = "sim:edm?nodes=2&link_gbps=25";
    let rates: Vec<f64> =
        [1, 2, 64].map(|depth| measured(pool, MicroOp::Read, 64, depth).operations_per_s).into();
    // A pair of nodes has three messages in flight: EDM's X.
    let most = rates[2] / rates[0];
    assert!(rates[1] > 1.9 * rates[0] && (2.9..3.1).contains(&most), "{rates:?}");
    // At least 128 blocks per read, of 390.625 million per second.
    let long = measured(pool, MicroOp::Read, 1024, 64).operations_per_s * 128.0;
    assert!(long > 0.9 * 390.625e6 && long < 390.625e6, "{long}");
}

#[test]
fn every_operation_on_every_kind_of_pool() {
    for pool in ["local:", "sim:edm?nodes=4", "sim:cxl?nodes=4", "sim:roce?nodes=4"] {
        for op in MicroOp::ALL {
            for depth in [1, 7] {
                let result = measured(pool, op, 8, depth);
                assert_eq!((result.operations, result.depth), (200, depth), "{pool} {op}");
                assert!(result.p50_ns <= result.p99_ns && result.mean_ns > 0.0, "{result:?}");
            }
        }
    }
}

#[test]
fn the_same_seed_the_same_bytes() {
    let config = MicroConfig { seed: 7, ..point("sim:dctcp?nodes=4", MicroOp::Read, 4096, 9) };
    assert_eq!(run(&config, &NEVER), run(&config, &NEVER));
}

#[test]
fn what_cannot_be_is_named() {
    let base = point("local:", MicroOp::Read, 64, 1);
    for (config, told) in [
        (MicroConfig { op: MicroOp::Cas, ..base.clone() }, "bytes 64: cas is of 8 B"),
        (MicroConfig { bytes: 0, ..base.clone() }, "bytes 0: must be 1 to 67108864"),
        (MicroConfig { depth: 0, ..base.clone() }, "depth 0: must be 1 to 4096"),
        (
            MicroConfig { depth: 300, ..base.clone() },
            "operations 200: must be at least the depth, 300",
        ),
    ] {
        assert_eq!(run(&config, &NEVER), Err(BenchError::Refused(told.to_owned())));
    }
    let small = run(&point("local:?memory_bytes=1000", MicroOp::Read, 64, 1), &NEVER);
    let told = "pool local:?memory_bytes=1000: 16384 B for each of 1 operations under way: no room \
                for 16384 B: 1000 B are free";
    assert_eq!(small.unwrap_err().to_string(), told);
}
