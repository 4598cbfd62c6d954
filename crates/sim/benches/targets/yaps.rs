//! YAPS, the simulator of pHost's authors (github.com/NetSys/simulator), on our messages.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use ethermem_sim::Message;

/// The variable with the path of its program, built with `-O3` for 1,460 B of data and 40 B of
/// headers.
pub(crate) const PROGRAM: &str = "ETHERMEM_YAPS";
const DATA_BYTES: u64 = 1_460;
/// The time at which its clock starts: one second.
const START_S: f64 = 1.0;
/// Number of ticks per second of the times in `/proc`, whatever the kernel's own tick is.
const TICKS: f64 = 100.0;

/// The settings that select a protocol in its configuration.
#[derive(Clone, Copy)]
pub(crate) struct Protocol {
    pub(crate) flow_type: u32,
    pub(crate) host_type: u32,
    /// The first and the largest window, in packets.
    pub(crate) windows: [u32; 2],
    pub(crate) timeout_s: f64,
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    pub(crate) core_s: f64,
    pub(crate) slowdown_mean: f64,
}

/// What its switches do with a packet that has not arrived completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switches {
    /// They store it, as our switches do unless a scenario lets them cut through.
    Store,
    /// They cut through, as in its scripts.
    CutThrough,
}

/// The path of its program, if the variable has one.
pub(crate) fn program() -> Option<PathBuf> {
    std::env::var_os(PROGRAM).map(PathBuf::from)
}

/// Runs `messages`, with sizes rounded up to packets, on its leaf and spine at 40 Gb/s.
pub(crate) fn run(
    program: &Path,
    protocol: Protocol,
    switches: Switches,
    messages: &[Message],
) -> Ran {
    let folder = tempfile::tempdir().expect("a folder for its input");
    let (flows, config) = (folder.path().join("flows.txt"), folder.path().join("config.txt"));
    std::fs::write(&flows, flows_of(messages)).expect("its flows are written");
    std::fs::write(&config, config_of(protocol, switches, &flows, messages.len()))
        .expect("its keys are");
    let before = children_core_s();
    let output = Command::new(program).arg("1").arg(&config).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(output.status.success(), "{}: {}", program.display(), output.status);
    let core_s = children_core_s() - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let slowdowns: Vec<f64> = text.lines().filter_map(slowdown).collect();
    assert_eq!(slowdowns.len(), messages.len(), "a line for each flow");
    Ran { core_s, slowdown_mean: slowdowns.iter().sum::<f64>() / slowdowns.len() as f64 }
}

/// The columns are index, start, two unused ones, packets, two unused ones, source, destination.
fn flows_of(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let start_s = START_S + message.arrival.as_ns_f64() / 1e9;
        let packets = message.bytes.0.div_ceil(DATA_BYTES);
        let (source, destination) = (message.data_source(), message.data_destination());
        writeln!(text, "{} {start_s:.15} 0 0 {packets} 0 0 {source} {destination}", message.index)
            .expect("a string has room");
    }
    text
}

fn config_of(protocol: Protocol, switches: Switches, flows: &Path, count: usize) -> String {
    let Protocol { flow_type, host_type, windows: [first, most], timeout_s } = protocol;
    let flows = flows.display();
    let cut_through = u8::from(switches == Switches::CutThrough);
    format!(
        "init_cwnd: {first}\nmax_cwnd: {most}\nretx_timeout: {timeout_s}\nqueue_size: 36864\n\
         propagation_delay: 0.0000002\nbandwidth: 40000000000.0\nqueue_type: 2\n\
         flow_type: {flow_type}\nnum_flow: {count}\nflow_trace: {flows}\n\
         cut_through: {cut_through}\n\
         mean_flow_size: 0\nload_balancing: 0\npreemptive_queue: 0\nbig_switch: 0\n\
         host_type: {host_type}\ntraffic_imbalance: 0\nload: 0.6\nreauth_limit: 3\n\
         magic_trans_slack: 1.1\nmagic_delay_scheduling: 1\nuse_flow_trace: 1\nsmooth_cdf: 1\n\
         burst_at_beginning: 0\ncapability_timeout: 1.5\ncapability_resend_timeout: 9\n\
         capability_initial: 8\ncapability_window: 8\ncapability_window_timeout: 25\nddc: 0\n\
         ddc_cpu_ratio: 0.33\nddc_mem_ratio: 0.33\nddc_disk_ratio: 0.34\nddc_normalize: 2\n\
         ddc_type: 0\ndeadline: 0\nschedule_by_deadline: 0\navg_deadline: 0.0001\n\
         capability_third_level: 1\ncapability_fourth_level: 0\nmagic_inflate: 1\n\
         interarrival_cdf: none\nnum_host_types: 13\npermutation_tm: 0\n"
    )
}

/// The ninth column of a flow that ended; other lines start with words.
fn slowdown(line: &str) -> Option<f64> {
    let mut columns = line.split_whitespace();
    columns.next()?.parse::<u64>().ok()?;
    columns.nth(7)?.parse().ok()
}

/// Core time of all children that have ended; 0 if the system does not report it.
fn children_core_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may have blanks; after it the state is the third field.
    let fields = stat.rsplit(") ").next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    ticks / TICKS
}
