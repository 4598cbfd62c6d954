//! Ten thousand web-search flows on a Clos, beside YAPS on the same flows.

use ethermem_sim::Message;

use crate::case::Case;
use crate::report::{Check, Section, Target, median, number};
use crate::speed::{SIMULATE_WAYS, sample, seconds};
use crate::yaps::{self, Protocol};

/// Turns of every fabric; one of YAPS takes over a minute.
const REPEATS: usize = 3;
/// How many times as fast as YAPS.
const RATIO_MIN: f64 = 10.0;
/// How far mean slowdowns may be from those of YAPS.
const SLOWDOWN_SHARE: f64 = 0.1;

const SCENARIO: &str = include_str!("../../../../scenarios/web-search-clos.toml");

/// A fabric with YAPS's parameters.
struct Peer {
    fabric: &'static str,
    keys: &'static str,
    protocol: Protocol,
}

const PEERS: [Peer; 3] = [
    Peer {
        fabric: "pfabric",
        keys: "",
        protocol: Protocol { flow_type: 2, host_type: 1, windows: [12, 15], timeout_s: 45e-6 },
    },
    Peer {
        fabric: "phost",
        keys: "[fabric.phost]\ntokens_unused_max = 8\ntimeout_us = 2.7\nshort_packets = 0\n\
               downgrade_ends_with_data = false\n",
        protocol: Protocol {
            flow_type: 112,
            host_type: 12,
            windows: [2, 6],
            timeout_s: 9.500_03e-6,
        },
    },
    Peer {
        fabric: "fastpass",
        // Its epochs take the time of 8.5 frames for 8.
        keys: "[fabric.fastpass]\ntimeslot_bytes = 1594\n",
        protocol: Protocol { flow_type: 114, host_type: 14, windows: [6, 12], timeout_s: 45e-6 },
    },
];

impl Peer {
    fn case(&self) -> Case {
        let scenario = format!("{SCENARIO}\n{}", self.keys);
        Case { label: self.fabric.to_owned(), fabric: self.fabric, scenario }
    }
}

pub(crate) fn measure() -> Section {
    let mut section = Section::default();
    let program = yaps::program();
    if program.is_none() {
        section.note(format!("SKIPPED: beside YAPS: {} does not name its program", yaps::PROGRAM));
    }
    for peer in PEERS {
        let case = peer.case();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..REPEATS {
            ours.push(sample(SIMULATE_WAYS, &case));
            let run = |program: &_| yaps::run(program, peer.protocol, &messages(&case));
            theirs.extend(program.as_deref().map(run));
        }
        let slowdown = ours[0].slowdown_mean.expect("it was asked for");
        section.note(format!(
            "{}, {} flows, {} events: {} s, mean slowdown {slowdown:.3}",
            peer.fabric,
            ours[0].messages,
            ours[0].events,
            number(median(&seconds(&ours))),
        ));
        let Some(first) = theirs.first() else { continue };
        let times: Vec<f64> = theirs.iter().map(|ran| ran.core_s).collect();
        let ratios: Vec<f64> =
            times.iter().zip(seconds(&ours)).map(|(theirs, ours)| theirs / ours).collect();
        section.note(format!(
            "{}, YAPS: {} s, mean slowdown {:.3}",
            peer.fabric,
            number(median(&times)),
            first.slowdown_mean,
        ));
        let what = format!("{}: times as fast as YAPS", peer.fabric);
        section.check(Check::median(what, "", Target::AtLeast(RATIO_MIN), &ratios));
        let what = format!("{}: mean slowdown, share off that of YAPS", peer.fabric);
        let off = (slowdown / first.slowdown_mean - 1.0).abs();
        section.check(Check::exact(what, "", Target::AtMost(SLOWDOWN_SHARE), off));
    }
    section
}

fn messages(case: &Case) -> Vec<Message> {
    let scenario = case.parse();
    let mut source = ethermem_sim::run::messages(&scenario).expect("a workload that opens");
    let mut messages = Vec::new();
    while let Some(message) = source.next_message().expect("a workload that goes on") {
        messages.push(message);
    }
    messages
}
