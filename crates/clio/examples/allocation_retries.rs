//! Number of ranges that an allocation tries as memory fills up: figure 13 of Clio's paper.
//!
//! `cargo run --release -p ethermem-clio --example allocation_retries`
//!
//! For each size of allocation: the maximum number of ranges that one allocation tried in vain, by
//! the part of memory in use, over several keys of the hash. The size of a page does not matter.

use ethermem_clio::memory::{AddressMap, AllocateError, HashKey, MemoryConfig, PageSize, SpaceId};
use ethermem_units::Bytes;
use ethermem_wire::clio::Permissions;

/// 2 GiB of 4 MiB pages, as the paper's board has; 256 GiB; 4 TiB.
const MEMORY_PAGES: [u64; 3] = [1 << 9, 1 << 16, 1 << 20];
/// Number of keys of the hash: the result must not depend on a lucky key.
const KEYS: u64 = 5;
/// Pages of an allocation, as in the figure.
const ALLOCATION_PAGES: [u64; 3] = [1, 10, 100];
/// The columns: percent of memory in use before an allocation; the last tenth is divided in two.
const FILLED_PERCENT: [u64; 12] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99];
/// Processes that allocate in turn.
const SPACES: u64 = 64;

/// The maximum retries by how full memory was, and the mean of all allocations.
struct Retries {
    most: [u32; FILLED_PERCENT.len()],
    total: u64,
    allocations: u64,
    refused: u64,
}

fn fill(memory_pages: u64, pages: u64, keys: u64) -> Retries {
    let mut found =
        Retries { most: [0; FILLED_PERCENT.len()], total: 0, allocations: 0, refused: 0 };
    let page = PageSize::Mib4;
    for key in 0..keys {
        let memory = Bytes(memory_pages * page.bytes());
        let config = MemoryConfig { memory, page, tlb_entries: 64, fault_buffer_pages: 1 };
        let key = HashKey([key, !key]);
        let mut map = AddressMap::new(&config, key).expect("whole pages");
        let mut used = 0;
        loop {
            let space = SpaceId((found.allocations % SPACES) as u16);
            let bytes = pages * page.bytes();
            match map.allocate(space, bytes, None, Permissions::READ_WRITE) {
                Ok(allocated) => {
                    let percent = used * 100 / memory_pages;
                    let column = FILLED_PERCENT.iter().rposition(|&from| from <= percent);
                    let most = &mut found.most[column.expect("the first column is from 0")];
                    *most = allocated.retries.max(*most);
                    found.total += u64::from(allocated.retries);
                    found.allocations += 1;
                    used += pages;
                }
                Err(AllocateError::Full { .. }) => break,
                Err(_) => {
                    found.refused += 1;
                    break;
                }
            }
        }
    }
    found
}

fn main() {
    for memory_pages in MEMORY_PAGES {
        println!("{memory_pages} pages of memory, {KEYS} keys; most retries of an allocation");
        print!("in use from");
        FILLED_PERCENT.iter().for_each(|percent| print!("{percent:>5}%"));
        println!("    mean  refused");
        for pages in ALLOCATION_PAGES {
            let found = fill(memory_pages, pages, KEYS);
            print!("{pages:>3} pages  ");
            found.most.iter().for_each(|most| print!("{most:>6}"));
            let mean = found.total as f64 / found.allocations as f64;
            println!("{mean:>8.4}{:>9}", found.refused);
        }
    }
}
