//! What a compute node is built from.

use ethermem_units::Ps;
use ethermem_wire::cxl::{FCS_BYTES, FRAME_BYTES_MAX, LINK_OVERHEAD_BYTES, Mac, Sequence};
use thiserror::Error;

use super::maintenance::Maintenance;
use super::sections::Sections;
use super::{Attached, ComputeCounters, ComputeNode};
use crate::agent::{ACCESSES_MAX, Agent};
use crate::cache::{Cache, CacheConfig, CacheConfigError};
use crate::rate::{ControlConfig, ControlConfigError, RateControl, TokenBucket};
use crate::retry::{Requester, RequesterConfig, Retransmission, WINDOW};
use crate::ring::Ring;
use crate::slots::Storage;

/// A memory node of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNodeAt {
    /// Its address.
    pub mac: Mac,
    /// The first sequence number, which the global memory manager gives both ends.
    pub initial: Sequence,
}

/// What a compute node is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComputeConfig {
    /// Its address: by it memory nodes know it.
    pub mac: Mac,
    /// Its cache; `None` for none.
    pub cache: Option<CacheConfig>,
    /// Lines of a section: the grain in which memory is mapped.
    pub section_lines: u64,
    /// Sections of its CMem.
    pub sections_max: usize,
    /// Congestion control.
    pub control: ControlConfig,
    /// Depth of the token bucket in bytes on the link, preambles and gaps included.
    pub bucket_bytes: u32,
    /// The priority whose pause is the signal of congestion: 0 to 7.
    pub priority: u8,
    /// True if a PFC frame also pauses the node, for as long as it says. Published: no.
    pub pause: bool,
    /// What is sent again after a loss.
    pub retransmission: Retransmission,
    /// Most requests to one memory node that are sent and not answered: 1 to 2^15.
    pub window: u32,
    /// How long to wait for a response before its request is sent again.
    pub retry_after: Ps,
    /// After this time an access, a flush or an invalidation is given up.
    pub give_up_after: Ps,
    /// When the memory of retry and reorder buffers is reserved.
    pub storage: Storage,
}

/// Requests that may wait for the window of one memory node. Each access needs two at most.
const BACKLOG: u32 = 512;
/// Events that may wait to be polled.
const EVENTS_MAX: usize = 1024;
/// Responses that may wait to be polled: no access begins while 256 wait, and 512 are open at most.
const RESPONSES_MAX: usize = 3 * ACCESSES_MAX;
/// The longest frame on the link.
const LINK_BYTES_MAX: u32 = (FRAME_BYTES_MAX + FCS_BYTES + LINK_OVERHEAD_BYTES) as u32;

impl ComputeConfig {
    /// The prototype's values (sections IV and V), for a compute node of this address. A timeout
    /// of 20 us, 1 ms of patience, sections of 1 MiB and a bucket of two frames are our choices.
    #[must_use]
    pub const fn published(mac: Mac) -> ComputeConfig {
        ComputeConfig {
            mac,
            cache: Some(CacheConfig::published()),
            section_lines: 1 << 14,
            sections_max: 64,
            control: ControlConfig::published(),
            bucket_bytes: 2 * LINK_BYTES_MAX,
            priority: 3,
            pause: false,
            retransmission: Retransmission::Selective,
            window: WINDOW,
            retry_after: Ps(20_000_000),
            give_up_after: Ps(1_000_000_000),
            storage: Storage::Reserved,
        }
    }

    fn check(&self) -> Result<(), ComputeConfigError> {
        if self.section_lines == 0 {
            return Err(ComputeConfigError::Section);
        }
        if !(1..=1 << 15).contains(&self.window) {
            return Err(ComputeConfigError::Window(self.window));
        }
        if self.bucket_bytes < LINK_BYTES_MAX {
            return Err(ComputeConfigError::Bucket(self.bucket_bytes));
        }
        if self.priority > 7 {
            return Err(ComputeConfigError::Priority(self.priority));
        }
        if self.retry_after == Ps::ZERO {
            return Err(ComputeConfigError::RetryAfter);
        }
        Ok(())
    }

    pub(super) fn build(self, nodes: &[MemoryNodeAt]) -> Result<ComputeNode, ComputeConfigError> {
        self.check()?;
        let cache = match self.cache {
            Some(cache) => Some(Cache::new(cache, ACCESSES_MAX as u32)?),
            None => None,
        };
        Ok(ComputeNode {
            config: self,
            agent: Agent::new(self.give_up_after),
            cache,
            sections: Sections::new(self.section_lines, self.sections_max, self.storage),
            nodes: nodes.iter().map(|at| self.attached(*at)).collect(),
            accesses: Ring::new(2 * ACCESSES_MAX),
            control: RateControl::new(self.control)?,
            bucket: TokenBucket::new(self.bucket_bytes, self.control.initial),
            paused_until: Ps::ZERO,
            turn: 0,
            responses: Ring::new(RESPONSES_MAX),
            events: Ring::new(EVENTS_MAX),
            maintenance: Maintenance::new(nodes.len()),
            counters: ComputeCounters::default(),
        })
    }

    pub(super) fn attached(&self, at: MemoryNodeAt) -> Attached {
        let requester = Requester::new(self.requester(at.initial));
        Attached { at, requester, congestion: None }
    }

    pub(super) fn requester(&self, initial: Sequence) -> RequesterConfig {
        RequesterConfig {
            window: self.window,
            backlog: BACKLOG,
            retransmission: self.retransmission,
            retry_after: self.retry_after,
            initial,
            storage: self.storage,
        }
    }
}

/// Why a compute node cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ComputeConfigError {
    /// The cache cannot be built.
    #[error("cache: {0}")]
    Cache(#[from] CacheConfigError),
    /// The congestion control cannot be built.
    #[error("congestion control: {0}")]
    Control(#[from] ControlConfigError),
    /// A section must have a line.
    #[error("section of 0 lines: must be at least 1")]
    Section,
    /// The window is out of range.
    #[error("window {0}: must be 1 to 32768")]
    Window(u32),
    /// The longest frame would never get its tokens.
    #[error("token bucket of {0} B: must be at least {LINK_BYTES_MAX}")]
    Bucket(u32),
    /// There is no such priority.
    #[error("priority {0}: must be 0 to 7")]
    Priority(u8),
    /// Requests would be sent again at once.
    #[error("retry_after is 0: must be above 0")]
    RetryAfter,
}
