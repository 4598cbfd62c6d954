//! Faults that only a network has: nodes that are down or restart, and clients that die.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ethermem::{Error, OpenError, Permissions, Pool, ProcessId, Ps};
use ethermem_clio::memory::PageSize;
use ethermem_clio::node::Quota;
use ethermem_clio::transport::{Completed, OperationError};
use ethermem_node::{NodeOptions, TenantOptions};
use ethermem_udp::seal::KeyFile;
use ethermem_udp::{ClientOptions, Driver, Listen, NodePlace, Published};
use ethermem_units::Bytes;
use ethermem_wire::clio::{Request, TenantId};

const RW: Permissions = Permissions::READ_WRITE;
/// The error of a client without a key whose node does not respond.
pub(crate) const WITHOUT_A_KEY: &str = "no node is there, it was too busy to answer, or it has \
                                         keys and answers nobody without one";

/// A memory node in a thread of its own, until it is dropped.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) published: Published,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub(crate) fn start(listen: SocketAddr, lease: Option<Duration>) -> Served {
        let listen = Listen { udp: Some(listen), ring: None };
        let in_clear = NodeOptions::in_clear(Bytes(1 << 20));
        Served::serve(&NodeOptions { page: PageSize::Kib4, listen, lease, ..in_clear })
    }

    pub(crate) fn serve(options: &NodeOptions) -> Served {
        let mut server = ethermem_node::start(options).unwrap().server;
        let address = server.address().unwrap();
        let published = server.published();
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let serve = move || server.run(Duration::from_millis(1), &told).unwrap();
        Served { address, published, stop, thread: Some(std::thread::spawn(serve)) }
    }

    pub(crate) fn new(lease: Option<Duration>) -> Served {
        Served::start("127.0.0.1:0".parse().unwrap(), lease)
    }

    pub(crate) fn url(&self) -> String {
        format!("udp://{}", self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the node panicked");
    }
}

#[test]
fn a_node_that_is_away_is_named_within_the_time_that_was_asked_for() {
    // The port is bound by a socket that never responds.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let node = silent.local_addr().unwrap();
    let Err(error) = Pool::open(&format!("udp://{node}?timeout_ms=50")) else {
        panic!("nobody answers");
    };
    assert!(matches!(error, OpenError::Unreachable { .. }));
    assert_eq!(error.to_string(), format!("{node}: no answer within 50 ms: {WITHOUT_A_KEY}"));
    drop(silent);
    let Err(error) = Pool::open(&format!("udp://{node}?timeout_ms=50")) else {
        panic!("nobody is there");
    };
    assert!(error.to_string().starts_with(&format!("{node}: ")), "{error}");
    let Err(error) = Pool::open("udp://no-such-host.invalid:7400") else {
        panic!("it has no address");
    };
    assert!(error.to_string().starts_with("no-such-host.invalid:7400: "), "{error}");
}

/// Memory of a node that died gives an error, never zeros; new allocations work.
#[test]
fn a_node_that_was_started_anew_is_an_error_and_not_zeros() {
    let node = Served::new(None);
    let (address, url) = (node.address, format!("{}?timeout_ms=200", node.url()));
    let pool = Pool::open(&url).unwrap();
    let thread = pool.thread().unwrap();
    let region = thread.alloc(4096, RW).wait().unwrap();
    region.write(0, &[7; 4096]).wait().unwrap();
    drop(node);
    assert!(matches!(region.read(0, 64).wait(), Err(Error::NoAnswer { .. })));
    assert!(matches!(pool.thread(), Err(Error::NoAnswer { .. })));
    let _again = Served::start(address, None);
    let restarted = Error::Restarted { node: address.to_string() };
    assert!(!restarted.is_retryable());
    assert_eq!(region.read(0, 64).wait(), Err(restarted.clone()));
    // The first process after the restart has the number of the first process before it.
    let fresh = pool.thread().unwrap();
    assert_ne!(fresh.process(), thread.process());
    let other = fresh.alloc(4096, RW).wait().unwrap();
    assert_eq!(other.read(0, 4096).wait().unwrap(), [0; 4096]);
    assert_eq!(region.read(0, 64).wait(), Err(restarted.clone()));
    assert_eq!(region.write(0, &[1]).wait(), Err(restarted.clone()));
    assert_eq!(thread.alloc(64, RW).wait().unwrap_err(), restarted);
}

