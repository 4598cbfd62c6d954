//! The page of all programs on all fabrics: `docs/programs.md`. With `UPDATE_GOLDEN=1` in the
//! environment, the test writes it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ethermem_sim::metrics::RunResult;
use ethermem_sim::registry::{FABRIC_NAMES, FABRICS};
use ethermem_sim::scenario::Scenario;

use crate::support::{hold_page, run_scenario};

/// The programs, each with the design that finishes first and the reason.
const PROGRAMS: [(&str, &str, &str); 8] = [
    (
        "ring-allreduce",
        "edm",
        "Thirty rounds follow each other, and no link is shared: a round is 64 KiB on a link and \
         the latency of the fabric. EDM has the least latency. With 1 MiB a round framing decides: \
         `raw-ethernet` takes 1.049 times the links' time, `edm` 1.097.",
    ),
    (
        "hierarchical-allreduce",
        "raw-ethernet",
        "Sixteen rounds instead of thirty, of twice the bytes in the groups: half of the latencies \
         are gone, so frames, which carry 2.5 % more data than EDM's chunks, are first.",
    ),
    (
        "all-to-all",
        "edm",
        "Each round is a permutation of 16 KiB, a quarter of the ring's: latency is a quarter \
         (`edm`) to a third (`raw-ethernet`) of a round. EDM's is the least, CXL's the next.",
    ),
    (
        "gather",
        "raw-ethernet",
        "The root's link is busy from the first byte to the last, whatever the order: `edm`, \
         `ird`, `homa`, `fastpass`, `pfc`, `phost` and `clio` tie within 6 %. Fabrics that drop \
         packets and repeat them after a timeout are last.",
    ),
    (
        "broadcast",
        "raw-ethernet",
        "The root sends to four children at once. The child with the most descendants is first in \
         the root's queue: fabrics that send one message after the other forward it early. \
         Fabrics that share the link among messages end all four at the same time, and take 2.5 \
         times as long.",
    ),
    (
        "supersteps",
        "edm",
        "Twelve exchanges of 15 messages a node, each an incast at every node. EDM's scheduler \
         matches senders to receivers, so no downlink is idle while another is overloaded.",
    ),
    (
        "shuffle",
        "edm",
        "Four downlinks are the limit, and twelve mappers keep 48 messages under way to each. \
         A fabric is slow where a reducer gets its last data late: shares that are unequal, or \
         packets that were dropped.",
    ),
    (
        "key-value",
        "edm",
        "Messages of 64 B never wait for a link: the time is the latency of one message, 125 \
         times. EDM and CXL carry 64 B without a frame. Fabrics of frames without a stack tie \
         within 1.4 %.",
    ),
];

/// Fabrics that are not ranked.
const UNRANKED: [&str; 2] = ["dfabric", "edm-artifact"];

/// Designs that finish within this share of the first one are equal to it.
const TIE: f64 = 0.01;

const HEAD: &str = "\
# Programs on every fabric

