//! Single operations, by length and by number of operations in flight.

use ethermem_bench::micro::{self, MicroConfig, MicroOp, MicroResult};
use ethermem_sim::output::{TableStyle, TextTable};

use super::chosen;
use crate::error::Error;
use crate::runner::Runner;

/// Default length of reads and writes in bytes.
const BYTES: u64 = 64;

/// Measured points: every combination of the lists' entries.
#[derive(Clone, Debug)]
pub struct Request {
    /// URLs of pools.
    pub pools: Vec<String>,
    /// Measured operations.
    pub ops: Vec<MicroOp>,
    /// Lengths of reads and writes in bytes; 64 B if the list is empty.
    pub bytes: Vec<u64>,
    /// Numbers of operations in flight.
    pub depth: Vec<u32>,
    /// Number of measured operations per point; a tenth as many are warm-up.
    pub operations: u64,
    /// Seed of every random draw.
    pub seed: u64,
}

impl Request {
    /// Measures every point, in the order of the lists.
    ///
    /// # Errors
    ///
    /// When a measurement fails or is interrupted.
    pub fn run(&self, runner: &Runner<'static>) -> Result<Vec<MicroResult>, Error> {
        let mut results = Vec::new();
        for config in self.configs() {
            let result = micro::run(&config, runner.interrupt);
            results.push(result.map_err(|error| Error::of_bench(&error, runner))?);
        }
        Ok(results)
    }

    fn configs(&self) -> Vec<MicroConfig> {
        let mut configs = Vec::new();
        // Beside reads and writes, whose lengths they are, the others keep their own.
        let has_lengths = self.ops.iter().any(|op| op.fixed_bytes().is_none());
        for pool in &self.pools {
            for &op in &self.ops {
                let own = op.fixed_bytes();
                let usual = [own.unwrap_or(BYTES)];
                let keeps_own = self.bytes.is_empty() || own.is_some() && has_lengths;
                let asked: &[u64] = if keeps_own { &usual } else { &self.bytes };
                for &bytes in asked {
                    for &depth in &self.depth {
                        let (pool, seed) = (pool.clone(), self.seed);
                        let operations = self.operations;
                        configs.push(MicroConfig { pool, op, bytes, depth, operations, seed });
                    }
                }
            }
        }
        configs
    }
}

/// The results for people.
#[must_use]
pub fn table(results: &[MicroResult], style: TableStyle) -> String {
    let header = ["pool", "op", "bytes", "depth", "mean ns", "p50", "p99", "operations/s"];
    let row = |result: &MicroResult| {
        let times = [result.mean_ns, result.p50_ns, result.p99_ns].map(|ns| format!("{ns:.1}"));
        let head = [result.pool.clone(), result.op.to_string()];
        let numbers = [result.bytes.to_string(), result.depth.to_string()];
        let rate = format!("{:.0}", result.operations_per_s);
        head.into_iter().chain(numbers).chain(times).chain([rate]).collect()
    };
    let rows = results.iter().map(row).collect();
    let table = TextTable { header: &header, text_columns: &[0, 1], optional_columns: &[], rows };
    let lost: u64 = results.iter().map(|result| result.lost).sum();
    let lost = if lost > 0 { format!("{lost} operations were lost\n") } else { String::new() };
    let choices = results.iter().map(|result| (&result.pool, &result.choice));
    table.render(style) + &lost + &chosen(choices)
}
