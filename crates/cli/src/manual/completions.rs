//! `ethermem completions`.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::failure::Failure;
use crate::output::print;

const EXAMPLES: &str = "Examples:\n  \
    source <(ethermem completions bash)          # in this shell\n  \
    ethermem completions zsh > ~/.zfunc/_ethermem";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell that reads the completions
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, root: &Command) -> Result<(), Failure> {
    // The generators would offer hidden commands, too, so they get a tree without them.
    let shown = root.get_subcommands().filter(|command| !command.is_hide_set());
    let mut shown = Command::new("ethermem")
        .version(env!("ETHERMEM_VERSION"))
        .propagate_version(true)
        .subcommands(shown.cloned());
    let mut script = Vec::new();
    generate(arguments.shell, &mut shown, "ethermem", &mut script);
    print(&String::from_utf8_lossy(&script))
}