/// The test submits nothing, so the pool itself must keep its processes alive.
#[test]
fn a_process_outlives_its_lease_while_its_pool_is_there() {
    let node = Served::new(Some(Duration::from_secs(1)));
    let pool = Pool::open(&node.url()).unwrap();
    let thread = pool.thread().unwrap();
    let region = thread.alloc(64, RW).wait().unwrap();
    region.write(0, b"still here").wait().unwrap();
    std::thread::sleep(Duration::from_millis(2200));
    assert_eq!(region.read(0, 10).wait().unwrap(), b"still here");
}

/// A client that sends only what it is told to: dropping it is its death.
pub(crate) struct Mortal(Driver);

impl Mortal {
    pub(crate) fn new(node: SocketAddr) -> Mortal {
        Mortal::giving_up(node, Duration::from_secs(2))
    }

    /// A client that gives up after this time.
    pub(crate) fn giving_up(node: SocketAddr, give_up_after: Duration) -> Mortal {
        let options = ClientOptions {
            node: NodePlace::Udp(node),
            tenant: TenantId(0),
            key: None,
            datagram_bytes_max: None,
            window: 4,
            incast_window: Bytes(1 << 20),
            give_up_after,
        };
        Mortal(Driver::connect(&options).unwrap())
    }

    fn ask(&mut self, process: ProcessId, request: Request<'static>) -> Completed {
        self.try_ask(process, request).unwrap()
    }

    pub(crate) fn try_ask(
        &mut self,
        process: ProcessId,
        request: Request<'static>,
    ) -> Result<Completed, OperationError> {
        self.0.client().submit(process, request);
        self.0.send().unwrap();
        loop {
            self.0.turn().unwrap();
            if let Some(event) = self.0.client().poll_event() {
                return event.outcome;
            }
        }
    }
}

/// The lock of a dead client is granted after its lease, and the new holder is told.
#[test]
fn the_lock_of_a_client_that_died_is_free_after_its_lease() {
    let node = Served::new(Some(Duration::from_millis(400)));
    let pool = Pool::open(&node.url()).unwrap();
    let thread = pool.thread().unwrap();
    let lock = thread.alloc(8, RW).wait().unwrap();
    let mut mortal = Mortal::new(node.address);
    let Completed::Created(process) = mortal.ask(ProcessId(0), Request::CreateProcess) else {
        panic!("a process is made");
    };
    lock.share(process, RW).wait().unwrap();
    let take = Request::Lock { address: lock.address().0, holder: 7 };
    assert_eq!(mortal.ask(process, take), Completed::Done);
    drop(mortal);
    let mut waits = thread.lock(lock.address());
    thread.sleep(Ps::from_ns(1_000_000)).wait().unwrap();
    assert_eq!(waits.poll_result(), None, "it is held by who lives");
    let address = lock.address();
    assert_eq!(waits.wait(), Err(Error::OwnerDied { address }));
    thread.unlock_wait(address).unwrap();
    thread.lock(address).wait().unwrap();
    thread.unlock_wait(address).unwrap();
}

