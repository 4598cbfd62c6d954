//! The engine: virtual time, the event loop, and the one denominator.

mod alone;
mod arrivals;
mod lines;
mod live;
mod queue;

use std::sync::atomic::{AtomicBool, Ordering};

use ethermem_units::{Bytes, Ps};
use ethermem_workload::{
    ClosedLoop, Kind, LinkBlocks, Message, MessageSource, NodeIndex, SourceError,
};

pub use alone::{Alone, Denominator};
use arrivals::{Arrivals, Closed, Open};
pub use lines::{LINE_BYTES, LineAccess, LineCaches, LineCounters, LineRange, Modify, Placed};
pub use live::live;
pub use live::{Advance, Heard, Live};
use queue::EventQueue;

use crate::config::Parameters;
use crate::metrics::FabricStats;
use crate::output::{Timeline, TrackId};

/// The engine's name for a message in flight. A fabric may use it until it has reported the message
/// as finished or lost; then the handle is reused.
pub type Handle = u32;

/// A network under test: its own events, without workload, statistics or normalisation.
///
/// A fabric reads the time from [`Sim::now`] and schedules its events with [`Sim::at`]. It reports
/// every submitted message once, as finished or lost. Its own randomness comes from `seed`.
pub trait Fabric: Sized + Send + 'static {
    /// The type of its events.
    type Event: Copy + Send;
    /// The parameters of its own table; `()` where it has none.
    type Parameters: Parameters;

    /// True if it runs on a leaf-spine network; false if it runs on a single switch only.
    const LEAF_SPINE: bool = false;

    /// Approximate distance of its events, in picoseconds, as a power of two of at most 8. It
    /// affects the speed of a run, but no result.
    const EVENT_GAP_SHIFT: u32 = 5;

    /// True if a message that has ended leaves nothing behind that changes the time of a later one:
    /// no window, rate or estimate. Messages alone are then timed in one fabric, and not in one
    /// each, which takes longer the more there is to build.
    const FORGETS: bool = false;

    /// Maximum number of nodes. EDM names a node in nine bits; the others were tried up to that.
    const NODES_MAX: u16 = 512;

    /// Maximum data bytes of one message.
    const MESSAGE_BYTES_MAX: u64 = ethermem_workload::MESSAGE_BYTES_MAX;

    /// The configuration in which messages are timed alone.
    #[must_use]
    fn quiet(config: &crate::FabricConfig) -> crate::FabricConfig {
        config.quiet()
    }

    /// Builds the idle network that a configuration describes.
    fn build(config: &crate::FabricConfig, seed: u64) -> Self;

    /// Creates the rows of a timeline for its links and decisions. The engine draws messages.
    fn draw_on(&mut self, _timeline: &mut Timeline) {}

    /// The time of a message from the application's call to the fabric's first decision. It is
    /// equal for all messages, so it needs no event.
    fn submit_delay(&self) -> Ps {
        Ps::ZERO
    }

    /// Submits a message that is now at the head of its host's pipeline: [`Fabric::submit_delay`]
    /// after its arrival.
    fn submit(&mut self, sim: &mut Sim<Self::Event>, handle: Handle, message: &Message);

    /// Handles an event whose time has come.
    fn handle(&mut self, sim: &mut Sim<Self::Event>, event: Self::Event);

    /// Number of data bytes after which the timing of a long message repeats: a chunk, a frame's
    /// payload.
    fn period(&self) -> Bytes;

    /// Number of data bytes after which a long message alone proceeds at a steady pace.
    fn steady_after(&self) -> Bytes {
        Bytes(0)
    }

    /// Two nodes between which a message alone takes as long as between the given ones. As many
    /// pairs as possible should have one twin, since each twin is run.
    fn twin(&self, _compute: NodeIndex, _memory: NodeIndex) -> (NodeIndex, NodeIndex) {
        (0, 1)
    }

    /// The caches of its compute nodes, where it has any and accesses have addresses.
    fn caches(&mut self) -> Option<&mut dyn LineCaches> {
        None
    }

    /// What happened in them.
    fn line_counters(&self) -> Option<LineCounters> {
        None
    }

    /// Number of blocks that a message puts on the links, control and framing included. `load`
    /// counts these blocks.
    fn blocks(config: &crate::FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks;

    /// Ends a run, with all queues empty.
    ///
    /// # Errors
    /// A [`Violation`] when an invariant does not hold: bytes not conserved, a queue not empty.
    fn close(&self, ended: Ps) -> Result<FabricStats, Violation>;
}

