//! Links between two network namespaces, and what was received over them in time: for this
//! measurement, and for that of a rack's NICs.

use std::time::{Duration, SystemTime};

use super::namespace::Namespace;

pub(crate) const LINKS: usize = 4;
/// Length of a run, of which the beginning does not count.
pub(crate) const RUN: Duration = Duration::from_millis(2500);
pub(crate) const WARM_UP: Duration = Duration::from_millis(500);
/// When the last link is killed and restored, from the run's beginning, and the run's length.
pub(crate) const KILLED: Duration = Duration::from_millis(1500);
pub(crate) const RESTORED: Duration = Duration::from_millis(3000);
pub(crate) const KILL_RUN: Duration = Duration::from_millis(5000);
/// Resolution of what was received over time.
pub(crate) const BUCKET: Duration = Duration::from_millis(10);

/// Bytes received in each bucket of time from the run's beginning.
pub(crate) struct Received {
    pub(crate) buckets: Vec<u64>,
    /// Operations that failed or gave other bytes than were written.
    pub(crate) wrong: u64,
}

impl Received {
    /// Mb/s between two times of the run.
    pub(crate) fn mbit(&self, from: Duration, to: Duration) -> f64 {
        let at = |time: Duration| (time.as_nanos() / BUCKET.as_nanos()) as usize;
        let bytes: u64 = self.buckets.iter().take(at(to)).skip(at(from)).sum();
        bytes as f64 * 8.0 / (to - from).as_secs_f64() / 1e6
    }

    /// The longest time after the kill, in ms, in which less arrived than half of what the other
    /// links carry.
    pub(crate) fn dip_ms(&self, rest_mbit: f64) -> u64 {
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
    pub(crate) fn new() -> Option<Links> {
        let links = Links { client: Namespace::new()?, node: Namespace::new()? };
        for link in 0..LINKS {
            links.client.connect(&format!("c{link}"), &links.node, &format!("n{link}"));
            links.client.ip(&format!("addr add 10.77.{link}.1/24 dev c{link}"));
            links.node.ip(&format!("addr add 10.77.{link}.2/24 dev n{link}"));
        }
        Some(links)
    }

    /// Limits the links to these rates in Mb/s, both ways.
    pub(crate) fn limit(&self, rates: &[u64]) {
        for (link, rate) in rates.iter().enumerate() {
            for (machine, end) in [(&self.client, "c"), (&self.node, "n")] {
                let rate = format!("tbf rate {rate}mbit burst 128kb latency 10ms");
                machine.call("tc", &format!("qdisc replace dev {end}{link} root {rate}"));
            }
        }
    }

    /// Kills the last link and restores it, beside a run that begins now.
    pub(crate) fn kill(&self) {
        std::thread::sleep(KILLED);
        self.node.ip(&format!("link set n{} down", LINKS - 1));
        std::thread::sleep(RESTORED - KILLED);
        self.node.ip(&format!("link set n{} up", LINKS - 1));
    }
}

pub(crate) fn median(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1])
}

pub(crate) fn cell(values: &[f64]) -> String {
    let (middle, least, most) = median(values);
    format!("{middle:.0} ({least:.0} to {most:.0})")
}
