//! Encrypted datagrams: one that was not made with a tenant's key, or is a replay, has no effect
//! and no response, and is counted. Client, keys and node are real; the test is the network.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, NodeCounters, Quota};
use ethermem_clio::transport::{Client, ClientConfig, Completed, OperationError};
use ethermem_udp::seal::{ClientSeal, NodeSeal, TenantKey};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{
    ClioStatus, ENVELOPE_BYTES, Envelope, Epoch, Permissions, ProcessId, Protection, Request,
    SenderId, TenantId,
};

const PAGE: u64 = 4096;
const NODE: SenderId = SenderId(77);
const TENANTS: [(TenantId, TenantKey); 2] =
    [(TenantId(1), TenantKey([1; 32])), (TenantId(2), TenantKey([2; 32]))];
const TRAILER: usize = 16;
const DATAGRAM: usize = 1472;

struct Side {
    node: Node<Vec<u8>>,
    seal: NodeSeal,
    now: Ns,
}

impl Side {
    fn new(quota: Quota) -> Side {
        Side::with_senders(quota, 64)
    }

    fn with_senders(quota: Quota, senders: usize) -> Side {
        Side::of_node(NODE, quota, senders)
    }

    fn of_node(sender: SenderId, quota: Quota, senders: usize) -> Side {
        let config = NodeConfig {
            memory: MemoryConfig {
                memory: Bytes(64 * PAGE),
                page: PageSize::Kib4,
                tlb_entries: 16,
                fault_buffer_pages: 8,
            },
            key: HashKey([3, 4]),
            epoch: Epoch(9),
            sender,
            protection: Protection::Gcm,
            data_bytes_max: 1400,
            processes_max: 16,
            recent_requests: 64,
            lifetime_max: Ns(100_000),
            keep: Ns(10_000_000),
            lease: Ns(u64::MAX),
            tenants: TENANTS.map(|(tenant, _)| (tenant, quota)).to_vec(),
        };
        let node = Node::new(config, vec![0; 64 * PAGE as usize]).unwrap();
        let seal = NodeSeal::new(&TENANTS, sender, [5, 6], senders);
        Side { node, seal, now: Ns(1_000) }
    }

    /// The node's response.
    fn give(&mut self, datagram: &[u8]) -> Vec<u8> {
        let (mut datagram, mut answer) = (datagram.to_vec(), vec![0; DATAGRAM]);
        self.now.0 += 1_000;
        let bytes = self.node.on_sealed(self.now, &mut datagram, &mut answer, &mut self.seal);
        self.node.tend(self.now, 1 << 16);
        answer.truncate(bytes);
        answer
    }

    fn counters(&self) -> NodeCounters {
        self.node.counters()
    }

    /// Checks that a datagram is dropped: no response, nothing executed, and one counter is one
    /// more.
    fn drops(&mut self, datagram: &[u8], counter: fn(&NodeCounters) -> u64, what: &str) {
        let before = self.counters();
        assert_eq!(self.give(datagram), Vec::<u8>::new(), "{what}: answered");
        let after = self.counters();
        assert_eq!(counter(&after), counter(&before) + 1, "{what}: {after:?}");
        assert_eq!((after.requests, after.executed), (before.requests, before.executed), "{what}");
        assert_eq!(after.datagrams, before.datagrams + 1, "{what}");
    }
}

struct Person {
    client: Client,
    seal: ClientSeal,
    process: ProcessId,
}

impl Person {
    fn new(tenant: u16, key: &TenantKey, sender: u64) -> Person {
        let config = ClientConfig {
            sender: SenderId(sender),
            tenant: TenantId(tenant),
            protection: Protection::Gcm,
            datagram_bytes_max: DATAGRAM,
            datagram_bytes_base: DATAGRAM,
            window_max: 8,
            incast_window: Bytes(1 << 20),
            queueing_target: Ns(1_000_000),
            retry_after_min: Ns(50_000),
            retry_after_max: Ns(100_000),
            give_up_after: Ns(1_000_000),
        };
        let client = Client::new(config).unwrap();
        let seal = ClientSeal::new(TenantId(tenant), key, SenderId(sender));
        Person { client, seal, process: ProcessId(0) }
    }

