//! What a message asks for or answers.

use ethermem_units::Bytes;
use thiserror::Error;

/// The operation of a memory message: four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// RREQ: read.
    Read = 1,
    /// RRES: a chunk of what was read.
    ReadResponse = 2,
    /// WREQ: a chunk to write; there is no response.
    PostedWrite = 3,
    /// WREQ: a chunk to write; a status answers the last chunk.
    AcknowledgedWrite = 4,
    /// RMWREQ: store the second operand if memory equals the first.
    CompareAndSwap = 8,
    /// RMWREQ: add, modulo 2^64.
    FetchAndAdd = 9,
    /// RMWREQ: store.
    Swap = 10,
    /// RMWREQ: bitwise and.
    And = 11,
    /// RMWREQ: bitwise or.
    Or = 12,
    /// RMWREQ: bitwise exclusive or.
    Xor = 13,
}

/// The opcode bits as they arrived, assigned or not. A status names the opcode that it answers,
/// even an unassigned one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpcodeBits(u8);

/// Four bits that are not an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("opcode {} is not assigned", .0.0)]
pub struct UnassignedOpcode(pub OpcodeBits);

impl OpcodeBits {
    /// The low four bits of `bits`.
    #[must_use]
    pub const fn from_low_bits(bits: u8) -> OpcodeBits {
        OpcodeBits(bits & 0xf)
    }

    /// The four bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl From<Opcode> for OpcodeBits {
    fn from(opcode: Opcode) -> OpcodeBits {
        OpcodeBits(opcode as u8)
    }
}

impl TryFrom<OpcodeBits> for Opcode {
    type Error = UnassignedOpcode;

    fn try_from(bits: OpcodeBits) -> Result<Opcode, UnassignedOpcode> {
        let found = Opcode::ALL.into_iter().find(|&opcode| opcode as u8 == bits.0);
        found.ok_or(UnassignedOpcode(bits))
    }
}

impl Opcode {
    /// All opcodes.
    pub const ALL: [Opcode; 10] = [
        Opcode::Read,
        Opcode::ReadResponse,
        Opcode::PostedWrite,
        Opcode::AcknowledgedWrite,
        Opcode::CompareAndSwap,
        Opcode::FetchAndAdd,
        Opcode::Swap,
        Opcode::And,
        Opcode::Or,
        Opcode::Xor,
    ];
}

/// The operations of a read-modify-write, without their operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RmwKind {
    /// Two operands: the value expected and the value to store.
    CompareAndSwap,
    /// One operand: the value to add.
    FetchAndAdd,
    /// One operand: the value to store.
    Swap,
    /// One operand: the value to and.
    And,
    /// One operand: the value to or.
    Or,
    /// One operand: the value to exclusive-or.
    Xor,
}

impl RmwKind {
    /// All six operations.
    pub const ALL: [RmwKind; 6] = [
        RmwKind::CompareAndSwap,
        RmwKind::FetchAndAdd,
        RmwKind::Swap,
        RmwKind::And,
        RmwKind::Or,
        RmwKind::Xor,
    ];

    /// The opcode of the operation.
    #[must_use]
    pub const fn opcode(self) -> Opcode {
        match self {
            RmwKind::CompareAndSwap => Opcode::CompareAndSwap,
            RmwKind::FetchAndAdd => Opcode::FetchAndAdd,
            RmwKind::Swap => Opcode::Swap,
            RmwKind::And => Opcode::And,
            RmwKind::Or => Opcode::Or,
            RmwKind::Xor => Opcode::Xor,
        }
    }

    /// The operation of an opcode as it arrived; `None` if the opcode is unassigned or not an
    /// atomic.
    #[must_use]
    pub fn from_bits(bits: OpcodeBits) -> Option<RmwKind> {
        RmwKind::ALL.into_iter().find(|kind| OpcodeBits::from(kind.opcode()) == bits)
    }

    /// Number of 64-bit operands of the operation.
    #[must_use]
    pub const fn operand_count(self) -> usize {
        match self {
            RmwKind::CompareAndSwap => 2,
            _ => 1,
        }
    }
}

/// Bytes of the word that a read-modify-write changes, and of the response.
pub const RMW_BYTES: Bytes = Bytes(8);

