//! How far it is, on the standard error: a bar at a terminal, nothing in a log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ethermem_sim::scenario::Scenario;
use ethermem_sim::workload::WorkloadConfig;
use indicatif::{ProgressBar, ProgressStyle};

/// Messages that have ended, over all runs of a command.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar up to `messages`, or a count where nobody knows how many there will be.
    pub(crate) fn of_messages(messages: Option<u64>) -> Progress {
        let (bar, template) = match messages {
            Some(total) => (
                ProgressBar::new(total),
                "{msg} {wide_bar} {human_pos}/{human_len} messages, {eta} left",
            ),
            None => (ProgressBar::new_spinner(), "{msg} {human_pos} messages, {per_sec}"),
        };
        let style = ProgressStyle::with_template(template).expect("a constant template");
        bar.set_style(style.progress_chars("━╸ "));
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar }
    }

    /// What is being done.
    pub(crate) fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    /// A line of its own, whatever the bar does.
    pub(crate) fn note(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    pub(crate) fn ended(&self) -> u64 {
        self.bar.position()
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// One run's share of the progress: runs say how many messages have ended since their start.
pub(crate) struct Share<'p> {
    progress: &'p Progress,
    last: AtomicU64,
}

impl<'p> Share<'p> {
    pub(crate) fn of(progress: &'p Progress) -> Share<'p> {
        Share { progress, last: AtomicU64::new(0) }
    }

    pub(crate) fn ended(&self, messages: u64) {
        let last = self.last.swap(messages, Ordering::Relaxed);
        self.progress.bar.inc(messages - last);
    }
}

/// How many messages a scenario has, where it says so.
pub(crate) fn messages_of(scenario: &Scenario) -> Option<u64> {
    match &scenario.workload {
        WorkloadConfig::Poisson(poisson) => Some(poisson.messages),
        WorkloadConfig::Trace(_) => None,
    }
}
