//! One cache: sets of ways, least recently used first out.

use std::fmt;
use std::str::FromStr;

use crate::LINE_BYTES;

/// Largest size of a cache in bytes.
pub const GEOMETRY_BYTES_MAX: u64 = 1 << 30;
/// Largest number of ways.
pub const WAYS_MAX: u64 = 64;

/// Size and ways of a cache. As text: `32KiB/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    bytes: u64,
    ways: u64,
}

impl Geometry {
    /// A cache of `bytes` with `ways` lines in each set.
    ///
    /// # Errors
    /// One line with what was found and what is allowed.
    pub fn new(bytes: u64, ways: u64) -> Result<Geometry, String> {
        if !(1..=WAYS_MAX).contains(&ways) {
            return Err(format!("{ways} ways: must be 1 to {WAYS_MAX}"));
        }
        let set_bytes = ways * LINE_BYTES;
        if !bytes.is_multiple_of(set_bytes) || !(set_bytes..=GEOMETRY_BYTES_MAX).contains(&bytes) {
            return Err(format!(
                "{bytes} bytes in {ways} ways: must be a multiple of {set_bytes} up to \
                 {GEOMETRY_BYTES_MAX}"
            ));
        }
        Ok(Geometry { bytes, ways })
    }

    /// Size in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// Number of lines in a set.
    #[must_use]
    pub fn ways(self) -> u64 {
        self.ways
    }

    fn sets(self) -> u64 {
        self.bytes / (self.ways * LINE_BYTES)
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Geometry { bytes, ways } = self;
        match bytes.is_multiple_of(1024) {
            true => write!(f, "{}KiB/{ways}", bytes / 1024),
            false => write!(f, "{bytes}/{ways}"),
        }
    }
}

/// Units of a size, the longest name first.
const UNITS: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("", 1)];

impl FromStr for Geometry {
    type Err = String;

    fn from_str(text: &str) -> Result<Geometry, String> {
        let allowed = || "must be SIZE/WAYS, such as 32KiB/8".to_owned();
        let (size, ways) = text.split_once('/').ok_or_else(allowed)?;
        let ways: u64 = ways.parse().map_err(|_| allowed())?;
        let unit = UNITS.iter().find_map(|(unit, bytes)| Some((size.strip_suffix(unit)?, bytes)));
        let (number, unit) = unit.ok_or_else(allowed)?;
        let number: u64 = number.parse().map_err(|_| allowed())?;
        let bytes = number.checked_mul(*unit).ok_or_else(allowed)?;
        Geometry::new(bytes, ways)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    line: u64,
    is_dirty: bool,
}

/// An entry without a line. Lines are addresses divided by their size, so no line has this number.
const EMPTY: Entry = Entry { line: u64::MAX, is_dirty: false };

/// The tags of a cache. A line is named by its number: its address divided by [`LINE_BYTES`].
#[derive(Clone, Debug)]
pub struct Array {
    ways: usize,
    sets: u64,
    /// The entries set by set; within a set the most recently used is the first.
    entries: Vec<Entry>,
}

impl Array {
    /// An empty cache.
    #[must_use]
    pub fn new(geometry: Geometry) -> Array {
        let ways = geometry.ways as usize;
        let sets = geometry.sets();
        Array { ways, sets, entries: vec![EMPTY; ways * sets as usize] }
    }

    fn set(&mut self, line: u64) -> &mut [Entry] {
        let first = (line % self.sets) as usize * self.ways;
        &mut self.entries[first..first + self.ways]
    }

    /// True if the cache has the line. It is then the most recently used of its set, and dirty if
    /// it was or `dirties` is set.
    pub fn touch(&mut self, line: u64, dirties: bool) -> bool {
        let set = self.set(line);
        let Some(way) = set.iter().position(|entry| entry.line == line) else { return false };
        set[..=way].rotate_right(1);
        set[0].is_dirty |= dirties;
        true
    }

    /// True if the cache has the line. Nothing changes.
    #[must_use]
    pub fn has(&self, line: u64) -> bool {
        let first = (line % self.sets) as usize * self.ways;
        self.entries[first..first + self.ways].iter().any(|entry| entry.line == line)
    }

    /// Puts a line that the cache does not have into it. Returns the least recently used line of
    /// the set, if it had to go and was dirty.
    pub fn fill(&mut self, line: u64, is_dirty: bool) -> Option<u64> {
        debug_assert!(!self.has(line), "line {line} is there already");
        let set = self.set(line);
        set.rotate_right(1);
        let victim = std::mem::replace(&mut set[0], Entry { line, is_dirty });
        victim.is_dirty.then_some(victim.line)
    }

    /// Number of lines that are dirty.
    #[must_use]
    pub fn dirty_lines(&self) -> u64 {
        self.entries.iter().filter(|entry| entry.is_dirty).count() as u64
    }

    /// The lines that are dirty.
    pub fn dirty(&self) -> impl Iterator<Item = u64> {
        self.entries.iter().filter(|entry| entry.is_dirty).map(|entry| entry.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometry_is_read_as_it_is_written() {
        for (text, bytes, ways) in
            [("32KiB/8", 32 << 10, 8), ("1408KiB/11", 1408 << 10, 11), ("64/1", 64, 1)]
        {
            let read: Geometry = text.parse().unwrap();
            assert_eq!((read.bytes(), read.ways(), read.to_string()), (bytes, ways, text.into()));
        }
        assert_eq!("1MiB/16".parse::<Geometry>().unwrap().to_string(), "1024KiB/16");
        for wrong in ["", "32KiB", "32KiB/", "/8", "x/8", "32KB/8", "-1/8", "1.5MiB/8"] {
            assert_eq!(
                wrong.parse::<Geometry>(),
                Err("must be SIZE/WAYS, such as 32KiB/8".to_owned()),
                "{wrong}"
            );
        }
        for (wrong, what) in [
            ("32KiB/0", "0 ways: must be 1 to 64"),
            ("32KiB/65", "65 ways: must be 1 to 64"),
            ("100/1", "100 bytes in 1 ways: must be a multiple of 64 up to 1073741824"),
            ("0/2", "0 bytes in 2 ways: must be a multiple of 128 up to 1073741824"),
            ("2GiB/8", "2147483648 bytes in 8 ways: must be a multiple of 512 up to 1073741824"),
        ] {
            assert_eq!(wrong.parse::<Geometry>(), Err(what.to_owned()));
        }
        assert!(format!("{}GiB/8", u64::MAX).parse::<Geometry>().is_err());
    }

    #[test]
    fn the_least_recently_used_line_of_a_set_goes() {
        // Two sets of two ways: lines of one parity share a set.
        let mut cache = Array::new(Geometry::new(256, 2).unwrap());
        assert_eq!(cache.fill(0, true), None);
        assert_eq!(cache.fill(2, false), None);
        assert!(cache.touch(0, false), "line 0 is now used after line 2");
        assert_eq!(cache.fill(4, false), None, "line 2 goes, and was clean");
        assert!(!cache.has(2) && cache.has(0) && cache.has(4));
        assert_eq!(cache.fill(6, false), Some(0), "line 0 was dirty");
        assert_eq!(cache.fill(1, true), None, "another set");
        assert!(cache.touch(6, true));
        assert_eq!(cache.dirty_lines(), 2);
        assert_eq!(cache.dirty().collect::<Vec<_>>(), [6, 1]);
        assert!(!cache.touch(0, true), "it is gone");
    }
}
