//! The table `[compare]` of a scenario, and its points.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::flows::count;
use super::method::FabricMethod;
use super::{Counted, PublishedMethod, PublishedValues};
use crate::keys::Lines;
use crate::keys::{Source, Table, as_text};
use crate::metrics::MessageWay;
use crate::registry::{self, FABRIC_NAMES, FabricEntry};
use crate::run::{messages, offered, with_load_of_data};
use crate::scenario::{Changes, Scenario, Setting, read_text};
use crate::sweep::{Grid, fabric_list, fabrics_allowed, read_axes};
use crate::workload::{InputError, WorkloadConfig};
use crate::{Kind, SourceError};

/// Maximum number of points of an experiment.
const POINTS_MAX: u64 = 1_000;

/// A validated comparison.
pub struct Comparison {
    /// The fabric to which the others are compared: the scenario's own.
    pub baseline: &'static FabricEntry,
    /// The fabrics that the scenario compares.
    pub fabrics: Vec<&'static FabricEntry>,
    /// The experiments in the order of the file.
    pub experiments: Vec<Experiment>,
    /// Published values for comparison, if the scenario names a file of them.
    pub values: Option<PublishedValues>,
    /// The method behind these values, if the scenario has it.
    pub method: Option<PublishedMethod>,
}

/// A group of points.
pub struct Experiment {
    /// The name in the file.
    pub name: String,
    /// The points, in the order of variation.
    pub points: Vec<ComparedPoint>,
}

/// One workload on one network, for every fabric.
pub struct ComparedPoint {
    /// The name that is shown: `load=0.2`.
    pub name: String,
    /// The keys and values of the point, in the form of `--set`.
    pub settings: Vec<String>,
    /// The scenario to run.
    pub scenario: Scenario,
    /// The runs by the published method, for each fabric that it mentions.
    by_method: BTreeMap<&'static str, OneFabrics>,
}

/// The run of one fabric.
struct OneFabrics {
    scenario: Scenario,
    /// Share of reads, even if they run as writes.
    read_fraction: f64,
}

impl ComparedPoint {
    /// The scenario with its load counted in the blocks of `fabric`, and not in its own fabric's.
    #[must_use]
    pub fn in_blocks_of(&self, fabric: &FabricEntry) -> Scenario {
        Scenario { fabric_kind: fabric.name.to_owned(), ..self.scenario.clone() }
    }

    /// The runs of the published method on `fabric`, one for each of its seeds; `None` if the
    /// method does not mention the fabric.
    #[must_use]
    pub fn by_method(
        &self,
        method: &PublishedMethod,
        fabric: &FabricEntry,
    ) -> Option<Vec<Scenario>> {
        let scenario = &self.by_method.get(fabric.name)?.scenario;
        let seed = |at: u64| {
            let mut scenario = scenario.clone();
            scenario.run.seed = scenario.run.seed.wrapping_add(at);
            scenario
        };
        Some((0..method.seeds).map(seed).collect())
    }

    /// The result of a run of [`ComparedPoint::by_method`].
    ///
    /// # Errors
    /// The errors of [`messages`].
    ///
    /// # Panics
    /// If the method does not mention the fabric.
    pub fn count(
        &self,
        method: &PublishedMethod,
        fabric: &FabricEntry,
        scenario: &Scenario,
        ways: &[MessageWay],
    ) -> Result<Counted, SourceError> {
        let mut as_asked = scenario.clone();
        if let WorkloadConfig::Poisson(poisson) = &mut as_asked.workload {
            poisson.read_fraction = self.by_method[fabric.name].read_fraction;
        }
        let mut source = messages(&as_asked)?;
        let mut is_read = Vec::new();
        while let Some(message) = source.next_message()? {
            is_read.push(message.kind == Kind::Read);
        }
        let slot = scenario.fabric.link.block_time();
        Ok(count(ways, &is_read, method, &method.fabrics[fabric.name], slot))
    }