/// With keys: each tenant has its memory and quota, and a wrong key has no access.
#[test]
fn an_encrypted_node_serves_who_has_a_key_and_is_silent_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str, tenant| {
        let key = KeyFile::generate(TenantId(tenant)).unwrap();
        let path = folder.path().join(name);
        key.write(&path).unwrap();
        (key, path.to_str().unwrap().to_owned())
    };
    let ((one, one_file), (two, two_file)) = (key("one.key", 1), key("two.key", 2));
    let (_, wrong_file) = key("wrong.key", 1);
    let tenant = |name: &str, key, memory_bytes| {
        let quota = Quota { memory_bytes, ..Quota::UNLIMITED };
        TenantOptions { name: name.to_owned(), key, quota }
    };
    let tenants = vec![tenant("one", one, u64::MAX), tenant("two", two, 1 << 16)];
    let in_clear = NodeOptions::in_clear(Bytes(1 << 20));
    let node = Served::serve(&NodeOptions { insecure: false, tenants, ..in_clear });
    let open = |file: &str| Pool::open(&format!("{}?timeout_ms=1000&key={file}", node.url()));
    let (first, second) = (open(&one_file).unwrap(), open(&two_file).unwrap());
    let (thread, other) = (first.thread().unwrap(), second.thread().unwrap());
    let region = thread.alloc(100_000, RW).wait().unwrap();
    region.write(3, &[6; 90_000]).wait().unwrap();
    assert_eq!(region.read(3, 90_000).wait().unwrap(), [6; 90_000]);
    let full = other.alloc(100_000, RW).wait().unwrap_err();
    assert_eq!(full, Error::Full { bytes: 100_000, free: 1 << 16 });
    let words = other.alloc(64, RW).wait().unwrap();
    assert_eq!(other.fetch_add(words.at(8), 5).wait().unwrap(), 0);
    assert_eq!(other.fetch_add(words.at(8), 5).wait().unwrap(), 5);
    let silent = |url: &str| match Pool::open(url) {
        Err(OpenError::Unreachable { problem, .. }) => problem,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was let in"),
    };
    let url = format!("{}?timeout_ms=50", node.url());
    let problem = silent(&format!("{url}&key={wrong_file}"));
    let says = "no answer within 50 ms: no node is there, it was too busy to answer, or the key is \
                not one of its own";
    assert_eq!(problem, says);
    assert_eq!(silent(&url), format!("no answer within 50 ms: {WITHOUT_A_KEY}"));
    let Err(error) = Pool::open(&format!("{url}&key={one_file}&tenant=2")) else {
        panic!("it has no key of tenant 2");
    };
    assert!(error.to_string().contains("the key allows 1 alone"), "{error}");
}

#[test]
fn a_pool_that_is_closed_or_dropped_gives_its_memory_back() {
    let node = Served::new(None);
    for round in 0..50 {
        let pool = Pool::open(&node.url()).unwrap();
        let thread = pool.thread().unwrap();
        let region = thread.alloc(1 << 20, RW).wait().unwrap_or_else(|e| panic!("{round}: {e}"));
        region.write(100, &[9; 100]).wait().unwrap();
        let full = thread.alloc(4096, RW).wait().unwrap_err();
        assert_eq!(full, Error::Full { bytes: 4096, free: 0 });
        if round % 2 == 0 {
            pool.close().unwrap();
            let ended = Error::ProcessEnded { node: node.address.to_string() };
            assert_eq!(region.read(100, 1).wait(), Err(ended));
        }
    }
}

#[test]
fn both_families_of_addresses_have_pools() {
    let listen: SocketAddr = "[::1]:0".parse().unwrap();
    if UdpSocket::bind(listen).is_err() {
        eprintln!("SKIPPED: this machine has no IPv6");
        return;
    }
    let node = Served::start(listen, None);
    let pool = Pool::open(&node.url()).unwrap();
    let region = pool.thread().unwrap().alloc(10_000, RW).wait().unwrap();
    region.write(1, &[5; 9_000]).wait().unwrap();
    assert_eq!(region.read(1, 9_000).wait().unwrap(), [5; 9_000]);
}