/// A broken invariant, which stops the run; the seed repeats it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

/// Why a message did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A fault on its way completed it with an error.
    Fault,
    /// No response arrived in time.
    Timeout,
    /// The network never answered: no event was left.
    Forgotten,
}

/// The virtual time, and the events scheduled in it.
pub struct Sim<E> {
    now: Ps,
    queue: EventQueue<E>,
    outcomes: Vec<(Handle, Result<Ps, Loss>)>,
    timeline: Option<Timeline>,
    /// The way of each message by handle, if it was requested.
    ways: Option<Vec<Way>>,
    /// Messages whose request arrived at its memory node, if a caller acts on them.
    reached: Option<Vec<(Handle, Ps)>>,
    events: u64,
}

/// Times of a message between its arrival and its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// For reads and atomics: the time at which its request is at the memory node.
    pub at_memory: Option<Ps>,
    /// The time at which the first byte of its data leaves its node.
    pub leaves: Option<Ps>,
}

impl<E: Copy> Sim<E> {
    fn new(bucket_shift: u32) -> Sim<E> {
        Sim {
            now: Ps::ZERO,
            queue: EventQueue::new(bucket_shift),
            outcomes: Vec::new(),
            timeline: None,
            ways: None,
            reached: None,
            events: 0,
        }
    }

    /// The current time.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Ps {
        self.now
    }

    /// Schedules an event.
    ///
    /// # Panics
    /// If `at` is before now.
    #[inline]
    pub fn at(&mut self, at: Ps, event: E) {
        assert!(at >= self.now, "an event at {at} scheduled at {}", self.now);
        self.queue.push(at, event);
    }

    /// Reports that a message's last byte is at its destination at `at`, which may be later than
    /// now.
    #[inline]
    pub fn finish(&mut self, handle: Handle, at: Ps) {
        self.outcomes.push((handle, Ok(at)));
    }

    /// The timeline, if one is drawn.
    #[inline]
    pub fn timeline(&mut self) -> Option<&mut Timeline> {
        self.timeline.as_mut()
    }

    /// True if [`Sim::at_memory`] and [`Sim::leaves`] are recorded.
    #[inline]
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.ways.is_some()
    }

    /// Records that a message's request is at its memory node at `at`. Of several parts the first
    /// one counts.
    #[inline]
    pub fn at_memory(&mut self, handle: Handle, at: Ps) {
        let Some(ways) = &mut self.ways else { return };
        let first = &mut ways[handle as usize].at_memory;
        if first.is_none() {
            *first = Some(at);
            if let Some(reached) = &mut self.reached {
                reached.push((handle, at));
            }
        }
    }

    /// Records that data of a message leaves its node from `at` on; the first time counts.
    #[inline]
    pub fn leaves(&mut self, handle: Handle, at: Ps) {
        if let Some(ways) = &mut self.ways {
            ways[handle as usize].leaves.get_or_insert(at);
        }
    }

    /// Reports that a message will never finish.
    pub fn lose(&mut self, handle: Handle, loss: Loss) {
        self.outcomes.push((handle, Err(loss)));
    }
}

/// Receives the outcome of every message.
pub trait Observer {
    /// Receives the way of a message just before its outcome, if ways were requested.
    fn way(&mut self, _way: Way) {}

    /// Receives the time at which a message finished, or the reason of its loss.
    fn outcome(&mut self, message: &Message, outcome: Result<Ps, Loss>);
}

/// The result of a run, without its messages.
pub struct RunEnd {
    /// The counters of the fabric.
    pub stats: FabricStats,
    /// Number of messages submitted to the fabric.
    pub started: u64,
    /// Number of events taken from the queue.
    pub events: u64,
    /// The time at which the last message finished.
    pub ended: Ps,
    /// The timeline, if one was drawn.
    pub timeline: Option<Timeline>,
    /// True if the run was interrupted: messages in flight are in no statistics.
    pub interrupted: bool,
}

