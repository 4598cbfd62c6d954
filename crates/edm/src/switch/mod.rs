//! The switch at the level of messages. Notifications come in, grants and released requests go out,
//! and data is forwarded along the circuit that its grant set up (section 3.2.2).
//!
//! It holds and reads no data: a granted chunk goes where the oldest unused grant of its port says.
//! The caller calls [`Switch::on_request`] and [`Switch::on_notification`] once the message is
//! identified and inserted, and adds the latency of every stage itself.

mod circuits;
mod pairs;

use ethermem_units::{Bytes, Ps};

use crate::message::{Grant, MemoryRequest, MessageId, NodeId, Notification};
use crate::sched::{Demand, Flow, NotifyError, Scheduler, SchedulerConfig};
use circuits::Circuits;
use pairs::Pairs;

pub use pairs::Notice;

/// A message that the switch originates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emission {
    /// A /G/ for a write, or for a chunk after the first of a response.
    Grant {
        /// The node that may send.
        to: NodeId,
        /// The header of the grant; `peer` is the node that will receive.
        grant: Grant,
    },
    /// A request that was buffered since its arrival and is now the first grant of its response.
    Release {
        /// The memory node.
        to: NodeId,
        /// The request as it arrived, except that `peer` is now the compute node.
        request: MemoryRequest,
    },
}

impl Emission {
    /// The port by which the emission leaves.
    #[must_use]
    pub fn to(&self) -> NodeId {
        match *self {
            Emission::Grant { to, .. } | Emission::Release { to, .. } => to,
        }
    }
}

/// The origin of a demand, indexed by the scheduler's tag.
#[derive(Clone, Copy, Debug)]
struct Stored {
    request: MemoryRequest,
    next_free: u32,
}

const NONE: u32 = u32::MAX;

/// An EDM switch.
#[derive(Debug)]
pub struct Switch {
    scheduler: Scheduler,
    /// Requests from their arrival to their last grant. Of a write only the id is needed.
    stored: Vec<Stored>,
    free: u32,
    circuits: Circuits,
    pairs: Pairs,
}

impl Switch {
    /// A switch with every port up and idle.
    #[must_use]
    pub fn new(config: SchedulerConfig) -> Switch {
        let ports = usize::from(config.ports);
        let requests_max = ports * ports * usize::from(config.notifications_max);
        Switch {
            stored: Vec::with_capacity(requests_max),
            free: NONE,
            circuits: Circuits::new(config.ports),
            pairs: Pairs::new(config.ports),
            scheduler: Scheduler::new(config),
        }
    }

    /// The grant scheduler.
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Records an RREQ or RMWREQ of `from` in the notification queue; it took `blocks` of its
    /// uplink.
    ///
    /// # Errors
    /// [`NotifyError`] when it cannot be queued; the switch then forgets it.
    pub fn on_request(
        &mut self,
        now: Ps,
        from: NodeId,
        request: MemoryRequest,
        blocks: u32,
    ) -> Result<(), NotifyError> {
        self.scheduler.charge_source(now, from.number(), blocks);
        if self.pairs.is_parting(from, request.peer) {
            return Err(NotifyError::PortFailed);
        }
        let tag = self.store(request);
        let queued = self.scheduler.notify(Demand {
            source: request.peer.number(),
            destination: from.number(),
            flow: Flow::ReadResponse,
            bytes: demand(request.bytes),
            tag,
        });
        if queued.is_err() {
            self.forget(tag);
        }
        queued
    }

    /// Records an /N/ of `from` in the notification queue.
    ///
    /// # Errors
    /// [`NotifyError`] when it cannot be queued; the switch then forgets it.
    pub fn on_notification(
        &mut self,
        now: Ps,
        from: NodeId,
        notification: Notification,
    ) -> Result<(), NotifyError> {
        self.scheduler.charge_source(now, from.number(), 1);
        if self.pairs.is_parting(from, notification.peer) {
            return Err(NotifyError::PortFailed);
        }
        self.scheduler.notify(Demand {
            source: from.number(),
            destination: notification.peer.number(),
            flow: Flow::WriteRequest,
            bytes: demand(notification.bytes),
            tag: u32::from(notification.id.0),
        })
    }

    /// The time of the next [`Switch::step`]; a time in the past means at once.
    #[must_use]
    #[inline]
    pub fn next_wake(&self) -> Option<Ps> {
        self.scheduler.next_wake()
    }

    /// Runs one matching iteration. Each emission may leave from the time given with it, once its
    /// block is generated.
    pub fn step(&mut self, now: Ps, mut emit: impl FnMut(Ps, Emission)) {
        let Switch { scheduler, stored, free, circuits, .. } = self;
        scheduler.step(now, |grant| {
            circuits.open(grant.source, grant.destination, grant.bytes);
            let (to, peer) = (NodeId::at(grant.source), NodeId::at(grant.destination));
            let bytes = Bytes(u64::from(grant.bytes));
            let emission = match grant.flow {
                Flow::WriteRequest => {
                    let id = MessageId(grant.tag as u8);
                    Emission::Grant { to, grant: Grant { peer, id, bytes } }
                }
                Flow::ReadResponse => {
                    let entry = &mut stored[grant.tag as usize];
                    let request = entry.request;
                    if grant.last {
                        entry.next_free = std::mem::replace(free, grant.tag);
                    }
                    if grant.first {
                        Emission::Release { to, request: MemoryRequest { peer, ..request } }
                    } else {
                        Emission::Grant { to, grant: Grant { peer, id: request.id, bytes } }
                    }
                }
            };
            emit(grant.at, emission);
        });
    }

