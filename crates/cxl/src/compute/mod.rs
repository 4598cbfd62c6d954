//! The compute node: agent, cache, packet manager, rate control (sections III.B, III.D and IV).
//!
//! Events in: requests of the host ([`ComputeNode::on_req`], [`ComputeNode::on_rwd`]), frames
//! ([`ComputeNode::on_frame`]), time ([`ComputeNode::on_timer`]). Actions out, to be polled after
//! each event: frames ([`ComputeNode::poll_transmit`]), responses to the host
//! ([`ComputeNode::poll_response`]), what else happened ([`ComputeNode::poll_event`]), and when to
//! come again ([`ComputeNode::next_wake`]).

mod config;
mod maintenance;
mod pipeline;
mod receive;
mod sections;
mod transmit;

use ethermem_units::Ps;
use ethermem_wire::cxl::{ByteMask, LineAddress, LineData};

use crate::agent::{ACCESSES_MAX, Agent, AgentError, Req, ReqOpcode, Rwd, S2m, Tag, Token};
use crate::cache::{Cache, CacheCounters, Eviction};
use crate::rate::{Mbps, Phase, RateControl, TokenBucket};
use crate::retry::{Requester, RequesterCounters};
use crate::ring::Ring;

pub use config::{ComputeConfig, ComputeConfigError, MemoryNodeAt};
use maintenance::Maintenance;
pub use maintenance::{MaintenanceError, MaintenanceKind};
pub use receive::FrameDropped;
use sections::Sections;
pub use sections::{SectionError, SectionUse};

/// A memory node, by its place in the list that [`ComputeNode::new`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u16);

/// The way that an access took: the columns of Table II, and what is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// The line was in the cache.
    ReadHit,
    /// The line was fetched, for this read or for one before it.
    ReadMiss,
    /// The line was in the cache.
    WriteHit,
    /// The line was put into the cache, and no dirty one had to go.
    WriteMiss,
    /// A dirty line had to go.
    WriteMissReplace,
    /// Past the cache.
    Uncached,
    /// Neither cache nor memory node: a request without meaning here, or one that was given up.
    None,
}

/// A response to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostResponse {
    /// The message.
    pub message: S2m,
    /// The way that the access took.
    pub path: Path,
}

/// What happened that is no response of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A write was not done, or it is not known: CXL.mem has no response that could say so.
    WriteLost {
        /// The line that was not written.
        line: LineAddress,
        /// The reason.
        why: LostBy,
    },
    /// A flush or an invalidation has ended; all that was written before is on its memory node.
    Maintained(MaintenanceKind),
    /// A flush or an invalidation has ended otherwise.
    NotMaintained(MaintenanceError),
}

/// Why a write was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LostBy {
    /// The compute node maps no memory there. Nothing was written.
    Unmapped,
    /// The write waited for too long and never left. Nothing was written.
    NotSent,
    /// The write waited for its acknowledgement for too long. It may still be done.
    Uncertain,
    /// The memory node refused it. Nothing was written.
    Refused,
    /// The memory node was given up. It may have been done.
    NodeLost,
}

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComputeCounters {
    /// Requests of the host that were refused for want of a credit.
    pub no_credit: u64,
    /// Requests of the host to addresses that are none of a line.
    pub bad_address: u64,
    /// Accesses to addresses that no section maps.
    pub unmapped: u64,
    /// Loads that were answered with poison.
    pub poisoned: u64,
    /// Writes that were lost, or may be.
    pub writes_lost: u64,
    /// Times that the oldest access had to wait for room.
    pub stalls: u64,
    /// Frames that were dropped, in the order of [`FrameDropped`].
    pub dropped: [u64; 5],
    /// Congestion packets that were older than one that came before.
    pub old_congestion: u64,
    /// Events that were dropped, because none was polled and there was no room.
    pub events_lost: u64,
}