    /// The share of `fabric`'s busiest links that the same messages need; `None` for a trace.
    ///
    /// # Errors
    /// The errors of [`offered`].
    pub fn asked(&self, fabric: &FabricEntry) -> Result<Option<f64>, SourceError> {
        let WorkloadConfig::Poisson(poisson) = &self.scenario.workload else { return Ok(None) };
        let own = offered(&self.scenario)?.map(|offered| offered.messages_per_s);
        let others = offered(&self.in_blocks_of(fabric))?.map(|offered| offered.messages_per_s);
        Ok(own.zip(others).map(|(own, others)| poisson.load * own / others))
    }
}

impl Comparison {
    /// Reads the table `[compare]` of the scenario in `file`; `None` if it has none. `settings`
    /// override the whole file, and `seed` overrides all points.
    ///
    /// # Errors
    /// [`InputError`] for a file that cannot be read, an unknown key or fabric, an invalid value,
    /// an empty axis or points without names. Also for a topology on which a fabric does not run,
    /// and for published values that do not match the points.
    pub fn load(
        file: &Path,
        settings: &[Setting],
        seed: Option<u64>,
    ) -> Result<Option<Comparison>, InputError> {
        let text = read_text(file)?;
        let (own, of_scenario): (Vec<Setting>, Vec<Setting>) =
            settings.iter().cloned().partition(|setting| setting.key().starts_with("compare."));
        let lines = Lines::new(&text, &own);
        let source =
            Source { file, text: &lines.text, file_bytes: text.len(), keys: RefCell::default() };
        let mut values = DeTable::parse(&text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            source.error(offset, format!("not TOML: {}", error.message()))
        })?;
        lines.apply(values.get_mut());
        let root = source.root(values.get_ref());
        if !root.has("compare") {
            return Ok(None);
        }
        let request = Request { source: &source, text: &text, settings: &of_scenario, seed };
        request.read(&root.table("compare")?).map(Some)
    }
}

struct Request<'s> {
    source: &'s Source<'s>,
    text: &'s str,
    settings: &'s [Setting],
    seed: Option<u64>,
}

impl<'s> Request<'s> {
    fn read(&self, table: &Table<'s>) -> Result<Comparison, InputError> {
        let file = self.source.file;
        let changes = Changes { settings: self.settings.to_vec(), trace: None };
        let base = Scenario::parse_with(self.text, file, &changes, FABRIC_NAMES)?;
        let baseline = registry::find(&base.fabric_kind).expect("a parsed scenario names a fabric");
        let fabrics = table.read("fabrics", "the scenario's", &fabrics_allowed(), fabric_list)?;
        let values = table.read("values", "none", "a file's path", |value| {
            as_text(value).filter(|path| !path.is_empty()).map(PathBuf::from)
        })?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let values = values.map(|path| PublishedValues::load(&folder.join(path))).transpose()?;
        let published = table.table("published")?;
        let method = published.values().map(|_| PublishedMethod::read(&published)).transpose()?;
        let experiments = self.experiments(&table.table("experiments")?, method.as_ref())?;
        table.check_known()?;
        let fabrics = fabrics.unwrap_or_else(|| vec![baseline]);
        for (experiment, point) in
            experiments.iter().flat_map(|of| of.points.iter().map(move |point| (of, point)))
        {
            for fabric in &fabrics {
                fabric
                    .check(&point.scenario)
                    .map_err(|error| InputError::file(file, error.to_string()))?;
            }
            let known = values.as_ref().is_none_or(|of| of.has(&experiment.name, &point.name));
            if !known {
                let (experiment, point) = (&experiment.name, &point.name);
                let problem = format!("{experiment}, {point}: compare.values has no such row");
                return Err(InputError::file(file, problem));
            }
        }
        Ok(Comparison { baseline, fabrics, experiments, values, method })
    }

