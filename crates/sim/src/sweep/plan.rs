//! A sweep's file, and its points.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use toml::de::{DeTable, DeValue};

use super::Identity;
use super::axis;
use super::grid::Grid;
use super::identity::Identities;
use crate::keys::{Source, Table, as_integer, as_text};
use crate::registry::{self, FABRIC_NAMES, FabricEntry};
use crate::scenario::{Scenario, Setting, read_text};
use crate::workload::InputError;

/// Maximum number of points of a sweep.
pub const POINTS_MAX: u64 = 100_000;

/// A validated sweep.
pub struct Sweep {
    /// The scenario whose keys are varied.
    pub scenario: PathBuf,
    /// The varied keys, in the order of the file.
    pub axes: Vec<String>,
    /// The points: grid or sample first, then fabrics, then seeds.
    pub points: Vec<Point>,
    /// The text of the scenario, as it was read.
    pub(super) text: String,
    /// Settings that override the scenario for all points.
    pub(super) settings: Vec<Setting>,
}

/// One run of a sweep.
pub struct Point {
    /// The value of each axis, as written in TOML.
    pub values: Vec<String>,
    /// Index of the group, from 0; points of a group differ only in their seed.
    pub group: usize,
    /// The fabric of the run.
    pub fabric: &'static FabricEntry,
    /// The scenario of the run, including its seed.
    pub scenario: Scenario,
    /// The identity under which its result is kept.
    pub identity: Identity,
}

impl Point {
    /// The value of an axis for display and files: text without quotes.
    pub(super) fn shown(&self, axis: usize) -> &str {
        self.values[axis].trim_matches(['"', '\''])
    }
}

/// The seeds with which a sweep repeats its runs.
#[derive(Clone)]
enum Seeds {
    /// This many seeds, from the scenario's on.
    Count(u64),
    List(Vec<u64>),
}

impl Seeds {
    fn count(&self) -> u64 {
        match self {
            Seeds::Count(count) => *count,
            Seeds::List(seeds) => seeds.len() as u64,
        }
    }

    /// The seeds of a run whose scenario has the seed `first`, which [`check_seeds`] has checked.
    fn of(&self, first: u64) -> Vec<u64> {
        match self {
            Seeds::Count(count) => (0..*count).map(|at| first + at).collect(),
            Seeds::List(seeds) => seeds.clone(),
        }
    }
}

/// A sweep's file, as it is parsed.
struct Request<'s> {
    file: &'s Path,
    scenario: PathBuf,
    /// The fabrics; empty for the scenario's own.
    fabrics: Vec<&'static FabricEntry>,
    seeds: Seeds,
    /// Number of random points, and their seed; `None` for a grid.
    samples: Option<(u64, u64)>,
    grid: Grid<'s>,
}

impl Sweep {
    /// Reads the sweep in `file`. `settings` override its scenario.
    ///
    /// # Errors
    /// [`InputError`] for a file or scenario that cannot be read, an unknown key or fabric, an
    /// invalid value, or an empty axis. Also for a topology on which a fabric does not run, and for
    /// more than [`POINTS_MAX`] points.
    pub fn load(file: &Path, settings: &[Setting]) -> Result<Sweep, InputError> {
        let text = read_text(file)?;
        let source = Source { file, text: &text, file_bytes: text.len(), keys: RefCell::default() };
        let values = DeTable::parse(&text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            source.error(offset, format!("not TOML: {}", error.message()))
        })?;
        let root = source.root(values.get_ref());
        let request = Request::read(&source, &root)?;
        request.grid.check_settings(settings)?;
        let combinations = request.combinations()?;
        request.points(&combinations, settings)
    }
}

