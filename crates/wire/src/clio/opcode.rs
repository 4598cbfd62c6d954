//! The table of all packets: what parsers, dissectors and documents are held to.

use thiserror::Error;

use crate::opcode::RmwKind;

/// What a packet asks for or answers. The atomics have the numbers that they have in
/// [`crate::Opcode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ClioOpcode {
    /// The bytes from an address on.
    Read = 1,
    /// Bytes to write from an address on.
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
    /// Take a lock, if nobody alive holds it.
    Lock = 16,
    /// Give a lock back.
    Unlock = 17,
    /// Answered when all that the node had taken in before it is done.
    Fence = 18,
    /// Memory for a process.
    Allocate = 32,
    /// End an allocation or a share.
    Free = 33,
    /// Let another process use an allocation.
    Share = 34,
    /// A new process.
    CreateProcess = 35,
    /// End a process, and free what is its own.
    EndProcess = 36,
    /// Run an operation at the node.
    Offload = 48,
    /// What the node is.
    Hello = 64,
    /// The process is alive.
    KeepAlive = 65,
    /// Answers that have come, of which the node need keep nothing. It is not answered.
    Acknowledge = 66,
    /// Answers a datagram whose check failed. Nobody asks for it.
    Nack = 67,
    /// Nothing but octets, answered by a packet as long: whether the path carries such a datagram.
    Probe = 68,
}

/// An octet that is no opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("opcode {0} is not assigned")]
pub struct UnknownClioOpcode(pub u8);

/// Which part of the node executes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// In bounded time, without allocation.
    Fast,
    /// Changes what is allocated to whom.
    Slow,
    /// Runs operations of others.
    Extend,
    /// Of the transport.
    Transport,
}

/// How long a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldBytes {
    /// So many bytes, a little-endian number.
    Number(u8),
    /// As many as the number before it says.
    Counted,
    /// The rest of the packet, as bytes.
    Rest,
    /// The rest of the packet, as eight-byte numbers.
    RestNumbers,
}

/// A field of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, with its unit.
    pub name: &'static str,
    /// Its length.
    pub bytes: FieldBytes,
}

/// A row of [`OPCODES`].
#[derive(Clone, Copy, Debug)]
pub struct OpcodeRow {
    /// Which.
    pub opcode: ClioOpcode,
    /// Its name in documents and tools.
    pub name: &'static str,
    /// Which part of the node executes it.
    pub path: Path,
    /// The body of the request.
    pub request: &'static [Field],
    /// The body of the answer where it was done. Where it was not, the body is a `detail` of eight
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
/// Zeros.
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

/// The front of a datagram.
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

/// The header of an answer.
pub const RESPONSE_FIELDS: [Field; 6] = [
    number("opcode", 1),
    number("attempt", 1),
    number("packet_bytes", 2),
    number("status", 1),
    number("reserved", 3),
    number("request", 8),
];

/// Every packet there is, by its number.
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
    /// Its row of the table.
    #[must_use]
    pub fn row(self) -> &'static OpcodeRow {
        let found = OPCODES.iter().find(|row| row.opcode == self);
        found.expect("a test holds the table to have every opcode")
    }

    /// Whether it may be executed twice, since it changes nothing.
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