/// An access that waits for the cache.
#[derive(Clone, Copy, Debug)]
struct Access {
    token: Token,
    line: LineAddress,
    /// `None`: a read.
    write: Option<(ByteMask, LineData)>,
}

/// What a request to a memory node is for.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// The cache's fetch.
    Fetch(u32),
    /// A dirty line that had to go; the write that waits for it, if one does.
    WriteBack(Option<Token>),
    /// Past the cache.
    Uncached(Token),
}

/// A memory node, as the compute node sees it.
#[derive(Clone, Debug)]
struct Attached {
    at: MemoryNodeAt,
    requester: Requester<Origin>,
    /// The newest congestion packet; `None` before the first.
    congestion: Option<u32>,
}

/// The compute node: agent, cache and packet manager.
#[derive(Clone, Debug)]
pub struct ComputeNode {
    config: ComputeConfig,
    agent: Agent,
    /// `None`: nothing is cached.
    cache: Option<Cache<Token>>,
    sections: Sections,
    nodes: Vec<Attached>,
    accesses: Ring<Access>,
    control: RateControl,
    bucket: TokenBucket,
    /// An option that the paper does not have: a PFC frame also pauses.
    paused_until: Ps,
    /// The memory node whose turn it is.
    turn: usize,
    responses: Ring<HostResponse>,
    events: Ring<Event>,
    maintenance: Maintenance,
    counters: ComputeCounters,
}

impl ComputeNode {
    /// A compute node that maps nothing yet. All its memory is reserved here, but that of
    /// [`ComputeNode::attach`].
    ///
    /// # Errors
    /// [`ComputeConfigError`].
    pub fn new(
        config: ComputeConfig,
        nodes: &[MemoryNodeAt],
    ) -> Result<ComputeNode, ComputeConfigError> {
        config.build(nodes)
    }

    /// Adds a memory node, for whose requests memory is reserved.
    ///
    /// # Panics
    /// If there are 65,536 of them.
    pub fn attach(&mut self, at: MemoryNodeAt) -> NodeIndex {
        let index = u16::try_from(self.nodes.len()).expect("a network has fewer nodes");
        self.nodes.push(self.config.attached(at));
        NodeIndex(index)
    }

    /// Takes a request without data of the host.
    ///
    /// # Errors
    /// [`AgentError`]; nothing of the request remains.
    pub fn on_req(&mut self, now: Ps, req: Req) -> Result<(), AgentError> {
        let line = self.host_line(req.address)?;
        match req.opcode {
            ReqOpcode::MemSpecRd => return Ok(()),
            ReqOpcode::MemInv => {
                let token = self.begin(now, req.tag, true)?;
                self.complete(token, Path::None);
                return Ok(());
            }
            ReqOpcode::MemRd => {}
        }
        let token = self.begin(now, req.tag, false)?;
        self.enqueue(Access { token, line, write: None });
        self.pump();
        Ok(())
    }

    /// Takes a request with data of the host.
    ///
    /// # Errors
    /// [`AgentError`]; nothing of the request remains.
    pub fn on_rwd(&mut self, now: Ps, rwd: &Rwd) -> Result<(), AgentError> {
        let line = self.host_line(rwd.address)?;
        let token = self.begin(now, rwd.tag, true)?;
        self.enqueue(Access { token, line, write: Some((rwd.mask, rwd.data)) });
        self.pump();
        Ok(())
    }

    fn host_line(&mut self, address: u64) -> Result<LineAddress, AgentError> {
        LineAddress::at(address).map_err(|error| {
            self.counters.bad_address += 1;
            AgentError::from(error)
        })
    }

    fn begin(&mut self, now: Ps, tag: Tag, is_write: bool) -> Result<Token, AgentError> {
        let begun = match (self.may_return_credits(), is_write) {
            (true, _) => self.agent.begin(now, tag, is_write),
            (false, false) => Err(AgentError::NoReadCredit),
            (false, true) => Err(AgentError::NoWriteCredit),
        };
        self.counters.no_credit += u64::from(begun.is_err());
        begun
    }

