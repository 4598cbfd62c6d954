//! One kind of operation, repeated: its latency and its rate.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use ethermem::{Address, Error, Permissions, Pool, Thread};
use ethermem_units::Ps;
use serde::Serialize;

use crate::draw::Draws;
use crate::error::BenchError;
use crate::latency::{Latencies, per_second};

/// Largest read or write in bytes.
pub const BYTES_MAX: u64 = 1 << 26;
/// Largest number of operations in flight.
pub const DEPTH_MAX: u32 = 4096;
/// Length of a word in bytes.
const WORD_BYTES: u64 = 8;
/// Number of places that each stream visits in random order, as long as they fit this memory
/// together.
const PLACES_MAX: u64 = 256;
const PLACES_BYTES_MAX: u64 = 1 << 26;
/// Warm-up operations are the measured number divided by this.
const WARMUP_DIVISOR: u64 = 10;

/// Measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MicroOp {
    /// Reads bytes from the pool.
    Read,
    /// Writes bytes to the pool.
    Write,
    /// A compare-and-swap that succeeds.
    Cas,
    /// An addition to a word.
    FetchAdd,
    /// Acquires a free lock; releasing it is not measured.
    Lock,
}

impl MicroOp {
    /// All operations, in order.
    pub const ALL: [MicroOp; 5] =
        [MicroOp::Read, MicroOp::Write, MicroOp::Cas, MicroOp::FetchAdd, MicroOp::Lock];

    /// Name in arguments and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MicroOp::Read => "read",
            MicroOp::Write => "write",
            MicroOp::Cas => "cas",
            MicroOp::FetchAdd => "fetch-add",
            MicroOp::Lock => "lock",
        }
    }

    /// Length in bytes, if it is fixed.
    #[must_use]
    pub const fn fixed_bytes(self) -> Option<u64> {
        match self {
            MicroOp::Read | MicroOp::Write => None,
            MicroOp::Cas | MicroOp::FetchAdd | MicroOp::Lock => Some(WORD_BYTES),
        }
    }
}

impl fmt::Display for MicroOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MicroOp {
    type Err = String;

    fn from_str(text: &str) -> Result<MicroOp, String> {
        let found = MicroOp::ALL.into_iter().find(|op| op.name() == text);
        found.ok_or_else(|| {
            let names = MicroOp::ALL.map(MicroOp::name);
            format!("must be one of {}", names.join(", "))
        })
    }
}

/// One point of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MicroConfig {
    /// URL of the pool.
    pub pool: String,
    /// Measured operation.
    pub op: MicroOp,
    /// Length in bytes.
    pub bytes: u64,
    /// Number of operations in flight.
    pub depth: u32,
    /// Number of measured operations.
    pub operations: u64,
    /// Seed of the places.
    pub seed: u64,
}

impl MicroConfig {
    fn check(&self) -> Result<(), BenchError> {
        let refused = |name: &str, found: u64, allowed: String| {
            Err(BenchError::Refused(format!("{name} {found}: {allowed}")))
        };
        if let Some(bytes) = self.op.fixed_bytes()
            && bytes != self.bytes
        {
            return refused("bytes", self.bytes, format!("{} is of {bytes} B", self.op));
        }
        if !(1..=BYTES_MAX).contains(&self.bytes) {
            return refused("bytes", self.bytes, format!("must be 1 to {BYTES_MAX}"));
        }
        if !(1..=DEPTH_MAX).contains(&self.depth) {
            return refused("depth", self.depth.into(), format!("must be 1 to {DEPTH_MAX}"));
        }
        if self.operations < u64::from(self.depth) {
            let allowed = format!("must be at least the depth, {}", self.depth);
            return refused("operations", self.operations, allowed);
        }
        Ok(())
    }
}

/// Result of a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MicroResult {
    /// URL of the pool.
    pub pool: String,
    /// Measured operation.
    pub op: MicroOp,
    /// Length in bytes.
    pub bytes: u64,
    /// Number of operations in flight.
    pub depth: u32,
    /// Median latency in ns.
    pub p50_ns: f64,
    /// 99th percentile in ns.
    pub p99_ns: f64,
    /// Mean latency in ns.
    pub mean_ns: f64,
    /// Completed operations per second, of all streams together.
    pub operations_per_s: f64,
    /// Number of measured operations.
    pub operations: u64,
    /// Number of operations that the fabric lost; latencies exclude them.
    pub lost: u64,
    /// Kind of time: `fabric` or `machine`.
    pub time: &'static str,
    /// For a `node:` pool, its transport.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
}

/// Measures a point: `depth` streams of one compute node, each with its own places, on the memory
/// nodes in round-robin order. `interrupt` ends it.
///
/// # Errors
/// [`BenchError`]: the point is not allowed, or the pool failed.
pub fn run(
    config: &MicroConfig,
    interrupt: &'static AtomicBool,
) -> Result<MicroResult, BenchError> {
    config.check()?;
    let url = &config.pool;
    let pool = Pool::open(url).map_err(|error| BenchError::Open { url: url.clone(), error })?;
    let failed = |error| BenchError::Failed { url: url.clone(), op: config.op.name(), error };
    let streams = pool.run(streams(&pool, config))?;
    let shared = Rc::new(RefCell::new(Shared::new(config, interrupt)));
    let tasks = pool.tasks();
    for stream in streams {
        tasks.spawn(stream.run(shared.clone()));
    }
    tasks.run();
    let shared = shared.take();
    if interrupt.load(Ordering::Relaxed) {
        return Err(BenchError::Interrupted);
    }
    if let Some(error) = shared.failure {
        return Err(failed(error));
    }
    let Some(stats) = shared.latencies.stats(config.op.name()) else {
        return Err(failed(Error::Lost));
    };
    let result = MicroResult {
        pool: url.clone(),
        op: config.op,
        bytes: config.bytes,
        depth: config.depth,
        p50_ns: stats.p50_ns,
        p99_ns: stats.p99_ns,
        mean_ns: stats.mean_ns,
        operations_per_s: per_second(shared.completed, shared.ended - shared.began),
        operations: stats.operations,
        lost: shared.lost,
        time: if pool.is_simulated() { "fabric" } else { "machine" },
        choice: pool.choice().map(str::to_owned),
    };
    pool.close().map_err(failed)?;
    Ok(result)
}

