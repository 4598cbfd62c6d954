//! What a memory node is built from.

use ethermem_units::Ps;
use ethermem_wire::cxl::Mac;
use thiserror::Error;

use crate::retry::{Retransmission, WINDOW};
use crate::slots::Storage;
use crate::translate::{TranslatorConfig, TranslatorConfigError};

/// How a memory node says that its receive FIFO is above its threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backpressure {
    /// Not at all: the FIFO overflows, and retransmission makes up for it.
    None,
    /// By a PFC frame to the port at the other end of the link, as published.
    #[default]
    Pfc,
    /// By a congestion packet to each compute node that is attached: through switches.
    Congestion,
}

/// What a memory node is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Its address.
    pub mac: Mac,
    /// Compute nodes that may be attached at once.
    pub peers_max: usize,
    /// Most requests of one compute node that are sent and not answered; as at the compute node.
    pub window: u32,
    /// What is sent again after a loss; as at the compute node.
    pub retransmission: Retransmission,
    /// Accesses to the memory under way at once: 1 to 65,535.
    pub accesses_max: u32,
    /// Entries of the receive FIFO, of 512 bits: 512 (section IV).
    pub fifo_entries: u32,
    /// Above so many entries congestion is signalled.
    pub fifo_threshold: u32,
    /// How congestion is signalled.
    pub backpressure: Backpressure,
    /// While it lasts, congestion is signalled once in this time.
    pub signal_interval: Ps,
    /// The priority that PFC frames name: 0 to 7.
    pub priority: u8,
    /// For how long a PFC frame pauses who obeys it, in 512 bit times.
    pub pause_quanta: u16,
    /// The address translator.
    pub translator: TranslatorConfig,
    /// When the memory of retry and reorder buffers is reserved.
    pub storage: Storage,
}

impl MemoryConfig {
    /// The prototype's values (section IV), for a memory node of this address. A threshold of 105
    /// entries is Figure 11's, at which 100 Gb/s need no PFC. Pages of 1 MiB, 32 entries of TLB, 64
    /// accesses at once and a signal every 5 us are our choices.
    #[must_use]
    pub const fn published(mac: Mac) -> MemoryConfig {
        MemoryConfig {
            mac,
            peers_max: 8,
            window: WINDOW,
            retransmission: Retransmission::Selective,
            accesses_max: 64,
            fifo_entries: 512,
            fifo_threshold: 105,
            backpressure: Backpressure::Pfc,
            signal_interval: Ps(5_000_000),
            priority: 3,
            pause_quanta: 0xffff,
            translator: TranslatorConfig { page_lines: 1 << 14, tlb_entries: 32, buckets: 1 << 10 },
            storage: Storage::Reserved,
        }
    }

    pub(super) fn check(&self) -> Result<(), MemoryConfigError> {
        if !(1..=1 << 15).contains(&self.window) {
            return Err(MemoryConfigError::Window(self.window));
        }
        if !(1..=65_535).contains(&self.accesses_max) {
            return Err(MemoryConfigError::Accesses(self.accesses_max));
        }
        // The longest frame, a masked write, is 97 B: two entries.
        if self.fifo_entries < 2 || self.fifo_threshold > self.fifo_entries {
            let (entries, threshold) = (self.fifo_entries, self.fifo_threshold);
            return Err(MemoryConfigError::Fifo { entries, threshold });
        }
        if self.signal_interval == Ps::ZERO {
            return Err(MemoryConfigError::Interval);
        }
        if self.priority > 7 {
            return Err(MemoryConfigError::Priority(self.priority));
        }
        Ok(())
    }
}

/// Why a memory node cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MemoryConfigError {
    /// The window is out of range.
    #[error("window {0}: must be 1 to 32768")]
    Window(u32),
    /// The number of accesses is out of range.
    #[error("{0} accesses at once: must be 1 to 65535")]
    Accesses(u32),
    /// The FIFO is too short, or its threshold is above it.
    #[error("FIFO of {entries} entries with threshold {threshold}: must be at least 2, and above")]
    Fifo {
        /// Its entries.
        entries: u32,
        /// Its threshold.
        threshold: u32,
    },
    /// Congestion would be signalled without end.
    #[error("signal_interval is 0: must be above 0")]
    Interval,
    /// There is no such priority.
    #[error("priority {0}: must be 0 to 7")]
    Priority(u8),
    /// The translator cannot be built.
    #[error("translator: {0}")]
    Translator(#[from] TranslatorConfigError),
}
