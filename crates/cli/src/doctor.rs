//! `ethermem doctor`.

use std::path::Path;

use clap::Args;
use ethermem_experiments::operate::doctor::table;
use ethermem_node::doctor::examine;

use crate::failure::Failure;
use crate::output::Format;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem doctor\n  \
    ethermem doctor --format json")]
pub(crate) struct Arguments {
    /// Format of the findings
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.format.print(&examine(Path::new("/"))[..], table)
}
