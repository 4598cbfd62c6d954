//! A pool over any backend.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::BorrowedFd;
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

/// How long closing a pool waits for operations that wait for locks and times.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Remote memory behind a backend. Clones share one pool.
///
/// The facade's `Pool` is this type, opened by a URL; each method is documented there.
#[derive(Clone)]
pub struct Pool {
    shared: Shared,
    facts: Arc<Facts>,
}

/// What [`Pool::turn`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Operations have completed.
    Ended,
    /// None completes before this much time has passed, unless a response arrives.
    Rest(Duration),
    /// Nothing is in flight.
    Idle,
}

impl Pool {
    /// Makes a pool from an open backend.
    ///
    /// # Errors
    /// When the backend needs tending and its background thread cannot be started.
    pub fn new(opened: Opened) -> io::Result<Pool> {
        let facts = Arc::new(opened.facts.clone());
        Ok(Pool { shared: Shared::new(Core::new(opened))?, facts })
    }

    /// The backend's constant facts.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Calls `ask` with the backend, for what the pool does not know; see [`Backend::extension`].
    pub fn with_backend<R>(&self, ask: impl FnOnce(&dyn Backend) -> R) -> R {
        self.shared.with(|core| ask(core.backend()))
    }

    /// Creates a process and its first thread, on the next compute node in round-robin order.
    ///
    /// # Errors
    /// Errors of the backend's memory nodes.
    pub fn thread(&self) -> Result<Thread, Error> {
        self.shared.check()?;
        self.thread_on(self.next_compute())
    }

    /// The next compute node in round-robin order.
    #[must_use]
    pub fn next_compute(&self) -> u16 {
        self.shared.with(Core::next_compute)
    }

    /// Creates a process and its first thread, on the given compute node.
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
    /// Errors of [`Backend::end`]; [`Error::StillWaiting`] with the operations that had not
    /// completed.
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

    /// Runs until an operation completes or for a short rest. Returns false when nothing is in
    /// flight.
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

    /// As [`Pool::step`] without the rest, for a machine thread that waits for other things too.
    /// It may sleep for as long as [`Turn::Rest`] says, or until [`Pool::responses`] is readable.
    pub fn turn(&self) -> Turn {
        if self.shared.check().is_err() {
            return Turn::Idle;
        }
        self.shared.know();
        match self.shared.step() {
            Step::Ended => Turn::Ended,
            Step::Rest(rest) => Turn::Rest(rest),
            Step::Idle { .. } => Turn::Idle,
        }
    }

    /// The descriptor that becomes readable when a response may have arrived; `None` where no
    /// memory is on another machine.
    #[must_use]
    pub fn responses(&self) -> Option<BorrowedFd<'_>> {
        self.facts.network.as_ref().and_then(|network| network.descriptor())
    }

    /// Registers an offload with the memory nodes of this process, replacing one with an equal
    /// name.
    pub fn register(&self, name: &str, offload: Arc<dyn Offload>) {
        self.shared.with(|core| core.register(name, offload));
    }

    /// Registers an offload unless its name is taken.
    pub fn register_once(&self, name: &str, offload: Arc<dyn Offload>) {
        self.shared.with(|core| {
            if core.offload(name).is_none() {
                core.register(name, offload);
            }
        });
    }

    /// Runs the application's code until it completes.
    ///
    /// # Panics
    /// When [`Pool::try_run`] fails.
    pub fn run<F: Future>(&self, code: F) -> F::Output {
        self.try_run(code).unwrap_or_else(|unfinished| panic!("{unfinished}"))
    }

    /// Runs the application's code until it completes or cannot proceed.
    ///
    /// # Errors
    /// [`Unfinished::Stalled`].
    pub fn try_run<F: Future>(&self, code: F) -> Result<F::Output, Unfinished> {
        attempts::run(&self.shared, code, None)
    }

    /// As [`Pool::try_run`], but polls about every 20 ms whether to give up.
    ///
    /// # Errors
    /// As [`Pool::try_run`]; [`Unfinished::Interrupted`] once `is_interrupted` returns true.
    pub fn run_attended<F: Future>(
        &self,
        code: F,
        mut is_interrupted: impl FnMut() -> bool,
    ) -> Result<F::Output, Unfinished> {
        attempts::run(&self.shared, code, Some(Attention::new(&mut is_interrupted)))
    }

    /// Makes a list of tasks that run together.
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
