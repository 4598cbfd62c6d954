//! Units of the fabric as types: picoseconds, bytes, 66-bit blocks, clock cycles, bits per second.
//!
//! A raw integer never crosses a crate boundary as a time, a size or a rate. Arithmetic that could
//! wrap panics in every build: a simulation that overflowed is wrong, not slow. What this crate
//! does not do: formatting for people beyond `Display`, and no floating point inside a unit;
//! `as_*_f64` is the one way out, for reports.

mod quantity;
mod rate;
mod time;

pub use quantity::{Blocks, Bytes};
pub use rate::{BitsPerSecond, RateError};
pub use time::{Clock, Cycles, Ns, Ps};

/// Payload bits of one 66-bit block: what the 2-bit sync header leaves (IEEE 802.3 clause 49).
pub const BLOCK_PAYLOAD_BITS: u64 = 64;
/// Payload bytes of one data block.
pub const BLOCK_PAYLOAD_BYTES: u64 = BLOCK_PAYLOAD_BITS / 8;
