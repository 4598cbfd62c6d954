//! Properties of a machine that cost a memory node or its clients latency, and how to change them.
//!
//! Everything is read from `/proc` and `/sys`, below a root that tests can choose. A value that
//! cannot be read is reported as unknown: nothing is guessed.

mod checks;
mod files;

use std::path::Path;

use serde::Serialize;

use files::Files;

/// Judgement of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The property costs nothing.
    Fine,
    /// The property costs what the finding says.
    Costs,
    /// The machine does not show the property.
    Unknown,
}

impl Verdict {
    /// Name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Fine => "fine",
            Verdict::Costs => "costs",
            Verdict::Unknown => "unknown",
        }
    }
}

/// One property of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the property.
    pub name: String,
    /// Judgement of the property.
    pub verdict: Verdict,
    /// Value that was found.
    pub found: String,
    /// Its cost in words; empty if it is fine.
    pub cost: String,
    /// How to change it; empty if nothing needs to change.
    pub remedy: String,
}

impl Finding {
    fn fine(name: &str, found: impl Into<String>) -> Finding {
        let none = String::new;
        Finding {
            name: name.to_owned(),
            verdict: Verdict::Fine,
            found: found.into(),
            cost: none(),
            remedy: none(),
        }
    }

    fn costs(name: &str, found: impl Into<String>, cost: &str, remedy: &str) -> Finding {
        Finding {
            verdict: Verdict::Costs,
            cost: cost.to_owned(),
            remedy: remedy.to_owned(),
            ..Finding::fine(name, found)
        }
    }

    fn unknown(name: &str, why: &str) -> Finding {
        Finding { verdict: Verdict::Unknown, ..Finding::fine(name, why) }
    }
}

/// Checks the machine whose `/proc` and `/sys` are below `root`.
#[must_use]
pub fn examine(root: &Path) -> Vec<Finding> {
    let files = Files::new(root);
    let checks: [fn(&Files) -> Finding; 14] = [
        checks::cores,
        checks::load,
        checks::governor,
        checks::idle_states,
        checks::halt_polling,
        checks::isolation,
        checks::virtualisation,
        checks::clock,
        checks::numa,
        checks::huge_pages,
        checks::socket_buffers,
        checks::busy_poll,
        checks::datagrams_to_a_call,
        checks::privileges,
    ];
    let mut findings: Vec<Finding> = checks.iter().map(|check| check(&files)).collect();
    findings.extend(checks::interfaces(&files));
    findings
}