    fn experiments(
        &self,
        table: &Table<'s>,
        method: Option<&PublishedMethod>,
    ) -> Result<Vec<Experiment>, InputError> {
        let mut names: Vec<(usize, &str)> = table
            .values()
            .into_iter()
            .flat_map(DeTable::keys)
            .map(|key| (key.span().start, key.get_ref().as_ref()))
            .collect();
        if names.is_empty() {
            let problem = "compare.experiments is not set: must be at least one table";
            return Err(InputError::file(self.source.file, problem));
        }
        // The table keeps its keys sorted.
        names.sort_unstable();
        names
            .into_iter()
            .map(|(_, name)| self.experiment(name, &table.table(name)?, method))
            .collect()
    }

    fn experiment(
        &self,
        name: &str,
        table: &Table<'s>,
        method: Option<&PublishedMethod>,
    ) -> Result<Experiment, InputError> {
        let names = table.read("points", "none", "different names", point_names)?;
        let grid = self.grid(&table.table("vary")?)?;
        let published = table.table("vary_published")?;
        let published = published.values().map(|_| self.grid(&published)).transpose()?;
        let published = published.as_ref().unwrap_or(&grid);
        table.check_known()?;
        let (count, names) = (grid.count()?, names.unwrap_or_default());
        if published.count()? != count {
            let problem = format!("not the {count} points of vary: must be as many");
            return Err(table.error("vary_published", problem));
        }
        if count > POINTS_MAX || count != names.len() as u64 {
            let most = format!("vary has {count} points: must be as many names, 1 to {POINTS_MAX}");
            return Err(table.error("points", most));
        }
        let both = grid.combinations()?.into_iter().zip(published.combinations()?);
        let point = |(name, (values, by_method)): (String, (Vec<String>, Vec<String>))| {
            let scenario = self.scenario_at(&grid, &values, self.settings)?;
            let by_method = match method {
                Some(method) => self.by_method(method, published, &by_method)?,
                None => BTreeMap::new(),
            };
            let settings = grid.settings_at(&values);
            Ok(ComparedPoint { name, settings, scenario, by_method })
        };
        let points = names.into_iter().zip(both).map(point);
        Ok(Experiment { name: name.to_owned(), points: points.collect::<Result<_, _>>()? })
    }
}

impl<'s> Request<'s> {
    fn grid(&self, vary: &Table<'s>) -> Result<Grid<'s>, InputError> {
        let axes = vary.values().map(|vary| read_axes(self.source, vary)).transpose()?;
        let grid = Grid::new(self.source, axes.unwrap_or_default());
        grid.check_settings(self.settings)?;
        // The points would differ only in their names.
        if self.seed.is_some() {
            grid.refuse_axis("run.seed", "--seed sets it too: must be one of the two")?;
        }
        grid.refuse_axis("fabric.kind", "must be fabrics = [...], under [compare]")?;
        Ok(grid)
    }

    fn scenario_at(
        &self,
        grid: &Grid<'s>,
        values: &[String],
        settings: &[Setting],
    ) -> Result<Scenario, InputError> {
        let mut scenario = grid.scenario_at((self.source.file, self.text), values, settings)?;
        scenario.run.seed = self.seed.unwrap_or(scenario.run.seed);
        Ok(scenario)
    }

    /// The run of each fabric at a point by the published method: its own keys, and the same
    /// messages, whose load counts only data.
    fn by_method(
        &self,
        method: &PublishedMethod,
        grid: &Grid<'s>,
        values: &[String],
    ) -> Result<BTreeMap<&'static str, OneFabrics>, InputError> {
        let refused = |error: SourceError| InputError::file(self.source.file, error.to_string());
        let base = self.scenario_at(grid, values, self.settings)?;
        let scenario = |(&name, of): (&&'static str, &FabricMethod)| {
            // Settings on the command line override the method.
            let settings = [&of.settings[..], self.settings].concat();
            let scenario = self.scenario_at(grid, values, &settings)?;
            let mut scenario = with_load_of_data(&scenario, &base).map_err(refused)?;
            let mut read_fraction = 0.0;
            if let WorkloadConfig::Poisson(poisson) = &mut scenario.workload {
                poisson.messages = method.messages;
                read_fraction = poisson.read_fraction;
                if of.reads_as_writes {
                    poisson.read_fraction = 0.0;
                }
            }
            Ok((name, OneFabrics { scenario, read_fraction }))
        };
        method.fabrics.iter().map(scenario).collect()
    }
}

