//! How long threads wait for a network, counted by the times that its pages are due. What else this
//! machine does meanwhile is not in it.

use ethermem_units::Ns;
use rustc_hash::FxHashMap;

/// The waits of one thread.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    ns: u64,
    until: u64,
}

impl Waiting {
    fn wait(&mut self, from: Ns, until: Ns) {
        self.ns += until.0.saturating_sub(from.0.max(self.until));
        self.until = self.until.max(until.0);
    }
}

/// The waits of all threads of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    /// By process and thread.
    threads: FxHashMap<(u32, u32), Waiting>,
    any: Waiting,
}

impl Waits {
    /// A thread waits from `from` until `until`. Waits come in the order of their beginnings. A
    /// thread that a signal woke, and that asks for the same page again, waits once.
    pub(crate) fn wait(&mut self, process: u32, thread: u32, from: Ns, until: Ns) {
        self.threads.entry((process, thread)).or_default().wait(from, until);
        self.any.wait(from, until);
    }

    /// Time during which at least one thread waited, in seconds.
    pub(crate) fn any_seconds(&self) -> f64 {
        self.any.ns as f64 / 1e9
    }

    /// Time of the thread that waited longest, in seconds.
    pub(crate) fn longest_seconds(&self) -> f64 {
        self.threads.values().map(|waiting| waiting.ns).max().unwrap_or(0) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use ethermem_units::Ns;

    use super::Waits;

    const S: u64 = 1_000_000_000;

    fn seconds(waits: &[(u32, u64, u64)]) -> (f64, f64) {
        let mut all = Waits::default();
        for (thread, from, until) in waits {
            all.wait(1, *thread, Ns(from * S), Ns(until * S));
        }
        (all.any_seconds(), all.longest_seconds())
    }

    #[test]
    fn waits_that_overlap_stop_the_program_once_and_each_thread_for_its_own() {
        assert_eq!(seconds(&[]), (0.0, 0.0));
        assert_eq!(seconds(&[(1, 0, 3), (1, 5, 6)]), (4.0, 4.0), "one thread");
        assert_eq!(seconds(&[(1, 0, 4), (2, 1, 3), (3, 2, 6)]), (6.0, 4.0));
        assert_eq!(seconds(&[(1, 0, 2), (2, 4, 6), (1, 5, 7)]), (5.0, 4.0));
    }

    #[test]
    fn who_asks_again_for_what_is_on_its_way_waits_once() {
        assert_eq!(seconds(&[(1, 0, 4), (1, 2, 4), (1, 3, 5)]), (5.0, 5.0));
    }

    #[test]
    fn threads_of_two_processes_may_have_one_number() {
        let mut waits = Waits::default();
        waits.wait(1, 7, Ns(0), Ns(2 * S));
        waits.wait(2, 7, Ns(S), Ns(4 * S));
        assert_eq!((waits.any_seconds(), waits.longest_seconds()), (4.0, 3.0));
    }
}
