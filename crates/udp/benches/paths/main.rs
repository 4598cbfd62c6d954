//! Measures several links together, beside kernel MPTCP over the same links in the same run:
//!
//! ```text
//! cargo bench -p ethermem-udp --bench paths -- [MBIT [RUNS]]
//! ```
//!
//! Two network namespaces have four veth links, each limited in both directions (`tc tbf`). One
//! process reads from a node, and one receives from a sender by MPTCP. It needs root, `ip` and
//! `tc`, and `python3` for MPTCP, whose protocol number the standard library does not take.

mod links;
mod namespace;
mod ours;
mod streams;

use std::time::Duration;

use links::{KILL_RUN, KILLED, LINKS, Links, RESTORED, RUN, Received, WARM_UP, cell, median};

/// Rate of a whole link in Mb/s, and number of runs, unless the command says otherwise.
const MBIT: u64 = 250;
const RUNS: usize = 5;

/// Mb/s of ours and of MPTCP over the first `links` links, alternating.
fn rates(links: &Links, count: usize, runs: usize) -> [Vec<f64>; 2] {
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        let received = ours::receive(links, count, RUN);
        assert_eq!(received.wrong, 0, "every read gives what was written");
        all[0].push(received.mbit(WARM_UP, RUN));
        if let Some(received) = streams::mptcp(links, count, RUN) {
            all[1].push(received.mbit(WARM_UP, RUN));
        }
    }
    all
}

fn row(name: &str, sum: f64, [ours, theirs]: &[Vec<f64>; 2], one: f64) {
    let of_one = median(ours).0 / one;
    let over = median(ours).0 / median(theirs).0;
    println!("| {name} | {sum:.0} | {} | {of_one:.2} | {} | {over:.2} |", cell(ours), cell(theirs));
}

fn throughput(links: &Links, mbit: u64, runs: usize) {
    println!("| links | sum, Mb/s | ours | over one link of ours | kernel MPTCP | ours over it |");
    println!("|---|---|---|---|---|---|");
    links.limit(&[mbit; LINKS]);
    let one = rates(links, 1, runs);
    let alone = median(&one[0]).0;
    row("1", mbit as f64, &one, alone);
    row("1, 1, 1, 1", (4 * mbit) as f64, &rates(links, LINKS, runs), alone);
    let unequal = [mbit, mbit, mbit / 2, mbit / 4];
    links.limit(&unequal);
    let sum = unequal.iter().sum::<u64>() as f64;
    row("1, 1, 0.5, 0.25", sum, &rates(links, LINKS, runs), alone);
}

fn killed(links: &Links, mbit: u64, runs: usize) {
    links.limit(&[mbit; LINKS]);
    println!(
        "\n| the last of four links killed | wrong or failed reads | dip, ms | Mb/s before, \
         without it, after |"
    );
    println!("|---|---|---|---|");
    let run = |receive: &(dyn Fn() -> Option<Received> + Sync)| {
        std::thread::scope(|scope| {
            let receives = scope.spawn(receive);
            links.kill();
            receives.join().expect("it receives")
        })
    };
    let receive_ours = || Some(ours::receive(links, LINKS, KILL_RUN));
    let receive_mptcp = || streams::mptcp(links, LINKS, KILL_RUN);
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        all[0].extend(run(&receive_ours));
        all[1].extend(run(&receive_mptcp));
    }
    for (name, received) in ["ours", "kernel MPTCP"].into_iter().zip(&all) {
        if received.is_empty() {
            continue;
        }
        let of = |value: &dyn Fn(&Received) -> f64| received.iter().map(value).collect::<Vec<_>>();
        let rate = |from, to| cell(&of(&|run| run.mbit(from, to)));
        let settle = Duration::from_millis(500);
        let dips = of(&|run| run.dip_ms(run.mbit(KILLED + settle, RESTORED)) as f64);
        let wrong: u64 = received.iter().map(|run| run.wrong).sum();
        println!(
            "| {name} | {wrong} | {} | {}, {}, {} |",
            cell(&dips),
            rate(WARM_UP, KILLED),
            rate(KILLED + settle, RESTORED),
            rate(RESTORED + settle, KILL_RUN),
        );
    }
}

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let mbit = numbers.first().copied().unwrap_or(MBIT);
    let runs = numbers.get(1).map_or(RUNS, |&runs| runs as usize);
    let Some(links) = Links::new() else {
        println!("SKIPPED: several links beside MPTCP: network namespaces need root");
        return;
    };
    println!("Links of {mbit} Mb/s, MTU 1500, {runs} runs: median (least to most)\n");
    throughput(&links, mbit, runs);
    killed(&links, mbit, runs);
}
