//! A run: records are loaded, then clients request them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ethermem::{Error, Kind, LineCounters, LinkBlocks, Pool};
use ethermem_units::Ps;
use serde::Serialize;

use super::config::{Extent, StoreKind, YcsbConfig};
use super::inserted::Inserted;
use super::mix::{Action, Records, SCAN_RECORDS_MAX};
use super::store::{Client, Store, full};
use super::values;
use crate::clients::run_clients;
use crate::draw::Draws;
use crate::error::BenchError;
use crate::latency::{Latencies, LatencyStats, per_second};

/// With more machine threads than this, clients share tallies.
const TALLIES_MAX: u32 = 16;
/// Name of the row of all operations, where a read-modify-write counts once.
pub const ALL: &str = "all";

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct YcsbResult {
    /// Configuration of the run.
    #[serde(flatten)]
    pub config: YcsbConfig,
    /// Kind of time: `fabric` or `machine`.
    pub time: &'static str,
    /// For a `node:` pool, its transport.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// Duration of the load phase in ns.
    pub load_ns: f64,
    /// Records loaded per second of the load phase.
    pub loaded_per_s: f64,
    /// Duration of the measured operations in ns, of all clients together.
    pub run_ns: f64,
    /// Operations per second.
    pub operations_per_s: f64,
    /// Requests per second: a read-modify-write is two.
    pub requests_per_s: f64,
    /// Reads among the requests, per second.
    pub reads_per_s: f64,
    /// Writes among the requests, per second: updates and inserts.
    pub writes_per_s: f64,
    /// Fraction of requests that went to a memory node.
    pub remote_share: f64,
    /// Link use of a pool with one compute node and one memory node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<LinkUse>,
    /// Accesses of lines by the measured operations, where compute nodes of a simulated fabric have
    /// caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheUse>,
    /// Number of operations that the fabric lost; latencies exclude them.
    pub lost: u64,
    /// Latencies of all operations, and of each kind that occurred. Reads and updates include those
    /// of read-modify-writes, as in YCSB.
    pub latencies: Vec<LatencyStats>,
}

/// Use of the links by the measured requests, in the fabric's own blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkUse {
    /// Fraction of the blocks from the compute node that carried requests and written data.
    pub requesting_utilisation: f64,
    /// Fraction of the blocks to the compute node that carried responses and grants.
    pub replying_utilisation: f64,
    /// Requests of this mix per second that would fill the requesting direction; the other
    /// direction's capacity is ignored.
    pub requesting_alone_per_s: f64,
    /// Writes among those requests, per second.
    pub requesting_alone_writes_per_s: f64,
}

/// Use of the compute nodes' caches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CacheUse {
    /// Share of accesses to lines that were in the cache; 0 if there were none.
    pub hit_rate: f64,
    /// Reads of lines that were in the cache.
    pub read_hits: u64,
    /// Reads of lines that were fetched.
    pub read_misses: u64,
    /// Writes of lines that were in the cache.
    pub write_hits: u64,
    /// Writes of lines that were not.
    pub write_misses: u64,
    /// Dirty lines that had to go for others.
    pub evictions: u64,
}

impl CacheUse {
    fn between(before: LineCounters, after: LineCounters) -> CacheUse {
        let since = |of: fn(&LineCounters) -> u64| of(&after) - of(&before);
        let counters = LineCounters {
            read_hits: since(|all| all.read_hits),
            read_misses: since(|all| all.read_misses),
            write_hits: since(|all| all.write_hits),
            write_misses: since(|all| all.write_misses),
            evictions: since(|all| all.evictions),
        };
        let LineCounters { read_hits, read_misses, write_hits, write_misses, evictions } = counters;
        let hit_rate = counters.hit_rate().unwrap_or(0.0);
        CacheUse { hit_rate, read_hits, read_misses, write_hits, write_misses, evictions }
    }
}

impl YcsbResult {
    /// The row of all operations; `None` if the fabric lost each of them.
    #[must_use]
    pub fn all(&self) -> Option<&LatencyStats> {
        self.latencies.iter().find(|row| row.op == ALL)
    }
}

