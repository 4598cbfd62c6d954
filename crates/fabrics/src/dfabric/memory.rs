//! A memory of a rack, and what it has to do.

use ethermem_units::Ps;

use super::config::Rate;
use super::meter::{Meter, User, Way};

/// A memory with a bandwidth.
pub(super) struct Memory {
    pub(super) rate: Rate,
    /// Time of an access; `None` for a node's memory, which takes the scenario's.
    pub(super) access: Option<Ps>,
    /// True if reads and writes have the bandwidth each, and false if they share it.
    is_apart: bool,
    /// The end of the last read, and of the last write, in its bandwidth.
    read: Ps,
    write: Ps,
    /// What the memory moves, if the scenario requests it.
    pub(super) meter: Option<Box<Meter>>,
}

impl Memory {
    /// An idle memory.
    pub(super) fn new(
        rate: Rate,
        access: Option<Ps>,
        is_apart: bool,
        meter: Option<Box<Meter>>,
    ) -> Memory {
        Memory { rate, access, is_apart, read: Ps::ZERO, write: Ps::ZERO, meter }
    }

    /// The time at which a node's processor has stored these bytes from now on.
    pub(super) fn store(&mut self, now: Ps, bytes: u64, user: User) -> Ps {
        let begin = self.write.max(now);
        self.write = begin + self.rate.time(bytes);
        self.count(user, Way::Write, (begin, self.write), bytes);
        self.write
    }

    /// Counts bytes that move between two times.
    pub(super) fn count(&mut self, user: User, way: Way, during: (Ps, Ps), bytes: u64) {
        if let Some(meter) = &mut self.meter {
            meter.count(user, way, during, bytes);
        }
    }

    /// The end of the last write in the memory's bandwidth.
    pub(super) fn last_write(&self) -> Ps {
        self.write
    }

    /// Writes were made that end at this time.
    pub(super) fn set_last_write(&mut self, end: Ps) {
        self.write = end;
    }

    /// The time at which a read begins: whole reads follow each other at the memory's rate.
    pub(super) fn read(&mut self, at: Ps, bytes: u64, user: User) -> Ps {
        let start = at.max(self.read);
        self.read = start + self.rate.time(bytes);
        self.count(user, Way::Read, (start, self.read), bytes);
        self.share(self.read);
        start
    }

    /// The time at which data that was whole at `at` is written: it is written as it comes.
    pub(super) fn written(&mut self, at: Ps, bytes: u64, user: User) -> Ps {
        let took = self.rate.time(bytes);
        let begin = self.write.max(at.saturating_sub(took));
        self.write = begin + took;
        self.count(user, Way::Write, (begin, self.write), bytes);
        self.share(self.write);
        self.write.max(at)
    }

    fn share(&mut self, end: Ps) {
        if !self.is_apart {
            (self.read, self.write) = (end, end);
        }
    }
}
