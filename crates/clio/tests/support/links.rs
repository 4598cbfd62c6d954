//! A node and one client with several links between them. Each link has a rate, a queue, a delay,
//! and losses; it can go down and come up. One seed determines everything.

use std::collections::{BTreeMap, VecDeque};

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_clio::transport::{
    Client, ClientConfig, Completed, Event, OperationError, PathId, PathLengths,
};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{Epoch, Permissions, ProcessId, Protection, Request, SenderId, TenantId};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000 * US;
const DATAGRAM_BYTES: usize = 1472;
const PAGES: u64 = 256;
/// Octets of headers on the wire for each datagram.
const HEADERS: u64 = 28 + 38;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Time in ns per octet: 8 is 1 Gb/s.
    pub(crate) ns_per_octet: u64,
    pub(crate) way: u64,
    /// A datagram may take this much longer, so that datagrams of the link overtake each other.
    pub(crate) jitter: u64,
    /// Losses and copies per thousand datagrams.
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    /// Longest queue, as time; a datagram beyond it is dropped.
    pub(crate) queue: u64,
    pub(crate) is_up: bool,
}

impl Link {
    /// 1 Gb/s, 30 us a way, and a queue of 2 ms.
    pub(crate) const GIGABIT: Link = Link {
        ns_per_octet: 8,
        way: 30 * US,
        jitter: 0,
        lost: 0,
        doubled: 0,
        queue: 2 * MS,
        is_up: true,
    };
}

struct Arrival {
    link: usize,
    to_node: bool,
    datagram: Vec<u8>,
}

pub(crate) struct World {
    draws: SplitMix64,
    pub(crate) links: Vec<Link>,
    /// Until when each link is busy in each direction.
    busy: Vec<[u64; 2]>,
    pub(crate) client: Client,
    node: Node<Vec<u8>>,
    under_way: BTreeMap<(u64, u64), Arrival>,
    sent: u64,
    pub(crate) now: u64,
    pub(crate) process: ProcessId,
    ended: VecDeque<Event>,
    /// Changes of links that are still to come, in order of their times.
    pub(crate) changes: VecDeque<(u64, usize, Link)>,
    /// True if the carrier reports a link that is down, as a socket does.
    pub(crate) reports: bool,
}

impl World {
    pub(crate) fn new(seed: u64, links: &[Link]) -> World {
        let lengths = PathLengths { base: DATAGRAM_BYTES, most: DATAGRAM_BYTES };
        let config = ClientConfig {
            sender: SenderId(seed | 1),
            tenant: TenantId(1),
            protection: Protection::Crc,
            datagram_bytes_max: DATAGRAM_BYTES,
            datagram_bytes_base: DATAGRAM_BYTES,
            window_max: 256,
            incast_window: Bytes(4 << 20),
            queueing_target: Ns(200 * US),
            retry_after_min: Ns(40 * US),
            retry_after_max: Ns(100 * MS),
            give_up_after: Ns(2000 * MS),
        };
        let client = Client::with_paths(config, &vec![lengths; links.len()]);
        World {
            draws: SplitMix64::seed_from_u64(seed),
            links: links.to_vec(),
            busy: vec![[0; 2]; links.len()],
            client: client.expect("so many paths may be"),
            node: node(),
            under_way: BTreeMap::new(),
            sent: 0,
            now: 1,
            process: ProcessId(0),
            ended: VecDeque::new(),
            changes: VecDeque::new(),
            reports: false,
        }
    }

    /// Makes a process, and memory for it, and returns the address of the memory.
    pub(crate) fn begin(&mut self, bytes: u64) -> u64 {
        self.client.submit(self.process, Request::CreateProcess);
        match self.next_event().outcome {
            Ok(Completed::Created(process)) => self.process = process,
            other => panic!("no process: {other:?}"),
        }
        let permissions = Permissions::READ_WRITE;
        self.client.submit(self.process, Request::Allocate { bytes, at: 0, permissions });
        match self.next_event().outcome {
            Ok(Completed::Address(address)) => address,
            other => panic!("no memory: {other:?}"),
        }
    }

    pub(crate) fn draw(&mut self, below: u64) -> u64 {
        self.draws.next_u64() % below.max(1)
    }

    /// Changes a link at a time to come.
    pub(crate) fn change_at(&mut self, at: u64, link: usize, change: impl Fn(&mut Link)) {
        let latest = self.changes.iter().rev().find(|(_, of, _)| *of == link);
        let mut changed = latest.map_or(self.links[link], |(_, _, changed)| *changed);
        change(&mut changed);
        self.changes.push_back((at, link, changed));
        self.changes.make_contiguous().sort_by_key(|(at, _, _)| *at);
    }

    /// Runs until an operation ends.
    pub(crate) fn next_event(&mut self) -> Event {
        self.transmit();
        loop {
            if let Some(event) = self.ended.pop_front() {
                return event;
            }
            assert!(self.step(u64::MAX), "an operation ends");
        }
    }

    /// Runs up to a time, without a new operation.
    pub(crate) fn run_until(&mut self, end: u64) {
        self.transmit();
        while self.step(end) {}
        self.now = end;
    }

