//! The configuration of a node.

use ethermem_units::Ns;
use ethermem_wire::clio::{Epoch, Protection, SenderId, TenantId};
use thiserror::Error;

use crate::memory::{HashKey, MemoryConfig, MemoryConfigError};
use crate::offload::OffloadLimits;

/// Number of recent requests that share a place: the set's size.
pub const RECENT_WAYS: usize = 8;

/// The limits of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Maximum memory of all its processes in bytes, in whole pages.
    pub memory_bytes: u64,
    /// Maximum number of its processes at one time.
    pub processes: u16,
    /// Maximum requests per second; after a second's rest, as many may come at once.
    pub requests_per_s: u64,
    /// Limits of its operations at the node.
    pub offload: OffloadLimits,
}

impl Quota {
    /// A quota without limits.
    pub const UNLIMITED: Quota = Quota {
        memory_bytes: u64::MAX,
        processes: u16::MAX,
        requests_per_s: u64::MAX,
        offload: OffloadLimits::NONE,
    };
}

/// The parameters of a node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The parameters of its memory.
    pub memory: MemoryConfig,
    /// A secret, drawn at random at each start.
    pub key: HashKey,
    /// The number of this start: not [`Epoch::UNKNOWN`], and different from the previous start's.
    pub epoch: Epoch,
    /// The node's id as a sender, drawn at random at each start.
    pub sender: SenderId,
    /// How datagrams are checked; datagrams with another protection are dropped.
    pub protection: Protection,
    /// Maximum data bytes in a packet.
    pub data_bytes_max: u32,
    /// Maximum number of processes at one time.
    pub processes_max: u16,
    /// Maximum number of remembered requests, a power of two.
    pub recent_requests: u32,
    /// Maximum time by which a datagram's deadline may be ahead.
    pub lifetime_max: Ns,
    /// Time that a request without an acknowledgement is remembered. It must be longer than any
    /// client retries.
    pub keep: Ns,
    /// Time that a process lives without hearing from its client.
    pub lease: Ns,
    /// The tenants that may use the node. Datagrams of other tenants are dropped.
    pub tenants: Vec<(TenantId, Quota)>,
}

/// Why a node cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NodeConfigError {
    /// The memory cannot be built.
    #[error(transparent)]
    Memory(#[from] MemoryConfigError),
    /// The epoch is [`Epoch::UNKNOWN`], which stands for a client that does not know it.
    #[error("epoch 0: must be at least 1")]
    Epoch,
    /// The number of remembered requests is too small or not a power of two.
    #[error("{0} recent requests: must be a power of two from {RECENT_WAYS}")]
    RecentRequests(u32),
    /// The number of processes is zero.
    #[error("0 processes: must be 1 to 65,535")]
    Processes,
    /// A request would be forgotten while copies of it may still arrive.
    #[error("kept for {} ns: must be more than a life of {} ns", keep.0, lifetime.0)]
    Keep {
        /// Time that requests are remembered.
        keep: Ns,
        /// Maximum lifetime of a copy.
        lifetime: Ns,
    },
    /// The data of a packet would exceed the longest access.
    #[error("{0} B of data in a packet: must be 64 to 65,000")]
    Data(u32),
}

impl NodeConfig {
    pub(crate) fn check(&self) -> Result<(), NodeConfigError> {
        if self.epoch == Epoch::UNKNOWN {
            return Err(NodeConfigError::Epoch);
        }
        let recent = self.recent_requests;
        if !recent.is_power_of_two() || (recent as usize) < RECENT_WAYS {
            return Err(NodeConfigError::RecentRequests(recent));
        }
        if self.processes_max == 0 {
            return Err(NodeConfigError::Processes);
        }
        if self.keep <= self.lifetime_max {
            return Err(NodeConfigError::Keep { keep: self.keep, lifetime: self.lifetime_max });
        }
        if !(64..=65_000).contains(&self.data_bytes_max) {
            return Err(NodeConfigError::Data(self.data_bytes_max));
        }
        Ok(())
    }
}
