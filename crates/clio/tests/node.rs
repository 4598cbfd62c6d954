//! How a node handles datagrams, whichever client sends them, however often and however late.

#[path = "support/client.rs"]
mod client;

use std::sync::Arc;

use client::{
    Answer, Client, EPOCH, KEEP, LEASE, LIFETIME, PAGE, VecNode, config, deliver, node_of, seal,
};
use ethermem_clio::Address;
use ethermem_clio::node::{Busy, NodeConfig, NodeConfigError, Quota};
use ethermem_clio::offload::{ENDED_FAILED, ENDED_RESULT, NodeMemory, Offload, OffloadError};
use ethermem_units::Ns;
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{
    ClioStatus, Epoch, NodeFacts, Permissions, Protection, Reply, Request, TenantId,
};
use proptest::prelude::*;

const DONE: Answer = Answer::Other(Reply::Done);

fn refused(status: ClioStatus, detail: u64) -> Answer {
    Answer::Other(Reply::Refused(status, detail))
}

fn word(word: u64) -> Answer {
    Answer::Other(Reply::Word(word))
}

fn allocate(node: &mut VecNode, now: u64, client: &mut Client, pages: u64) -> u64 {
    let permissions = Permissions::READ_WRITE;
    let body = Request::Allocate { bytes: pages * PAGE, at: 0, permissions };
    match client.ask(node, now, body) {
        Answer::Other(Reply::Address(address)) => address,
        other => panic!("no memory: {other:?}"),
    }
}

/// A node, a client of tenant 1 and memory of its own.
fn start(pages: u64) -> (VecNode, Client, u64) {
    start_with(config(pages))
}

fn start_with(config: NodeConfig) -> (VecNode, Client, u64) {
    let mut node = node_of(config);
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, 0, &mut client, 2);
    (node, client, at)
}

#[test]
fn bytes_words_and_locks_are_what_was_asked_for() {
    let (mut node, mut client, at) = start(8);
    let mut ask = |body| client.ask(&mut node, 5, body);
    assert_eq!(ask(Request::Write { address: at + PAGE - 3, data: b"across" }), DONE);
    let read = ask(Request::Read { address: at + PAGE - 4, bytes: 8 });
    assert_eq!(read, Answer::Bytes(b"\0across\0".to_vec()));
    let cas = RmwOperation::CompareAndSwap { expected: 0, desired: 7 };
    assert_eq!(ask(Request::Modify { address: at, operation: cas }), word(0));
    assert_eq!(ask(Request::Modify { address: at, operation: cas }), word(7));
    assert_eq!(ask(Request::TestAndSet { address: at }), word(7));
    assert_eq!(ask(Request::TestAndSet { address: at }), word(1));
    let lock = at + 8;
    assert_eq!(ask(Request::Lock { address: lock, holder: 1 }), DONE);
    let Answer::Other(Reply::Refused(ClioStatus::Held, held)) =
        ask(Request::Lock { address: lock, holder: 2 })
    else {
        panic!("two hold the lock");
    };
    assert_eq!(held & 0xffff_ffff, 1);
    assert_eq!(
        ask(Request::Unlock { address: lock, holder: 2 }),
        refused(ClioStatus::NotHeld, held)
    );
    assert_eq!(ask(Request::Unlock { address: lock, holder: 1 }), DONE);
    assert_eq!(ask(Request::Unlock { address: lock, holder: 1 }), refused(ClioStatus::NotHeld, 0));
    assert_eq!(ask(Request::Fence), DONE);
    assert_eq!(ask(Request::TestAndSet { address: at + 1 }), refused(ClioStatus::Misaligned, 0));
    assert_eq!(ask(Request::Read { address: at, bytes: 0 }), refused(ClioStatus::BadLength, 1400));
    assert_eq!(
        ask(Request::Read { address: at, bytes: 1401 }),
        refused(ClioStatus::BadLength, 1400)
    );
    assert_eq!(ask(Request::Free { address: at + PAGE }), refused(ClioStatus::Unmapped, 0));
    assert_eq!(ask(Request::Free { address: at }), DONE);
    assert_eq!(ask(Request::Read { address: at, bytes: 8 }), refused(ClioStatus::Unmapped, 0));
}

