//! A node that gives way to others on its processor still does all of its work.

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{NodeConfig, Quota};
use ethermem_wire::clio::{Epoch, Protection, SenderId, TenantId};

use super::*;
use crate::operator::NoAnswer;

const PLACES: u16 = 8_192;

fn giving_way() -> Server<Vec<u8>> {
    let config = NodeConfig {
        memory: MemoryConfig {
            memory: Bytes(1 << 20),
            page: PageSize::Kib4,
            tlb_entries: 16,
            fault_buffer_pages: 4,
        },
        key: HashKey([1, 2]),
        epoch: Epoch(7),
        sender: SenderId(8),
        protection: Protection::Crc,
        data_bytes_max: 1400,
        processes_max: PLACES,
        recent_requests: 64,
        lifetime_max: Ns(100_000),
        keep: Ns(10_000_000),
        lease: Ns(u64::MAX),
        tenants: vec![(TenantId(0), Quota::UNLIMITED)],
    };
    let node = Node::new(config, vec![0; 1 << 20]).expect("a node");
    let listen = Listen { udp: Some("127.0.0.1:0".parse().expect("an address")), ring: None };
    let mut server = Server::bind(node, Protect::Node, &listen).expect("a free port");
    server.patience = Patience::giving_way();
    server
}

/// A list of processes takes 128 slices. Before, each of them waited for a sleep of 20 ms, as no
/// datagram came: an operator on a busy machine, or of a node that never polls, had no answer, and
/// no page was made ready in time.
#[test]
fn an_operator_is_answered_without_a_sleep_between_slices() {
    for (gives_way, poll_ms) in [(true, 1), (true, 0), (false, 0)] {
        let mut server = giving_way();
        if !gives_way {
            server.patience = Patience::new();
        }
        let operator = server.operator();
        let asks = std::thread::spawn(move || operator.processes(Duration::from_secs(60)));
        let poll_for = Duration::from_millis(poll_ms);
        server.run_asking(poll_for, || asks.is_finished()).expect("it serves");
        let found: Result<Vec<_>, NoAnswer> = asks.join().expect("it does not panic");
        assert!(found.is_ok_and(|found| found.is_empty()), "the node has no process");
        let sleeps = server.counters().sleeps;
        // Some pass before the question comes.
        let most = u64::from(PLACES) / 64 / 2;
        assert!(sleeps < most, "{sleeps} sleeps, gives way: {gives_way}, poll_ms = {poll_ms}");
    }
}

/// Before, it looked at its socket 64 times at the end of each sleep, and slept for 20 ms.
#[test]
fn an_idle_node_looks_at_its_socket_seldom() {
    let mut server = giving_way();
    server.patience = Patience::new();
    let (began, mut looks) = (Instant::now(), 0_u32);
    let done = || {
        let passed = began.elapsed();
        looks += u32::from(passed >= 4 * IDLE_AFTER);
        passed >= 10 * IDLE_AFTER
    };
    server.run_asking(Duration::from_millis(1), done).expect("it serves");
    assert!(looks < 40, "{looks} looks in 1.5 s");
}
