//! Loads and stores under way of one node: the processor's structure permits so many (section 2.3:
//! "a maximum of 64 instructions").

/// Loads and stores under way, as in the paper.
pub const LOADS_MAX: u32 = 64;

/// The loads under way of one node, and those that wait for a place.
#[derive(Clone, Copy, Debug)]
pub struct LoadWindow {
    max: u32,
    under_way: u32,
    /// Lines of the copy that are still to be loaded.
    waiting: u64,
}

impl LoadWindow {
    /// A node that may have so many loads under way.
    ///
    /// # Panics
    /// If it may have none.
    #[must_use]
    pub const fn new(max: u32) -> LoadWindow {
        assert!(max > 0, "a node without loads reads nothing");
        LoadWindow { max, under_way: 0, waiting: 0 }
    }

    /// Adds lines to be loaded. Returns how many loads go now.
    pub fn ask(&mut self, lines: u64) -> u32 {
        self.waiting += lines;
        self.start()
    }

    /// A load has ended. Returns how many go now: 1, or 0 if none waits.
    ///
    /// # Panics
    /// If none is under way.
    pub fn end(&mut self) -> u32 {
        assert!(self.under_way > 0, "a load has ended that was not under way");
        self.under_way -= 1;
        self.start()
    }

    fn start(&mut self) -> u32 {
        let room = u64::from(self.max - self.under_way);
        let go = room.min(self.waiting) as u32;
        self.under_way += go;
        self.waiting -= u64::from(go);
        go
    }

    /// Loads under way, and lines that wait.
    #[must_use]
    pub const fn counts(&self) -> (u32, u64) {
        (self.under_way, self.waiting)
    }

    /// Lines of a range of bytes: what a copy of it loads.
    #[must_use]
    pub const fn lines(address: u64, bytes: u64) -> u64 {
        let line = crate::address::LINE_BYTES;
        if bytes == 0 { 0 } else { (address + bytes - 1) / line - address / line + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_64_loads_are_under_way_and_all_end() {
        let mut window = LoadWindow::new(LOADS_MAX);
        assert_eq!(window.ask(4096 / 64 + 1), 64);
        assert_eq!(window.ask(1), 0);
        assert_eq!(window.counts(), (64, 2));
        let started: u32 = (0..66).map(|_| window.end()).sum();
        assert_eq!((started, window.counts()), (2, (0, 0)));
    }

    #[test]
    fn a_range_touches_these_lines() {
        let cases = [(0, 0, 0), (0, 1, 1), (63, 1, 1), (63, 2, 2), (0, 4096, 64), (1, 4096, 65)];
        for (address, bytes, lines) in cases {
            assert_eq!(LoadWindow::lines(address, bytes), lines, "{address} {bytes}");
        }
    }
}
