//! YCSB's core workloads: operations, their shares, and the distribution over records.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::zipfian::{Latest, ScrambledZipfian};
use crate::draw::Draws;

/// Longest scan of workload E in records; lengths are uniform from 1.
pub const SCAN_RECORDS_MAX: u64 = 100;

/// A core workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Workload {
    /// Update heavy: half reads, half updates.
    A,
    /// Read mostly: 95 % reads, 5 % updates.
    B,
    /// Reads only.
    C,
    /// Read latest: 95 % reads of recent records, 5 % inserts.
    D,
    /// Short ranges: 95 % scans, 5 % inserts.
    E,
    /// Half reads, half read-modify-writes.
    F,
}

/// Distribution of requests over records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// A few records, scattered over all keys, receive most requests.
    Zipfian,
    /// The most recently inserted records receive most requests.
    Latest,
    /// All records are equally likely.
    Uniform,
}

/// Operation on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads the record.
    Read,
    /// Writes a part or all of the record.
    Update,
    /// Inserts a new record.
    Insert,
    /// Reads the record and its successors in key order.
    Scan,
    /// Reads the record, then updates it.
    ReadModifyWrite,
}

/// Shares of operations in YCSB's order, in which a draw is compared with them.
type Shares = [(Action, f64); 2];

impl Workload {
    /// All workloads, in order.
    pub const ALL: [Workload; 6] =
        [Workload::A, Workload::B, Workload::C, Workload::D, Workload::E, Workload::F];

    const fn shares(self) -> Shares {
        match self {
            Workload::A => [(Action::Read, 0.5), (Action::Update, 0.5)],
            Workload::B => [(Action::Read, 0.95), (Action::Update, 0.05)],
            Workload::C => [(Action::Read, 1.0), (Action::Update, 0.0)],
            Workload::D => [(Action::Read, 0.95), (Action::Insert, 0.05)],
            Workload::E => [(Action::Insert, 0.05), (Action::Scan, 0.95)],
            Workload::F => [(Action::Read, 0.5), (Action::ReadModifyWrite, 0.5)],
        }
    }

    /// Share of an action among the operations.
    #[must_use]
    pub fn share(self, action: Action) -> f64 {
        self.shares().iter().filter(|(of, _)| *of == action).map(|(_, share)| share).sum()
    }

    /// The next operation.
    pub fn next(self, draws: &mut Draws) -> Action {
        let mut draw = draws.unit();
        let [first, second] = self.shares();
        draw -= first.1;
        if draw < 0.0 { first.0 } else { second.0 }
    }

    /// Default distribution of requests.
    #[must_use]
    pub const fn distribution(self) -> Distribution {
        match self {
            Workload::D => Distribution::Latest,
            _ => Distribution::Zipfian,
        }
    }

    /// Letter of the workload.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Workload::A => "A",
            Workload::B => "B",
            Workload::C => "C",
            Workload::D => "D",
            Workload::E => "E",
            Workload::F => "F",
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Workload, String> {
        let found = Workload::ALL.into_iter().find(|w| w.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| "must be one of A, B, C, D, E, F".to_owned())
    }
}

impl Action {
    /// Name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Action::Read => "read",
            Action::Update => "update",
            Action::Insert => "insert",
            Action::Scan => "scan",
            Action::ReadModifyWrite => "read-modify-write",
        }
    }

    /// Every action, in the order of results.
    pub const ALL: [Action; 5] =
        [Action::Read, Action::Update, Action::Insert, Action::Scan, Action::ReadModifyWrite];
}

/// Generator of record numbers.
#[derive(Clone, Debug)]
pub(crate) struct Records(Chooser);

#[derive(Clone, Debug)]
enum Chooser {
    Zipfian(ScrambledZipfian),
    Latest(Latest),
    Uniform(u64),
}

impl Records {
    /// A generator over `loaded` records and those that `operations` may insert.
    pub(crate) fn new(
        distribution: Distribution,
        workload: Workload,
        loaded: u64,
        operations: u64,
    ) -> Records {
        Records(match distribution {
            Distribution::Zipfian => {
                // YCSB spreads over twice the expected inserts, and one more.
                let inserts = (operations as f64 * workload.share(Action::Insert) * 2.0) as u64;
                Chooser::Zipfian(ScrambledZipfian::new(loaded + inserts + 1))
            }
            Distribution::Latest => Chooser::Latest(Latest::new(loaded - 1)),
            Distribution::Uniform => Chooser::Uniform(loaded),
        })
    }

    /// The next record, among those up to `last`.
    pub(crate) fn next(&mut self, last: u64, draws: &mut Draws) -> u64 {
        loop {
            let record = match &mut self.0 {
                Chooser::Zipfian(zipfian) => zipfian.next(draws),
                Chooser::Latest(latest) => latest.next(last, draws),
                Chooser::Uniform(records) => draws.below(*records),
            };
            if record <= last {
                return record;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_in_their_shares() {
        let draws_total = 400_000;
        for workload in Workload::ALL {
            let mut draws = Draws::new(9, 0);
            let mut counts = [0_u64; Action::ALL.len()];
            for _ in 0..draws_total {
                counts[workload.next(&mut draws) as usize] += 1;
            }
            for action in Action::ALL {
                let share = workload.share(action);
                let expected = f64::from(draws_total) * share;
                let deviation = (expected * (1.0 - share)).sqrt();
                let off = (counts[action as usize] as f64 - expected).abs();
                assert!(off <= 5.0 * deviation, "{workload} {action:?}: {counts:?}");
            }
        }
    }

    #[test]
    fn a_record_that_is_not_there_yet_is_not_asked_for() {
        let mut draws = Draws::new(5, 0);
        for distribution in [Distribution::Zipfian, Distribution::Latest, Distribution::Uniform] {
            let mut records = Records::new(distribution, Workload::D, 10, 100);
            let mut seen = [false; 10];
            for _ in 0..5000 {
                seen[records.next(9, &mut draws) as usize] = true;
            }
            let first = distribution == Distribution::Latest;
            assert!(seen[usize::from(first)..].iter().all(|&seen| seen), "{distribution:?}");
        }
    }

    #[test]
    fn uniform_is_uniform() {
        let (mut records, mut draws) =
            (Records::new(Distribution::Uniform, Workload::C, 100, 0), Draws::new(6, 1));
        let mut counts = [0_f64; 100];
        for _ in 0..100_000 {
            counts[records.next(99, &mut draws) as usize] += 1.0;
        }
        let chi_square: f64 = counts.iter().map(|count| (count - 1000.0).powi(2) / 1000.0).sum();
        // 99 degrees of freedom: mean 99, deviation 14.1.
        assert!((chi_square - 99.0).abs() < 5.0 * 14.1, "{chi_square}");
    }

    #[test]
    fn workloads_have_letters() {
        assert_eq!("f".parse(), Ok(Workload::F));
        assert_eq!("G".parse::<Workload>(), Err("must be one of A, B, C, D, E, F".to_owned()));
    }
}