fn point_names(value: &DeValue<'_>) -> Option<Vec<String>> {
    let DeValue::Array(names) = value else { return None };
    let names: Vec<String> = names
        .iter()
        .map(|name| Some(as_text(name.get_ref())?.to_owned()))
        .collect::<Option<_>>()?;
    let good = |(at, name): (usize, &String)| !name.is_empty() && !names[..at].contains(name);
    names.iter().enumerate().all(good).then_some(names)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn load(text: &str, settings: &[&str]) -> Result<Option<Comparison>, String> {
        load_with(text, settings, None)
    }

    fn load_with(
        text: &str,
        settings: &[&str],
        seed: Option<u64>,
    ) -> Result<Option<Comparison>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        fs::write(&file, text).unwrap();
        fs::write(folder.path().join("v.csv"), "experiment,point,edm\na,one,1\n").unwrap();
        let settings: Vec<Setting> = settings.iter().map(|set| set.parse().unwrap()).collect();
        let shown = format!("{}/", folder.path().display());
        let loaded = Comparison::load(&file, &settings, seed);
        loaded.map_err(|error| error.to_string().replace(&shown, ""))
    }

    const BASE: &str = "[fabric]\nnodes = 16\n[compare]\nfabrics = ['edm', 'ird']\n";

    #[test]
    fn points_in_the_order_of_the_file() {
        let text = format!(
            "{BASE}[compare.experiments.z]\npoints = ['p', 'q']\n\
             vary = {{ workload.load = [0.2, 0.4], workload.read_fraction = [1] }}\n\
             [compare.experiments.a]\npoints = ['one']\n"
        );
        let compared = load(&text, &["workload.messages=7"]).unwrap().unwrap();
        let names: Vec<&str> = compared.fabrics.iter().map(|fabric| fabric.name).collect();
        assert_eq!((compared.baseline.name, &names[..]), ("edm", &["edm", "ird"][..]));
        let names: Vec<&str> = compared.experiments.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["z", "a"]);
        let point = &compared.experiments[0].points[1];
        assert_eq!(point.name, "q");
        assert_eq!(point.settings, ["workload.load=0.4", "workload.read_fraction=1"]);
        let WorkloadConfig::Poisson(poisson) = &point.scenario.workload else { panic!() };
        assert_eq!((poisson.load, poisson.read_fraction, poisson.messages), (0.4, 1.0, 7));
        assert_eq!(point.scenario.fabric.nodes, 16);
        assert!(load("[fabric]\nnodes = 16\n", &[]).unwrap().is_none());
    }

    #[test]
    fn the_same_messages_ask_more_of_a_fabric_with_more_framing() {
        let text = format!(
            "{BASE}[compare.experiments.a]\npoints = ['one']\n\
             vary = {{ workload.load = [0.5], workload.read_fraction = [0] }}\n"
        );
        let compared = load(&text, &[]).unwrap().unwrap();
        let point = &compared.experiments[0].points[0];
        let asked = |name: &str| {
            let fabric = registry::find(name).unwrap();
            point.asked(fabric).unwrap().unwrap()
        };
        assert!((asked("edm") - 0.5).abs() < 1e-12);
        // A write of 64 B takes ten blocks and one for the notification or grant on each EDM link.
        // On IRD it takes a frame of 15 and a credit of 11.
        assert!((asked("ird") - 0.5 * 26.0 / 11.0).abs() < 1e-9, "{}", asked("ird"));
        let own = point.in_blocks_of(registry::find("ird").unwrap());
        assert_eq!(own.fabric_kind, "ird");
    }

    #[test]
    fn figure_8_has_its_18_points() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let points = ["figure8a.toml", "figure8b.toml"].map(|name| {
            let compared = Comparison::load(&root.join(name), &[], None).unwrap().unwrap();
            assert_eq!(compared.fabrics.len(), 7, "{name}");
            compared.experiments.iter().map(|of| of.points.len()).sum::<usize>()
        });
        assert_eq!(points, [13, 5]);
    }

    #[test]
    fn bad_comparisons_are_one_line_with_the_place() {
        let one = "[compare.experiments.a]\npoints = ['one']\n";
        for (text, error) in [
            (BASE.to_owned(), "c.toml: compare.experiments is not set: "),
            ("[compare]\nfabrics = ['emd']\n".to_owned(), "c.toml:2: compare.fabrics = ['emd']: "),
            (format!("{BASE}valus = ''\n"), "c.toml: compare.experiments is not set"),
            (format!("{BASE}valus = ''\n{one}"), "c.toml:5: compare.valus: unknown key: "),
            (format!("{BASE}values = 'gone.csv'\n{one}"), "gone.csv: cannot be read: "),
            (
                format!("{BASE}values = 'v.csv'\n[compare.experiments.b]\npoints = ['one']\n"),
                "c.toml: b, one: compare.values has no such row",
            ),
            (
                format!("{BASE}{one}vary = {{ workload.load = [] }}\n"),
                "c.toml:7: vary.workload.load: an empty axis: ",
            ),
            (
                format!("{BASE}{one}vary = {{ workload.load = [0.2, 0.4] }}\n"),
                "c.toml:6: compare.experiments.a.points = ['one']: vary has 2 points: ",
            ),
            (
                format!("{BASE}{one}vary = {{ workload.load = [2.0] }}\n"),
                "c.toml:7: workload.load = 2.0: must be ",
            ),
            (
                format!("{BASE}[compare.experiments.a]\npoints = ['x', 'x']\n"),
                "c.toml:6: compare.experiments.a.points = ['x', 'x']: must be different",
            ),
            (
                format!("{BASE}{one}vary = {{ fabric.topology = ['leaf-spine'] }}\n"),
                "c.toml: fabric edm runs on fabric.topology",
            ),
            (
                format!("{BASE}{one}vary = {{ fabric.kind = ['ird'] }}\n"),
                "c.toml:7: vary.fabric.kind: must be fabrics = [...], under [compare]",
            ),
            (
                format!("{BASE}{one}vary_published = {{ fabric.kind = ['ird'] }}\n"),
                "c.toml:7: vary.fabric.kind: must be fabrics = [...], under [compare]",
            ),
        ] {
            let found = load(&text, &[]).map(|_| ()).unwrap_err();
            assert!(found.starts_with(error), "{text}: {found}");
            assert!(!found.contains('\n'), "{found:?}");
        }
        let set =
            load(&format!("{BASE}{one}vary = {{ workload.load = [0.2] }}\n"), &["workload.load=1"]);
        assert!(set.map(|_| ()).unwrap_err().contains("--set sets it too"));
    }

    #[test]
    fn a_varied_seed_is_not_set_too() {
        let text = format!(
            "{BASE}[compare.experiments.a]\npoints = ['x', 'y']\n\
             vary = {{ run.seed = [1, 2] }}\n"
        );
        let compared = load(&text, &[]).unwrap().unwrap();
        let seeds = compared.experiments[0].points.iter().map(|point| point.scenario.run.seed);
        assert_eq!(seeds.collect::<Vec<_>>(), [1, 2]);
        let refused = load_with(&text, &[], Some(9)).map(|_| ()).unwrap_err();
        assert_eq!(refused, "c.toml:7: vary.run.seed: --seed sets it too: must be one of the two");
    }
}
