//! `udp:`, `ring:` and `node:`: a memory node of an ordinary network. Operations become requests to
//! the node, and its responses become their results.

mod asked;
mod connect;
mod listen;
mod processes;
mod quicker;
mod running;
mod url;
mod waited;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ethermem_clio::node::Busy;
use ethermem_clio::transport::{Completed, Landing, Loan, OperationError};
use ethermem_pool::{
    Address, Asker, Backend, Direct, End, Ended, Error, Facts, Lent, LockWords, Network, Op, OpId,
    Opened, Outcome, ProcessId, Progress, Reply, Segment, Wait, Waited, WaitedId,
};
use ethermem_udp::seal::TenantKey;
use ethermem_udp::{Driver, Maker, RingPlace, Sleeper, Wait as Patience};
use ethermem_units::{Bytes, Ps};
use ethermem_wire::clio::{ClioStatus, Epoch, Request, TenantId};
use slab::Slab;

use self::asked::{Asked, AskedFor};
use self::processes::Life;
use self::running::{Ask, Running, Tries, problem};
use self::waited::Alone;
use crate::backends::cached::{self, CacheSettings};
use crate::open_error::OpenError;
use crate::scheme::Url;

/// Longest pause between two tries of a lock; the pause doubles with each try.
const LOCK_WAIT_MAX: Duration = Duration::from_micros(200);
/// Longest rest while an operation is in flight: another thread may have taken the response.
const REST_MAX: Duration = Duration::from_millis(2);
/// Number of polls per clock read.
const LOOKS_EACH_CLOCK: u32 = 8;
/// Largest number of operations batched while others are in flight.
const GATHER_MAX: u32 = 32;
/// How long dropping a pool tries to end its processes.
const GOODBYE: Duration = Duration::from_millis(100);

/// The node's place, and the transport to it.
#[derive(Clone, Debug)]
enum Way {
    /// `host:port` as given.
    Udp(String),
    Ring(RingPlace),
    /// UDP or raw Ethernet, whichever has the shorter round trips. Without a place on raw Ethernet,
    /// the pool asks all nodes of the interface by which the host is reached.
    Quicker {
        host: String,
        ring: Option<RingPlace>,
    },
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Udp(node) => f.write_str(node),
            Way::Ring(place) => write!(f, "ring://{place}"),
            Way::Quicker { host, .. } => write!(f, "node://{host}"),
        }
    }
}

/// Configuration of a pool of this kind.
#[derive(Clone)]
struct RemoteConfig {
    way: Way,
    /// Names of the interfaces that UDP uses; empty if the routes decide.
    via: Vec<String>,
    tenant: TenantId,
    /// Tenant key; without one, datagrams are sent in clear.
    key: Option<TenantKey>,
    datagram_bytes_max: Option<usize>,
    window: u32,
    incast_window: Bytes,
    /// How long an operation is tried.
    give_up_after: Duration,
    /// How long a waiter polls for a response before it sleeps.
    poll_for: Duration,
}

/// Opens `udp:`.
pub(crate) fn open_udp(url: &Url<'_>) -> Result<Opened, OpenError> {
    open(url, &url::udp(url)?)
}

/// Opens `ring:`.
pub(crate) fn open_ring(url: &Url<'_>) -> Result<Opened, OpenError> {
    open(url, &url::ring(url)?)
}

/// Opens `node:`.
pub(crate) fn open_node(url: &Url<'_>) -> Result<Opened, OpenError> {
    open(url, &url::node(url)?)
}

/// Opens the node, behind the cache that the URL asks for.
fn open(url: &Url<'_>, config: &RemoteConfig) -> Result<Opened, OpenError> {
    let cache = CacheSettings::of(&url.parameters()?)?;
    let opened = Remote::open(config)?.opened();
    Ok(match cache {
        Some(settings) => cached::wrap(opened, settings),
        None => opened,
    })
}

