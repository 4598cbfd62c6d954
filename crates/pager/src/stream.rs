//! Detects runs of faults at consecutive addresses, so that the pages after them can be prefetched.

use crate::protocol::PAGE_BYTES;

/// Largest number of pages that one fault brings.
pub(crate) const MOST_PAGES: usize = 32;
const STREAMS: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// The page after the last one that was brought.
    next: u64,
    /// Number of pages that the last fault brought.
    window: usize,
    /// Number of the fault that used it last.
    used: u64,
}

/// The runs of one process. A run that continues doubles its window. A run that stops is forgotten
/// along with its excess prefetch, so that random accesses prefetch nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    streams: [Stream; STREAMS],
    faults: u64,
}

impl Streams {
    /// Number of pages to bring from `page` on, given a fault at `page`.
    pub(crate) fn window(&mut self, page: u64) -> usize {
        self.faults += 1;
        let faults = self.faults;
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.next == page) {
            stream.window = (stream.window * 2).min(MOST_PAGES);
            stream.used = faults;
            return stream.window;
        }
        if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used) {
            *oldest = Stream { next: page + PAGE_BYTES as u64, window: 1, used: faults };
        }
        1
    }

    /// Records that `pages` pages from `page` on were brought.
    pub(crate) fn brought(&mut self, page: u64, pages: usize) {
        let expected = [page, page + PAGE_BYTES as u64];
        let stream = self
            .streams
            .iter_mut()
            .find(|stream| stream.used == self.faults && expected.contains(&stream.next));
        if let Some(stream) = stream {
            stream.next = page + (pages * PAGE_BYTES) as u64;
            stream.window = stream.window.min(pages.max(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_PAGES, Streams};
    use crate::protocol::PAGE_BYTES;

    const PAGE: u64 = PAGE_BYTES as u64;

    #[test]
    fn a_run_doubles_its_window_and_random_faults_bring_one_page() {
        let mut streams = Streams::default();
        let (mut page, mut windows) = (100 * PAGE, Vec::new());
        for _ in 0..8 {
            let window = streams.window(page);
            streams.brought(page, window);
            windows.push(window);
            page += window as u64 * PAGE;
        }
        assert_eq!(windows, [1, 2, 4, 8, 16, 32, MOST_PAGES, MOST_PAGES]);
        for page in [7, 900, 33, 5000].map(|page| page * PAGE) {
            assert_eq!(streams.window(page), 1);
            streams.brought(page, 1);
        }
        assert_eq!(streams.window(page), MOST_PAGES, "the run is not forgotten");
    }
}
