//! Machine threads that share a pool: no result is lost, whichever thread completes an operation.

use std::time::Instant;

use ethermem::{Chase, Pool, Region, Thread};
use ethermem_sim::registry::FABRIC_NAMES;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

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
