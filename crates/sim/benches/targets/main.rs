//! Measures every target of this project and reports which are met.
//!
//! `cargo bench -p ethermem-sim --bench targets [-- SECTION...]`, with sections from [`SECTIONS`].
//! Simulated numbers are exact and equal in every run. Timed numbers are measured several times.
//! Each run has a process of its own and takes turns with the runs that it is compared to; the
//! median counts. `docs/benchmarks.md` has the numbers and how to read them.

mod applications;
mod case;
mod clos;
mod figure8;
mod floor;
mod latency;
mod microbenchmark;
mod report;
mod speed;
mod sweeps;
#[path = "../../tests/simulation/web_search.rs"]
mod web_search;
mod yaps;

use std::process::ExitCode;

use report::{Report, Section};

type Measure = fn() -> Section;

/// Every section: its name, what it shows, and its measuring function.
const SECTIONS: [(&str, &str, Measure); 7] = [
    ("latency", "unloaded latency, budget and simulated", latency::measure),
    ("microbenchmark", "64 B, all-to-all, 144 nodes", microbenchmark::measure),
    ("applications", "application sizes at load 0.4, 144 nodes", applications::measure),
    ("sweeps", "what each parameter of the scheduler does", sweeps::measure),
    ("figure8", "figure 8 of EDM: its time, and who is ahead at load 0.9", figure8::measure),
    ("clos", "web search on leaf and spine, beside YAPS", clos::measure),
    ("speed", "time and memory of the simulator", speed::measure),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(job) = arguments.iter().position(|argument| argument == speed::CHILD) {
        let argument = |at: usize| arguments.get(job + at).map_or("", String::as_str);
        speed::child(argument(1), argument(2));
        return ExitCode::SUCCESS;
    }
    // Cargo passes flags such as `--bench`.
    let wanted: Vec<&String> = arguments.iter().filter(|name| !name.starts_with('-')).collect();
    if let Some(name) = wanted.iter().find(|name| SECTIONS.iter().all(|(known, ..)| known != *name))
    {
        let known = SECTIONS.map(|(name, ..)| name).join(", ");
        eprintln!("targets: no section {name}: must be one of {known}");
        return ExitCode::from(2);
    }
    let mut report = Report::default();
    for (name, shows, measure) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|wanted| *wanted == name) {
            println!("\n== {name}: {shows}");
            let section = measure();
            print!("{section}");
            report.sections.insert(name, section);
        }
    }
    print!("{report}");
    match report.write() {
        Ok(path) => println!("written: {}", path.display()),
        Err(error) => {
            eprintln!("targets: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
