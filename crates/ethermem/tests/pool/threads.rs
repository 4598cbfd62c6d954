//! Machine threads that share a pool: no result is lost, whichever thread completes an operation.

use std::time::Instant;

use ethermem::{Chase, Pool, Region, Thread};
use ethermem_clio::memory::PageSize;
use ethermem_clio::node::Quota;
use ethermem_node::{NodeOptions, TenantOptions};
use ethermem_sim::registry::FABRIC_NAMES;
use ethermem_udp::seal::KeyFile;
use ethermem_units::Bytes;
use ethermem_wire::clio::TenantId;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::network::Served;
use super::offload::chase;
use super::ring::RW;
use super::{remote_urls, with};

/// Operations on each pool with each number of threads; `ETHERMEM_THREAD_OPERATIONS` sets more.
const OPERATIONS: u64 = 4_000;
/// Fabrics tested when no more operations are requested: EDM, a packet fabric, and one with a
/// memory node of its own. Otherwise all are.
const FABRICS: [&str; 3] = ["edm", "homa", "clio"];
/// Words of one machine thread, which no other touches.
const WORDS: u64 = 64;
/// Shared words: a counter of atomics, a lock, a counter under the lock, an element of a list.
const SHARED_BYTES: u64 = 64;

fn told_operations() -> Option<u64> {
    let told = std::env::var("ETHERMEM_THREAD_OPERATIONS").ok();
    told.map(|count| count.parse().unwrap())
}

/// The work of one machine thread, and its expected words.
struct Worker {
    pool: Pool,
    own: Region,
    shared: Region,
    model: Vec<u64>,
    draws: SplitMix64,
    added: u64,
    locked: u64,
}

impl Worker {
    fn thread(&self) -> &Thread {
        self.own.thread()
    }

    fn word(&mut self) -> (u64, usize) {
        let at = self.draws.next_u64() % WORDS;
        (at * 8, at as usize)
    }

    /// Does one drawn operation, and returns the number of pool operations in it.
    fn act(&mut self) -> u64 {
        let (offset, at) = self.word();
        let value = self.draws.next_u64();
        match self.draws.next_u64() % 20 {
            0..=3 => {
                self.own.write(offset, &value.to_le_bytes()).wait().unwrap();
                self.model[at] = value;
                1
            }
            4..=6 => {
                let read = self.own.read(offset, 8).wait().unwrap();
                assert_eq!(read, self.model[at].to_le_bytes());
                1
            }
            7 => {
                self.own.write_from(offset, &value.to_le_bytes()).unwrap();
                self.model[at] = value;
                let mut read = [0; 8];
                self.own.read_into(offset, &mut read).unwrap();
                assert_eq!(u64::from_le_bytes(read), value);
                2
            }
            8 | 9 => {
                self.thread().fetch_add(self.shared.at(0), 1).wait().unwrap();
                self.added += 1;
                1
            }
            10 | 11 => self.under_the_lock(),
            12 | 16..=19 => self.awaited(offset, at, value),
            13 => {
                let (other, second) = self.word();
                let place = |offset| ethermem::Segment { address: self.own.at(offset), bytes: 8 };
                let both = self.thread().gather(&[place(offset), place(other)]).wait().unwrap();
                assert_eq!(both[..8], self.model[at].to_le_bytes());
                assert_eq!(both[8..], self.model[second].to_le_bytes());
                1
            }
            14 => {
                let region = self.thread().alloc(4096, RW).wait().unwrap();
                assert_eq!(region.read(8, 8).wait().unwrap(), [0; 8]);
                region.free().wait().unwrap();
                self.thread().fence().wait().unwrap();
                4
            }
            _ => {
                let start = self.shared.at(32);
                let arguments = chase(start, 7).encode();
                let found = self.thread().offload(Chase::NAME, start, &arguments, &[]);
                let found = Chase::result(&found.wait().unwrap()).unwrap().unwrap();
                assert_eq!(found.value, 700_u64.to_le_bytes());
                1
            }
        }
    }

    /// Increments a counter that only the lock protects. Unlocking is two operations.
    fn under_the_lock(&mut self) -> u64 {
        let (thread, shared) = (self.thread().clone(), self.shared.clone());
        thread.lock(shared.at(8)).wait().unwrap();
        let count = shared.read(16, 8).wait().unwrap();
        let count = u64::from_le_bytes(count.try_into().unwrap()) + 1;
        shared.write(16, &count.to_le_bytes()).wait().unwrap();
        thread.unlock_wait(shared.at(8)).unwrap();
        self.locked += 1;
        5
    }

    /// Does several operations in one future, some of them concurrently.
    fn awaited(&mut self, offset: u64, at: usize, value: u64) -> u64 {
        let own = self.own.clone();
        let read = self.pool.run(async move {
            let early = own.write(offset, &value.to_le_bytes());
            own.thread().release().await.unwrap();
            early.await.unwrap();
            for _ in 0..8 {
                own.thread().swap(own.at(offset), value).await.unwrap();
            }
            own.read(offset, 8).await.unwrap()
        });
        assert_eq!(read, value.to_le_bytes());
        self.model[at] = value;
        11
    }
}

fn word(region: &Region, offset: u64) -> u64 {
    u64::from_le_bytes(region.read(offset, 8).wait().unwrap().try_into().unwrap())
}

