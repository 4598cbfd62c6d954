//! YCSB on CXL over Ethernet by the size of the cache, as a page: `docs/cxl-ethernet-ycsb.md`.
//! With `UPDATE_GOLDEN=1` in the environment, the test writes it.

use std::fmt::Write as _;
use std::path::Path;

use ethermem_bench::ycsb::{Workload, YcsbConfig, YcsbResult, run};

use crate::NEVER;

/// Cache sizes in bytes, and their names.
const CACHES: [(u64, &str); 4] =
    [(0, "none"), (32 << 10, "32 KiB"), (1 << 20, "1 MiB"), (16 << 20, "16 MiB")];
const WORKLOADS: [Workload; 4] = [Workload::A, Workload::B, Workload::C, Workload::F];

/// Clients of the second table: one operation has fewer lines than the cache fetches at once.
const FEW: u32 = 1;

fn ran(workload: Workload, cache_bytes: u64, clients: u32) -> YcsbResult {
    let pool = format!("sim:cxl-ethernet?nodes=2&link_gbps=100&cache_bytes={cache_bytes}");
    let config = YcsbConfig {
        records: 4_000,
        operations: 4_000,
        warmup_operations: 2_000,
        clients,
        ..YcsbConfig::new(&pool, workload)
    };
    run(&config, &NEVER).unwrap_or_else(|error| panic!("{pool}: {error}"))
}

const HEAD: &str = "\
# CXL over Ethernet: YCSB by the size of the cache

A test writes this page: `cargo test -p ethermem-bench --test bench cxl_cache`, with
`UPDATE_GOLDEN=1` if the numbers are to change. [`cxl-ethernet`](fabrics/cxl-ethernet.md) has one
compute node with eight clients, one memory node, and links of 100 Gb/s. The clients request 4,000
records of 1,000 B by YCSB's Zipfian distribution: 4,000 requests after 2,000 that warm the cache. A
record is 16 or 17 lines of 64 B. The hit rate is of lines, the mean of operations; a
read-modify-write is one operation.

";

const BETWEEN: &str = "
Without a cache a write ends in the memory, with one when the processor has its response. The paper
has a cache of 32 KiB and no application: its cells would be blank.

With one client:

";

const TAIL: &str = "
An operation waits for its slowest line, so a few misses among 16 lines cost as much as all. That is
why the mean falls later than the hit rate rises. The load writes every record, so the largest cache
begins with all of them. The smallest holds 30 of 4,000.

**A small cache can cost time.** With 32 KiB and eight clients, a read takes half as long again as
without a cache. The cache fetches at most 64 lines at once, which is our choice: the paper has no
number. Eight clients ask for up to 136 lines together; without a cache, 256 reads may be in flight.
One client asks for 17 lines at most, and then every cache is faster than none.
";

/// A row for each workload: the mean and the hits by the size of the cache.
fn table(page: &mut String, workloads: &[Workload], clients: u32) {
    let sizes = CACHES.map(|(_, name)| format!(" {name} | hits |")).concat();
    let line = "---|".repeat(2 * CACHES.len());
    writeln!(page, "| workload, mean in ns |{sizes}\n|---|{line}").expect("a string");
    for &workload in workloads {
        write!(page, "| {workload} |").expect("a string");
        let mut rates = Vec::new();
        for (bytes, _) in CACHES {
            let result = ran(workload, bytes, clients);
            let mean = result.all().expect("nothing is lost").mean_ns;
            let rate = result.cache.map(|cache| cache.hit_rate);
            assert_eq!(rate.is_some(), bytes > 0, "{workload} with {bytes} B");
            let shown = rate.map_or_else(String::new, |rate| format!("{:.1} %", 100.0 * rate));
            write!(page, " {mean:.0} | {shown} |").expect("a string");
            rates.extend(rate);
        }
        assert!(rates.is_sorted(), "{workload}: a larger cache hits no less: {rates:?}");
        page.push('\n');
    }
}

#[test]
fn the_page_of_ycsb_by_the_size_of_the_cache_is_right() {
    let mut page = HEAD.to_owned();
    table(&mut page, &WORKLOADS, 8);
    page.push_str(BETWEEN);
    table(&mut page, &[Workload::A, Workload::C], FEW);
    page.push_str(TAIL);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cxl-ethernet-ycsb.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).expect("the page is written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, page, "UPDATE_GOLDEN=1 with this test writes {}", path.display());
}
