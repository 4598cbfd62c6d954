//! Failures of commands, and their exit codes.

use std::error::Error as _;
use std::fmt::Display;
use std::io::IsTerminal;
use std::net::AddrParseError;
use std::num::{IntErrorKind, ParseIntError};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use ethermem_experiments::Error;

use crate::interrupt;
use crate::output::{print, say};

/// The reason why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An argument or a file cannot be used; one line says what, where and what is allowed.
    Input(String),
    /// An invariant is violated, which is a defect of this program.
    Broken {
        what: String,
        /// Command that repeats the run, including the seed.
        command: String,
    },
    /// A signal interrupted the command; the text says what was done and what was written.
    Interrupted(String),
    /// The reader of the output has closed it.
    Unread,
}

impl Failure {
    pub(crate) fn input(what: impl Display) -> Failure {
        Failure::Input(what.to_string())
    }

    /// Prints it on the standard error.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Failure::Input(what) => {
                say(format_args!("error: {what}"));
                ExitCode::from(2)
            }
            Failure::Broken { what, command } => {
                let repeat = "this is a defect of ethermem; repeat it with";
                say(format_args!("error: {what}\n{repeat}: {command}"));
                ExitCode::from(1)
            }
            Failure::Interrupted(what) => {
                say(format_args!("interrupted {what}; {}", interrupt::left()));
                ExitCode::from(130)
            }
            Failure::Unread => ExitCode::SUCCESS,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Broken { what, command } => Failure::Broken { what, command },
            Error::Interrupted(what) => Failure::Interrupted(what),
            error => Failure::input(error),
        }
    }
}

/// Prints help and version on the standard output, or one line for a wrong argument, as for any bad
/// input.
pub(crate) fn report_usage(error: &clap::Error, not_here: &[&str]) -> ExitCode {
    if !error.use_stderr() {
        let printed = if std::io::stdout().is_terminal() {
            error.print().map_err(Failure::input)
        } else {
            print(&error.to_string())
        };
        return printed.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS);
    }
    if matches!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        say(error.to_string().trim_end());
        return ExitCode::from(2);
    }
    let text = error.to_string();
    let lines = text.lines().take_while(|line| {
        !line.starts_with("Usage:") && !line.starts_with("For more information")
    });
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let mut line = words.join(" ");
    if let Some(why) = error.source() {
        let said = why.to_string();
        if let Some(why) = why.downcast_ref::<ParseIntError>() {
            line = line.replace(&said, allowed(why));
        } else if why.is::<AddrParseError>() {
            let must = "must be an IP address and a port, such as 127.0.0.1:7400 or [::1]:7400";
            line = line.replace(&said, must);
        } else if let Some((least, most)) = bounds(&said) {
            line = line.replace(&said, &format!("must be {least} to {most}"));
        }
    }
    if error.kind() == ErrorKind::InvalidUtf8 {
        let words = std::env::args_os().skip(1).filter(|word| word.to_str().is_none());
        let found: Vec<String> = words.map(|word| format!("{word:?}")).collect();
        line = format!("error: {}: must be UTF-8 where it is no path", found.join(", "));
    }
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && not_here.contains(&name.as_str())
    {
        line = format!("error: `{name}` is not in this build: `make build` builds all commands");
    }
    say(line);
    ExitCode::from(2)
}

/// The values that a number may have.
fn allowed(why: &ParseIntError) -> &'static str {
    match why.kind() {
        IntErrorKind::PosOverflow => "must be a smaller whole number",
        _ => "must be a whole number from 0",
    }
}

/// The bounds in the parser's words for a number out of its range, as in `0 is not in 1..=16`.
fn bounds(said: &str) -> Option<(&str, &str)> {
    let (_, range) = said.rsplit_once(" is not in ")?;
    let (least, most) = range.split_once("..=")?;
    let is_number = |text: &str| text.parse::<i128>().is_ok();
    (is_number(least) && is_number(most)).then_some((least, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_found_only_in_words_of_a_range() {
        assert_eq!(bounds("0 is not in 1..=1024"), Some(("1", "1024")));
        assert_eq!(bounds("9 is not in -4..=4"), Some(("-4", "4")));
        assert_eq!(bounds("a is not in b..=c"), None);
        assert_eq!(bounds("must be KEY=VALUE"), None);
    }

    #[test]
    fn a_broken_invariant_has_an_exit_code_of_its_own() {
        let what = "invariant violated: granted 64 B, delivered 0 B".to_owned();
        let command = "ethermem sim s.toml --seed 7".to_owned();
        let failure = Failure::from(Error::Broken { what, command });
        assert!(matches!(failure, Failure::Broken { .. }), "{failure:?}");
        assert_eq!(failure.report(), ExitCode::from(1));
    }
}