/// Loads the records and runs the operations. `interrupt` ends it.
///
/// # Errors
/// [`BenchError`]: the configuration is not allowed, the pool has too little memory, an operation
/// failed, or a record differs from what was written.
pub fn run(config: &YcsbConfig, interrupt: &'static AtomicBool) -> Result<YcsbResult, BenchError> {
    config.check()?;
    let url = &config.pool;
    let pool = Pool::open(url).map_err(|error| BenchError::Open { url: url.clone(), error })?;
    let failed = |op| move |error| BenchError::Failed { url: url.clone(), op, error };
    let store = pool.run(Store::open(&pool, config))?;
    let run = Arc::new(SharedRun::new(config, &pool, store, interrupt));
    let began = pool.now();
    run_clients(&pool, config.clients, |client| load(run.clone(), client));
    run.failure()?;
    let loaded = pool.now() - began;
    run_clients(&pool, config.clients, |client| ask(run.clone(), client));
    run.failure()?;
    let result = run.result(loaded);
    drop(run);
    pool.close().map_err(failed("close"))?;
    Ok(result)
}

/// State shared by the clients of a run.
struct SharedRun {
    config: YcsbConfig,
    computes: u16,
    simulated: bool,
    /// Link blocks of a read and of an update, if all use the same two links.
    read_blocks: Option<(LinkBlocks, f64)>,
    write_blocks: Option<(LinkBlocks, f64)>,
    pool: Pool,
    /// What the caches had done before the first measured operation.
    cache_before: Mutex<Option<LineCounters>>,
    store: Store,
    inserted: Inserted,
    next: AtomicU64,
    began: AtomicU64,
    ended: AtomicU64,
    tallies: Vec<Mutex<Tally>>,
    failure: Mutex<Option<BenchError>>,
    stop: AtomicBool,
    interrupt: &'static AtomicBool,
}

/// Measurements of some clients.
struct Tally {
    operations: Latencies,
    /// Latencies by [`Action`].
    actions: [Latencies; Action::ALL.len()],
    lost: u64,
    /// Operations that completed since the first measured one began. They include warm-up
    /// operations in flight then, because the last ones have no successors.
    completed: u64,
    remote: u64,
    requests: u64,
    reads: u64,
}

impl Tally {
    fn new() -> Tally {
        Tally {
            operations: Latencies::new(),
            actions: std::array::from_fn(|_| Latencies::new()),
            lost: 0,
            completed: 0,
            remote: 0,
            requests: 0,
            reads: 0,
        }
    }

    fn measure(&mut self, began: Ps, done: &Done) {
        let mut note = |action: Action, took| self.actions[action as usize].record(took);
        note(done.action, done.ended - began);
        if let Some(read) = done.read {
            note(Action::Read, read - began);
            note(Action::Update, done.ended - read);
        }
        self.operations.record(done.ended - began);
    }

    fn add(&mut self, other: &Tally) {
        self.operations.add(&other.operations);
        for (all, some) in self.actions.iter_mut().zip(&other.actions) {
            all.add(some);
        }
        self.remote += other.remote;
        self.requests += other.requests;
        self.reads += other.reads;
        self.lost += other.lost;
        self.completed += other.completed;
    }
}

impl SharedRun {
    fn new(
        config: &YcsbConfig,
        pool: &Pool,
        store: Store,
        interrupt: &'static AtomicBool,
    ) -> SharedRun {
        let tallies = config.clients.min(TALLIES_MAX);
        // Inserts and scans have other lengths, and local objects and cached lines use no link.
        let is_plain = Action::ALL.iter().all(|&action| {
            !matches!(action, Action::Insert | Action::Scan) || config.workload.share(action) == 0.0
        });
        let is_known = is_plain
            && config.store == StoreKind::Objects
            && config.local_to_remote.is_none()
            && pool.line_counters().is_none()
            && pool.nodes() == (1, 1);
        let blocks =
            |kind, extent| pool.link_blocks(kind, config.bytes(extent)).filter(|_| is_known);
        SharedRun {
            config: config.clone(),
            computes: pool.nodes().0,
            simulated: pool.is_simulated(),
            read_blocks: blocks(Kind::Read, config.reads),
            write_blocks: blocks(Kind::Write, config.updates),
            pool: pool.clone(),
            cache_before: Mutex::new(pool.line_counters()),
            store,
            inserted: Inserted::new(config.records),
            next: AtomicU64::new(0),
            began: AtomicU64::new(u64::MAX),
            ended: AtomicU64::new(0),
            tallies: (0..tallies).map(|_| Mutex::new(Tally::new())).collect(),
            failure: Mutex::new(None),
            stop: AtomicBool::new(false),
            interrupt,
        }
    }

    /// A client, on the next compute node in round-robin order.
    fn client(&self, client: u32) -> Client {
        let compute = (client % u32::from(self.computes)) as u16;
        self.store.client(compute)
    }

