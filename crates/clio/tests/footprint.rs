//! The memory that the node needs for itself, computed from the real structures.

use ethermem_clio::memory::{AddressMap, Footprint, HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{Epoch, Protection, SenderId, TenantId};

fn footprint(memory: u64, page: PageSize) -> Footprint {
    let memory = Bytes(memory);
    let config = MemoryConfig { memory, page, tlb_entries: 4096, fault_buffer_pages: 1024 };
    AddressMap::new(&config, HashKey([1, 2])).expect("whole pages").footprint()
}

#[test]
fn the_page_table_takes_at_most_0_4_percent_of_memory_at_4_mib_pages() {
    // Powers of two are the best case, and a page more is the worst.
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

/// The paper's board has 1.5 MB for 4 TB. Only the page table grows with memory, and it lies in
/// memory. So a small node shows what a large one uses.
#[test]
fn the_fast_path_of_10_000_processes_fits_1_5_mb() {
    let page = PageSize::Kib4;
    let memory = MemoryConfig {
        memory: Bytes(2048 * page.bytes()),
        page,
        tlb_entries: 4096,
        fault_buffer_pages: 1024,
    };
    let tenants = (0..100).map(|tenant| (TenantId(tenant), Quota::UNLIMITED)).collect();
    let config = NodeConfig {
        memory,
        key: HashKey([1, 2]),
        epoch: Epoch(1),
        sender: SenderId(1),
        protection: Protection::Gcm,
        data_bytes_max: 8192,
        processes_max: 10_000,
        recent_requests: 1 << 14,
        lifetime_max: Ns(10_000_000),
        keep: Ns(1_000_000_000),
        lease: Ns(10_000_000_000),
        tenants,
    };
    let node = Node::new(config, vec![0; 2048 * 4096]).expect("a node can be so");
    let bytes = node.footprint().fast_path_bytes;
    let large = footprint(1 << 42, PageSize::Mib4).fast_path_bytes;
    assert_eq!(node.memory().map().footprint().fast_path_bytes, large);
    assert!(bytes <= 1_500_000, "{bytes} B");
    assert!(bytes >= 10_000 * 16 + (1 << 14) * 32 + 4096 * 16, "all of it is counted: {bytes} B");
}
