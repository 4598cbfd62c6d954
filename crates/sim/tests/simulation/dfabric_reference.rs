//! Figure 11 of DFabric: messages within a rack by reference, for `docs/figures-dfabric.md`.

use std::fmt::Write as _;

use ethermem_sim::workload::program::{Builder, Program};
use ethermem_units::Bytes;

use crate::dfabric_prototype::{PROTOTYPE, Prototype};
use crate::dfabric_published::run;

/// Bytes of a message: one packet of the prototype, whose MTU is 4 KB.
const SIZES: [u64; 5] = [64, 256, 1_024, 2_048, 4_016];
/// Round trips of a run.
const ROUNDS: u32 = 20;

/// Messages to and fro, each after the one before it: `lat_tcp` of lmbench.
fn ping_pong(bytes: u64) -> Program {
    let mut builder = Builder::new(2);
    let mut last = Vec::new();
    for tag in 0..2 * ROUNDS {
        let (from, to) = ((tag % 2) as u16, (1 - tag % 2) as u16);
        last = vec![builder.send(from, to, Bytes(bytes), tag, &last).expect("two nodes")];
    }
    builder.build()
}

/// Microseconds of a message, one way.
fn one_way_us(fabric: &str, keys: &str, bytes: u64) -> f64 {
    run(fabric, keys, &ping_pong(bytes)).0 as f64 / 1e6 / f64::from(2 * ROUNDS)
}

/// Microseconds of the prototype for a message in one rack of two nodes, one way.
fn prototype_us(fabric: &str, nic_gbps: u32, stack_us: f64, own: &str, bytes: u64) -> f64 {
    let prototype = Prototype { nodes: 2, racks: 1, nic_gbps, stack_us, ..PROTOTYPE };
    let keys = prototype.keys(fabric, own);
    f64::from(prototype.fabric_gbps) * one_way_us(fabric, &keys, bytes)
}

