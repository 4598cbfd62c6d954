//! YCSB's workloads on pools.

use ethermem_bench::ycsb::{self, Settings, Workload, YcsbResult};
use ethermem_sim::output::{TableStyle, TextTable};

use super::chosen;
use crate::error::Error;
use crate::runner::Runner;

/// Runs every workload on every pool.
///
/// # Errors
///
/// When a measurement fails or is interrupted.
pub fn run(
    pools: &[String],
    workloads: &[Workload],
    settings: &Settings,
    runner: &Runner<'static>,
) -> Result<Vec<YcsbResult>, Error> {
    let mut results = Vec::new();
    for pool in pools {
        for &workload in workloads {
            let result = ycsb::run(&settings.config(pool, workload), runner.interrupt);
            results.push(result.map_err(|error| Error::of_bench(&error, runner))?);
        }
    }
    Ok(results)
}

/// The results for people.
#[must_use]
pub fn table(results: &[YcsbResult], style: TableStyle) -> String {
    let header = [
        "pool",
        "workload",
        "op",
        "operations",
        "mean ns",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "max",
        "operations/s",
    ];
    let mut rows = Vec::new();
    for result in results {
        for times in &result.latencies {
            let head = [result.config.pool.as_str(), result.config.workload.name(), times.op];
            let mut row: Vec<String> = head.map(str::to_owned).into();
            row.push(times.operations.to_string());
            let ns = [times.mean_ns, times.p50_ns, times.p95_ns, times.p99_ns, times.p999_ns];
            row.extend(ns.into_iter().chain([times.max_ns]).map(|ns| format!("{ns:.1}")));
            let is_all = times.op == ycsb::ALL;
            row.push(if is_all {
                format!("{:.0}", result.operations_per_s)
            } else {
                String::new()
            });
            rows.push(row);
        }
    }
    let table = TextTable {
        header: &header,
        text_columns: &[0, 1, 2],
        optional_columns: &[8, 6, 9, 3],
        rows,
    };
    let mut text = table.render(style);
    for result in results.iter().filter(|result| result.lost > 0) {
        let (lost, pool, workload) = (result.lost, &result.config.pool, result.config.workload);
        text += &format!("{pool}, workload {workload}: {lost} operations were lost\n");
    }
    text + &chosen(results.iter().map(|result| (&result.config.pool, &result.choice)))
}
