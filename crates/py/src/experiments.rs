//! Experiments: reports, comparisons and studies, with the command's exact output.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use ethermem_experiments::replay::Setup;
use ethermem_experiments::report::figure;
use ethermem_experiments::selection::{Selection, fabric, link_gbps, trace_format};
use ethermem_experiments::{Runner, Silent, threads_default};
use ethermem_sim::output::{TableStyle, to_json};
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::scenario::Setting;
use ethermem_study::{Arrivals, Blades, Scope};
use ethermem_units::Ns;
use pyo3::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::attended::attended;
use crate::error::Failure;

/// Output of `--format json`, the table for people, and the page, if one was written.
type Done = (String, String, Option<PathBuf>);

/// Runs a comparison. `request` is JSON of [`CompareRequest`]; `words` is the command that repeats
/// it.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    request: String,
    words: Vec<String>,
    threads: Option<usize>,
) -> PyResult<Done> {
    attended(py, None, move |interrupt| {
        let request: CompareRequest = parsed(&request)?;
        let mut outcome = request.request()?.run(&runner(words, threads, interrupt))?;
        let (json, text) = (to_json(&outcome), outcome.text(TableStyle::Plain));
        Ok((json, text, outcome.write()?))
    })
}

/// Searches for what fabrics sustain. `request` is JSON of [`CapacityRequest`].
#[pyfunction]
pub(crate) fn capacity(
    py: Python<'_>,
    request: String,
    words: Vec<String>,
    threads: Option<usize>,
) -> PyResult<Done> {
    attended(py, None, move |interrupt| {
        let request: CapacityRequest = parsed(&request)?;
        let mut outcome = request.request()?.run(&runner(words, threads, interrupt))?;
        let (json, text) = (to_json(&outcome), outcome.text(TableStyle::Plain));
        Ok((json, text, outcome.write()?))
    })
}

/// Runs a report. `request` is JSON of [`ReportRequest`].
#[pyfunction]
pub(crate) fn report(
    py: Python<'_>,
    request: String,
    words: Vec<String>,
    threads: Option<usize>,
) -> PyResult<Done> {
    attended(py, None, move |interrupt| {
        let request: ReportRequest = parsed(&request)?;
        let report = request.request()?.run(&runner(words, threads, interrupt))?;
        let (json, text) = (to_json(&report.entries()), report.table(TableStyle::Plain));
        Ok((json, text, Some(report.path)))
    })
}

/// Studies a program. `request` is JSON of [`StudyRequest`]. The pager takes over the signals and
/// the children of this process, so the package calls it in a separate process.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[pyfunction]
pub(crate) fn study(
    py: Python<'_>,
    request: String,
    words: Vec<String>,
    threads: Option<usize>,
) -> PyResult<Done> {
    let done = py.detach(move || -> Result<Done, Failure> {
        let request: StudyRequest = parsed(&request)?;
        let interrupt = AtomicBool::new(false);
        let outcome = request.request()?.run(&runner(words, threads, &interrupt))?;
        let (json, text) = (to_json(&outcome.study), outcome.table(TableStyle::Plain));
        Ok((json, text, Some(outcome.write()?)))
    });
    Ok(done?)
}

fn runner(words: Vec<String>, threads: Option<usize>, interrupt: &AtomicBool) -> Runner<'_> {
    Runner {
        threads: threads.unwrap_or_else(threads_default),
        interrupt,
        commit: option_env!("ETHERMEM_COMMIT"),
        words,
        face: &Silent,
    }
}

fn parsed<T: DeserializeOwned>(request: &str) -> Result<T, Failure> {
    serde_json::from_str(request).map_err(|error| Failure::Input(error.to_string()))
}

fn fabrics(names: &[String]) -> Result<Vec<&'static FabricEntry>, Failure> {
    let found = names.iter().map(|name| {
        fabric(name).map_err(|allowed| Failure::Input(format!("fabric = {name:?}: {allowed}")))
    });
    found.collect()
}

fn settings(settings: &[String]) -> Result<Vec<Setting>, Failure> {
    Ok(settings.iter().map(|setting| setting.parse()).collect::<Result<_, _>>()?)
}

/// The entry of a list whose name is `found`.
fn named<T: Copy>(
    what: &str,
    found: &str,
    known: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, Failure> {
    known.iter().copied().find(|entry| name(*entry) == found).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|entry| name(*entry)).collect();
        Failure::Input(format!("{what} = {found:?}: must be one of {}", names.join(", ")))
    })
}

/// Request of `ethermem.compare`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompareRequest {
    scenario: Option<PathBuf>,
    trace: Option<PathBuf>,
    trace_format: Option<String>,
    seed: Option<u64>,
    settings: Vec<String>,
    fabrics: Vec<String>,
    published: bool,
    experiments: Vec<String>,
    out: Option<PathBuf>,
}

