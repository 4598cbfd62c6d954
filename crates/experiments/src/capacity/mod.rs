//! The load that each fabric sustains, and its latency at equal goodput and at an equal share of
//! its capacity.
//!
//! "Slowdown at load 0.8" compares fabrics at different shares of their capacities. So the capacity
//! comes first, and every latency is given with its load.

mod page;
mod search;
mod show;
mod workload;

use std::path::PathBuf;

use ethermem_sim::output::TableStyle;
use ethermem_sim::registry::{FABRICS, FabricEntry};
use ethermem_sim::report::ReportInput;
use ethermem_sim::run::shell_line;
use ethermem_sim::scenario::Setting;
use serde::Serialize;

pub use self::search::{Capacity, Point};
pub use self::workload::{Sizes, workload, workloads};

use self::search::Search;
use crate::error::Error;
use crate::face::Expected;
use crate::folder::Folder;
use crate::runner::Runner;

/// Shares of a link's rate, as data of a node: the goodputs at which latencies are compared.
pub const GOODPUTS: [f64; 3] = [0.15, 0.30, 0.60];
/// Shares of a fabric's own capacity at which latencies are compared.
pub const SHARES: [f64; 2] = [0.50, 0.80];
/// Keys that the search itself sets.
const OWN_KEYS: [&str; 8] = [
    "fabric.kind",
    "workload.kind",
    "workload.load",
    "workload.message_bytes",
    "workload.size_cdf",
    "workload.size_application",
    "workload.messages",
    "run.seed",
];

/// The fabrics and workloads of a search.
#[derive(Clone)]
pub struct Request {
    /// The fabrics, in the order of the results; all of the registry where the list is empty.
    pub fabrics: Vec<&'static FabricEntry>,
    /// The messages; all of [`workloads`] where the list is empty.
    pub workloads: Vec<Sizes>,
    /// Keys of a scenario that describe the network.
    pub settings: Vec<Setting>,
    /// Seed of every run.
    pub seed: u64,
    /// Folder of a page of tables and figures.
    pub out: Option<PathBuf>,
}

/// The capacity of a fabric on a workload, and its latencies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the workload.
    pub workload: String,
    /// Name of the fabric.
    pub fabric: String,
    /// True if the fabric is a bound.
    pub is_bound: bool,
    /// The sustained load; `None` if the fabric does not sustain the least load that is tried.
    pub capacity: Option<Capacity>,
    /// Latencies at [`GOODPUTS`] and at [`SHARES`] of the capacity, in this order.
    pub points: Vec<Point>,
}

/// The results of a search. They serialize to their rows.
pub struct Outcome {
    rows: Vec<Row>,
    page: Option<(Folder, ReportInput)>,
}

impl Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.rows.serialize(serializer)
    }
}

impl Outcome {
    /// One row per workload and fabric.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The tables for people.
    #[must_use]
    pub fn text(&self, style: TableStyle) -> String {
        show::text(&self.rows, style)
    }

    /// Writes the page, if the request has a folder, and returns its path.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written.
    pub fn write(&mut self) -> Result<Option<PathBuf>, Error> {
        let Some((folder, page)) = self.page.take() else { return Ok(None) };
        Ok(Some(folder.write(&self.rows, &page)?))
    }
}

