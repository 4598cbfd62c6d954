//! `ethermem schema`.

use clap::{Args, ValueEnum};
use ethermem_sim::output::to_json;
use ethermem_sim::schema;

use crate::failure::Failure;
use crate::output::print;

const EXAMPLE: &str = "Example:\n  ethermem schema scenario > scenario.schema.json";

/// Subjects of schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A scenario file
    Scenario,
    /// The JSON that `sim` and `compare` print
    Results,
}

#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// Subject of the schema
    #[arg(value_name = "KIND")]
    kind: Kind,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    print(&to_json(&match arguments.kind {
        Kind::Scenario => schema::scenario(),
        Kind::Results => schema::results(),
    }))
}
