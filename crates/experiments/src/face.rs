//! What a face shows of an experiment while it runs.

/// How much an experiment will run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This many messages; `None` where a trace is read to its end.
    Messages(Option<u64>),
    /// Several runs.
    Runs {
        /// What all runs cost together, in the unit of [`Progress::advance`].
        cost: u64,
        /// How many runs there are.
        runs: usize,
    },
}

/// The caller of an experiment.
pub trait Face: Sync {
    /// Begins to show how far the runs are, until the returned value is dropped.
    fn progress(&self, expected: Expected) -> Box<dyn Progress>;

    /// Shows one line about the experiment, beside its results.
    fn note(&self, line: &str);
}

/// How far the runs of an experiment are.
pub trait Progress: Sync {
    /// The runs have done this much more.
    fn advance(&self, cost: u64);

    /// One more run has ended.
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
