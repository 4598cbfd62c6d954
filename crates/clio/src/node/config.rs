//! What a node is built for.

use ethermem_units::Ns;
use ethermem_wire::clio::{Epoch, Protection, SenderId, TenantId};
use thiserror::Error;

use crate::memory::{HashKey, MemoryConfig, MemoryConfigError};
use crate::offload::OffloadLimits;

/// Recent requests that have the same place: the most that may meet there.
pub const RECENT_WAYS: usize = 8;

/// What a tenant may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Memory of all its processes, in whole pages.
    pub memory_bytes: u64,
    /// Processes at the same time.
    pub processes: u16,
    /// Requests a second, and as many at once after a second's rest.
    pub requests_per_s: u64,
    /// What its operations at the node may take.
    pub offload: OffloadLimits,
}

impl Quota {
    /// As much as there is.
    pub const UNLIMITED: Quota = Quota {
        memory_bytes: u64::MAX,
        processes: u16::MAX,
        requests_per_s: u64::MAX,
        offload: OffloadLimits::NONE,
    };
}

/// What a node is built for.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Its memory.
    pub memory: MemoryConfig,
    /// A secret, drawn at random at each start.
    pub key: HashKey,
    /// This life of the node; not [`Epoch::UNKNOWN`], and not that of the life before.
    pub epoch: Epoch,
    /// Its name as a sender, drawn at random at each start.
    pub sender: SenderId,
    /// How datagrams are checked; others are dropped.
    pub protection: Protection,
    /// Most data in a packet.
    pub data_bytes_max: u32,
    /// Processes at the same time.
    pub processes_max: u16,
    /// Requests that are remembered at the same time, a power of two.
    pub recent_requests: u32,
    /// How far ahead a datagram may say that it counts.
    pub lifetime_max: Ns,
    /// How long a request is remembered whose answer is not acknowledged: longer than any client
    /// goes on trying.
    pub keep: Ns,
    /// How long a process lives without a word of its client.
    pub lease: Ns,
    /// Who may use the node. Datagrams of others are dropped.
    pub tenants: Vec<(TenantId, Quota)>,
}

/// Why a node cannot be built so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NodeConfigError {
    /// See there.
    #[error(transparent)]
    Memory(#[from] MemoryConfigError),
    /// That number means that a client does not know it.
    #[error("epoch 0: allowed are 1 and more")]
    Epoch,
    /// Not a power of two, or too few.
    #[error("{0} recent requests: allowed are powers of two from {RECENT_WAYS}")]
    RecentRequests(u32),
    /// There must be some.
    #[error("0 processes: allowed are 1 to 65,535")]
    Processes,
    /// A request would be forgotten before its copies are dead.
    #[error("kept for {} ns: allowed is more than a life of {} ns", keep.0, lifetime.0)]
    Keep {
        /// How long they are kept.
        keep: Ns,
        /// How long a copy may live.
        lifetime: Ns,
    },
    /// An access may not be longer.
    #[error("{0} B of data in a packet: allowed are 64 to 65,000")]
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