impl<'s> Request<'s> {
    fn read(source: &'s Source<'s>, root: &Table<'s>) -> Result<Request<'s>, InputError> {
        let path = root.read("scenario", "none", "a file's path", |value| {
            as_text(value).filter(|path| !path.is_empty()).map(PathBuf::from)
        })?;
        let path = path.ok_or_else(|| {
            root.error("scenario", "must be the file of the scenario that is varied")
        })?;
        let fabrics = root.read("fabrics", "the scenario's", &fabrics_allowed(), fabric_list)?;
        let seeds = root.read("seeds", 1, "1 to 1000, or a list of different seeds", seeds)?;
        let most = format!("1 to {POINTS_MAX}");
        let samples = root.read("samples", "a grid", &most, |value| {
            as_integer(value).filter(|samples| (1..=POINTS_MAX).contains(samples))
        })?;
        root.only("sample_seed", "with samples", samples.is_some())?;
        let sample_seed = root.integer("sample_seed", 1, 0..=u64::MAX)?;
        let vary = root.table("vary")?;
        let axes = vary.values().map(|vary| axis::read(source, vary)).transpose()?;
        let request = Request {
            file: source.file,
            scenario: source.file.parent().unwrap_or(Path::new("")).join(path),
            fabrics: fabrics.unwrap_or_default(),
            seeds: seeds.unwrap_or(Seeds::Count(1)),
            samples: samples.map(|samples| (samples, sample_seed)),
            grid: Grid::new(source, axes.unwrap_or_default()),
        };
        root.check_known()?;
        request.check()?;
        Ok(request)
    }

    fn check(&self) -> Result<(), InputError> {
        if self.grid.axes.is_empty() && self.samples.is_some() {
            let problem = "samples: nothing is varied: allowed only with keys under [vary]";
            return Err(InputError::file(self.file, problem));
        }
        for axis in &self.grid.axes {
            if axis.key == "run.seed" {
                return Err(self.grid.refuse(axis, "must be seeds = [...], outside [vary]"));
            }
            if self.samples.is_some() && axis.has_steps() {
                return Err(self
                    .grid
                    .refuse(axis, "steps changes nothing: allowed only in a grid"));
            }
        }
        Ok(())
    }

    /// The values of the axes at each point of the grid or the sample; the last axis varies
    /// fastest.
    fn combinations(&self) -> Result<Vec<Vec<String>>, InputError> {
        let runs_each = self.seeds.count() * self.fabrics.len().max(1) as u64;
        let Some((samples, seed)) = self.samples else {
            self.check_count(self.grid.count()?.saturating_mul(runs_each))?;
            return self.grid.combinations();
        };
        self.check_count(samples.saturating_mul(runs_each))?;
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut draw = |_| self.grid.axes.iter().map(|axis| axis.draw(&mut generator)).collect();
        Ok((0..samples).map(&mut draw).collect())
    }

    fn check_count(&self, points: u64) -> Result<(), InputError> {
        if points <= POINTS_MAX {
            return Ok(());
        }
        let counted = if points == u64::MAX { "2^64 or more".into() } else { points.to_string() };
        let problem = format!("{counted} points: must be 1 to {POINTS_MAX}");
        Err(InputError::file(self.file, problem))
    }

    fn points(
        &self,
        combinations: &[Vec<String>],
        settings: &[Setting],
    ) -> Result<Sweep, InputError> {
        let text = read_text(&self.scenario)?;
        let mut identities = Identities::new();
        let (mut points, mut group) = (Vec::new(), 0);
        for values in combinations {
            let scenario = self.grid.scenario_at((&self.scenario, &text), values, settings)?;
            let own = registry::find(&scenario.fabric_kind);
            let own = [own.expect("a parsed scenario names a fabric")];
            let fabrics = if self.fabrics.is_empty() { &own[..] } else { &self.fabrics };
            for &fabric in fabrics {
                fabric
                    .check(&scenario)
                    .map_err(|error| InputError::file(self.file, error.to_string()))?;
                if let Seeds::Count(count) = self.seeds {
                    check_seeds(self.file, scenario.run.seed, count)?;
                }
                for seed in self.seeds.of(scenario.run.seed) {
                    let mut scenario = scenario.clone();
                    scenario.run.seed = seed;
                    let identity = identities.of(fabric.name, &scenario)?;
                    let values = values.clone();
                    points.push(Point { values, group, fabric, scenario, identity });
                }
                group += 1;
            }
        }
        let axes = self.grid.axes.iter().map(|axis| axis.key.clone()).collect();
        let (scenario, settings) = (self.scenario.clone(), settings.to_vec());
        Ok(Sweep { scenario, axes, points, text, settings })
    }
}

/// Checks that this many seeds from `first` on exist, at least one.
fn check_seeds(file: &Path, first: u64, count: u64) -> Result<(), InputError> {
    let most = u64::MAX - (count - 1);
    if first <= most {
        return Ok(());
    }
    let problem =
        format!("run.seed = {first}: must be at most {most}, as seeds = {count} go on from it");
    Err(InputError::file(file, problem))
}

pub(crate) fn fabrics_allowed() -> String {
    format!("different names of {}", FABRIC_NAMES.join(", "))
}

/// Distinct fabrics of the registry by name, at least one.
pub(crate) fn fabric_list(value: &DeValue<'_>) -> Option<Vec<&'static FabricEntry>> {
    let DeValue::Array(names) = value else { return None };
    let names: Vec<&str> =
        names.iter().map(|name| as_text(name.get_ref())).collect::<Option<_>>()?;
    let different = names.iter().enumerate().all(|(at, name)| !names[..at].contains(name));
    (different && !names.is_empty()).then_some(())?;
    names.into_iter().map(registry::find).collect()
}

fn seeds(value: &DeValue<'_>) -> Option<Seeds> {
    let DeValue::Array(list) = value else {
        return as_integer(value).filter(|count| (1..=1_000).contains(count)).map(Seeds::Count);
    };
    let seeds: Vec<u64> =
        list.iter().map(|seed| as_integer(seed.get_ref())).collect::<Option<_>>()?;
    let different = seeds.iter().enumerate().all(|(at, seed)| !seeds[..at].contains(seed));
    (different && !seeds.is_empty()).then_some(Seeds::List(seeds))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    fn load(text: &str) -> Result<Sweep, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("base.toml"), "[fabric]\nnodes = 16\n[run]\nseed = 5\n")
            .unwrap();
        let file = folder.path().join("w.toml");
        fs::write(&file, text).unwrap();
        let shown = format!("{}/", folder.path().display());
        Sweep::load(&file, &[]).map_err(|error| error.to_string().replace(&shown, ""))
    }

