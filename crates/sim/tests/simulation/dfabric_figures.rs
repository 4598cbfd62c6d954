//! Figures 9 to 13 of DFabric as programs, and where a pool of NICs stops to pay:
//! `docs/figures-dfabric.md`. With `UPDATE_GOLDEN=1` in the environment, the test writes the page.

use std::fmt::Write as _;

use ethermem_sim::metrics::{KindStats, RunResult};

use crate::dfabric_memory::figure_13;
use crate::dfabric_prototype::{PROTOTYPE, Prototype};
use crate::dfabric_reference::figure_11;
use crate::support::{hold_page, run_scenario, scenario};

/// Ratios of C, the rate of the memory fabric, to B, the rate of a NIC (Figure 9).
const RATIOS: [u32; 4] = [1, 2, 4, 8];

/// A program of Figures 9 and 10: its name, its table, and the published reductions of its
/// communication time in percent, worst and mean.
type Application = (&'static str, &'static str, &'static str, &'static str);

const APPLICATIONS: [Application; 4] = [
    (
        "PageRank, BFS: 12 supersteps",
        "name = \"supersteps\"\nbytes = 250000\niterations = 12",
        "59.5",
        "32.1",
    ),
    ("ResNet18: ring allreduce", "name = \"ring-allreduce\"\nbytes = 4400000", "54.1", "27.1"),
    ("TinyStories: all to all", "name = \"all-to-all\"\nbytes = 1000000", "", "34.7"),
    (
        "WordCount: three to one",
        "name = \"shuffle\"\nbytes = 2000000\nmessage_bytes = 65536\nmappers = 3\nin_flight = 4",
        "",
        "31.1",
    ),
];

const REDIS: &str = "name = \"key-value\"\nbytes = 32\nclients = 1\nrequests = 4000\n\
                     in_flight = 64\nread_fraction = 0.909\ncompute_ns = 100";

/// Patterns of Figure 12, and how often node 0 moves the program's bytes in one direction.
const PATTERNS: [(&str, &str, f64); 4] = [
    ("gather", "name = \"gather\"", 3.0),
    ("broadcast", "name = \"broadcast\"\nshape = \"flat\"", 3.0),
    ("all to all", "name = \"all-to-all\"", 3.0),
    ("ring", "name = \"ring-allreduce\"", 1.5),
];

/// Programs from the one with most traffic inside of a rack to the one with least.
const LOCALITIES: [(&str, &str); 3] = [
    ("ring, 3/4", "name = \"ring-allreduce\""),
    ("all to all, 3/7", "name = \"all-to-all\""),
    ("shuffle, 0", "name = \"shuffle\"\nmessage_bytes = 65536\nmappers = 4\nin_flight = 4"),
];

const HEAD: &str = "\
# Figures of DFabric

A test writes this page: `cargo test -p ethermem-sim --test simulation dfabric_figures`, with
`UPDATE_GOLDEN=1` if the numbers are to change. It runs the programs of the paper's section 6 on
[`dfabric`](fabrics/dfabric.md) and its baseline, [`tor-rack`](fabrics/tor-rack.md). Published
values are those of sentences; what only a plot shows is blank.

The racks are the prototype of Table 3 and section 6.1: two racks of two nodes each, 650 ns for a
local access, 6.5 us for a load of other memory, 32.5 us a hop of Ethernet, and an MTU of 4 KB. The
ToR has one uplink, 256 KiB a port and timeouts of 200 ms. Within a rack a packet of the baseline
takes one hop, and to another rack three: ToR, core, ToR. A packet of the pool takes one, between
the racks. A NIC has 10 Gb/s, so C, the rate of the memory fabric, is 10 Gb/s times the ratio. The
prototype's C is about 1 Gb/s: every time is divided by our C in Gb/s. The cycles of the accelerator
and of MACs are not divided, as no key changes them.

What the paper does not publish is ours: bytes of a superstep, mappers' messages, time of the stack
(6.7 us at 1 Gb/s), no computation. ResNet18 has a tenth of its 11 M gradients, as only bandwidth
counts there.

";

/// Racks of today: four nodes each, NICs of 400 Gb/s, the default latencies.
fn today(theta: u32, extra_nics: u32, program: &str) -> String {
    format!(
        "[fabric]\nnodes = 8\nlink_gbps = 400\n\
         [fabric.dfabric]\ntheta = {theta}\nextra_nics = {extra_nics}\n\
         [workload]\nkind = \"program\"\n[workload.program]\n{program}\n[run]\nseed = 1\n"
    )
}

