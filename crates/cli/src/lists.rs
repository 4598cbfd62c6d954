//! `ethermem fabrics` and `ethermem limits`: lists of what the program knows.

use clap::Args;
use ethermem_experiments::fabrics;
#[cfg(feature = "serve")]
use ethermem_experiments::operate::limits;

use crate::failure::Failure;
use crate::output::Format;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Format of the list
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn fabrics(arguments: &Arguments) -> Result<(), Failure> {
    arguments.format.print(&fabrics::list()[..], fabrics::table)
}

#[cfg(feature = "serve")]
pub(crate) fn limits(arguments: &Arguments) -> Result<(), Failure> {
    arguments.format.print(&limits::LIMITS[..], limits::table)
}
