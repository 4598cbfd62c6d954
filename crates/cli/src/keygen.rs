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
    /// Number of the key's tenant, 0 to 65535; every key of a node has a different one
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    tenant: u16,
    /// Write the key to this file, which only its owner may read; an existing file is kept. Without
    /// it, the key is printed
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
