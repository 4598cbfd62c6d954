//! `ethermem keygen`.

use std::path::PathBuf;

use clap::Args;
use ethermem_udp::seal::KeyFile;
use ethermem_wire::clio::TenantId;

use crate::failure::Failure;
use crate::output::print;

const EXAMPLES: &str = "Example:\n  \
    ethermem keygen --tenant 7 --out analytics.key\n  \
    ethermem node --memory 64GiB --listen 0.0.0.0:7400 --key analytics.key";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Number of the tenant whose key it is, 0 to 65535; each key of a node has another
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    tenant: u16,
    /// Write it to this file, which its owner alone may read; one that is there stays. Without it,
    /// the key is printed
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let key = KeyFile::generate(TenantId(arguments.tenant)).map_err(Failure::input)?;
    match &arguments.out {
        Some(path) => key.write(path).map_err(Failure::input),
        None => print(&key.text()),
    }
}
