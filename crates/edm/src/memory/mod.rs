//! The memory of a memory node: bounds, alignment, atomics.

use crate::message::{Address, Modify, OpcodeBits, RMW_BYTES, RmwKind, RmwOperation, StatusCode};

/// A byte-addressed memory from address 0.
///
/// One access is one call, so an atomic is atomic: no access can come between its read and its
/// write.
#[derive(Clone, Debug)]
pub struct Memory<B> {
    bytes: B,
}

/// Why an access was refused. The access had no effect. [`StatusCode::from`] gives the code for the
/// wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The access begins or ends outside the memory. A retry cannot help.
    #[error("{bytes} B at {address:#x} are outside the memory of {size} B")]
    OutOfBounds {
        /// First byte of the access.
        address: u64,
        /// Length of the access in bytes.
        bytes: u64,
        /// Size of the memory in bytes.
        size: u64,
    },
    /// An atomic is not at a multiple of 8. A retry cannot help.
    #[error("an atomic at {address:#x}: not a multiple of 8")]
    Misaligned {
        /// Address of the word.
        address: u64,
    },
    /// The opcode is not one of [`RmwKind`]. A retry cannot help.
    #[error("unknown RMW opcode {}", opcode.bits())]
    UnknownOpcode {
        /// The opcode as received.
        opcode: OpcodeBits,
    },
}

impl From<MemoryError> for StatusCode {
    fn from(error: MemoryError) -> StatusCode {
        match error {
            MemoryError::OutOfBounds { .. } => StatusCode::BadAddress,
            MemoryError::Misaligned { .. } => StatusCode::Misaligned,
            MemoryError::UnknownOpcode { .. } => StatusCode::BadOpcode,
        }
    }
}

/// The result of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modified {
    /// The word before, which the response carries.
    pub old: u64,
    /// True if a word was stored. It is false only for a compare-and-swap that found another word
    /// than expected. The requester derives it: `old == expected`.
    pub stored: bool,
}

const WORD_BYTES: usize = RMW_BYTES.0 as usize;

impl<B: AsRef<[u8]> + AsMut<[u8]>> Memory<B> {
    /// A memory with the contents `bytes`.
    pub fn new(bytes: B) -> Memory<B> {
        Memory { bytes }
    }

    /// The contents of the memory.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// The bytes from `address` on.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`].
    pub fn read(&self, address: Address, bytes: usize) -> Result<&[u8], MemoryError> {
        let range = self.range(address, bytes)?;
        Ok(&self.bytes.as_ref()[range])
    }

    /// Writes `data` from `address` on.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`]; no byte is written then.
    pub fn write(&mut self, address: Address, data: &[u8]) -> Result<(), MemoryError> {
        let range = self.range(address, data.len())?;
        self.bytes.as_mut()[range].copy_from_slice(data);
        Ok(())
    }

    /// Executes an atomic on the little-endian 8-byte word at `address`.
    ///
    /// # Errors
    /// Any [`MemoryError`]; the word is unchanged then.
    pub fn modify(&mut self, address: Address, modify: Modify) -> Result<Modified, MemoryError> {
        let Modify { opcode, operands } = modify;
        let kind = RmwKind::from_bits(opcode).ok_or(MemoryError::UnknownOpcode { opcode })?;
        if !address.0.is_multiple_of(WORD_BYTES as u64) {
            return Err(MemoryError::Misaligned { address: address.0 });
        }
        let mut word = [0; WORD_BYTES];
        word.copy_from_slice(self.read(address, WORD_BYTES)?);
        let old = u64::from_le_bytes(word);
        let operation = RmwOperation::new(kind, operands);
        if matches!(operation, RmwOperation::CompareAndSwap { expected, .. } if expected != old) {
            return Ok(Modified { old, stored: false });
        }
        self.write(address, &operation.apply(old).to_le_bytes())?;
        Ok(Modified { old, stored: true })
    }

