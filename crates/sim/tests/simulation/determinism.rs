//! Equal scenarios and seeds give equal results and equal bytes, repeatedly and on other threads.

use std::path::Path;

use ethermem_sim::metrics::RunResult;
use ethermem_sim::registry::FABRIC_NAMES;

use crate::support::{run_scenario, scenario};

fn text(seed: u64) -> String {
    format!(
        "[fabric]\nnodes = 12\n[background]\nload = 0.2\n[workload]\nload = 0.7\n\
         size_cdf = \"memcached\"\nread_fraction = 0.4\nrmw_fraction = 0.2\nmessages = 150\n\
         [run]\nseed = {seed}"
    )
}

/// The result without the one field that may differ, and the file of messages.
fn run(fabric: &str, seed: u64, folder: &Path) -> (RunResult, Vec<u8>) {
    let file = folder.join(format!("{fabric}-{seed}-{:?}.parquet", std::thread::current().id()));
    let result = run_scenario(&scenario(&text(seed)), fabric, Some(&file));
    let bytes = std::fs::read(&file).expect("the run wrote it");
    (RunResult { wall_s: 0.0, ..result }, bytes)
}

#[test]
fn a_seed_repeats_its_run_to_the_byte_on_any_thread() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for fabric in FABRIC_NAMES {
        let once = run(fabric, 7, folder.path());
        let again = run(fabric, 7, folder.path());
        assert!(once == again, "{fabric}: the second run differs");
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..3).map(|_| scope.spawn(|| run(fabric, 7, folder.path()))).collect();
            for thread in threads {
                assert!(once == thread.join().expect("no panic"), "{fabric}: on a thread");
            }
        });
        let (other, other_bytes) = run(fabric, 8, folder.path());
        assert_ne!(once.0.kinds, other.kinds, "{fabric}: seed 8 is seed 7");
        assert_ne!(once.1, other_bytes);
    }
}

#[test]
fn json_without_the_wall_time_is_the_same_text() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let json = || {
        let (result, _) = run("edm", 3, folder.path());
        serde_json::to_string(&result).expect("a result is JSON")
    };
    assert_eq!(json(), json());
}