/// Batching in datagrams of any length, encrypted or not: trains and long ones carry equal
/// operations.
#[test]
fn operations_that_are_begun_together_go_together() {
    const OPERATIONS: u64 = 128;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenant.toml");
    let key = KeyFile::generate(TenantId(1)).unwrap();
    key.write(&path).unwrap();
    let tenant = TenantOptions { name: "one".to_owned(), key, quota: Quota::UNLIMITED };
    let in_clear = NodeOptions { page: PageSize::Kib4, ..NodeOptions::in_clear(Bytes(4 << 20)) };
    let sealed = NodeOptions { insecure: false, tenants: vec![tenant], ..in_clear.clone() };
    for (options, key) in [(in_clear, String::new()), (sealed, format!("key={}", path.display()))] {
        for datagram_bytes in [1472_u64, 9000, 65_507] {
            let served = Served::serve(&options);
            let url = format!("{}?{key}&datagram_bytes={datagram_bytes}", served.url());
            let url = url.replace("?&", "?");
            let thread = Pool::open(&url).unwrap().thread().unwrap();
            let region = thread.alloc(OPERATIONS * 4096, RW).wait().unwrap();
            let data = |at: u64| -> Vec<u8> { (0..4096).map(|o| (o * 7 + at) as u8).collect() };
            let writes: Vec<_> =
                (0..OPERATIONS).map(|at| region.write(at * 4096, &data(at))).collect();
            writes.into_iter().for_each(|write| write.wait().unwrap());
            let reads: Vec<_> = (0..OPERATIONS).map(|at| region.read(at * 4096, 4096)).collect();
            for (at, read) in (0..).zip(reads) {
                assert_eq!(read.wait().unwrap(), data(at), "{url}");
            }
            let words: Vec<_> =
                (0..OPERATIONS).map(|at| thread.fetch_add(region.at(at * 4096), 1)).collect();
            words.into_iter().for_each(|word| assert!(word.wait().is_ok()));
            // Published counters are at most a tenth of a second old.
            std::thread::sleep(Duration::from_millis(250));
            let node = served.published.lock().unwrap().node;
            // Fifteen operations of 4 KiB fit one of the longest datagrams, and all atomics do. On
            // a busy machine some are sent early, and some are retransmitted alone.
            let few = datagram_bytes < 65_507 || node.requests >= 2 * node.datagrams;
            assert!(few, "{url}: {} in {}", node.requests, node.datagrams);
            assert!(node.requests >= 3 * OPERATIONS, "{}", node.requests);
        }
    }
}

/// Machine threads that wait for single operations share a pool with threads that have many in
/// flight, and each receives its own results.
#[test]
fn who_waits_for_one_thing_and_who_has_many_under_way_share_a_pool() {
    const ROUNDS: u64 = 1000;
    let node = Served::new(None);
    let pool = Pool::open(&node.url()).unwrap();
    let region = pool.thread().unwrap().alloc(16 * 4096, RW).wait().unwrap();
    std::thread::scope(|scope| {
        for machine in 0..2 {
            let mine = region.by(&region.thread().fork());
            scope.spawn(move || {
                let at = machine * 4096 + 60;
                for round in 0..ROUNDS {
                    let word = (round << 8 | machine).to_le_bytes();
                    mine.write_from(at, &word.repeat(4)).unwrap();
                    let mut found = [0; 40];
                    mine.read_into(at - 4, &mut found).unwrap();
                    assert_eq!(found[4..36], word.repeat(4), "{machine} in {round}");
                    // This access must queue behind the one in flight.
                    let write = mine.write(at, &[7; 32]);
                    mine.read_into(at, &mut found[..32]).unwrap();
                    assert_eq!(found[..32], [7; 32]);
                    write.wait().unwrap();
                }
            });
        }
        for machine in 2..4 {
            let mine = region.by(&region.thread().fork());
            scope.spawn(move || {
                for round in 0..ROUNDS / 10 {
                    let places = (0..10).map(|page| machine * 8 + (2 + page) * 4096);
                    let writes: Vec<_> = places
                        .clone()
                        .map(|at| mine.write(at, &(round + at).to_le_bytes()))
                        .collect();
                    writes.into_iter().for_each(|write| write.wait().unwrap());
                    let reads: Vec<_> = places.map(|at| (at, mine.read(at, 8))).collect();
                    for (at, read) in reads {
                        assert_eq!(read.wait().unwrap(), (round + at).to_le_bytes());
                    }
                }
            });
        }
    });
}