#[test]
fn a_copy_gets_the_first_answer_and_does_nothing() {
    let (mut node, mut client, at) = start(8);
    let operation = RmwOperation::FetchAndAdd(5);
    let add = client.datagram(10, Request::Modify { address: at, operation }, 0);
    assert_eq!(deliver(&mut node, 10, &add), Some(word(0)));
    assert_eq!(client.ask(&mut node, 11, Request::Modify { address: at, operation }), word(5));
    for now in [12, 10 + LIFETIME] {
        assert_eq!(deliver(&mut node, now, &add), Some(word(0)));
    }
    let late = 11 + LIFETIME;
    assert_eq!(deliver(&mut node, late, &add), Some(refused(ClioStatus::Expired, late)));
    assert_eq!(client.ask(&mut node, late, Request::Modify { address: at, operation }), word(10));
    assert_eq!(node.counters().repeated, 2);
}

#[test]
fn a_number_that_another_request_had_is_refused() {
    let (mut node, mut client, at) = start(8);
    node.register("count", Arc::new(Count));
    let operation = RmwOperation::FetchAndAdd(5);
    let asked = count(at, 100);
    for (now, first) in [
        (10, Request::Modify { address: at, operation }),
        (20, Request::Offload { name: "count", arguments: &asked }),
    ] {
        client.ask(&mut node, now, first);
        client.last -= 1;
        let write = client.ask(&mut node, now, Request::Write { address: at, data: &[9; 8] });
        assert_eq!(write, refused(ClioStatus::Malformed, 0));
    }
    let read = client.ask(&mut node, 30, Request::Read { address: at, bytes: 8 });
    assert_eq!(read, Answer::Bytes(6_u64.to_le_bytes().to_vec()));
}

#[test]
fn a_write_that_was_overtaken_does_not_come_back() {
    let (mut node, mut client, at) = start(8);
    let old = client.datagram(10, Request::Write { address: at, data: b"old" }, 0);
    assert_eq!(deliver(&mut node, 10, &old), Some(DONE));
    let (number, mut now) = (client.last, 20);
    // The acknowledgement releases the old write, but only once its copies are dead.
    let new = client.datagram(now, Request::Write { address: at, data: b"new" }, number);
    assert_eq!(deliver(&mut node, now, &new), Some(DONE));
    while now <= 20 + LIFETIME {
        deliver(&mut node, now, &old);
        let read = client.ask(&mut node, now, Request::Read { address: at, bytes: 3 });
        assert_eq!(read, Answer::Bytes(b"new".to_vec()), "at {now}");
        now += LIFETIME / 16;
    }
}

#[test]
fn what_is_late_early_or_of_another_life_is_refused() {
    let (mut node, mut client, at) = start(8);
    let read = Request::Read { address: at, bytes: 1 };
    let far = client.datagram(11, read, 0);
    assert_eq!(deliver(&mut node, 10, &far), Some(refused(ClioStatus::Expired, 10)));
    client.envelope.epoch = Epoch(EPOCH.0 - 1);
    let answer = client.ask(&mut node, 10, read);
    assert_eq!(answer, refused(ClioStatus::WrongEpoch, EPOCH.0.into()));
    client.envelope.epoch = Epoch::UNKNOWN;
    let Answer::Other(Reply::Facts(NodeFacts {
        epoch,
        page_bytes: 4096,
        data_bytes_max: 1400,
        ..
    })) = client.ask(&mut node, 10, Request::Hello)
    else {
        panic!("a node says what it is");
    };
    assert_eq!(epoch, EPOCH);
    let counters = node.counters();
    assert_eq!((counters.expired, counters.wrong_epoch), (1, 1));
}

/// Both directions are tested by datagrams of one length, so a client cannot make the node send
/// more than it sent itself.
#[test]
fn the_answer_to_a_probe_is_as_long_as_the_probe_and_that_of_another_life_is_not() {
    let (mut node, mut client, _) = start(8);
    let mut answer = [0; 1500];
    for padding in [0, 1, 100, 1300] {
        let probe = client.datagram(10, Request::Probe { padding }, 0);
        assert_eq!(node.on_datagram(Ns(10), &probe, &mut answer), probe.len());
        assert_eq!(
            client.ask(&mut node, 10, Request::Probe { padding }),
            Answer::Other(Reply::Padding(padding + 8))
        );
    }
    client.envelope.epoch = Epoch(EPOCH.0 - 1);
    let wrong = client.ask(&mut node, 10, Request::Probe { padding: 1300 });
    assert_eq!(wrong, refused(ClioStatus::WrongEpoch, EPOCH.0.into()));
}

