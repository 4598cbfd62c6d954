//! The table of all packets, to which parsers, dissectors and documents are held.

use thiserror::Error;

use crate::opcode::RmwKind;

/// What a packet asks for or answers. The atomics have the numbers of [`crate::Opcode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ClioOpcode {
    /// Read bytes from an address on.
    Read = 1,
    /// Write bytes from an address on.
    Write = 2,
    /// Store the second operand if the word is the first.
    CompareAndSwap = 8,
    /// Add, modulo 2^64.
    FetchAndAdd = 9,
    /// Store.
    Swap = 10,
    /// Bitwise and.
    And = 11,
    /// Bitwise or.
    Or = 12,
    /// Bitwise exclusive or.
    Xor = 13,
    /// Store 1.
    TestAndSet = 14,
    /// Take a lock, unless a live process holds it.
    Lock = 16,
    /// Give a lock back.
    Unlock = 17,
    /// Answered when the node has executed all requests that it received before.
    Fence = 18,
    /// Allocate memory for a process.
    Allocate = 32,
    /// End an allocation or a share.
    Free = 33,
    /// Let another process use an allocation.
    Share = 34,
    /// Create a process.
    CreateProcess = 35,
    /// End a process, and free what is its own.
    EndProcess = 36,
    /// Run an operation at the node.
    Offload = 48,
    /// Ask for the facts of the node.
    Hello = 64,
    /// Tell the node that the process is alive.
    KeepAlive = 65,
    /// Responses that arrived, for which the node need keep nothing. This packet is not answered.
    Acknowledge = 66,
    /// Answers a datagram whose check failed. No request has this opcode.
    Nack = 67,
    /// Zeros, answered by a packet of equal length: it tests whether the path carries such a
    /// datagram.
    Probe = 68,
}

/// An octet that is not an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("opcode {0} is not assigned")]
pub struct UnknownClioOpcode(pub u8);

/// The part of the node that executes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// The fast path: bounded time, no allocation.
    Fast,
    /// The slow path: changes which process has which memory.
    Slow,
    /// The extend path: runs registered operations.
    Extend,
    /// The transport.
    Transport,
}

/// The length of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldBytes {
    /// A little-endian number of this many bytes.
    Number(u8),
    /// As many bytes as the number before it says.
    Counted,
    /// The rest of the packet, as bytes.
    Rest,
    /// The rest of the packet, as eight-byte numbers.
    RestNumbers,
}

/// A field of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name of the field, with its unit.
    pub name: &'static str,
    /// The length of the field.
    pub bytes: FieldBytes,
}

/// A row of [`OPCODES`].
#[derive(Clone, Copy, Debug)]
pub struct OpcodeRow {
    /// The opcode of the row.
    pub opcode: ClioOpcode,
    /// The opcode's name in documents and tools.
    pub name: &'static str,
    /// The part of the node that executes the request.
    pub path: Path,
    /// The body of the request.
    pub request: &'static [Field],
    /// The body of the response if the request was done. Otherwise the body is a `detail` of eight
    /// bytes.
    pub response: &'static [Field],
}

const fn number(name: &'static str, bytes: u8) -> Field {
    Field { name, bytes: FieldBytes::Number(bytes) }
}

const fn rest(name: &'static str, bytes: FieldBytes) -> Field {
    Field { name, bytes }
}

const ADDRESS: Field = number("address", 8);
const DATA: Field = rest("data", FieldBytes::Rest);
/// A body of zeros.
const PADDING: &[Field] = &[rest("padding", FieldBytes::Rest)];
const OPERAND: &[Field] = &[ADDRESS, number("operand", 8)];
const OPERANDS: &[Field] = &[ADDRESS, number("expected", 8), number("desired", 8)];
const WORD: &[Field] = &[number("word_before", 8)];
const LOCK: &[Field] = &[ADDRESS, number("holder", 4)];
const FACTS: &[Field] = &[
    number("epoch", 4),
    number("page_bytes", 4),
    number("data_bytes_max", 4),
    number("lifetime_us_max", 4),
    number("memory_bytes", 8),
    number("lease_ms", 8),
];

const fn row(
    opcode: ClioOpcode,
    name: &'static str,
    path: Path,
    request: &'static [Field],
    response: &'static [Field],
) -> OpcodeRow {
    OpcodeRow { opcode, name, path, request, response }
}

/// The fields of the envelope.
pub const ENVELOPE_FIELDS: [Field; 7] = [
    number("version", 1),
    number("protection", 1),
    number("tenant", 2),
    number("epoch", 4),
    number("sender", 8),
    number("sequence", 8),
    number("clock_ns", 8),
];

/// The header of a request.
pub const REQUEST_FIELDS: [Field; 6] = [
    number("opcode", 1),
    number("attempt", 1),
    number("packet_bytes", 2),
    number("process", 4),
    number("request", 8),
    number("acknowledged", 8),
];

/// The header of a response.
pub const RESPONSE_FIELDS: [Field; 6] = [
    number("opcode", 1),
    number("attempt", 1),
    number("packet_bytes", 2),
    number("status", 1),
    number("reserved", 3),
    number("request", 8),
];

