//! Runs of the simulator, one or many, on threads. The results do not depend on the number of
//! threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use ethermem_sim::metrics::RunResult;
use ethermem_sim::output::{MessageWriter, Timeline};
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::run::{RunOptions, run, shell_line};
use ethermem_sim::scenario::Scenario;

use crate::error::Error;
use crate::face::{Expected, Face, Progress};
use crate::selection::Selected;

/// Execution of an experiment's runs, and its caller.
pub struct Runner<'a> {
    /// Largest number of concurrent runs.
    pub threads: usize,
    /// Ends all runs when it is set. A failed run sets it for the others.
    pub interrupt: &'a AtomicBool,
    /// Commit that the program is built from, if known.
    pub commit: Option<&'a str>,
    /// Words of the command that repeats the experiment, without `ethermem`.
    pub words: Vec<String>,
    /// Shows progress and notes.
    pub face: &'a dyn Face,
}

impl Runner<'_> {
    /// The command that repeats the experiment, for a shell.
    #[must_use]
    pub fn command(&self) -> String {
        shell_line(self.words.iter().map(String::as_str))
    }

    /// The command that repeats the experiment with the seed that it used.
    #[must_use]
    pub fn command_with_seed(&self, seed: u64) -> String {
        let mut words = self.words.clone();
        if !words.iter().any(|word| word == "--seed" || word.starts_with("--seed=")) {
            words.extend(["--seed".to_owned(), seed.to_string()]);
        }
        shell_line(words.iter().map(String::as_str))
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Runs one job on this thread, and shows how many of its messages have completed.
    pub(crate) fn run_one(
        &self,
        job: &Job<'_>,
        messages: Option<MessageWriter>,
        timeline: Option<Timeline>,
    ) -> Result<RunResult, Error> {
        let progress = self.face.progress(Expected::Messages(job.scenario.messages()));
        job.run(self, messages, timeline, &*progress)
    }

    /// Runs all jobs in the given order, and returns their results in that order. The first failure
    /// ends the rest.
    pub(crate) fn run_all(
        &self,
        jobs: &[Job<'_>],
        expected: Expected,
    ) -> Result<Vec<RunResult>, Error> {
        self.run_each(jobs, expected, |_, result| result)
    }

    /// As [`Runner::run_all`], but calls `take` on each job's result, on the thread that ran the
    /// job and as soon as it ended.
    pub(crate) fn run_each<T: Send>(
        &self,
        jobs: &[Job<'_>],
        expected: Expected,
        take: impl Fn(usize, Result<RunResult, Error>) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        self.map(jobs, expected, |at, job, progress| take(at, job.run(self, None, None, progress)))
    }

    /// What `make` makes of each item, on as many threads as there are, in the order of the items.
    /// The first failure ends the rest.
    pub(crate) fn map<I: Sync, T: Send>(
        &self,
        items: &[I],
        expected: Expected,
        make: impl Fn(usize, &I, &dyn Progress) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let progress = self.face.progress(expected);
        let next = AtomicUsize::new(0);
        let results: Vec<Mutex<Option<Result<T, Error>>>> =
            items.iter().map(|_| Mutex::default()).collect();
        let work = || {
            while let Some(at) =
                Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < items.len())
            {
                if self.is_interrupted() {
                    break;
                }
                let result = make(at, &items[at], &*progress);
                match &result {
                    Ok(_) => progress.run_ended(),
                    Err(_) => self.interrupt.store(true, Ordering::Relaxed),
                }
                *results[at].lock().expect("no thread panics with it") = Some(result);
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.threads.min(items.len()) {
                scope.spawn(work);
            }
            work();
        });
        let results = results.into_iter();
        all_or_first_failure(
            results.map(|result| result.into_inner().expect("no thread panics with it")),
            items.len(),
        )
    }
}

/// All results, or the first failure that another one did not cause.
fn all_or_first_failure<T>(
    results: impl Iterator<Item = Option<Result<T, Error>>>,
    runs: usize,
) -> Result<Vec<T>, Error> {
    let mut done = Vec::new();
    for result in results {
        match result {
            Some(Ok(result)) => done.push(result),
            Some(Err(Error::Interrupted(_))) | None => {}
            Some(Err(error)) => return Err(error),
        }
    }
    if done.len() < runs {
        return Err(Error::Interrupted(format!("after {} of {runs} runs", done.len())));
    }
    Ok(done)
}

impl Expected {
    /// The costs of these jobs.
    pub(crate) fn of(jobs: &[Job<'_>]) -> Expected {
        Expected::Runs { cost: jobs.iter().map(|job| job.cost).sum(), runs: jobs.len().max(1) }
    }
}

/// One scenario on one fabric.
pub(crate) struct Job<'a> {
    pub(crate) fabric: &'static FabricEntry,
    pub(crate) scenario: &'a Scenario,
    /// Name of the scenario for people.
    pub(crate) scenario_name: &'a str,
    /// Label that distinguishes it from other runs of its fabric.
    pub(crate) label: String,
    /// Command that repeats it.
    pub(crate) command: String,
    /// Amount that it adds to the progress.
    pub(crate) cost: u64,
    /// True if its result includes the path of every message.
    pub(crate) ways: bool,
}

impl<'a> Job<'a> {
    /// A job for the selection, on `fabric`. The runner's command repeats it.
    pub(crate) fn of(
        selected: &'a Selected,
        fabric: &'static FabricEntry,
        runner: &Runner<'_>,
    ) -> Job<'a> {
        let scenario = &selected.scenario;
        Job {
            fabric,
            scenario,
            scenario_name: &selected.name,
            label: selected.label(),
            command: runner.command_with_seed(scenario.run.seed),
            cost: scenario.messages().unwrap_or(0),
            ways: false,
        }
    }

    /// Runs the job on this thread.
    fn run(
        &self,
        runner: &Runner<'_>,
        messages: Option<MessageWriter>,
        timeline: Option<Timeline>,
        progress: &dyn Progress,
    ) -> Result<RunResult, Error> {
        let share = Share::of(progress, self.cost, self.scenario.messages());
        let options = RunOptions {
            fabric: self.fabric,
            label: self.label.clone(),
            scenario_name: self.scenario_name.to_owned(),
            commit: runner.commit.map(str::to_owned),
            interrupt: runner.interrupt,
            progress: &|ended| share.ended(ended),
            messages,
            timeline,
            ways: self.ways,
        };
        run(self.scenario, options).map_err(|failure| Error::of_run(failure, &self.command))
    }
}

