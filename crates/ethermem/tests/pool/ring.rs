//! `ring:` between two machines: network namespaces with a pair of interfaces.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ethermem::{Address, Chase, Comparison, Error, Filter, OpenError, Permissions, Pool};
use ethermem_clio::memory::PageSize;
use ethermem_clio::node::Quota;
use ethermem_node::{NodeOptions, TenantOptions};
use ethermem_udp::seal::KeyFile;
use ethermem_udp::{ClientOptions, Driver, NodePlace, RingError};
use ethermem_units::Bytes;
use ethermem_wire::clio::{Mac, TenantId};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use tempfile::TempDir;

use crate::namespace::Namespace;
use crate::network::Served;
use crate::ring_faults::raw;

pub(crate) const RW: Permissions = Permissions::READ_WRITE;
pub(crate) const NODE: Mac = Mac([2, 0, 0, 0, 0, 0xa]);
pub(crate) const CLIENT: Mac = Mac([2, 0, 0, 0, 0, 0xb]);

/// A client's machine and a node's, `c0` of one and `n0` of the other joined, and a key.
pub(crate) struct Two {
    pub(crate) client: Namespace,
    pub(crate) node: Namespace,
    key: KeyFile,
    folder: TempDir,
}

impl Two {
    pub(crate) fn new(what: &str, mtu: u32) -> Option<Two> {
        let two = Two::apart(what)?;
        two.connect(mtu);
        Some(two)
    }

    /// Two machines, directly joined.
    pub(crate) fn apart(what: &str) -> Option<Two> {
        let (client, node) = (Namespace::new(what)?, Namespace::new(what)?);
        let folder = tempfile::tempdir().unwrap();
        let key = KeyFile::generate(TenantId(1)).unwrap();
        let two = Two { client, node, key, folder };
        two.key.write(&two.key_file()).unwrap();
        Some(two)
    }

    pub(crate) fn connect(&self, mtu: u32) {
        self.client.connect("c0", &self.node, "n0", mtu);
        self.address();
    }

    /// Gives both machines their IP addresses.
    pub(crate) fn address(&self) {
        self.node.ip(&format!("link set n0 address {NODE}"));
        self.client.ip(&format!("link set c0 address {CLIENT}"));
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.folder.path().join("tenant.key")
    }

    /// A node on an interface's raw Ethernet, and on UDP of its own machine.
    pub(crate) fn serve_on(&self, machine: &Namespace, interface: &str) -> Served {
        let options = self.options(interface);
        machine.enter(|| Served::serve(&options))
    }

    pub(crate) fn options(&self, interface: &str) -> NodeOptions {
        let tenant = TenantOptions {
            name: "one".to_owned(),
            key: self.key.clone(),
            quota: Quota::UNLIMITED,
        };
        let mut options = NodeOptions::in_clear(Bytes(4 << 20));
        (options.page, options.insecure, options.tenants) = (PageSize::Kib4, false, vec![tenant]);
        options.listen.ring = Some(interface.parse().unwrap());
        options
    }

    pub(crate) fn serve(&self) -> Served {
        self.serve_on(&self.node, "n0")
    }

    /// The error of starting another node there.
    pub(crate) fn refused(&self, interface: &str) -> String {
        let options = self.options(interface);
        let started = self.node.enter(|| ethermem_node::start(&options).map(drop));
        started.unwrap_err().to_string()
    }

    /// A pool of the client's machine.
    pub(crate) fn open(&self, place: &str, parameters: &str) -> Result<Pool, OpenError> {
        self.open_url(&format!("ring://{place}"), parameters)
    }

    pub(crate) fn open_url(&self, place: &str, parameters: &str) -> Result<Pool, OpenError> {
        let url = format!("{place}?key={}{parameters}", self.key_file().display());
        self.client.enter(|| Pool::open(&url))
    }

    /// A transport of the client's machine without a pool, for inspection.
    pub(crate) fn driver(&self, node: NodePlace) -> Driver {
        let options = ClientOptions {
            node,
            tenant: self.key.tenant,
            key: Some(self.key.key),
            datagram_bytes_max: None,
            window: 16,
            incast_window: Bytes(1 << 20),
            give_up_after: Duration::from_secs(4),
        };
        self.client.enter(|| Driver::connect(&options)).unwrap()
    }
}

