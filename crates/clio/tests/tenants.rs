//! A tenant of a node cannot affect another, whatever it sends.

#[path = "support/client.rs"]
mod client;

use std::sync::Arc;

use client::{Answer, Client, PAGE, VecNode, config, deliver, node_of, seal};
use ethermem_clio::Address;
use ethermem_clio::node::{Busy, NodeConfig, Quota};
use ethermem_clio::offload::{NodeMemory, Offload, OffloadError};
use ethermem_units::Ns;
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{
    ClioStatus, Permissions, Reply, Request, RequestId, RequestPacket, TenantId,
};

const DONE: Answer = Answer::Other(Reply::Done);

fn word(word: u64) -> Answer {
    Answer::Other(Reply::Word(word))
}

fn add(address: u64) -> Request<'static> {
    Request::Modify { address, operation: RmwOperation::FetchAndAdd(1) }
}

fn allocate(node: &mut VecNode, now: u64, client: &mut Client, pages: u64) -> u64 {
    let permissions = Permissions::READ_WRITE;
    let body = Request::Allocate { bytes: pages * PAGE, at: 0, permissions };
    match client.ask(node, now, body) {
        Answer::Other(Reply::Address(address)) => address,
        other => panic!("no memory: {other:?}"),
    }
}

/// An offload that adds one to the word at the given address, and returns its former value.
struct Count;

impl Offload for Count {
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, OffloadError> {
        let at = u64::from_le_bytes(arguments.try_into().expect("it is an address"));
        let before = memory.modify(Address(at), RmwOperation::FetchAndAdd(1))?;
        Ok(vec![before as u8; 10])
    }
}

/// A client, and a client of another tenant that uses its sender id, which each datagram carries in
/// clear.
fn two_tenants_with_one_sender() -> (VecNode, [(Client, u64); 2]) {
    let mut node = node_of(NodeConfig { recent_requests: 1024, ..config(16) });
    node.register("count", Arc::new(Count));
    let mut one = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, 0, &mut one, 1);
    let mut other = Client::with_process(&mut node, 0, 666, 2);
    let own = allocate(&mut node, 0, &mut other, 1);
    other.envelope.sender = one.envelope.sender;
    other.last = one.last;
    (node, [(one, at), (other, own)])
}

#[test]
fn a_write_is_done_whatever_numbers_another_tenant_used() {
    let (mut node, [(mut one, at), (mut other, own)]) = two_tenants_with_one_sender();
    for _ in 0..100 {
        let write = Request::Write { address: own, data: b"other" };
        assert_eq!(other.ask(&mut node, 1, write), DONE);
    }
    assert_eq!(one.ask(&mut node, 2, Request::Write { address: at, data: b"precious" }), DONE);
    let read = one.ask(&mut node, 3, Request::Read { address: at, bytes: 8 });
    assert_eq!(read, Answer::Bytes(b"precious".to_vec()));
}

#[test]
fn a_result_is_answered_to_its_own_tenant_alone() {
    let (mut node, [(mut one, at), (mut other, own)]) = two_tenants_with_one_sender();
    let secret = 0x5ec2_e75e_c2e7_5ec2_u64;
    one.ask(&mut node, 1, Request::Write { address: at, data: &secret.to_le_bytes() });
    assert_eq!(one.ask(&mut node, 1, add(at)), word(secret));
    other.last += 1;
    assert_eq!(other.ask(&mut node, 2, add(own)), word(0));
    // A long result, which is kept beside the table, behaves alike.
    let count = |at: &'static [u8]| Request::Offload { name: "count", arguments: at };
    let [at, own] = [at, own].map(|at| &*at.to_le_bytes().to_vec().leak());
    let first = one.ask(&mut node, 3, count(at));
    assert!(matches!(&first, Answer::Bytes(bytes) if bytes[1] == (secret + 1) as u8), "{first:?}");
    let second = other.ask(&mut node, 3, count(own));
    assert!(matches!(&second, Answer::Bytes(bytes) if bytes[1] == 1), "{second:?}");
}

