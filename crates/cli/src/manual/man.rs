//! `ethermem man`: a manual page for each command.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use ethermem_sim::output::{OutputError, write_file};

use crate::failure::Failure;

#[derive(Args)]
#[command(after_help = "Example:\n  ethermem man --out man1 && man -l man1/ethermem-sim.1")]
pub(crate) struct Arguments {
    /// Folder for the pages, which is made if it is not there: ethermem.1, ethermem-sim.1 and so on
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, root: Command) -> Result<(), Failure> {
    // `help` repeats every command and has no page of its own.
    let mut root = root.disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    render(&root, &mut pages)?;
    let folder = arguments.out.as_path();
    let missing: Vec<&Path> = folder.ancestors().take_while(|one| !one.exists()).collect();
    let written = write(folder, &pages);
    if written.is_err() {
        // The innermost first; a folder with a page in it stays.
        missing.into_iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
    written.map_err(Failure::input)
}

/// Adds the name and the text of the page of a command, and of each below it.
fn render(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text).map_err(Failure::input)?;
    pages.push((page.get_filename(), text));
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below.into_iter().try_for_each(|below| render(below, pages))
}

fn write(folder: &Path, pages: &[(String, Vec<u8>)]) -> Result<(), OutputError> {
    let unmade = |reason| OutputError { path: folder.to_owned(), reason };
    fs::create_dir_all(folder).map_err(unmade)?;
    pages.iter().try_for_each(|(name, text)| write_file(&folder.join(name), text))
}