    /// Charges blocks of Ethernet frames that came by the uplink of `from` to that port's next
    /// release.
    #[inline]
    pub fn on_ethernet(&mut self, now: Ps, from: NodeId, blocks: u32) {
        self.scheduler.charge_source(now, from.number(), blocks);
    }

    /// Charges control blocks that left by the downlink of `to` to that port's next release.
    #[inline]
    pub fn on_emitted(&mut self, now: Ps, to: NodeId, blocks: u32) {
        self.scheduler.charge_destination(now, to.number(), blocks);
    }

    /// Records that `blocks` of data that was forwarded to `to` have left by it. Departures of data
    /// from before a failure of the port are not reported.
    #[inline]
    pub fn on_departed(&mut self, to: NodeId, blocks: u32) {
        self.scheduler.on_departed(to.number(), blocks);
    }

    /// True if `to` is not granted until data leaves it.
    #[inline]
    #[must_use]
    pub fn is_full(&self, to: NodeId) -> bool {
        self.scheduler.is_full(to.number())
    }

    /// A port that the last step found full. Its departures must be reported, now and as they
    /// happen, while [`Switch::is_full`].
    #[inline]
    pub fn poll_full(&mut self) -> Option<NodeId> {
        self.scheduler.poll_full().map(NodeId::at)
    }

    /// Processes a chunk of `bytes` from `from`; returns the port that it is forwarded to. `None`
    /// when no grant is open for it: the chunk must be dropped. A grant counts the framing of one
    /// chunk. The framing of a batch's further chunks is charged to both ports, and counts until it
    /// departs.
    #[inline]
    pub fn on_chunk(&mut self, now: Ps, from: NodeId, bytes: Bytes) -> Option<NodeId> {
        let overhead = self.scheduler.config().chunk_overhead_blocks;
        let excess = self.circuits.excess_blocks(from.number(), bytes.0, overhead);
        if self.circuits.allows(from.number(), bytes.0) {
            let blocks = self.scheduler.config().chunk_blocks(bytes.0 as u32);
            self.scheduler.on_sent(from.number(), blocks - excess);
        }
        let to = self.circuits.use_up(from.number(), bytes.0)?;
        if excess > 0 {
            self.scheduler.on_exceeded(to, excess);
            self.scheduler.charge_source(now, from.number(), excess);
            self.scheduler.charge_destination(now, to, excess);
        }
        Some(NodeId::at(to))
    }

    /// The destination of the next chunk of `from`, for a switch that forwards it before it is
    /// complete.
    #[must_use]
    pub fn next_hop(&self, from: NodeId) -> Option<NodeId> {
        self.circuits.next(from.number()).map(NodeId::at)
    }

    /// Records that the oldest grant of `from` stays unused, because its message ended before.
    pub fn on_unused_grant(&mut self, from: NodeId) {
        if let Some((bytes, to)) = self.circuits.skip(from.number()) {
            let blocks = self.scheduler.config().chunk_blocks(bytes);
            self.scheduler.on_sent(from.number(), blocks);
            if let Some(to) = to {
                self.scheduler.on_departed(to, blocks);
            }
        }
    }

    /// Number of grants whose data has not arrived yet.
    #[must_use]
    pub fn circuits_open(&self) -> u64 {
        self.circuits.open_total()
    }

    /// True if messages of `from` to `to` are passed on. Both ports are in service, and none of
    /// these messages can be from before a failure of one of them.
    #[must_use]
    pub fn is_joined(&self, from: NodeId, to: NodeId) -> bool {
        self.pairs.is_joined(from, to)
    }

    /// Takes a port out of service: messages that wait for it are dropped, and its peers must be
    /// told.
    pub fn fail_port(&mut self, port: NodeId, tell: impl FnMut(Notice)) {
        let Switch { scheduler, stored, free, circuits, pairs } = self;
        pairs.fail(port, tell);
        circuits.fail(port.number(), |to, bytes| {
            let blocks = scheduler.config().chunk_blocks(bytes);
            scheduler.on_departed(to, blocks);
        });
        scheduler.fail_port(port.number(), |demand| {
            if demand.flow == Flow::ReadResponse {
                stored[demand.tag as usize].next_free = std::mem::replace(free, demand.tag);
            }
        });
    }

    /// Puts a failed port back into service. Its link must have restarted: nothing that either end
    /// sent before is on it. Its node regards every peer as unreachable until it is told.
    pub fn restore_port(&mut self, port: NodeId, tell: impl FnMut(Notice)) {
        self.scheduler.restore_port(port.number());
        self.pairs.restore(port, tell);
    }

    /// Records that `from` has dropped what it had with `peer`, as it was told to.
    pub fn on_heard(&mut self, from: NodeId, peer: NodeId, tell: impl FnMut(Notice)) {
        self.pairs.heard(from, peer, tell);
    }

    fn store(&mut self, request: MemoryRequest) -> u32 {
        if self.free == NONE {
            // The scheduler refuses a request beyond a pair's X, and it is forgotten at once. So at
            // most one more than the reservation is ever stored.
            self.stored.push(Stored { request, next_free: NONE });
            return self.stored.len() as u32 - 1;
        }
        let tag = self.free;
        self.free = self.stored[tag as usize].next_free;
        self.stored[tag as usize].request = request;
        tag
    }

    fn forget(&mut self, tag: u32) {
        self.stored[tag as usize].next_free = std::mem::replace(&mut self.free, tag);
    }
}

/// The bytes as the scheduler counts them; the scheduler refuses an impossible size.
fn demand(bytes: Bytes) -> u32 {
    u32::try_from(bytes.0).unwrap_or(u32::MAX)
}