A test writes this page: `cargo test -p ethermem-sim --test simulation programs_page`, with
`UPDATE_GOLDEN=1` if the numbers are to change. Each column is a scenario of the repository, such as
`scenarios/program-gather.toml`: 16 nodes, links of 100 Gb/s, defaults of each fabric. `ethermem
compare scenarios/program-gather.toml --fabrics edm,homa,tcp` prints all numbers of a column. [The
reference](reference/scenario.md#programs) says what each program does.

A message leaves when what it depends on has been delivered, so a slow message delays all that wait
for it. The first row is the least time on links without latency: no fabric with one link a node of
this rate is faster. `ideal` and `output-queued` are bounds; in `ideal` messages do not share links.
Not ranked are `edm-artifact`, which counts no pipeline and no framing, and `dfabric`, whose links
are four times as fast inside a rack.

";

const SLOW: &str = "\
## Three that are slow

`programs_page` checks these numbers.

- **`dfabric` in `key-value`.** Every request goes to the other rack and back, 6.75 us alone, and no
  queue adds to it. Four stacks are 2.67 us of it; the rest is the way by TxQ, NICs, a memory device
  and RxQ, twice ([budget](fabrics/dfabric.md#budget)). That is the paper's design. With a stack
  that takes no time the program takes 579.67 us.
- **`dfabric` in `shuffle`.** ECMP gives ports unequal numbers of subflows, and there is no
  congestion control: ports drop 151 frames. A message of 16 KiB has one or two segments on a
  subflow, so that no later segment shows a loss, and a timeout must pass. With ports of 100 MB
  nothing is dropped, and the program takes 105.24 us. The least timeout is that of `tor-rack`. It
  begins again with each acknowledgement of the subflow.
- **`phost` in rings.** Tokens and data share links, so that tokens arrive in pairs. The second of a
  pair expires after 1.5 packets' time, and its packet waits for the timeout of 9.5 us: once in each
  of the 480 messages. With `token_lifetime_packets = 2` none expires, and the ring takes 238.48 us.

";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// One program on every fabric, in the order of the registry.
fn results(program: &str) -> Vec<RunResult> {
    let path = root().join(format!("scenarios/program-{program}.toml"));
    let scenario = Scenario::load(&path, FABRIC_NAMES).expect("a scenario of the repository");
    FABRIC_NAMES.iter().map(|fabric| run_scenario(&scenario, fabric, None)).collect()
}

fn finished_us(result: &RunResult) -> f64 {
    result.program.as_ref().expect("a program").finished_ns / 1e3
}

/// The ranked designs by their time to finish.
fn ranked(results: &[RunResult]) -> Vec<(&'static str, f64)> {
    let designs = FABRICS.iter().zip(results);
    let mut ranked: Vec<_> = designs
        .filter(|(fabric, _)| !fabric.is_bound && !UNRANKED.contains(&fabric.name))
        .map(|(fabric, result)| (fabric.name, finished_us(result)))
        .collect();
    ranked.sort_by(|one, other| one.1.total_cmp(&other.1));
    ranked
}

/// The first design of each program, those that are equal to it, and the reason.
fn first(page: &mut String, all: &[Vec<RunResult>]) -> std::fmt::Result {
    page.push_str("## Which fabric is first, and why\n\n");
    page.push_str("| program | first | us | over links | within 1 % | why |\n");
    page.push_str("|---|---|---|---|---|---|\n");
    for ((name, expected, why), results) in PROGRAMS.iter().zip(all) {
        let ranked = ranked(results);
        let (first, least) = ranked[0];
        assert_eq!(first, *expected, "{name}: the reason is another one now");
        let ties = ranked[1..].iter().take_while(|(_, time)| *time <= least * (1.0 + TIE));
        let ties: Vec<String> = ties.map(|(fabric, _)| format!("`{fabric}`")).collect();
        let links = results[0].program.as_ref().expect("a program").links_ns / 1e3;
        let (ties, over) = (ties.join(", "), least / links);
        write!(page, "| `scenarios/program-{name}.toml` | `{first}` | {least:.2} | {over:.2} ")?;
        writeln!(page, "| {ties} | {why} |")?;
    }
    writeln!(page)
}

/// A table with a row for each fabric and a column for each program.
fn table(
    page: &mut String,
    first: Option<&str>,
    all: &[Vec<RunResult>],
    value: impl Fn(&RunResult) -> f64,
) -> std::fmt::Result {
    let names = PROGRAMS.map(|(name, ..)| name);
    writeln!(page, "| | {} |", names.join(" | "))?;
    writeln!(page, "|---|{}", "---|".repeat(names.len()))?;
    if let Some(first) = first {
        writeln!(page, "{first}")?;
    }
    for (at, fabric) in FABRIC_NAMES.iter().enumerate() {
        write!(page, "| `{fabric}` |")?;
        for results in all {
            write!(page, " {:.2} |", value(&results[at]))?;
        }
        writeln!(page)?;
    }
    writeln!(page)
}

/// The packets that switches dropped, for fabrics that dropped any.
fn dropped(page: &mut String, all: &[Vec<RunResult>]) -> std::fmt::Result {
    let dropped = |result: &RunResult| result.packets.as_ref().map_or(0, |packets| packets.dropped);
    page.push_str("## Packets that switches dropped\n\nOther fabrics drop none.\n\n");
    let names = PROGRAMS.map(|(name, ..)| name);
    writeln!(page, "| | {} |", names.join(" | "))?;
    writeln!(page, "|---|{}", "---|".repeat(names.len()))?;
    for (at, fabric) in FABRIC_NAMES.iter().enumerate() {
        let counts: Vec<u64> = all.iter().map(|results| dropped(&results[at])).collect();
        if counts.iter().any(|count| *count > 0) {
            let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
            writeln!(page, "| `{fabric}` | {} |", counts.join(" | "))?;
        }
    }
    writeln!(page)
}

fn page(all: &[Vec<RunResult>]) -> Result<String, std::fmt::Error> {
    let mut page = HEAD.to_owned();
    first(&mut page, all)?;
    let links = all.iter().map(|results| {
        let program = results[0].program.as_ref().expect("a program");
        format!(" {:.2} |", program.links_ns / 1e3)
    });
    let links = format!("| links without latency |{}", links.collect::<String>());
    page.push_str("## Time to finish, in us\n\n");
    table(&mut page, Some(&links), all, finished_us)?;
    page.push_str(SLOW);
    dropped(&mut page, all)?;
    page.push_str("## 99th percentile of a message's latency, in us\n\n");
    let latency = |ns: Option<f64>| ns.expect("messages") / 1e3;
    table(&mut page, None, all, |result| latency(result.kinds.all.latency_ns_p99))?;
    page.push_str("## Median of a message's latency, in us\n\n");
    table(&mut page, None, all, |result| latency(result.kinds.all.latency_ns_p50))?;
    page.pop();
    Ok(page)
}

/// A program on a fabric with one key changed: its time, and timeouts and dropped packets.
fn with(program: &str, fabric: &str, key: &str) -> (f64, u64, u64) {
    let path = root().join(format!("scenarios/program-{program}.toml"));
    let text = std::fs::read_to_string(path).expect("a scenario of the repository");
    let text = match text.split_once(key.lines().next().unwrap_or("no key")) {
        Some((before, after)) => format!("{before}{key}{after}"),
        None => format!("{text}{key}\n"),
    };
    let result = run_scenario(&crate::support::scenario(&text), fabric, None);
    let packets = result.packets.expect("a fabric of packets");
    (finished_us(&result), packets.timeouts, packets.dropped)
}

#[test]
fn slow_programs_are_slow_for_the_reasons_that_the_page_gives() {
    let near = |ours: f64, said: f64| assert!((ours - said).abs() < 0.006, "{ours}, said {said}");
    let (us, timeouts, _) = with("key-value", "dfabric", "[fabric.packet]\nstack_ns = 0");
    near(us, 579.67);
    assert_eq!(timeouts, 0);
    let (us, timeouts, dropped) =
        with("shuffle", "dfabric", "[fabric.dfabric]\nport_bytes = 100000000");
    near(us, 105.24);
    assert_eq!((timeouts, dropped), (0, 0));
    let (_, timeouts, dropped) = with("shuffle", "dfabric", "");
    assert!(timeouts > 0 && dropped > 0);
    assert_eq!(with("ring-allreduce", "phost", "").1, 480);
    let (us, timeouts, _) =
        with("ring-allreduce", "phost", "[fabric.phost]\ntoken_lifetime_packets = 2");
    near(us, 238.48);
    assert_eq!(timeouts, 0);
}

#[test]
fn the_page_of_programs_is_as_the_fabrics_are() {
    let all = PROGRAMS.map(|(name, ..)| results(name));
    let page = page(&all).expect("a string takes everything");
    hold_page("programs.md", &page);
}
