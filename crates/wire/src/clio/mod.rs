//! The datagrams of the memory node: an [`Envelope`] around packets. Each packet is a request that
//! can be executed alone, or the one response to a request.
//!
//! All numbers are little-endian. `docs/internals/clio-wire.md` says why each field is there;
//! [`OPCODES`] is the table of all packets.

mod envelope;
mod frame;
mod opcode;
mod request;
mod response;
mod status;

pub use crate::access::{Permissions, ProcessId};
pub use crate::octets::NoRoom;
pub use envelope::{
    ENVELOPE_BYTES, Envelope, EnvelopeError, Epoch, GCM_NONCE_BYTES, Protection, Sealed, SenderId,
    TenantId, VERSION,
};
pub use frame::{
    CARRIES_MIN, ETHER_TYPE, ETHERNET_BYTES, FRAME_BYTES, FRAME_MARK, FRAME_MARK_AT, FRAME_TO_AT,
    Frame, FrameBody, FrameError, Mac, NoMac, PIECE_FRAME_BYTES, PIECES_MAX, Piece, Port, Station,
};
pub use opcode::{
    ClioOpcode, ENVELOPE_FIELDS, Field, FieldBytes, OPCODES, OpcodeRow, Path, REQUEST_FIELDS,
    RESPONSE_FIELDS, UnknownClioOpcode,
};
pub use request::{
    AcknowledgedIds, Malformed, PacketError, Packets, REQUEST_BYTES, Request, RequestId,
    RequestPacket, WRITE_BYTES,
};
pub use response::{NodeFacts, RESPONSE_BYTES, Reply, ResponseHead, ResponsePacket};
pub use status::{ClioStatus, UnassignedStatus};