/// Why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The source of messages failed.
    Source(SourceError),
    /// An invariant did not hold.
    Violation(Violation),
}

impl From<SourceError> for RunError {
    fn from(error: SourceError) -> RunError {
        RunError::Source(error)
    }
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::Source(error) => error.fmt(f),
            RunError::Violation(Violation(what)) => write!(f, "invariant violated: {what}"),
        }
    }
}

impl std::error::Error for RunError {}

/// Number of events between two checks of the interrupt flag and calls of the progress callback.
const EVENTS_PER_LOOK: u64 = 1 << 14;

/// A fabric with its virtual time and its messages in flight.
pub struct Engine<F: Fabric> {
    fabric: F,
    sim: Sim<F::Event>,
    in_flight: Vec<Message>,
    free: Vec<Handle>,
    /// For each handle: true from submission to outcome.
    live: Vec<bool>,
    started: u64,
    ended: u64,
    /// The time at which the last message finished; timers may run on.
    finished_at: Ps,
    /// The rows of messages by compute node, if a timeline is drawn.
    tracks: Vec<TrackId>,
}

impl<F: Fabric> Engine<F> {
    /// An idle fabric at time zero.
    pub fn new(fabric: F) -> Engine<F> {
        Engine {
            fabric,
            sim: Sim::new(F::EVENT_GAP_SHIFT),
            in_flight: Vec::new(),
            free: Vec::new(),
            live: Vec::new(),
            started: 0,
            ended: 0,
            finished_at: Ps::ZERO,
            tracks: Vec::new(),
        }
    }

    /// Draws the run of this many nodes on a timeline, which [`RunEnd`] returns.
    pub fn draw_on(&mut self, mut timeline: Timeline, nodes: u16) {
        self.tracks = timeline.rows("messages", nodes);
        self.fabric.draw_on(&mut timeline);
        self.sim.timeline = Some(timeline);
    }

    /// Reports the way of every message to the observer.
    pub fn watch_ways(&mut self) {
        self.sim.ways = Some(Vec::new());
    }

    /// Runs a workload to the end of its last message. `progress` is called with the number of
    /// ended messages.
    ///
    /// # Errors
    /// [`RunError`] when the source of messages fails or an invariant is broken.
    pub fn run(
        self,
        source: &mut dyn MessageSource,
        observer: &mut dyn Observer,
        interrupt: &AtomicBool,
        progress: &dyn Fn(u64),
    ) -> Result<RunEnd, RunError> {
        self.run_arrivals(&mut Open::new(source)?, observer, interrupt, progress)
    }

    /// Runs messages that depend on each other until none is in flight and none is known to come.
    /// The caller asks the source whether it is complete.
    ///
    /// # Errors
    /// [`RunError`] when an invariant is broken.
    pub fn run_closed(
        self,
        source: &mut dyn ClosedLoop,
        observer: &mut dyn Observer,
        interrupt: &AtomicBool,
        progress: &dyn Fn(u64),
    ) -> Result<RunEnd, RunError> {
        self.run_arrivals(&mut Closed(source), observer, interrupt, progress)
    }

