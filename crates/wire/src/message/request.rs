//! RREQ and RMWREQ. In both, `peer` is the memory node on the way to the switch and the compute
//! node on the way from it. The switch knows the port that the request came from. When it releases
//! the request, it writes the source over the destination that it looked up, and recomputes the
//! CRC-8 of /MS/. The checks in /MT/ leave the node out, so they hold from end to end.

use ethermem_units::Bytes;

use crate::field::{Address, Address40, FieldError, Length, MessageId, NodeId};
use crate::layout;
use crate::message::parts::{self, Frame, MD_BYTES};
use crate::message::single::{check_reserved, party, put_party};
use crate::message::{DecodeError, Framed};
use crate::opcode::{Opcode, RmwKind, RmwOperation};

/// RREQ: reads bytes. It is also the notification of its response's demand. Once released to the
/// memory node, it is the first grant of that response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadRequest {
    peer: NodeId,
    id: MessageId,
    address: Address,
    bytes: Bytes,
}

/// RMWREQ: reads, modifies and writes a 64-bit word atomically. The response is the word before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RmwRequest {
    /// The memory node on the way to the switch, the compute node on the way from it.
    pub peer: NodeId,
    /// The id of the request.
    pub id: MessageId,
    /// The address of the word.
    pub address: Address,
    /// The operation on the word.
    pub operation: RmwOperation,
}

impl ReadRequest {
    /// A read of `bytes` at `address`.
    ///
    /// # Errors
    /// [`FieldError::Length`] for zero bytes and above [`Length::MAX`].
    /// [`FieldError::InexactLength`] when the 40-bit form cannot state `bytes` to the byte.
    pub const fn new(
        peer: NodeId,
        id: MessageId,
        address: Address,
        bytes: Bytes,
    ) -> Result<ReadRequest, FieldError> {
        let demand = match Length::covering(bytes) {
            Ok(demand) => demand,
            Err(error) => return Err(error),
        };
        if matches!(address, Address::Short(_)) && demand.bytes().0 != bytes.0 {
            return Err(FieldError::InexactLength(bytes));
        }
        Ok(ReadRequest { peer, id, address, bytes })
    }

    /// The memory node on the way to the switch, the compute node on the way from it.
    #[must_use]
    pub const fn peer(&self) -> NodeId {
        self.peer
    }

    /// This request with another peer, as the switch releases it.
    #[must_use]
    pub const fn with_peer(self, peer: NodeId) -> ReadRequest {
        ReadRequest { peer, ..self }
    }

    /// The id of the request.
    #[must_use]
    pub const fn id(&self) -> MessageId {
        self.id
    }

    /// The address to read from.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// The number of bytes to read.
    #[must_use]
    pub const fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// The demand that the scheduler sees: [`ReadRequest::bytes`], rounded up as [`Length`] does.
    #[must_use]
    pub fn demand(&self) -> Length {
        Length::covering(self.bytes).expect("checked when the request was made")
    }

    pub(crate) fn to_frame(self) -> Frame<'static> {
        let ms = layout::OPCODE.put(Opcode::Read as u64)
            | put_party(self.peer, self.id)
            | layout::LENGTH.put(self.demand().to_bits());
        match self.address {
            Address::Short(address) => {
                let mut frame = Frame::new(ms, &[], &[]);
                frame.mt = layout::ADDRESS.put(address.number());
                frame
            }
            Address::Long(address) => {
                let excess = self.demand().bytes() - self.bytes;
                seal_long(ms, &[address], layout::EXCESS.put(excess.0))
            }
        }
    }

    pub(crate) fn from_framed(framed: Framed<'_>) -> Result<ReadRequest, DecodeError> {
        let excess = match framed.blocks {
            [] => 0,
            [_] => {
                check_long(framed)?;
                check_reserved(framed.mt, &[layout::EXCESS_RESERVED])?;
                layout::EXCESS.get(framed.mt)
            }
            _ => return Err(framed.unexpected_count(Opcode::Read)),
        };
        check_reserved(framed.ms, &[layout::LENGTH_RESERVED])?;
        let demand = Length::from_bits(layout::LENGTH.get(framed.ms)).ok_or(DecodeError::Length)?;
        let address = match framed.blocks.first() {
            None => Address::Short(address40(layout::ADDRESS.get(framed.mt))),
            Some(&octets) => Address::Long(u64::from_le_bytes(octets)),
        };
        let (peer, id) = party(framed.ms);
        let bytes = Bytes(demand.bytes().0.saturating_sub(excess));
        let request = ReadRequest::new(peer, id, address, bytes);
        // A length in bytes has no excess: the sender would have subtracted it from the length.
        let canonical = request.ok().filter(|request| request.demand() == demand);
        canonical.ok_or(DecodeError::Length)
    }
}