    /// Processes what comes next, if it comes before `end`.
    fn step(&mut self, end: u64) -> bool {
        let arrives = self.under_way.first_key_value().map(|(&(at, _), _)| at);
        let wakes = self.client.next_wake().map(|at| at.0.max(self.now));
        let changes = self.changes.front().map(|&(at, _, _)| at);
        let times = [arrives, wakes, changes].into_iter().flatten();
        let Some(next) = times.min().filter(|&next| next < end) else { return false };
        assert!(next < self.now + 100_000 * MS, "nothing goes on");
        self.now = self.now.max(next);
        if changes == Some(next) {
            let (_, link, changed) = self.changes.pop_front().expect("one is due");
            self.links[link] = changed;
        } else if arrives == Some(next) {
            let (_, arrival) = self.under_way.pop_first().expect("one arrives");
            self.arrive(arrival);
        } else {
            let before = (self.sent, self.ended.len(), self.client.next_wake());
            self.transmit();
            let after = (self.sent, self.ended.len(), self.client.next_wake());
            // A wake-up that changes nothing would be a loop for ever.
            assert!(before != after, "woken for nothing at {}", self.now);
        }
        true
    }

    fn arrive(&mut self, Arrival { link, to_node, datagram }: Arrival) {
        if !self.links[link].is_up {
            return;
        }
        if to_node {
            let clock = Ns(self.now + 77 * MS);
            let mut answer = [0; DATAGRAM_BYTES];
            let length = self.node.on_datagram(clock, &datagram, &mut answer);
            self.node.tend(clock, 1000);
            if length > 0 {
                self.send(link, false, &answer[..length]);
            }
        } else {
            self.client.on_datagram_from(Ns(self.now), PathId::new(link), &datagram);
            self.transmit();
        }
    }

    pub(crate) fn transmit(&mut self) {
        let now = Ns(self.now);
        let mut datagram = [0; DATAGRAM_BYTES];
        while let Some(path) = self.client.next_path(now) {
            let length = self.client.poll_transmit_on(now, path, &mut datagram);
            if length == 0 {
                break;
            }
            if self.reports && !self.links[path.at()].is_up {
                self.sent += 1;
                self.client.path_failed(now, path);
            } else {
                self.send(path.at(), true, &datagram[..length]);
            }
        }
        while let Some(event) = self.client.poll_event() {
            self.ended.push_back(event);
        }
    }

    fn send(&mut self, at: usize, to_node: bool, datagram: &[u8]) {
        self.sent += 1;
        let link = self.links[at];
        let starts = self.busy[at][usize::from(to_node)].max(self.now);
        if !link.is_up || starts - self.now > link.queue {
            return;
        }
        let ends = starts + (datagram.len() as u64 + HEADERS) * link.ns_per_octet;
        self.busy[at][usize::from(to_node)] = ends;
        let copies = match self.draw(1000) {
            drawn if drawn < link.lost => 0,
            drawn if drawn < link.lost + link.doubled => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let arrives = ends + link.way + self.draw(link.jitter);
            self.sent += 1;
            let arrival = Arrival { link: at, to_node, datagram: datagram.to_vec() };
            self.under_way.insert((arrives, self.sent), arrival);
        }
    }

    /// The next outcome of an operation, if one ends before `end`.
    pub(crate) fn next_before(&mut self, end: u64) -> Option<Event> {
        self.transmit();
        while self.ended.is_empty() {
            if !self.step(end) {
                return None;
            }
        }
        self.ended.pop_front()
    }

    /// Uses the links for `time` with `depth` reads of 1,024 B at once. Returns the bytes read, and
    /// the longest time without an answer.
    pub(crate) fn load(&mut self, address: u64, depth: usize, time: u64) -> (u64, u64) {
        let (end, mut last, mut longest, mut bytes) = (self.now + time, self.now, 0, 0);
        let mut open = 0;
        loop {
            while open < depth {
                self.client.submit(self.process, Request::Read { address, bytes: 1024 });
                open += 1;
            }
            let Some(event) = self.next_before(end) else { break };
            assert_eq!(event.outcome.map(|done| length(&done)), Ok(1024));
            (open, bytes) = (open - 1, bytes + 1024);
            longest = longest.max(self.now - last);
            last = self.now;
        }
        self.now = end;
        longest = longest.max(end - last);
        // What is in flight ends before the next load counts.
        while open > 0 {
            assert!(self.next_event().outcome.is_ok());
            open -= 1;
        }
        (bytes, longest)
    }

    /// Requests sent on a link so far.
    pub(crate) fn tries(&self, link: usize) -> u64 {
        self.client.path_report(PathId::new(link)).tries
    }
}

fn length(done: &Completed) -> usize {
    match done {
        Completed::Bytes(bytes) => bytes.len(),
        other => panic!("a read gives bytes: {other:?}"),
    }
}

fn node() -> Node<Vec<u8>> {
    let memory = MemoryConfig {
        memory: Bytes(PAGES * 4096),
        page: PageSize::Kib4,
        tlb_entries: 64,
        fault_buffer_pages: 2,
    };
    let config = NodeConfig {
        memory,
        key: HashKey([5, 3]),
        epoch: Epoch(9),
        sender: SenderId(1 << 60),
        protection: Protection::Crc,
        data_bytes_max: 8192,
        processes_max: 4,
        recent_requests: 1 << 14,
        lifetime_max: Ns(100 * MS),
        keep: Ns(5_000 * MS),
        lease: Ns(600_000 * MS),
        tenants: vec![(TenantId(1), Quota::UNLIMITED)],
    };
    Node::new(config, vec![0; (PAGES * 4096) as usize]).expect("a node can be so")
}

/// An outcome that must be a word.
pub(crate) fn word(outcome: Result<Completed, OperationError>) -> u64 {
    match outcome {
        Ok(Completed::Word(word)) => word,
        other => panic!("an atomic gives a word: {other:?}"),
    }
}
