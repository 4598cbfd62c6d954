//! Time and memory of the simulator itself.
//!
//! Every sample is a process of its own. So its peak memory is its own, and no run warms up the
//! allocator for the next. Compared cases take turns, so that other load on the machine affects all
//! of them. The time is the thread's core time, where Linux reports it: a thread that never waits
//! takes as long on an idle machine. Wall time is reported beside it.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use ethermem_sim::engine::Alone;
use ethermem_sim::fabrics::pfabric::Pfabric;
use ethermem_sim::metrics::MessageWay;
use ethermem_sim::registry;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::floor::{Transfer, match_all};
use crate::report::{Check, Section, Target, median, number};

/// The argument that makes this program a child: the job follows, and the scenario is on its input.
pub(crate) const CHILD: &str = "--child";
const SIMULATE: &str = "simulate";
/// The job that also reports the mean slowdown relative to the time alone of pFabric's host, which
/// sends at once.
pub(crate) const SIMULATE_WAYS: &str = "simulate-ways";
const FLOOR: &str = "floor";
/// Number of samples of every case.
const REPEATS: usize = 5;

/// The measurement of a child.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    wall_s: f64,
    /// Core time in seconds; `None` if the system does not report it.
    core_s: Option<f64>,
    pub(crate) messages: u64,
    pub(crate) events: u64,
    /// The mean slowdown; `None` if it was not requested.
    pub(crate) slowdown_mean: Option<f64>,
    /// Bytes of all messages; 0 if they were not counted.
    bytes: u64,
    /// Peak memory in bytes; `None` if the system does not report it.
    peak_memory_bytes: Option<u64>,
}

impl Sample {
    fn seconds(&self) -> f64 {
        self.core_s.unwrap_or(self.wall_s)
    }

    fn ns_per_message(&self) -> f64 {
        self.seconds() * 1e9 / self.messages as f64
    }
}

/// Measures the time of a sample.
struct Stopwatch {
    started: Instant,
    core_s: Option<f64>,
}

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch { started: Instant::now(), core_s: core_s() }
    }

    fn stop(self, messages: u64, events: u64, bytes: u64) -> Sample {
        let wall_s = self.started.elapsed().as_secs_f64();
        let core_s = self.core_s.zip(core_s()).map(|(start, end)| end - start);
        let peak_memory_bytes = peak_memory_bytes();
        let slowdown_mean = None;
        Sample { wall_s, core_s, messages, events, slowdown_mean, bytes, peak_memory_bytes }
    }
}

pub(crate) fn measure() -> Section {
    let mut section = Section::default();
    if core_s().is_none() {
        section.note("no /proc/self/schedstat here: times are wall times".to_owned());
    }
    memcached(&mut section);
    rivals(&mut section);
    nodes(&mut section);
    lengths(&mut section);
    section
}

fn memcached_case() -> Case {
    Case::edm("memcached", "", "load = 0.4\nsize_cdf = \"memcached\"\nmessages = 2000")
}

fn memcached(section: &mut Section) {
    let case = memcached_case();
    let samples = interleave(&[(SIMULATE, &case), (FLOOR, &case)]);
    let (ours, floor) = (seconds(&samples[0]), seconds(&samples[1]));
    let what = "memcached, 2,000 messages: time";
    section.check(Check::median(what, "s", Target::AtMost(0.25), &ours));
    let first = samples[0][0];
    section.note(format!(
        "memcached, 2,000 messages, {} MB, {} events: {} s (wall {} s); floor, a bare matching: {} \
         s; ratio {}",
        samples[1][0].bytes / 1_000_000,
        first.events,
        number(median(&ours)),
        number(median(&walls(&samples[0]))),
        number(median(&floor)),
        number(median(&ours) / median(&floor)),
    ));
}

/// Times of the simulators by EDM's authors for these messages on such a machine, by fabric, in
/// seconds; the last two are lower bounds. The third value is the required ratio.
const AUTHORS: [(&str, f64, f64); 6] = [
    ("edm", 169.0, 100.0),
    ("ird", 61.0, 100.0),
    ("pfabric", 17.0, 50.0),
    ("dctcp", 31.0, 50.0),
    ("pfc", 280.0, 100.0),
    ("cxl", 280.0, 100.0),
];

