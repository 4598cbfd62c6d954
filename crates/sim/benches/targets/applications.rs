//! The five application workloads (section 4.3.2), run to the end, in each order.

use crate::case::{Case, run_all};
use crate::report::{Check, Section, Target};

const APPLICATIONS: [&str; 5] = ["hadoop", "spark", "sparksql", "graphlab", "memcached"];

const PAIR: &str = "order \"pair\"";
const RELAXED: &str = "order \"relaxed\"";

/// Name and lines of `[fabric.edm]`.
const VARIANTS: [(&str, &str); 4] = [
    (PAIR, ""),
    ("order \"strict\"", "order = \"strict\""),
    (RELAXED, "order = \"relaxed\""),
    ("plain EDM (srpt-published)", "policy = \"srpt-published\""),
];

pub(crate) fn measure() -> Section {
    let mut section = Section::default();
    for messages in [20_000, 2_000] {
        for (variant, edm) in VARIANTS {
            let cases = APPLICATIONS.map(|application| {
                let workload = format!(
                    "load = 0.4\nsize_cdf = \"{application}\"\nread_fraction = 0.5\n\
                     messages = {messages}"
                );
                Case::edm(application, edm, &workload)
            });
            let title = format!("{variant}, {messages} messages");
            for (case, result) in cases.iter().zip(run_all(&cases)) {
                let all = &result.kinds.all;
                let mut slowdown = |what: &str, most: f64, value: Option<f64>| {
                    let what = format!("{}, {title}: {what}", case.label);
                    let value = value.expect("messages were measured");
                    section.check(Check::exact(what, "", Target::AtMost(most), value));
                };
                if variant == PAIR {
                    slowdown("mean", 1.55, all.slowdown_mean);
                    slowdown("p99", 3.2, all.slowdown_p99);
                }
                if variant == RELAXED {
                    slowdown("mean", 1.15, all.slowdown_mean);
                }
                let unfinished = (messages - result.messages_finished) as f64;
                let what = format!("{}, {title}: not finished", case.label);
                section.check(Check::exact(what, "", Target::Exactly(0.0), unfinished));
                section.run(&title, case, result);
            }
        }
    }
    section
}