#[test]
fn a_request_acts_once_whatever_another_tenant_acknowledges() {
    let (mut node, [(mut one, at), (mut other, _)]) = two_tenants_with_one_sender();
    let datagram = one.datagram(10, add(at), 0);
    assert_eq!(deliver(&mut node, 10, &datagram), Some(word(0)));
    // The acknowledging datagram's lifetime ends at once.
    other.envelope.clock = Ns(10);
    let packet = RequestPacket {
        attempt: 0,
        process: other.process,
        request: RequestId(2000),
        acknowledged: RequestId(one.last),
        body: Request::KeepAlive,
    };
    assert_eq!(deliver(&mut node, 10, &seal(&other.envelope, &packet)), Some(DONE));
    assert_eq!(deliver(&mut node, 12, &datagram), Some(word(0)));
}

/// The word of a lock is any word that a tenant writes. The answer must not reveal whether it names
/// a live process of another tenant.
#[test]
fn a_lock_tells_nothing_of_processes_of_others() {
    let mut answers = Vec::new();
    for others in [0, 2] {
        let mut node = node_of(config(16));
        let mut one = Client::with_process(&mut node, 0, 100, 1);
        let at = allocate(&mut node, 0, &mut one, 1);
        for number in 0..others {
            Client::with_process(&mut node, 0, 200 + number, 2);
        }
        for process in 0..5_u64 {
            let word = (process << 32 | 1).to_le_bytes();
            assert_eq!(one.ask(&mut node, 0, Request::Write { address: at, data: &word }), DONE);
            answers.push(one.ask(&mut node, 0, Request::Lock { address: at, holder: 9 }));
        }
    }
    let (without, with) = answers.split_at(5);
    assert_eq!(without, with);
    let held = Answer::Other(Reply::Refused(ClioStatus::Held, 1 << 32 | 1));
    let free = Answer::Other(Reply::OwnerDied);
    assert_eq!((&with[1], &with[2]), (&held, &free), "its own process lives, and no other");
}

/// A refusal of more memory than the node has would reveal the use of other tenants if it gave the
/// number of free bytes. Only a sole tenant is told.
#[test]
fn a_refused_allocation_tells_nothing_of_what_others_have() {
    let full = |free| Answer::Other(Reply::Refused(ClioStatus::Full, free));
    for others in 0..4 {
        let mut node = node_of(config(16));
        let mut one = Client::with_process(&mut node, 0, 100, 1);
        let mut other = Client::with_process(&mut node, 0, 200, 2);
        for _ in 0..others {
            allocate(&mut node, 0, &mut other, 2);
        }
        for bytes in [17 * PAGE, 1 << 40, u64::MAX] {
            let body = Request::Allocate { bytes, at: 0, permissions: Permissions::READ_WRITE };
            assert_eq!(one.ask(&mut node, 0, body), full(0), "{bytes} B beside {others}");
        }
    }
    let tenants = vec![(TenantId(1), Quota::UNLIMITED)];
    let mut node = node_of(NodeConfig { tenants, ..config(16) });
    let mut one = Client::with_process(&mut node, 0, 100, 1);
    allocate(&mut node, 0, &mut one, 5);
    let body = Request::Allocate { bytes: 17 * PAGE, at: 0, permissions: Permissions::READ };
    assert_eq!(one.ask(&mut node, 0, body), full(11 * PAGE));
}

