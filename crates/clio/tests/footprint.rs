//! How much memory the node needs for itself, computed from what is really built.

use ethermem_clio::memory::{AddressMap, Footprint, HashKey, MemoryConfig, PageSize};
use ethermem_units::Bytes;

fn footprint(memory: u64, page: PageSize) -> Footprint {
    let memory = Bytes(memory);
    let config = MemoryConfig { memory, page, tlb_entries: 4096, fault_buffer_pages: 1024 };
    AddressMap::new(&config, HashKey([1, 2])).expect("whole pages").footprint()
}

#[test]
fn the_page_table_takes_at_most_0_4_percent_of_memory_at_4_mib_pages() {
    // Whole powers of two are the best case, a page more than one the worst.
    for pages in [1 << 9, (1 << 9) + 1, 100_000, 1 << 20, (1 << 20) + 1] {
        let memory = pages * PageSize::Mib4.bytes();
        let table = footprint(memory, PageSize::Mib4).table_bytes as u64;
        assert!(table * 1000 <= memory * 4, "{table} B for {memory} B of memory");
        assert!(table >= 2 * pages * 16, "two slots a page");
    }
}

#[test]
fn what_is_on_the_fast_path_does_not_grow_with_memory() {
    let small = footprint(1 << 33, PageSize::Mib4);
    let large = footprint(1 << 42, PageSize::Mib4);
    assert_eq!(small.fast_path_bytes, large.fast_path_bytes);
}