/// The backend of `udp:`, `ring:` and `node:`.
struct Remote {
    driver: Driver,
    node: String,
    /// How one of several transports was chosen, as a line for people.
    choice: Option<String>,
    poll_for: Duration,
    /// How long an operation is tried.
    give_up_after: Duration,
    /// Number of responses received so far.
    answers: u64,
    /// Number of events after which memory may be lost.
    doubts: u64,
    epoch: Epoch,
    /// Number of restarts of the node while the pool was open.
    life: u64,
    lease: Option<Duration>,
    opened: Instant,
    /// Number of requests for a rest time.
    looks: u32,
    beat: Instant,
    /// Processes of this pool. A number stays here after its process has ended: threads may still
    /// have it.
    processes: BTreeMap<ProcessId, Life>,
    /// Operations in flight, by operation id.
    running: Vec<Option<Running>>,
    open: usize,
    /// Number of operations begun and not yet offered to the network.
    gathered: u32,
    /// Purposes of the requests in flight.
    asked: AskedFor,
    waiting: Vec<ParkedOperation>,
    /// Words and holders of locks whose request was lost, and which may therefore be taken.
    lost_locks: BTreeSet<(Address, u64)>,
    /// Accesses whose machine thread waits for each, indexed by [`WaitedId`].
    alone: Slab<Alone>,
    /// Accesses among them that ended while another one was waited for.
    ended_alone: Vec<WaitedId>,
    /// Operations that completed while another one was waited for.
    ended: Vec<(OpId, Outcome)>,
    /// Why the pool is broken, once it is.
    broken: Option<String>,
}

struct ParkedOperation {
    id: OpId,
    until: Instant,
    /// For a lock: the pause before its next try. `None` for a sleep.
    rest: Option<Duration>,
}

impl Remote {
    /// The backend with its facts for the pool.
    fn opened(mut self) -> Opened {
        let maker = Arc::clone(self.driver.maker());
        let facts = Facts {
            runs_offloads: false,
            lock_words: LockWords::ProcessAndThread,
            network: Some(Arc::new(Socket { maker, sleeper: self.driver.sleeper() })),
            choice: self.choice.take().map(Arc::from),
            ..Facts::new(1, 1)
        };
        Opened { backend: Box::new(self), facts }
    }

    /// Sends a request, and waits for its response.
    fn ask(&mut self, process: ProcessId, request: Request<'static>) -> Result<Completed, Error> {
        let asked = self.driver.client().submit(process, request);
        self.asked.insert(asked, Asked::Here);
        self.send();
        let sleeper = self.driver.sleeper();
        let began = Instant::now();
        loop {
            // This may take seconds, and no other code keeps the processes alive meanwhile.
            self.keep_alive();
            self.turn();
            if let Some(problem) = &self.broken {
                return Err(Error::Refused { node: self.node.clone(), problem: problem.clone() });
            }
            let mut outcome = None;
            while let Some(event) = self.driver.client().poll_event() {
                if event.operation == asked {
                    self.asked.remove(asked);
                    outcome = Some(event.outcome);
                } else {
                    self.hear(event);
                }
            }
            match outcome {
                Some(Ok(completed)) => return Ok(completed),
                Some(Err(error)) => return Err(self.error_of(error)),
                None if began.elapsed() < self.poll_for
                    && self.driver.fruitless() == Patience::Poll =>
                {
                    std::thread::yield_now();
                }
                None => {
                    self.driver.sleeps();
                    sleeper.sleep(self.driver.rest().map_or(REST_MAX, |r| r.min(REST_MAX)));
                }
            }
        }
    }

    fn error_of(&self, error: OperationError) -> Error {
        match error {
            OperationError::Lost => self.no_answer(1),
            OperationError::Restarted(_) => Error::Restarted { node: self.node.clone() },
            OperationError::Refused { status: ClioStatus::Busy, detail, .. }
                if detail == Busy::Ending as u64 =>
            {
                Error::Ending { node: self.node.clone() }
            }
            OperationError::Refused { status, detail, .. } => {
                Error::Refused { node: self.node.clone(), problem: problem(status, detail) }
            }
            OperationError::Length(_) => {
                Error::Refused { node: self.node.clone(), problem: error.to_string() }
            }
        }
    }

    /// The error of an operation that was tried `tries` times without a response.
    fn no_answer(&self, tries: u32) -> Error {
        let waited = self.give_up_after.saturating_mul(tries);
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        Error::NoAnswer { node: self.node.clone(), waited_ms }
    }

    fn send(&mut self) {
        self.send_from(None);
    }

    fn send_from(&mut self, loan: Option<Loan<'_>>) {
        self.gathered = 0;
        if let Err(error) = self.driver.send_from(loan) {
            self.broken = Some(error.to_string());
        }
    }

    /// Batches the operations that were begun. They are sent at once if nothing is in flight,
    /// because a caller with one operation waits for it next. Otherwise they are sent once there
    /// are many, or a caller polls for results.
    fn gather(&mut self) {
        self.gathered += 1;
        if self.driver.client().under_way() == 0 || self.gathered >= GATHER_MAX {
            self.send();
        }
    }

    fn send_gathered(&mut self) {
        if self.gathered > 0 {
            self.send();
        }
    }

