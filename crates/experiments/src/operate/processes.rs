//! The processes of a memory node: listed for people, and ended.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use ethermem_node::{AskError, ControlAnswer, ControlQuestion, ProcessStatus, ask};
use ethermem_sim::output::{TableStyle, TextTable};
use serde::Serialize;

use crate::error::Error;

/// Numbers of a process: its tenant's and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    tenant: u16,
    process: u32,
}

/// A process that was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ended {
    tenant: u16,
    process: u32,
    ended: bool,
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Id, String> {
        let numbers = text.split_once('/').and_then(|(tenant, process)| {
            Some(Id { tenant: tenant.parse().ok()?, process: process.parse().ok()? })
        });
        numbers.ok_or_else(|| "must be TENANT/PROCESS, two numbers, as in 1/7".to_owned())
    }
}

impl Ended {
    /// A line for people.
    #[must_use]
    pub fn line(&self, _: TableStyle) -> String {
        format!("ended {}/{}\n", self.tenant, self.process)
    }
}

/// Asks a node for its processes. `control` is the path of the node's Unix socket.
///
/// # Errors
///
/// [`Error::Request`], with one line for each way in which the node can fail to answer.
pub fn list(control: Option<&Path>) -> Result<Vec<ProcessStatus>, Error> {
    match asked(control, ControlQuestion::Processes {})? {
        ControlAnswer::Processes(found) => Ok(found),
        _ => Err(mixed_up()),
    }
}

/// Ends a process of a node.
///
/// # Errors
///
/// As [`list`]. If the answer did not come, the line says that the process may have ended.
pub fn end(control: Option<&Path>, id: Id) -> Result<Ended, Error> {
    let Id { tenant, process } = id;
    match asked(control, ControlQuestion::End { tenant, process })? {
        ControlAnswer::Ended(true) => Ok(Ended { tenant, process, ended: true }),
        ControlAnswer::Ended(false) => Err(Error::Request(format!(
            "{tenant}/{process}: no such process: it must be one that lives"
        ))),
        _ => Err(mixed_up()),
    }
}

fn asked(control: Option<&Path>, question: ControlQuestion) -> Result<ControlAnswer, Error> {
    let path = control.ok_or_else(|| {
        let problem = "--control is missing: it must be the path of the node's --control";
        Error::Request(problem.to_owned())
    })?;
    let failed =
        |problem: &dyn Display| Error::Request(format!("--control {}: {problem}", path.display()));
    match ask(path, question) {
        Ok(ControlAnswer::Refused(problem)) => Err(failed(&problem)),
        Ok(answer) => Ok(answer),
        Err(error @ (AskError::Silent | AskError::Ended | AskError::Malformed(_)))
            if matches!(question, ControlQuestion::End { .. }) =>
        {
            Err(failed(&format!("{error}; the process may be ended or not: list them")))
        }
        Err(error) => Err(failed(&error)),
    }
}

fn mixed_up() -> Error {
    let problem = "--control: the answer is to another question: is it a node of this version?";
    Error::Request(problem.to_owned())
}

/// A row for each process.
#[must_use]
pub fn table(found: &[ProcessStatus], style: TableStyle) -> String {
    let header =
        ["process", "tenant", "memory, B", "age, s", "unheard, s", "lease left, s", "state"];
    let seconds = |time: Option<f64>| time.map_or("-".to_owned(), |time| format!("{time:.1}"));
    let row = |process: &ProcessStatus| {
        vec![
            format!("{}/{}", process.tenant, process.process),
            process.tenant_name.clone(),
            process.memory_bytes.to_string(),
            format!("{:.1}", process.age_s),
            seconds(process.unheard_s),
            seconds(process.lease_left_s),
            process.state.clone(),
        ]
    };
    let rows = found.iter().map(row).collect();
    let table =
        TextTable { header: &header, text_columns: &[0, 1, 6], optional_columns: &[], rows };
    table.render(style)
}
