//! A node of two tenants in a thread of its own, and its clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_clio::transport::{Completed, OperationError};
use ethermem_udp::seal::{NodeSeal, SENDERS, TenantKey};
use ethermem_udp::{ClientOptions, Driver, Listen, NodePlace, Protect, Published, Server};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{Epoch, Permissions, ProcessId, Protection, Request, SenderId, TenantId};
use memmap2::MmapOptions;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

pub(crate) const PAGE: u64 = 4096;
pub(crate) const RW: Permissions = Permissions::READ_WRITE;
pub(crate) const NEIGHBOUR: TenantId = TenantId(1);
pub(crate) const GREEDY: TenantId = TenantId(2);
/// Number of requests in flight.
const TOGETHER: usize = 16;

fn key(tenant: TenantId) -> TenantKey {
    TenantKey([tenant.0 as u8; 32])
}

/// The node; dropping the value ends it.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) published: Published,
    stop: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Served {
    pub(crate) fn new(pages: u64, lease: Ns) -> Served {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let (to, started) = std::sync::mpsc::channel();
        let serving = std::thread::spawn(move || {
            stay_on(1);
            let length = usize::try_from(pages * PAGE).expect("64 bits");
            let memory = MmapOptions::new().len(length).no_reserve_swap().map_anon();
            let node = Node::new(config(pages, lease), memory.expect("it is only reserved"));
            let node = node.expect("the configuration is good");
            let keys = [NEIGHBOUR, GREEDY].map(|tenant| (tenant, key(tenant)));
            let seal = NodeSeal::new(&keys, SenderId(77), [3, 4], SENDERS);
            let listen = Listen { udp: Some(([127, 0, 0, 1], 0).into()), ring: None };
            let server = Server::bind(node, Protect::Seal(Box::new(seal)), &listen);
            let mut server = server.expect("there is a free port");
            let address = server.address().expect("it is bound");
            to.send((address, server.published())).expect("it is waited for");
            server.run(Duration::from_secs(1), &told).expect("it serves");
        });
        let (address, published) = started.recv().expect("it starts");
        Served { address, published, stop, serving: Some(serving) }
    }

    pub(crate) fn client(&self, tenant: TenantId) -> Driver {
        let options = ClientOptions {
            node: NodePlace::Udp(self.address),
            tenant,
            key: Some(key(tenant)),
            datagram_bytes_max: None,
            window: 64,
            incast_window: Bytes(1 << 20),
            give_up_after: Duration::from_secs(3600),
        };
        Driver::connect(&options).expect("the node is there")
    }

    pub(crate) fn processes(&self) -> usize {
        self.published.lock().expect("the node did not panic").processes
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.serving.take().expect("it was started").join();
        assert!(ended.is_ok() || std::thread::panicking(), "the node panicked");
    }
}

fn config(pages: u64, lease: Ns) -> NodeConfig {
    NodeConfig {
        memory: MemoryConfig {
            memory: Bytes(pages * PAGE),
            page: PageSize::Kib4,
            tlb_entries: 4096,
            fault_buffer_pages: 1024.min(pages as u32 / 2),
        },
        key: HashKey([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]),
        epoch: Epoch(5),
        sender: SenderId(77),
        protection: Protection::Gcm,
        data_bytes_max: 65_000,
        processes_max: 1000,
        recent_requests: 1 << 14,
        lifetime_max: Ns(100_000_000),
        keep: Ns(5_000_000_000),
        lease,
        tenants: [NEIGHBOUR, GREEDY].map(|tenant| (tenant, Quota::UNLIMITED)).to_vec(),
    }
}

/// Pins the calling thread to a CPU, and prints a line if it cannot.
pub(crate) fn stay_on(cpu: usize) {
    let mut set = CpuSet::new();
    let bound = set.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    if let Err(problem) = bound {
        eprintln!("not bound to CPU {cpu}: {problem}");
    }
}

/// Result of an operation.
pub(crate) type Outcome = Result<Completed, OperationError>;

/// Submits one request, and waits for its result.
pub(crate) fn ask(client: &mut Driver, process: ProcessId, request: Request<'static>) -> Outcome {
    all(client, &[(process, request)]).remove(0)
}

/// Submits all requests, some at once, and returns their results.
pub(crate) fn all(client: &mut Driver, asked: &[(ProcessId, Request<'static>)]) -> Vec<Outcome> {
    let mut done = Vec::with_capacity(asked.len());
    for some in asked.chunks(TOGETHER) {
        let named: Vec<_> = some
            .iter()
            .map(|(process, request)| client.client().submit(*process, *request))
            .collect();
        let mut outcomes: Vec<Option<Outcome>> = named.iter().map(|_| None).collect();
        client.send().expect("the socket takes it");
        while outcomes.iter().any(Option::is_none) {
            client.turn().expect("the socket gives it");
            while let Some(event) = client.client().poll_event() {
                let at = named.iter().position(|&name| name == event.operation);
                outcomes[at.expect("it was asked for")] = Some(event.outcome);
            }
        }
        done.extend(outcomes.into_iter().flatten());
    }
    done
}

pub(crate) fn process(client: &mut Driver) -> ProcessId {
    match ask(client, ProcessId(0), Request::CreateProcess) {
        Ok(Completed::Created(process)) => process,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn address(outcome: Outcome) -> u64 {
    match outcome {
        Ok(Completed::Address(address)) => address,
        other => panic!("{other:?}"),
    }
}

/// The tenant that reads.
pub(crate) struct Neighbour {
    client: Driver,
    process: ProcessId,
    address: u64,
}

impl Neighbour {
    pub(crate) fn new(served: &Served) -> Neighbour {
        let mut client = served.client(NEIGHBOUR);
        let process = process(&mut client);
        let allocate = Request::Allocate { bytes: PAGE, at: 0, permissions: RW };
        let address = address(ask(&mut client, process, allocate));
        Neighbour { client, process, address }
    }

    /// Nanoseconds of a read of 64 B, from its submission to its result.
    pub(crate) fn read_ns(&mut self) -> u64 {
        let begin = Instant::now();
        let read = Request::Read { address: self.address, bytes: 64 };
        self.client.client().submit(self.process, read);
        self.client.send().expect("the socket takes it");
        let event = loop {
            self.client.turn().expect("the socket gives it");
            if let Some(event) = self.client.client().poll_event() {
                break event;
            }
        };
        let took = begin.elapsed();
        assert!(matches!(event.outcome, Ok(Completed::Bytes(_))), "{event:?}");
        took.as_nanos() as u64
    }
}
