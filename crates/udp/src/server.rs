//! A memory node behind a network.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ethermem_clio::node::{Node, WRITE_FRONT_BYTES};
use ethermem_ring::Alarm;
use ethermem_units::{Bytes, Ns};
use thiserror::Error;

use crate::carrier::place::{RingError, RingPlace};
use crate::carrier::train::Trains;
use crate::carrier::{Carrier, RingCarrier, UdpCarrier, socket};
use crate::operator::{Operator, Questions};
use crate::patience::{Gaps, Patience, Wait};
use crate::seal::NodeSeal;
use crate::snapshot::{Latencies, Published, ServerCounters, Snapshot};

/// Memory in bytes that is made ready for page faults at a time: some microseconds of work.
const TEND_BYTES: u64 = 64 << 10;
/// Number of datagrams or empty polls between two rounds of background work.
const TEND_EVERY: u32 = 64;
/// How long a node that gives way puts off its other work, which takes longer than a request.
const TEND_AFTER: Duration = Duration::from_millis(1);
/// Longest sleep, so that lease expiry and the stop flag are noticed.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// Longest sleep of a node that was quiet for [`IDLE_AFTER`], or is asked seldom.
const SLEEP_IDLE: Duration = Duration::from_millis(250);
/// Requests that come more seldom find a sleeping node: to poll after each would be in vain. Gaps
/// that other programs' turns make are shorter.
const LONG_GAP: Duration = Duration::from_millis(100);
/// Without a request for so long, a node counts as idle.
const IDLE_AFTER: Duration = Duration::from_millis(250);
/// Largest age of published data.
const PUBLISH_EVERY: Ns = Ns(100_000_000);
/// Interval of looking through all processes for one that is dead, which takes microseconds.
const SWEEP_EVERY: Ns = Ns(1_000_000);
/// Interval of checking a ring's interface.
const MEND_EVERY: Ns = Ns(500_000_000);
/// While frames arrive, the socket is polled once in this many turns: polling it is a system call,
/// and polling the ring is none.
const SOCKET_EVERY: u32 = 8;
/// Shortest datagram that may be received in the node's memory: looking at it first is a call of
/// the system, which takes as long as a copy of this many octets.
const LANDED_BYTES_MIN: usize = 8 << 10;
/// Number of datagrams that are looked at first after a long one.
const LONG_WRITES: u32 = 16;
/// One in this many datagrams is timed: two clock reads take as long as the node's work.
const TIME_EVERY: u64 = 16;

/// Protection of a node's datagrams.
pub enum Protect {
    /// The node's own checks, for datagrams that do not leave the machine.
    Node,
    /// Encryption.
    Seal(Box<NodeSeal>),
}

/// Addresses of a node: one of them, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listen {
    /// UDP address.
    pub udp: Option<SocketAddr>,
    /// Place on raw Ethernet, which needs CAP_NET_RAW.
    pub ring: Option<RingPlace>,
}

/// The reason why a node's address cannot be used.
#[derive(Debug, Error)]
pub enum BindError {
    /// The UDP address cannot be bound.
    #[error("{0}: {1}")]
    Udp(SocketAddr, io::Error),
    /// The interface cannot have a ring.
    #[error("ring {0}: {1}")]
    Ring(RingPlace, RingError),
}

/// A memory node with its carriers. It uses one thread: the node's fast path takes no lock.
pub struct Server<B> {
    answerer: Answerer<B>,
    udp: Option<UdpCarrier>,
    ring: Option<Box<RingCarrier>>,
    /// Time of the next check of the ring's interface.
    mend_at: Ns,
    /// Turns with a frame since the socket was last polled.
    frames: u32,
    patience: Patience,
    alarm: Alarm,
    published: Published,
    publish_at: Ns,
    operator: Operator,
    questions: Questions,
    ending: bool,
}

