//! A node and its clients over a random network that one seed determines.

use std::collections::{BTreeMap, VecDeque};

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_clio::transport::{Client, ClientConfig, Completed, Event, OperationError};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{
    Envelope, Epoch, Permissions, ProcessId, Protection, Request, SenderId, TenantId,
};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const PAGE: u64 = 4096;
const PAGES: u64 = 64;
/// Maximum datagram bytes of any client.
const DATAGRAM_BYTES_MAX: usize = 8972;
const DATAGRAM_BYTES_BASE: usize = 1200;
/// A wake-up after more than this time is ignored.
const LONG: u64 = 100_000 * MS;
const MS: u64 = 1_000_000;
const LIFE: u64 = 2 * MS;
pub(crate) const GIVE_UP: u64 = 400 * MS;

/// The faults, each per thousand datagrams. The time of a way is between the two bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) damaged: u64,
    pub(crate) way_min: u64,
    pub(crate) way_max: u64,
    /// Datagrams that take longer than any datagram lives.
    pub(crate) late: u64,
    /// After this many of a thousand datagrams, no datagram passes for a few milliseconds.
    pub(crate) parted: u64,
    /// Time that a process lives without hearing from its client.
    pub(crate) lease: u64,
    /// Maximum datagram bytes of clients.
    pub(crate) datagram_bytes_max: usize,
    /// Maximum bytes that the path carries to the node, and from it: longer datagrams are lost
    /// silently.
    pub(crate) carries: [usize; 2],
}