    #[test]
    fn a_grid_by_hand() {
        let sweep = load(
            "scenario = 'base.toml'\nfabrics = ['edm', 'ideal']\nseeds = 2\n\
             [vary]\nworkload.load = [0.2, 0.4]\nfabric.nodes = [8, 16, 32]\n",
        )
        .unwrap();
        assert_eq!(sweep.axes, ["workload.load", "fabric.nodes"]);
        assert_eq!(sweep.points.len(), 24);
        let shown = |at: usize| {
            let point = &sweep.points[at];
            (point.values.join(" "), point.fabric.name, point.scenario.run.seed, point.group)
        };
        assert_eq!(shown(0), ("0.2 8".to_owned(), "edm", 5, 0));
        assert_eq!(shown(1), ("0.2 8".to_owned(), "edm", 6, 0));
        assert_eq!(shown(2), ("0.2 8".to_owned(), "ideal", 5, 1));
        assert_eq!(shown(4), ("0.2 16".to_owned(), "edm", 5, 2));
        assert_eq!(shown(23), ("0.4 32".to_owned(), "ideal", 6, 11));
        assert_eq!(sweep.points[23].scenario.fabric.nodes, 32);
        let identities: BTreeSet<Identity> = sweep.points.iter().map(|p| p.identity).collect();
        assert_eq!(identities.len(), 24);
    }

