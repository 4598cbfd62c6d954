//! Each parameter of the scheduler alone, on the lightest and on a heavy tail.

use crate::case::{Case, run_all};
use crate::report::Section;

/// Title, and lines of `[workload]`.
const WORKLOADS: [(&str, &str); 2] = [
    ("64 B at load 0.9", "load = 0.9\nmessage_bytes = 64\nmessages = 300000"),
    ("memcached at load 0.4", "load = 0.4\nsize_cdf = \"memcached\"\nmessages = 5000"),
];

pub(crate) fn measure() -> Section {
    let mut section = Section::default();
    for (title, workload) in WORKLOADS {
        for (parameter, values) in parameters() {
            let case = |value: &String| {
                let line = format!("{parameter} = {value}");
                Case::edm(line.clone(), &line, workload)
            };
            let cases: Vec<Case> = values.iter().map(case).collect();
            for (case, result) in cases.iter().zip(run_all(&cases)) {
                section.run(&format!("{title}, {parameter}"), case, result);
            }
        }
    }
    section
}

fn parameters() -> [(&'static str, Vec<String>); 6] {
    let numbers = |values: &[u32]| values.iter().map(u32::to_string).collect();
    let names = |values: &[&str]| values.iter().map(|value| format!("{value:?}")).collect();
    [
        ("policy", names(&["srpt", "srpt-published", "fcfs", "auto"])),
        ("order", names(&["pair", "strict", "relaxed"])),
        ("notifications_max", numbers(&[1, 2, 3, 4, 5, 6, 7, 8])),
        ("chunk_bytes", numbers(&[64, 128, 256, 512, 1024])),
        ("lookahead_iterations", numbers(&[1, 2, 3, 4])),
        ("ahead_blocks", numbers(&[0, 8, 16, 34, 68])),
    ]
}