fn run(text: &str, fabric: &str) -> RunResult {
    run_scenario(&scenario(text), fabric, None)
}

fn finished_us(text: &str, fabric: &str) -> f64 {
    run(text, fabric).program.expect("a program").finished_ns / 1e3
}

fn reduction(ours: f64, baseline: f64) -> f64 {
    100.0 * (1.0 - ours / baseline)
}

/// Microseconds of a program by ratio.
fn times_us(prototype: Prototype, fabric: &str, own: &str, program: &str) -> [f64; 4] {
    RATIOS
        .map(|ratio| finished_us(&prototype.at_ratio(ratio).scenario(fabric, own, program), fabric))
}

/// Reductions in percent of a program's time, by ratio: ours over the baseline's times.
fn reductions(ours: [f64; 4], baseline: [f64; 4]) -> [f64; 4] {
    std::array::from_fn(|at| reduction(ours[at], baseline[at]))
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

/// A row of reductions, their mean, and what is published.
fn row(page: &mut String, name: &str, all: [f64; 4], published: [&str; 2]) -> std::fmt::Result {
    let cells = all.map(|one| format!("{one:.1}")).join(" | ");
    let [at_worst, of_all] = published;
    writeln!(page, "| {name} | {cells} | {at_worst} | {:.1} | {of_all} |", mean(&all))
}

const COLUMNS: &str = "\
B = C | C/2 | C/4 | C/8 | published, C/8 | mean | published, mean |
|---|---|---|---|---|---|---|---|
";

/// A geometric mean of what is left, so that a loss has a place in it.
fn geometric(means: &[f64]) -> f64 {
    let left: f64 = means.iter().map(|mean| (1.0 - mean / 100.0).ln()).sum();
    100.0 * (1.0 - (left / means.len() as f64).exp())
}

fn applications(page: &mut String) -> std::fmt::Result {
    page.push_str("## Figures 9 and 10: communication time, reduced by so many percent\n\n");
    let ours = APPLICATIONS.map(|(_, program, ..)| times_us(PROTOTYPE, "dfabric", "", program));
    let tor = |prototype, own| {
        APPLICATIONS.map(|(_, program, ..)| times_us(prototype, "tor-rack", own, program))
    };
    let means = |ours: [[f64; 4]; 4], tor: [[f64; 4]; 4]| {
        std::array::from_fn::<f64, 4, _>(|at| mean(&reductions(ours[at], tor[at])))
    };
    let one_uplink = tor(PROTOTYPE, "uplinks = 1");
    write!(page, "| application | {COLUMNS}")?;
    for (at, (name, _, worst, of_all)) in APPLICATIONS.into_iter().enumerate() {
        row(page, name, reductions(ours[at], one_uplink[at]), [worst, of_all])?;
    }
    let all = geometric(&means(ours, one_uplink));
    writeln!(page, "\nGeometric mean of the four: {all:.1} %; published: 30.6 %.\n")?;
    page.push_str("The same beside a ToR with an uplink for each node:\n\n");
    write!(page, "| application | {COLUMNS}")?;
    let two_uplinks = tor(PROTOTYPE, "uplinks = 2");
    for (at, (name, ..)) in APPLICATIONS.into_iter().enumerate() {
        row(page, name, reductions(ours[at], two_uplinks[at]), ["", ""])?;
    }
    page.push_str(CHANGED);
    let no_hop = Prototype { tor_us: 0.0, ..PROTOTYPE };
    let short = Prototype { mtu_bytes: 1_500, ..PROTOTYPE };
    let slow = Prototype { memory_us: 4.0, device_us: 4.0, ..PROTOTYPE };
    let both = Prototype { tor_us: 0.0, ..short };
    let slow_ours = APPLICATIONS.map(|(_, program, ..)| times_us(slow, "dfabric", "", program));
    for (name, ours, tor) in [
        ("nothing", ours, one_uplink),
        ("no hop of 32.5 us in a ToR", ours, tor(no_hop, "uplinks = 1")),
        ("an MTU of 1500 B in the baseline", ours, tor(short, "uplinks = 1")),
        ("both", ours, tor(both, "uplinks = 1")),
        ("10 us a load", slow_ours, one_uplink),
        ("ports of 100 MB in the baseline", ours, tor(PROTOTYPE, LOSSLESS)),
    ] {
        let means = means(ours, tor);
        let cells = means.map(|mean| format!("{mean:.1}")).join(" | ");
        writeln!(page, "| {name} | {cells} | {:.1} |", geometric(&means))?;
    }
    page.push_str(APPLICATIONS_WHY);
    let (_, ring, ..) = APPLICATIONS[1];
    let spread = times_us(PROTOTYPE, "dfabric", "subflows = 16\nqueues = 16", ring);
    let [.., quarter, eighth] = reductions(spread, one_uplink[1]);
    writeln!(page, "  With 16 subflows a ring gains {quarter:.1} % at C/4, {eighth:.1} % at C/8.\n")
}

/// One uplink, and ports that never overflow.
const LOSSLESS: &str = "uplinks = 1\nbuffer_bytes = 100000000";

const CHANGED: &str = "
What the setup of the paper changes: means of the first table, with a part of the setup changed.
Table 3 has 32.5 us a hop and 6.5 us a load, and 6.1 has an MTU of 4 KB.

| changed | PageRank, BFS | ResNet18 | TinyStories | WordCount | geometric mean |
|---|---|---|---|---|---|
| published | 32.1 | 27.1 | 34.7 | 31.1 | 30.6 |
";

const APPLICATIONS_WHY: &str = "
Pooling helps most programs where NICs are slower than the fabric, as published; by how much does
not come out.

- *Lost packets decide.* An incast overflows ports of 256 KiB, and a flow whose last packets are
  lost waits for 200 ms. With ports that never overflow 13.8 % are left of 54.1 %; published are
  30.6 %. Which packets are lost depends on the MTU: it moves a program by up to 17 points, and
  their geometric mean by 2.
- *The hop of a ToR decides little*: at most 3 points. It stands beside milliseconds of a transfer.
- *One uplink carries what two NICs send.* With two uplinks the gain shrinks: the second table has
  the rest of it, which CXL within the rack and the lossless pool give. PageRank loses at B = C and
  C/2 then.
- *No processor limits us.* In the paper \"the bottleneck is shifted to the CN's processing rate\"
  (6.3). A stack here delays packets and takes no processor, so incasts gain more than published.
- *B = C is a loss for a ring.* Our C is the rate of the line. Flits leave less of it to data than
  frames do, and a packet takes its node's port to the pool. The paper's C is what its CXL achieves.
- *A ring at C/4 gains less than at C/8.* ECMP leads the four subflows of a stream to one port more
  often than to the other.
";

/// Redis: mean and 99th percentile of requests.
fn redis(page: &mut String) -> std::fmt::Result {
    page.push_str("## Figure 9(e): latency of Redis, reduced by so many percent\n\n");
    write!(page, "| latency | {COLUMNS}")?;
    let get = |of: Option<f64>| of.expect("requests");
    let no_hop = Prototype { tor_us: 0.0, ..PROTOTYPE };
    for (baseline, changed, published) in
        [(PROTOTYPE, "", ["40.5", "22.8"]), (no_hop, ", no hop in a ToR", ["", ""])]
    {
        let both = RATIOS.map(|ratio| {
            [("dfabric", PROTOTYPE, ""), ("tor-rack", baseline, "uplinks = 1")].map(
                |(fabric, of, own)| {
                    let text = of.at_ratio(ratio).scenario(fabric, own, REDIS);
                    run(&text, fabric).kinds.all
                },
            )
        });
        let lower = |of: fn(&KindStats) -> Option<f64>| {
            std::array::from_fn(|at| {
                let [ours, tor] = &both[at];
                reduction(get(of(ours)), get(of(tor)))
            })
        };
        let name = format!("99th percentile{changed}");
        row(page, &name, lower(|kind| kind.latency_ns_p99), ["", published[0]])?;
        let name = format!("mean{changed}");
        row(page, &name, lower(|kind| kind.latency_ns_mean), ["", published[1]])?;
    }
    page.push_str(REDIS_WHY);
    Ok(())
}

const REDIS_WHY: &str = "
The mean comes out, and the tail does not. A request to another rack takes three hops of 32.5 us in
the baseline, and one in the pool. The hop of a ToR makes the mean: without it the pool loses 8.1 %.
In the paper the pool is slower in the tail at B = C, as its memory's latency is long. Ours is
slower there only without that hop. 64 requests of 32 B never fill a port of 256 KiB, so nothing is
lost in the baseline. The paper's gain is that of lost packets (6.2). Its number of clients and its
values are not published.

";

/// Bandwidth of node 0 by added NICs, as a share of C.
fn added_nics(page: &mut String) -> std::fmt::Result {
    page.push_str("## Figure 12: bandwidth of node 0 with M added NICs, in percent of C\n\n");
    page.push_str("B is C/8, and a stream has 16 subflows. Published is that it grows to a limit,");
    page.push_str(" and that the\nlast two patterns get less.\n\n");
    page.push_str("| pattern | M = 0 | 1 | 2 | 4 | 6 |\n|---|---|---|---|---|---|\n");
    for (name, pattern, times) in PATTERNS {
        let bytes = 1_000_000.0;
        let program = format!("{pattern}\nbytes = 1000000");
        let shares = [0, 1, 2, 4, 6].map(|extra| {
            let pool = format!("extra_nics = {extra}\nsubflows = 16\nqueues = 16");
            let us =
                finished_us(&PROTOTYPE.at_ratio(8).scenario("dfabric", &pool, &program), "dfabric");
            // C is 80 Gb/s, or 10,000 B in a microsecond.
            format!("{:.1}", 100.0 * bytes * times / us / 10_000.0)
        });
        writeln!(page, "| {name} | {} |", shares.join(" | "))?;
    }
    page.push('\n');
    Ok(())
}

/// The baseline's time over the pool's, with latencies of today.
fn pays(page: &mut String) -> std::fmt::Result {
    page.push_str(PAYS);
    page.push_str("| traffic, and its share within racks | bytes | theta | M = 0 | M = 4 |\n");
    page.push_str("|---|---|---|---|---|\n");
    for (name, program) in LOCALITIES {
        for bytes in [4_096, 65_536, 1_048_576] {
            let program = format!("{program}\nbytes = {bytes}");
            let tor = finished_us(&today(1, 0, &program), "tor-rack");
            for theta in [1, 2, 4] {
                let times = [0, 4].map(|extra| {
                    let us = finished_us(&today(theta, extra, &program), "dfabric");
                    format!("{:.2}", tor / us)
                });
                writeln!(page, "| {name} | {bytes} | {theta} | {} |", times.join(" | "))?;
            }
        }
    }
    page.push_str("\nWhat decides, at theta = 4 and M = 0, 1 MiB:\n\n");
    page.push_str("| traffic | changed | baseline over pool |\n|---|---|---|\n");
    for (at, changed) in [
        (0, "[fabric.dfabric]\nloads_max = 256"),
        (0, "[fabric.dfabric]\nloads_max = 1024"),
        (1, "[fabric.tor_rack]\nbuffer_bytes = 100000000"),
        (2, "[fabric.tor_rack]\nbuffer_bytes = 100000000"),
    ] {
        let (name, program) = LOCALITIES[at];
        let text = today(4, 0, &format!("{program}\nbytes = 1048576"));
        let (table, key) = changed.split_once('\n').expect("a table and a key");
        let text = match text.split_once(table) {
            Some((before, after)) => format!("{before}{changed}{after}"),
            None => format!("{text}{changed}\n"),
        };
        let times = finished_us(&text, "tor-rack") / finished_us(&text, "dfabric");
        writeln!(page, "| {name} | `{key}` | {times:.2} |")?;
    }
    page.push_str(PAYS_WHY);
    Ok(())
}

const PAYS_WHY: &str = "
- *Short messages within a rack pay*: a store passes no stack, and takes half of the time.
- *Long ones do not.* 64 loads at once limit a node; more of them close most of the gap.
- *Between racks pooling does not pay here.* All nodes send at once, so no NIC is idle, and a packet
  passes two memories and two polls more. Where the pool is ahead, the baseline has dropped packets:
  with ports of 100 MB it is behind. Theta and M change little, for the same reason.
";

const PAYS: &str = "\
## Where pooling stops to pay

Two racks have four nodes each, with NICs of 400 Gb/s and the default latencies: a load of another
memory takes about 300 ns. The ToR has an uplink for each node. Numbers are the baseline's time over
the pool's: below 1 the pool is slower. Bytes are the program's, and stand for load.

";

const NOT_HERE: &str = "
## Not here

- *Figure 2* and *Table 4* are on [the fabric's page](fabrics/dfabric.md#published-and-ours).
";

#[test]
fn the_page_of_figures_is_as_the_fabrics_are() {
    let mut page = HEAD.to_owned();
    applications(&mut page)
        .and_then(|()| redis(&mut page))
        .and_then(|()| figure_11(&mut page))
        .and_then(|()| added_nics(&mut page))
        .and_then(|()| figure_13(&mut page))
        .and_then(|()| pays(&mut page))
        .expect("a string takes everything");
    page.push_str(NOT_HERE);
    hold_page("figures-dfabric.md", &page);
}