    /// A client with a process and a page, whose address is returned.
    fn settled(side: &mut Side, tenant: u16, sender: u64) -> (Person, u64) {
        let key = &TENANTS[usize::from(tenant) - 1].1;
        let mut person = Person::new(tenant, key, sender);
        let Ok(Completed::Created(process)) = person.ask(side, Request::CreateProcess) else {
            panic!("no process");
        };
        person.process = process;
        let allocate =
            Request::Allocate { bytes: PAGE, at: 0, permissions: Permissions::READ_WRITE };
        let Ok(Completed::Address(address)) = person.ask(side, allocate) else {
            panic!("no memory");
        };
        (person, address)
    }

    fn next_datagram(&mut self, now: Ns) -> Option<Vec<u8>> {
        let mut octets = vec![0; DATAGRAM];
        let bytes = self.client.poll_transmit(now, &mut octets);
        octets.truncate(bytes);
        (bytes > 0).then(|| {
            self.seal.seal(&mut octets).unwrap();
            octets
        })
    }

    fn hear(&mut self, now: Ns, answer: &[u8]) -> bool {
        let mut answer = answer.to_vec();
        let opened = self.seal.open(&mut answer);
        if let Some(sealed) = &opened {
            self.client.on_packets(now, &sealed.envelope, &answer[sealed.packets.clone()]);
        }
        opened.is_some()
    }

    fn ask(
        &mut self,
        side: &mut Side,
        request: Request<'static>,
    ) -> Result<Completed, OperationError> {
        let id = self.client.submit(self.process, request);
        self.finish(side, id)
    }

    fn write(&mut self, side: &mut Side, address: u64, data: &[u8]) {
        let id = self.client.submit_write(self.process, address, data.to_vec());
        assert_eq!(self.finish(side, id), Ok(Completed::Done));
    }

    fn finish(
        &mut self,
        side: &mut Side,
        id: ethermem_clio::transport::OperationId,
    ) -> Result<Completed, OperationError> {
        loop {
            while let Some(datagram) = self.next_datagram(side.now) {
                let answer = side.give(&datagram);
                assert!(answer.is_empty() || self.hear(side.now, &answer), "an answer is good");
            }
            while let Some(event) = self.client.poll_event() {
                if event.operation == id {
                    return event.outcome;
                }
            }
            side.now = self.client.next_wake().unwrap_or(side.now).max(side.now);
        }
    }
}

fn side() -> Side {
    Side::new(Quota::UNLIMITED)
}

/// A datagram that the node would execute if it arrived unchanged.
fn good(person: &mut Person, side: &Side, address: u64) -> Vec<u8> {
    person.client.submit_write(person.process, address, vec![9; 24]);
    person.next_datagram(side.now).expect("there is a write to send")
}

#[test]
fn what_is_written_is_read_and_nobody_between_sees_it() {
    let mut side = side();
    let (mut person, address) = Person::settled(&mut side, 1, 100);
    let secret = *b"not for the network's eyes";
    person.client.submit_write(person.process, address, secret.to_vec());
    let datagram = person.next_datagram(side.now).unwrap();
    let seen = |octets: &[u8]| octets.windows(8).any(|part| part == &secret[..8]);
    assert!(!seen(&datagram));
    let answer = side.give(&datagram);
    assert!(person.hear(side.now, &answer));
    let read = Request::Read { address, bytes: secret.len() as u32 };
    let id = person.client.submit(person.process, read);
    let datagram = person.next_datagram(side.now).unwrap();
    let answer = side.give(&datagram);
    assert!(!seen(&answer) && answer.len() > secret.len());
    assert!(person.hear(side.now, &answer));
    let events: Vec<_> = core::iter::from_fn(|| person.client.poll_event()).collect();
    let event = events.iter().find(|event| event.operation == id).unwrap();
    assert_eq!(event.outcome, Ok(Completed::Bytes(secret.to_vec())));
}

