//! For how long the threads of a run had a processor, and for how long they were ready and had
//! none because others did: the kernel's own account (`schedstat`).

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::peer::Peer;

const PAUSE: Duration = Duration::from_millis(10);
/// Looks take at most this fraction of the time (1 over it).
const SHARE: u32 = 50;
/// A program whose threads ran or were ready for more than this multiple of the time had several
/// at once.
const PARALLEL: f64 = 1.1;

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    ran: u64,
    ready: u64,
}

impl Times {
    /// Parses a `schedstat` file.
    fn parse(text: &str) -> Option<Times> {
        let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
        Some(Times { ran: words.next()??, ready: words.next()?? })
    }

    fn read(path: &str) -> Option<Times> {
        Times::parse(&std::fs::read_to_string(path).ok()?)
    }

    fn plus(self, other: Times) -> Times {
        Times { ran: self.ran + other.ran, ready: self.ready + other.ready }
    }

    fn since(self, before: Times) -> Times {
        Times {
            ran: self.ran.saturating_sub(before.ran),
            ready: self.ready.saturating_sub(before.ready),
        }
    }

    fn total(self) -> f64 {
        (self.ran + self.ready) as f64 / 1e9
    }
}

fn of_this_thread() -> Option<Times> {
    Times::read("/proc/thread-self/schedstat")
}

/// What the threads of a run have had so far.
#[derive(Debug)]
pub(crate) struct Processors {
    /// The latest times of each thread, by process and thread.
    threads: FxHashMap<(i32, i32), Times>,
    /// Times of threads that ended and whose number another one has now.
    ended: Times,
    began: Option<Times>,
    next: Instant,
}

impl Processors {
    /// Begins the account of a run, on the pager's thread.
    pub(crate) fn new() -> Processors {
        Processors {
            threads: FxHashMap::default(),
            ended: Times::default(),
            began: of_this_thread(),
            next: Instant::now(),
        }
    }

    /// Looks at the threads of all processes, if it is time to. A process that ends loses what it
    /// had since the last look.
    pub(crate) fn look<'p>(&mut self, now: Instant, processes: impl Iterator<Item = &'p Peer>) {
        if now < self.next {
            return;
        }
        for peer in processes {
            for thread in peer.threads() {
                let thread = thread.as_raw();
                if let Some(times) = Times::read(&peer.path(&format!("task/{thread}/schedstat"))) {
                    self.saw((peer.number().as_raw(), thread), times);
                }
            }
        }
        let end = Instant::now();
        self.next = end + PAUSE.max((end - now) * SHARE);
    }

    fn saw(&mut self, thread: (i32, i32), times: Times) {
        let known = self.threads.entry(thread).or_default();
        if times.ran < known.ran {
            self.ended = self.ended.plus(*known);
        }
        *known = times;
    }

    /// The account of the run; `None` if the kernel keeps none.
    pub(crate) fn account(&self) -> Option<Account> {
        let pager = of_this_thread()?.since(self.began?);
        let program = self.threads.values().fold(self.ended, |sum, times| sum.plus(*times));
        (program.ran > 0).then_some(Account { program, pager })
    }
}

/// What program and pager had of the processors in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    program: Times,
    pager: Times,
}

impl Account {
    /// The time that a run of `seconds` would have taken had no other program used the processors.
    /// The run is taken for a chain of work, in which those that are ready wait in turn. Where
    /// several threads run or are ready at once, all are taken to lose alike.
    pub(crate) fn quiet_seconds(&self, seconds: f64) -> f64 {
        let all = self.program.plus(self.pager);
        let busy = all.total().min(seconds);
        seconds - busy * all.ready as f64 / ((all.ran + all.ready) as f64).max(1.0)
    }

    /// True if several threads of the program ran, or were ready, at once.
    pub(crate) fn is_parallel(&self, seconds: f64) -> bool {
        self.program.total() > seconds * PARALLEL
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use nix::unistd::Pid;

    use super::{Account, Processors, Times};
    use crate::peer::Peer;

    const S: u64 = 1_000_000_000;

    fn account(program: (u64, u64), pager: (u64, u64)) -> Account {
        let times = |(ran, ready)| Times { ran: ran * S, ready: ready * S };
        Account { program: times(program), pager: times(pager) }
    }

    #[test]
    fn what_others_took_is_not_in_the_quiet_time() {
        // It ran 4 s, its pager 2 s, and slept 1 s; others had the processors for 13 s.
        let chain = account((4, 8), (2, 5));
        assert!((chain.quiet_seconds(20.0) - 7.0).abs() < 1e-9 && !chain.is_parallel(20.0));
        // Alone it takes its own time.
        assert!((account((4, 0), (2, 0)).quiet_seconds(7.0) - 7.0).abs() < 1e-9);
        // Two threads on two processors, each of which another program has half of the time.
        let two = account((10, 10), (0, 0));
        assert!((two.quiet_seconds(10.0) - 5.0).abs() < 1e-9 && two.is_parallel(10.0));
    }

    #[test]
    fn files_of_the_kernel_are_read_and_others_are_not() {
        assert_eq!(Times::parse("12 34 5\n"), Some(Times { ran: 12, ready: 34 }));
        for text in ["", "12", "12 x 5", "-1 2 3"] {
            assert_eq!(Times::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_thread_that_has_the_number_of_an_ended_one_does_not_replace_its_times() {
        let mut processors = Processors::new();
        for ran in [3, 5, 1, 2] {
            processors.saw((1, 7), Times { ran, ready: 10 * ran });
        }
        processors.saw((2, 7), Times { ran: 100, ready: 0 });
        let account = processors.account().expect("the kernel keeps accounts");
        assert_eq!(account.program, Times { ran: 107, ready: 70 });
    }

    #[test]
    fn a_process_that_computes_is_seen_to() {
        let mut processors = Processors::new();
        let this = Peer::of_number(Pid::this()).expect("this process lives");
        let began = Instant::now();
        while processors.account().is_none_or(|account| account.program.ran < 20_000_000) {
            processors.look(Instant::now(), std::iter::once(&this));
            assert!(began.elapsed().as_secs() < 60, "{processors:?}");
        }
    }
}
