//! The networks that `ethermem emulate` tries.

use std::path::PathBuf;

use clap::Args;
use ethermem_experiments::remote::network::{Networks, latency, rate};

use crate::files::Files;

#[derive(Args)]
pub(crate) struct NetworksArguments {
    /// Time from a fault to the first byte of its page, in microseconds; several are all tried
    #[arg(long, value_name = "US,...", value_delimiter = ',', value_parser = latency)]
    latency_us: Vec<f64>,
    /// Data rate in Gb/s; several are all tried. Without it, bytes take no time
    #[arg(long, value_name = "GBPS,...", value_delimiter = ',', value_parser = rate)]
    bandwidth_gbps: Vec<f64>,
    /// Draw completion times from this file, written by `ethermem replay`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["latency_us", "bandwidth_gbps"])]
    latency_from: Option<PathBuf>,
    /// Fabric in that file, if it has several
    #[arg(long, value_name = "NAME", requires = "latency_from",
        conflicts_with_all = ["latency_us", "bandwidth_gbps"])]
    fabric: Option<String>,
    /// Seed of the draws
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

impl NetworksArguments {
    /// Adds the file that is read.
    pub(crate) fn reading(&self, files: Files) -> Files {
        files.reading("also --latency-from", self.latency_from.as_deref())
    }

    pub(crate) fn request(&self) -> Networks {
        Networks {
            latencies_us: self.latency_us.clone(),
            gbps: self.bandwidth_gbps.clone(),
            latency_from: self.latency_from.clone(),
            fabric: self.fabric.clone(),
            seed: self.seed,
        }
    }
}