#[test]
fn a_bit_that_flips_anywhere_is_found() {
    let mut side = side();
    let (mut person, address) = Person::settled(&mut side, 1, 100);
    let datagram = good(&mut person, &side, address);
    for at in 0..datagram.len() {
        for bit in 0..8 {
            let mut changed = datagram.clone();
            changed[at] ^= 1 << bit;
            let counter: fn(&NodeCounters) -> u64 = match at {
                0 => |counters| counters.dropped_malformed,
                // Protections 0 and 3 to 255.
                1 => |counters| counters.dropped_protection + counters.dropped_malformed,
                // The other number may be a tenant's too, but with another key.
                2 | 3 => |counters| counters.dropped_tenant + counters.dropped_corrupt,
                _ => |counters| counters.dropped_corrupt + counters.dropped_replayed,
            };
            side.drops(&changed, counter, &format!("octet {at}, bit {bit}"));
        }
    }
    assert!(!side.give(&datagram).is_empty(), "as it was made it is good");
}

#[test]
fn a_datagram_cut_short_or_made_longer_is_dropped() {
    let mut side = side();
    let (mut person, address) = Person::settled(&mut side, 1, 100);
    let datagram = good(&mut person, &side, address);
    for length in 0..datagram.len() {
        let counter: fn(&NodeCounters) -> u64 = if length < ENVELOPE_BYTES + TRAILER {
            |counters| counters.dropped_malformed
        } else {
            |counters| counters.dropped_corrupt
        };
        side.drops(&datagram[..length], counter, &format!("{length} octets"));
    }
    let longer = [&datagram[..], &[0]].concat();
    side.drops(&longer, |counters| counters.dropped_corrupt, "an octet more");
}

#[test]
fn who_has_no_key_or_another_tenants_is_not_answered() {
    let mut side = side();
    for (tenant, key, what) in [
        (1, TenantKey([3; 32]), "a key that nobody has"),
        (1, TENANTS[1].1, "the key of tenant 2"),
        (2, TENANTS[0].1, "the key of tenant 1"),
    ] {
        let mut person = Person::new(tenant, &key, 5);
        person.client.submit(ProcessId(0), Request::CreateProcess);
        let hello = person.next_datagram(side.now).unwrap();
        side.drops(&hello, |counters| counters.dropped_corrupt, what);
    }
    let mut nobody = Person::new(3, &TENANTS[0].1, 5);
    nobody.client.submit(ProcessId(0), Request::CreateProcess);
    let hello = nobody.next_datagram(side.now).unwrap();
    side.drops(&hello, |counters| counters.dropped_tenant, "a tenant that is none");
    let mut clear = hello;
    clear[1] = Protection::Carrier as u8;
    side.drops(&clear, |counters| counters.dropped_protection, "in clear");
}

#[test]
fn a_datagram_that_comes_again_is_dropped_and_late_ones_in_the_window_are_not() {
    let mut side = side();
    let (mut person, address) = Person::settled(&mut side, 1, 100);
    let early = good(&mut person, &side, address);
    let late = good(&mut person, &side, address);
    assert!(!side.give(&late).is_empty() && !side.give(&early).is_empty(), "overtaken, not lost");
    for datagram in [&early, &late] {
        side.drops(datagram, |counters| counters.dropped_replayed, "a copy");
    }
}

/// Senders are spread over the cache's entries: each keeps its state beside the others.
#[test]
fn as_many_senders_as_there_is_room_for_are_known_beside_each_other() {
    let mut side = side();
    let writes: Vec<Vec<u8>> = (200..208)
        .map(|sender| {
            let (mut person, address) = Person::settled(&mut side, 1, sender);
            let write = good(&mut person, &side, address);
            assert!(!side.give(&write).is_empty());
            write
        })
        .collect();
    for write in &writes {
        side.drops(write, |counters| counters.dropped_replayed, "a copy");
    }
}

