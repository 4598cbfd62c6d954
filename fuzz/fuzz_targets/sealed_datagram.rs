//! Datagrams of a node with keys. What was not made with one is never answered; packets of any
//! octets that were are answered by what the client can open and read.
#![no_main]

use std::cell::RefCell;

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_udp::seal::{ClientSeal, NodeSeal, TenantKey};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{
    ENVELOPE_BYTES, Envelope, Epoch, Protection, ResponsePacket, SenderId, TenantId,
};

const TENANT: TenantId = TenantId(1);
const KEY: TenantKey = TenantKey([7; 32]);
const NODE: SenderId = SenderId(77);
const CLIENT: SenderId = SenderId(5);
const EPOCH: Epoch = Epoch(9);
const LIFETIME: u64 = 100_000;
const MEMORY_BYTES: usize = 64 << 12;

struct Side {
    node: Node<Vec<u8>>,
    seal: NodeSeal,
    client: ClientSeal,
    now: u64,
}

impl Side {
    fn new() -> Side {
        let config = NodeConfig {
            memory: MemoryConfig {
                memory: Bytes(MEMORY_BYTES as u64),
                page: PageSize::Kib4,
                tlb_entries: 16,
                fault_buffer_pages: 8,
            },
            key: HashKey([3, 4]),
            epoch: EPOCH,
            sender: NODE,
            protection: Protection::Gcm,
            data_bytes_max: 1400,
            processes_max: 16,
            recent_requests: 64,
            lifetime_max: Ns(LIFETIME),
            keep: Ns(10 * LIFETIME),
            lease: Ns(100 * LIFETIME),
            tenants: vec![(TENANT, Quota::UNLIMITED)],
        };
        Side {
            node: Node::new(config, vec![0; MEMORY_BYTES]).expect("it can be so"),
            seal: NodeSeal::new(&[(TENANT, KEY)], NODE, [5, 6], 64),
            client: ClientSeal::new(TENANT, &KEY, CLIENT),
            now: 1,
        }
    }

    fn give(&mut self, datagram: &mut [u8]) -> Vec<u8> {
        let mut answer = vec![0; 2048];
        let now = Ns(self.now);
        let bytes = self.node.on_sealed(now, datagram, &mut answer, &mut self.seal);
        self.node.tend(now, 1 << 12);
        answer.truncate(bytes);
        answer
    }

    /// A datagram with these packets, as the client makes it.
    fn made(&mut self, packets: &[u8]) -> Vec<u8> {
        self.now += 1_000;
        let envelope = Envelope {
            protection: Protection::Gcm,
            tenant: TENANT,
            epoch: EPOCH,
            sender: CLIENT,
            sequence: self.now,
            clock: Ns(self.now + LIFETIME),
        };
        let trailer = Protection::Gcm.trailer_bytes();
        let mut datagram = vec![0; ENVELOPE_BYTES + packets.len() + trailer];
        envelope.emit(&mut datagram).expect("there is room");
        datagram[ENVELOPE_BYTES..][..packets.len()].copy_from_slice(packets);
        self.client.seal(&mut datagram).expect("it is whole");
        datagram
    }
}

thread_local! {
    /// One node for all inputs: it must live through any of them.
    static SIDE: RefCell<Side> = RefCell::new(Side::new());
}

libfuzzer_sys::fuzz_target!(|input: (Option<(u16, u8)>, bool, &[u8])| {
    let (change, is_raw, octets) = input;
    let octets = &octets[..octets.len().min(1400)];
    SIDE.with_borrow_mut(|side| {
        if is_raw {
            assert!(side.give(&mut octets.to_vec()).is_empty(), "it has no key");
            return;
        }
        let mut datagram = side.made(octets);
        if let Some((at, flip)) = change.filter(|(_, flip)| *flip != 0) {
            let at = usize::from(at) % datagram.len();
            datagram[at] ^= flip;
            assert!(side.give(&mut datagram).is_empty(), "octet {at} was changed");
            return;
        }
        let mut answer = side.give(&mut datagram.clone());
        assert!(side.give(&mut datagram).is_empty(), "it came before");
        if answer.is_empty() {
            return;
        }
        let opened = side.client.open(&mut answer).expect("the node has sealed it");
        for packet in ResponsePacket::packets(&answer[opened.packets]) {
            packet.expect("a node writes what can be read");
        }
    });
});
