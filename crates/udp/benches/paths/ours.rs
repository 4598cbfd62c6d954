//! One client that reads from a node over several interfaces, as fast as they carry.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_clio::transport::Completed;
use ethermem_udp::{ClientOptions, Driver, Listen, NodePlace, Protect, Server, Wait};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{Epoch, Permissions, ProcessId, Protection, Request, SenderId, TenantId};

use super::links::{BUCKET, Links, Received};

const MEMORY: u64 = 16 << 20;
/// Bytes of a read, and reads in flight.
const READ: u64 = 16 << 10;
const DEPTH: usize = 128;

/// Reads over the first `links` links for some time.
pub(crate) fn receive(links: &Links, count: usize, time: Duration) -> Received {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (to, started) = std::sync::mpsc::channel();
        let told = &stop;
        let serves = scope.spawn(move || {
            links.node.enter(move || {
                let mut server = server();
                to.send(()).expect("it is waited for");
                server.run(Duration::from_millis(1), told).expect("it serves");
            });
        });
        started.recv().expect("it starts");
        let received = links.client.enter(|| read(&mut driver(count), time));
        stop.store(true, Ordering::Relaxed);
        serves.join().expect("it serves");
        received
    })
}

fn server() -> Server<Vec<u8>> {
    let config = NodeConfig {
        memory: MemoryConfig {
            memory: Bytes(MEMORY),
            page: PageSize::Kib4,
            tlb_entries: 4096,
            fault_buffer_pages: 8,
        },
        key: HashKey([1, 2]),
        epoch: Epoch(5),
        sender: SenderId(77),
        protection: Protection::Carrier,
        data_bytes_max: 60_000,
        processes_max: 4,
        recent_requests: 1 << 14,
        lifetime_max: Ns(100_000_000),
        keep: Ns(5_000_000_000),
        lease: Ns(600_000_000_000),
        tenants: vec![(TenantId(0), Quota::UNLIMITED)],
    };
    let node = Node::new(config, vec![0; MEMORY as usize]).expect("the configuration is good");
    let listen = Listen { udp: Some(([0, 0, 0, 0], 7400).into()), ring: None };
    Server::bind(node, Protect::Node, &listen).expect("the port is free")
}

fn driver(count: usize) -> Driver {
    let interfaces = (0..count).map(|link| format!("c{link}")).collect();
    let options = ClientOptions {
        node: NodePlace::Via { node: ([10, 77, 0, 2], 7400).into(), interfaces },
        tenant: TenantId(0),
        key: None,
        datagram_bytes_max: None,
        window: 256,
        incast_window: Bytes(4 << 20),
        give_up_after: Duration::from_secs(2),
    };
    Driver::connect(&options).expect("the interfaces are there")
}

/// The outcome of one operation.
fn ask(driver: &mut Driver, process: ProcessId, request: Request<'static>) -> Completed {
    driver.client().submit(process, request);
    driver.send().expect("the sockets are good");
    loop {
        turn(driver);
        if let Some(event) = driver.client().poll_event() {
            return event.outcome.expect("the node answers");
        }
    }
}

fn turn(driver: &mut Driver) {
    let came = driver.turn().expect("the sockets are good");
    if !came && driver.fruitless() == Wait::Sleep {
        driver.sleeps();
        let rest = driver.rest().unwrap_or(Duration::from_millis(1));
        driver.sleeper().sleep(rest.min(Duration::from_millis(1)));
    }
}

fn read(driver: &mut Driver, time: Duration) -> Received {
    let process = match ask(driver, ProcessId(0), Request::CreateProcess) {
        Completed::Created(process) => process,
        other => panic!("no process: {other:?}"),
    };
    let permissions = Permissions::READ_WRITE;
    let allocate = Request::Allocate { bytes: READ, at: 0, permissions };
    let address = match ask(driver, process, allocate) {
        Completed::Address(address) => address,
        other => panic!("no memory: {other:?}"),
    };
    let data: Vec<u8> = (0..READ).map(|at| (at * 7 + at / 256) as u8).collect();
    driver.client().submit_write(process, address, data.clone());
    driver.send().expect("the sockets are good");
    while driver.client().poll_event().is_none() {
        turn(driver);
    }
    let began = Instant::now();
    let mut received = Received { buckets: Vec::new(), wrong: 0 };
    let mut open = 0;
    while began.elapsed() < time {
        while open < DEPTH {
            driver.client().submit(process, Request::Read { address, bytes: READ as u32 });
            open += 1;
        }
        driver.send().expect("the sockets are good");
        turn(driver);
        while let Some(event) = driver.client().poll_event() {
            open -= 1;
            received.wrong += u64::from(event.outcome != Ok(Completed::Bytes(data.clone())));
            let bucket = (began.elapsed().as_nanos() / BUCKET.as_nanos()) as usize;
            received.buckets.resize(received.buckets.len().max(bucket + 1), 0);
            received.buckets[bucket] += READ;
        }
    }
    received
}