#[test]
fn nobody_touches_what_is_not_theirs() {
    let (mut node, mut owner, at) = start_with(NodeConfig { processes_max: 8, ..config(8) });
    let mut same = Client::with_process(&mut node, 0, 101, 1);
    let mut other = Client::with_process(&mut node, 0, 102, 2);
    let read = Request::Read { address: at, bytes: 1 };
    assert_eq!(same.ask(&mut node, 1, read), refused(ClioStatus::Unmapped, 0));
    // Process numbers count within their tenant: this number is the other tenant's own.
    assert_eq!(other.process, owner.process);
    assert_eq!(other.ask(&mut node, 1, read), refused(ClioStatus::Unmapped, 0));
    // Another tenant that names a process of this one has no process of that number.
    other.process = same.process;
    let no_process = refused(ClioStatus::NoSuchProcess, same.process.0.into());
    for body in [read, Request::EndProcess, Request::Write { address: at, data: &[1] }] {
        assert_eq!(other.ask(&mut node, 1, body), no_process);
    }
    let share = |with, permissions| Request::Share { address: at, at: 0, with, permissions };
    let own = [103, 104].map(|sender| Client::with_process(&mut node, 1, sender, 2).process)[1];
    let across = owner.ask(&mut node, 1, share(own, Permissions::READ));
    assert_eq!(across, refused(ClioStatus::NoSuchProcess, own.0.into()));
    let shared = owner.ask(&mut node, 1, share(same.process, Permissions::READ));
    assert_eq!(shared, Answer::Other(Reply::Address(at)));
    assert_eq!(same.ask(&mut node, 1, read), Answer::Bytes(vec![0]));
    let write = Request::Write { address: at, data: &[1] };
    assert_eq!(same.ask(&mut node, 1, write), refused(ClioStatus::Permission, 0));
    assert_eq!(
        owner.ask(&mut node, 1, share(same.process, Permissions::NONE)),
        Answer::Other(Reply::Address(at))
    );
    assert_eq!(same.ask(&mut node, 1, read), refused(ClioStatus::Unmapped, 0));
    let mut unknown = Client::new(103, 3);
    let datagram = unknown.datagram(1, Request::Hello, 0);
    assert_eq!((deliver(&mut node, 1, &datagram), node.counters().dropped_tenant), (None, 1));
}

#[test]
fn a_dead_clients_locks_and_memory_are_reclaimed_after_its_lease() {
    let (mut node, mut dead, at) = start(8);
    let mut heir = Client::with_process(&mut node, 0, 101, 1);
    let share = Request::Share {
        address: allocate(&mut node, 0, &mut heir, 1),
        at: 0,
        with: dead.process,
        permissions: Permissions::READ_WRITE,
    };
    let Answer::Other(Reply::Address(lock)) = heir.ask(&mut node, 0, share) else {
        panic!("it is shared");
    };
    let take = Request::Lock { address: lock, holder: 9 };
    assert_eq!(dead.ask(&mut node, 1, take), DONE);
    let held =
        |answer: &Answer| matches!(answer, Answer::Other(Reply::Refused(ClioStatus::Held, _)));
    assert_eq!(heir.ask(&mut node, LEASE, Request::KeepAlive), DONE);
    assert!(held(&heir.ask(&mut node, 1 + LEASE, take)));
    assert_eq!(heir.ask(&mut node, 2 + LEASE, take), Answer::Other(Reply::OwnerDied));
    // The dead client is too late, and finds neither its lock nor its memory.
    let gone = refused(ClioStatus::NoSuchProcess, dead.process.0.into());
    assert_eq!(dead.ask(&mut node, 2 + LEASE, Request::Unlock { address: lock, holder: 9 }), gone);
    let (free, processes) = (node.memory().map().free_bytes(), node.processes());
    node.tend(Ns(2 + LEASE), 0);
    assert_eq!(node.memory().map().free_bytes(), free + 2 * PAGE);
    assert_eq!((node.processes(), node.counters().lapsed), (processes - 1, 1));
    assert_eq!(dead.ask(&mut node, 3 + LEASE, Request::Read { address: at, bytes: 1 }), gone);
}