/// Each machine thread checks its own words after every operation. The shared counters must equal
/// the number of increments.
fn storm(url: &str, threads: u64, operations: u64) {
    let pool = Pool::open(url).unwrap();
    let owner = pool.thread().unwrap();
    let shared = owner.alloc(SHARED_BYTES, RW).wait().unwrap();
    // An element of a list that a search finds: next address, key, value.
    for (offset, word) in [(32, 0), (40, 7), (48, 700)] {
        shared.write(offset, &u64::to_le_bytes(word)).wait().unwrap();
    }
    let worker = |number: u64| {
        let thread = owner.fork();
        Worker {
            pool: pool.clone(),
            own: thread.alloc(WORDS * 8, RW).wait().unwrap(),
            shared: shared.by(&thread),
            model: vec![0; WORDS as usize],
            draws: SplitMix64::seed_from_u64(threads * 1_000 + number),
            added: 0,
            locked: 0,
        }
    };
    let (share, began) = (operations / threads, Instant::now());
    let [done, added, locked] = std::thread::scope(|scope| {
        let run = |mut worker: Worker| {
            let mut done = 0;
            while done < share {
                done += worker.act();
            }
            [done, worker.added, worker.locked]
        };
        let workers: Vec<Worker> = (0..threads).map(worker).collect();
        let running: Vec<_> =
            workers.into_iter().map(|worker| scope.spawn(move || run(worker))).collect();
        running
            .into_iter()
            .map(|one| one.join().unwrap())
            .fold([0; 3], |sum, one| [sum[0] + one[0], sum[1] + one[1], sum[2] + one[2]])
    });
    assert_eq!((word(&shared, 0), word(&shared, 16)), (added, locked), "{url}, {threads} threads");
    let seconds = began.elapsed().as_secs_f64();
    println!("storm: {url} threads {threads} operations {done} seconds {seconds:.1}");
    drop((owner, shared));
    pool.close().unwrap();
}

#[test]
fn nothing_is_lost_between_machine_threads() {
    let told = told_operations();
    let fabrics = if told.is_some() { FABRIC_NAMES } else { &FABRICS };
    let simulated = fabrics.iter().map(|fabric| format!("sim:{fabric}?nodes=4"));
    let urls = std::iter::once("local:".to_owned()).chain(simulated);
    // The longest timeout that may be given, because the machine is busy.
    let remote = remote_urls().iter().map(|url| with(url, "timeout_ms=4500"));
    for url in urls.chain(remote) {
        for threads in [1, 2, 4, 16] {
            storm(&url, threads, told.unwrap_or(OPERATIONS));
        }
    }
}

/// Lengths beside the shortest write whose data are lent, and of many datagrams.
const LONG_BYTES: [u64; 6] = [8191, 8192, 8193, 65_536, 300_000, 700_001];
/// Each thread's memory.
const LONG_REGION: u64 = 1 << 20;

/// One thread's long writes, each read back; every fourth is not waited for in place.
fn write_long(region: &Region, seed: u64) {
    let mut draws = SplitMix64::seed_from_u64(seed);
    let mut model = vec![0; LONG_REGION as usize];
    for round in 0..12 {
        let bytes = LONG_BYTES[(draws.next_u64() % 6) as usize];
        let from = draws.next_u64() % (LONG_REGION - bytes);
        let part = &mut model[from as usize..][..bytes as usize];
        let first = draws.next_u64();
        part.iter_mut().zip(first..).for_each(|(octet, value)| *octet = (value >> 3) as u8);
        if round % 4 == 3 {
            let handle = region.write(from, part);
            assert_eq!(region.read(from, 8).wait().unwrap(), part[..8]);
            handle.wait().unwrap();
        } else {
            region.write_from(from, part).unwrap();
        }
        let mut found = vec![0; LONG_REGION as usize];
        region.read_into(0, &mut found).unwrap();
        assert!(found == model, "{bytes} B at {from}, round {round} of seed {seed}");
    }
}

/// The data of a thread that drives the pool are sent from its memory, and those of parked threads
/// from copies.
#[test]
fn long_writes_of_many_threads_arrive_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenant.toml");
    let key = KeyFile::generate(TenantId(1)).unwrap();
    key.write(&path).unwrap();
    let tenant = TenantOptions { name: "one".to_owned(), key, quota: Quota::UNLIMITED };
    let in_clear = NodeOptions { page: PageSize::Kib4, ..NodeOptions::in_clear(Bytes(64 << 20)) };
    let options = NodeOptions { insecure: false, tenants: vec![tenant], ..in_clear };
    let served = Served::serve(&options);
    let sealed = with(&served.url(), &format!("key={}", path.display()));
    let mut urls = remote_urls().to_vec();
    // Datagrams that go in trains, and alone.
    let udp = urls[urls.len() - 1].clone();
    urls.extend([1472, 9000].map(|bytes| with(&udp, &format!("datagram_bytes={bytes}"))));
    urls.extend([sealed.clone(), with(&sealed, "datagram_bytes=1472")]);
    for url in urls {
        for threads in [1, 2, 5] {
            let pool = Pool::open(&with(&url, "timeout_ms=4500")).unwrap();
            let owner = pool.thread().unwrap();
            std::thread::scope(|scope| {
                for number in 0..threads {
                    let region = owner.fork().alloc(LONG_REGION, RW).wait().unwrap();
                    scope.spawn(move || write_long(&region, threads * 100 + number));
                }
            });
            drop(owner);
            pool.close().unwrap();
        }
    }
}