impl Request {
    /// Searches the capacities and measures latencies below them. [`Outcome::write`] writes the
    /// page.
    ///
    /// # Errors
    ///
    /// When a setting is one of the search's own keys, or a run fails or is interrupted.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Outcome, Error> {
        self.check()?;
        let folder = self.out.as_deref().map(Folder::prepare).transpose()?;
        let all: Vec<&'static FabricEntry> = FABRICS.iter().collect();
        let fabrics = if self.fabrics.is_empty() { &all } else { &self.fabrics };
        let every = workloads();
        let workloads = if self.workloads.is_empty() { &every } else { &self.workloads };
        let mut searches = Vec::new();
        for workload in workloads {
            for fabric in fabrics {
                let (settings, seed) = (&self.settings, self.seed);
                searches.push(Search { fabric, workload, settings, seed, runner });
            }
        }
        let expected = Expected::Runs { cost: searches.len() as u64, runs: searches.len() };
        let rows = runner.map(&searches, expected, |_, search, progress| {
            let row = search.run();
            progress.advance(1);
            row
        })?;
        let page =
            folder.map(|folder| (folder, page::page(&rows, self.seed, &self.command(), runner)));
        Ok(Outcome { rows, page })
    }

    /// Repeats the page, into a folder of its own.
    fn command(&self) -> String {
        let mut words = vec!["capacity".to_owned()];
        if !self.fabrics.is_empty() {
            let names: Vec<&str> = self.fabrics.iter().map(|fabric| fabric.name).collect();
            words.extend(["--fabrics".to_owned(), names.join(",")]);
        }
        if !self.workloads.is_empty() {
            let names: Vec<String> = self.workloads.iter().map(Sizes::word).collect();
            words.extend(["--workloads".to_owned(), names.join(",")]);
        }
        let set = self.settings.iter().map(ToString::to_string);
        words.extend(set.flat_map(|setting| ["--set".to_owned(), setting]));
        words.extend(["--seed".to_owned(), self.seed.to_string()]);
        words.extend(["--out", "out/capacity"].map(str::to_owned));
        shell_line(words.iter().map(String::as_str))
    }

    fn check(&self) -> Result<(), Error> {
        let own = |set: &&Setting| OWN_KEYS.contains(&set.key());
        let Some(setting) = self.settings.iter().find(own) else { return Ok(()) };
        let problem = match setting.key() {
            "run.seed" => "the search has one seed: must be --seed",
            _ => "the search sets it: must be another key, such as fabric.nodes",
        };
        let key = setting.key();
        Err(Error::Request(format!("--set {key}: {problem}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::samples::runner;
    use crate::selection::fabric;

    fn request(fabrics: &[&str], workloads: &[&str]) -> Request {
        Request {
            fabrics: fabrics.iter().map(|name| fabric(name).unwrap()).collect(),
            workloads: workloads.iter().map(|name| workload(name).unwrap()).collect(),
            settings: vec!["fabric.nodes=8".parse().unwrap()],
            seed: 1,
            out: None,
        }
    }

    #[test]
    fn a_fabric_sustains_what_its_framing_leaves() {
        let outcome = request(&["raw-ethernet", "output-queued"], &["64"]).run(&runner()).unwrap();
        let [raw, bound] = outcome.rows() else { panic!("two rows") };
        // Nothing but framing limits it: it sustains nearly all of its links, of which 64 B of
        // data take 112 with frame, headers, preamble and gap, beside requests.
        let capacity = raw.capacity.as_ref().expect("it sustains some");
        assert!(capacity.load >= 0.95, "{capacity:?}");
        assert!((35.0..60.0).contains(&capacity.goodput_gbps_per_node), "{capacity:?}");
        let over = &raw.points[2];
        assert!((over.goodput_gbps_per_node - 60.0).abs() < 1e-9, "{over:?}");
        assert_eq!(over.latency_ns_p99, None);
        // 64 B in ten blocks.
        let capacity = bound.capacity.as_ref().expect("it sustains some");
        assert!(capacity.goodput_gbps_per_node > 65.0, "{capacity:?}");
        for row in outcome.rows() {
            let least = row.points.iter().filter_map(|point| point.latency_ns_p50);
            assert!(least.clone().count() >= 4, "{row:?}");
            assert!(row.points[0].latency_ns_p50 <= row.points[1].latency_ns_p50);
            // A blank is never below the capacity.
            for point in &row.points {
                let sustained = row.capacity.as_ref().unwrap().goodput_gbps_per_node;
                let is_below = point.goodput_gbps_per_node <= sustained;
                assert_eq!(point.latency_ns_p99.is_some(), is_below, "{point:?}");
            }
        }
    }

    /// Reads that are given up in time do not make a fabric faster.
    #[test]
    fn a_load_at_which_messages_are_lost_is_not_sustained() {
        let capacity = |timeout_us: &str| {
            let mut request = request(&["edm"], &["64"]);
            request.settings = vec![
                "fabric.nodes=2".parse().unwrap(),
                format!("fabric.edm.read_timeout_us={timeout_us}").parse().unwrap(),
            ];
            let outcome = request.run(&runner()).unwrap();
            outcome.rows()[0].capacity.as_ref().map(|capacity| capacity.load)
        };
        let usual = capacity("10000").expect("it sustains some");
        let hasty = capacity("20").expect("it sustains some");
        assert!(hasty <= usual && usual < 0.5, "{hasty} {usual}");
        assert_eq!(capacity("0.1"), None, "every read is lost");
    }

    #[test]
    fn keys_of_the_search_are_refused_in_a_line() {
        for (setting, why) in [
            ("workload.load=0.5", "the search sets it: must be another key, such as fabric.nodes"),
            ("run.seed=3", "the search has one seed: must be --seed"),
        ] {
            let mut request = request(&["ideal"], &["64"]);
            request.settings = vec![setting.parse().unwrap()];
            let error = request.run(&runner()).err().expect("refused").to_string();
            let (key, _) = setting.split_once('=').unwrap();
            assert_eq!(error, format!("--set {key}: {why}"));
        }
    }
}