fn rivals(section: &mut Section) {
    let cases = AUTHORS.map(|(fabric, ..)| memcached_case().on(fabric));
    let samples = interleave(&cases.each_ref().map(|case| (SIMULATE, case)));
    for ((fabric, theirs, asked), samples) in AUTHORS.into_iter().zip(&samples) {
        let times: Vec<f64> = seconds(samples).iter().map(|ours| theirs / ours).collect();
        let what = format!("memcached on {fabric}: times as fast as its authors' ({theirs} s)");
        section.check(Check::median(what, "", Target::AtLeast(asked), &times));
    }
}

fn nodes(section: &mut Section) {
    let case = |nodes| microbenchmark(1_000_000).nodes(nodes);
    let (few, many) = (case(32), case(512));
    let samples = interleave(&[(SIMULATE, &few), (SIMULATE, &many)]);
    let pairs = samples[0].iter().zip(&samples[1]);
    let ratios: Vec<f64> =
        pairs.map(|(few, many)| many.ns_per_message() / few.ns_per_message()).collect();
    let what = "time a message, 512 nodes over 32 nodes";
    section.check(Check::median(what, "", Target::AtMost(2.0), &ratios));
    for (nodes, samples) in [(32, &samples[0]), (512, &samples[1])] {
        section.note(format!("{nodes} nodes, 1,000,000 messages: {}", per_message(samples)));
    }
    let most = microbenchmark(10_000_000).nodes(512);
    let what = "512 nodes, 64 B at load 0.8, 10,000,000 messages: time";
    let samples = interleave(&[(SIMULATE, &most)]);
    section.check(Check::median(what, "s", Target::AtMost(60.0), &seconds(&samples[0])));
}

fn lengths(section: &mut Section) {
    let lengths = [100_000, 1_000_000, 10_000_000];
    let cases = lengths.map(microbenchmark);
    let samples = interleave(&cases.each_ref().map(|case| (SIMULATE, case)));
    let longest = &samples[2];
    let what = "64 B at load 0.8, 10,000,000 messages: time";
    section.check(Check::median(what, "s", Target::AtMost(12.0), &seconds(longest)));
    section.note(format!("10,000,000 messages: wall {} s", number(median(&walls(longest)))));
    let memory: Option<Vec<f64>> = longest
        .iter()
        .map(|sample| sample.peak_memory_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20)))
        .collect();
    let what = "64 B at load 0.8, 10,000,000 messages: peak memory";
    match memory {
        Some(mib) => section.check(Check::median(what, "MiB", Target::AtMost(1024.0), &mib)),
        None => section.note(format!("SKIPPED: {what}: this system has no /proc/self/status")),
    }
    let ratios: Vec<f64> = (0..REPEATS)
        .map(|repeat| {
            let times = samples.iter().map(|of_case| of_case[repeat].ns_per_message());
            let (least, most) = times.fold((f64::MAX, 0.0), |(least, most): (f64, f64), time| {
                (least.min(time), most.max(time))
            });
            most / least
        })
        .collect();
    let what = "time a message, 10^5 to 10^7 messages, most over least";
    section.check(Check::median(what, "", Target::AtMost(1.2), &ratios));
    for (messages, samples) in lengths.iter().zip(&samples) {
        section.note(format!("144 nodes, {messages} messages: {}", per_message(samples)));
    }
}

fn microbenchmark(messages: u64) -> Case {
    let workload = format!("load = 0.8\nmessage_bytes = 64\nmessages = {messages}");
    Case::edm("64 B", "", &workload)
}

pub(crate) fn seconds(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(Sample::seconds).collect()
}

fn walls(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|sample| sample.wall_s).collect()
}

fn per_message(samples: &[Sample]) -> String {
    let times: Vec<f64> = samples.iter().map(Sample::ns_per_message).collect();
    let memory = samples.iter().filter_map(|sample| sample.peak_memory_bytes).max();
    format!(
        "{} ns a message, {} events a message, peak memory {} MiB",
        number(median(&times)),
        number(samples[0].events as f64 / samples[0].messages as f64),
        memory.map_or("-".to_owned(), |bytes| number(bytes as f64 / f64::from(1 << 20))),
    )
}