#[test]
fn a_sweep_finds_every_dead_process_wherever_its_place_is() {
    let mut node =
        node_of(NodeConfig { processes_max: 1000, recent_requests: 1 << 15, ..config(8) });
    for sender in 0..1000 {
        Client::with_process(&mut node, 0, 100 + sender, 1);
    }
    assert!(!node.sweep(Ns(LEASE)), "all live");
    for left in (0..1000).rev() {
        assert!(node.sweep(Ns(1 + LEASE)));
        assert_eq!(node.processes(), left);
    }
    assert!(!node.sweep(Ns(1 + LEASE)));
    assert_eq!(node.counters().lapsed, 1000);
}

#[test]
fn quotas_bound_memory_processes_and_rate() {
    let quota =
        Quota { memory_bytes: 3 * PAGE, processes: 1, requests_per_s: 1000, ..Quota::UNLIMITED };
    let changed = NodeConfig { tenants: vec![(TenantId(1), quota)], ..config(8) };
    let mut node = node_of(changed);
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    assert_eq!(client.ask(&mut node, 0, Request::CreateProcess), refused(ClioStatus::Quota, 0));
    let at = allocate(&mut node, 0, &mut client, 2);
    let permissions = Permissions::READ;
    let more = Request::Allocate { bytes: PAGE + 1, at: 0, permissions };
    assert_eq!(client.ask(&mut node, 0, more), refused(ClioStatus::Quota, PAGE));
    let all = Request::Allocate { bytes: u64::MAX, at: 0, permissions };
    assert_eq!(client.ask(&mut node, 0, all), refused(ClioStatus::Full, 6 * PAGE));
    assert_eq!(client.ask(&mut node, 0, Request::Free { address: at }), DONE);
    allocate(&mut node, 0, &mut client, 3);
    assert_eq!(client.ask(&mut node, 0, Request::EndProcess), DONE);
    let mut again = Client::with_process(&mut node, 0, 101, 1);
    allocate(&mut node, 0, &mut again, 3);
    let done = (0..2000).filter(|_| again.ask(&mut node, 0, Request::KeepAlive) == DONE).count();
    assert_eq!((done as u64) + node.counters().requests - 2000, 1000, "a second's worth");
    assert_eq!(again.ask(&mut node, 1_000_000, Request::KeepAlive), DONE, "a millisecond later");
    let over = refused(ClioStatus::Busy, Busy::Rate as u64);
    assert_eq!(again.ask(&mut node, 1_000_000, Request::KeepAlive), over);
}

#[test]
fn damage_is_never_executed_and_costs_a_counter() {
    let (mut node, mut client, at) = start(8);
    let whole = client.datagram(10, Request::Write { address: at, data: &[0xff; 64] }, 0);
    let nack = refused(ClioStatus::Corrupt, client.envelope.sequence);
    for bit in 0..whole.len() * 8 {
        let mut octets = whole.clone();
        octets[bit / 8] ^= 1 << (bit % 8);
        let answer = deliver(&mut node, 10, &octets);
        let in_sequence = (16 * 8..24 * 8).contains(&bit);
        match answer {
            Some(answer) if !in_sequence => assert_eq!(answer, nack, "bit {bit}"),
            Some(answer) => {
                assert!(matches!(answer, Answer::Other(Reply::Refused(ClioStatus::Corrupt, _))))
            }
            None => assert!(bit < 16, "bit {bit}"),
        }
    }
    for length in 0..whole.len() {
        deliver(&mut node, 10, &whole[..length]);
    }
    let read = client.ask(&mut node, 10, Request::Read { address: at, bytes: 64 });
    assert_eq!(read, Answer::Bytes(vec![0; 64]));
    let counters = node.counters();
    assert!(counters.dropped_corrupt > 0 && counters.dropped_malformed > 0);
    client.envelope.protection = Protection::Carrier;
    let bare = client.datagram(10, Request::Hello, 0);
    assert_eq!(
        (deliver(&mut node, 10, &bare), node.counters().dropped_protection > 0),
        (None, true)
    );
}