    /// The next response to the host.
    pub fn poll_response(&mut self) -> Option<HostResponse> {
        self.responses.pop()
    }

    /// What else happened. Events for which there is no room are counted.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// When to call [`ComputeNode::on_timer`], or [`ComputeNode::poll_transmit`], if nothing
    /// happens before.
    #[must_use]
    pub fn next_wake(&mut self, now: Ps) -> Option<Ps> {
        let retries = self.nodes.iter().filter_map(|node| node.requester.next_wake()).min();
        let transmit = self.next_transmit(now);
        let maintenance = self.maintenance.next_wake();
        let control = self.control.next_wake();
        [retries, transmit, maintenance, control, self.agent.next_wake()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Lets time pass: retransmission, the phases of the control, and accesses that are given up.
    pub fn on_timer(&mut self, now: Ps) {
        self.settle_rate(now);
        self.nodes.iter_mut().for_each(|node| node.requester.on_timer(now));
        self.give_up(now);
        self.pump();
        self.maintain(now);
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> ComputeCounters {
        self.counters
    }

    /// What happened in the cache.
    #[must_use]
    pub fn cache_counters(&self) -> CacheCounters {
        self.cache.as_ref().map(Cache::counters).unwrap_or_default()
    }

    /// What happened to requests of a memory node.
    #[must_use]
    pub fn requester_counters(&self, node: NodeIndex) -> Option<RequesterCounters> {
        self.nodes.get(usize::from(node.0)).map(|node| node.requester.counters())
    }

    /// The rate and the phase of the control.
    #[must_use]
    pub fn rate(&self) -> (Mbps, Phase) {
        (self.control.rate(), self.control.phase())
    }

    /// A credit comes back with its response, not before the host has taken that.
    fn may_return_credits(&self) -> bool {
        self.responses.len() < ACCESSES_MAX
    }

    /// True if the host has a credit for a write, or for a read.
    #[must_use]
    pub fn has_credit(&self, is_write: bool) -> bool {
        let (reads, writes) = self.in_flight();
        let open = if is_write { writes } else { reads };
        self.may_return_credits() && open < ACCESSES_MAX
    }

    /// Reads and writes of the host that have no response.
    #[must_use]
    pub fn in_flight(&self) -> (usize, usize) {
        self.agent.in_flight()
    }

    /// Asserts the invariants of the cache; for tests, and for a simulator's end.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        self.cache.iter().for_each(Cache::check);
    }

    fn eviction(&self) -> Eviction {
        self.config.cache.map_or(Eviction::Posted, |cache| cache.eviction)
    }

    /// Tells the host that a write, or a request without data, is complete.
    fn complete(&mut self, token: Token, path: Path) {
        if let Some(tag) = self.agent.end(token) {
            self.respond(HostResponse { message: S2m::Ndr(tag), path });
        }
    }

    /// Gives the host a line, or poison.
    fn answer(&mut self, token: Token, data: Option<LineData>, path: Path) {
        let Some(tag) = self.agent.end(token) else { return };
        let poison = data.is_none();
        self.counters.poisoned += u64::from(poison);
        let message = S2m::Drs { tag, data: data.unwrap_or([0; 64]), poison };
        self.respond(HostResponse { message, path });
    }

    fn respond(&mut self, response: HostResponse) {
        let kept = self.responses.push(response);
        assert!(kept.is_ok(), "credits are fewer than the places of responses");
    }

    fn lose(&mut self, line: LineAddress, why: LostBy) {
        self.counters.writes_lost += 1;
        self.tell(Event::WriteLost { line, why });
    }

    fn tell(&mut self, event: Event) {
        let kept = self.events.push(event);
        self.counters.events_lost += u64::from(kept.is_err());
    }
}
