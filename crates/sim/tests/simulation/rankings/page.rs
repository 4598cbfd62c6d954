//! The page of all statements.

use std::fmt::Write;

use super::statements::{Behind, Statement};
use super::{Count, WORKLOADS};
use crate::support::hold_page;

const HEAD: &str = "\
# Which fabric is ahead

Each section is a sentence of this documentation that ranks fabrics. Its table says where the
sentence holds in the run of its command: documents claim it of the workloads in bold alone. A dash
means that the fabric, or all that it is compared with, do not sustain the load. A fabric that does
not sustain the load has no number, so it is not compared. A workload without an entry was not run.

All runs have 32 nodes at 100 Gb/s, one seed, and 30,000 messages of 64 B, 10,000 of 1 KiB, 5,000 of
4 KiB, or 1,000 of an application. A test makes them and compares this page. Another form of it runs
every sentence on every workload, with three seeds and two numbers of messages, the second four
times the first. It takes hours:

```sh
ETHERMEM_RANKINGS=whole cargo test --release -p ethermem-sim --test simulation rankings
```
";

fn cell(statement: &Statement, name: &str, count: Option<Count>) -> String {
    let Some(count) = count else { return String::new() };
    match (count.compared, count.held) {
        (0, _) => "-".to_owned(),
        (_, 0) => "no".to_owned(),
        _ if statement.holds.contains(&name) => "**yes**".to_owned(),
        _ => "yes".to_owned(),
    }
}

fn section(page: &mut String, statement: &Statement, counts: &[Option<Count>]) {
    let Statement { id, says, ahead, number, load, read_fraction, .. } = statement;
    let compared = match statement.behind {
        Behind::Rivals => "every rival".to_owned(),
        Behind::These(these) => {
            these.iter().map(|one| format!("`{}`", one.fabric)).collect::<Vec<_>>().join(", ")
        }
    };
    let sets: String = ahead.settings.iter().map(|set| format!(" --set {set}")).collect();
    writeln!(
        page,
        "\n## {id}\n\n{says}\n\nNumber: `{number}`, compared with {compared}.\n\n```sh\n\
         ethermem sim scenarios/load-64b.toml --fabric {fabric}{sets} \\\n    \
         --set fabric.nodes=32 --set workload.load={load} \\\n    \
         --set workload.read_fraction={read_fraction} --set {key}\n```\n",
        number = number.name,
        fabric = ahead.fabric,
        key = WORKLOADS[0].key,
    )
    .expect("a string takes all");
    let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
    let cells: Vec<String> =
        names.iter().zip(counts).map(|(name, &count)| cell(statement, name, count)).collect();
    let rule = "---|".repeat(names.len());
    writeln!(page, "| {} |\n|{rule}\n| {} |", names.join(" | "), cells.join(" | "))
        .expect("a string takes all");
}

/// Compares the page, or writes it.
pub(super) fn hold(table: &[(&Statement, Vec<Option<Count>>)]) {
    let mut page = HEAD.to_owned();
    for (statement, counts) in table {
        section(&mut page, statement, counts);
    }
    hold_page("rankings.md", &page);
}
