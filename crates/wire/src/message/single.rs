//! Messages of one block: /N/, /G/ and /MST/.

use core::num::NonZeroU16;

use crate::control::{EdmControl, SubType};
use crate::field::{Length, MessageId, NodeId};
use crate::layout;
use crate::message::DecodeError;
use crate::opcode::OpcodeBits;

/// How a write's chunks travel. The scheduler derives their time on the line from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteKind {
    /// There is no response; a chunk has no source, message id or 64-bit address.
    Posted,
    /// A status answers the last chunk.
    Acknowledged,
}

/// /N/: a compute node tells the switch of a write that it wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    /// The memory node.
    pub destination: NodeId,
    /// The id of the write.
    pub id: MessageId,
    /// Number of data bytes to send, rounded up as [`Length`] does.
    pub demand: Length,
    /// How its chunks travel.
    pub kind: WriteKind,
}

/// What a grant lets its receiver send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GrantKind {
    /// A chunk of the receiver's own write to the peer.
    Write,
    /// A chunk of the receiver's response to the peer's read.
    Response,
}

/// /G/: the switch lets a node send one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The node that the chunk goes to.
    pub peer: NodeId,
    /// The id of the message, which the compute node assigned.
    pub id: MessageId,
    /// What the receiver may send.
    pub kind: GrantKind,
    /// Number of data bytes of the chunk.
    pub bytes: NonZeroU16,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StatusCode {
    /// Done.
    Ok = 0,
    /// The memory node does not know the opcode.
    BadOpcode = 1,
    /// The address is in no region, or the operation crosses the end of one.
    BadAddress = 2,
    /// A link that the operation needs was disabled; the operation may or may not have been done.
    LinkDisabled = 3,
    /// The NULL response: no answer came in time.
    Null = 4,
    /// The address of an atomic is not a multiple of 8.
    Misaligned = 5,
    /// A part of the data did not arrive; the parts that arrived may have been written.
    Incomplete = 6,
    /// The memory node had no room to keep the response or its grants.
    Overloaded = 7,
}

impl StatusCode {
    /// All eight codes.
    pub const ALL: [StatusCode; 8] = [
        StatusCode::Ok,
        StatusCode::BadOpcode,
        StatusCode::BadAddress,
        StatusCode::LinkDisabled,
        StatusCode::Null,
        StatusCode::Misaligned,
        StatusCode::Incomplete,
        StatusCode::Overloaded,
    ];
}

/// /MST/: acknowledges a write, or answers a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status {
    /// The opcode of the answered message, as it arrived.
    pub opcode: OpcodeBits,
    /// The compute node on the way to the switch, the memory node on the way from it.
    pub peer: NodeId,
    /// The id of the answered message.
    pub id: MessageId,
    /// How the operation ended.
    pub code: StatusCode,
}

/// The node and message id, which every block except WREQ's has at one place.
pub(crate) fn party(content: u64) -> (NodeId, MessageId) {
    let node = NodeId::new(layout::NODE.get(content) as u16).expect("the field is nine bits wide");
    (node, MessageId(layout::ID.get(content) as u8))
}

pub(crate) fn put_party(node: NodeId, id: MessageId) -> u64 {
    layout::NODE.put(u64::from(node.number())) | layout::ID.put(u64::from(id.0))
}

/// Refuses set reserved bits, so that blocks and meanings are one to one.
pub(crate) fn check_reserved(content: u64, reserved: &[layout::Field]) -> Result<(), DecodeError> {
    if reserved.iter().all(|field| field.is_zero(content)) {
        Ok(())
    } else {
        Err(DecodeError::Reserved)
    }
}

impl Notification {
    pub(crate) fn to_control(self) -> EdmControl {
        let flag = u64::from(self.kind == WriteKind::Acknowledged);
        let content = layout::FLAG.put(flag)
            | put_party(self.destination, self.id)
            | layout::LENGTH.put(self.demand.to_bits());
        EdmControl::new(SubType::Notification, content)
    }

    pub(crate) fn from_content(content: u64) -> Result<Notification, DecodeError> {
        check_reserved(content, &[layout::FLAG_RESERVED, layout::LENGTH_RESERVED])?;
        let (destination, id) = party(content);
        let demand = Length::from_bits(layout::LENGTH.get(content)).ok_or(DecodeError::Length)?;
        let acknowledged = layout::FLAG.get(content) == 1;
        let kind = if acknowledged { WriteKind::Acknowledged } else { WriteKind::Posted };
        Ok(Notification { destination, id, demand, kind })
    }
}

