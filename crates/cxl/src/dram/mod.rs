//! The DRAM of a memory node (section IV, "Memory"): banks, mapping of addresses, DDR4 timing.
//!
//! An open-page controller that serves accesses in their order. Each access is told when it comes
//! and says when its data is there; commands of different banks overlap as the timing allows. It
//! holds no bytes.

mod channel;
mod mapping;
mod timing;

use ethermem_units::Ps;
use ethermem_wire::cxl::LineAddress;

use channel::Channel;
pub use mapping::{Geometry, GeometryError, Location, Mapping};
pub use timing::Timing;

/// What an access found in its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowState {
    /// Its row was open.
    Hit,
    /// No row was open.
    Empty,
    /// Another row was open, and was closed first.
    Conflict,
}

/// An access that was scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// When the last beat of its data is on the bus.
    pub data_end: Ps,
    /// What it found in its bank.
    pub row: RowState,
}

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DramCounters {
    /// Accesses to an open row.
    pub hits: u64,
    /// Accesses to a bank without an open row.
    pub empty: u64,
    /// Accesses to a bank with another row open.
    pub conflicts: u64,
    /// Refreshes of a channel.
    pub refreshes: u64,
}

/// The DRAM of one memory node.
#[derive(Clone, Debug)]
pub struct Dram {
    geometry: Geometry,
    timing: Timing,
    channels: Box<[Channel]>,
    counters: DramCounters,
}

impl Dram {
    /// DRAM with all rows closed.
    ///
    /// # Errors
    /// [`GeometryError`].
    pub fn new(geometry: Geometry, timing: Timing) -> Result<Dram, GeometryError> {
        geometry.check()?;
        let channel = || Channel::new(&geometry, &timing);
        let channels = (0..geometry.channels).map(|_| channel()).collect();
        Ok(Dram { geometry, timing, channels, counters: DramCounters::default() })
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> DramCounters {
        self.counters
    }

    /// Schedules an access that comes now.
    ///
    /// # Panics
    /// If `now` is before an earlier access's of the same channel.
    pub fn access(&mut self, now: Ps, line: LineAddress, is_write: bool) -> Scheduled {
        let location = self.geometry.locate(line);
        let channel = &mut self.channels[location.channel as usize];
        self.counters.refreshes += channel.refresh(now, &self.timing);
        let scheduled = channel.access(now, location, is_write, &self.timing);
        match scheduled.row {
            RowState::Hit => self.counters.hits += 1,
            RowState::Empty => self.counters.empty += 1,
            RowState::Conflict => self.counters.conflicts += 1,
        }
        scheduled
    }
}

#[cfg(test)]
mod tests;