/// The node's request handling, for any carrier.
struct Answerer<B> {
    node: Node<B>,
    protect: Protect,
    started: Instant,
    counters: ServerCounters,
    serving: Latencies,
    /// Number of shorter datagrams after which none is looked at first.
    long_writes: u32,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Server<B> {
    /// Binds a node to its addresses.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind(node: Node<B>, protect: Protect, listen: &Listen) -> Result<Server<B>, BindError> {
        let udp = |address| socket::bind(address).map_err(|error| BindError::Udp(address, error));
        let udp = listen.udp.map(udp).transpose()?.map(UdpCarrier::to_clients);
        let ring = |place: &RingPlace| {
            let ring = RingCarrier::of_node(place);
            ring.map(Box::new).map_err(|error| BindError::Ring(place.clone(), error))
        };
        let ring = listen.ring.as_ref().map(ring).transpose()?;
        let first = Snapshot {
            uptime: Ns::ZERO,
            epoch: node.epoch(),
            memory: Bytes(node.memory().bytes()),
            free: Bytes(node.memory().map().free_bytes()),
            processes: 0,
            ending: false,
            node: node.counters(),
            map: node.memory().map().counters(),
            server: ServerCounters::default(),
            tenants: node.tenant_uses().map(|(id, used)| (id, *used)).collect(),
            serving: Latencies::default(),
        };
        let answerer = Answerer {
            node,
            protect,
            started: Instant::now(),
            counters: ServerCounters::default(),
            serving: Latencies::default(),
            long_writes: 0,
        };
        let published = Arc::new(Mutex::new(first));
        let (mend_at, publish_at) = (Ns::ZERO, Ns::ZERO);
        let (frames, ending) = (0, false);
        let (operator, questions) = Questions::new();
        Ok(Server {
            answerer,
            udp,
            ring,
            mend_at,
            frames,
            patience: Patience::new(),
            alarm: Alarm::new(),
            published,
            publish_at,
            operator,
            questions,
            ending,
        })
    }

