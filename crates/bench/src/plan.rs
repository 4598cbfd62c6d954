//! Many runs of YCSB as a file says: pools by points, with what others published beside.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use ethermem_sim::compare::PublishedValues;
use ethermem_sim::scenario::read_text;
use ethermem_sim::workload::InputError;
use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::ycsb::{self, Settings, Workload, YcsbConfig, YcsbResult};

/// Most runs of each point.
const SEEDS_MAX: u64 = 1000;

/// What a plan measures of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shows {
    /// How long an operation takes. Published values are means in ns.
    Latency,
    /// How many requests there are in a second, and what they take of the links. Published values
    /// are millions of writes that fill the requesting direction alone.
    Requests,
}

/// A file that says what is run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What it is, and against what it is held.
    pub figure: Figure,
    /// Of all runs.
    #[serde(default)]
    pub ycsb: Settings,
    /// What is run on.
    pub pool: Vec<PlannedPool>,
    /// What is run there.
    pub point: Vec<Point>,
}

/// The head of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name in file names and among published values.
    pub name: String,
    /// Headline.
    pub title: String,
    /// What is told of it.
    pub shows: Shows,
    /// Runs of each point, with seeds that follow one another; what is told is their mean.
    #[serde(default = "one")]
    pub seeds: u64,
    /// A table of published values, from the plan's folder.
    pub published: Option<PathBuf>,
}

/// A pool of a plan.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedPool {
    /// Name in results, and column of the published values.
    pub name: String,
    /// What is opened.
    pub url: String,
    /// How far from the published values it may be.
    pub within_percent: Option<f64>,
}

/// A point of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Name in results, and row of the published values.
    pub name: String,
    /// What is other than in all runs.
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
    /// What was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// What we have in its place, the mean of all seeds: ns, or millions in a second.
    pub ours: f64,
    /// The least and the most of the seeds.
    pub ours_range: (f64, f64),
    /// How far ours is from the published value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_percent: Option<f64>,
    /// How far it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_percent: Option<f64>,
    /// A run for each seed.
    pub runs: Vec<YcsbResult>,
}

impl Planned {
    /// Whether ours is as near as it was asked to be; `None` where nothing was asked.
    #[must_use]
    pub fn is_met(&self) -> Option<bool> {
        Some(self.off_percent?.abs() <= self.within_percent?)
    }

    /// The mean of a number over the runs that have it.
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
    /// Reads a plan, and what it names.
    ///
    /// # Errors
    /// [`InputError`] with the place of what cannot be.
    pub fn load(file: &Path) -> Result<(Plan, Option<PublishedValues>), InputError> {
        let text = read_text(file)?;
        let plan: Plan = toml::from_str(&text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text[..at].matches('\n').count() as u64 + 1;
            InputError::line(file, line, error.message())
        })?;
        let refused = |problem: String| Err(InputError::file(file, problem));
        let seeds = plan.figure.seeds;
        if !(1..=SEEDS_MAX).contains(&seeds) {
            return refused(format!("figure.seeds = {seeds}: allowed are 1 to {SEEDS_MAX}"));
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

    /// Every run, as `over` changes it, points first.
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

    /// How many runs there are.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.point.len() * self.pool.len() * self.figure.seeds as usize
    }

    /// Runs all, as `over` changes it. `ended` hears of each run.
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
    /// What is held against a published value.
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