impl RmwRequest {
    pub(crate) fn to_frame(self) -> Frame<'static> {
        let ms = layout::OPCODE.put(self.operation.kind().opcode() as u64)
            | put_party(self.peer, self.id);
        let operands = self.operation.operands();
        let count = self.operation.kind().operand_count();
        match self.address {
            Address::Short(address) => {
                let low = layout::RMW_ADDRESS_LOW.put(address.number() & 0xffff);
                let mut frame = Frame::new(layout::NODE.clear(ms | low), &operands[..count], &[])
                    .seal16(address.number() >> 16);
                frame.ms = ms | low;
                frame
            }
            Address::Long(address) => {
                let head = [address, operands[0], operands[1]];
                seal_long(ms, &head[..=count], 0)
            }
        }
    }

    pub(crate) fn from_framed(kind: RmwKind, framed: Framed<'_>) -> Result<Self, DecodeError> {
        let count = kind.operand_count();
        let Framed { ms, blocks, mt } = framed;
        let (address, operands) = if blocks.len() == count {
            let found = layout::CRC16.get(mt) as u32;
            let tail_bits = layout::RMW_ADDRESS_HIGH.get(mt);
            let end_to_end = layout::NODE.clear(ms);
            let computed = parts::crc16(end_to_end, blocks.iter().copied(), tail_bits);
            DecodeError::check_crc(found, u32::from(computed))?;
            let low = layout::RMW_ADDRESS_LOW.get(ms);
            (Address::Short(address40(tail_bits << 16 | low)), blocks)
        } else if blocks.len() == count + 1 {
            check_long(framed)?;
            check_reserved(ms, &[layout::RMW_ADDRESS_LOW])?;
            check_reserved(mt, &[layout::TAIL_OCTET])?;
            (Address::Long(u64::from_le_bytes(blocks[0])), &blocks[1..])
        } else {
            return Err(framed.unexpected_count(kind.opcode()));
        };
        check_reserved(ms, &[layout::RMW_RESERVED])?;
        let word = |index: usize| {
            operands.get(index).map_or(0, |octets: &[u8; MD_BYTES]| u64::from_le_bytes(*octets))
        };
        let (peer, id) = party(ms);
        let operation = RmwOperation::new(kind, [word(0), word(1)]);
        Ok(RmwRequest { peer, id, address, operation })
    }
}

fn address40(number: u64) -> Address40 {
    Address40::new(number).expect("the fields are 40 bits wide together")
}

/// Builds a request with a 64-bit address: its /MT/ has a CRC-32 over everything but the node.
fn seal_long(ms: u64, head: &[u64], tail_octet: u64) -> Frame<'static> {
    let mut frame = Frame::new(layout::NODE.clear(ms), head, &[]).seal32(tail_octet);
    frame.ms = ms;
    frame
}

fn check_long(framed: Framed<'_>) -> Result<(), DecodeError> {
    let tail_octet = layout::TAIL_OCTET.get(framed.mt) as u8;
    let blocks = framed.blocks.iter().copied();
    let computed = parts::crc32(layout::NODE.clear(framed.ms), blocks, tail_octet);
    DecodeError::check_crc(layout::CRC32.get(framed.mt) as u32, computed)
}
