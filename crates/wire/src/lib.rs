//! Every format on the wire, defined once. These are the 66-bit blocks of the 64b/66b PCS, EDM's
//! control blocks and messages, their checks, the scrambler, and the block counts of all formats.
//!
//! [`Message::blocks`] turns a message into blocks. [`Deframer`] turns a link's blocks back into
//! messages and typed errors; `docs/internals/wire.md` lists the line errors that it detects. A
//! value of any type here is valid: parsing checks it, and parsing never panics. [`clio`] has the
//! datagrams of the memory node on ordinary networks, [`cxl`] the frames of CXL over Ethernet,
//! [`dfabric`] the descriptors and headers of DFabric. What this crate does not do: I/O,
//! allocation, clocks, and the decision what to send when.
//!
//! ```
//! use ethermem_units::Bytes;
//! use ethermem_wire::{
//!     Address, Address40, Deframer, Event, Message, MessageId, NodeId, ReadRequest,
//! };
//!
//! let address = Address::Short(Address40::new(0x1000)?);
//! let read = ReadRequest::new(NodeId::new(7)?, MessageId(0), address, Bytes(64))?;
//! let sent = Message::ReadRequest(read);
//!
//! let mut receiver = Deframer::<8>::new();
//! let mut received = 0;
//! for block in sent.blocks() {
//!     if let Some(event) = receiver.push(block)? {
//!         assert_eq!(event, Event::Message(sent));
//!         received += 1;
//!     }
//! }
//! assert_eq!(received, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), no_std)]

mod access;
mod block;
pub mod clio;
mod control;
mod crc;
pub mod cxl;
mod deframe;
pub mod dfabric;
mod ethernet;
mod field;
mod layout;
mod message;
mod octets;
mod opcode;
mod scramble;
mod size;

pub use access::{Permissions, ProcessId};
pub use block::{BLOCK_BITS, Block, BlockType, InvalidSync, SyncHeader, UnknownBlockType};
pub use control::{CONTENT_BITS, ControlError, EdmControl, SubType};
pub use deframe::{DeframeError, Deframer, Event, MD_BLOCKS_MAX};
pub use ethernet::{FrameAssembler, FrameBlocks, FrameError, frame_check_sequence, has_valid_fcs};
pub use field::{
    Address, Address40, AddressWidth, ChunkData, ChunkIndex, FieldError, Length, MAX_CHUNK_BYTES,
    MessageId, NodeId,
};
pub use message::{
    AcknowledgedWrite, DecodeError, Grant, GrantKind, Message, MessageBlocks, Notification,
    PostedWrite, ReadRequest, ReadResponse, RmwRequest, Status, StatusCode, WriteKind,
};
pub use opcode::{Opcode, OpcodeBits, RMW_BYTES, RmwKind, RmwOperation, UnassignedOpcode};
pub use scramble::{Descrambler, Scrambler};
pub use size::{
    ChunkKind, GRANT_BLOCKS, InterPacketGap, NOTIFICATION_BLOCKS, STATUS_BLOCKS, chunk_blocks,
    frame_blocks, frame_blocks_with_gap, message_blocks, read_request_blocks, rmw_request_blocks,
};