    fn run_arrivals<A: Arrivals>(
        mut self,
        arrivals: &mut A,
        observer: &mut dyn Observer,
        interrupt: &AtomicBool,
        progress: &dyn Fn(u64),
    ) -> Result<RunEnd, RunError> {
        let mut interrupted = false;
        let mut look = EVENTS_PER_LOOK;
        let delay = self.fabric.submit_delay();
        let at = |arrival: Option<Ps>| arrival.map_or(Ps::MAX, |arrival| arrival + delay);
        let mut submitted = at(arrivals.next_arrival());
        loop {
            if !self.handle_before(submitted) {
                if submitted == Ps::MAX {
                    break;
                }
                self.sim.now = submitted;
                self.submit(&arrivals.take());
                arrivals.draw()?;
                submitted = at(arrivals.next_arrival());
            }
            if !self.sim.outcomes.is_empty() {
                if self.tell(arrivals) {
                    submitted = at(arrivals.next_arrival());
                }
                self.settle(observer);
            }
            if self.sim.events + self.started >= look {
                look += EVENTS_PER_LOOK;
                progress(self.ended);
                if interrupt.load(Ordering::Relaxed) {
                    interrupted = true;
                    break;
                }
            }
        }
        progress(self.ended);
        if !interrupted {
            self.report_forgotten(observer);
        }
        let stats = if interrupted {
            FabricStats::default()
        } else {
            self.fabric.close(self.finished_at).map_err(RunError::Violation)?
        };
        Ok(RunEnd {
            stats,
            started: self.started,
            events: self.sim.events,
            ended: self.finished_at,
            timeline: self.sim.timeline,
            interrupted,
        })
    }

    /// Tells the source of the messages which of them have ended.
    #[inline]
    fn tell<A: Arrivals>(&self, arrivals: &mut A) -> bool {
        let mut is_changed = false;
        for &(handle, outcome) in &self.sim.outcomes {
            let index = self.in_flight[handle as usize].index;
            is_changed |= arrivals.ended(index, outcome.ok());
        }
        is_changed
    }

    #[inline]
    fn submit(&mut self, message: &Message) {
        self.submit_as(message);
    }

    #[inline]
    fn submit_as(&mut self, message: &Message) -> Handle {
        let handle = self.free.pop().unwrap_or(self.in_flight.len() as Handle);
        if handle as usize == self.in_flight.len() {
            self.in_flight.push(*message);
            self.live.push(true);
        } else {
            self.in_flight[handle as usize] = *message;
            self.live[handle as usize] = true;
        }
        self.started += 1;
        if let Some(ways) = &mut self.sim.ways {
            ways.resize(self.in_flight.len(), Way::default());
            ways[handle as usize] = Way::default();
        }
        self.fabric.submit(&mut self.sim, handle, message);
        handle
    }

    /// Handles the next event, if it is before `limit`.
    #[inline]
    fn handle_before(&mut self, limit: Ps) -> bool {
        let Some((at, event)) = self.sim.queue.pop_before(limit) else { return false };
        debug_assert!(at >= self.sim.now);
        self.sim.now = at;
        self.sim.events += 1;
        self.fabric.handle(&mut self.sim, event);
        true
    }

    fn settle(&mut self, observer: &mut dyn Observer) {
        for at in 0..self.sim.outcomes.len() {
            let (handle, outcome) = self.sim.outcomes[at];
            assert!(
                std::mem::replace(&mut self.live[handle as usize], false),
                "message {handle} ended twice"
            );
            self.ended += 1;
            self.finished_at = self.finished_at.max(outcome.unwrap_or(self.sim.now));
            let message = &self.in_flight[handle as usize];
            if let Some(ways) = &self.sim.ways {
                observer.way(ways[handle as usize]);
            }
            observer.outcome(message, outcome);
            if let Some(timeline) = &mut self.sim.timeline {
                let track = self.tracks[usize::from(message.compute)];
                draw(timeline, track, message, outcome.map_err(|_| self.sim.now));
            }
            self.free.push(handle);
        }
        self.sim.outcomes.clear();
    }

    /// Reports the remaining messages as forgotten: no event is left, so they never end.
    fn report_forgotten(&mut self, observer: &mut dyn Observer) {
        for (message, live) in self.in_flight.iter().zip(&mut self.live) {
            if std::mem::replace(live, false) {
                observer.outcome(message, Err(Loss::Forgotten));
            }
        }
    }
}

/// Draws a message from its arrival to its end, or to the time of its loss.
fn draw(timeline: &mut Timeline, track: TrackId, message: &Message, ended: Result<Ps, Ps>) {
    let (name, end) = match ended {
        Ok(finished) => (message.kind.name(), finished),
        Err(lost) => ("lost", lost),
    };
    let args = [("memory node", u64::from(message.memory)), ("bytes", message.bytes.0)];
    timeline.slice(track, name, message.arrival, end, &args);
}
