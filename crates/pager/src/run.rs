//! A run: the program, its pager, and the loop between them.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ethermem::Pool;
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustc_hash::FxHashMap;

use crate::agent::Answer;
use crate::counts::Counts;
use crate::delay::{Delay, Link};
use crate::door::{Door, Heard};
use crate::error::Error;
use crate::executed::{Executed, News, followed_by, is_execution, next_change};
use crate::fault::Faults;
use crate::follow::Executions;
use crate::launch::{FORWARDED, Launched, start};
use crate::pager::{Local, Pager, Setup};
use crate::place::Placement;
use crate::pool_store::InPool;
use crate::process::Process;
use crate::processors::{Account, Processors};
use crate::protocol::{OVER, PAGE_BYTES};
use crate::record::Recorder;
use crate::store::{Backing, InProcess, Store};

/// Options of a run.
#[derive(Clone)]
pub struct Options {
    /// How much of the program's private memory may be local.
    pub local: Local,
    /// True if pages are prefetched.
    pub prefetch: bool,
    /// Delay that is added to remote accesses.
    pub delay: Delay,
    /// Where pager and program run.
    pub placement: Placement,
    /// True to account for what program and pager have of the processors.
    pub accounts: bool,
    /// The remote memory; `None` is this process's own memory.
    pub pool: Option<Pool>,
}

impl Options {
    /// Options with `local` memory and defaults otherwise: remote memory is this process's own,
    /// pages are prefetched, no delay is added, and the scheduler decides where pager and program
    /// run.
    #[must_use]
    pub fn new(local: Local) -> Options {
        Options {
            local,
            prefetch: true,
            delay: Delay::None,
            placement: Placement::Free,
            accounts: false,
            pool: None,
        }
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Exit status of the program.
    pub status: ExitStatus,
    /// Duration from the program's start to the end of its last process.
    pub elapsed: Duration,
    /// Counters of the run.
    pub counts: Counts,
    /// Programs that ran without being served, as far as the pager was told of them, with the
    /// reason; the first [`BY_ITSELF_MAX`].
    pub by_itself: Vec<String>,
    /// What program and pager had of the processors, if that was asked for.
    pub(crate) account: Option<Account>,
}

/// Limit of unserved programs that are named; all are counted.
pub const BY_ITSELF_MAX: usize = 100;

const LISTENER: u64 = 0;
const SIGNALS: u64 = 1;
/// Token of the descriptor that is readable when the store may have an answer.
const STORE: u64 = 2;
const FIRST: u64 = 3;
/// First epoll token of connections that have not completed their announcement.
const CONNECTIONS: u64 = 1 << 62;
/// First epoll token of descriptors that report executions.
const EXECUTIONS: u64 = 1 << 63;
/// If a deadline is closer than this, the pager only polls the clock.
const SPIN: Duration = Duration::from_micros(3);
/// Shorter sleeps take longer than they last.
const SLEEP_MIN: Duration = Duration::from_micros(20);
const BYTES_PER_SECOND: u64 = 4_000_000_000;
const TICK: Duration = Duration::from_millis(1);
/// Signals that end a program which does nothing about them.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
/// Strangers' connections refused in a tick, a tenth of a processor's time. Further ones wait: the
/// kernel schedules an always busy pager late, and with it every page.
const STRANGERS_A_TICK: u32 = 4;
/// Longest interval of reading a program's memory, for its peak, while it is far from its limit.
const LONGEST_TICK: Duration = Duration::from_millis(5);

pub(crate) fn system(what: &'static str) -> impl Fn(Errno) -> Error {
    move |error| Error::System { what, error: io::Error::from(error) }
}

/// Signals that were blocked before this process first held some.
static BEFORE: OnceLock<SigSet> = OnceLock::new();

/// Blocks the signals that are passed on to programs, so that no later thread takes them. Call it
/// before opening a pool that starts threads; [`run()`] calls it in any case.
///
/// # Errors
///
/// When the kernel refuses.
pub fn hold_signals() -> Result<(SigSet, SigSet), Error> {
    let mut signals = SigSet::from_iter(FORWARDED);
    signals.add(Signal::SIGCHLD);
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals), Some(&mut before))
        .map_err(system("signals cannot be blocked"))?;
    Ok((signals, *BEFORE.get_or_init(|| before)))
}

