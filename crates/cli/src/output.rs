//! The standard output: tables for people, JSON for programs.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;

use clap::ValueEnum;
use ethermem_sim::output::{TableStyle, to_json};
use serde::Serialize;
use terminal_size::{Width, terminal_size};

use crate::failure::Failure;

/// Format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

impl Format {
    /// Prints `value` as JSON, or as the table that is made of it.
    pub(crate) fn print<T: Serialize + ?Sized>(
        self,
        value: &T,
        table: impl FnOnce(&T, TableStyle) -> String,
    ) -> Result<(), Failure> {
        print(&match self {
            Format::Json => to_json(value),
            Format::Table => table(value, table_style()),
        })
    }

    /// Names the page that was written, if one was. JSON stays alone on the standard output.
    pub(crate) fn name_page(self, page: Option<&Path>) -> Result<(), Failure> {
        match page {
            Some(page) if self == Format::Table => print(&format!("wrote {}\n", page.display())),
            _ => Ok(()),
        }
    }
}

/// Format of rows of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// For people
    #[value(alias = "text")]
    Table,
    /// For programs
    Json,
    /// For spreadsheets: the table's rows, with a header that names units
    Csv,
}

impl RowFormat {
    /// Prints `value` as JSON, or as the table or rows that are made of it.
    pub(crate) fn print<T: Serialize + ?Sized>(
        self,
        value: &T,
        table: impl FnOnce(&T, TableStyle) -> String,
        csv: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        match self {
            RowFormat::Csv => print(&csv(value)),
            RowFormat::Json => Format::Json.print(value, table),
            RowFormat::Table => Format::Table.print(value, table),
        }
    }
}

/// The table style: ruled to the width of a terminal, plain for files and pipes.
pub(crate) fn table_style() -> TableStyle {
    if !std::io::stdout().is_terminal() {
        return TableStyle::Plain;
    }
    let width = terminal_size().map_or(80, |(Width(columns), _)| columns);
    TableStyle::Ruled { width_max: width.into() }
}

/// Prints a line on the standard error. If that is full or closed, the line is dropped and the
/// command goes on; `eprintln!` would panic.
pub(crate) fn say(what: impl Display) {
    let _ = std::io::stderr().write_all(format!("{what}\n").as_bytes());
}

/// Prints results. A reader that has closed the pipe, as `head` does, is not an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::Unread),
        Err(error) => Err(Failure::Input(format!("cannot write the standard output: {error}"))),
    }
}