#[test]
fn answers_that_do_not_fit_their_datagram_are_refused_before_anything_is_done() {
    let (mut node, mut client, at) = start(8);
    let one = client.datagram(10, Request::Read { address: at, bytes: 1400 }, 0);
    let envelope = client.envelope;
    // An equal read again, and an atomic behind it.
    let operation = RmwOperation::FetchAndAdd(1);
    let add = client.datagram(10, Request::Modify { address: at, operation }, 0);
    let body = |datagram: &[u8]| datagram[32..datagram.len() - 4].to_vec();
    let mut octets = vec![0; 32];
    envelope.emit(&mut octets).expect("there is room");
    octets.extend([body(&one), body(&one), body(&add)].concat());
    let end = octets.len();
    octets.resize(end + 4, 0);
    envelope.seal(&mut octets, end).expect("there is room");
    let mut answer = [0; 1470];
    let length = node.on_datagram(Ns(10), &octets, &mut answer);
    assert!(length >= 32 + 16 + 1400 + 4);
    assert_eq!(node.counters().unanswered, 2);
    assert_eq!(deliver(&mut node, 10, &add), Some(word(0)), "it was not done before");
}

#[test]
fn a_node_that_cannot_be_is_refused() {
    let built = |change: fn(&mut NodeConfig)| {
        let mut config = config(8);
        change(&mut config);
        ethermem_clio::node::Node::new(config, vec![0; 8 * PAGE as usize]).map(|_| ())
    };
    assert_eq!(built(|c| c.epoch = Epoch::UNKNOWN), Err(NodeConfigError::Epoch));
    assert_eq!(built(|c| c.recent_requests = 12), Err(NodeConfigError::RecentRequests(12)));
    assert_eq!(built(|c| c.processes_max = 0), Err(NodeConfigError::Processes));
    assert_eq!(built(|c| c.data_bytes_max = 65_001), Err(NodeConfigError::Data(65_001)));
    let (keep, lifetime) = (Ns(LIFETIME), Ns(LIFETIME));
    assert_eq!(built(|c| c.keep = Ns(LIFETIME)), Err(NodeConfigError::Keep { keep, lifetime }));
    assert_eq!(built(|_| {}), Ok(()));
}

/// A step of a client: an atomic or a write of a word, at a time.
#[derive(Clone, Debug)]
enum Sent {
    /// A new request on a word after some time, with or without an acknowledgement of the previous
    /// one.
    New {
        client: usize,
        word: u64,
        operation: RmwOperation,
        write: bool,
        acknowledge: bool,
    },
    /// A copy of an earlier datagram.
    Copy(prop::sample::Index),
    Pass(u64),
}

fn sent() -> impl Strategy<Value = Sent> {
    let operation = prop_oneof![
        (1..9_u64).prop_map(RmwOperation::FetchAndAdd),
        any::<u64>().prop_map(RmwOperation::Swap),
        (0..3_u64, any::<u64>())
            .prop_map(|(expected, desired)| { RmwOperation::CompareAndSwap { expected, desired } }),
    ];
    prop_oneof![
        4 => (0..3_usize, 0..4_u64, operation, any::<bool>(), any::<bool>()).prop_map(
            |(client, word, operation, write, acknowledge)| {
                Sent::New { client, word, operation, write, acknowledge }
            }),
        5 => any::<prop::sample::Index>().prop_map(Sent::Copy),
        1 => (0..LIFETIME).prop_map(Sent::Pass),
        1 => (KEEP / 2..KEEP * 2).prop_map(Sent::Pass),
    ]
}

