//! The host stack of one node: compute side and memory side (section 3.2.1).
//!
//! The caller tells a [`Host`] of its requests ([`Host::submit`]), of arrivals ([`Host::on_grant`],
//! [`Host::on_request`], [`Host::on_chunk`], [`Host::on_status`]) and of time ([`Host::on_timer`]).
//! The host returns what to transmit ([`Host::poll_outbound`]), what ended ([`Host::poll_event`])
//! and which bytes to move ([`crate::Action`]). It moves no bytes and adds no latency: its caller
//! does both. Nothing allocates after construction.

mod counters;
mod entry;
mod failure;
mod peers;
mod queue;
mod receive;
mod ring;
mod serve;
mod store;
mod table;
mod transmit;

pub use counters::Counters;

use ethermem_units::{Bytes, Ps};

use crate::config::{EdmConfig, Order};
use crate::message::{
    Event, MESSAGE_BYTES_MAX, MessageId, NodeId, Op, RMW_BYTES, Request, Status, SubmitError,
    WriteKind,
};

use entry::{Entry, List, NONE, Outcome, Slab, kind, state};
use peers::{DOWN, Destination, Peers};
use ring::Ring;
use serve::Responses;
use table::ENTRIES_MAX;

/// The parameters of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostConfig<'a> {
    /// The node of this host.
    pub node: NodeId,
    /// Number of nodes of the network, this one included.
    pub nodes: u16,
    /// Parameters of the network.
    pub edm: &'a EdmConfig,
    /// Maximum requests between [`Host::submit`] and their polled event: 1 to 2^24 - 1. Memory is
    /// reserved for all of them and touched at their first use.
    pub messages_max: usize,
}

/// What leaves this host, except data. It is stored by index, so that it can end while it waits.
#[derive(Clone, Copy, Debug)]
enum Control {
    /// The request or the notification of an entry.
    Open(u32),
    Status(Status),
}

/// An entry of the grant queue.
#[derive(Clone, Copy, Debug)]
struct Granted {
    target: Target,
    bytes: u32,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    /// A write of this host, by the entry that leads its id.
    Write(u32),
    /// A response, by its index.
    Response(u16),
}

/// The message-level host stack of one node, which the module's documentation describes.
#[derive(Debug)]
pub struct Host {
    node: NodeId,
    notifications_max: u8,
    chunk: u32,
    batching: bool,
    relaxed: bool,
    strict: bool,
    link_down: bool,
    read_timeout: Ps,
    now: Ps,
    slab: Slab,
    peers: Peers,
    /// The lanes of every destination under relaxed order; otherwise empty.
    lanes: Vec<List>,
    /// Entries by deadline, which is the order of submission.
    deadlines: List,
    events: List,
    control: Ring<Control>,
    statuses_queued: usize,
    statuses_max: usize,
    grants: Ring<Granted>,
    responses: Responses,
    counters: Counters,
}

impl Host {
    /// A host without requests. All memory that it will use is reserved here.
    ///
    /// # Panics
    /// If the configuration is out of the ranges that [`EdmConfig`] and [`HostConfig`] state.
    #[must_use]
    pub fn new(config: HostConfig<'_>) -> Host {
        let HostConfig { node, nodes, edm, messages_max } = config;
        assert!(node.number() < nodes, "node {} of {nodes}", node.number());
        assert!((1..=8).contains(&edm.notifications_max), "X = {}", edm.notifications_max);
        assert!((64..=1024).contains(&edm.chunk.0), "a chunk of {} B", edm.chunk.0);
        assert!((1..=ENTRIES_MAX).contains(&messages_max), "{messages_max} messages");
        let relaxed = edm.order == Order::Relaxed;
        let rows = usize::from(nodes) * MessageId::ROWS;
        let requests = usize::from(nodes) * usize::from(edm.notifications_max);
        // There is one acknowledgement for each write id that the peers can have open, and spare
        // room for the members of batches.
        let statuses_max = 2 * rows + 64;
        Host {
            node,
            notifications_max: edm.notifications_max,
            chunk: edm.chunk.0 as u32,
            batching: edm.batching,
            relaxed,
            strict: edm.order == Order::Strict,
            link_down: false,
            read_timeout: edm.read_timeout,
            now: Ps::ZERO,
            slab: Slab::new(messages_max),
            peers: Peers::new(nodes, edm.notifications_max),
            lanes: vec![List::EMPTY; if relaxed { usize::from(nodes) * queue::LANES } else { 0 }],
            deadlines: List::EMPTY,
            events: List::EMPTY,
            control: Ring::new(requests + rows + statuses_max),
            statuses_queued: 0,
            statuses_max,
            // A grant is answered within one or two chunk times, so a few grants per active message
            // are many. Grants beyond the capacity are counted and end their message.
            grants: Ring::new((8 * requests).max(64)),
            responses: Responses::new(nodes, edm.notifications_max),
            counters: Counters::default(),
        }
    }