/// Long reads go straight into their callers' buffers, also while other threads take the answers:
/// each has its own bytes.
#[test]
fn long_reads_of_many_threads_have_their_own_bytes() {
    const BYTES: u64 = 256 << 10;
    for parameters in ["", "?datagram_bytes=1472", "?datagram_bytes=30000"] {
        let node = Served::new(None);
        let pool = Pool::open(&format!("{}{parameters}", node.url())).unwrap();
        let region = pool.thread().unwrap().alloc(3 * BYTES, RW).wait().unwrap();
        std::thread::scope(|scope| {
            for machine in 0..3 {
                let mine = region.by(&region.thread().fork());
                scope.spawn(move || {
                    for round in 0..8_u64 {
                        let from = machine * BYTES + round * 37;
                        let bytes = BYTES as usize - 37 * 8 - 4096 * round as usize;
                        let seed = machine << 8 | round;
                        let words = (0..bytes as u64 / 8).map(|at| (at << 16 | seed).to_le_bytes());
                        let data: Vec<u8> = words.flatten().collect();
                        mine.write_from(from, &data).unwrap();
                        let mut found = vec![0xaa; data.len()];
                        mine.read_into(from, &mut found).unwrap();
                        assert!(found == data, "{machine} in {round}");
                        let queued = mine.read(from, data.len() as u64).wait().unwrap();
                        assert!(queued == data, "{machine} in {round}");
                    }
                });
            }
        });
    }
}

/// An access is refused with equal words, whichever way it was submitted.
#[test]
fn what_is_waited_for_fails_as_what_is_submitted() {
    let node = Served::new(None);
    let pool = Pool::open(&format!("{}?timeout_ms=200", node.url())).unwrap();
    let thread = pool.thread().unwrap();
    let region = thread.alloc(4096, RW).wait().unwrap();
    let sealed = thread.alloc(4096, Permissions::READ).wait().unwrap();
    let mut place = [0; 64];
    let nowhere = thread.region(region.at(1 << 30), 4096);
    assert!(matches!(nowhere.read_into(0, &mut place), Err(Error::Unmapped { bytes: 64, .. })));
    for region in [&region, &sealed, &nowhere] {
        for offset in [0, 4090] {
            let read = region.read_into(offset, &mut place);
            assert_eq!(read, region.read(offset, 64).wait().map(drop));
            let write = region.write_from(offset, &place);
            assert_eq!(write, region.write(offset, &place).wait());
        }
    }
    assert_eq!(region.read_into(0, &mut []), region.read(0, 0).wait().map(drop));
    assert_eq!(region.write_from(0, &[]), region.write(0, &[]).wait());
    let address = node.address;
    drop(node);
    assert!(matches!(region.read_into(0, &mut place), Err(Error::NoAnswer { .. })));
    assert!(matches!(region.write_from(0, &place), Err(Error::NoAnswer { .. })));
    let _again = Served::start(address, None);
    let restarted = Error::Restarted { node: address.to_string() };
    assert_eq!(region.write_from(0, &place), Err(restarted.clone()));
    assert_eq!(region.read_into(0, &mut place), Err(restarted));
}

/// The traffic is low enough for the node to sleep.
#[test]
fn a_node_drains_as_long_as_something_comes() {
    let mut server = ethermem_node::start(&NodeOptions::in_clear(Bytes(1 << 20))).unwrap().server;
    let mut client = Mortal::new(server.address().unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let thread = std::thread::spawn(move || {
        server.run(Duration::from_millis(1), &told).unwrap();
        let began = Instant::now();
        server.drain(Duration::from_secs(8), Duration::from_secs(1)).unwrap();
        began.elapsed()
    });
    let Completed::Created(process) = client.ask(ProcessId(0), Request::CreateProcess) else {
        panic!("it is a process");
    };
    stop.store(true, Ordering::Relaxed);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) && !thread.is_finished() {
        client.0.client().submit(process, Request::KeepAlive);
        client.0.send().unwrap();
        std::thread::sleep(Duration::from_millis(2));
        client.0.turn().unwrap();
        while client.0.client().poll_event().is_some() {}
    }
    client.0.client().submit(process, Request::EndProcess);
    client.0.send().unwrap();
    let took = thread.join().unwrap();
    assert!(took >= Duration::from_millis(2500), "{took:?}");
}
