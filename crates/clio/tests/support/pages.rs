//! A client and a node whose long reads and writes stay where their bytes are.

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_clio::transport::{Client, ClientConfig};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{Epoch, Protection, SenderId, TenantId};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const PAGE: u64 = 4096;

pub(crate) fn client(
    protection: Protection,
    datagram_bytes: usize,
    window: u32,
    give_up: Ns,
) -> Client {
    let config = ClientConfig {
        sender: SenderId(77),
        tenant: TenantId(1),
        protection,
        datagram_bytes_max: datagram_bytes,
        datagram_bytes_base: datagram_bytes,
        window_max: window,
        incast_window: Bytes(1 << 20),
        queueing_target: Ns(200_000),
        retry_after_min: Ns(40_000),
        retry_after_max: Ns(100 * MS),
        give_up_after: give_up,
    };
    Client::new(config).expect("a client can be so")
}

pub(crate) fn node(protection: Protection, epoch: Epoch, pages: u64) -> Node<Vec<u8>> {
    let memory = MemoryConfig {
        memory: Bytes(pages * PAGE),
        page: PageSize::Kib4,
        tlb_entries: 16,
        fault_buffer_pages: 64,
    };
    let config = NodeConfig {
        memory,
        key: HashKey([11, 12]),
        epoch,
        sender: SenderId(u64::MAX),
        protection,
        data_bytes_max: 1 << 15,
        processes_max: 4,
        recent_requests: 1 << 10,
        lifetime_max: Ns(100 * MS),
        keep: Ns(5_000 * MS),
        lease: Ns(u64::MAX),
        tenants: vec![(TenantId(1), Quota::UNLIMITED)],
    };
    Node::new(config, vec![0; (pages * PAGE) as usize]).expect("a node can be so")
}
