//! Measures several links together, beside kernel MPTCP over the same links in the same run:
//!
//! ```text
//! cargo bench -p ethermem-udp --bench paths -- [MBIT [RUNS]]
//! ```
//!
//! Two network namespaces have four veth links, each limited in both directions (`tc tbf`). One
//! process reads from a node, and one receives from a sender by MPTCP. It needs root, `ip` and
//! `tc`, and `python3` for MPTCP, whose protocol number the standard library does not take.

mod mptcp;
mod namespace;
mod ours;

use std::time::{Duration, SystemTime};

use namespace::Namespace;

const LINKS: usize = 4;
/// Rate of a whole link in Mb/s, and number of runs, unless the command says otherwise.
const MBIT: u64 = 250;
const RUNS: usize = 5;
/// Length of a run, of which the beginning does not count.
const RUN: Duration = Duration::from_millis(2500);
const WARM_UP: Duration = Duration::from_millis(500);
/// When the last link is killed and restored, from the run's beginning, and the run's length.
const KILLED: Duration = Duration::from_millis(1500);
const RESTORED: Duration = Duration::from_millis(3000);
const KILL_RUN: Duration = Duration::from_millis(5000);
/// Resolution of what was received over time.
const BUCKET: Duration = Duration::from_millis(10);

/// Bytes received in each bucket of time from the run's beginning.
pub(crate) struct Received {
    pub(crate) buckets: Vec<u64>,
    /// Operations that failed or gave other bytes than were written.
    pub(crate) wrong: u64,
}

impl Received {
    /// Mb/s between two times of the run.
    fn mbit(&self, from: Duration, to: Duration) -> f64 {
        let at = |time: Duration| (time.as_nanos() / BUCKET.as_nanos()) as usize;
        let bytes: u64 = self.buckets.iter().take(at(to)).skip(at(from)).sum();
        bytes as f64 * 8.0 / (to - from).as_secs_f64() / 1e6
    }

    /// The longest time after the kill, in ms, in which less arrived than half of what the other
    /// links carry.
    fn dip_ms(&self, rest_mbit: f64) -> u64 {
        let bucket = |mbit: f64| mbit * 1e6 / 8.0 * BUCKET.as_secs_f64();
        let at = |time: Duration| (time.as_nanos() / BUCKET.as_nanos()) as usize;
        let span = &self.buckets[at(KILLED).min(self.buckets.len())..];
        let low = span.split(|&bytes| bytes as f64 >= bucket(rest_mbit / 2.0));
        let longest = low.map(<[u64]>::len).max().unwrap_or(0);
        longest as u64 * BUCKET.as_millis() as u64
    }
}

/// Milliseconds of the wall clock, which all processes of the machine share.
pub(crate) fn wall_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("the clock is after 1970").as_millis() as u64
}

pub(crate) struct Links {
    pub(crate) client: Namespace,
    pub(crate) node: Namespace,
}

impl Links {
    fn new() -> Option<Links> {
        let links = Links { client: Namespace::new()?, node: Namespace::new()? };
        for link in 0..LINKS {
            links.client.connect(&format!("c{link}"), &links.node, &format!("n{link}"));
            links.client.ip(&format!("addr add 10.77.{link}.1/24 dev c{link}"));
            links.node.ip(&format!("addr add 10.77.{link}.2/24 dev n{link}"));
        }
        Some(links)
    }

    /// Limits the links to these rates in Mb/s, both ways.
    fn limit(&self, rates: &[u64]) {
        for (link, rate) in rates.iter().enumerate() {
            for (machine, end) in [(&self.client, "c"), (&self.node, "n")] {
                let rate = format!("tbf rate {rate}mbit burst 128kb latency 10ms");
                machine.call("tc", &format!("qdisc replace dev {end}{link} root {rate}"));
            }
        }
    }

    /// Kills the last link and restores it, beside a run that begins now.
    fn kill(&self) {
        std::thread::sleep(KILLED);
        self.node.ip(&format!("link set n{} down", LINKS - 1));
        std::thread::sleep(RESTORED - KILLED);
        self.node.ip(&format!("link set n{} up", LINKS - 1));
    }
}

fn median(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1])
}

fn cell(values: &[f64]) -> String {
    let (middle, least, most) = median(values);
    format!("{middle:.0} ({least:.0} to {most:.0})")
}

/// Mb/s of ours and of MPTCP over the first `links` links, alternating.
fn rates(links: &Links, count: usize, runs: usize) -> [Vec<f64>; 2] {
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        let received = ours::receive(links, count, RUN);
        assert_eq!(received.wrong, 0, "every read gives what was written");
        all[0].push(received.mbit(WARM_UP, RUN));
        if let Some(received) = mptcp::receive(links, count, RUN) {
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
    let receive_mptcp = || mptcp::receive(links, LINKS, KILL_RUN);
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