/// Runs all jobs in turn, [`REPEATS`] times; returns the samples by job.
fn interleave(jobs: &[(&str, &Case)]) -> Vec<Vec<Sample>> {
    let mut samples = vec![Vec::with_capacity(REPEATS); jobs.len()];
    for _ in 0..REPEATS {
        for ((job, case), samples) in jobs.iter().zip(&mut samples) {
            samples.push(sample(job, case));
        }
    }
    samples
}

pub(crate) fn sample(job: &str, case: &Case) -> Sample {
    let program = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(program)
        .args([CHILD, job, case.fabric])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run this program again: {error}"));
    let mut input = child.stdin.take().expect("its input is a pipe");
    input.write_all(case.scenario.as_bytes()).expect("the child reads its scenario");
    drop(input);
    let output = child.wait_with_output().expect("the child ends");
    assert!(output.status.success(), "{job} of {}: {}", case.label, output.status);
    serde_json::from_slice(&output.stdout).expect("the child writes a sample")
}

/// Takes one sample: reads the scenario from the input, and writes the measurement to the output.
pub(crate) fn child(job: &str, fabric: &str) {
    let scenario = std::io::read_to_string(std::io::stdin()).expect("a scenario on the input");
    let fabric = registry::find(fabric).expect("a fabric of the registry").name;
    let case = Case { label: "input".to_owned(), fabric, scenario };
    let sample = match job {
        SIMULATE => simulate(&case),
        SIMULATE_WAYS => simulate_ways(&case),
        FLOOR => bare_matching(&case),
        other => panic!("{CHILD} {other}: must be {SIMULATE}, {SIMULATE_WAYS}, {FLOOR}"),
    };
    println!("{}", serde_json::to_string(&sample).expect("a sample is plain data"));
}

fn simulate(case: &Case) -> Sample {
    let watch = Stopwatch::start();
    let result = case.run();
    watch.stop(result.messages_finished, result.events, 0)
}

fn simulate_ways(case: &Case) -> Sample {
    let watch = Stopwatch::start();
    let result = case.run_with_ways();
    let sample = watch.stop(result.messages_finished, result.events, 0);
    let mut alone = Alone::<Pfabric>::new(&case.parse().fabric);
    let slowdown = |way: &MessageWay| {
        (way.finished - way.message.arrival).0 as f64 / alone.time_of(&way.message).0 as f64
    };
    let sum: f64 = result.ways.iter().map(slowdown).sum();
    Sample { slowdown_mean: Some(sum / result.ways.len() as f64), ..sample }
}

fn bare_matching(case: &Case) -> Sample {
    let scenario = case.parse();
    let (config, seed) = (&scenario.fabric, scenario.run.seed);
    let blocks = registry::find("edm").expect("EDM is in the registry").blocks;
    let mut source = scenario
        .workload
        .open(config.nodes, config.link, seed, &|kind, bytes| blocks(config, kind, bytes))
        .expect("a synthetic workload opens");
    let mut transfers = Vec::new();
    while let Some(message) = source.next_message().expect("a synthetic workload goes on") {
        transfers.push(Transfer {
            arrival: message.arrival,
            source: message.data_source(),
            destination: message.data_destination(),
            bytes: message.bytes,
        });
    }
    let bytes = transfers.iter().map(|transfer| transfer.bytes.0).sum();
    let watch = Stopwatch::start();
    let finished = match_all(config.nodes, &transfers);
    let sample = watch.stop(transfers.len() as u64, 0, bytes);
    assert!(
        finished.iter().zip(&transfers).all(|(end, transfer)| *end > transfer.arrival),
        "every transfer ends after it arrived"
    );
    sample
}

/// Peak memory of this process, as Linux reports it.
fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Core time of this thread, as Linux reports it.
fn core_s() -> Option<f64> {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let ns: u64 = schedstat.split_whitespace().next()?.parse().ok()?;
    Some(ns as f64 / 1e9)
}