    /// Ends all clients.
    fn fail(&self, failure: BenchError) {
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(failure);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn fail_op(&self, op: &'static str, error: Error) {
        self.fail(BenchError::Failed { url: self.config.pool.clone(), op, error });
    }

    fn must_end(&self) -> bool {
        if self.interrupt.load(Ordering::Relaxed) {
            self.fail(BenchError::Interrupted);
        }
        self.stop.load(Ordering::Relaxed)
    }

    fn failure(&self) -> Result<(), BenchError> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take().map_or(Ok(()), Err)
    }

    fn check(&self, record: u64, from: u64, found: &[u8]) {
        if !values::are(record, from, found) {
            self.fail(BenchError::Corrupt { url: self.config.pool.clone(), record });
        }
    }

    fn result(&self, loaded: Ps) -> YcsbResult {
        let mut all = Tally::new();
        for tally in &self.tallies {
            all.add(&tally.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let [began, ended] = [&self.began, &self.ended].map(|at| Ps(at.load(Ordering::Relaxed)));
        let run = ended.saturating_sub(began);
        let operations = all.operations.stats(ALL);
        let kinds = Action::ALL.iter().zip(&all.actions);
        let kinds = kinds.filter_map(|(action, times)| times.stats(action.name()));
        YcsbResult {
            config: self.config.clone(),
            time: if self.simulated { "fabric" } else { "machine" },
            choice: self.pool.choice().map(str::to_owned),
            load_ns: loaded.as_ns_f64(),
            loaded_per_s: per_second(self.config.records, loaded),
            run_ns: run.as_ns_f64(),
            operations_per_s: per_second(all.completed, run),
            requests_per_s: per_second(all.requests, run),
            reads_per_s: per_second(all.reads, run),
            writes_per_s: per_second(all.requests - all.reads, run),
            remote_share: all.remote as f64 / all.requests.max(1) as f64,
            links: self.links(&all, run),
            cache: self.cache(),
            lost: all.lost,
            latencies: operations.into_iter().chain(kinds).collect(),
        }
    }
}

impl SharedRun {
    fn cache(&self) -> Option<CacheUse> {
        let before = *self.cache_before.lock().unwrap_or_else(PoisonError::into_inner);
        Some(CacheUse::between(before?, self.pool.line_counters()?))
    }

    /// Link use by every measured request; see [`LinkUse`].
    fn links(&self, all: &Tally, run: Ps) -> Option<LinkUse> {
        let (read, blocks_per_s) = self.read_blocks?;
        let (write, _) = self.write_blocks?;
        let (reads, writes) = (all.reads as f64, (all.requests - all.reads) as f64);
        let requests = (reads + writes).max(1.0);
        let requesting = reads * read.compute_uplink + writes * write.compute_uplink;
        let replying = reads * read.compute_downlink + writes * write.compute_downlink;
        let room = (blocks_per_s * run.as_s_f64()).max(1.0);
        let alone_per_s = blocks_per_s / (requesting / requests);
        Some(LinkUse {
            requesting_utilisation: requesting / room,
            replying_utilisation: replying / room,
            requesting_alone_per_s: alone_per_s,
            requesting_alone_writes_per_s: alone_per_s * writes / requests,
        })
    }
}

/// Loads this client's records. A lost write is retried.
async fn load(run: Arc<SharedRun>, index: u32) {
    let mut client = run.client(index);
    let mut data = vec![0; run.config.record_bytes as usize];
    let turns = (index.into()..run.config.records).step_by(run.config.clients as usize);
    for record in turns {
        values::fill(record, 0, &mut data);
        loop {
            match client.insert(record, &data).await {
                Ok(()) => break,
                Err(Error::Lost) if !run.must_end() => {}
                Err(error @ Error::Full { .. }) => return run.fail(full(&run.config, error)),
                Err(error) => return run.fail_op("load", error),
            }
        }
        if run.must_end() {
            return;
        }
    }
}

/// Requests records until all operations were taken.
async fn ask(run: Arc<SharedRun>, index: u32) {
    let config = &run.config;
    let mut asker = Asker {
        client: run.client(index),
        draws: Draws::new(config.seed, index.into()),
        records: Records::new(
            config.distribution,
            config.workload,
            config.records,
            config.operations_total(),
        ),
        data: vec![0; config.record_bytes as usize],
        tally: index as usize % run.tallies.len(),
        run: run.clone(),
    };
    loop {
        let number = run.next.fetch_add(1, Ordering::Relaxed);
        if number >= config.operations_total() || run.must_end() {
            return;
        }
        let is_measured = number >= config.warmup_operations;
        if number == config.warmup_operations {
            let mut before = run.cache_before.lock().unwrap_or_else(PoisonError::into_inner);
            *before = run.pool.line_counters();
        }
        let began = run.pool.now();
        if is_measured {
            run.began.fetch_min(began.0, Ordering::Relaxed);
        }
        match asker.operation().await {
            Ok(done) => asker.note(began, &done, is_measured),
            Err((_, Error::Lost)) => asker.tally(|tally| tally.lost += u64::from(is_measured)),
            Err((action, error)) => return run.fail_op(action.name(), error),
        }
    }
}

/// One client of the run phase.
struct Asker {
    client: Client,
    draws: Draws,
    records: Records,
    data: Vec<u8>,
    /// Index of its tally.
    tally: usize,
    run: Arc<SharedRun>,
}

/// A completed operation, with the completion time of each of its requests.
struct Done {
    action: Action,
    is_remote: bool,
    /// Completion of the read within a read-modify-write.
    read: Option<Ps>,
    ended: Ps,
}

impl Asker {
    async fn operation(&mut self) -> Result<Done, (Action, Error)> {
        let action = self.run.config.workload.next(&mut self.draws);
        let mut read = None;
        let record = match action {
            Action::Insert => self.run.inserted.begin(),
            _ => self.records.next(self.run.inserted.last(), &mut self.draws),
        };
        let done = match action {
            Action::Read => self.read(record).await,
            Action::Update => self.update(record).await,
            Action::Insert => self.insert(record).await,
            Action::Scan => self.scan(record).await,
            Action::ReadModifyWrite => match self.read(record).await {
                Ok(ended) => {
                    read = Some(ended);
                    self.update(record).await
                }
                Err(error) => Err(error),
            },
        };
        let is_remote = self.run.store.is_remote(record);
        done.map(|ended| Done { action, is_remote, read, ended }).map_err(|error| (action, error))
    }

    /// Offset and length of an operation of this extent.
    fn part(&mut self, extent: Extent) -> (u64, u64) {
        let bytes = self.run.config.bytes(extent);
        (self.draws.below(self.run.config.record_bytes / bytes) * bytes, bytes)
    }

    async fn read(&mut self, record: u64) -> Result<Ps, Error> {
        let (from, bytes) = self.part(self.run.config.reads);
        let found = self.client.read(record, from, bytes).await?;
        let ended = self.run.pool.now();
        self.run.check(record, from, &found);
        Ok(ended)
    }

    async fn update(&mut self, record: u64) -> Result<Ps, Error> {
        let (from, bytes) = self.part(self.run.config.updates);
        let data = &mut self.data[..bytes as usize];
        values::fill(record, from, data);
        self.client.update(record, from, data).await?;
        Ok(self.run.pool.now())
    }

    async fn insert(&mut self, record: u64) -> Result<Ps, Error> {
        values::fill(record, 0, &mut self.data);
        let inserted = self.client.insert(record, &self.data).await;
        let ended = self.run.pool.now();
        match inserted {
            Ok(()) => self.run.inserted.end(record),
            // The record may or may not exist, so it is never requested, nor is any later one.
            Err(error) => return Err(error),
        }
        Ok(ended)
    }

    async fn scan(&mut self, record: u64) -> Result<Ps, Error> {
        let count = 1 + self.draws.below(SCAN_RECORDS_MAX);
        let found = self.client.scan(record, count).await?;
        let ended = self.run.pool.now();
        for (record, bytes) in found {
            self.run.check(record, 0, &bytes);
        }
        Ok(ended)
    }

    fn tally(&self, note: impl FnOnce(&mut Tally)) {
        note(&mut self.run.tallies[self.tally].lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn note(&self, began: Ps, done: &Done, is_measured: bool) {
        let is_counted = done.ended.0 > self.run.began.load(Ordering::Relaxed);
        if is_measured {
            self.run.ended.fetch_max(done.ended.0, Ordering::Relaxed);
        }
        self.tally(|tally| {
            if is_measured {
                tally.measure(began, done);
            }
            if is_counted {
                let requests = if done.read.is_some() { 2 } else { 1 };
                tally.completed += 1;
                tally.requests += requests;
                tally.reads += u64::from(!matches!(done.action, Action::Update | Action::Insert));
                tally.remote += if done.is_remote { requests } else { 0 };
            }
        });
    }
}