/// One run's share of the progress: runs report how many messages have completed since their start.
pub(crate) struct Share<'p> {
    progress: &'p dyn Progress,
    cost_per_message: f64,
    /// Cost that was already added to the progress.
    done: AtomicU64,
}

impl<'p> Share<'p> {
    /// The share of a run that costs `cost` for `messages`; if their number is unknown, each
    /// message costs one.
    pub(crate) fn of(progress: &'p dyn Progress, cost: u64, messages: Option<u64>) -> Share<'p> {
        let cost_per_message = messages.map_or(1.0, |messages| cost as f64 / messages as f64);
        Share { progress, cost_per_message, done: AtomicU64::new(0) }
    }

    pub(crate) fn ended(&self, messages: u64) {
        let done = (messages as f64 * self.cost_per_message) as u64;
        let before = self.done.swap(done, Ordering::Relaxed);
        self.progress.advance(done.saturating_sub(before));
    }
}

/// Default number of threads: as many as the machine runs at once.
#[must_use]
pub fn threads_default() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
pub(crate) mod samples {
    use std::sync::atomic::AtomicBool;

    use super::Runner;
    use crate::face::Silent;

    pub(crate) fn runner() -> Runner<'static> {
        static INTERRUPT: AtomicBool = AtomicBool::new(false);
        let words = vec!["study".to_owned()];
        Runner { threads: 1, interrupt: &INTERRUPT, commit: None, words, face: &Silent }
    }
}