#[test]
fn a_share_that_is_refused_leaves_the_one_before() {
    let mut node = node_of(config(16));
    let mut owner = Client::with_process(&mut node, 0, 100, 1);
    let mut user = Client::with_process(&mut node, 0, 200, 1);
    let at = allocate(&mut node, 0, &mut owner, 2);
    let own = allocate(&mut node, 0, &mut user, 1);
    let with = user.process;
    let share = |to, permissions| Request::Share { address: at, at: to, with, permissions };
    let shared = Answer::Other(Reply::Address(at));
    assert_eq!(owner.ask(&mut node, 0, share(0, Permissions::READ)), shared);
    let entries = node.memory().map().table_entries();
    let taken = Answer::Other(Reply::Refused(ClioStatus::AddressTaken, 0));
    assert_eq!(owner.ask(&mut node, 0, share(own, Permissions::READ_WRITE)), taken);
    let read = Request::Read { address: at + PAGE, bytes: 1 };
    assert_eq!(user.ask(&mut node, 0, read), Answer::Bytes(vec![0]));
    let write = Request::Write { address: at, data: &[1] };
    let refused = Answer::Other(Reply::Refused(ClioStatus::Permission, 0));
    assert_eq!(user.ask(&mut node, 0, write), refused, "it is shared as it was");
    assert_eq!(node.memory().map().table_entries(), entries);
    // The share ends with the allocation.
    assert_eq!(owner.ask(&mut node, 0, Request::Free { address: at }), DONE);
    assert_eq!(node.memory().map().table_entries(), 1);
}

/// Ten seconds of writes: each tenant writes every 200 us, one of them four times and without
/// acknowledgements.
#[test]
fn a_tenant_that_acknowledges_nothing_keeps_nobody_from_writing() {
    const MS: u64 = 1_000_000;
    let quota = Quota { requests_per_s: 20_000, ..Quota::UNLIMITED };
    let mut node = node_of(NodeConfig {
        tenants: vec![(TenantId(1), quota), (TenantId(2), Quota::UNLIMITED)],
        recent_requests: 1 << 14,
        keep: Ns(5000 * MS),
        lifetime_max: Ns(100 * MS),
        lease: Ns(u64::MAX),
        ..config(8)
    });
    let mut silent = Client::with_process(&mut node, 0, 100, 1);
    let mut other = Client::with_process(&mut node, 0, 200, 2);
    let [at, own] = [&mut silent, &mut other].map(|client| allocate(&mut node, 0, client, 1));
    let busy = Answer::Other(Reply::Refused(ClioStatus::Busy, Busy::Recent as u64));
    for turn in 0..50_000_u64 {
        let now = 1 + turn * MS / 5;
        for _ in 0..4 {
            let answer = silent.ask(&mut node, now, Request::Write { address: at, data: &[1; 8] });
            assert!(answer == DONE || answer == busy, "{answer:?}");
        }
        let before = other.last;
        let datagram = other.datagram(now, Request::Write { address: own, data: &[1; 8] }, before);
        assert_eq!(deliver(&mut node, now, &datagram), Some(DONE), "turn {turn}");
    }
    assert!(node.counters().busy > 0);
}

/// Shares are not charged to a tenant, but take places of the shared page table.
#[test]
fn what_a_tenant_shares_takes_no_memory_from_others() {
    const OWN: u64 = 8;
    let small = Quota { memory_bytes: OWN * PAGE, ..Quota::UNLIMITED };
    let tenants = vec![(TenantId(1), small), (TenantId(2), Quota::UNLIMITED)];
    let recent_requests = 1 << 14;
    let changed = NodeConfig { tenants, processes_max: 64, recent_requests, ..config(64) };
    let mut node = node_of(changed);
    let mut owner = Client::with_process(&mut node, 0, 100, 1);
    let mut other = Client::with_process(&mut node, 0, 200, 2);
    let address = allocate(&mut node, 0, &mut owner, OWN);
    let permissions = Permissions::READ_WRITE;
    let mut shared = 0;
    for number in 0..31 {
        let with = Client::with_process(&mut node, 0, 300 + number, 1).process;
        for place in 0..4_u64 {
            let at = address + place * 100 * PAGE;
            let share = Request::Share { address, at, with, permissions };
            if let Answer::Other(Reply::Address(_)) = owner.ask(&mut node, 0, share) {
                shared += 1;
                break;
            }
        }
    }
    assert!((4..31).contains(&shared), "{shared}");
    for _ in OWN..64 {
        allocate(&mut node, 0, &mut other, 1);
    }
    assert_eq!(node.memory().map().free_bytes(), 0);
}