/// Uses a pool for every operation, with lengths of all kinds.
pub(crate) fn use_all(pool: &Pool) {
    let thread = pool.thread().unwrap();
    let region = thread.alloc(200_000, RW).wait().unwrap();
    let data: Vec<u8> = (0..150_000_u32).map(|at| (at * 7 + at / 256) as u8).collect();
    for bytes in [1, 63, 1400, 1500, 4096, 9000, 65_000, 150_000] {
        region.write(5, &data[..bytes]).wait().unwrap();
        assert_eq!(region.read(5, bytes as u64).wait().unwrap(), data[..bytes], "{bytes} B");
    }
    let word = region.at(160_000);
    for before in 0..10 {
        assert_eq!(thread.fetch_add(word, 1).wait().unwrap(), before);
    }
    assert_eq!(thread.compare_and_swap(word, 10, 3).wait().unwrap(), 10);
    let lock = region.at(160_008);
    thread.lock(lock).wait().unwrap();
    thread.unlock_wait(lock).unwrap();
    let writes: Vec<_> =
        (0..200).map(|at| region.write(at * 500, &data[at as usize..][..400])).collect();
    writes.into_iter().for_each(|write| write.wait().unwrap());
    let reads: Vec<_> = (0..200_u64).map(|at| (at, region.read(at * 500, 400))).collect();
    for (at, read) in reads {
        assert_eq!(read.wait().unwrap(), data[at as usize..][..400], "{at}");
    }
    region.free().wait().unwrap();
}

/// Uses operations at the node whose arguments and results are longer than a frame; they are not
/// cut.
pub(crate) fn use_long_ones(pool: &Pool) {
    let thread = pool.thread().unwrap();
    let region = thread.alloc(64_000, RW).wait().unwrap();
    let records: Vec<u8> = (0..8000_u64).flat_map(u64::to_le_bytes).collect();
    region.write(0, &records).wait().unwrap();
    let filter = Filter {
        start: region.address(),
        record_bytes: 8,
        records: 8000,
        field_offset: 0,
        comparison: Comparison::Greater,
        operand: 100,
    };
    let found = thread.offload(Filter::NAME, filter.start, &filter.encode(), &[]).wait().unwrap();
    assert_eq!(found, records[101 * 8..]);
    let key = records[80..20_080].to_vec();
    let chase = Chase {
        start: region.address(),
        next_offset: 0,
        key_offset: 80,
        value_offset: 8,
        value_bytes: 8,
        elements_max: 1,
        key,
    };
    let found = thread.offload(Chase::NAME, chase.start, &chase.encode(), &[]).wait().unwrap();
    let found = Chase::result(&found).unwrap().unwrap();
    assert_eq!((found.address, found.value), (region.address(), 1_u64.to_le_bytes().to_vec()));
}

#[test]
fn every_operation_goes_encrypted_in_frames_of_any_mtu() {
    for mtu in [576, 1500, 9000, 65_000] {
        let Some(two) = Two::new("pools over frames", mtu) else { return };
        let node = two.serve();
        for place in ["c0", &format!("c0/{NODE}"), &format!("c0:7400/{NODE}")] {
            let pool =
                two.open(place, "").unwrap_or_else(|error| panic!("{mtu}, {place}: {error}"));
            use_all(&pool);
            use_long_ones(&pool);
        }
        std::thread::sleep(Duration::from_millis(700));
        let server = node.published.lock().unwrap().server;
        assert_eq!((server.frames_dropped, server.rings_renewed), (0, 0), "{mtu}");
    }
}

/// Each end sends frames that the other one accepts, also responses longer than their requests.
#[test]
fn ends_of_different_mtus_reach_each_other() {
    for (client, node) in [(1500, 9000), (9000, 1500), (576, 65_000)] {
        let Some(two) = Two::new("ends of different MTUs", 9000) else { return };
        two.client.ip(&format!("link set c0 mtu {client}"));
        two.node.ip(&format!("link set n0 mtu {node}"));
        let _node = two.serve();
        for parameters in ["", "&datagram_bytes=8000", "&datagram_bytes=65507"] {
            let pool = two.open("c0", parameters).unwrap();
            use_all(&pool);
            use_long_ones(&pool);
        }
    }
}