    fn range(&self, address: Address, bytes: usize) -> Result<std::ops::Range<usize>, MemoryError> {
        let size = self.bytes.as_ref().len();
        let outside =
            MemoryError::OutOfBounds { address: address.0, bytes: bytes as u64, size: size as u64 };
        let start = usize::try_from(address.0).map_err(|_| outside)?;
        let end = start.checked_add(bytes).filter(|&end| end <= size).ok_or(outside)?;
        Ok(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: u64 = 0x1122_3344_5566_7788;

    fn memory() -> Memory<Vec<u8>> {
        let mut memory = Memory::new(vec![0; 32]);
        memory.write(Address(8), &WORD.to_le_bytes()).unwrap();
        memory
    }

    fn modify(opcode: RmwKind, operands: [u64; 2]) -> (Modified, u64) {
        let mut memory = memory();
        let result =
            memory.modify(Address(8), Modify { opcode: opcode.opcode().into(), operands }).unwrap();
        let after = memory.read(Address(8), 8).unwrap().try_into().unwrap();
        (result, u64::from_le_bytes(after))
    }

    #[test]
    fn every_atomic_returns_the_word_before() {
        let cases = [
            (RmwKind::CompareAndSwap, [WORD, 5], 5, true),
            (RmwKind::CompareAndSwap, [WORD + 1, 5], WORD, false),
            (RmwKind::FetchAndAdd, [u64::MAX, 0], WORD - 1, true),
            (RmwKind::Swap, [9, 0], 9, true),
            (RmwKind::And, [0xff, 0], 0x88, true),
            (RmwKind::Or, [0xff, 0], WORD | 0xff, true),
            (RmwKind::Xor, [WORD, 0], 0, true),
        ];
        for (opcode, operands, after, stored) in cases {
            let expected = (Modified { old: WORD, stored }, after);
            assert_eq!(modify(opcode, operands), expected, "{opcode:?} {operands:x?}");
        }
    }

    #[test]
    fn words_are_little_endian() {
        assert_eq!(memory().as_bytes()[8..16], [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
    }

    #[test]
    fn an_access_outside_the_memory_has_no_effect() {
        let mut memory = memory();
        let before = memory.as_bytes().to_vec();
        for (address, bytes) in [(32, 1), (31, 2), (0, 33), (u64::MAX, 1), (u64::MAX - 3, 8)] {
            let error = memory.read(Address(address), bytes).unwrap_err();
            assert_eq!(StatusCode::from(error), StatusCode::BadAddress, "{bytes} at {address:#x}");
            let error = memory.write(Address(address), &vec![1; bytes]).unwrap_err();
            assert_eq!(StatusCode::from(error), StatusCode::BadAddress, "{bytes} at {address:#x}");
        }
        assert_eq!(memory.as_bytes(), before);
        assert_eq!(memory.read(Address(32), 0), Ok(&[][..]));
        assert_eq!(memory.read(Address(0), 32).unwrap(), before);
    }

    #[test]
    fn a_bad_atomic_has_no_effect() {
        let mut memory = memory();
        let before = memory.as_bytes().to_vec();
        let swap = Modify { opcode: RmwKind::Swap.opcode().into(), operands: [7, 0] };
        let cases = [
            (12, swap, StatusCode::Misaligned),
            (32, swap, StatusCode::BadAddress),
            (8, Modify { opcode: OpcodeBits::from_low_bits(0), ..swap }, StatusCode::BadOpcode),
            (8, Modify { opcode: OpcodeBits::from_low_bits(7), ..swap }, StatusCode::BadOpcode),
        ];
        for (address, modify, status) in cases {
            let error = memory.modify(Address(address), modify).unwrap_err();
            assert_eq!(StatusCode::from(error), status, "{modify:?} at {address:#x}");
        }
        assert_eq!(memory.as_bytes(), before);
    }
}
