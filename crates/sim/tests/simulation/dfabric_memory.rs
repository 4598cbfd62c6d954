//! Figure 13 of DFabric: rates of the memory pool over time, for `docs/figures-dfabric.md`.

use std::fmt::Write as _;

use ethermem_sim::metrics::{MemoryKind, MemoryTraffic, MemoryUse, MemoryUser};

use crate::dfabric_prototype::PROTOTYPE;
use crate::support::{run_scenario, scenario};

/// Three supersteps: each node sends 250 kB to each other one.
const PROGRAM: &str = "name = \"supersteps\"\nbytes = 250000\niterations = 3";

/// What moved in a run at a ratio, in slices of so many milliseconds of the prototype.
fn traffic(ratio: u32, keys: &str, slice_ms: f64) -> MemoryTraffic {
    // C is 10 Gb/s times the ratio, and the prototype's is 1 Gb/s.
    let slice_ns = slice_ms * 1e6 / (10.0 * f64::from(ratio));
    let keys = format!("{keys}\nmemory_slice_ns = {}", slice_ns.round());
    let text = PROTOTYPE.at_ratio(ratio).scenario("dfabric", &keys, PROGRAM);
    run_scenario(&scenario(&text), "dfabric", None).memories.expect("they were requested")
}

/// A use of the memory devices of rack 0, in which its NICs receive.
fn is_pool(of: &MemoryUse, user: MemoryUser) -> bool {
    of.rack == 0 && of.memory == MemoryKind::Device && of.user == user
}

/// Gb/s in the busiest slice: what the NICs write, what one of the nodes loads, and both nodes.
fn peaks(traffic: &MemoryTraffic) -> [f64; 3] {
    let node = |node| traffic.gbps_max(|of| is_pool(of, MemoryUser::Node) && of.node == node);
    [
        traffic.gbps_max(|of| is_pool(of, MemoryUser::Nics)),
        node(0).max(node(1)),
        traffic.gbps_max(|of| is_pool(of, MemoryUser::Node)),
    ]
}

/// Share of the bytes that the NICs write in slices in which nine tenths are one node's.
fn alone(traffic: &MemoryTraffic) -> f64 {
    let of_node = |node| traffic.by_slice(|of| is_pool(of, MemoryUser::Nics) && of.node == node);
    let (first, second) = (of_node(0), of_node(1));
    let at = |of: &[u64], slice| of.get(slice).copied().unwrap_or(0);
    let (mut all, mut alone) = (0, 0);
    for slice in 0..first.len().max(second.len()) {
        let (one, other) = (at(&first, slice), at(&second, slice));
        all += one + other;
        if one.max(other) * 10 >= (one + other) * 9 {
            alone += one + other;
        }
    }
    alone as f64 / all as f64
}

/// Slices in which a user moves more than a tenth of what it moves in its busiest one.
fn busy(traffic: &MemoryTraffic, user: MemoryUser) -> usize {
    let slices = traffic.by_slice(|of| is_pool(of, user) && of.node == 0);
    let most = slices.iter().max().copied().unwrap_or(0);
    slices.iter().filter(|bytes| **bytes * 10 > most).count()
}

const HEAD: &str = "\
## Figure 13: what the NICs write into the memory pool, and what a node loads from it

`memory_slice_ns` counts bytes of memories by slice of time, here 1 ms of the prototype; the paper's
slices are not published. Receive buffers are not cached: `cache_bytes = 0`. The program is that of
PageRank above, three supersteps; the paper names none. Rates are of the busiest slice of rack 0,
in percent of C.

Published is that \"the peak memory bandwidth of the memory pool required by the NIC pool to receive
network traffic is 2.9x of that accessed by CNs\". We read it as one node's loads, since the nodes
take turns; the last column has both nodes'.

| B | loads at once | NICs write | a node loads | times | published | times, both nodes |
|---|---|---|---|---|---|---|
";

pub(crate) fn figure_13(page: &mut String) -> std::fmt::Result {
    page.push_str(HEAD);
    for (name, ratio) in [("C", 1), ("C/2", 2), ("C/4", 4), ("C/8", 8)] {
        for loads in [1, 2, 4, 64] {
            let keys = format!("cache_bytes = 0\nloads_max = {loads}");
            let [pool, node, nodes] = peaks(&traffic(ratio, &keys, 1.0));
            let of_c = |gbps: f64| 100.0 * gbps / f64::from(10 * ratio);
            writeln!(
                page,
                "| {name} | {loads} | {:.0} | {:.0} | {:.1} | 2.9 | {:.1} |",
                of_c(pool),
                of_c(node),
                pool / node,
                pool / nodes,
            )?;
        }
    }
    page.push_str(DECIDES);
    for (name, keys, slice_ms) in [
        ("nothing", "cache_bytes = 0", 1.0),
        ("slices of 0.1 ms", "cache_bytes = 0", 0.1),
        ("slices of 5 ms", "cache_bytes = 0", 5.0),
        ("two NICs more", "cache_bytes = 0\nextra_nics = 2", 1.0),
        ("receive buffers cached", "cache_bytes = 1048576", 1.0),
    ] {
        let traffic = traffic(4, &format!("{keys}\nloads_max = 2"), slice_ms);
        let [pool, node, _] = peaks(&traffic);
        let (receives, loads) =
            (busy(&traffic, MemoryUser::Nics), busy(&traffic, MemoryUser::Node));
        writeln!(
            page,
            "| {name} | {:.1} | {:.0} % | {:.1} |",
            pool / node,
            100.0 * alone(&traffic),
            loads as f64 / receives as f64,
        )?;
    }
    page.push_str(WHY);
    Ok(())
}

const DECIDES: &str = "
With 2 loads at once and B = C/4, and what changes it. *Alone* is the share of received bytes in
slices in which nine tenths are one node's; published is that the nodes use the NIC pool \"in a
time-sharing manner\". *Longer* is the time in which node 0 loads over the time in which NICs write
for it; published is that it is longer.

| changed | times | alone | longer |
|---|---|---|---|
";

const WHY: &str = "
- *2.9 lies between ours*: 3.4 with 2 loads at once at C/4, with 4 at C/2, or with 1 at C/8; twice
  as many loads halve it. Neither B nor the number of loads is published. Table 4 comes out with 2
  loads at once, too: 0.18, where 0.17 is published.
- *Why*: two NICs write 2 B. A node that loads from uncached memory gets 64 B in each latency for
  each load at once, 8 % of C. At B = C the memory fabric limits the NICs, which get all of 2 B at
  C/2.
- *Nodes take turns without being told*: in a superstep the others send to node 0 first. Shorter
  slices show it more clearly, and with more NICs a turn is shorter than a slice.
- *Cached receive buffers need the NICs' rate twice*: the DRAM cache reads a packet in bulk as soon
  as it has come.

";