    /// Address of the UDP socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.udp.as_ref()?.address().ok()
    }

    /// Place on raw Ethernet.
    #[must_use]
    pub fn ring(&self) -> Option<RingPlace> {
        self.ring.as_ref().map(|ring| ring.place())
    }

    /// The kernel's support of trains.
    #[must_use]
    pub fn trains(&self) -> Trains {
        self.udp.as_ref().map_or(Trains::NONE, UdpCarrier::trains)
    }

    /// The node, for inspection.
    #[must_use]
    pub fn node(&self) -> &Node<B> {
        &self.answerer.node
    }

    /// The node, for changes before it runs.
    pub fn node_mut(&mut self) -> &mut Node<B> {
        &mut self.answerer.node
    }

    /// Counters outside of the node.
    #[must_use]
    pub fn counters(&self) -> ServerCounters {
        self.answerer.counters
    }

    /// Data for other threads, at most a tenth of a second old.
    #[must_use]
    pub fn published(&self) -> Published {
        Arc::clone(&self.published)
    }

    /// Access for another thread of an operator.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator.clone()
    }

    /// Serves until the stop flag is set. It polls without a pause, and sleeps when nothing has
    /// arrived for `poll_for`, because a wake-up takes tens of microseconds.
    ///
    /// # Errors
    /// Errors of the socket itself.
    pub fn run(&mut self, poll_for: Duration, stop: &AtomicBool) -> io::Result<()> {
        self.run_until(poll_for, |_| stop.load(Ordering::Relaxed))
    }

    /// As [`Server::run`], until `done` returns true, which is called after each poll.
    ///
    /// # Errors
    /// As [`Server::run`].
    pub fn run_asking(
        &mut self,
        poll_for: Duration,
        mut done: impl FnMut() -> bool,
    ) -> io::Result<()> {
        self.run_until(poll_for, |_| done())
    }

    /// Serves requests in flight, and refuses new processes: until no process is left, or nothing
    /// has arrived for `quiet`, or for at most `most`.
    ///
    /// # Errors
    /// As [`Server::run`].
    pub fn drain(&mut self, most: Duration, quiet: Duration) -> io::Result<()> {
        self.answerer.node.take_no_more_processes();
        self.ending = true;
        self.publish_at = Ns::ZERO;
        let end = Instant::now() + most;
        self.run_until(SLEEP_MAX, |state| {
            let drained = state.processes == 0 || state.quiet >= quiet;
            drained || Instant::now() >= end
        })
    }

    fn run_until(
        &mut self,
        poll_for: Duration,
        mut done: impl FnMut(&State) -> bool,
    ) -> io::Result<()> {
        let (mut quiet_since, mut turns, mut heard) = (Instant::now(), 0_u32, false);
        let (mut tended_at, mut sweeps, mut more) = (quiet_since, true, false);
        let mut sweep_at = Ns::ZERO;
        let mut gaps = Gaps::default();
        // Where a sleep came to its end, there is nothing to poll for.
        let mut slept = false;
        let mut state = State { processes: self.answerer.node.processes(), quiet: Duration::ZERO };
        while !done(&state) {
            let came = self.serve()?;
            turns += 1;
            heard |= came;
            let wait = self.judge(came);
            let stays_quiet = std::mem::take(&mut slept) && !came;
            // Operations of several slices get idle time, and a share of the rest.
            if !stays_quiet && turns < TEND_EVERY && (came || !self.answerer.node.runs_wait()) {
                if wait == Wait::Poll {
                    continue;
                }
                let puts_off = tended_at.elapsed() < TEND_AFTER;
                // Work that is left ends the sleep. Where no request came between two of its
                // slices, there is none to put it off for.
                if !sweeps && puts_off && (heard || !more) {
                    self.sleep(if more { TEND_AFTER } else { SLEEP_MAX });
                    continue;
                }
            }
            (turns, tended_at) = (0, Instant::now());
            let now = self.answerer.now();
            let asked = self.questions.answer(now, &mut self.answerer.node);
            more = self.answerer.node.tend(now, TEND_BYTES) || asked;
            if now >= self.publish_at {
                self.publish(now);
            }
            if now >= self.mend_at {
                self.mend(now);
            }
            state.processes = self.answerer.node.processes();
            // A datagram of any turn counts, and not only one of this turn.
            let heard = std::mem::take(&mut heard);
            if heard {
                gaps.add(quiet_since.elapsed() >= poll_for.max(LONG_GAP));
            }
            if heard || more {
                quiet_since = Instant::now();
            }
            state.quiet = quiet_since.elapsed();
            let is_seldom = gaps.are_long();
            let gives_way = wait == Wait::Sleep || is_seldom;
            // A sleep between two slices of work would starve it, however short the polling is.
            let is_quiet = !more && (gives_way || quiet_since.elapsed() >= poll_for);
            // A node that gives way is quiet between any two requests.
            sweeps = is_quiet && now >= sweep_at && self.answerer.node.sweep(now);
            if is_quiet && !sweeps && now >= sweep_at {
                sweep_at = now.saturating_add(SWEEP_EVERY);
            }
            slept = is_quiet && !sweeps;
            if slept {
                let is_idle = is_seldom || state.quiet >= IDLE_AFTER;
                self.sleep(if is_idle { SLEEP_IDLE } else { SLEEP_MAX });
            }
        }
        self.publish(self.answerer.now());
        Ok(())
    }

    /// Decides whether the node looks again at once or gives way to others on its processor.
    fn judge(&mut self, came: bool) -> Wait {
        if came {
            self.patience.interrupt();
            return Wait::Poll;
        }
        if self.patience.is_sample_due() {
            std::thread::yield_now();
        }
        self.patience.fruitless()
    }

    /// Serves pending datagrams, and returns whether there were any.
    fn serve(&mut self) -> io::Result<bool> {
        let mut came = false;
        if let Some(ring) = &mut self.ring {
            let answered = self.answerer.answer(&mut **ring);
            came = answered.map_err(|error| at(&format!("ring://{}", ring.place()), &error))?;
        }
        self.frames = if came { self.frames + 1 } else { SOCKET_EVERY };
        if let Some(udp) = self.udp.as_mut().filter(|_| self.frames >= SOCKET_EVERY) {
            self.frames = 0;
            let answered = self.answerer.answer(udp);
            came |= answered.map_err(|error| match udp.address() {
                Ok(address) => at(&format!("UDP {address}"), &error),
                Err(_) => error,
            })?;
        }
        if !came {
            std::hint::spin_loop();
        }
        Ok(came)
    }

    /// Sleeps until something arrives, or for `most`.
    fn sleep(&mut self, most: Duration) {
        self.patience.sleep();
        self.answerer.counters.sleeps += 1;
        self.answerer.counters.gave_way = self.patience.gave_way();
        match (&self.udp, &self.ring) {
            (Some(udp), None) => {
                self.alarm.sleep(udp.socket().as_fd(), None, most);
            }
            (None, Some(ring)) => ring.waiter().wait(&self.alarm, most),
            (Some(udp), Some(ring)) => ring.waiter().wait_with(udp.socket(), &self.alarm, most),
            (None, None) => std::thread::sleep(most),
        }
    }

    /// Reopens the ring when its interface disappears and another one of its name appears.
    fn mend(&mut self, now: Ns) {
        self.mend_at = now.saturating_add(MEND_EVERY);
        if let Some(ring) = &mut self.ring {
            self.answerer.counters.rings_renewed += u64::from(ring.mend());
        }
    }

    /// Publishes a snapshot. Nothing here allocates, and a concurrent reader is not waited for.
    fn publish(&mut self, now: Ns) {
        if let Some(ring) = &mut self.ring {
            let counters = &mut self.answerer.counters;
            (counters.frames_dropped, counters.frames_overrun) = (ring.malformed(), ring.overrun());
        }
        let Ok(mut snapshot) = self.published.try_lock() else {
            return;
        };
        self.publish_at = now.saturating_add(PUBLISH_EVERY);
        let map = self.answerer.node.memory().map();
        snapshot.uptime = now;
        snapshot.free = Bytes(map.free_bytes());
        snapshot.processes = self.answerer.node.processes();
        snapshot.ending = self.ending;
        snapshot.node = self.answerer.node.counters();
        snapshot.map = map.counters();
        snapshot.server = self.answerer.counters;
        snapshot.serving = self.answerer.serving;
        for (place, (id, used)) in snapshot.tenants.iter_mut().zip(self.answerer.node.tenant_uses())
        {
            *place = (id, *used);
        }
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Answerer<B> {
    /// Answers a datagram, or several joined into one, and returns whether there was one.
    fn answer(&mut self, carrier: &mut impl Carrier) -> io::Result<bool> {
        if self.long_writes > 0
            && carrier.refers()
            && let Some(came) = self.land(carrier)?
        {
            return Ok(came);
        }
        let Some(bytes) = carrier.receive()? else {
            return Ok(false);
        };
        // What is encrypted is opened before any of it is used.
        if bytes >= LANDED_BYTES_MIN && matches!(self.protect, Protect::Node) {
            self.long_writes = LONG_WRITES;
        }
        let now = self.now();
        self.counters.received_bytes += bytes as u64;
        let refers = carrier.refers();
        while let Some((datagram, answer)) = carrier.next() {
            let bytes = match &mut self.protect {
                Protect::Node if refers => {
                    let answered = self.node.answer(now, datagram, answer);
                    if let Some(extent) = &answered.outside {
                        let mut rest = Vec::new();
                        self.node.memory().slices(extent, |part| rest.push(part));
                        self.counters.count(carrier.reply_with(answered.bytes, &rest));
                        continue;
                    }
                    answered.bytes
                }
                Protect::Node => self.node.on_datagram(now, datagram, answer),
                Protect::Seal(seal) => self.node.on_sealed(now, datagram, answer, &mut **seal),
            };
            if bytes > 0 {
                carrier.reply(bytes);
            }
            if carrier.is_full() {
                self.counters.count(carrier.flush());
            }
        }
        if carrier.is_empty() {
            return Ok(true);
        }
        // A response that the carrier refuses counts as lost in the network.
        self.counters.count(carrier.flush());
        if self.node.counters().datagrams.is_multiple_of(TIME_EVERY) {
            self.serving.add(self.now().saturating_sub(now));
        }
        Ok(true)
    }

    /// Looks at the next datagram, and receives the data of a long write in the node's memory.
    /// Returns if there was a datagram; `None` if it must be received whole.
    fn land(&mut self, carrier: &mut impl Carrier) -> io::Result<Option<bool>> {
        let mut front = [0; WRITE_FRONT_BYTES];
        let Some(bytes) = carrier.peek(&mut front)? else { return Ok(Some(false)) };
        if bytes < LANDED_BYTES_MIN {
            self.long_writes -= 1;
            return Ok(None);
        }
        let now = self.now();
        let answer = carrier.place();
        let Some(landing) = self.node.answer_front(now, &front, bytes, answer) else {
            return Ok(None);
        };
        if let Some(place) = &landing.place {
            carrier.receive_parts(&front, self.node.memory_for(place))?;
        } else {
            carrier.receive()?;
            while carrier.next().is_some() {}
        }
        self.long_writes = LONG_WRITES;
        self.counters.received_bytes += bytes as u64;
        if landing.bytes > 0 {
            carrier.reply(landing.bytes);
            self.counters.count(carrier.flush());
        }
        Ok(Some(true))
    }

    /// The node's clock, which begins at 1: 0 means "not known".
    fn now(&self) -> Ns {
        Ns(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX).saturating_add(1))
    }
}

fn at(place: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{place}: {error}"))
}

/// Inputs of the decision to stop serving.
struct State {
    processes: usize,
    /// Time since the last datagram.
    quiet: Duration,
}

#[cfg(test)]
mod tests;
