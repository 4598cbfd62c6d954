//! Accesses of some bytes of a line, and the order of a flush: for a cache in front of a real pool.
//!
//! The agent of a compute node reads whole lines, as CXL does. A program reads and writes a few
//! bytes, and must not wait for bytes of the line that it does not want.

use ethermem_wire::cxl::{ByteMask, LINE_BYTES, LineAddress};

use super::{Cache, Victim, WriteStep};

/// The mask of `bytes` bytes from an offset on.
#[inline]
fn mask(from: usize, bytes: usize) -> ByteMask {
    assert!(bytes > 0 && from + bytes <= LINE_BYTES, "{bytes} B from {from}: not in a line");
    ByteMask((u64::MAX >> (LINE_BYTES - bytes)) << from)
}

impl<W: Copy> Cache<W> {
    /// Reads bytes of a line from an offset on if all of them are valid here; otherwise changes
    /// nothing.
    ///
    /// # Panics
    /// If the bytes are not inside a line.
    #[inline]
    pub fn read_bytes(&mut self, line: LineAddress, from: usize, to: &mut [u8]) -> bool {
        let wanted = mask(from, to.len());
        let Some(place) = self.array.find(line) else { return false };
        if wanted.0 & !self.array.valid(place).0 != 0 {
            return false;
        }
        to.copy_from_slice(&self.array.data(place)[from..][..to.len()]);
        self.array.touch(place);
        self.counters.read_hits += 1;
        true
    }

    /// Writes bytes of a line from an offset on if the line is here; otherwise changes nothing.
    ///
    /// # Panics
    /// If the bytes are not inside a line.
    #[inline]
    pub fn write_hit(&mut self, line: LineAddress, from: usize, bytes: &[u8]) -> bool {
        self.array.find(line).is_some() && self.write_bytes(line, from, bytes) == WriteStep::Hit
    }

    /// As [`Cache::write`], of bytes from an offset on.
    ///
    /// # Panics
    /// If the bytes are not inside a line.
    #[inline]
    pub fn write_bytes(&mut self, line: LineAddress, from: usize, bytes: &[u8]) -> WriteStep {
        let written = mask(from, bytes.len());
        let (place, step) = match self.place_to_write(line) {
            Ok(found) => found,
            Err(stalled) => return stalled,
        };
        self.array.data_mut(place)[from..][..bytes.len()].copy_from_slice(bytes);
        self.wrote(place, written);
        step
    }

    /// The place of a line for [`Cache::clean_at`], if the line is here.
    #[must_use]
    pub fn place_of(&self, line: LineAddress) -> Option<u32> {
        self.array.find(line).map(|place| place.0)
    }

    /// The most calls of [`Cache::next_dirty`] that a flush needs, if nothing is written meanwhile.
    #[must_use]
    pub fn dirty_max(&self) -> usize {
        self.written.len()
    }

    /// Cleans the line that has been dirty longest, and gives what must be written. `None` if no
    /// line is dirty.
    pub fn next_dirty(&mut self) -> Option<Victim> {
        loop {
            let place = self.written.pop_front()?;
            self.array.unlist(place);
            // The dirty line of the place may have gone since.
            if let Some(victim) = self.clean(place) {
                return Some(victim);
            }
        }
    }

    /// Forgets every line, dirty or not.
    ///
    /// # Panics
    /// If a fetch is in flight.
    pub fn clear(&mut self) {
        for place in (0..self.places()).map(super::Place) {
            assert!(!self.array.is_fetching(place), "{place:?} is fetched");
            self.array.free(place);
            self.array.unlist(place);
        }
        self.written.clear();
    }
}
