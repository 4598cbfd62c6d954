//! The frames of CXL over Ethernet: loads and stores of 64-byte lines, directly on Ethernet.
//!
//! The paper ("CXL over Ethernet", section IV) has seven packets, and shows one: the write request
//! of Figure 5, 89 B from destination address to data. The other six, and the places of all
//! fields, are decided here; `docs/internals/cxl-wire.md` says why. [`FORMATS`] is the table of
//! all fields. Numbers are little-endian, except for Ethernet's own.

mod field;
mod format;
mod packet;
mod parse;
mod pause;

pub use field::{
    AccessId, ByteMask, Failure, LINE_BYTES, LineAddress, LineData, LineError, Sequence,
    UnknownStatus, translation_hash,
};
pub use format::{CxlCommand, FORMATS, Field, Format, UnknownCommand, format_of};
pub use packet::{
    Congestion, Frame, HEADER_BYTES, Negative, Packet, Request, RequestPacket, Response,
    ResponsePacket,
};
pub use parse::FrameFault;
pub use pause::{MAC_CONTROL_ETHER_TYPE, PFC_ADDRESS, PFC_BYTES, PFC_PRIORITIES, Pause};

pub use crate::clio::Mac;
pub use crate::octets::NoRoom;

/// EtherType of the frames: the second of the two that IEEE 802 leaves to local experiments. The
/// first is [`crate::clio::ETHER_TYPE`].
pub const ETHER_TYPE: u16 = 0x88b6;
/// Shortest frame of Ethernet without its check sequence; shorter packets are padded with zeros.
pub const FRAME_BYTES_MIN: usize = 60;
/// Longest frame of this protocol without its check sequence: a masked write.
pub const FRAME_BYTES_MAX: usize = 97;
/// The frame check sequence: the CRC of every packet.
pub const FCS_BYTES: usize = 4;
/// What a frame takes on the link beyond its octets and its check sequence: preamble and start
/// delimiter (8 B) and the shortest gap between frames (12 B).
pub const LINK_OVERHEAD_BYTES: usize = 20;
