//! Time that the slow path takes to allocate and to release, by size: figure 12 of Clio's paper.
//!
//! `cargo bench -p ethermem-clio --bench allocation`
//!
//! The time is measured in the program that holds the table; a client waits a round trip more. The
//! paper's allocation of physical memory is a page's first touch, on the fast path; pages are
//! prepared beforehand. Zeroing is left out: it happens between requests, at the memory's rate.

use std::time::Instant;

use ethermem_clio::memory::{AddressMap, HashKey, MemoryConfig, PageSize, SpaceId};
use ethermem_units::Bytes;
use ethermem_wire::clio::Permissions;

const TURNS: usize = 301;
/// The largest pages, as the paper's board has them, and the smallest.
const PAGES: [(PageSize, &str); 2] = [(PageSize::Mib4, "4 MiB"), (PageSize::Kib4, "4 KiB")];
/// Pages of an allocation.
const ALLOCATION_PAGES: [u64; 6] = [1, 4, 16, 64, 256, 1024];
/// Twice the largest allocation, so that memory is half full, as in the figure.
const MEMORY_PAGES: u64 = 2048;

/// Microseconds of an allocation, of each first touch, and of the release.
fn turn(map: &mut AddressMap, page: PageSize, pages: u64) -> [f64; 3] {
    const SPACE: SpaceId = SpaceId(1);
    while map.wants_refill() {
        map.refill(u64::MAX, |_, _, _| {});
    }
    let begin = Instant::now();
    let allocated = map.allocate(SPACE, pages * page.bytes(), None, Permissions::READ_WRITE);
    let allocate = begin.elapsed();
    let address = allocated.expect("half of memory is free").address;
    let begin = Instant::now();
    for at in 0..pages {
        let touched = map.translate(SPACE, address + at * page.bytes(), Permissions::READ);
        touched.expect("pages are ready");
    }
    let touch = begin.elapsed() / pages as u32;
    let begin = Instant::now();
    map.release(SPACE, address).expect("it was allocated");
    [allocate, touch, begin.elapsed()].map(|took| took.as_nanos() as f64 / 1e3)
}

/// The median, the minimum and the maximum.
fn spread(values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    let (median, least) = (values[values.len() / 2], values[0]);
    format!("{median:.2} ({least:.2} to {:.2})", values[values.len() - 1])
}

fn main() {
    println!("| page | allocation | allocate, us | a first touch, us | release, us |");
    println!("|---|---|---|---|---|");
    for (page, name) in PAGES {
        let config = MemoryConfig {
            memory: Bytes(MEMORY_PAGES * page.bytes()),
            page,
            tlb_entries: 16,
            fault_buffer_pages: 1024,
        };
        let mut map = AddressMap::new(&config, HashKey([5, 6])).expect("whole pages");
        for pages in ALLOCATION_PAGES {
            let mut samples = [const { Vec::new() }; 3];
            for _ in 0..TURNS {
                let took = turn(&mut map, page, pages);
                samples.iter_mut().zip(took).for_each(|(list, value)| list.push(value));
            }
            let [allocate, touch, release] = samples.each_mut().map(|list| spread(list));
            println!("| {name} | {pages} pages | {allocate} | {touch} | {release} |");
        }
    }
}
