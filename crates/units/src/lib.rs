//! Units of the fabric as types: picoseconds, bytes, 66-bit blocks, clock cycles, bits per second.
//!
//! A raw integer never crosses a crate boundary as a time, a size or a rate. Arithmetic that could
//! wrap panics in every build: an overflow would make a simulation's results wrong. What this crate
//! does not do: format for people beyond `Display`, or compute in floating point. `as_*_f64` is the
//! one way out, for reports.

mod quantity;
mod rate;
mod time;

pub use quantity::{Blocks, Bytes};
pub use rate::{BitsPerSecond, RateError};
pub use time::{Clock, Cycles, Ns, Ps};

/// Payload bits of one 66-bit block: all but its 2-bit sync header (IEEE 802.3 clause 49).
pub const BLOCK_PAYLOAD_BITS: u64 = 64;
/// Payload bytes of one data block.
pub const BLOCK_PAYLOAD_BYTES: u64 = BLOCK_PAYLOAD_BITS / 8;
