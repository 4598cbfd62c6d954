//! Plans: files that list many YCSB runs, pools by points, with published values.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use ethermem_sim::compare::PublishedValues;
use ethermem_sim::scenario::read_text;
use ethermem_sim::workload::InputError;
use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::ycsb::{self, Settings, Workload, YcsbConfig, YcsbResult};

/// Largest number of runs of each point.
const SEEDS_MAX: u64 = 1000;

/// Measured quantity of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shows {
    /// Latency of an operation. Published values are means in ns.
    Latency,
    /// Requests per second, and their use of the links. Published values are millions of writes per
    /// second that fill the requesting direction alone.
    Requests,
}

/// A plan file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Description of the figure, and its published values.
    pub figure: Figure,
    /// Settings of all runs.
    #[serde(default)]
    pub ycsb: Settings,
    /// Pools to measure.
    pub pool: Vec<PlannedPool>,
    /// Points to measure on each pool.
    pub point: Vec<Point>,
}

/// Head of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name in file names and in published values.
    pub name: String,
    /// Title.
    pub title: String,
    /// Measured quantity.
    pub shows: Shows,
    /// Number of runs of each point, with consecutive seeds; the result is their mean.
    #[serde(default = "one")]
    pub seeds: u64,
    /// File of published values, relative to the plan's folder.
    pub published: Option<PathBuf>,
}

/// A pool of a plan.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedPool {
    /// Name in results, and column of the published values.
    pub name: String,
    /// URL of the pool.
    pub url: String,
    /// Largest allowed deviation from the published values, in percent.
    pub within_percent: Option<f64>,
}

/// A point of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Name in results, and row of the published values.
    pub name: String,
    /// Settings that differ from those of all runs.
    #[serde(default)]
    pub set: Settings,
}

/// A pool at a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Planned {
    /// Name of the point.
    pub point: String,
    /// Name of the pool.
    pub pool: String,
    /// Published value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// Measured value in its place, the mean over all seeds: ns, or millions per second.
    pub ours: f64,
    /// Smallest and largest value over the seeds.
    pub ours_range: (f64, f64),
    /// Deviation of the measured from the published value, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_percent: Option<f64>,
    /// Largest allowed deviation, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_percent: Option<f64>,
    /// One run for each seed.
    pub runs: Vec<YcsbResult>,
}

impl Planned {
    /// True if the deviation is allowed; `None` without a limit.
    #[must_use]
    pub fn is_met(&self) -> Option<bool> {
        Some(self.off_percent?.abs() <= self.within_percent?)
    }

    /// The mean of a value over the runs that have it.
    #[must_use]
    pub fn mean(&self, of: impl Fn(&YcsbResult) -> Option<f64>) -> Option<f64> {
        let found: Vec<f64> = self.runs.iter().filter_map(of).collect();
        (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
    }
}

fn one() -> u64 {
    1
}

impl Plan {
    /// Reads a plan and the files that it names.
    ///
    /// # Errors
    /// [`InputError`] with the place of what is not allowed.
    pub fn load(file: &Path) -> Result<(Plan, Option<PublishedValues>), InputError> {
        let text = read_text(file)?;
        let plan: Plan = toml::from_str(&text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text[..at].matches('\n').count() as u64 + 1;
            let message = match error.message().strip_prefix("missing field `") {
                Some(rest) => format!("no `{rest}: must be given"),
                None => error.message().to_owned(),
            };
            InputError::line(file, line, message)
        })?;
        let refused = |problem: String| Err(InputError::file(file, problem));
        let seeds = plan.figure.seeds;
        if !(1..=SEEDS_MAX).contains(&seeds) {
            return refused(format!("figure.seeds = {seeds}: must be 1 to {SEEDS_MAX}"));
        }
        if plan.pool.is_empty() || plan.point.is_empty() {
            return refused("no [[pool]] or no [[point]]: at least one of each".to_owned());
        }
        let folder = file.parent().unwrap_or(Path::new(""));
        let published = plan.figure.published.as_ref();
        let published = published.map(|path| PublishedValues::load(&folder.join(path)));
        let published = published.transpose()?;
        if let Some(values) = &published
            && let Some(point) =
                plan.point.iter().find(|point| !values.has(&plan.figure.name, &point.name))
        {
            return refused(format!(
                "point `{}`: figure.published has no row {},{}",
                point.name, plan.figure.name, point.name
            ));
        }
        Ok((plan, published))
    }

    /// Every run, with settings overridden by `over`, points first.
    fn configs(&self, over: &Settings) -> Vec<(&Point, &PlannedPool, Vec<YcsbConfig>)> {
        let mut configs = Vec::new();
        for point in &self.point {
            for pool in &self.pool {
                let settings = over.clone().or(&point.set).or(&self.ycsb);
                let first = settings.config(&pool.url, Workload::A);
                let of_seed = |more| YcsbConfig { seed: first.seed + more, ..first.clone() };
                configs.push((point, pool, (0..self.figure.seeds).map(of_seed).collect()));
            }
        }
        configs
    }

    /// Number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.point.len() * self.pool.len() * self.figure.seeds as usize
    }

    /// Runs all, with settings overridden by `over`. `ended` is called after each run.
    ///
    /// # Errors
    /// As [`ycsb::run`].
    pub fn run(
        &self,
        published: Option<&PublishedValues>,
        over: &Settings,
        interrupt: &'static AtomicBool,
        ended: &dyn Fn(),
    ) -> Result<Vec<Planned>, BenchError> {
        let mut rows = Vec::new();
        for (point, pool, configs) in self.configs(over) {
            let mut runs = Vec::new();
            for config in &configs {
                runs.push(ycsb::run(config, interrupt)?);
                ended();
            }
            let values = runs.iter().map(|run| self.figure.shows.value(run));
            let values = values.collect::<Result<Vec<f64>, BenchError>>()?;
            let ours = values.iter().sum::<f64>() / values.len() as f64;
            let published =
                published.and_then(|values| values.at(&self.figure.name, &point.name, &pool.name));
            rows.push(Planned {
                point: point.name.clone(),
                pool: pool.name.clone(),
                published,
                ours,
                ours_range: (
                    values.iter().copied().fold(f64::INFINITY, f64::min),
                    values.iter().copied().fold(0.0, f64::max),
                ),
                off_percent: published.map(|published| (ours / published - 1.0) * 100.0),
                within_percent: published.and(pool.within_percent),
                runs,
            });
        }
        Ok(rows)
    }
}

impl Shows {
    /// The value to compare with a published one.
    fn value(self, run: &YcsbResult) -> Result<f64, BenchError> {
        let value = match self {
            Shows::Latency => run.all().map(|all| all.mean_ns),
            Shows::Requests => run.links.map(|links| links.requesting_alone_writes_per_s / 1e6),
        };
        value.ok_or_else(|| {
            BenchError::Refused(format!(
                "pool {}: shows = \"requests\" takes sim: with nodes=2, and a workload of reads \
                 and updates of remote objects alone",
                run.config.pool
            ))
        })
    }
}
