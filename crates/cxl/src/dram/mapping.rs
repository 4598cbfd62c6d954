//! From a line to channel, bank group, bank, row and column.

use ethermem_wire::cxl::LineAddress;
use thiserror::Error;

/// Which bits of an address are which, from high to low. A column here is a burst: one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// Row, column, bank, bank group: neighbours are in different banks. The prototype's choice
    /// (section IV), with its interleaving: the bank group is lowest.
    #[default]
    RowColumnBank,
    /// Row, bank, bank group, column: neighbours are in one row. For comparison.
    RowBankColumn,
}

/// How a memory is made of banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Independent channels; neighbouring lines are on different ones.
    pub channels: u32,
    /// Bank groups of a channel: 4 (DDR4, x4 and x8 devices).
    pub groups: u32,
    /// Banks of a group: 4 (DDR4).
    pub banks: u32,
    /// Lines of a row: 1,024 columns of 8 B are 128.
    pub row_lines: u32,
    /// Which bits are which.
    pub mapping: Mapping,
}

/// Why there is no such memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GeometryError {
    /// A number is no power of two.
    #[error("{0} {1}: must be a power of two")]
    PowerOfTwo(u32, &'static str),
}

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The channel.
    pub channel: u32,
    /// The bank group of the channel.
    pub group: u32,
    /// The bank of the group.
    pub bank: u32,
    /// The row of the bank.
    pub row: u64,
    /// The line of the row.
    pub column: u32,
}

impl Geometry {
    /// One channel of the U280's DDR4: four groups of four banks, rows of 8 KiB.
    #[must_use]
    pub const fn published() -> Geometry {
        let mapping = Mapping::RowColumnBank;
        Geometry { channels: 1, groups: 4, banks: 4, row_lines: 128, mapping }
    }

    pub(super) fn check(&self) -> Result<(), GeometryError> {
        let numbers = [
            (self.channels, "channels"),
            (self.groups, "bank groups"),
            (self.banks, "banks of a group"),
            (self.row_lines, "lines of a row"),
        ];
        match numbers.into_iter().find(|(number, _)| !number.is_power_of_two()) {
            Some((number, what)) => Err(GeometryError::PowerOfTwo(number, what)),
            None => Ok(()),
        }
    }

    /// Where a line is.
    #[must_use]
    pub fn locate(&self, line: LineAddress) -> Location {
        let mut left = line.number();
        let mut take = |count: u32| {
            let number = (left % u64::from(count)) as u32;
            left /= u64::from(count);
            number
        };
        let channel = take(self.channels);
        let (group, bank, column) = match self.mapping {
            Mapping::RowColumnBank => {
                let (group, bank) = (take(self.groups), take(self.banks));
                (group, bank, take(self.row_lines))
            }
            Mapping::RowBankColumn => {
                let column = take(self.row_lines);
                (take(self.groups), take(self.banks), column)
            }
        };
        Location { channel, group, bank, row: left, column }
    }
}
