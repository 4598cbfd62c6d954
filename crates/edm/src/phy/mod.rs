//! The block-level edges of EDM: where memory blocks join and leave a link (section 3.2.3).
//!
//! [`TxArbiter`] sits between encoder and scrambler: it decides, slot by slot, whether a memory
//! block, an Ethernet block or an idle goes out. [`RxExtractor`] sits between descrambler and
//! decoder. It takes memory messages out, puts idles in their places, and holds an Ethernet frame
//! until it is whole. Both are clocked by block slots, one call a slot, and allocate nothing after
//! construction. `docs/internals/edm-phy.md` has the bounds on how long each side waits for the
//! other.

mod arbiter;
mod encoder_buffer;
mod extractor;
mod frame_buffer;
mod link;
mod signal;

pub use arbiter::{GAP_SLOTS, MemorySource, TxArbiter, TxSlot, Unit};
pub use encoder_buffer::ENCODER_LATENCY_SLOTS;
pub use extractor::{Corruption, RxCounters, RxEvent, RxExtractor, RxSlot};
pub use frame_buffer::FRAME_BYTES_MAX;
pub use link::{FIRST_IDLES, LinkFaults, LinkSlot, SIGNAL_REPEATS};
pub use signal::{ABORT, FaultSignal, LOCAL_FAULT, LineBlock, REMOTE_FAULT};
