//! Exact counts of a node, and each of its bounds: at the bound, and one beyond.

#[path = "support/client.rs"]
mod client;

use std::sync::Arc;
use std::task::Poll;

use client::{Answer, Client, EPOCH, KEEP, LEASE, PAGE, VecNode, config, deliver, node_of, seal};
use ethermem_clio::node::{Busy, Node, NodeConfig, NodeCounters, Quota, TenantUse};
use ethermem_clio::offload::{NodeMemory, Offload, OffloadError, OffloadLimits, Sliced, Stop};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{
    ClioStatus, ENVELOPE_BYTES, Envelope, Epoch, NodeFacts, OPCODES, Permissions, Protection,
    Reply, Request, RequestId, RequestPacket, TenantId,
};

const DONE: Answer = Answer::Other(Reply::Done);
const TRAILER: usize = 4;

fn refused(status: ClioStatus, detail: u64) -> Answer {
    Answer::Other(Reply::Refused(status, detail))
}

fn busy(what: Busy) -> Answer {
    refused(ClioStatus::Busy, what as u64)
}

fn allocation(pages: u64) -> Request<'static> {
    Request::Allocate { bytes: pages * PAGE, at: 0, permissions: Permissions::READ_WRITE }
}

fn allocate(node: &mut VecNode, client: &mut Client, pages: u64) -> u64 {
    match client.ask(node, 0, allocation(pages)) {
        Answer::Other(Reply::Address(address)) => address,
        other => panic!("no memory: {other:?}"),
    }
}

fn uses(node: &VecNode, tenant: usize) -> TenantUse {
    *node.tenant_uses().nth(tenant).expect("there is such a tenant").1
}

fn operations(counted: &[(&str, u64)]) -> [u64; OPCODES.len()] {
    let mut all = [0; OPCODES.len()];
    for (name, count) in counted {
        all[OPCODES.iter().position(|row| row.name == *name).expect("there is one")] = *count;
    }
    all
}

/// Every kind of datagram is sent twice, so that a count that stays and a count that is set both
/// fail.
#[test]
fn each_datagram_and_request_is_counted_once_where_it_belongs() {
    let quota = Quota { requests_per_s: 14, memory_bytes: 4 * PAGE, ..Quota::UNLIMITED };
    let tenants = vec![(TenantId(1), quota), (TenantId(2), Quota::UNLIMITED)];
    let mut node = node_of(NodeConfig { tenants, ..config(16) });
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, &mut client, 1);
    let sound = client.envelope;
    for _ in 0..2 {
        assert_eq!(client.ask(&mut node, 0, Request::Write { address: at, data: b"abc" }), DONE);
        let read = client.ask(&mut node, 0, Request::Read { address: at, bytes: 5 });
        assert_eq!(read, Answer::Bytes(b"abc\0\0".to_vec()));
        let copied = client.datagram(0, Request::Write { address: at, data: b"d" }, 0);
        assert_eq!(deliver(&mut node, 0, &copied), Some(DONE));
        assert_eq!(deliver(&mut node, 0, &copied), Some(DONE));
        assert_eq!(client.ask(&mut node, 0, allocation(9)), refused(ClioStatus::Quota, 3 * PAGE));
        client.ask(&mut node, 0, Request::Write { address: at, data: b"abc" });
        // The tenant's rate was 14 at once: two before the loop, six each time.
    }
    for _ in 0..2 {
        assert_eq!(client.ask(&mut node, 0, Request::KeepAlive), busy(Busy::Rate));
        let mut late = client.datagram(0, Request::KeepAlive, 0);
        assert_eq!(deliver(&mut node, 20_000, &late), Some(refused(ClioStatus::Expired, 20_000)));
        client.envelope.epoch = Epoch(EPOCH.0 + 1);
        let other_life = client.ask(&mut node, 0, Request::KeepAlive);
        assert_eq!(other_life, refused(ClioStatus::WrongEpoch, EPOCH.0.into()));
        client.envelope = Envelope { tenant: TenantId(9), ..sound };
        let stranger = client.datagram(0, Request::KeepAlive, 0);
        assert_eq!(deliver(&mut node, 0, &stranger), None);
        client.envelope = Envelope { protection: Protection::Carrier, ..sound };
        let bare = client.datagram(0, Request::KeepAlive, 0);
        assert_eq!(deliver(&mut node, 0, &bare), None);
        client.envelope = sound;
        *late.last_mut().expect("it has a check") ^= 1;
        deliver(&mut node, 0, &late);
        assert_eq!(deliver(&mut node, 0, &late[..10]), None);
    }
    let expected = NodeCounters {
        datagrams: 2 + 12 + 14,
        dropped_malformed: 2,
        dropped_corrupt: 2,
        dropped_protection: 2,
        dropped_tenant: 2,
        requests: 2 + 12 + 6,
        executed: 2 + 10,
        repeated: 2,
        expired: 2,
        over_rate: 2,
        wrong_epoch: 2,
        slow_slices: 1,
        ..NodeCounters::default()
    };
    assert_eq!(node.counters(), expected);
    let own = TenantUse {
        memory_bytes: PAGE,
        processes: 1,
        operations: operations(&[
            ("create_process", 1),
            ("allocate", 1),
            ("write", 6),
            ("read", 2),
        ]),
        read_bytes: 10,
        written_bytes: 2 * 7,
        over_rate: 2,
        over_quota: 2,
        offload_fuel: 0,
    };
    assert_eq!((uses(&node, 0), uses(&node, 1)), (own, TenantUse::default()));
}