/// By reference, over the baseline with NICs of this rate: percent by which latency is lower.
fn reductions(nic_gbps: u32, stack_us: f64) -> [f64; SIZES.len()] {
    SIZES.map(|bytes| {
        let ours = prototype_us("dfabric", 10, stack_us, "intra_rack = \"reference\"", bytes);
        let tor = prototype_us("tor-rack", nic_gbps, stack_us, "", bytes);
        100.0 * (1.0 - ours / tor)
    })
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

const HEAD: &str = "\
## Figure 11: latency within a rack, by reference

`lat_tcp`: one packet to and fro. The sender's `send` copies into a Buffer of its own memory, and
its descriptor passes the virtual queues. The receiver loads the header, wraps the reference by
`build_shared_skb`, and has it; `recv`'s copy is left out. So a message is `intra_rack =
\"reference\"`. Times are of one way, in us of the prototype. Its ToR takes 32.5 us, Table 3's
intra-rack network, and an MTU of 4 KB is for both.

The text allows two readings twice.

- \"No constraint on the NIC's bandwidth (B = C)\": the NIC has C, about 1 Gb/s; or it has its own
  10 Gb/s.
- `recv`'s copy is removed from both, as we read it: `tor-rack` has none. Or it is removed from
  DFabric alone; a copy at 40 Gb/s would add 0.8 us to 4 KB over the ToR.

| bytes | by reference | by value | ToR, B = C | 10 Gb/s | below value | below B = C | below 10 |
|---|---|---|---|---|---|---|---|
";

const STACKS: &str = "
Published is a mean of 15.9 % over sizes that only the plot has. What decides is the time of the
stack, which is not published, and which both have: means over the sizes above, by the time that
a stack takes for a packet on each side.

| stack, us | 6.7 | 20 | 40 | 60 | 80 | 100 | 120 |
|---|---|---|---|---|---|---|---|
";

/// Figure 11, as the prototype and with latencies of today.
pub(crate) fn figure_11(page: &mut String) -> std::fmt::Result {
    page.push_str(HEAD);
    let stack_us = PROTOTYPE.stack_us;
    let lower = [10, 100].map(|gbps| reductions(gbps, stack_us));
    let mut values = [0.0; SIZES.len()];
    for (at, bytes) in SIZES.into_iter().enumerate() {
        let us = |fabric, gbps, own| prototype_us(fabric, gbps, stack_us, own, bytes);
        let reference = us("dfabric", 10, "intra_rack = \"reference\"");
        let value = us("dfabric", 10, "intra_rack = \"value\"");
        values[at] = 100.0 * (1.0 - reference / value);
        writeln!(
            page,
            "| {bytes} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} % | {:.1} % | {:.1} % |",
            reference,
            value,
            us("tor-rack", 10, ""),
            us("tor-rack", 100, ""),
            values[at],
            lower[0][at],
            lower[1][at],
        )?;
    }
    let [all, unlimited] = lower.map(|of| mean(&of));
    let by_value = mean(&values);
    writeln!(page, "| mean | | | | | {by_value:.1} % | {all:.1} % | {unlimited:.1} % |")?;
    page.push_str(STACKS);
    for (name, gbps) in [("B = C", 10), ("NIC of 10 Gb/s", 100)] {
        let by_stack = [stack_us, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0]
            .map(|stack_us| format!("{:.1} %", mean(&reductions(gbps, stack_us))));
        writeln!(page, "| {name} | {} |", by_stack.join(" | "))?;
    }
    page.push_str(WHY);
    let mut alone = Builder::new(2);
    alone.send(0, 1, Bytes(64), 0, &[]).expect("two nodes");
    let rack = Prototype { nodes: 2, racks: 1, ..PROTOTYPE };
    let took = run("dfabric", &rack.keys("dfabric", "intra_rack = \"reference\""), &alone.build());
    let us = f64::from(rack.fabric_gbps) * took.0 as f64 / 1e6;
    writeln!(
        page,
        "  packet of its own here: alone, 64 B take {us:.1} us. TCP would send both as one."
    )?;
    today(page)
}

const WHY: &str = "
- *The published gain is that of a slow stack*: with the stack of Figures 9 and 10 a message by
  reference gains more. The paper's gain comes out with a stack between 100 and 120 us at B = C, or
  of nearly 60 us at 10 Gb/s. Its text has no latency in us, so that neither is excluded.
- *Without the stack the hop is saved*, and not a copy: three ways over CXL (the tail, the entry of
  the RxQ, the header) stand beside 32.5 us and the time of the frame on two links.
- *The copy that is saved* is the difference to by value, where the receiver loads the data, too.
- *By reference hardly grows with the size*, as published: `send` copies 4 KB in 0.8 us, at 40 Gb/s
  of the prototype. Below 2 KB the copy hides behind the acknowledgement of the message before it, a
";

/// Nanoseconds of a message with latencies of today, by switch levels.
fn today(page: &mut String) -> std::fmt::Result {
    page.push_str(TODAY);
    for bytes in [64, 4_016, 65_536, 1_048_576] {
        for (name, how) in
            [("by reference", "reference"), ("by value", "value"), ("stores", "lines")]
        {
            let by_levels = [1, 2, 4, 8].map(|levels| {
                let keys = format!(
                    "nodes = 2\nlink_gbps = 400\n[fabric.dfabric]\nracks = 1\n\
                     switch_levels = {levels}\nintra_rack = \"{how}\""
                );
                format!("{:.0}", 1e3 * one_way_us("dfabric", &keys, bytes))
            });
            writeln!(page, "| {bytes} | {name} | {} |", by_levels.join(" | "))?;
        }
        let tor = "nodes = 2\nlink_gbps = 400\n[fabric.packet]\nmtu_bytes = 4096\n\
                   [fabric.tor_rack]\nracks = 1";
        let tor = 1e3 * one_way_us("tor-rack", tor, bytes);
        writeln!(page, "| {bytes} | `tor-rack` | {tor:.0} | | | |")?;
    }
    page.push_str(TODAY_WHY);
    Ok(())
}

const TODAY: &str = "
The same with latencies of today, NICs of 400 Gb/s and a fabric of 1.6 Tb/s, in ns of one way, by
levels of switches of 70 ns each:

| bytes | a message | 1 level | 2 | 4 | 8 |
|---|---|---|---|---|---|
";

const TODAY_WHY: &str = "
- *A message by reference is two stacks*, 1,332 ns of it. The rest is copy, tail, entry and header:
  [the budget](fabrics/dfabric.md#within-a-rack-by-reference).
- *A level of switches adds 140 ns by reference*, for the header alone, up to 64 KiB; 1 MiB at 8
  levels waits for acknowledgements of its window. By value and by stores a level delays each batch
  of 64 lines.
- *Stores are fastest up to 64 KiB* at one level, as they pass no stack; with 1 MiB 64 stores at
  once limit them.
- *Over the ToR a packet is as fast*: its hop is 0.5 us here, and not five times a load, as in the
  prototype. A reference pays where copies do: beside a receiver that would load the data.

";