#[test]
fn a_question_to_everybody_finds_one_node_and_names_several() {
    let Some(two) = Two::new("finding nodes", 1500) else { return };
    let none = two.open("c0", "&timeout_ms=60").unwrap_err().to_string();
    assert_eq!(none, "ring://c0: no answer within 60 ms");
    let first = two.serve();
    // The client has an interface on a bridge to both.
    let Some(other) = Namespace::new("finding nodes") else { return };
    two.client.connect("c1", &other, "n1", 1500);
    let second_mac = Mac([2, 0, 0, 0, 0, 0xc]);
    other.ip(&format!("link set n1 address {second_mac}"));
    two.client.ip("link add both type bridge");
    for words in ["set c0 master both", "set c1 master both", "set both up"] {
        two.client.ip(&format!("link {words}"));
    }
    use_all(&two.open("both", "&timeout_ms=4000").unwrap());
    let second = two.serve_on(&other, "n1");
    let several = two.open("both", "").unwrap_err();
    assert!(matches!(several, OpenError::NotAllowed { .. }));
    let says = format!(
        "ring://both: several nodes answer; must be one of ring://both/{NODE}, \
         ring://both/{second_mac}"
    );
    assert_eq!(several.to_string(), says);
    use_all(&two.open(&format!("both/{second_mac}"), "").unwrap());
    drop((first, second));
    let wrong = two.open(&format!("both/{NODE}"), "&timeout_ms=60").unwrap_err();
    assert_eq!(wrong.to_string(), format!("ring://both/{NODE}: no answer within 60 ms"));
}

#[test]
fn a_way_that_cannot_be_is_an_error_in_one_line() {
    let Some(two) = Two::new("ways that cannot be", 1500) else { return };
    let _node = two.serve();
    let refused = |place: &str| {
        let error = two.open(place, "&timeout_ms=60").unwrap_err();
        assert!(!error.to_string().contains('\n'), "{error}");
        error.to_string()
    };
    let itself = format!("ring://c0/{CLIENT}: {CLIENT} is this machine itself: its nodes are");
    assert!(refused(&format!("c0/{CLIENT}")).starts_with(&itself));
    assert_eq!(
        refused("c0/02:00:00:00:00:77"),
        "ring://c0/02:00:00:00:00:77: no answer within 60 ms"
    );
    assert_eq!(refused("c0:7401"), "ring://c0:7401: no answer within 60 ms");
    two.client.ip("link set c0 mtu 500");
    assert!(refused("c0").ends_with("an MTU of 500 B: must be at least 576"));
    two.client.ip("link set c0 mtu 1500");
    two.client.ip("link set c0 down");
    assert_eq!(refused("c0"), "ring://c0: no answer within 60 ms: interface `c0` is down");
    two.client.ip("link set c0 up");
    let other = KeyFile::generate(TenantId(1)).unwrap();
    let path = two.folder.path().join("other.key");
    other.write(&path).unwrap();
    let url = format!("ring://c0?timeout_ms=60&key={}", path.display());
    let error = two.client.enter(|| Pool::open(&url)).unwrap_err().to_string();
    assert!(error.contains("or the key is not one of its own"), "{error}");
    // A port has one node, and traffic in clear is allowed only on the loopback.
    assert!(two.refused("n0").starts_with("ring n0: interface `n0`: port 7400: Address"));
    let mut options = NodeOptions::in_clear(Bytes(1 << 20));
    options.listen.ring = Some("n0:7401".parse().unwrap());
    let in_clear = two.node.enter(|| ethermem_node::start(&options).map(drop)).unwrap_err();
    assert!(in_clear.to_string().contains("must be the loopback interface"), "{in_clear}");
}

/// A node in clear, which is allowed only on the loopback.
#[test]
fn the_loopback_carries_frames_in_clear() {
    let Some(two) = Two::new("frames on the loopback", 1500) else { return };
    let mut options = NodeOptions { page: PageSize::Kib4, ..NodeOptions::in_clear(Bytes(4 << 20)) };
    options.listen.ring = Some("lo".parse().unwrap());
    let _node = two.client.enter(|| Served::serve(&options));
    options.listen.ring = Some("lo:9".parse().unwrap());
    let _other = two.client.enter(|| Served::serve(&options));
    for url in ["ring://lo", "ring://lo:9", "ring://lo/00:00:00:00:00:00?datagram_bytes=1472"] {
        let pool = two.client.enter(|| Pool::open(url)).unwrap();
        use_all(&pool);
        use_long_ones(&pool);
    }
}