impl Grant {
    pub(crate) fn to_control(self) -> EdmControl {
        let flag = u64::from(self.kind == GrantKind::Response);
        let content = layout::FLAG.put(flag)
            | put_party(self.peer, self.id)
            | layout::GRANT_BYTES.put(u64::from(self.bytes.get()));
        EdmControl::new(SubType::Grant, content)
    }

    pub(crate) fn from_content(content: u64) -> Result<Grant, DecodeError> {
        check_reserved(content, &[layout::FLAG_RESERVED, layout::GRANT_RESERVED])?;
        let (peer, id) = party(content);
        let bytes = NonZeroU16::new(layout::GRANT_BYTES.get(content) as u16);
        let bytes = bytes.ok_or(DecodeError::Length)?;
        let response = layout::FLAG.get(content) == 1;
        let kind = if response { GrantKind::Response } else { GrantKind::Write };
        Ok(Grant { peer, id, kind, bytes })
    }
}

impl Status {
    pub(crate) fn to_control(self) -> EdmControl {
        let content = layout::OPCODE.put(u64::from(self.opcode.bits()))
            | put_party(self.peer, self.id)
            | layout::STATUS.put(self.code as u64);
        EdmControl::new(SubType::Single, content)
    }

    pub(crate) fn from_content(content: u64) -> Result<Status, DecodeError> {
        check_reserved(content, &[layout::STATUS_RESERVED])?;
        let (peer, id) = party(content);
        let bits = layout::STATUS.get(content);
        let code = StatusCode::ALL.into_iter().find(|&code| code as u64 == bits);
        let code = code.ok_or(DecodeError::StatusCode(bits as u8))?;
        let opcode = OpcodeBits::from_low_bits(layout::OPCODE.get(content) as u8);
        Ok(Status { opcode, peer, id, code })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ethermem_units::Bytes;

    #[test]
    fn a_notification_is_laid_out_as_documented() {
        let notification = Notification {
            destination: NodeId::new(0x155).expect("fits"),
            id: MessageId(0xa3),
            demand: Length::covering(Bytes(65_536)).expect("in range"),
            kind: WriteKind::Acknowledged,
        };
        let content = notification.to_control().content();
        assert_eq!(content, 1 | 0x155 << 4 | 0xa3 << 13 | 1024 << 21 | 1 << 37);
        assert_eq!(Notification::from_content(content), Ok(notification));
        for reserved in [1, 2, 3, 38, 39] {
            let set = content | 1 << reserved;
            assert_eq!(Notification::from_content(set), Err(DecodeError::Reserved));
        }
        assert_eq!(Notification::from_content(0), Err(DecodeError::Length));
    }

    #[test]
    fn a_grant_is_laid_out_as_documented() {
        let bytes = NonZeroU16::new(256).expect("not zero");
        let (peer, id) = (NodeId::new(7).expect("fits"), MessageId(9));
        let grant = Grant { peer, id, kind: GrantKind::Response, bytes };
        let content = grant.to_control().content();
        assert_eq!(content, 1 | 7 << 4 | 9 << 13 | 256 << 21);
        assert_eq!(Grant::from_content(content), Ok(grant));
        for reserved in [1, 2, 3, 37, 38, 39] {
            let set = content | 1 << reserved;
            assert_eq!(Grant::from_content(set), Err(DecodeError::Reserved));
        }
    }

    #[test]
    fn a_status_answers_also_an_opcode_nobody_knows() {
        let (peer, id) = (NodeId::new(511).expect("fits"), MessageId(255));
        for code in StatusCode::ALL {
            let status = Status { opcode: OpcodeBits::from_low_bits(15), peer, id, code };
            let content = status.to_control().content();
            assert_eq!(content, 15 | 511 << 4 | 255 << 13 | (code as u64) << 21);
            assert_eq!(Status::from_content(content), Ok(status));
            assert_eq!(Status::from_content(content | 1 << 39), Err(DecodeError::Reserved));
        }
        assert_eq!(Status::from_content(8 << 21), Err(DecodeError::StatusCode(8)));
    }
}