/// Every packet, in the order of the numbers.
pub const OPCODES: [OpcodeRow; 23] = {
    use ClioOpcode as Op;
    use Path::{Extend, Fast, Slow, Transport};
    let read = &[ADDRESS, number("bytes", 4)];
    let allocate = &[number("bytes", 8), number("at", 8), number("permissions", 1)];
    let share = &[ADDRESS, number("at", 8), number("with_process", 4), number("permissions", 1)];
    let offload = &[number("name_bytes", 1), rest("name", FieldBytes::Counted), DATA];
    [
        row(Op::Read, "read", Fast, read, &[DATA]),
        row(Op::Write, "write", Fast, &[ADDRESS, DATA], &[]),
        row(Op::CompareAndSwap, "compare_and_swap", Fast, OPERANDS, WORD),
        row(Op::FetchAndAdd, "fetch_and_add", Fast, OPERAND, WORD),
        row(Op::Swap, "swap", Fast, OPERAND, WORD),
        row(Op::And, "and", Fast, OPERAND, WORD),
        row(Op::Or, "or", Fast, OPERAND, WORD),
        row(Op::Xor, "xor", Fast, OPERAND, WORD),
        row(Op::TestAndSet, "test_and_set", Fast, &[ADDRESS], WORD),
        row(Op::Lock, "lock", Fast, LOCK, &[]),
        row(Op::Unlock, "unlock", Fast, LOCK, &[]),
        row(Op::Fence, "fence", Fast, &[], &[]),
        row(Op::Allocate, "allocate", Slow, allocate, &[ADDRESS]),
        row(Op::Free, "free", Slow, &[ADDRESS], &[]),
        row(Op::Share, "share", Slow, share, &[ADDRESS]),
        row(Op::CreateProcess, "create_process", Slow, &[], &[number("created", 4)]),
        row(Op::EndProcess, "end_process", Slow, &[], &[]),
        row(Op::Offload, "offload", Extend, offload, &[DATA]),
        row(Op::Hello, "hello", Transport, &[], FACTS),
        row(Op::KeepAlive, "keep_alive", Transport, &[], &[]),
        row(
            Op::Acknowledge,
            "acknowledge",
            Transport,
            &[rest("requests", FieldBytes::RestNumbers)],
            &[],
        ),
        row(Op::Nack, "nack", Transport, &[], &[]),
        row(Op::Probe, "probe", Transport, PADDING, PADDING),
    ]
};

impl ClioOpcode {
    /// The opcode's row of the table.
    #[must_use]
    pub fn row(self) -> &'static OpcodeRow {
        let found = OPCODES.iter().find(|row| row.opcode == self);
        found.expect("a test holds the table to have every opcode")
    }

    /// True if the request may be executed twice, since it changes nothing.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        use ClioOpcode::{Acknowledge, Fence, Hello, KeepAlive, Nack, Probe, Read};
        matches!(self, Read | Fence | Hello | KeepAlive | Acknowledge | Nack | Probe)
    }
}

impl TryFrom<u8> for ClioOpcode {
    type Error = UnknownClioOpcode;

    fn try_from(number: u8) -> Result<ClioOpcode, UnknownClioOpcode> {
        use ClioOpcode as Op;
        Ok(match number {
            1 => Op::Read,
            2 => Op::Write,
            8 => Op::CompareAndSwap,
            9 => Op::FetchAndAdd,
            10 => Op::Swap,
            11 => Op::And,
            12 => Op::Or,
            13 => Op::Xor,
            14 => Op::TestAndSet,
            16 => Op::Lock,
            17 => Op::Unlock,
            18 => Op::Fence,
            32 => Op::Allocate,
            33 => Op::Free,
            34 => Op::Share,
            35 => Op::CreateProcess,
            36 => Op::EndProcess,
            48 => Op::Offload,
            64 => Op::Hello,
            65 => Op::KeepAlive,
            66 => Op::Acknowledge,
            67 => Op::Nack,
            68 => Op::Probe,
            _ => return Err(UnknownClioOpcode(number)),
        })
    }
}

impl From<RmwKind> for ClioOpcode {
    fn from(kind: RmwKind) -> ClioOpcode {
        match kind {
            RmwKind::CompareAndSwap => ClioOpcode::CompareAndSwap,
            RmwKind::FetchAndAdd => ClioOpcode::FetchAndAdd,
            RmwKind::Swap => ClioOpcode::Swap,
            RmwKind::And => ClioOpcode::And,
            RmwKind::Or => ClioOpcode::Or,
            RmwKind::Xor => ClioOpcode::Xor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_opcode_once_by_its_number() {
        let known = (0..=u8::MAX).filter_map(|number| ClioOpcode::try_from(number).ok());
        assert!(known.eq(OPCODES.iter().map(|row| row.opcode)));
        for row in &OPCODES {
            assert_eq!(ClioOpcode::try_from(row.opcode as u8), Ok(row.opcode));
        }
        assert_eq!(ClioOpcode::try_from(0), Err(UnknownClioOpcode(0)));
    }

    #[test]
    fn atomics_have_the_numbers_that_edm_gives_them() {
        for kind in RmwKind::ALL {
            assert_eq!(ClioOpcode::from(kind) as u8, kind.opcode() as u8);
        }
    }
}
