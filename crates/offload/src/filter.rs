//! The operation that selects records at the node.

use std::task::Poll;

use crate::address::Address;
use crate::sliced::{Allowance, Look, Sliced};
use crate::words::{decode, encode};
use crate::{NodeMemory, OffloadError};

/// A comparison of a field with an operand, both unsigned little-endian words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Comparison {
    /// The field is less.
    Less = 0,
    /// The field is equal.
    Equal = 1,
    /// The field is greater.
    Greater = 2,
}

/// Selects the records of an array whose field passes a comparison, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Address of the first record.
    pub start: Address,
    /// Length of a record, in bytes.
    pub record_bytes: u32,
    /// Number of records.
    pub records: u32,
    /// Offset in a record of the field, an eight-byte word, in bytes.
    pub field_offset: u32,
    /// The comparison.
    pub comparison: Comparison,
    /// The operand that the field is compared with.
    pub operand: u64,
}

impl Filter {
    /// The name of the operation.
    pub const NAME: &'static str = "filter";

    /// Encodes the arguments of the operation: six little-endian words. The result is the records.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let words = [
            self.start.0,
            self.record_bytes.into(),
            self.records.into(),
            self.field_offset.into(),
            self.comparison as u64,
            self.operand,
        ];
        encode(&words, &[])
    }

    fn decode(arguments: &[u8]) -> Option<Filter> {
        let ([start, record_bytes, records, field_offset, comparison, operand], []) =
            decode::<6>(arguments)?
        else {
            return None;
        };
        let comparison = match comparison {
            0 => Comparison::Less,
            1 => Comparison::Equal,
            2 => Comparison::Greater,
            _ => return None,
        };
        let record_bytes = u32::try_from(record_bytes).ok().filter(|&bytes| bytes >= 8)?;
        let field_offset = u32::try_from(field_offset).ok()?;
        if field_offset > record_bytes - 8 {
            return None;
        }
        let records = u32::try_from(records).ok()?;
        let start = Address(start);
        Some(Filter { start, record_bytes, records, field_offset, comparison, operand })
    }
}

/// A filter in progress.
pub(super) struct FilterRun {
    filter: Filter,
    /// Index of the next record to read.
    next: u32,
    found: Vec<u8>,
    allowance: Allowance,
}

impl FilterRun {
    /// Reads one record.
    fn record(&mut self, memory: &mut NodeMemory<'_>) -> Result<(), OffloadError> {
        let (filter, most) = (&self.filter, memory.result_bytes_max());
        let offset = u64::from(self.next) * u64::from(filter.record_bytes);
        let record = memory.read(filter.start.add(offset), filter.record_bytes.into())?;
        let field = &record[filter.field_offset as usize..][..8];
        let field = u64::from_le_bytes(field.try_into().expect("8 B were taken"));
        let kept = match filter.comparison {
            Comparison::Less => field < filter.operand,
            Comparison::Equal => field == filter.operand,
            Comparison::Greater => field > filter.operand,
        };
        if kept {
            if self.found.len() + record.len() > most {
                let problem = format!("a result of more than {most} B");
                return Err(OffloadError::failed(problem));
            }
            self.found.extend_from_slice(record);
        }
        self.next += 1;
        Ok(())
    }
}

impl Sliced for FilterRun {
    fn step(&mut self, memory: &mut NodeMemory<'_>) -> Poll<Result<Vec<u8>, OffloadError>> {
        while self.next < self.filter.records {
            if self.allowance.slice_is_over(memory)? {
                return Poll::Pending;
            }
            self.record(memory)?;
        }
        Poll::Ready(Ok(std::mem::take(&mut self.found)))
    }
}

impl Look for FilterRun {
    fn begin(arguments: &[u8], allowance: Allowance) -> Result<Self, OffloadError> {
        let allowed = "must be records of 8 B and more with a word in them, and 0, 1 or 2";
        let filter = Filter::decode(arguments).ok_or_else(|| OffloadError::failed(allowed))?;
        Ok(FilterRun { filter, next: 0, found: Vec::new(), allowance })
    }
}