/// An offload that uses this much fuel per slice, is stopped after some slices, and allocates
/// meanwhile.
struct Burner(u64);

struct Burning {
    slices: u64,
    fuel: u64,
}

impl Offload for Burner {
    fn run(&self, _: &mut NodeMemory<'_>, _: &[u8]) -> Result<Vec<u8>, OffloadError> {
        unreachable!("it is run in slices")
    }

    fn begin(&self, _: &OffloadLimits, _: &[u8]) -> Option<Result<Box<dyn Sliced>, OffloadError>> {
        Some(Ok(Box::new(Burning { slices: self.0, fuel: 0 })))
    }
}

impl Sliced for Burning {
    fn step(&mut self, _: &mut NodeMemory<'_>) -> Poll<Result<Vec<u8>, OffloadError>> {
        self.fuel += 7;
        self.slices -= 1;
        if self.slices > 0 {
            return Poll::Pending;
        }
        let (why, problem) = (Stop::Fuel, "no fuel".to_owned());
        Poll::Ready(Err(OffloadError::Stopped { why, problem }))
    }

    fn fuel_used(&self) -> u64 {
        self.fuel
    }
}

#[test]
fn slices_fuel_and_stops_of_operations_are_counted() {
    let mut node = node_of(config(16));
    node.register("burner", Arc::new(Burner(3)));
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    for round in 1..=2 {
        let call = client.datagram(0, Request::Offload { name: "burner", arguments: &[] }, 0);
        assert_eq!(deliver(&mut node, 0, &call), Some(busy(Busy::Running)));
        assert!(node.tend(Ns(0), 0) && node.runs_wait());
        assert_eq!(deliver(&mut node, 0, &call), Some(busy(Busy::Running)));
        assert!(!node.tend(Ns(0), 0) || !node.runs_wait());
        let ended = deliver(&mut node, 0, &call).expect("it is answered");
        assert!(matches!(ended, Answer::Other(Reply::Refused(..)) | Answer::Bytes(_)), "{ended:?}");
        assert_ne!(ended, busy(Busy::Running));
        let counters = node.counters();
        assert_eq!((counters.offload_slices, uses(&node, 0).offload_fuel), (3 * round, 21 * round));
        let mut stopped = [0; Stop::ALL.len()];
        stopped[Stop::Fuel as usize] = round;
        assert_eq!((counters.offload_stopped, counters.repeated), (stopped, round));
    }
}

