//! Latencies of the stages on the way of an access, in cycles of the CXL IP's clock (250 MHz).
//!
//! The paper publishes sums (Table II), and that the network takes 70 % of a remote access
//! (section V). The stages are our split of those sums: their latencies follow from Table II by
//! subtraction as far as two of its columns differ, and are divided evenly where they do not.

use ethermem_units::{Clock, Cycles, Ps};

use crate::compute::Path;

/// The CXL IP's clock, in whose cycles Table II counts: 250 MHz (section IV).
pub const AGENT_CLOCK: Clock = Clock { period: Ps(4_000) };

/// How long each stage takes, in cycles of [`AGENT_CLOCK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageLatencies {
    /// A request from the CXL agent to the cache. With `cache_lookup`, `cache_write` and
    /// `agent_response`: 14, a write hit.
    pub agent_request: Cycles,
    /// Tags of a set are read and compared.
    pub cache_lookup: Cycles,
    /// A line, or bytes of it, is written.
    pub cache_write: Cycles,
    /// A line is read: 2 more than a write, as a read hit takes 16.
    pub cache_read: Cycles,
    /// A response from the cache to the CXL agent.
    pub agent_response: Cycles,
    /// A dirty line is read and handed on: 36 - 14 for a local replacement, less `memory_write`.
    pub victim_read: Cycles,
    /// A fetched line goes into the cache, from where it is read: 50 - 16 for a local read miss,
    /// less `memory_read`.
    pub line_fill: Cycles,
    /// The DDR controller accepts a write.
    pub memory_write: Cycles,
    /// The DDR controller reads a line.
    pub memory_read: Cycles,
    /// Compute node: a request is built (section III.B, CN Packet Manager).
    pub request_build: Cycles,
    /// Both MACs, PHYs and the cable, one way: parts b and e of Figure 8. Twice 94 is 70 % of 268.
    pub ethernet: Cycles,
    /// Memory node: a request is parsed.
    pub request_parse: Cycles,
    /// Memory node: the address is translated by a TLB hit.
    pub translate: Cycles,
    /// Memory node: a response is built.
    pub response_build: Cycles,
    /// Compute node: a response is parsed, and leaves the reorder buffer.
    pub response_parse: Cycles,
    /// A read response carries a line, a write response none: 285 - 50 less 268 - 36.
    pub response_data: Cycles,
}

impl StageLatencies {
    /// The prototype on U280 boards.
    #[must_use]
    pub const fn published() -> StageLatencies {
        StageLatencies {
            agent_request: Cycles(5),
            cache_lookup: Cycles(2),
            cache_write: Cycles(2),
            cache_read: Cycles(4),
            agent_response: Cycles(5),
            victim_read: Cycles(2),
            line_fill: Cycles(2),
            memory_write: Cycles(20),
            memory_read: Cycles(32),
            request_build: Cycles(11),
            ethernet: Cycles(94),
            request_parse: Cycles(11),
            translate: Cycles(2),
            response_build: Cycles(10),
            response_parse: Cycles(10),
            response_data: Cycles(3),
        }
    }

    /// From the agent's request until the cache knows what to do.
    #[must_use]
    pub fn to_decision(&self) -> Cycles {
        self.agent_request + self.cache_lookup
    }

    /// From the cache until a request is at its MAC, remote; a write-back is read first.
    #[must_use]
    pub fn to_mac(&self, is_write_back: bool) -> Cycles {
        self.request_build + if is_write_back { self.victim_read } else { Cycles(0) }
    }

    /// From the cache's decision, or from what it waited for, until the host has its response.
    #[must_use]
    pub fn to_host(&self, path: Path) -> Cycles {
        let cache = match path {
            Path::ReadHit => self.cache_read,
            Path::ReadMiss => self.line_fill + self.cache_read,
            Path::WriteHit | Path::WriteMiss | Path::WriteMissReplace => self.cache_write,
            Path::Uncached | Path::None => Cycles(0),
        };
        cache + self.agent_response
    }

    /// From the memory node's MAC until the memory is accessed.
    #[must_use]
    pub fn to_memory(&self) -> Cycles {
        self.request_parse + self.translate
    }

    /// From the memory until the response is at the memory node's MAC.
    #[must_use]
    pub fn from_memory(&self, is_read: bool) -> Cycles {
        self.response_build + if is_read { self.response_data } else { Cycles(0) }
    }

    /// The memory itself.
    #[must_use]
    pub fn memory(&self, is_read: bool) -> Cycles {
        if is_read { self.memory_read } else { self.memory_write }
    }
}