/// A restarted node has another name, and keys that depend on it.
#[test]
fn a_node_that_starts_anew_is_heard_and_its_replays_are_known() {
    let mut side = side();
    let (mut person, address) = Person::settled(&mut side, 1, 100);
    let request = good(&mut person, &side, address);
    for node in [78, 79].map(SenderId) {
        let mut life = Side::of_node(node, Quota::UNLIMITED, 64);
        let answer = life.give(&request);
        assert!(!answer.is_empty(), "{node:?} answers");
        assert!(person.hear(life.now, &answer), "{node:?} is heard");
        assert!(!person.hear(life.now, &answer), "a copy of {node:?}'s");
    }
}

/// If there are more senders than cache entries, a replay may be taken for new. The node executes
/// nothing twice, and after the request's lifetime executes it never.
#[test]
fn a_copy_that_the_window_forgot_changes_nothing() {
    let mut side = Side::with_senders(Quota::UNLIMITED, 1);
    let (mut person, address) = Person::settled(&mut side, 1, 100);
    let write = good(&mut person, &side, address);
    assert!(!side.give(&write).is_empty());
    // Other senders take all four entries.
    for sender in 200..208 {
        Person::settled(&mut side, 2, sender);
        if sender == 203 {
            let executed = side.counters().executed;
            assert!(!side.give(&write).is_empty(), "a copy in its life is answered");
            assert_eq!((side.counters().executed, side.counters().repeated), (executed, 1));
        }
        side.now.0 += u64::from(sender == 203) * 1_000_000;
    }
    let executed = side.counters().executed;
    assert!(!side.give(&write).is_empty());
    assert_eq!((side.counters().executed, side.counters().expired), (executed, 1));
}

#[test]
fn no_answer_passes_for_a_request_and_none_is_good_for_another_client() {
    let mut side = side();
    let (mut one, address) = Person::settled(&mut side, 1, 100);
    let (mut other, _) = Person::settled(&mut side, 1, 101);
    let request = good(&mut one, &side, address);
    assert!(!one.hear(side.now, &request), "its own request, sent back");
    let answer = side.give(&request);
    side.drops(&answer, |counters| counters.dropped_corrupt, "an answer, sent back");
    // The node's own name as a client's: the key is that of the other direction.
    let mut reflected = answer.clone();
    reflected[8..16].copy_from_slice(&100_u64.to_le_bytes());
    side.drops(&reflected, |counters| counters.dropped_corrupt, "an answer, as the client's");
    assert!(!other.hear(side.now, &answer), "to another client of the tenant");
    for at in 0..answer.len() {
        let mut changed = answer.clone();
        changed[at] ^= 1;
        assert!(!one.hear(side.now, &changed), "octet {at} changed");
    }
    assert!(one.hear(side.now, &answer), "as it was made");
    assert!(!one.hear(side.now, &answer), "a copy of it");
}

#[test]
fn a_process_is_its_tenants_alone() {
    let mut side = side();
    // Process numbers count within a tenant: this tenant's second process has a number that the
    // other lacks.
    Person::settled(&mut side, 1, 99);
    let (mut one, address) = Person::settled(&mut side, 1, 100);
    one.write(&mut side, address, b"private!");
    let (mut other, own) = Person::settled(&mut side, 2, 200);
    let process = one.process;
    assert_ne!(process, other.process);
    for request in [
        Request::Read { address, bytes: 8 },
        Request::Free { address },
        Request::EndProcess,
        Request::Share { address, at: 0, with: process, permissions: Permissions::READ },
    ] {
        let as_the_other = core::mem::replace(&mut other.process, process);
        let refused = other.ask(&mut side, request);
        other.process = as_the_other;
        let status = ClioStatus::NoSuchProcess;
        let detail = process.0.into();
        assert_eq!(refused, Err(OperationError::Refused { status, detail, at: 0 }), "{request:?}");
    }
    // Nor can it be granted another tenant's memory.
    let share =
        Request::Share { address: own, at: 0, with: process, permissions: Permissions::READ };
    let refused = other.ask(&mut side, share);
    assert!(
        matches!(refused, Err(OperationError::Refused { status: ClioStatus::NoSuchProcess, .. })),
        "{refused:?}"
    );
    let read = one.ask(&mut side, Request::Read { address, bytes: 8 });
    assert_eq!(read, Ok(Completed::Bytes(b"private!".to_vec())));
}

