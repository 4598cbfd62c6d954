//! Ten thousand web-search flows on a Clos, compared with YAPS on the same flows.

use std::path::Path;

use ethermem_sim::Message;

use crate::case::Case;
use crate::report::{Check, Section, Target, median, number};
use crate::speed::{SIMULATE_WAYS, sample, seconds};
use crate::web_search::{self, YAPS_FASTPASS, YAPS_PFABRIC, YAPS_PHOST};
use crate::yaps::{self, Protocol, Switches};

/// Number of turns of every fabric; one of YAPS takes over a minute.
const REPEATS: usize = 3;
/// Minimum speed relative to YAPS.
const RATIO_MIN: f64 = 10.0;
/// Maximum relative difference of mean slowdowns from YAPS's.
const SLOWDOWN_SHARE: f64 = 0.1;

const SCENARIO: &str = include_str!("../../../../scenarios/web-search-clos.toml");

/// A fabric with YAPS's parameters.
struct Peer {
    fabric: &'static str,
    keys: &'static str,
    protocol: Protocol,
    /// The means of a thousand flows that tests hold for YAPS.
    held: &'static [f64],
}

const PEERS: [Peer; 3] = [
    Peer {
        fabric: "pfabric",
        keys: "",
        protocol: Protocol { flow_type: 2, host_type: 1, windows: [12, 15], timeout_s: 45e-6 },
        held: &YAPS_PFABRIC,
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
        held: &YAPS_PHOST,
    },
    Peer {
        fabric: "fastpass",
        // Its epochs take the time of 8.5 frames for 8.
        keys: "[fabric.fastpass]\ntimeslot_bytes = 1594\n",
        protocol: Protocol { flow_type: 114, host_type: 14, windows: [6, 12], timeout_s: 45e-6 },
        held: &[YAPS_FASTPASS],
    },
];

/// Maximum relative difference of its means from the ones that tests hold.
const HELD_SHARE: f64 = 0.001;

impl Peer {
    fn case(&self, switching: &str) -> Case {
        let packets = format!("[fabric.packet]\nswitching = \"{switching}\"");
        let scenario = SCENARIO.replace("[fabric.packet]", &packets);
        let scenario = format!("{scenario}\n{}", self.keys);
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
        let case = peer.case("store-and-forward");
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..REPEATS {
            ours.push(sample(SIMULATE_WAYS, &case));
            let run =
                |program: &_| yaps::run(program, peer.protocol, Switches::Store, &messages(&case));
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
    if let Some(program) = program {
        for peer in &PEERS {
            beside_cut_through(&mut section, peer, &program);
            check_held(&mut section, peer, &program);
        }
    }
    section
}

/// Measures mean slowdowns where both simulators' switches cut through, as in YAPS's scripts.
fn beside_cut_through(section: &mut Section, peer: &Peer, program: &Path) {
    let case = peer.case("cut-through");
    let slowdown = sample(SIMULATE_WAYS, &case).slowdown_mean.expect("it was asked for");
    let theirs = yaps::run(program, peer.protocol, Switches::CutThrough, &messages(&case));
    let theirs = theirs.slowdown_mean;
    section.note(format!(
        "{}, cut through: mean slowdown {slowdown:.3}, YAPS {theirs:.3}",
        peer.fabric
    ));
    let what = format!("{}, cut through: mean slowdown, share off that of YAPS", peer.fabric);
    let off = (slowdown / theirs - 1.0).abs();
    section.check(Check::exact(what, "", Target::AtMost(SLOWDOWN_SHARE), off));
}

/// Checks that YAPS's means of a thousand flows are the ones that tests hold.
fn check_held(section: &mut Section, peer: &Peer, program: &Path) {
    let flows = web_search::flows();
    for (held, switches) in peer.held.iter().zip([Switches::Store, Switches::CutThrough]) {
        let said = yaps::run(program, peer.protocol, switches, &flows).slowdown_mean;
        let fabric = peer.fabric;
        section.note(format!("{fabric}, YAPS, {} flows, {switches:?}: {said:.4}", flows.len()));
        let what = format!("{fabric}, {switches:?}: YAPS's mean slowdown, share off the tests'");
        let off = (said / held - 1.0).abs();
        section.check(Check::exact(what, "", Target::AtMost(HELD_SHARE), off));
    }
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