    #[test]
    fn a_sample_repeats_with_its_seed() {
        let sample = |seed: u64| {
            let text = format!(
                "scenario = 'base.toml'\nsamples = 20\nsample_seed = {seed}\nseeds = [9, 3]\n\
                 [vary]\nworkload.load = {{from = 0.1, to = 0.9}}\nfabric.edm.policy = ['srpt', \
                 'fcfs']\n"
            );
            let points = load(&text).unwrap().points;
            assert_eq!(points.len(), 40);
            assert_eq!((points[0].scenario.run.seed, points[1].scenario.run.seed), (9, 3));
            points.into_iter().map(|point| point.values).collect::<Vec<_>>()
        };
        assert_eq!(sample(1), sample(1));
        assert_ne!(sample(1), sample(2));
    }

    #[test]
    fn seeds_do_not_begin_again_at_0() {
        let sweep = |seeds: &str, first: u64| {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("base.toml"), "[fabric]\nnodes = 16\n").unwrap();
            let file = folder.path().join("w.toml");
            fs::write(&file, format!("scenario = 'base.toml'\nseeds = {seeds}\n")).unwrap();
            let set = format!("run.seed={first}").parse().unwrap();
            let shown = format!("{}/", folder.path().display());
            let seeds = Sweep::load(&file, &[set]).map(|sweep| {
                sweep.points.iter().map(|point| point.scenario.run.seed).collect::<Vec<_>>()
            });
            seeds.map_err(|error| error.to_string().replace(&shown, ""))
        };
        let last = u64::MAX - 2;
        assert_eq!(sweep("3", last), Ok(vec![last, last + 1, last + 2]));
        let line = "w.toml: run.seed = 18446744073709551614: must be at most \
                    18446744073709551613, as seeds = 3 go on from it";
        assert_eq!(sweep("3", last + 1), Err(line.to_owned()));
        // A list of seeds does not go on from the scenario's.
        assert_eq!(sweep("[4, 2]", u64::MAX), Ok(vec![4, 2]));
    }

    #[test]
    fn bad_sweeps_are_one_line_with_the_place() {
        let base = "scenario = 'base.toml'\n";
        for (text, error) in [
            ("[vary]\n", "w.toml: scenario is not set: must be "),
            ("scenario = 'gone.toml'\n", "gone.toml: cannot be read: "),
            ("scenario = 'base.toml'\nseads = 1\n", "w.toml:2: seads: unknown key: must be one"),
            ("scenario = ", "w.toml:1: not TOML: "),
            (&format!("{base}fabrics = ['edm', 'emd']"), "w.toml:2: fabrics = ['edm', 'emd']: "),
            (&format!("{base}fabrics = []"), "w.toml:2: fabrics = []: must be "),
            (&format!("{base}seeds = [1, 1]"), "w.toml:2: seeds = [1, 1]: must be "),
            (&format!("{base}sample_seed = 1"), "w.toml:2: sample_seed = 1: it changes nothing"),
            (&format!("{base}samples = 3"), "w.toml: samples: nothing is varied"),
            (&format!("{base}[vary]\nfabric.nods = [3]"), "w.toml:3: fabric.nods: unknown key: "),
            (
                &format!("{base}[vary]\nfabric.nodes = [2, 1]"),
                "w.toml:3: fabric.nodes = 1: must be 2 to 4096",
            ),
            (&format!("{base}[vary]\nfabric.nodes = []"), "w.toml:3: vary.fabric.nodes: an empty"),
            (&format!("{base}[vary]\nrun.seed = [1]"), "w.toml:3: vary.run.seed: must be "),
            (
                &format!("{base}[vary]\nfabric.topology = ['leaf-spine']"),
                "w.toml: fabric edm runs on fabric.topology = \"single-switch\" alone",
            ),
            (
                &format!(
                    "{base}seeds = 100\n[vary]\nworkload.load = {{from = 0.1, to = 0.9, steps = \
                     5000}}"
                ),
                "w.toml: 500000 points: must be 1 to 100000",
            ),
        ] {
            let found = load(text).map(|sweep| sweep.points.len()).unwrap_err();
            assert!(found.starts_with(error), "{text}: {found}");
            assert!(!found.contains('\n'), "{found:?}");
        }
    }
}