/// Ten pools of one machine: each gets its own responses, distinguished only by ports.
#[test]
fn pools_of_one_machine_do_not_take_each_others_answers() {
    let Some(two) = Two::new("pools of one machine", 1500) else { return };
    let _node = two.serve();
    let pools: Vec<Pool> = (0..10).map(|_| two.open("c0", "").unwrap()).collect();
    std::thread::scope(|scope| {
        for (number, pool) in (0_u8..).zip(&pools) {
            scope.spawn(move || {
                let region = pool.thread().unwrap().alloc(8192, RW).wait().unwrap();
                for round in 0..50 {
                    region.write(0, &[number ^ round; 5000]).wait().unwrap();
                    assert_eq!(region.read(0, 5000).wait().unwrap(), [number ^ round; 5000]);
                }
            });
        }
    });
}

#[test]
fn a_node_that_was_started_anew_is_an_error_over_frames_too() {
    let Some(two) = Two::new("nodes that start anew", 1500) else { return };
    let node = two.serve();
    let pool = two.open("c0", "&timeout_ms=200").unwrap();
    let region = pool.thread().unwrap().alloc(4096, RW).wait().unwrap();
    region.write(0, &[7; 100]).wait().unwrap();
    drop(node);
    assert!(matches!(region.read(0, 100).wait(), Err(Error::NoAnswer { .. })));
    let _again = two.serve();
    let restarted = Error::Restarted { node: "ring://c0".to_owned() };
    assert_eq!(region.read(0, 100).wait(), Err(restarted));
    use_all(&pool);
}

/// Forwards frames from one interface to another, and loses some.
fn relay(from: &str, to: &str, loss_ppm: u64, seed: u64, stop: &AtomicBool, lost: &AtomicU64) {
    let (mut from, to) = (raw(from), raw(to));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (waiter, alarm) = (from.waiter(), ethermem_ring::Alarm::new());
    while !stop.load(Ordering::Relaxed) {
        let Some(frame) = from.take() else {
            waiter.wait(&alarm, Duration::from_millis(1));
            continue;
        };
        if random.next_u64() % 1_000_000 < loss_ppm {
            lost.fetch_add(1, Ordering::Relaxed);
        } else {
            let _ = to.send(frame);
        }
    }
}

#[test]
fn frames_that_are_lost_are_sent_again() {
    let Some(two) = Two::new("frames that are lost", 1500) else { return };
    let Some(between) = Namespace::new("frames that are lost") else { return };
    // The relay has both addresses, so that frames are sent to it.
    two.client.connect("c1", &between, "r1", 1500);
    between.connect("r2", &two.node, "n1", 1500);
    let macs = [("c1", &two.client, CLIENT), ("r1", &between, NODE), ("r2", &between, CLIENT)];
    for (interface, machine, mac) in macs.into_iter().chain([("n1", &two.node, NODE)]) {
        machine.ip(&format!("link set {interface} address {mac}"));
    }
    let node = two.serve_on(&two.node, "n1");
    let (stop, lost) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for (from, to, seed) in [("r1", "r2", 1), ("r2", "r1", 2)] {
            let (stop, lost, between) = (&stop, &lost, &between);
            scope.spawn(move || between.enter(|| relay(from, to, 30_000, seed, stop, lost)));
        }
        let used = std::panic::catch_unwind(|| {
            for _ in 0..3 {
                let pool = two.open("c1", "&timeout_ms=4000").unwrap();
                use_all(&pool);
                use_long_ones(&pool);
            }
        });
        stop.store(true, Ordering::Relaxed);
        used.unwrap();
    });
    assert!(lost.load(Ordering::Relaxed) > 20, "{lost:?} of three in a hundred");
    assert_eq!(node.published.lock().unwrap().server.frames_dropped, 0);
}

#[test]
fn errors_of_frames_are_those_of_a_pool() {
    let Some(two) = Two::new("errors over frames", 1500) else { return };
    let _node = two.serve();
    let pool = two.open("c0", "").unwrap();
    let thread = pool.thread().unwrap();
    let region = thread.alloc(4096, RW).wait().unwrap();
    let outside = region.address().add(1 << 30);
    let unmapped = Error::Unmapped { address: outside, bytes: 8 };
    assert_eq!(thread.read(outside, 8).wait(), Err(unmapped));
    assert!(matches!(thread.read(Address(8), 8).wait(), Err(Error::Unmapped { .. })));
    assert_eq!(RingError::Silent(Duration::from_millis(5)).to_string(), "no answer within 5 ms");
}
