//! The search for the load that a fabric sustains, by bisection, and the latencies below it.

use std::path::Path;
use std::sync::atomic::Ordering;

use ethermem_sim::metrics::{KindStats, RunResult, SteadyState};
use ethermem_sim::registry::{FABRIC_NAMES, FabricEntry};
use ethermem_sim::run::{RunOptions, offered, run};
use ethermem_sim::scenario::{Changes, Scenario, Setting};
use serde::Serialize;

use super::workload::Sizes;
use super::{GOODPUTS, Row, SHARES};
use crate::error::Error;
use crate::runner::Runner;

/// The loads to try: hundredths of a fabric's own links, or thousandths if it sustains less than
/// ten hundredths.
const STEPS: [(u64, u64); 2] = [(99, 100), (99, 1_000)];
/// Number of full frames of data of a try, so that it takes a fraction of a second.
const FRAMES: f64 = 60_000.0;
/// Least number of messages of a try.
const MESSAGES_MIN: f64 = 4_000.0;
/// Least duration of a try if sizes differ, in service times of the mean byte's message. An
/// overload of a tenth then exceeds the steady backlog of a queue at load 0.9.
const SERVICES: f64 = 45.0;
/// Growth of the backlog above which a sustained load is tried again, longer.
const DOUBT: f64 = 0.005;
/// Length of the second try over that of the first.
const LONGER: u64 = 4;
/// Factor from a load that a longer run did not sustain to the next capacity.
const BELOW: f64 = 0.98;
/// Upper bound on the events of a run for latencies, unless the settings say otherwise.
const EVENTS_MAX: u64 = 6_000_000;

/// The sustained load of a fabric on a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// Data of the mean node, in either direction, Gb/s.
    pub goodput_gbps_per_node: f64,
    /// Share of the fabric's busiest links, with framing and control. The search tries at most
    /// 0.99.
    pub load: f64,
}

/// The latencies at one load; `None` if the fabric does not sustain it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// `goodput` for a goodput common to all fabrics, `share` for a share of the own capacity.
    pub at: &'static str,
    /// The share of the link's rate or of the capacity.
    pub share: f64,
    /// Data of the mean node, Gb/s.
    pub goodput_gbps_per_node: f64,
    /// Share of the fabric's busiest links; `None` if it were above 1.
    pub load: Option<f64>,
    /// `steady.state` of the run.
    pub state: Option<SteadyState>,
    /// Number of messages of the run.
    pub messages: Option<u64>,
    /// Number of its lost messages. None are lost at a load that is sustained.
    #[serde(skip)]
    pub messages_lost: u64,
    /// Mean latency, ns.
    pub latency_ns_mean: Option<f64>,
    /// Median latency, ns.
    pub latency_ns_p50: Option<f64>,
    /// 99 % of messages take at most this long, ns.
    pub latency_ns_p99: Option<f64>,
    /// 99.9 % of messages take at most this long, ns.
    pub latency_ns_p999: Option<f64>,
    /// Longest latency, ns.
    pub latency_ns_max: Option<f64>,
    /// Mean slowdown against the same message alone in the same fabric.
    pub slowdown_mean: Option<f64>,
    /// 99 % of messages have at most this slowdown.
    pub slowdown_p99: Option<f64>,
}

/// The search for one fabric on one workload.
pub(super) struct Search<'a> {
    pub(super) fabric: &'static FabricEntry,
    pub(super) workload: &'a Sizes,
    pub(super) settings: &'a [Setting],
    pub(super) seed: u64,
    pub(super) runner: &'a Runner<'a>,
}