    fn turn(&mut self) {
        self.turn_into(None);
    }

    /// Makes progress, with the buffer of a read whose machine thread waits.
    fn turn_into(&mut self, landing: Option<&mut Landing<'_>>) {
        if let Err(error) = self.driver.turn_into(landing) {
            self.broken = Some(error.to_string());
        }
        self.notice();
    }

    /// Makes progress, with the data of a write whose machine thread waits.
    fn turn_from(&mut self, loan: Loan<'_>) {
        if let Err(error) = self.driver.turn_from(loan) {
            self.broken = Some(error.to_string());
        }
        self.notice();
    }

    fn submit(&mut self, id: OpId, process: ProcessId, ask: Ask, touched: Segment) {
        let client = self.driver.client();
        let asked = match ask {
            Ask::Short(request) => client.submit(process, request),
            Ask::Gather(segments) => {
                let place = |segment: &Segment| (segment.address.0, segment.bytes);
                client.submit_gather(process, segments.iter().map(place))
            }
            Ask::Write(address, data) => client.submit_write(process, address, data),
            Ask::Offload(name, arguments) => client.submit_offload(process, &name, arguments),
        };
        self.asked.insert(asked, Asked::Part(id, touched));
    }

    fn end(&mut self, id: OpId) {
        let running = self.running[id.place()].take().expect("it ends once");
        self.open -= 1;
        self.waiting.retain(|waiting| waiting.id != id);
        let tries = running.tries.count;
        let outcome = running.outcome().map_err(|error| match error {
            Error::Lost => self.no_answer(tries),
            error => error,
        });
        self.ended.push((id, outcome));
    }

    /// Ends sleeps that are over, and retries locks.
    fn wake(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let now = Instant::now();
        let due: Vec<(OpId, bool)> = self
            .waiting
            .iter()
            .filter(|waiting| waiting.until <= now)
            .map(|waiting| (waiting.id, waiting.rest.is_some()))
            .collect();
        let mut tried = false;
        for (id, is_lock) in due {
            if !is_lock {
                self.open -= 1;
                self.waiting.retain(|waiting| waiting.id != id);
                self.ended.push((id, Ok(Reply::Done)));
                continue;
            }
            let running = self.running[id.place()].as_ref().expect("a lock that waits is open");
            // Otherwise the lock's try is in flight.
            if running.open > 0 {
                continue;
            }
            let process = running.process;
            // After a restart of the node, the word's address is another process's memory.
            if let Some(gone) = self.gone(process) {
                self.running[id.place()].as_mut().expect("as above").fail(gone);
                self.end(id);
                continue;
            }
            let (ask, part) = self.running[id.place()].as_mut().expect("as above").again();
            self.submit(id, process, ask, part);
            tried = true;
        }
        if tried {
            self.send();
        }
    }

    /// How long the machine thread may rest.
    fn rest(&mut self) -> Duration {
        let waits = self.waiting.iter().map(|waiting| waiting.until);
        let due = waits.min().map(|until| until.saturating_duration_since(Instant::now()));
        let gives_way = !self.asked.is_empty() && self.driver.fruitless() == Patience::Sleep;
        self.looks = self.looks.wrapping_add(1);
        if !gives_way && self.waiting.is_empty() && !self.looks.is_multiple_of(LOOKS_EACH_CLOCK) {
            return Duration::ZERO;
        }
        if self.asked.is_empty() {
            return due.unwrap_or(REST_MAX).min(REST_MAX);
        }
        if !gives_way && self.driver.idle() < self.poll_for {
            return Duration::ZERO;
        }
        self.driver.sleeps();
        [due, self.driver.rest()].into_iter().flatten().fold(REST_MAX, Duration::min)
    }
}

impl Backend for Remote {
    fn now(&self) -> Ps {
        let passed = self.opened.elapsed().as_nanos();
        Ps(u64::try_from(passed).unwrap_or(u64::MAX).saturating_mul(1000))
    }

    fn new_process(&mut self, _: ProcessId) -> Result<ProcessId, Error> {
        self.create_process()
    }