/// As many operations as one tenant may have, as all tenants may have, and one more.
#[test]
fn so_many_operations_wait_of_one_tenant_and_of_all() {
    let tenants = (1..=5).map(|id| (TenantId(id), Quota::UNLIMITED)).collect();
    let mut node =
        node_of(NodeConfig { tenants, processes_max: 8, recent_requests: 1 << 10, ..config(16) });
    node.register("burner", Arc::new(Burner(u64::MAX)));
    let call = Request::Offload { name: "burner", arguments: &[] };
    let mut clients: Vec<Client> = (1..=5)
        .map(|tenant| Client::with_process(&mut node, 0, 100 + u64::from(tenant), tenant))
        .collect();
    let last = clients.pop().expect("there are five");
    for client in &mut clients {
        for _ in 0..16 {
            assert_eq!(client.ask(&mut node, 0, call), busy(Busy::Running));
        }
        assert_eq!(client.ask(&mut node, 0, call), busy(Busy::Runs), "of one tenant");
        assert_eq!(client.ask(&mut node, 0, allocation(1)), busy(Busy::Runs));
    }
    let mut last = last;
    for body in [call, allocation(1), Request::Free { address: PAGE }] {
        assert_eq!(last.ask(&mut node, 0, body), busy(Busy::Runs), "of all");
    }
    // A process without operations would make no room; one with operations makes room.
    assert_eq!(last.ask(&mut node, 0, Request::EndProcess), busy(Busy::Runs));
    let ends = clients[0].datagram(0, Request::EndProcess, 0);
    let first = deliver(&mut node, 0, &ends);
    assert!(first == Some(DONE) || first == Some(busy(Busy::Running)), "{first:?}");
    assert_eq!(last.ask(&mut node, 0, call), busy(Busy::Running), "there is room again");
}

#[test]
fn a_read_or_a_write_has_as_many_bytes_as_the_node_says_and_no_more() {
    let mut node = node_of(NodeConfig { data_bytes_max: 100, ..config(16) });
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, &mut client, 1);
    let too_long = refused(ClioStatus::BadLength, 100);
    let write = |data| Request::Write { address: at, data };
    assert_eq!(client.ask(&mut node, 0, write(&[7; 101])), too_long);
    assert_eq!(client.ask(&mut node, 0, write(&[7; 100])), DONE);
    assert_eq!(client.ask(&mut node, 0, write(&[8; 99])), DONE);
    let read = |bytes| Request::Read { address: at, bytes };
    assert_eq!(client.ask(&mut node, 0, read(101)), too_long);
    assert_eq!(client.ask(&mut node, 0, read(0)), too_long);
    let whole = [vec![8; 99], vec![7]].concat();
    assert_eq!(client.ask(&mut node, 0, read(100)), Answer::Bytes(whole));
}

/// An answer is written where there is room for it; without room, the request is not done.
#[test]
fn an_answer_takes_the_room_that_there_is_and_not_more() {
    let mut node = node_of(config(16));
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, &mut client, 1);
    // The longest packet of an answer without bytes of memory.
    let shortest = ENVELOPE_BYTES + 16 + 32 + TRAILER;
    for room in 0..shortest + 20 {
        let before = node.counters();
        let write = client.datagram(0, Request::Write { address: at, data: &[1] }, 0);
        let mut answer = vec![0xee; room + 8];
        let length = node.on_datagram(Ns(0), &write, &mut answer[..room]);
        assert!(length <= room);
        assert!(answer[room..].iter().all(|&octet| octet == 0xee), "room for {room}");
        let done = node.counters().executed - before.executed;
        assert!(done == 0 || length > 0, "done without an answer in {room}");
        if room >= shortest {
            assert_eq!(done, 1, "room for {room}");
        } else {
            assert_eq!(done, 0, "room for {room}");
        }
    }
}

