//! A client of a node without a network between them: the test writes, keeps and delivers the
//! datagrams.

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{
    ENVELOPE_BYTES, Envelope, Epoch, ProcessId, Protection, Reply, Request, RequestId,
    RequestPacket, ResponsePacket, SenderId, TenantId,
};

pub(crate) const PAGE: u64 = 4096;
pub(crate) const EPOCH: Epoch = Epoch(41);
pub(crate) const LIFETIME: u64 = 10_000;
pub(crate) const KEEP: u64 = 1_000_000;
pub(crate) const LEASE: u64 = 5_000_000;

pub(crate) type VecNode = Node<Vec<u8>>;

pub(crate) fn config(pages: u64) -> NodeConfig {
    NodeConfig {
        memory: MemoryConfig {
            memory: Bytes(pages * PAGE),
            page: PageSize::Kib4,
            tlb_entries: 16,
            fault_buffer_pages: 8,
        },
        key: HashKey([11, 12]),
        epoch: EPOCH,
        sender: SenderId(u64::MAX),
        protection: Protection::Crc,
        data_bytes_max: 1400,
        processes_max: 4,
        recent_requests: 64,
        lifetime_max: Ns(LIFETIME),
        keep: Ns(KEEP),
        lease: Ns(LEASE),
        tenants: vec![(TenantId(1), Quota::UNLIMITED), (TenantId(2), Quota::UNLIMITED)],
    }
}

pub(crate) fn node_of(config: NodeConfig) -> VecNode {
    let bytes = vec![0; config.memory.memory.0 as usize];
    Node::new(config, bytes).expect("a node can be so")
}

/// A copy of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Bytes(Vec<u8>),
    Other(Reply<'static>),
}

pub(crate) struct Client {
    pub(crate) envelope: Envelope,
    pub(crate) process: ProcessId,
    /// The number of the last request.
    pub(crate) last: u64,
}

impl Client {
    pub(crate) fn new(sender: u64, tenant: u16) -> Client {
        let envelope = Envelope {
            protection: Protection::Crc,
            tenant: TenantId(tenant),
            epoch: EPOCH,
            sender: SenderId(sender),
            sequence: 0,
            clock: Ns::ZERO,
        };
        Client { envelope, process: ProcessId(0), last: 0 }
    }

    /// A client with a process of its own.
    pub(crate) fn with_process(node: &mut VecNode, now: u64, sender: u64, tenant: u16) -> Client {
        let mut client = Client::new(sender, tenant);
        let created = client.ask(node, now, Request::CreateProcess);
        let Answer::Other(Reply::Created(process)) = created else {
            panic!("no process: {created:?}");
        };
        client.process = process;
        client
    }

    /// A datagram with one new request that acknowledges another. It may be delivered until its
    /// deadline.
    pub(crate) fn datagram(&mut self, now: u64, body: Request<'_>, acknowledged: u64) -> Vec<u8> {
        self.last += 1;
        self.envelope.sequence += 1;
        self.envelope.clock = Ns(now + LIFETIME);
        let packet = RequestPacket {
            attempt: 0,
            process: self.process,
            request: RequestId(self.last),
            acknowledged: RequestId(acknowledged),
            body,
        };
        seal(&self.envelope, &packet)
    }

    pub(crate) fn ask(&mut self, node: &mut VecNode, now: u64, body: Request<'_>) -> Answer {
        let datagram = self.datagram(now, body, 0);
        deliver(node, now, &datagram).expect("every request is answered")
    }
}

pub(crate) fn seal(envelope: &Envelope, packet: &RequestPacket<'_>) -> Vec<u8> {
    let mut octets = vec![0; 2048];
    let front = envelope.emit(&mut octets).expect("there is room");
    let end = front + packet.emit(&mut octets[front..]).expect("there is room");
    let length = envelope.seal(&mut octets, end).expect("there is room");
    octets.truncate(length);
    octets
}

/// The answer to a datagram of one request.
pub(crate) fn deliver(node: &mut VecNode, now: u64, datagram: &[u8]) -> Option<Answer> {
    let mut answer = [0; 1500];
    let length = node.on_datagram(Ns(now), datagram, &mut answer);
    if length == 0 {
        return None;
    }
    let opened = Envelope::open(&answer[..length]).expect("a node seals its answers");
    assert_eq!((opened.envelope.epoch.0 > 0, opened.envelope.clock), (true, Ns(now)));
    assert!(opened.packets.start == ENVELOPE_BYTES);
    let mut packets = ResponsePacket::packets(&answer[opened.packets]);
    let packet = packets.next().expect("an answer has a packet").expect("and it can be read");
    assert!(packets.next().is_none(), "one answer to one request");
    Some(match packet.reply {
        Reply::Bytes(bytes) => Answer::Bytes(bytes.to_vec()),
        Reply::Done => Answer::Other(Reply::Done),
        Reply::OwnerDied => Answer::Other(Reply::OwnerDied),
        Reply::Word(word) => Answer::Other(Reply::Word(word)),
        Reply::Address(address) => Answer::Other(Reply::Address(address)),
        Reply::Created(process) => Answer::Other(Reply::Created(process)),
        Reply::Facts(facts) => Answer::Other(Reply::Facts(facts)),
        Reply::Padding(zeros) => Answer::Other(Reply::Padding(zeros)),
        Reply::Refused(status, detail) => Answer::Other(Reply::Refused(status, detail)),
    })
}