/// Runs `command` to its end.
///
/// # Errors
///
/// When the program cannot be started, or its memory is lost.
pub fn run(
    command: &[OsString],
    options: &Options,
    recorder: &mut dyn Recorder,
) -> Result<Outcome, Error> {
    Faults::probe().map_err(|error| Error::Faults { error })?;
    let (signals, before) = hold_signals()?;
    let result = run_blocked(command, options, recorder, signals, before);
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)
        .map_err(system("signals cannot be restored"))?;
    result
}

fn run_blocked(
    command: &[OsString],
    options: &Options,
    recorder: &mut dyn Recorder,
    signals: SigSet,
    before: SigSet,
) -> Result<Outcome, Error> {
    nix::sys::prctl::set_child_subreaper(true).map_err(system("orphans cannot be kept"))?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals = SignalFd::with_flags(&signals, flags).map_err(system("signalfd"))?;
    let door = Door::open().map_err(|error| Error::System { what: "the agents' socket", error })?;
    let mut seed = [0; 8];
    getrandom::fill(&mut seed)
        .map_err(|error| Error::System { what: "random bytes", error: io::Error::other(error) })?;
    let backing: Box<dyn Backing> = match &options.pool {
        None => Box::new(InProcess::default()),
        Some(pool) => Box::new(InPool::new(pool.clone()).map_err(|error| Error::Pool { error })?),
    };
    let setup = Setup {
        local: options.local,
        prefetch: options.prefetch,
        placement: options.placement,
        store: Store::new(backing),
        link: Link::new(options.delay.clone()),
        recorder,
    };
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system("epoll"))?;
    epoll.add(&door, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER)).map_err(system("epoll"))?;
    epoll.add(&signals, EpollEvent::new(EpollFlags::EPOLLIN, SIGNALS)).map_err(system("epoll"))?;
    if let Some(store) = setup.store.descriptor() {
        epoll.add(store, EpollEvent::new(EpollFlags::EPOLLIN, STORE)).map_err(system("epoll"))?;
    }
    let mut pager = Pager::new(setup, u64::from_ne_bytes(seed));
    pager.processors = options.accounts.then(Processors::new);
    let (launched, followed) = start(command, door.name(), before)?;
    let news = followed_by(launched.keeper.first.number(), followed);
    let mut running = Running {
        pager,
        epoll,
        door,
        signals,
        launched,
        executed: Executed::default(),
        executions: FxHashMap::default(),
        next_executions: EXECUTIONS,
        status: None,
        ending: None,
        next_tick: Instant::now(),
        rest: None,
        strangers: 0,
        half_a_reading: half_a_reading(),
    };
    if let Err(lost) = running.note(news).and_then(|()| running.serve()) {
        // A program that has ended meanwhile is unaffected, and its own status counts.
        if !running.reap().unwrap_or(false) {
            running.launched.keeper.end();
            return Err(lost);
        }
    }
    let elapsed = running.pager.elapsed();
    let status = running.status.ok_or(Error::Lost("its end was not seen".to_owned()))?;
    let together = running.pager.place.together().as_nanos();
    let Pager { mut counts, by_itself, processors, .. } = running.pager;
    counts.together_ns = u64::try_from(together).unwrap_or(u64::MAX);
    let account = processors.and_then(|processors| processors.account());
    Ok(Outcome { status, elapsed, counts, by_itself, account })
}

struct Running<'r> {
    pager: Pager<'r>,
    epoll: Epoll,
    door: Door,
    signals: SignalFd,
    launched: Launched,
    executed: Executed,
    /// Descriptors that report executions, by token, as long as a process has one.
    executions: FxHashMap<u64, Executions>,
    next_executions: u64,
    status: Option<ExitStatus>,
    /// A signal to end that the first process got, until it has ended.
    ending: Option<Signal>,
    next_tick: Instant,
    /// How long the store has nothing, unless its descriptor is readable; `None` if nothing was
    /// asked.
    rest: Option<Duration>,
    /// Strangers refused since the last tick; at [`STRANGERS_A_TICK`] the door is not polled.
    strangers: u32,
    /// Half the time of reading the clock.
    half_a_reading: Duration,
}