/// A failed check is reported to the possible sender, never in more octets than arrived.
#[test]
fn a_refusal_of_damage_is_not_longer_than_the_damage() {
    let mut node = node_of(config(16));
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    for padding in [0, 1, 200] {
        let mut probe = client.datagram(0, Request::Probe { padding }, 0);
        *probe.last_mut().expect("it has a check") ^= 1;
        let mut answer = [0; 1500];
        let length = node.on_datagram(Ns(0), &probe, &mut answer);
        assert!(length <= probe.len(), "{length} for {}", probe.len());
    }
    let envelope = client.envelope;
    let mut octets = vec![0; ENVELOPE_BYTES];
    envelope.emit(&mut octets).expect("there is room");
    octets.extend([1, 2, 3, 4]);
    let mut answer = [0; 1500];
    assert_eq!(node.on_datagram(Ns(0), &octets, &mut answer), 0, "no room for a refusal");
}

/// The earliest and the latest time of a datagram's lifetime, and of a lease.
#[test]
fn lives_and_leases_end_with_their_last_nanosecond() {
    let mut node = node_of(config(16));
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let alive = client.datagram(0, Request::KeepAlive, 0);
    assert_eq!(deliver(&mut node, client::LIFETIME, &alive), Some(DONE));
    let over = client::LIFETIME + 1;
    assert_eq!(deliver(&mut node, over, &alive), Some(refused(ClioStatus::Expired, over)));
    // The client was heard at the end of that lifetime.
    let last = client::LIFETIME + LEASE;
    let process = u64::from(client.process.0);
    assert!(!node.sweep(Ns(last)), "its lease is not over");
    assert_eq!(client.ask(&mut node, last, Request::KeepAlive), DONE);
    let dead = last + LEASE + 1;
    assert_eq!(
        client.ask(&mut node, dead, Request::KeepAlive),
        refused(ClioStatus::NoSuchProcess, process)
    );
    assert_eq!(node.processes(), 1);
    assert!(node.sweep(Ns(dead)));
    while node.tend(Ns(dead), u64::MAX) {}
    assert_eq!((node.processes(), node.counters().lapsed), (0, 1));
}

/// The node's footprint counts each part: without any of them it would be smaller.
#[test]
fn the_footprint_grows_with_each_table() {
    let of = |changed: NodeConfig| node_of(changed).footprint().fast_path_bytes;
    let least = of(config(16));
    assert!(of(NodeConfig { processes_max: 64, ..config(16) }) >= least + 60 * 8);
    assert!(of(NodeConfig { recent_requests: 1 << 10, ..config(16) }) >= least + 960 * 16);
    let tenants = (1..=50).map(|id| (TenantId(id), Quota::UNLIMITED)).collect();
    assert!(of(NodeConfig { tenants, ..config(16) }) >= least + 48 * 100);
    let mut wider = config(16);
    wider.memory.tlb_entries = 1 << 10;
    assert!(of(wider) >= least + 1000 * 8);
    let mut ready = config(64);
    ready.memory.fault_buffer_pages = 48;
    let all = |changed: NodeConfig| {
        let footprint = node_of(changed).footprint();
        footprint.fast_path_bytes + footprint.table_bytes
    };
    assert!(all(ready) >= all(config(64)) + 40 * 4);
}

