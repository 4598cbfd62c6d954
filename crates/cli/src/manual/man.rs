//! `ethermem man`: a manual page for each command.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;
use ethermem_sim::output::{MadeFolder, write_file};

use crate::failure::Failure;

#[derive(Args)]
#[command(after_help = "Example:\n  ethermem man --out man1 && man -l man1/ethermem-sim.1")]
pub(crate) struct Arguments {
    /// Folder for the pages ethermem.1, ethermem-sim.1 and so on; created if absent
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, root: Command) -> Result<(), Failure> {
    // `help` repeats every command and has no page of its own.
    let mut root = root.disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    render(&root, &mut pages)?;
    let folder = MadeFolder::make(&arguments.out).map_err(Failure::input)?;
    let write = |(name, text): &(String, Vec<u8>)| write_file(&folder.path().join(name), text);
    pages.iter().try_for_each(write).map_err(Failure::input)
}

/// Adds the name and the text of the page of a command, and of each subcommand.
fn render(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text).map_err(Failure::input)?;
    pages.push((page.get_filename(), text));
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below.into_iter().try_for_each(|below| render(below, pages))
}
