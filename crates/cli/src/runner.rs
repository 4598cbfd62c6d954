//! Runs of the simulator, one or many, on threads; the results do not depend on how many.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ethermem_sim::metrics::RunResult;
use ethermem_sim::output::{MessageWriter, Timeline};
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::run::{RunOptions, run, shell_line};
use ethermem_sim::scenario::Scenario;

use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Progress, Share};
use crate::selection::Selected;

/// Commit that the program is built from, where it is known.
pub(crate) const COMMIT: Option<&str> = option_env!("ETHERMEM_COMMIT");

/// One scenario on one fabric.
pub(crate) struct Job<'a> {
    pub(crate) fabric: &'static FabricEntry,
    pub(crate) scenario: &'a Scenario,
    /// What people call the scenario.
    pub(crate) scenario_name: &'a str,
    /// What tells it from other runs of its fabric.
    pub(crate) label: String,
    /// Repeats it.
    pub(crate) command: String,
    /// What it adds to the progress when it is done.
    pub(crate) cost: u64,
    /// Whether its result has the way of every message.
    pub(crate) ways: bool,
}

impl<'a> Job<'a> {
    /// What was selected, on `fabric`; the command as it was typed repeats it.
    pub(crate) fn typed(selected: &'a Selected, fabric: &'static FabricEntry) -> Job<'a> {
        let scenario = &selected.scenario;
        Job {
            fabric,
            scenario,
            scenario_name: &selected.name,
            label: selected.label(),
            command: typed_command(scenario.run.seed),
            cost: scenario.messages().unwrap_or(0),
            ways: false,
        }
    }

    /// Runs it on this thread.
    pub(crate) fn run(
        &self,
        messages: Option<MessageWriter>,
        timeline: Option<Timeline>,
        progress: &Progress,
    ) -> Result<RunResult, Failure> {
        let share = Share::of(progress, self.cost, self.scenario.messages());
        let options = RunOptions {
            fabric: self.fabric,
            label: self.label.clone(),
            scenario_name: self.scenario_name.to_owned(),
            commit: COMMIT.map(str::to_owned),
            interrupt: interrupt::flag(),
            progress: &|ended| share.ended(ended),
            messages,
            timeline,
            ways: self.ways,
        };
        run(self.scenario, options).map_err(|failure| Failure::of_run(failure, &self.command))
    }
}

/// Runs all jobs on at most `threads` threads, in the order given, and returns their results in it.
/// The first failure ends the rest.
pub(crate) fn run_all(
    jobs: &[Job<'_>],
    threads: usize,
    progress: &Progress,
) -> Result<Vec<RunResult>, Failure> {
    run_each(jobs, threads, progress, |_, result| result)
}

/// As [`run_all`], but returns what `take` makes of each job's end, in the thread that ran it and
/// as soon as it ended.
pub(crate) fn run_each<T: Send>(
    jobs: &[Job<'_>],
    threads: usize,
    progress: &Progress,
    take: impl Fn(usize, Result<RunResult, Failure>) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<T, Failure>>>> =
        jobs.iter().map(|_| Mutex::default()).collect();
    let work = || {
        while let Some(at) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < jobs.len())
        {
            if interrupt::is_set() {
                break;
            }
            let result = take(at, jobs[at].run(None, None, progress));
            match &result {
                Ok(_) => progress.run_ended(),
                Err(_) => interrupt::end_runs(),
            }
            *results[at].lock().expect("no thread panics with it") = Some(result);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(jobs.len()) {
            scope.spawn(work);
        }
        work();
    });
    // All results, or the first failure that is not an end which another one forced.
    let mut done = Vec::new();
    for result in results {
        match result.into_inner().expect("no thread panics with it") {
            Some(Ok(result)) => done.push(result),
            Some(Err(Failure::Interrupted(_))) | None => {}
            Some(Err(failure)) => return Err(failure),
        }
    }
    if done.len() < jobs.len() {
        return Err(Failure::Interrupted(format!("after {} of {} runs", done.len(), jobs.len())));
    }
    Ok(done)
}

/// Threads that the machine runs at once.
pub(crate) fn threads_default() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The command as it was typed, for a shell, with the seed it used.
pub(crate) fn typed_command(seed: u64) -> String {
    // Where a word is not UTF-8, what is said of it is as near as a line of text can be.
    let typed = std::env::args_os().skip(1);
    let mut words: Vec<String> = typed.map(|word| word.to_string_lossy().into_owned()).collect();
    if !words.iter().any(|word| word == "--seed" || word.starts_with("--seed=")) {
        words.extend(["--seed".to_owned(), seed.to_string()]);
    }
    shell_line(words.iter().map(String::as_str))
}