impl CompareRequest {
    fn request(self) -> Result<ethermem_experiments::compare::Request, Failure> {
        let format = self.trace_format.as_deref().map(|name| {
            let refused = |allowed| Failure::Input(format!("trace_format = {name:?}: {allowed}"));
            trace_format(name).map_err(refused)
        });
        let format = format.transpose()?;
        if self.scenario.is_none() && self.trace.is_none() {
            let problem = "scenario and trace are None: one of them must be a file";
            return Err(Failure::Input(problem.to_owned()));
        }
        Ok(ethermem_experiments::compare::Request {
            selection: Selection {
                scenario: self.scenario,
                trace: self.trace,
                trace_format: format,
                seed: self.seed,
                settings: settings(&self.settings)?,
            },
            fabrics: fabrics(&self.fabrics)?,
            method: match self.published {
                true => ethermem_experiments::compare::Method::Published,
                false => ethermem_experiments::compare::Method::Steady,
            },
            experiments: self.experiments,
            out: self.out,
        })
    }
}

/// Request of `ethermem.capacity`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CapacityRequest {
    fabrics: Vec<String>,
    workloads: Vec<String>,
    settings: Vec<String>,
    seed: u64,
    out: Option<PathBuf>,
}

impl CapacityRequest {
    fn request(self) -> Result<ethermem_experiments::capacity::Request, Failure> {
        let sizes = |name: &String| {
            let refused = |allowed| Failure::Input(format!("workload = {name:?}: {allowed}"));
            ethermem_experiments::capacity::workload(name).map_err(refused)
        };
        Ok(ethermem_experiments::capacity::Request {
            fabrics: fabrics(&self.fabrics)?,
            workloads: self.workloads.iter().map(sizes).collect::<Result<_, _>>()?,
            settings: settings(&self.settings)?,
            seed: self.seed,
            out: self.out,
        })
    }
}

/// Request of `ethermem.report`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportRequest {
    out: PathBuf,
    figures: Vec<String>,
    quick: bool,
    seed: Option<u64>,
}

impl ReportRequest {
    fn request(self) -> Result<ethermem_experiments::report::Request, Failure> {
        let figure = |name: &String| {
            figure(name).map_err(|allowed| Failure::Input(format!("figure = {name:?}: {allowed}")))
        };
        let figures = self.figures.iter().map(figure).collect::<Result<_, _>>()?;
        Ok(ethermem_experiments::report::Request {
            out: self.out,
            figures,
            quick: self.quick,
            seed: self.seed,
        })
    }
}

/// Request of `ethermem.study`.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyRequest {
    program: Vec<String>,
    prefetch: bool,
    /// Fractions of the peak memory, from 0 to 1.
    local: Vec<f64>,
    fabrics: Vec<String>,
    gbps: Vec<u64>,
    repeats: u32,
    repeats_max: Option<u32>,
    out: PathBuf,
    replay: ReplayRequest,
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
impl StudyRequest {
    fn request(self) -> Result<ethermem_experiments::remote::study::Request, Failure> {
        for gbps in &self.gbps {
            let refused = |allowed| Failure::Input(format!("gbps = {gbps}: {allowed}"));
            link_gbps(&gbps.to_string()).map_err(refused)?;
        }
        let words = self.program.into_iter().map(Into::into).collect();
        Ok(ethermem_experiments::remote::study::Request {
            program: ethermem_experiments::remote::Program { words, prefetch: self.prefetch },
            shares: self.local,
            fabrics: fabrics(&self.fabrics)?,
            gbps: self.gbps,
            repeats: ethermem_experiments::remote::repeats(self.repeats, self.repeats_max)?,
            out: self.out,
            setup: self.replay.setup()?,
        })
    }
}

/// Fields of `ethermem.Replay`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayRequest {
    cluster: u16,
    embed: u16,
    rack_nodes: u16,
    scope: String,
    arrivals: String,
    messages: u64,
    from_ns: u64,
    length_ns: Option<u64>,
    speed: f64,
    block_kib: u64,
    seed: u64,
    settings: Vec<String>,
}

impl ReplayRequest {
    fn setup(self) -> Result<Setup, Failure> {
        Ok(Setup {
            blades: Blades::of(self.cluster).map_err(Failure::Input)?,
            nodes: self.embed,
            rack_nodes: self.rack_nodes,
            scope: named("scope", &self.scope, &[Scope::Rack, Scope::Datacenter], Scope::name)?,
            arrivals: named(
                "arrivals",
                &self.arrivals,
                &[Arrivals::Drawn, Arrivals::AsTraced],
                Arrivals::name,
            )?,
            messages: self.messages,
            from: Ns(self.from_ns),
            length: self.length_ns.map(Ns),
            speed: self.speed,
            block_kib: self.block_kib,
            seed: self.seed,
            settings: settings(&self.settings)?,
        })
    }
}
