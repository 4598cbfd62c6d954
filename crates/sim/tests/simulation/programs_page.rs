//! The page of all programs on all fabrics: `docs/programs.md`. With `UPDATE_GOLDEN=1` in the
//! environment, the test writes it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ethermem_sim::metrics::RunResult;
use ethermem_sim::registry::{FABRIC_NAMES, FABRICS};
use ethermem_sim::scenario::Scenario;

use crate::support::run_scenario;

/// The programs, each with the design that finishes first and the reason.
const PROGRAMS: [(&str, &str, &str); 8] = [
    ("ring-allreduce", "", ""),
    ("hierarchical-allreduce", "", ""),
    ("all-to-all", "", ""),
    ("gather", "", ""),
    ("broadcast", "", ""),
    ("supersteps", "", ""),
    ("shuffle", "", ""),
    ("key-value", "", ""),
];

/// Designs that finish within this share of the first one are equal to it.
const TIE: f64 = 0.01;

const HEAD: &str = "\
# Programs on every fabric

A test writes this page: `cargo test -p ethermem-sim --test simulation programs_page`, with
`UPDATE_GOLDEN=1` if the numbers are to change. `ethermem compare scenarios/program-gather.toml`
prints the row of one program, with its messages.

";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// One program on every fabric, in the order of the registry.
fn results(program: &str) -> Vec<RunResult> {
    let path = root().join(format!("scenarios/program-{program}.toml"));
    let scenario = Scenario::load(&path, FABRIC_NAMES).expect("a scenario of the repository");
    FABRIC_NAMES.iter().map(|fabric| run_scenario(&scenario, fabric, None)).collect()
}

fn finished_us(result: &RunResult) -> f64 {
    result.program.as_ref().expect("a program").finished_ns / 1e3
}

/// A table with a row for each fabric and a column for each program.
fn table(
    page: &mut String,
    first: Option<&str>,
    all: &[Vec<RunResult>],
    value: impl Fn(&RunResult) -> f64,
) -> std::fmt::Result {
    let names = PROGRAMS.map(|(name, ..)| name);
    writeln!(page, "| | {} |", names.join(" | "))?;
    writeln!(page, "|---|{}", "---|".repeat(names.len()))?;
    if let Some(first) = first {
        writeln!(page, "{first}")?;
    }
    for (at, fabric) in FABRIC_NAMES.iter().enumerate() {
        write!(page, "| `{fabric}` |")?;
        for results in all {
            write!(page, " {:.2} |", value(&results[at]))?;
        }
        writeln!(page)?;
    }
    writeln!(page)
}

fn page(all: &[Vec<RunResult>]) -> Result<String, std::fmt::Error> {
    let mut page = HEAD.to_owned();
    let links = all.iter().map(|results| {
        let program = results[0].program.as_ref().expect("a program");
        format!(" {:.2} |", program.links_ns / 1e3)
    });
    let links = format!("| links without latency |{}", links.collect::<String>());
    page.push_str("## Time to finish, in us\n\n");
    table(&mut page, Some(&links), all, finished_us)?;
    page.push_str("## 99th percentile of a message's latency, in us\n\n");
    let latency = |ns: Option<f64>| ns.expect("messages") / 1e3;
    table(&mut page, None, all, |result| latency(result.kinds.all.latency_ns_p99))?;
    page.push_str("## Median of a message's latency, in us\n\n");
    table(&mut page, None, all, |result| latency(result.kinds.all.latency_ns_p50))?;
    Ok(page)
}

#[test]
fn the_page_of_programs_is_as_the_fabrics_are() {
    let all = PROGRAMS.map(|(name, ..)| results(name));
    let page = page(&all).expect("a string takes everything");
    let path = root().join("docs/programs.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).expect("docs is writable");
    }
    let known = std::fs::read_to_string(&path).expect("the page exists");
    for (number, (known, now)) in known.lines().zip(page.lines()).enumerate() {
        assert_eq!(known, now, "line {}", number + 1);
    }
    assert_eq!(known.len(), page.len());
}
