//! Whole records from a file of another tool, with the offset of each in errors.

use std::io::{self, Read};
use std::path::Path;

use ethermem_files::InputError;

/// Order of the octets of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// The number of 16 bits at `at`.
    pub(super) fn u16(self, octets: &[u8], at: usize) -> u16 {
        let number = [octets[at], octets[at + 1]];
        match self {
            Order::Little => u16::from_le_bytes(number),
            Order::Big => u16::from_be_bytes(number),
        }
    }

    /// The number of 32 bits at `at`.
    pub(super) fn u32(self, octets: &[u8], at: usize) -> u32 {
        let (low, high) = match self {
            Order::Little => (at, at + 2),
            Order::Big => (at + 2, at),
        };
        u32::from(self.u16(octets, high)) << 16 | u32::from(self.u16(octets, low))
    }

    /// The number of 64 bits at `at`.
    pub(super) fn u64(self, octets: &[u8], at: usize) -> u64 {
        let (low, high) = match self {
            Order::Little => (at, at + 4),
            Order::Big => (at + 4, at),
        };
        u64::from(self.u32(octets, high)) << 32 | u64::from(self.u32(octets, low))
    }
}

/// A file that is read from its start to its end.
pub(super) struct Octets<'p, R> {
    reader: R,
    path: &'p Path,
    /// Number of octets that were read.
    at: u64,
}

impl<'p, R: Read> Octets<'p, R> {
    pub(super) fn new(reader: R, path: &'p Path) -> Octets<'p, R> {
        Octets { reader, path, at: 0 }
    }

    /// Offset of the next octet.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// An error about what begins at octet `at`.
    pub(super) fn refuse(&self, at: u64, problem: &str) -> InputError {
        InputError::file(self.path, format!("octet {at}: {problem}"))
    }

    /// Fills `buffer`; false at the end of the file. `what` begins at octet `start`.
    pub(super) fn fill(
        &mut self,
        buffer: &mut [u8],
        start: u64,
        what: &str,
    ) -> Result<bool, InputError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(InputError::io(self.path, "be read", &error)),
            }
        }
        self.at += filled as u64;
        if filled < buffer.len() && self.at > start {
            let problem = format!("{what} is cut off at octet {}: must be whole", self.at);
            return Err(self.refuse(start, &problem));
        }
        Ok(filled == buffer.len())
    }

    /// Fills `buffer` with the rest of what began at octet `start`.
    pub(super) fn rest(
        &mut self,
        buffer: &mut [u8],
        start: u64,
        what: &str,
    ) -> Result<(), InputError> {
        self.fill(buffer, start, what).map(|_| ())
    }

    /// Skips the rest of what began at octet `start`.
    pub(super) fn skip(&mut self, count: u64, start: u64, what: &str) -> Result<(), InputError> {
        let mut buffer = [0; 4096];
        let mut left = count;
        while left > 0 {
            let piece = left.min(buffer.len() as u64) as usize;
            self.rest(&mut buffer[..piece], start, what)?;
            left -= piece as u64;
        }
        Ok(())
    }
}