    fn begin(&mut self, id: OpId, asker: Asker, op: Op) -> Option<Outcome> {
        if let Op::Sleep(until) = op {
            let until = self.opened + Duration::from_nanos(until.0 / 1000);
            if until <= Instant::now() {
                return Some(Ok(Reply::Done));
            }
            self.open += 1;
            self.waiting.push(ParkedOperation { id, until, rest: None });
            return None;
        }
        let process = asker.process;
        if let Some(error) = self.gone(process).or_else(|| self.refuse(&op)) {
            return Some(Err(error));
        }
        if self.running.len() <= id.place() {
            self.running.resize_with(id.place() + 1, || None);
        }
        self.open += 1;
        let tries = Tries::first(self.answers);
        if let Some((running, ask, part)) = Running::read(id, process, &op, tries) {
            self.running[id.place()] = Some(running);
            self.submit(id, process, ask, part);
        } else {
            let (running, asks) = Running::new(id, process, op, tries);
            self.running[id.place()] = Some(running);
            for (ask, part) in asks {
                self.submit(id, process, ask, part);
            }
        }
        self.gather();
        None
    }

    fn progress(&mut self, ended: &mut Ended) -> Progress {
        self.send_gathered();
        self.listen();
        self.wake();
        self.tell(ended);
        if !ended.operations.is_empty() {
            Progress::Ended
        } else if self.open == 0 {
            Progress::Idle
        } else {
            Progress::Wait(self.rest())
        }
    }

    /// Keeps processes alive and retransmits lost requests, whether or not a thread waits. The node
    /// ends a process whose client is silent. What is heard counts also when no thread waits: a
    /// cache in front of this backend asks [`Backend::doubts`] at every hit.
    fn tend(&mut self) -> Duration {
        self.keep_alive();
        self.send_gathered();
        self.listen();
        if self.asked.is_empty() { self.until_beat() } else { Duration::ZERO }
    }

    fn waits(&self) -> Option<(usize, Wait)> {
        let first = self.waiting.first().filter(|_| self.waiting.len() == self.open)?;
        let lock = || self.running[first.id.place()].as_ref().and_then(Running::lock);
        let first = match first.rest {
            Some(_) => lock().map_or(Wait::Sleep, |(word, _)| Wait::Lock(word)),
            None => Wait::Sleep,
        };
        Some((self.open, first))
    }

    fn doubts(&self) -> u64 {
        self.doubts
    }

    fn direct(&mut self) -> Option<&mut dyn Direct> {
        Some(self)
    }

    fn end(&mut self, _: End) -> Result<(), Error> {
        if self.end_processes(GOODBYE) {
            return Ok(());
        }
        let waited_ms = GOODBYE.as_millis() as u64;
        Err(Error::NoAnswer { node: self.node.clone(), waited_ms })
    }
}

impl Direct for Remote {
    fn begin(&mut self, asker: Asker, access: Waited<'_>) -> Option<WaitedId> {
        self.begin_alone(asker, access)
    }

    fn look(
        &mut self,
        id: WaitedId,
        lent: Lent<'_>,
        ended: &mut Ended,
    ) -> Result<Result<(), Error>, Duration> {
        let looked = self.look_alone(id, lent);
        self.tell(ended);
        looked
    }
}

/// The driver's socket or ring, and the process that opened it.
struct Socket {
    maker: Arc<Maker>,
    sleeper: Sleeper,
}

impl Network for Socket {
    #[inline]
    fn is_here(&self) -> bool {
        self.maker.is_here()
    }

    fn sleep(&self, most: Duration) {
        self.sleeper.sleep(most);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.sleeper.descriptor())
    }
}

impl Remote {
    /// Hands over what has completed. A broken socket ends all direct accesses.
    fn tell(&mut self, ended: &mut Ended) {
        ended.operations.append(&mut self.ended);
        ended.waited.append(&mut self.ended_alone);
        if self.broken.is_some() {
            ended.waited.extend(self.alone.iter().map(|(place, _)| WaitedId::new(place)));
        }
    }

    /// The error of an operation with an address on another node.
    fn refuse(&self, op: &Op) -> Option<Error> {
        let elsewhere = |segments: &[Segment]| {
            let found = segments.iter().find(|segment| segment.address.memory() != 0)?;
            Some(Error::Unmapped { address: found.address, bytes: found.bytes })
        };
        let word = |address| Segment { address, bytes: 8 };
        match op {
            Op::Read(segments) | Op::Write(segments, _) => elsewhere(segments),
            Op::Modify(address, _) | Op::Lock { word: address, .. } => elsewhere(&[word(*address)]),
            Op::Free(address, bytes) => elsewhere(&[Segment { address: *address, bytes: *bytes }]),
            Op::Share { region, .. } => elsewhere(&[*region]),
            // The ranges of these operations only order the thread.
            Op::Offload { .. } | Op::Alloc { .. } | Op::Fence | Op::Flush | Op::Sleep(_) => None,
        }
    }
}