/// The streams of a point, each with its memory.
async fn streams(pool: &Pool, config: &MicroConfig) -> Result<Vec<Stream>, BenchError> {
    let failed =
        |error| BenchError::Failed { url: config.pool.clone(), op: config.op.name(), error };
    let (_, memories) = pool.nodes();
    let owner = pool.thread_on(0).map_err(failed)?;
    let stride = config.bytes.next_multiple_of(WORD_BYTES);
    let depth = u64::from(config.depth);
    let places = (PLACES_BYTES_MAX / (depth * stride)).clamp(1, PLACES_MAX);
    let mut streams = Vec::new();
    for index in 0..config.depth {
        let memory = (index % u32::from(memories)) as u16;
        let region = owner.alloc_on(memory, places * stride, Permissions::READ_WRITE).await;
        let region = region.map_err(|error| BenchError::Load {
            url: config.pool.clone(),
            needed: format!("{} B for each of {depth} operations under way", places * stride),
            error,
        })?;
        streams.push(Stream {
            thread: owner.fork(),
            base: region.address(),
            places,
            stride,
            draws: Draws::new(config.seed, index.into()),
            data: vec![0xA5; config.bytes as usize],
            op: config.op,
            word: 0,
        });
    }
    Ok(streams)
}

/// State shared by the streams of a point.
struct Shared {
    /// Operations that have yet to begin.
    left: u64,
    warmup: u64,
    latencies: Latencies,
    lost: u64,
    began: Ps,
    ended: Ps,
    /// Operations that completed between the two times. They include those in flight when the first
    /// measured one began, because the last ones have no successors.
    completed: u64,
    failure: Option<Error>,
    interrupt: &'static AtomicBool,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            left: 0,
            warmup: 0,
            latencies: Latencies::new(),
            lost: 0,
            began: Ps::MAX,
            ended: Ps::ZERO,
            completed: 0,
            failure: None,
            interrupt: &NEVER,
        }
    }
}

impl Shared {
    fn new(config: &MicroConfig, interrupt: &'static AtomicBool) -> Shared {
        let warmup = config.operations / WARMUP_DIVISOR + u64::from(config.depth);
        Shared { left: config.operations + warmup, warmup, interrupt, ..Shared::default() }
    }

    /// `None` after the last operation; otherwise true if the operation is measured.
    fn begin(&mut self) -> Option<bool> {
        if self.left == 0 || self.failure.is_some() || self.interrupt.load(Ordering::Relaxed) {
            return None;
        }
        self.left -= 1;
        let is_measured = self.warmup == 0;
        self.warmup = self.warmup.saturating_sub(1);
        Some(is_measured)
    }
}

/// One stream of operations, of which one is in flight.
struct Stream {
    thread: Thread,
    base: Address,
    places: u64,
    stride: u64,
    draws: Draws,
    data: Vec<u8>,
    op: MicroOp,
    /// Expected content of its word.
    word: u64,
}

impl Stream {
    async fn run(mut self, shared: Rc<RefCell<Shared>>) {
        loop {
            let Some(is_measured) = shared.borrow_mut().begin() else { return };
            let place = match self.op {
                MicroOp::Read | MicroOp::Write => self.draws.below(self.places) * self.stride,
                _ => 0,
            };
            let at = self.base.add(place);
            let began = self.thread.now();
            if is_measured {
                let mut shared = shared.borrow_mut();
                shared.began = shared.began.min(began);
            }
            let done = self.operation(at).await;
            let ended = self.thread.now();
            if self.op == MicroOp::Lock
                && done.is_ok()
                && let Err(error) = self.thread.unlock(at).await
            {
                shared.borrow_mut().failure.get_or_insert(error);
                return;
            }
            let mut shared = shared.borrow_mut();
            match done {
                Ok(()) => {
                    if is_measured {
                        shared.ended = shared.ended.max(ended);
                        shared.latencies.record(ended - began);
                    }
                    shared.completed += u64::from(ended > shared.began);
                }
                // The state of the lock or the word is unknown after this.
                Err(Error::Lost) if self.op.fixed_bytes().is_none() => {
                    shared.lost += u64::from(is_measured);
                }
                Err(error) => {
                    shared.failure.get_or_insert(error);
                    return;
                }
            }
        }
    }

    async fn operation(&mut self, at: Address) -> Result<(), Error> {
        match self.op {
            MicroOp::Read => self.thread.read(at, self.data.len() as u64).await.map(drop),
            MicroOp::Write => self.thread.write(at, &self.data).await,
            MicroOp::Cas => {
                let before =
                    self.thread.compare_and_swap(at, self.word, self.word.wrapping_add(1)).await?;
                assert_eq!(before, self.word, "nobody else has this word");
                self.word = self.word.wrapping_add(1);
                Ok(())
            }
            MicroOp::FetchAdd => self.thread.fetch_add(at, 1).await.map(drop),
            MicroOp::Lock => self.thread.lock(at).await,
        }
    }
}