proptest! {
    /// Copies come in any order and arbitrarily late. Each request acts once, when its first copy
    /// comes, and every later answer is the first answer or a refusal.
    #[test]
    fn every_request_acts_at_most_once(steps in proptest::collection::vec(sent(), 1..300)) {
        let (mut node, mut owner, at) = start(8);
        let mut clients: Vec<Client> = (0..3)
            .map(|index| Client::with_process(&mut node, 0, 200 + index, 1))
            .collect();
        for client in &clients {
            let share = Request::Share {
                address: at, at: 0, with: client.process, permissions: Permissions::READ_WRITE,
            };
            owner.ask(&mut node, 0, share);
        }
        let (mut words, mut now) = ([0_u64; 4], 1);
        // All datagrams with their answers.
        let mut all: Vec<(Vec<u8>, Option<Answer>)> = Vec::new();
        for step in steps {
            // Another test covers processes whose client is not heard in time.
            for client in clients.iter_mut().chain([&mut owner]) {
                client.ask(&mut node, now, Request::KeepAlive);
            }
            match step {
                Sent::Pass(time) => now += time,
                Sent::Copy(which) if !all.is_empty() => {
                    let (datagram, first) = &all[which.index(all.len())];
                    let answer = deliver(&mut node, now, datagram);
                    let expired = answer == Some(refused(ClioStatus::Expired, now));
                    prop_assert!(expired || answer == *first, "{:?} {:?}", answer, first);
                }
                Sent::Copy(_) => {}
                Sent::New { client, word: index, operation, write, acknowledge } => {
                    let client = &mut clients[client];
                    let address = at + index * 8;
                    let acknowledged = if acknowledge { client.last } else { 0 };
                    let data = operation.operands()[0].to_le_bytes();
                    let body = if write {
                        Request::Write { address, data: &data }
                    } else {
                        Request::Modify { address, operation }
                    };
                    let datagram = client.datagram(now, body, acknowledged);
                    let answer = deliver(&mut node, now, &datagram);
                    if answer == Some(refused(ClioStatus::Busy, Busy::Recent as u64)) {
                        continue;
                    }
                    let before = words[index as usize];
                    if write {
                        prop_assert_eq!(answer.as_ref(), Some(&DONE));
                        words[index as usize] = operation.operands()[0];
                    } else {
                        prop_assert_eq!(answer.as_ref(), Some(&word(before)));
                        words[index as usize] = operation.apply(before);
                    }
                    all.push((datagram, answer));
                }
            }
            let octets: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let read = owner.ask(&mut node, now, Request::Read { address: at, bytes: 32 });
            prop_assert_eq!(read, Answer::Bytes(octets));
        }
    }

    /// Packets of arbitrary octets: nothing panics, and a tenant's use is the sum over its
    /// processes.
    #[test]
    fn any_packets_leave_a_node_whole(
        packets in proptest::collection::vec(any::<(u8, u8, u64, u64, u8)>(), 1..60),
    ) {
        let (mut node, mut client, at) = start(8);
        for (opcode, attempt, one, two, length) in packets {
            let datagram = client.datagram(5, Request::KeepAlive, 0);
            let mut octets = datagram[..datagram.len() - 4].to_vec();
            let envelope = client.envelope;
            let body = [at.wrapping_add(one % 9000).to_le_bytes(), two.to_le_bytes()].concat();
            octets.extend([body.clone(), body].concat());
            octets.truncate(32 + 24 + usize::from(length) % 33);
            let packet_bytes = (octets.len() - 32) as u16;
            (octets[32], octets[33]) = (opcode, attempt);
            octets[34..36].copy_from_slice(&packet_bytes.to_le_bytes());
            let end = octets.len();
            octets.resize(end + 4, 0);
            envelope.seal(&mut octets, end).expect("there is room");
            let mut answer = [0; 1500];
            node.on_datagram(Ns(5), &octets, &mut answer);
            node.tend(Ns(5), PAGE);
        }
        // After all leases every page is free again.
        for turn in 0..8 {
            node.tend(Ns(100 + LEASE + turn), 8 * PAGE);
        }
        prop_assert_eq!((node.processes(), node.memory().map().free_bytes()), (0, 8 * PAGE));
    }
}

