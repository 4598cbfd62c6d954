//! A tenant's answers depend on itself alone. Two nodes that differ only in the requests of other
//! tenants give it equal datagrams, octet for octet.

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{
    Envelope, Epoch, Permissions, ProcessId, Protection, Request, RequestId, RequestPacket,
    SenderId, TenantId,
};
use proptest::prelude::*;

const PAGE: u64 = 4096;
const PAGES: u64 = 512;
const LIFETIME: u64 = 10_000;
/// Each of two tenants gets half of everything, so that one's use never limits the other.
const QUOTA: Quota = Quota { memory_bytes: PAGES / 4 * PAGE, processes: 8, ..Quota::UNLIMITED };

fn node() -> Node<Vec<u8>> {
    let config = NodeConfig {
        memory: MemoryConfig {
            memory: Bytes(PAGES * PAGE),
            page: PageSize::Kib4,
            tlb_entries: 16,
            fault_buffer_pages: 8,
        },
        key: HashKey([11, 12]),
        epoch: Epoch(41),
        sender: SenderId(u64::MAX),
        protection: Protection::Crc,
        data_bytes_max: 1400,
        processes_max: 16,
        recent_requests: 1 << 12,
        lifetime_max: Ns(LIFETIME),
        keep: Ns(1_000_000),
        lease: Ns(5_000_000),
        tenants: vec![(TenantId(1), QUOTA), (TenantId(2), QUOTA)],
    };
    Node::new(config, vec![0; (PAGES * PAGE) as usize]).expect("a node can be so")
}

/// A request given by numbers, whatever they mean at the moment.
#[derive(Clone, Debug)]
struct Ask {
    tenant: u16,
    process: u32,
    what: u8,
    address: u64,
    number: u64,
}

fn ask() -> impl Strategy<Value = Ask> {
    // Process numbers as they are assigned, and as other tenants might have them.
    let process =
        prop_oneof![5 => 0..6_u32, 1 => (0..3_u32, 0..4_u32).prop_map(|(g, at)| g << 16 | at)];
    let address = (1..40_u64, 0..3_u64).prop_map(|(page, word)| page * PAGE + word * 8);
    (1..3_u16, process, 0..12_u8, address, 0..200_u64).prop_map(
        |(tenant, process, what, address, number)| Ask { tenant, process, what, address, number },
    )
}

fn datagram(ask: &Ask, count: u64) -> Vec<u8> {
    let Ask { address, number, .. } = *ask;
    let page = address & !(PAGE - 1);
    let permissions = Permissions::READ_WRITE;
    // The word of a lock, as a process of any number would hold it.
    let word = ((number % 6) << 32 | 7).to_le_bytes();
    let body = match ask.what {
        0 | 1 => Request::CreateProcess,
        2 | 3 => Request::Allocate { bytes: number * PAGE, at: 0, permissions },
        4 => Request::Allocate { bytes: PAGE, at: page, permissions },
        5 => Request::Free { address: page },
        6 => {
            Request::Share { address: page, at: 0, with: ProcessId(number as u32 % 6), permissions }
        }
        7 => Request::Write { address, data: &word },
        8 => Request::Lock { address, holder: 1 },
        9 => Request::Read { address, bytes: 16 },
        10 => Request::Modify { address, operation: RmwOperation::FetchAndAdd(number) },
        _ => Request::EndProcess,
    };
    let envelope = Envelope {
        protection: Protection::Crc,
        tenant: TenantId(ask.tenant),
        epoch: Epoch(41),
        sender: SenderId(5),
        sequence: count,
        clock: Ns(count + LIFETIME),
    };
    let process = ProcessId(if ask.what < 2 { 0 } else { ask.process });
    let packet = RequestPacket {
        attempt: 0,
        process,
        request: RequestId(count),
        acknowledged: RequestId(count.saturating_sub(1)),
        body,
    };
    let mut octets = vec![0; 2048];
    let front = envelope.emit(&mut octets).expect("there is room");
    let end = front + packet.emit(&mut octets[front..]).expect("there is room");
    let length = envelope.seal(&mut octets, end).expect("there is room");
    octets.truncate(length);
    octets
}

/// The answers to tenant 1, with or without the requests of tenant 2.
fn told(asks: &[Ask], with_other: bool) -> Vec<Vec<u8>> {
    let (mut node, mut answers) = (node(), Vec::new());
    for (count, ask) in (1..).zip(asks) {
        // The node does all its work: the duration is not compared.
        for _ in 0..8 {
            node.tend(Ns(count), 1 << 20);
        }
        if ask.tenant == 2 && !with_other {
            continue;
        }
        let mut answer = [0; 1500];
        let bytes = node.on_datagram(Ns(count), &datagram(ask, count), &mut answer);
        if ask.tenant == 1 {
            answers.push(answer[..bytes].to_vec());
        }
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_tenant_is_told_nothing_of_others(asks in proptest::collection::vec(ask(), 1..80)) {
        prop_assert_eq!(told(&asks, false), told(&asks, true));
    }
}
