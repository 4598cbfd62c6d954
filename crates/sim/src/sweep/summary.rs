//! The summary of a point over its seeds.

use serde::Serialize;
use serde_json::{Map, Value};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::record::SUSTAINED;
use super::{METRICS, Point, Record};
use crate::output::{TableStyle, TextTable};

/// Probability that the interval covers the mean over all seeds, if runs are normally distributed
/// around it.
const CONFIDENCE: f64 = 0.95;

/// A mean over seeds, with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean over the seeds.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval (Student's t); `None` for one seed, which
    /// gives no estimate of it.
    pub ci95_half_width: Option<f64>,
}

/// One place of a sweep, with all its seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The varied keys and their values, as text.
    pub settings: Map<String, Value>,
    /// Name of the fabric.
    pub fabric: String,
    /// The seeds in order.
    pub seeds: Vec<u64>,
    /// The estimates by name of [`METRICS`]; null if a run lacks the number.
    pub metrics: Map<String, Value>,
    /// The notices of the runs, each once.
    pub notices: Vec<String>,
    #[serde(skip)]
    estimates: Vec<Option<Estimate>>,
}

impl Estimate {
    /// The estimate from runs with different seeds; `None` if one of them has no value.
    pub(super) fn of(values: &[Option<f64>]) -> Option<Estimate> {
        let values: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
        let runs = values.len() as f64;
        let mean = values.iter().sum::<f64>() / runs;
        let ci95_half_width = (values.len() > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
            t_quantile(runs - 1.0) * (squares / (runs - 1.0) / runs).sqrt()
        });
        (!values.is_empty()).then_some(Estimate { mean, ci95_half_width })
    }
}

/// Number of standard errors that the interval reaches to each side.
fn t_quantile(degrees_of_freedom: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, degrees_of_freedom).expect("at least one degree");
    t.inverse_cdf(0.5 + CONFIDENCE / 2.0)
}

impl Summary {
    pub(super) fn estimate(&self, metric: usize) -> Option<Estimate> {
        self.estimates[metric]
    }
}

/// The summaries of `points`, whose records are in the same order.
///
/// # Panics
/// If the number of records differs from the number of points.
#[must_use]
pub fn summarise(axes: &[String], points: &[Point], records: &[&Record]) -> Vec<Summary> {
    assert_eq!(points.len(), records.len(), "a record a point");
    let mut summaries = Vec::new();
    let mut start = 0;
    for group in points.chunk_by(|left, right| left.group == right.group) {
        let records = &records[start..start + group.len()];
        start += group.len();
        summaries.push(summary(axes, group, records));
    }
    summaries
}

fn summary(axes: &[String], group: &[Point], records: &[&Record]) -> Summary {
    let of_metric = |at: usize| {
        Estimate::of(&records.iter().map(|record| record.value(at)).collect::<Vec<_>>())
    };
    let estimates: Vec<Option<Estimate>> = (0..METRICS.len()).map(of_metric).collect();
    let json = |estimate: &Option<Estimate>| {
        serde_json::to_value(estimate).expect("an estimate is two numbers")
    };
    let metrics = METRICS.iter().zip(&estimates);
    let shown = (0..axes.len()).map(|axis| Value::from(group[0].shown(axis)));
    let mut notices: Vec<String> =
        records.iter().flat_map(|record| record.notices.iter().cloned()).collect();
    notices.sort();
    notices.dedup();
    Summary {
        settings: axes.iter().cloned().zip(shown).collect(),
        fabric: group[0].fabric.name.to_owned(),
        seeds: group.iter().map(|point| point.scenario.run.seed).collect(),
        metrics: metrics.map(|(metric, value)| (metric.name.to_owned(), json(value))).collect(),
        notices,
        estimates,
    }
}

/// The columns of the table: heading, metric, decimals.
const SHOWN: [(&str, &str, usize); 6] = [
    ("slowdown", "slowdown_mean", 3),
    ("p99 slowdown", "slowdown_p99", 3),
    ("latency ns", "latency_ns_mean", 1),
    ("p99 latency ns", "latency_ns_p99", 1),
    ("goodput Gb/s", "payload_goodput_gbps", 1),
    ("lost", "messages_lost", 0),
];

/// A table with one row per summary: mean, and half the width of the interval behind it.
///
/// # Panics
/// Never: every shown metric is one of [`METRICS`].
#[must_use]
pub fn summaries_table(axes: &[String], summaries: &[Summary], style: TableStyle) -> String {
    let mut header: Vec<&str> = axes.iter().map(String::as_str).collect();
    header.extend(["fabric", "seeds"]);
    header.extend(SHOWN.map(|(head, ..)| head));
    let row = |summary: &Summary| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut row: Vec<String> = summary.settings.values().map(text).collect();
        row.extend([summary.fabric.clone(), summary.seeds.len().to_string()]);
        let estimate = |name: &str| {
            let at = METRICS.iter().position(|metric| metric.name == name);
            summary.estimate(at.expect("a metric"))
        };
        // The latencies of a run that is not sustained grow with its length.
        let is_sustained = estimate(SUSTAINED).is_some_and(|share| share.mean == 1.0);
        row.extend(SHOWN.map(|(_, name, decimals)| {
            let grows = name.starts_with("slowdown") || name.starts_with("latency");
            cell(estimate(name).filter(|_| is_sustained || !grows), decimals)
        }));
        row
    };
    let first = axes.len() + 2;
    let table = TextTable {
        header: &header,
        text_columns: &[axes.len()],
        optional_columns: &[first + 4, first + 5, first + 2, first + 3],
        rows: summaries.iter().map(row).collect(),
    };
    let mut text = table.render(style);
    for summary in summaries {
        for notice in &summary.notices {
            text.push_str(&format!("{}: {notice}\n", summary.fabric));
        }
    }
    text
}

fn cell(estimate: Option<Estimate>, decimals: usize) -> String {
    match estimate {
        None => "-".to_owned(),
        Some(Estimate { mean, ci95_half_width: None }) => format!("{mean:.decimals$}"),
        Some(Estimate { mean, ci95_half_width: Some(half) }) => {
            format!("{mean:.decimals$} ± {half:.decimals$}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are from the NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, column
    /// 0.975.
    #[test]
    fn quantiles_are_those_of_the_published_table() {
        for (degrees, t) in [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042)] {
            let found = t_quantile(f64::from(degrees));
            assert!((found - t).abs() < 0.0006, "{degrees}: {found}");
        }
        assert!((t_quantile(999.0) - 1.962).abs() < 0.001);
    }

    #[test]
    fn an_interval_by_hand() {
        let three = Estimate::of(&[Some(1.0), Some(2.0), Some(3.0)]).unwrap();
        assert_eq!(three.mean, 2.0);
        // The half width is 4.3027 standard errors of 1 / sqrt(3).
        assert!((three.ci95_half_width.unwrap() - 2.4841).abs() < 1e-4, "{three:?}");
        let one = Estimate::of(&[Some(1.5)]).unwrap();
        assert_eq!(one, Estimate { mean: 1.5, ci95_half_width: None });
        assert_eq!(Estimate::of(&[Some(1.0), None]), None, "no mean of those that have one alone");
    }
}