/// Several packets of one datagram are answered in one; unreadable packets are counted.
#[test]
fn a_packet_that_is_cut_off_ends_its_datagram() {
    let mut node: Node<Vec<u8>> = node_of(config(16));
    let client = Client::with_process(&mut node, 0, 100, 1);
    let envelope = Envelope { clock: Ns(client::LIFETIME), ..client.envelope };
    let packet = RequestPacket {
        attempt: 0,
        process: client.process,
        request: RequestId(50),
        acknowledged: RequestId::NONE,
        body: Request::KeepAlive,
    };
    let sound = seal(&envelope, &packet);
    for round in 1..=2 {
        let mut octets = sound[..sound.len() - TRAILER].to_vec();
        octets.extend_from_slice(&sound[ENVELOPE_BYTES..ENVELOPE_BYTES + 9]);
        let end = octets.len();
        octets.resize(end + TRAILER, 0);
        envelope.seal(&mut octets, end).expect("there is room");
        assert_eq!(deliver(&mut node, 0, &octets), Some(DONE));
        assert_eq!(node.counters().dropped_malformed, round);
    }
}

/// The answers of each tenant have consecutive sequence numbers of their own.
#[test]
fn answers_are_numbered_within_their_tenant() {
    let mut node = node_of(config(16));
    let mut clients = [1, 2].map(|tenant| Client::new(100 + u64::from(tenant), tenant));
    for round in 1..=3 {
        for client in &mut clients {
            let hello = client.datagram(0, Request::Hello, 0);
            let mut answer = [0; 1500];
            let length = node.on_datagram(Ns(0), &hello, &mut answer);
            let opened = Envelope::open(&answer[..length]).expect("a node seals its answers");
            assert_eq!(opened.envelope.sequence, round);
        }
    }
    let mut first = Client::new(7, 1);
    let facts = NodeFacts {
        epoch: EPOCH,
        page_bytes: 4096,
        data_bytes_max: 1400,
        lifetime_us_max: 10,
        memory: Bytes(16 * PAGE),
        lease_ms: LEASE / 1_000_000,
    };
    assert_eq!(first.ask(&mut node, 0, Request::Hello), Answer::Other(Reply::Facts(facts)));
}

/// The answer to a read may fill the room exactly.
#[test]
fn a_read_fits_where_its_answer_has_exactly_room() {
    let mut node = node_of(config(16));
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, &mut client, 1);
    let exactly = ENVELOPE_BYTES + 16 + 300 + TRAILER;
    for (room, is_read) in [(exactly, true), (exactly - 1, false)] {
        let before = node.counters().executed;
        let read = client.datagram(0, Request::Read { address: at, bytes: 300 }, 0);
        let mut answer = vec![0; room];
        let length = node.on_datagram(Ns(0), &read, &mut answer);
        assert_eq!(
            (length == exactly, node.counters().executed - before),
            (is_read, is_read.into())
        );
    }
}

/// An unknown opcode has a status of its own, whatever else is wrong with the packet.
#[test]
fn an_opcode_that_is_none_is_told_from_a_body_that_is_wrong() {
    let mut node = node_of(config(16));
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let write = client.datagram(0, Request::Write { address: PAGE, data: &[1] }, 0);
    let end = write.len() - TRAILER;
    let mut seen = Vec::new();
    for at in ENVELOPE_BYTES..ENVELOPE_BYTES + 4 {
        let mut octets = write.clone();
        octets[at] = 0xf7;
        client.envelope.seal(&mut octets, end).expect("there is room");
        if let Some(Answer::Other(Reply::Refused(status, 0))) = deliver(&mut node, 0, &octets) {
            seen.push(status);
        }
    }
    assert!(seen.contains(&ClioStatus::UnknownOpcode), "{seen:?}");
}

/// A slow-path request of many slices counts once, when it is done. A request that is refused at
/// its end counts as executed, but not as an operation of the tenant.
#[test]
fn what_takes_many_slices_is_counted_once_at_its_end() {
    let mut node = node_of(config(1 << 14));
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    for round in 1..=2 {
        let call = client.datagram(0, allocation(5_000), 0);
        let before = node.counters();
        assert_eq!(deliver(&mut node, 0, &call), Some(busy(Busy::Running)));
        assert_eq!(node.counters().executed, before.executed, "it has not ended");
        while node.runs_wait() {
            node.tend(Ns(0), 0);
        }
        assert_eq!(node.counters().executed, before.executed + 1);
        assert!(node.counters().slow_slices >= before.slow_slices + 5);
        let done = deliver(&mut node, 0, &call);
        assert!(matches!(done, Some(Answer::Other(Reply::Address(_)))), "{done:?}");
        let expected = operations(&[("create_process", 1), ("allocate", round)]);
        assert_eq!(uses(&node, 0).operations, expected);
    }
}