/// A task for a client.
pub(crate) enum Task {
    Short(Request<'static>),
    /// Pairs of an address and a number of bytes.
    Gather(Vec<(u64, u64)>),
    Write(u64, Vec<u8>),
}

enum Arrival {
    AtNode { from: usize, datagram: Vec<u8> },
    AtClient { to: usize, datagram: Vec<u8> },
}

pub(crate) struct Network {
    draws: SplitMix64,
    faults: Faults,
    now: u64,
    /// Arrivals by time, and by the order in which they were sent.
    under_way: BTreeMap<(u64, u64), Arrival>,
    sent: u64,
    parted_until: u64,
    node: Node<Vec<u8>>,
    epoch: u32,
    /// The node's clock is ahead of the clients' clocks by this much, and drifts.
    node_ahead: u64,
    clients: Vec<Client>,
    /// For each client: the node's epoch, and the deadline of its latest datagram.
    lives: Vec<(Epoch, Ns)>,
    processes: Vec<ProcessId>,
    ended: VecDeque<(usize, Event)>,
}

fn node(epoch: u32, lease: u64) -> Node<Vec<u8>> {
    let memory = MemoryConfig {
        memory: Bytes(PAGES * PAGE),
        page: PageSize::Kib4,
        tlb_entries: 16,
        fault_buffer_pages: 2,
    };
    let config = NodeConfig {
        memory,
        key: HashKey([u64::from(epoch), 3]),
        epoch: Epoch(epoch),
        sender: SenderId(1 << 60 | u64::from(epoch)),
        protection: Protection::Crc,
        data_bytes_max: 8192,
        processes_max: 64,
        recent_requests: 1 << 10,
        lifetime_max: Ns(LIFE),
        keep: Ns(1000 * MS),
        lease: Ns(lease),
        tenants: vec![(TenantId(1), Quota::UNLIMITED)],
    };
    Node::new(config, vec![0; (PAGES * PAGE) as usize]).expect("a node can be so")
}

fn client(number: usize, datagram_bytes_max: usize) -> Client {
    let config = ClientConfig {
        sender: SenderId(number as u64 + 100),
        tenant: TenantId(1),
        protection: Protection::Crc,
        datagram_bytes_max,
        datagram_bytes_base: DATAGRAM_BYTES_BASE,
        window_max: 64,
        incast_window: Bytes(1 << 16),
        queueing_target: Ns(50_000),
        retry_after_min: Ns(20_000),
        retry_after_max: Ns(2 * MS),
        give_up_after: Ns(GIVE_UP),
    };
    Client::new(config).expect("a client can be so")
}

impl Network {
    /// A network, a node, and clients with a process each.
    pub(crate) fn new(seed: u64, clients: usize, faults: Faults) -> Network {
        let mut draws = SplitMix64::seed_from_u64(seed);
        let node_ahead = draws.next_u64() % (1 << 50);
        let mut network = Network {
            draws,
            faults,
            now: 1,
            under_way: BTreeMap::new(),
            sent: 0,
            parted_until: 0,
            node: node(1, faults.lease),
            epoch: 1,
            node_ahead,
            clients: (0..clients).map(|at| client(at, faults.datagram_bytes_max)).collect(),
            lives: vec![(Epoch::UNKNOWN, Ns::ZERO); clients],
            processes: vec![ProcessId(0); clients],
            ended: VecDeque::new(),
        };
        (0..clients).for_each(|client| network.new_process(client));
        network
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn new_process(&mut self, client: usize) {
        match self.ask(client, Task::Short(Request::CreateProcess)) {
            Ok(Completed::Created(process)) => self.processes[client] = process,
            other => panic!("no process: {other:?}"),
        }
    }

    /// Memory of a client's process.
    pub(crate) fn region(&mut self, client: usize, bytes: u64) -> u64 {
        let permissions = Permissions::READ_WRITE;
        match self.ask(client, Task::Short(Request::Allocate { bytes, at: 0, permissions })) {
            Ok(Completed::Address(address)) => address,
            other => panic!("no memory: {other:?}"),
        }
    }

    /// Allocates memory that all processes share.
    pub(crate) fn shared_region(&mut self, bytes: u64) -> u64 {
        let address = self.region(0, bytes);
        for with in self.processes.clone().into_iter().skip(1) {
            let permissions = Permissions::READ_WRITE;
            let share = Request::Share { address, at: 0, with, permissions };
            assert_eq!(self.ask(0, Task::Short(share)), Ok(Completed::Address(address)));
        }
        address
    }

    /// Replaces a client that dies by another program.
    pub(crate) fn replace_client(&mut self, number: usize) {
        self.clients[number] = client(number + 1000, self.faults.datagram_bytes_max);
        self.lives[number] = (Epoch::UNKNOWN, Ns::ZERO);
        self.new_process(number);
    }

    /// Changes the maximum lengths that the path carries.
    pub(crate) fn carry(&mut self, carries: [usize; 2]) {
        self.faults.carries = carries;
    }

    /// Changes the network's faults.
    pub(crate) fn change(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Maximum bytes of the datagrams of a client's operations.
    pub(crate) fn datagram_bytes(&self, client: usize) -> usize {
        self.clients[client].datagram_bytes()
    }

    pub(crate) fn searches_path(&self, client: usize) -> bool {
        self.clients[client].searches_path()
    }

    /// Number of retries of a client.
    pub(crate) fn retries(&self, client: usize) -> u64 {
        self.clients[client].counters().retries
    }

    pub(crate) fn restart_node(&mut self) {
        self.epoch += 1;
        self.node = node(self.epoch, self.faults.lease);
        self.node_ahead /= 2;
    }

    pub(crate) fn part_for_ever(&mut self) {
        self.parted_until = u64::MAX;
    }

    pub(crate) fn submit(&mut self, client: usize, task: Task) {
        let process = self.processes[client];
        match task {
            Task::Short(request) => self.clients[client].submit(process, request),
            Task::Gather(places) => self.clients[client].submit_gather(process, places.into_iter()),
            Task::Write(address, data) => self.clients[client].submit_write(process, address, data),
        };
        self.transmit(client);
    }

    fn ask(&mut self, client: usize, task: Task) -> Result<Completed, OperationError> {
        self.submit(client, task);
        let (ended, outcome) = self.step().expect("an operation ends");
        assert_eq!(ended, client);
        outcome
    }

    /// Runs until an operation ends; `None` when no work is left.
    pub(crate) fn step(&mut self) -> Option<(usize, Result<Completed, OperationError>)> {
        loop {
            if let Some((client, event)) = self.ended.pop_front() {
                return Some((client, event.outcome));
            }
            let arrives = self.under_way.first_key_value().map(|(&(at, _), _)| at);
            let wakes = self.clients.iter().filter_map(Client::next_wake).map(|at| at.0).min();
            let soon = |at: &u64| *at < self.now + LONG;
            let next = arrives.into_iter().chain(wakes).min().filter(soon)?;
            self.now = self.now.max(next);
            if arrives == Some(next) {
                let (_, arrival) = self.under_way.pop_first().expect("one arrives");
                self.arrive(arrival);
            } else {
                (0..self.clients.len()).for_each(|client| self.transmit(client));
            }
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::AtNode { from, datagram } => {
                let clock = Ns(self.node_ahead + self.now + self.now / 20_000);
                let mut answer = [0; DATAGRAM_BYTES_MAX];
                let length = self.node.on_datagram(clock, &datagram, &mut answer);
                self.node.tend(clock, 1000);
                if length > 0 {
                    let [_, carries] = self.faults.carries;
                    self.send(&answer[..length], carries, |datagram| Arrival::AtClient {
                        to: from,
                        datagram,
                    });
                }
            }
            Arrival::AtClient { to, datagram } => {
                self.clients[to].on_datagram(Ns(self.now), &datagram);
                self.transmit(to);
            }
        }
    }

    fn transmit(&mut self, client: usize) {
        let mut datagram = [0; DATAGRAM_BYTES_MAX];
        loop {
            let length = self.clients[client].poll_transmit(Ns(self.now), &mut datagram);
            if length == 0 {
                break;
            }
            self.check_life(client, &datagram[..length]);
            let [carries, _] = self.faults.carries;
            self.send(&datagram[..length], carries, |datagram| Arrival::AtNode {
                from: client,
                datagram,
            });
        }
        while let Some(event) = self.clients[client].poll_event() {
            self.ended.push_back((client, event));
        }
    }

    /// In one epoch of the node no datagram has an earlier deadline than one before it. An executed
    /// request is forgotten after its last datagram's deadline, so earlier deadlines must be over,
    /// too.
    fn check_life(&mut self, client: usize, datagram: &[u8]) {
        let envelope = Envelope::open(datagram).expect("it is a datagram").envelope;
        let (epoch, latest) = self.lives[client];
        if envelope.epoch == epoch {
            assert!(envelope.clock >= latest, "{:?} after {latest:?}", envelope.clock);
        }
        self.lives[client] = (envelope.epoch, envelope.clock);
    }

    fn happens(&mut self, of_thousand: u64) -> bool {
        self.draws.next_u64() % 1000 < of_thousand
    }

    fn send(&mut self, datagram: &[u8], carries: usize, arrival: impl Fn(Vec<u8>) -> Arrival) {
        let Faults { lost, doubled, damaged, way_min, way_max, late, parted, .. } = self.faults;
        if self.happens(parted) {
            self.parted_until = self.parted_until.max(self.now + self.draws.next_u64() % (8 * MS));
        }
        if self.now < self.parted_until || self.happens(lost) || datagram.len() > carries {
            return;
        }
        let copies = if self.happens(doubled) { 2 + self.draws.next_u64() % 2 } else { 1 };
        for _ in 0..copies {
            let mut copy = datagram.to_owned();
            if self.happens(damaged) {
                match self.draws.next_u64() % 3 {
                    0 => copy.truncate(self.draws.next_u64() as usize % copy.len()),
                    _ => {
                        let bit = self.draws.next_u64() as usize % (copy.len() * 8);
                        copy[bit / 8] ^= 1 << (bit % 8);
                    }
                }
            }
            let late =
                if self.happens(late) { LIFE + self.draws.next_u64() % (8 * LIFE) } else { 0 };
            let way = late + way_min + self.draws.next_u64() % (way_max - way_min);
            self.sent += 1;
            self.under_way.insert((self.now + way, self.sent), arrival(copy));
        }
    }
}
