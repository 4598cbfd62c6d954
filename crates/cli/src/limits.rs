//! `ethermem limits`.

use clap::Args;
use ethermem_experiments::operate::limits::{LIMITS, table};

use crate::failure::Failure;
use crate::output::Format;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Format of the list
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.format.print(&LIMITS[..], table)
}
