//! A pool over any backend.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ethermem_offload::Offload;
use ethermem_units::Ps;

use crate::attempts::{self, Attention};
use crate::backend::{Backend, End, Facts, Opened};
use crate::core::Core;
use crate::error::Error;
use crate::operation::Asker;
use crate::shared::Shared;
use crate::tasks::Tasks;
use crate::thread::Thread;
use crate::wait::{Step, Unfinished};

/// How long a pool that is closed waits for locks and times.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Remote memory behind a backend. Clones are the same pool.
///
/// The facade's `Pool` is this one, opened by a URL; each method is described there.
#[derive(Clone)]
pub struct Pool {
    shared: Shared,
    facts: Arc<Facts>,
}

impl Pool {
    /// Makes a pool of a backend that is open.
    ///
    /// # Errors
    /// When the backend is to be tended, and no thread can be started for that.
    pub fn new(opened: Opened) -> io::Result<Pool> {
        let facts = Arc::new(opened.facts.clone());
        Ok(Pool { shared: Shared::new(Core::new(opened))?, facts })
    }

    /// What holds for the backend.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Asks the backend something that the pool knows nothing of; see [`Backend::extension`].
    pub fn with_backend<R>(&self, ask: impl FnOnce(&dyn Backend) -> R) -> R {
        self.shared.with(|core| ask(core.backend()))
    }

    /// Makes a process and its first thread, on the next of the compute nodes in turn.
    ///
    /// # Errors
    /// Those of the backend's memory nodes.
    pub fn thread(&self) -> Result<Thread, Error> {
        self.shared.check()?;
        self.thread_on(self.next_compute())
    }

    /// The compute node whose turn it is.
    #[must_use]
    pub fn next_compute(&self) -> u16 {
        self.shared.with(Core::next_compute)
    }

    /// Makes a process and its first thread, on a compute node.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`]; else as [`Pool::thread`].
    pub fn thread_on(&self, compute: u16) -> Result<Thread, Error> {
        self.shared.check()?;
        let (process, id) = self.shared.with(|core| {
            core.check_compute(compute)?;
            let process = core.new_process()?;
            Ok((process, core.new_thread(Asker { process, compute })))
        })?;
        Ok(Thread::new(self.shared.clone(), id, process, compute))
    }

    /// Time since the pool was opened.
    #[must_use]
    pub fn now(&self) -> Ps {
        self.shared.with(|core| core.now())
    }

    /// Ends the pool's operations, and then the backend.
    ///
    /// # Errors
    /// Those of [`Backend::end`]; [`Error::StillWaiting`] with what the pool was closed without.
    pub fn close(self) -> Result<(), Error> {
        self.shared.check()?;
        self.shared.settle(CLOSE_WAIT);
        let (waits, closed) = self.shared.with(|core| (core.drain(), core.leave(End::Closed)));
        closed?;
        let waited_ms = CLOSE_WAIT.as_millis() as u64;
        waits.map_or(Ok(()), |(operations, wait)| {
            Err(Error::StillWaiting { operations, wait, waited_ms })
        })
    }

    /// Goes on until an operation ends or for a short rest; false when nothing is in flight.
    pub fn step(&self) -> bool {
        if self.shared.check().is_err() {
            return false;
        }
        self.shared.know();
        let step = self.shared.step();
        if let Step::Rest(rest) = step {
            self.shared.rest(rest);
        }
        !matches!(step, Step::Idle { .. })
    }

    /// Makes an offload known to the memory nodes of this program, over one of the same name.
    pub fn register(&self, name: &str, offload: Arc<dyn Offload>) {
        self.shared.with(|core| core.register(name, offload));
    }

    /// Makes an offload known unless there is one of this name.
    pub fn register_once(&self, name: &str, offload: Arc<dyn Offload>) {
        self.shared.with(|core| {
            if core.offload(name).is_none() {
                core.register(name, offload);
            }
        });
    }

    /// Runs the application's code until it is done.
    ///
    /// # Panics
    /// Where [`Pool::try_run`] fails.
    pub fn run<F: Future>(&self, code: F) -> F::Output {
        self.try_run(code).unwrap_or_else(|unfinished| panic!("{unfinished}"))
    }

    /// Runs the application's code until it is done, or cannot go on.
    ///
    /// # Errors
    /// [`Unfinished::Stalled`].
    pub fn try_run<F: Future>(&self, code: F) -> Result<F::Output, Unfinished> {
        attempts::run(&self.shared, code, None)
    }

    /// As [`Pool::try_run`], and asks about every 20 ms whether to give up.
    ///
    /// # Errors
    /// As [`Pool::try_run`]; [`Unfinished::Interrupted`] once `is_interrupted` says so.
    pub fn run_attended<F: Future>(
        &self,
        code: F,
        mut is_interrupted: impl FnMut() -> bool,
    ) -> Result<F::Output, Unfinished> {
        attempts::run(&self.shared, code, Some(Attention::new(&mut is_interrupted)))
    }

    /// A list of tasks that run together.
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        Tasks::new(self.shared.clone())
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { compute_nodes, memory_nodes, .. } = *self.facts;
        write!(f, "Pool({compute_nodes} compute nodes, {memory_nodes} memory nodes)")
    }
}