    /// Accepts a request. It ends with exactly one [`Event`] that carries its token.
    ///
    /// # Errors
    /// [`SubmitError`]; the host then keeps nothing of the request.
    ///
    /// # Panics
    /// If `now` is before the time of an earlier call. This holds for every method that takes the
    /// time.
    pub fn submit(&mut self, now: Ps, request: Request) -> Result<(), SubmitError> {
        self.take(now, request, None)
    }

    /// Accepts a request as [`Host::submit`] does, with an id that the caller chose. So two hosts
    /// of one node, each on a switch of its own, give a message one id. The id's row must be free.
    pub(crate) fn submit_as(
        &mut self,
        now: Ps,
        request: Request,
        id: MessageId,
    ) -> Result<(), SubmitError> {
        self.take(now, request, Some(id))
    }

    fn take(
        &mut self,
        now: Ps,
        request: Request,
        id: Option<MessageId>,
    ) -> Result<(), SubmitError> {
        self.advance(now);
        let peer = request.peer;
        if peer == self.node || usize::from(peer.number()) >= self.peers.len() {
            return Err(SubmitError::BadPeer);
        }
        let (bytes, mut kind) = match request.op {
            Op::Read { bytes } => (bytes, 0),
            Op::Write { bytes, kind: WriteKind::Posted } => (bytes, kind::WRITE),
            Op::Write { bytes, kind: WriteKind::Acknowledged } => {
                (bytes, kind::WRITE | kind::ACKED)
            }
            Op::ReadModifyWrite { .. } => (RMW_BYTES, kind::MODIFY),
        };
        if bytes == Bytes(0) || bytes > MESSAGE_BYTES_MAX {
            return Err(SubmitError::BadLength);
        }
        if self.link_down || self.peers.destination(peer).is(DOWN) {
            return Err(SubmitError::LinkDown);
        }
        if request.fence && self.relaxed {
            kind |= kind::FENCE;
        }
        let (opcode, operands) = match request.op {
            Op::ReadModifyWrite { operation } => {
                (operation.kind().opcode() as u8, operation.operands())
            }
            _ => (0, [0; 2]),
        };
        let mut entry = self.entry(request, bytes.0 as u32, kind, opcode);
        if let Some(id) = id {
            entry.id = id;
            entry.kind |= kind::NAMED;
        }
        let index = self.slab.insert(entry, operands).ok_or(SubmitError::Full)?;
        if entry.has(state::TIMED) {
            self.slab.push_time(&mut self.deadlines, index);
        }
        self.enqueue(now, index);
        Ok(())
    }