#[test]
fn a_datagram_is_answered_by_the_request_it_had() {
    let (mut node, mut client, at) = start(8);
    let packet = ethermem_wire::clio::RequestPacket {
        attempt: 77,
        process: client.process,
        request: ethermem_wire::clio::RequestId(1234),
        acknowledged: ethermem_wire::clio::RequestId::NONE,
        body: Request::Read { address: at, bytes: 4 },
    };
    client.envelope.clock = Ns(50);
    let datagram = seal(&client.envelope, &packet);
    let mut answer = [0; 1500];
    let length = node.on_datagram(Ns(50), &datagram, &mut answer);
    let packets = &answer[32..length - 4];
    let found = ethermem_wire::clio::ResponsePacket::packets(packets).next();
    let found = found.expect("a packet").expect("it can be read");
    assert_eq!((found.attempt, found.request.0, found.opcode), (77, 1234, 1));
}

/// An offload that counts its runs in memory, and returns as many octets as requested.
struct Count;

impl Offload for Count {
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, OffloadError> {
        let [at, octets] = [&arguments[..8], &arguments[8..]]
            .map(|word| u64::from_le_bytes(word.try_into().expect("it is 8 B")));
        let before = memory.modify(Address(at), RmwOperation::FetchAndAdd(1))?;
        Ok(vec![before as u8; octets as usize])
    }
}

fn count(at: u64, octets: u64) -> Vec<u8> {
    [at, octets].map(u64::to_le_bytes).concat()
}

#[test]
fn an_operation_at_the_node_runs_once_whatever_copies_of_it_come() {
    let tenants = vec![(TenantId(1), Quota::UNLIMITED)];
    let (mut node, mut client, at) = start_with(NodeConfig { tenants, ..config(8) });
    node.register("count", Arc::new(Count));
    let asked = count(at, 100);
    let ask = Request::Offload { name: "count", arguments: &asked };
    let first = client.datagram(10, ask, 0);
    let ended = |tag: u8, octets: &[u8]| Some(Answer::Bytes([&[tag], octets].concat()));
    let zeros = ended(ENDED_RESULT, &[0; 100]);
    assert_eq!(deliver(&mut node, 10, &first), zeros);
    let ones = Answer::Bytes([&[ENDED_RESULT][..], &[1; 100]].concat());
    assert_eq!(client.ask(&mut node, 11, ask), ones);
    for now in [12, 10 + LIFETIME] {
        assert_eq!(deliver(&mut node, now, &first), zeros, "a copy gets what the first one got");
    }
    let counter = Request::Read { address: at, bytes: 1 };
    assert_eq!(client.ask(&mut node, 13, counter), Answer::Bytes(vec![2]));
    // The results of many operations are kept, and dropped when their time is over.
    let mut now = 20;
    for round in 0..200 {
        now += KEEP / 50;
        let asked = count(at, 1);
        let ask = Request::Offload { name: "count", arguments: &asked };
        let answer = client.ask(&mut node, now, ask);
        assert_eq!(answer, Answer::Bytes(vec![ENDED_RESULT, 2 + round]));
    }
}

#[test]
fn an_operation_that_cannot_be_done_says_why_and_touches_nothing_of_others() {
    let (mut node, mut client, at) = start(8);
    node.register("count", Arc::new(Count));
    let mut other = Client::with_process(&mut node, 0, 200, 1);
    let asked = count(at, 8);
    let ask = Request::Offload { name: "count", arguments: &asked };
    assert_eq!(other.ask(&mut node, 5, ask), refused(ClioStatus::Unmapped, at));
    let odd = count(at + 1, 8);
    let ask = Request::Offload { name: "count", arguments: &odd };
    assert_eq!(client.ask(&mut node, 5, ask), refused(ClioStatus::Misaligned, at + 1));
    let ask = Request::Offload { name: "cuont", arguments: &odd };
    assert_eq!(client.ask(&mut node, 5, ask), refused(ClioStatus::NoSuchOffload, 0));
    let ask = Request::Offload { name: "chase", arguments: &odd };
    let Answer::Bytes(line) = client.ask(&mut node, 5, ask) else { panic!("it says why") };
    assert_eq!(line[0], ENDED_FAILED);
    assert!(line[1..].starts_with(b"must be six words"));
    let long = count(at, 1 << 20);
    let ask = Request::Offload { name: "count", arguments: &long };
    let Answer::Bytes(line) = client.ask(&mut node, 5, ask) else { panic!("it says why") };
    assert!(line[1..].starts_with(b"a result of 1048576 B: must be"));
}