/// The memory of a bounded number of dead processes is taken back at one time.
#[test]
fn dead_processes_are_taken_back_a_few_at_a_time() {
    let mut node = node_of(NodeConfig { processes_max: 16, ..config(1 << 15) });
    for number in 0..8 {
        let mut client = Client::with_process(&mut node, 0, 100 + number, 1);
        let call = client.datagram(0, allocation(4_000), 0);
        deliver(&mut node, 0, &call);
        while node.runs_wait() {
            node.tend(Ns(0), 0);
        }
    }
    let dead = Ns(LEASE + 1);
    let mut begun = 0;
    while node.sweep(dead) {
        begun += 1;
        assert!(begun <= 4, "all at once");
    }
    assert_eq!((begun, node.counters().lapsed), (4, 4));
    while node.sweep(dead) || node.tend(dead, 0) {}
    assert_eq!((node.processes(), node.counters().lapsed), (0, 8));
    assert_eq!(
        uses(&node, 0),
        TenantUse { operations: uses(&node, 0).operations, ..TenantUse::default() }
    );
}

/// The table of results is full when an operation ends. Its result is still answered to its own
/// process, and gets a place when one is free. It is dropped with the process.
#[test]
fn a_result_without_a_place_is_kept_for_its_caller() {
    let changed = NodeConfig { recent_requests: 8, processes_max: 4, ..config(16) };
    for ends in [false, true] {
        let mut node = node_of(changed.clone());
        node.register("burner", Arc::new(Burner(3)));
        let mut client = Client::with_process(&mut node, 0, 100, 1);
        let mut other = Client::with_process(&mut node, KEEP + 1, 200, 1);
        let mut now = 3 * KEEP;
        let call = Request::Offload { name: "burner", arguments: &[] };
        let [first, second] = [&mut client, &mut other].map(|who| {
            let datagram = who.datagram(now, call, 0);
            assert_eq!(deliver(&mut node, now, &datagram), Some(busy(Busy::Running)));
            datagram
        });
        if ends {
            // Its operation ends with it; the other process's operation goes on.
            let ended = client.ask(&mut node, now, Request::EndProcess);
            assert!(ended == DONE || ended == busy(Busy::Running), "{ended:?}");
        }
        // Unacknowledged requests take every place.
        let full = busy(Busy::Recent);
        let unlock = Request::Unlock { address: PAGE, holder: 1 };
        assert!((0..20).any(|_| other.ask(&mut node, now, unlock) == full), "eight places");
        while node.runs_wait() {
            node.tend(Ns(now), 0);
        }
        let stopped = |answer: &Option<Answer>| {
            let ended = matches!(
                answer,
                Some(
                    Answer::Bytes(_) | Answer::Other(Reply::Refused(ClioStatus::OffloadFailed, _))
                )
            );
            ended && *answer != Some(full.clone())
        };
        let told = deliver(&mut node, now, &second);
        assert!(stopped(&told), "{told:?}");
        assert_eq!(deliver(&mut node, now, &second), told, "as often as it is asked");
        assert_eq!(stopped(&deliver(&mut node, now, &first)), !ends);
        let counted = node.counters().offload_slices;
        // The places are free again: the results move there, and are answered from there.
        now += KEEP - 1;
        node.tend(Ns(now), 0);
        assert_eq!(node.counters().offload_slices, counted, "it is not done again");
    }
}
