//! The interface by which a face (the command, Python) shows an experiment in progress.

/// Expected amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This many messages; `None` if a trace is read to its end.
    Messages(Option<u64>),
    /// Several runs.
    Runs {
        /// Cost of all runs together, in the unit of [`Progress::advance`].
        cost: u64,
        /// Number of runs.
        runs: usize,
    },
}

/// The caller of an experiment.
pub trait Face: Sync {
    /// Begins to show the progress of the runs, until the returned value is dropped.
    fn progress(&self, expected: Expected) -> Box<dyn Progress>;

    /// Shows one line about the experiment, apart from its results.
    fn note(&self, line: &str);
}

/// Progress of an experiment's runs.
pub trait Progress: Sync {
    /// Adds `cost` to the work done.
    fn advance(&self, cost: u64);

    /// Counts one more finished run.
    fn run_ended(&self);
}

/// A face that shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Face for Silent {
    fn progress(&self, _: Expected) -> Box<dyn Progress> {
        Box::new(Silent)
    }

    fn note(&self, _: &str) {}
}

impl Progress for Silent {
    fn advance(&self, _: u64) {}

    fn run_ended(&self) {}
}
