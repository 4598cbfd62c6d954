//! Pools, which applications open by URL.

use std::fmt;
use std::future::Future;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use ethermem_offload::Offload;
use ethermem_pool::{Error, Tasks, Thread, Turn, Unfinished};
#[cfg(feature = "sim")]
use ethermem_sim::{Kind, engine::LineCounters, workload::LinkBlocks};
use ethermem_units::Ps;

#[cfg(feature = "sim")]
use crate::backends::sim::Sim;
use crate::open_error::OpenError;
use crate::scheme::{Scheme, Url};
use crate::table::SCHEMES;

/// Remote memory, on the fabric that its URL names. Clones share one pool.
///
/// A pool over a network belongs to its process. In a fork of that process every operation ends
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
    /// [`OpenError`] with the wrong part of the URL and what is allowed, or if the memory node was
    /// not reached.
    pub fn open(url: &str) -> Result<Pool, OpenError> {
        Pool::open_among(&SCHEMES, url)
    }

    /// Opens a pool by the row of one of these schemes: for programs that bring a backend of their
    /// own, beside those of [`SCHEMES`].
    ///
    /// # Errors
    /// As [`Pool::open`].
    pub fn open_among(schemes: &[&Scheme], url: &str) -> Result<Pool, OpenError> {
        let opened = Url::read(schemes, url)?.open()?;
        let pool = ethermem_pool::Pool::new(opened);
        let no_thread = |error| OpenError::NotAllowed { problem: format!("no thread: {error}") };
        Ok(Pool { pool: pool.map_err(no_thread)?, url: url.into() })
    }

    /// The URL by which it was opened.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The transport of a `node:` pool, with the measured round trips of both transports, or the
    /// reason why there is only one. It is a line for people: `by ring://eth0/02:00:00:00:00:0a,
    /// 1.9 us a round trip, by udp://host:7400 3.6 us`. `None` where the URL leaves no choice.
    #[must_use]
    pub fn choice(&self) -> Option<&str> {
        self.pool.facts().choice.as_deref()
    }

    /// Creates a process and its first thread, on the next compute node in round-robin order.
    ///
    /// # Errors
    /// None, except over a network, where the node may be down or have no room for a process.
    pub fn thread(&self) -> Result<Thread, Error> {
        self.pool.thread()
    }

    /// The next compute node in round-robin order, which spreads threads over all nodes.
    #[must_use]
    pub fn next_compute(&self) -> u16 {
        self.pool.next_compute()
    }

    /// Creates a process and its first thread, on the given compute node.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`]; else as [`Pool::thread`].
    pub fn thread_on(&self, compute: u16) -> Result<Thread, Error> {
        self.pool.thread_on(compute)
    }

    /// Numbers of compute nodes and of memory nodes.
    #[must_use]
    pub fn nodes(&self) -> (u16, u16) {
        let facts = self.pool.facts();
        (facts.compute_nodes, facts.memory_nodes)
    }

    /// Time since the pool was opened: the fabric's virtual time if it has one.
    #[must_use]
    pub fn now(&self) -> Ps {
        self.pool.now()
    }

    /// True if time is a simulated fabric's, which advances only in operations and sleeps.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.pool.facts().is_simulated
    }

    /// Number of events that the simulated fabric has handled; 0 on other pools.
    #[must_use]
    pub fn events(&self) -> u64 {
        #[cfg(feature = "sim")]
        if let Some(events) = self.simulated(Sim::events) {
            return events;
        }
        0
    }

    /// The link blocks of a message of `bytes` bytes on a simulated fabric, and the link rate in
    /// blocks per second; `None` on other pools.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn link_blocks(&self, kind: Kind, bytes: u64) -> Option<(LinkBlocks, f64)> {
        self.simulated(|sim| sim.link_blocks(kind, bytes))
    }

    /// What happened in the caches of a simulated fabric's compute nodes; `None` where there are
    /// none.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn line_counters(&self) -> Option<LineCounters> {
        self.simulated(Sim::line_counters).flatten()
    }

    /// Calls `ask` with the simulated fabric, where the pool has one.
    #[cfg(feature = "sim")]
    fn simulated<R>(&self, ask: impl FnOnce(&Sim) -> R) -> Option<R> {
        self.pool.with_backend(|backend| backend.extension()?.downcast_ref::<Sim>().map(ask))
    }

    /// Ends background traffic, and checks the invariants of a simulated fabric: bytes are
    /// conserved and nothing is left over. Over a network, ends all processes of this pool, and the
    /// node frees their memory. Operations in flight complete first. Operations that wait for a
    /// lock of another thread, or for a time, have 2 s for that.
    ///
    /// # Errors
    /// [`Error::Violated`]; [`Error::NoAnswer`] when the node did not respond;
    /// [`Error::StillWaiting`] with the operations that had not completed.
    pub fn close(self) -> Result<(), Error> {
        self.pool.close()
    }

    /// Runs until an operation completes or for a short rest. Returns false when nothing is in
    /// flight. It is for programs that poll ([`crate::Pending::poll_result`]): virtual time
    /// advances here and in waiting, but not between two polls.
    pub fn step(&self) -> bool {
        self.pool.step()
    }

    /// As [`Pool::step`] without the rest, for a machine thread with an event loop of its own. The
    /// thread may sleep for as long as [`Turn::Rest`] says, or until [`Pool::responses`] is
    /// readable.
    pub fn turn(&self) -> Turn {
        self.pool.turn()
    }

    /// The descriptor that becomes readable when a response may have arrived; `None` where no
    /// memory is on another machine. It is only for waiting: reading from it loses responses.
    #[must_use]
    pub fn responses(&self) -> Option<BorrowedFd<'_>> {
        self.pool.responses()
    }

    /// Registers an operation with the memory nodes of this process, replacing one with an equal
    /// name. A remote node has only the operations that it was started with.
    pub fn register(&self, name: &str, offload: Arc<dyn Offload>) {
        self.pool.register(name, offload);
    }

    /// As [`Pool::register`], unless the name is taken. It is for an operation with state, which a
    /// second instance would not share.
    pub fn register_once(&self, name: &str, offload: Arc<dyn Offload>) {
        self.pool.register_once(name, offload);
    }

    /// Runs the application's code until it completes, along with the operations that it awaits.
    /// Other machine threads may wait for the same pool: one of them drives it for all.
    ///
    /// # Panics
    /// When the code awaits something outside of this pool, nothing of the pool is in flight, and
    /// no other machine thread can proceed; see [`Pool::try_run`].
    pub fn run<F: Future>(&self, code: F) -> F::Output {
        self.pool.run(code)
    }

    /// As [`Pool::run`], but returns an error instead of panicking.
    ///
    /// # Errors
    /// [`Unfinished::Stalled`]: at once if no other machine thread has waited for the pool, and
    /// otherwise after 10 s in which none of them could proceed.
    pub fn try_run<F: Future>(&self, code: F) -> Result<F::Output, Unfinished> {
        self.pool.try_run(code)
    }

    /// As [`Pool::try_run`], but polls about every 20 ms whether to give up.
    ///
    /// # Errors
    /// As [`Pool::try_run`]; [`Unfinished::Interrupted`] once `is_interrupted` returns true.
    pub fn run_attended<F: Future>(
        &self,
        code: F,
        is_interrupted: impl FnMut() -> bool,
    ) -> Result<F::Output, Unfinished> {
        self.pool.run_attended(code, is_interrupted)
    }

    /// Makes a list of tasks that run together.
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
