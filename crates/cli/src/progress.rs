//! How far it is, on the standard error: a bar at a terminal, few lines in a log.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::say;

/// What has been done, over all runs of a command.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Runs that are expected and that have ended; lines in a log when there is no terminal.
    runs: Option<(usize, AtomicUsize)>,
}

impl Progress {
    /// A bar up to `messages`, or a count where nobody knows how many there will be.
    pub(crate) fn of_messages(messages: Option<u64>) -> Progress {
        let (bar, template) = match messages {
            Some(total) => {
                (ProgressBar::new(total), "{wide_bar} {human_pos}/{human_len} messages, {eta} left")
            }
            None => (ProgressBar::new_spinner(), "{spinner} {human_pos} messages, {per_sec}"),
        };
        Progress { bar: styled(bar, template), runs: None }
    }

    /// A bar over `runs` that together cost `cost`.
    pub(crate) fn of_runs(cost: u64, runs: usize) -> Progress {
        let bar = styled(ProgressBar::new(cost), "{msg} {wide_bar} {percent} %, {eta} left");
        bar.set_message(format!("0/{runs} runs"));
        Progress { bar, runs: Some((runs, AtomicUsize::new(0))) }
    }

    /// One more run is done.
    pub(crate) fn run_ended(&self) {
        let Some((runs, ended)) = &self.runs else { return };
        let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
        self.bar.set_message(format!("{ended}/{runs} runs"));
        let tenth = |ended: usize| ended * 10 / runs;
        if self.bar.is_hidden() && tenth(ended) > tenth(ended - 1) {
            say(format_args!("{ended} of {runs} runs, {:.0} s left", self.left_s()));
        }
    }

    /// Seconds that the rest takes, if it costs what was done so far.
    fn left_s(&self) -> f64 {
        let done = self.bar.position() as f64;
        let all = self.bar.length().unwrap_or_default() as f64;
        self.bar.elapsed().as_secs_f64() * (all - done).max(0.0) / done.max(1.0)
    }

    /// Takes the bar away, for what is printed next.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("a constant template");
    bar.set_style(style.progress_chars("━╸ "));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// One run's share of the progress: runs say how many messages have ended since their start.
pub(crate) struct Share<'p> {
    progress: &'p Progress,
    cost_per_message: f64,
    /// Cost that the bar has of it.
    done: AtomicU64,
}

impl<'p> Share<'p> {
    /// The share of a run that costs `cost` for `messages`; where nobody knows how many, each
    /// counts one.
    pub(crate) fn of(progress: &'p Progress, cost: u64, messages: Option<u64>) -> Share<'p> {
        let cost_per_message = messages.map_or(1.0, |messages| cost as f64 / messages as f64);
        Share { progress, cost_per_message, done: AtomicU64::new(0) }
    }

    pub(crate) fn ended(&self, messages: u64) {
        let done = (messages as f64 * self.cost_per_message) as u64;
        let before = self.done.swap(done, Ordering::Relaxed);
        self.progress.bar.inc(done.saturating_sub(before));
    }
}