impl Search<'_> {
    pub(super) fn run(&self) -> Result<Row, Error> {
        let unit = self.goodput(&self.scenario(0.5, None)?)? / 0.5;
        let mut load = self.capacity()?;
        let points = loop {
            let points = self.points(unit, load)?;
            // The runs for latencies are longer than the tries, and may refute the capacity.
            let is_over = |point: &&Point| {
                point.state == Some(SteadyState::NotSustained) || point.messages_lost > 0
            };
            let Some(over) = points.iter().filter(is_over).find_map(|point| point.load) else {
                break points;
            };
            load = Some(over * BELOW);
        };
        Ok(Row {
            workload: self.workload.name(),
            fabric: self.fabric.name.to_owned(),
            is_bound: self.fabric.is_bound,
            capacity: load.map(|load| Capacity { goodput_gbps_per_node: load * unit, load }),
            points,
        })
    }

    fn points(&self, unit: f64, capacity: Option<f64>) -> Result<Vec<Point>, Error> {
        let link_gbps = self.scenario(0.5, None)?.fabric.link.as_gbps_f64();
        let mut points = Vec::new();
        for share in GOODPUTS {
            points.push(self.point("goodput", share, share * link_gbps / unit, unit, capacity)?);
        }
        for share in SHARES {
            let Some(capacity) = capacity else { break };
            points.push(self.point("share", share, share * capacity, unit, Some(capacity))?);
        }
        Ok(points)
    }

    /// The largest sustained load of the tried ones. The bisection assumes that a fabric sustains
    /// every load below a sustained one.
    fn capacity(&self) -> Result<Option<f64>, Error> {
        for (steps, of) in STEPS {
            let (mut sustained, mut over) = (0, steps + 1);
            while over - sustained > 1 {
                let middle = u64::midpoint(sustained, over);
                if self.sustains(middle as f64 / of as f64)? {
                    sustained = middle;
                } else {
                    over = middle;
                }
            }
            // The coarse steps are precise enough from a tenth on.
            if sustained >= 10 || of == STEPS[STEPS.len() - 1].1 {
                return Ok((sustained > 0).then_some(sustained as f64 / of as f64));
            }
        }
        Ok(None)
    }

    fn sustains(&self, load: f64) -> Result<bool, Error> {
        let grows = |result: &RunResult| {
            let steady = result.steady.as_ref().expect("synthetic messages");
            steady.backlog_growth.is_none_or(|growth| growth > DOUBT)
        };
        // A load at which messages are lost, however few, is none to work at.
        let is_good = |result: &RunResult| result.is_sustained() && result.messages_lost == 0;
        let messages = self.messages(load)?;
        let first = self.one(load, Some(messages))?;
        if !is_good(&first) || !grows(&first) {
            return Ok(is_good(&first));
        }
        let second = self.one(load, Some(messages * LONGER))?;
        Ok(is_good(&second))
    }

    /// Number of messages of a try.
    fn messages(&self, load: f64) -> Result<u64, Error> {
        let scenario = self.scenario(load, None)?;
        let offered = offered(&scenario)?.expect("synthetic messages");
        let frames = 1.0 + offered.bytes_mean / scenario.fabric.packet.mtu.0 as f64;
        let link_gbps = scenario.fabric.link.as_gbps_f64();
        let service_s = self.workload.bytes_of_the_mean_byte() * 8.0 / (link_gbps * 1e9);
        let lasting = SERVICES * service_s * offered.messages_per_s;
        Ok((FRAMES / frames).max(MESSAGES_MIN).max(lasting) as u64)
    }

    fn point(
        &self,
        at: &'static str,
        share: f64,
        load: f64,
        unit: f64,
        capacity: Option<f64>,
    ) -> Result<Point, Error> {
        let is_sustained = capacity.is_some_and(|capacity| load <= capacity);
        let result = if is_sustained { Some(self.one(load, None)?) } else { None };
        let shown = result.as_ref().map_or_else(KindStats::default, RunResult::shown_all);
        let steady = result.as_ref().and_then(|result| result.steady.as_ref());
        Ok(Point {
            at,
            share,
            goodput_gbps_per_node: load * unit,
            load: (load <= 1.0).then_some(load),
            state: steady.map(|steady| steady.state),
            messages: result.as_ref().map(|result| result.messages_started),
            messages_lost: result.as_ref().map_or(0, |result| result.messages_lost),
            latency_ns_mean: shown.latency_ns_mean,
            latency_ns_p50: shown.latency_ns_p50,
            latency_ns_p99: shown.latency_ns_p99,
            latency_ns_p999: shown.latency_ns_p999,
            latency_ns_max: shown.latency_ns_max,
            slowdown_mean: shown.slowdown_mean,
            slowdown_p99: shown.slowdown_p99,
        })
    }

    /// Offered data of the mean node of a scenario, Gb/s.
    fn goodput(&self, scenario: &Scenario) -> Result<f64, Error> {
        let offered = offered(scenario)?.expect("synthetic messages");
        Ok(offered.goodput_gbps_total / f64::from(scenario.fabric.nodes))
    }

    /// Runs this load with this many messages, or until the latencies are known.
    fn one(&self, load: f64, messages: Option<u64>) -> Result<RunResult, Error> {
        if self.runner.interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted("before its next run".to_owned()));
        }
        let scenario = self.scenario(load, messages)?;
        let options = RunOptions {
            commit: self.runner.commit.map(str::to_owned),
            interrupt: self.runner.interrupt,
            ..RunOptions::of(self.fabric)
        };
        let result = run(&scenario, options);
        result.map_err(|failure| Error::of_run(failure, &self.runner.command_with_seed(self.seed)))
    }

    fn scenario(&self, load: f64, messages: Option<u64>) -> Result<Scenario, Error> {
        let has_events = self.settings.iter().any(|set| set.key() == "run.events_max");
        let length = match messages {
            Some(messages) => format!("messages = {messages}\n"),
            None if has_events => String::new(),
            None => format!("[run]\nevents_max = {EVENTS_MAX}\n"),
        };
        let text = format!(
            "[fabric]\nkind = \"{}\"\nnodes = 32\n[workload]\nload = {load}\n{}\n{length}",
            self.fabric.name,
            self.workload.key(),
        );
        let of_run = |set: &&Setting| messages.is_none() || set.key() != "run.events_max";
        let settings = self.settings.iter().filter(of_run).cloned().collect();
        let changes = Changes { settings, trace: None };
        let mut scenario =
            Scenario::parse_with(&text, Path::new("capacity"), &changes, FABRIC_NAMES)?;
        scenario.run.seed = self.seed;
        Ok(scenario)
    }
}