impl Running<'_> {
    /// Serves until the last process of the program has ended.
    fn serve(&mut self) -> Result<(), Error> {
        let mut ready = [EpollEvent::empty(); 32];
        let mut ended = false;
        while !ended {
            self.await_next()?;
            // Room is made before the next page is requested, and not while one is due.
            self.pager.make_room().map_err(Error::Lost)?;
            self.pager.allow_forks();
            self.pause()?;
            if self.tick_between()? {
                break;
            }
            let count = self.wait(&mut ready)?;
            let mut is_answered = false;
            for event in &ready[..count] {
                match event.data() {
                    LISTENER => self.meet()?,
                    SIGNALS => ended |= self.signal()?,
                    token if token >= EXECUTIONS => {
                        self.execution(token, event.events())?;
                    }
                    token if token >= CONNECTIONS => self.converse(token - CONNECTIONS)?,
                    STORE => is_answered = true,
                    token if (token - FIRST).is_multiple_of(2) => self.tell(token)?,
                    token => self.hear(((token - FIRST) / 2) as usize)?,
                }
            }
            self.pager.retry().map_err(Error::Lost)?;
            let is_asked = is_answered || self.pager.setup.store.is_under_way();
            self.rest = if is_asked { self.pager.receive().map_err(Error::Lost)? } else { None };
            for child in self.pager.admit() {
                self.watch_agent(child)?;
            }
        }
        Ok(())
    }

    /// Does periodic work when no page is due that it would delay, or when one always is. Returns
    /// whether the last process ended.
    fn tick_between(&mut self) -> Result<bool, Error> {
        let now = Instant::now();
        let latest = if self.pager.next_due().is_some() { TICK } else { Duration::ZERO };
        if now < self.next_tick + latest {
            return Ok(false);
        }
        self.tick(now);
        if self.strangers >= STRANGERS_A_TICK {
            self.watch_door(EpollFlags::EPOLLIN)?;
        }
        self.strangers = 0;
        self.pager.setup.store.tick().map_err(Error::Lost)?;
        self.end_the_rest();
        // A thread outside the pager may have taken the signal.
        self.reap()
    }

    /// Puts the pages that are due, and those due so soon that nothing else fits in between.
    fn await_next(&mut self) -> Result<(), Error> {
        while let Some(due) = self.pager.next_due() {
            let mut now = Instant::now();
            if due.saturating_duration_since(now) > SPIN {
                break;
            }
            // Polls up to the clock reading nearest to the deadline, before or after it. It has no
            // pause instruction, which takes longer than a reading.
            while now + self.half_a_reading < due {
                now = Instant::now();
            }
            self.pager.deliver(now).map_err(Error::Lost)?;
        }
        Ok(())
    }

    /// Waits for events.
    fn wait(&self, ready: &mut [EpollEvent]) -> Result<usize, Error> {
        let most = self.most();
        let timeout = if most >= TICK {
            EpollTimeout::try_from(most.as_millis()).unwrap_or(EpollTimeout::ZERO)
        } else {
            if most >= SLEEP_MIN {
                // A shorter time than epoll has.
                let _ = ppoll(
                    &mut [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)],
                    Some(most.into()),
                    None,
                );
            }
            EpollTimeout::ZERO
        };
        match self.epoll.wait(ready, timeout) {
            Ok(count) => Ok(count),
            Err(Errno::EINTR) => Ok(0),
            Err(error) => Err(system("epoll")(error)),
        }
    }

    /// How long to wait for the next event at most.
    fn most(&self) -> Duration {
        if self.pager.has_retries() || self.pager.next_due().is_some() {
            return Duration::ZERO;
        }
        let left = self.next_tick.saturating_duration_since(Instant::now()).max(TICK);
        self.rest.map_or(left, |rest| rest.min(left))
    }

    /// Reads how much memory is local, and sets the time of the next reading: before a program that
    /// only writes could have filled the rest.
    fn tick(&mut self, now: Instant) {
        self.pager.sweep();
        self.pager.place_anew(now);
        self.pager.account(now);
        self.door.expire(now);
        self.pager.measure();
        let local = self.pager.local_pages();
        let left = self.pager.limit().map(|limit| limit.saturating_sub(local));
        let left = left.map_or(LONGEST_TICK, |pages| {
            Duration::from_secs_f64((pages * PAGE_BYTES as u64) as f64 / BYTES_PER_SECOND as f64)
        });
        self.next_tick = now + left.clamp(TICK, LONGEST_TICK);
    }

    /// Polls a descriptor that reports executions.
    fn follow(&mut self, executions: Executions) -> Result<(), Error> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, self.next_executions);
        self.epoll.add(&executions, event).map_err(system("epoll"))?;
        self.executions.insert(self.next_executions, executions);
        self.next_executions += 1;
        Ok(())
    }

    /// Handles a thread that executes a program, or the end of the last process that would report
    /// one.
    fn execution(&mut self, token: u64, events: EpollFlags) -> Result<(), Error> {
        if events.contains(EpollFlags::EPOLLHUP) {
            self.executions.remove(&token);
            return Ok(());
        }
        let Some(executions) = self.executions.get(&token) else { return Ok(()) };
        let news = self.executed.told(executions);
        self.note(news)
    }

    /// Handles a new connection.
    fn meet(&mut self) -> Result<(), Error> {
        let Some(number) = self.door.accept() else {
            self.strangers += 1;
            if self.strangers == STRANGERS_A_TICK {
                self.watch_door(EpollFlags::empty())?;
                self.next_tick = self.next_tick.min(Instant::now() + TICK);
            }
            return Ok(());
        };
        if let Some(connection) = self.door.connection(number) {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, CONNECTIONS + number);
            self.epoll.add(connection, event).map_err(system("epoll"))?;
        }
        self.converse(number)
    }

    fn watch_door(&mut self, events: EpollFlags) -> Result<(), Error> {
        let mut event = EpollEvent::new(events, LISTENER);
        self.epoll.modify(&self.door, &mut event).map_err(system("epoll"))
    }

    /// Handles a connection that may have a message.
    fn converse(&mut self, number: u64) -> Result<(), Error> {
        let (agent, faults) = match self.door.hear(number) {
            Heard::Agent(agent, faults) => (*agent, faults),
            Heard::Lie(which) => return self.note(News::ByItself(which)),
            Heard::Nothing => return Ok(()),
        };
        // Its later messages are read elsewhere.
        let _ = self.epoll.delete(&agent);
        if is_execution(&agent) {
            self.pager.counts.announced += u64::from(agent.hello.kind != OVER);
            let news = self.executed.hear(agent);
            return self.note(news);
        }
        let is_new = faults.is_some();
        if let Some(id) = self.pager.meet(agent, faults) {
            if is_new {
                self.watch_faults(id)?;
            }
            self.watch_agent(id)?;
        }
        Ok(())
    }

    fn watch_faults(&self, id: usize) -> Result<(), Error> {
        let Some(process) = self.pager.processes.get(&id) else { return Ok(()) };
        let event = EpollEvent::new(EpollFlags::EPOLLIN, FIRST + 2 * id as u64);
        match self.epoll.add(process.faults.as_fd(), event) {
            Ok(()) | Err(Errno::EEXIST) => Ok(()),
            Err(error) => Err(system("epoll")(error)),
        }
    }

    fn watch_agent(&self, id: usize) -> Result<(), Error> {
        let agent = self.pager.processes.get(&id).and_then(|process| process.agent.as_ref());
        let Some(agent) = agent else { return Ok(()) };
        let event = EpollEvent::new(EpollFlags::EPOLLIN, FIRST + 2 * id as u64 + 1);
        match self.epoll.add(agent, event) {
            Ok(()) | Err(Errno::EEXIST) => Ok(()),
            Err(error) => Err(system("epoll")(error)),
        }
    }

    /// Handles events of an address space.
    fn tell(&mut self, token: u64) -> Result<(), Error> {
        let id = ((token - FIRST) / 2) as usize;
        let new = self.pager.serve(id).map_err(Error::Lost)?;
        for child in new {
            self.watch_faults(child)?;
        }
        Ok(())
    }

    /// Handles a late answer of an agent, or its end.
    fn hear(&mut self, id: usize) -> Result<(), Error> {
        let Some(process) = self.pager.processes.get_mut(&id) else { return Ok(()) };
        let Some(agent) = &mut process.agent else { return Ok(()) };
        let was_late = process.ordered.is_some();
        let is_awaited = was_late || process.is_busy;
        let answer = match agent.hear() {
            Some(Answer::Done(_)) if !is_awaited => Some(Answer::Gone),
            answer => answer,
        };
        if matches!(answer, Some(Answer::Gone)) {
            // The socket closed with the process. A descriptor that stays open must not be reported
            // again.
            let _ = self.epoll.delete(&*agent);
        }
        self.pager.heard(id, answer).map_err(Error::Lost)?;
        let is_late = |process: &Process| process.ordered.is_some();
        if was_late && !self.pager.processes.get(&id).is_some_and(is_late) {
            self.watch_faults(id)?;
        }
        Ok(())
    }

    /// Handles late agents. Until one answers, the events of its address space are not read, so
    /// that they are not confused with the effects of its order.
    fn pause(&mut self) -> Result<(), Error> {
        for id in std::mem::take(&mut self.pager.room.late) {
            let late = self.pager.processes.get(&id).filter(|process| process.ordered.is_some());
            let Some(process) = late else { continue };
            match self.epoll.delete(process.faults.as_fd()) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(error) => return Err(system("epoll")(error)),
            }
        }
        Ok(())
    }

    /// Handles signals: children that ended, and signals to pass on. Returns whether the last
    /// process ended.
    fn signal(&mut self) -> Result<bool, Error> {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            let number = Signal::try_from(signal.ssi_signo.cast_signed());
            // The terminal also sends its signals to the program.
            let from_someone = signal.ssi_code <= 0;
            if let (Ok(number), true) = (number, from_someone)
                && number != Signal::SIGCHLD
            {
                self.launched.keeper.pass_on(number as i32);
                if ENDING.contains(&number) {
                    self.ending = Some(number);
                }
            }
        }
        self.reap()
    }

    /// Passes a signal that ended the first process on to those that it left. What it leaves when
    /// it ends otherwise is not told of signals that it has handled.
    fn end_the_rest(&mut self) {
        if let Some(signal) = self.ending
            && let Some(status) = self.known_status()
        {
            self.ending = None;
            let number = signal as i32;
            // Shells end so when a signal ended what they waited for.
            if status.signal() == Some(number) || status.code() == Some(128 + number) {
                self.launched.keeper.pass_on_to_the_rest(number);
            }
        }
    }

    fn known_status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.launched.keeper.status().map(ExitStatus::from_raw);
        }
        self.status
    }

    /// Reaps ended processes and handles stopped threads. Returns whether the last process ended.
    fn reap(&mut self) -> Result<bool, Error> {
        loop {
            match next_change() {
                Ok(Some((thread, status))) if libc::WIFSTOPPED(status) => {
                    let news = self.executed.stopped(thread, status);
                    self.note(news)?;
                }
                Ok(Some((process, status))) => {
                    self.executed.ended(process);
                    self.note(News::Ended(process, status))?;
                }
                Ok(None) | Err(Errno::EINTR) => return Ok(false),
                Err(_) => return Ok(true),
            }
        }
    }

    fn note(&mut self, news: News) -> Result<(), Error> {
        match news {
            News::Nothing => {}
            News::ByItself(which) => self.pager.leave_out(which),
            News::Ended(process, status) if self.launched.keeper.is(process) => {
                self.known_status();
                if !libc::WIFEXITED(status) {
                    return Err(Error::Lost("the process that keeps it was killed".to_owned()));
                }
            }
            News::Ended(..) => {}
            News::Told(executions) => return self.follow(executions),
        }
        Ok(())
    }
}

fn half_a_reading() -> Duration {
    let reading = |_| {
        let before = Instant::now();
        before.elapsed()
    };
    (0..64).map(reading).min().unwrap_or_default() / 2
}