    fn entry(&self, request: Request, bytes: u32, kind: u8, opcode: u8) -> Entry {
        // A posted write ends on this side of the link: only a failure of the link or the peer ends
        // it early.
        let timed = kind & kind::WRITE == 0 || kind & kind::ACKED != 0;
        Entry {
            address: request.address.0,
            // The sum saturates: a timeout of `Ps::MAX` means no deadline.
            deadline: Ps(self.now.0.saturating_add(self.read_timeout.0)),
            token: request.token,
            bytes,
            demand: bytes,
            granted: 0,
            moved: 0,
            next: NONE,
            before: NONE,
            cursor: NONE,
            time_next: NONE,
            time_before: NONE,
            peer: request.peer,
            id: MessageId(0),
            state: if timed { state::TIMED } else { 0 },
            kind,
            member: 0,
            acks_or_opcode: opcode,
            outcome: Outcome::Done,
        }
    }

    /// The result of the next ended request, in the order of the endings. Frees its entry.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        let index = self.events.head;
        if index == NONE {
            return None;
        }
        self.slab.unlink_time(&mut self.events, index);
        let event = self.slab[index].event();
        self.slab.release(index, state::EVENT);
        Some(event)
    }

    pub(crate) const fn chunk_bytes(&self) -> Bytes {
        Bytes(self.chunk as u64)
    }

    /// Dropped inputs, by cause.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Number of requests between submission and polled event, plus ids in quarantine.
    #[must_use]
    pub const fn messages_in_use(&self) -> usize {
        self.slab.in_use()
    }

    /// True if requests to `peer` are accepted: neither the peer nor the link was declared failed.
    pub(crate) fn is_reachable(&self, peer: NodeId) -> bool {
        !self.link_down && self.peers.get(peer).is_some_and(|d| !d.is(DOWN))
    }

    /// True if an id is in use, quarantine included.
    pub(crate) fn is_open(&self, peer: NodeId, id: MessageId) -> bool {
        let index = self.peers.leader_of(peer, id);
        index != NONE && self.slab[index].id == id
    }

    /// Number of notifications to `peer` whose demand was not sent in full: at most X.
    #[must_use]
    pub fn notifications_active(&self, peer: NodeId) -> u8 {
        self.peers.get(peer).map_or(0, |found| found.writes_active)
    }

    /// Number of read and RMW ids open with `peer`, quarantine included: at most X.
    #[must_use]
    pub fn reads_active(&self, peer: NodeId) -> u8 {
        let found = self.peers.get(peer);
        found.map_or(0, |found| found.rows[0].count_ones() as u8)
    }

    #[inline]
    fn advance(&mut self, now: Ps) {
        assert!(now >= self.now, "time ran backwards: {now} after {}", self.now);
        self.now = now;
    }

    /// True if messages of `peer` are accepted: it is another node, and neither it nor the link was
    /// declared failed.
    #[inline]
    fn is_known(&mut self, peer: NodeId) -> bool {
        let known = !self.link_down
            && peer != self.node
            && self.peers.get(peer).is_some_and(|found| !found.is(DOWN));
        self.counters.peer_unknown += u64::from(!known);
        known
    }

    #[inline]
    fn destination(&mut self, peer: NodeId) -> &mut Destination {
        self.peers.destination_mut(peer)
    }

    /// Decides the result of a request. Its entry stays while its id is in use.
    #[inline]
    fn end(&mut self, index: u32, outcome: Outcome) {
        let entry = &mut self.slab[index];
        assert!(!entry.has(state::ENDED), "token {:?} ends twice", entry.token);
        let timed = entry.has(state::TIMED);
        entry.outcome = outcome;
        entry.state = (entry.state | state::ENDED | state::EVENT) & !state::TIMED;
        if timed {
            self.slab.unlink_time(&mut self.deadlines, index);
        }
        self.slab.push_time(&mut self.events, index);
    }

    /// Releases an id and all entries that share it.
    fn close(&mut self, leader: u32) {
        let entry = &self.slab[leader];
        let (peer, exposed) = (entry.peer, entry.has(state::EXPOSED));
        self.peers.close(peer, entry.id, exposed);
        let mut member = leader;
        while member != NONE {
            let next = self.slab[member].next;
            self.slab.release(member, state::OPEN);
            member = next;
        }
    }
}
