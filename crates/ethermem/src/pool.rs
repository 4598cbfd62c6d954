//! Pools, which applications open by URL.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use ethermem_offload::Offload;
use ethermem_pool::{Error, Tasks, Thread, Unfinished};
#[cfg(feature = "sim")]
use ethermem_sim::{Kind, workload::LinkBlocks};
use ethermem_units::Ps;

#[cfg(feature = "sim")]
use crate::backends::sim::Sim;
use crate::open_error::OpenError;
use crate::scheme::{Scheme, Url};
use crate::table::SCHEMES;

/// Remote memory, on the fabric that its URL names. Clones are the same pool.
///
/// A pool over a network is its process's alone: in a fork of that process every operation ends
/// with [`Error::Forked`], and nothing is sent. A child opens a pool of its own.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ethermem::{Permissions, Pool};
///
/// let pool = Pool::open("sim:edm?nodes=2&link_gbps=25")?;
/// let thread = pool.thread()?;
/// let region = thread.alloc(4096, Permissions::READ_WRITE).wait()?;
/// region.write(0, b"hello").wait()?;
/// let before = pool.now();
/// assert_eq!(region.read(0, 5).wait()?, b"hello");
/// // A read request there, 82 ns of DRAM, and one chunk back.
/// assert!(pool.now() - before > ethermem::Ps::from_ns(299 + 82));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pool {
    pool: ethermem_pool::Pool,
    url: Arc<str>,
}

impl Pool {
    /// Opens a pool.
    ///
    /// # Errors
    /// [`OpenError`] with the part of the URL that is wrong, and what is allowed; or that the
    /// memory node is not there.
    pub fn open(url: &str) -> Result<Pool, OpenError> {
        Pool::open_among(&SCHEMES, url)
    }

    /// Opens a pool by the row that one of these schemes has: for programs that bring a backend of
    /// their own, beside those of [`SCHEMES`].
    ///
    /// # Errors
    /// As [`Pool::open`].
    pub fn open_among(schemes: &[&Scheme], url: &str) -> Result<Pool, OpenError> {
        let opened = Url::read(schemes, url)?.open()?;
        let pool = ethermem_pool::Pool::new(opened);
        let no_thread = |error| OpenError::NotAllowed { problem: format!("no thread: {error}") };
        Ok(Pool { pool: pool.map_err(no_thread)?, url: url.into() })
    }

    /// What it was opened by.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How the node of `node:` is reached, and what of the other way was measured, or why there is
    /// none: a line for people, as `by ring://eth0/02:00:00:00:00:0a, 1.9 us a round trip, by
    /// udp://host:7400 3.6 us`. `None` where the URL leaves no choice.
    #[must_use]
    pub fn choice(&self) -> Option<&str> {
        self.pool.facts().choice.as_deref()
    }

    /// A new process's first thread, on the next of the compute nodes in turn.
    ///
    /// # Errors
    /// None but over a network, where the node may be away, or have no place for a process.
    pub fn thread(&self) -> Result<Thread, Error> {
        self.pool.thread()
    }

    /// The compute node whose turn it is: threads that are given out in turn spread over all.
    #[must_use]
    pub fn next_compute(&self) -> u16 {
        self.pool.next_compute()
    }

    /// A new process's first thread, on a compute node.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`]; else as [`Pool::thread`].
    pub fn thread_on(&self, compute: u16) -> Result<Thread, Error> {
        self.pool.thread_on(compute)
    }

    /// How many compute nodes and memory nodes there are.
    #[must_use]
    pub fn nodes(&self) -> (u16, u16) {
        let facts = self.pool.facts();
        (facts.compute_nodes, facts.memory_nodes)
    }

    /// Time since the pool was opened: the fabric's own where it has one.
    #[must_use]
    pub fn now(&self) -> Ps {
        self.pool.now()
    }

    /// Whether time is a simulated fabric's, which passes in operations and sleep alone.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.pool.facts().is_simulated
    }

    /// Events that the simulated fabric has handled; 0 elsewhere.
    #[must_use]
    pub fn events(&self) -> u64 {
        #[cfg(feature = "sim")]
        if let Some(events) = self.simulated(Sim::events) {
            return events;
        }
        0
    }

    /// What a message of so many bytes takes of a simulated fabric's links, and how many blocks go
    /// over one in a second; `None` elsewhere.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn link_blocks(&self, kind: Kind, bytes: u64) -> Option<(LinkBlocks, f64)> {
        self.simulated(|sim| sim.link_blocks(kind, bytes))
    }

    /// Asks the simulated fabric, where the pool has one.
    #[cfg(feature = "sim")]
    fn simulated<R>(&self, ask: impl FnOnce(&Sim) -> R) -> Option<R> {
        self.pool.with_backend(|backend| backend.extension()?.downcast_ref::<Sim>().map(ask))
    }

    /// Ends the traffic beside, and checks the invariants of a simulated fabric: bytes conserved,
    /// nothing left behind. Over a network, ends all processes of this pool, whose memory the node
    /// takes back. Operations that are under way end first. What waits for a lock of another
    /// thread, or for a time, has 2 s for that.
    ///
    /// # Errors
    /// [`Error::Violated`]; [`Error::NoAnswer`] when the node did not answer;
    /// [`Error::StillWaiting`] with what the pool was closed without.
    pub fn close(self) -> Result<(), Error> {
        self.pool.close()
    }

    /// Lets what is under way go on until an operation ends or for a short rest; false when nothing
    /// is under way. For programs that ask now and then ([`crate::Pending::poll_result`]): on a
    /// fabric with a time of its own, it passes here and in waiting, and not between two questions.
    pub fn step(&self) -> bool {
        self.pool.step()
    }

    /// Makes an operation known to the memory nodes of this program, over one of the same name. A
    /// node elsewhere has those that it was started with.
    pub fn register(&self, name: &str, offload: Arc<dyn Offload>) {
        self.pool.register(name, offload);
    }

    /// The same, unless there is one of this name: for an operation that keeps something, which a
    /// second one would not know.
    pub fn register_once(&self, name: &str, offload: Arc<dyn Offload>) {
        self.pool.register_once(name, offload);
    }

    /// Runs the application's code until it is done, with what it awaits of this pool. Other
    /// machine threads may wait for the same pool: one of them drives it for all.
    ///
    /// # Panics
    /// When the code awaits something that is not of this pool, nothing of it is under way, and no
    /// other machine thread can go on; see [`Pool::try_run`].
    pub fn run<F: Future>(&self, code: F) -> F::Output {
        self.pool.run(code)
    }

    /// As [`Pool::run`], without the panic.
    ///
    /// # Errors
    /// [`Unfinished::Stalled`]: at once where no other machine thread has waited for the pool, and
    /// else after 10 s in which none of them could go on.
    pub fn try_run<F: Future>(&self, code: F) -> Result<F::Output, Unfinished> {
        self.pool.try_run(code)
    }

    /// As [`Pool::try_run`], and asks about every 20 ms whether to give up.
    ///
    /// # Errors
    /// As [`Pool::try_run`]; [`Unfinished::Interrupted`] once `is_interrupted` says so.
    pub fn run_attended<F: Future>(
        &self,
        code: F,
        is_interrupted: impl FnMut() -> bool,
    ) -> Result<F::Output, Unfinished> {
        self.pool.run_attended(code, is_interrupted)
    }

    /// A list of tasks that run together.
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        self.pool.tasks()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({})", self.url)
    }
}