#[test]
fn a_tenant_gets_its_quota_and_no_more() {
    let quota = Quota { memory_bytes: 3 * PAGE, processes: 2, ..Quota::UNLIMITED };
    let mut side = Side::new(quota);
    let (mut person, address) = Person::settled(&mut side, 1, 100);
    let (mut second, _) = Person::settled(&mut side, 1, 101);
    let allocate = |bytes| Request::Allocate { bytes, at: 0, permissions: Permissions::READ_WRITE };
    let over =
        |left| Err(OperationError::Refused { status: ClioStatus::Quota, detail: left, at: 0 });
    assert_eq!(second.ask(&mut side, allocate(2 * PAGE)), over(PAGE), "of all its processes");
    let mut third = Person::new(1, &TENANTS[0].1, 102);
    assert_eq!(third.ask(&mut side, Request::CreateProcess), over(0));
    assert_eq!(person.ask(&mut side, Request::Free { address }), Ok(Completed::Done));
    assert!(second.ask(&mut side, allocate(2 * PAGE)).is_ok(), "what is given back is there");
    assert!(Person::settled(&mut side, 2, 200).1 > 0, "another tenant has its own");
}

#[test]
fn requests_over_the_rate_wait_and_are_counted() {
    let quota = Quota { requests_per_s: 10_000, ..Quota::UNLIMITED };
    let mut side = Side::new(quota);
    let (mut person, address) = Person::settled(&mut side, 1, 100);
    let began = side.now;
    for _ in 0..10_498 {
        let read = person.ask(&mut side, Request::Read { address, bytes: 8 });
        assert_eq!(read, Ok(Completed::Bytes(vec![0; 8])));
    }
    // The first second's quota is available at once; two of it went to the process and its memory.
    // Each of the other five hundred takes a tenth of a millisecond.
    let took = side.now.saturating_sub(began).0;
    assert!((49_900_000..100_000_000).contains(&took), "{took} ns");
    assert!(side.counters().over_rate > 100);
    assert!(Person::settled(&mut side, 2, 200).1 > 0, "another tenant has its own rate");
}

#[test]
fn an_envelope_is_not_secret_and_says_nothing_of_the_packets() {
    let mut side = side();
    let (mut person, address) = Person::settled(&mut side, 1, 100);
    let datagram = good(&mut person, &side, address);
    let envelope = Envelope::open(&datagram).unwrap().envelope;
    assert_eq!((envelope.tenant, envelope.sender), (TenantId(1), SenderId(100)));
    // An equal request is sealed to other octets.
    let again = good(&mut person, &side, address);
    assert_ne!(datagram[ENVELOPE_BYTES..], again[ENVELOPE_BYTES..]);
}

/// Good and forged datagrams allocate nothing, from known and unknown senders.
#[test]
fn opening_and_sealing_allocates_nothing() {
    let mut side = side();
    let (mut person, address) = Person::settled(&mut side, 1, 100);
    let mut datagrams: Vec<Vec<u8>> = (0..8).map(|_| good(&mut person, &side, address)).collect();
    let mut forged = datagrams.clone();
    for (at, datagram) in forged.iter_mut().enumerate() {
        datagram[8] ^= 1 << at;
    }
    let mut answer = vec![0; DATAGRAM];
    let counted = allocation_counter::measure(|| {
        for datagram in datagrams.iter_mut().chain(&mut forged) {
            side.node.on_sealed(side.now, datagram, &mut answer, &mut side.seal);
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
    assert_eq!(side.counters().dropped_corrupt, 8);
}

/// A sender's number is in clear, and a tenant may choose its clients' numbers.
#[test]
fn no_client_gets_the_answer_to_another_tenants_request() {
    let mut side = side();
    let (one, _) = Person::settled(&mut side, 1, 100);
    let (other, _) = Person::settled(&mut side, 2, 100);
    // Both processes were created, though sender, request and so the number are equal.
    assert_eq!((one.process, side.node.processes()), (other.process, 2));
    assert_eq!(side.counters().repeated, 0);
}
