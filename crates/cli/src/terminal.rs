//! Progress of an experiment: a bar on a terminal, few lines in a log.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ethermem_experiments::{Expected, Face, Progress, Runner, threads_default};
use indicatif::{ProgressBar, ProgressStyle};

use crate::interrupt;
use crate::output::say;

/// A runner for the command as it was typed, on this many threads.
pub(crate) fn runner(threads: Option<u16>) -> Runner<'static> {
    // A word that is not UTF-8 is shown approximately.
    let typed = std::env::args_os().skip(1);
    Runner {
        threads: threads.map_or_else(threads_default, usize::from),
        interrupt: interrupt::flag(),
        commit: option_env!("ETHERMEM_COMMIT"),
        words: typed.map(|word| word.to_string_lossy().into_owned()).collect(),
        face: &Terminal,
    }
}

/// The face on the standard error.
pub(crate) struct Terminal;

impl Face for Terminal {
    fn progress(&self, expected: Expected) -> Box<dyn Progress> {
        Box::new(match expected {
            Expected::Messages(messages) => Bar::of_messages(messages),
            Expected::Runs { cost, runs } => Bar::of_runs(cost, runs),
        })
    }

    fn note(&self, line: &str) {
        say(line);
    }
}

/// Progress over all runs of a command. The bar is removed on drop, before further output.
struct Bar {
    bar: ProgressBar,
    runs: Option<Runs>,
}

/// Runs for the lines of a log, where there is no terminal.
struct Runs {
    expected: usize,
    ended: AtomicUsize,
    /// Seconds from the start to the last line.
    told_s: AtomicU64,
}

/// Seconds between two lines of a log in which no run ends.
const SILENCE_S: u64 = 20;

impl Bar {
    /// A bar up to `messages`, or a counter if their number is unknown.
    fn of_messages(messages: Option<u64>) -> Bar {
        let (bar, template) = match messages {
            Some(total) => {
                (ProgressBar::new(total), "{wide_bar} {human_pos}/{human_len} messages, {eta} left")
            }
            None => (ProgressBar::new_spinner(), "{spinner} {human_pos} messages, {per_sec}"),
        };
        Bar { bar: styled(bar, template), runs: None }
    }

    /// A bar over `runs` that together cost `cost`.
    fn of_runs(cost: u64, runs: usize) -> Bar {
        let bar = styled(ProgressBar::new(cost), "{msg} {wide_bar} {percent} %, {eta} left");
        bar.set_message(format!("0/{runs} runs"));
        let (ended, told_s) = (AtomicUsize::new(0), AtomicU64::new(0));
        Bar { bar, runs: Some(Runs { expected: runs, ended, told_s }) }
    }

    /// Estimated remaining time in seconds, from the speed so far.
    fn left_s(&self) -> f64 {
        let done = self.bar.position() as f64;
        let all = self.bar.length().unwrap_or_default() as f64;
        self.bar.elapsed().as_secs_f64() * (all - done).max(0.0) / done.max(1.0)
    }

    fn tell(&self, runs: &Runs, ended: usize) {
        runs.told_s.store(self.bar.elapsed().as_secs(), Ordering::Relaxed);
        say(format_args!("{ended} of {} runs, {:.0} s left", runs.expected, self.left_s()));
    }
}

impl Progress for Bar {
    fn advance(&self, cost: u64) {
        self.bar.inc(cost);
        let Some(runs) = self.runs.as_ref().filter(|_| self.bar.is_hidden()) else { return };
        let told_s = runs.told_s.load(Ordering::Relaxed);
        if self.bar.elapsed().as_secs() >= told_s + SILENCE_S {
            self.tell(runs, runs.ended.load(Ordering::Relaxed));
        }
    }

    fn run_ended(&self) {
        let Some(runs) = &self.runs else { return };
        let ended = runs.ended.fetch_add(1, Ordering::Relaxed) + 1;
        self.bar.set_message(format!("{ended}/{} runs", runs.expected));
        let tenth = |ended: usize| ended * 10 / runs.expected;
        if self.bar.is_hidden() && tenth(ended) > tenth(ended - 1) {
            self.tell(runs, ended);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("a constant template");
    bar.set_style(style.progress_chars("━╸ "));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