/// A read-modify-write of a 64-bit word, with its operands. Its response is a read response of
/// [`RMW_BYTES`] with the word before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RmwOperation {
    /// Store `desired` if the word is `expected`.
    CompareAndSwap {
        /// The value that the word must have.
        expected: u64,
        /// The value that the word gets.
        desired: u64,
    },
    /// Add, modulo 2^64.
    FetchAndAdd(u64),
    /// Store.
    Swap(u64),
    /// Bitwise and.
    And(u64),
    /// Bitwise or.
    Or(u64),
    /// Bitwise exclusive or.
    Xor(u64),
}

impl RmwOperation {
    /// The operation without its operands.
    #[must_use]
    pub const fn kind(self) -> RmwKind {
        match self {
            RmwOperation::CompareAndSwap { .. } => RmwKind::CompareAndSwap,
            RmwOperation::FetchAndAdd(_) => RmwKind::FetchAndAdd,
            RmwOperation::Swap(_) => RmwKind::Swap,
            RmwOperation::And(_) => RmwKind::And,
            RmwOperation::Or(_) => RmwKind::Or,
            RmwOperation::Xor(_) => RmwKind::Xor,
        }
    }

    /// The operands in the order of their blocks; the second is zero where the operation has one.
    #[must_use]
    pub const fn operands(self) -> [u64; 2] {
        match self {
            RmwOperation::CompareAndSwap { expected, desired } => [expected, desired],
            RmwOperation::FetchAndAdd(operand)
            | RmwOperation::Swap(operand)
            | RmwOperation::And(operand)
            | RmwOperation::Or(operand)
            | RmwOperation::Xor(operand) => [operand, 0],
        }
    }

    /// The operation `kind` with `operands`; the second is ignored where the operation has one.
    #[must_use]
    pub const fn new(kind: RmwKind, operands: [u64; 2]) -> RmwOperation {
        let [first, second] = operands;
        match kind {
            RmwKind::CompareAndSwap => {
                RmwOperation::CompareAndSwap { expected: first, desired: second }
            }
            RmwKind::FetchAndAdd => RmwOperation::FetchAndAdd(first),
            RmwKind::Swap => RmwOperation::Swap(first),
            RmwKind::And => RmwOperation::And(first),
            RmwKind::Or => RmwOperation::Or(first),
            RmwKind::Xor => RmwOperation::Xor(first),
        }
    }

    /// The word afterwards, given the word before.
    #[must_use]
    pub const fn apply(self, word: u64) -> u64 {
        match self {
            RmwOperation::CompareAndSwap { expected, desired } => {
                if word == expected {
                    desired
                } else {
                    word
                }
            }
            RmwOperation::FetchAndAdd(operand) => word.wrapping_add(operand),
            RmwOperation::Swap(operand) => operand,
            RmwOperation::And(operand) => word & operand,
            RmwOperation::Or(operand) => word | operand,
            RmwOperation::Xor(operand) => word ^ operand,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_of_sixteen_opcodes_are_unassigned() {
        let assigned = (0..16).map(OpcodeBits::from_low_bits);
        let opcodes = assigned.filter_map(|bits| Opcode::try_from(bits).ok());
        assert!(opcodes.eq(Opcode::ALL));
        let bits = OpcodeBits::from_low_bits(0);
        assert_eq!(Opcode::try_from(bits), Err(UnassignedOpcode(bits)));
    }

    #[test]
    fn operations_survive_their_operands() {
        for kind in RmwKind::ALL {
            let operation = RmwOperation::new(kind, [5, 7]);
            assert_eq!(operation.kind(), kind);
            assert_eq!(RmwOperation::new(kind, operation.operands()), operation);
            let bits = OpcodeBits::from(kind.opcode());
            assert_eq!(bits.bits(), kind.opcode() as u8);
            assert_eq!(RmwKind::from_bits(bits), Some(kind));
        }
        for bits in 0..8 {
            assert_eq!(RmwKind::from_bits(OpcodeBits::from_low_bits(bits)), None);
        }
    }

    #[test]
    fn operations_do_what_they_say() {
        let cas = RmwOperation::CompareAndSwap { expected: 12, desired: 9 };
        assert_eq!((cas.apply(12), cas.apply(11)), (9, 11));
        assert_eq!(RmwOperation::FetchAndAdd(3).apply(u64::MAX), 2);
        assert_eq!(RmwOperation::Swap(3).apply(12), 3);
        assert_eq!(RmwOperation::And(6).apply(12), 4);
        assert_eq!(RmwOperation::Or(6).apply(12), 14);
        assert_eq!(RmwOperation::Xor(6).apply(12), 10);
    }
}
