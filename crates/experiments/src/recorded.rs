//! Traces of disks and the network beside page traces, as the command names them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use ethermem_study::{MatchRule, Recording, Recordings};
use ethermem_trace::disk_files;
use ethermem_units::Ns;

use crate::error::Error;

/// Name of a trace that a machine lacks.
pub const NO_TRACE: &str = "none";
/// Allowed difference between the bytes of reads and of the transfer that they match.
pub const VOLUME: RangeInclusive<f64> = 0.0..=1.0;

/// Traces of disks and the network. Each list is empty, or has one entry for each page trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// For each machine, files of blktrace, or what its `-o` names; empty for none.
    pub disks: Vec<Vec<PathBuf>>,
    /// For each machine, its captures of tcpdump; a single entry is of all machines.
    pub networks: Vec<Vec<PathBuf>>,
    /// For each machine, its addresses.
    pub addresses: Vec<Vec<IpAddr>>,
    /// For each machine, when its program started, in ns since 1970.
    pub starts: Vec<Option<Ns>>,
    /// When reads and a transfer match.
    pub rule: MatchRule,
    /// A longer pause ends a transfer.
    pub gap: Ns,
    /// True if a machine's disk is its own disk blade; otherwise it is spread over all of them.
    pub own_disks: bool,
}

impl Default for Recorded {
    fn default() -> Recorded {
        Recorded {
            disks: Vec::new(),
            networks: Vec::new(),
            addresses: Vec::new(),
            starts: Vec::new(),
            rule: MatchRule { window: Ns(10_000_000), volume: 0.25 },
            gap: Ns(1_000_000),
            own_disks: false,
        }
    }
}

impl Recorded {
    /// True if there is any trace of a disk or the network.
    #[must_use]
    pub fn is_any(&self) -> bool {
        !self.disks.is_empty() || !self.networks.is_empty()
    }

    /// The machines of these page traces; `None` if nothing else was traced.
    ///
    /// # Errors
    /// A number of entries that is not that of the page traces, an address of two machines, a
    /// machine without any trace, or a name without files.
    pub fn recordings(&self, traces: &[PathBuf]) -> Result<Option<Recordings>, Error> {
        if !self.is_any() {
            let unused = [("address", self.addresses.len()), ("start-s", self.starts.len())];
            for (flag, count) in unused {
                if count > 0 {
                    return refuse(format!(
                        "--{flag}: must be with --disk-trace or --network-trace"
                    ));
                }
            }
            if traces.iter().any(|trace| trace == Path::new(NO_TRACE)) {
                return refuse(format!(
                    "TRACE {NO_TRACE}: must be with --disk-trace or --network-trace"
                ));
            }
            return Ok(None);
        }
        self.check(traces.len())?;
        let mut machines = Vec::new();
        for (index, trace) in traces.iter().enumerate() {
            let pages = (trace != Path::new(NO_TRACE)).then(|| trace.clone());
            let mut disks = Vec::new();
            for name in self.disks.get(index).into_iter().flatten() {
                disks.extend(disk_files(name)?);
            }
            let network = match self.networks.len() {
                1 => Vec::new(),
                _ => self.networks.get(index).cloned().unwrap_or_default(),
            };
            if pages.is_none() && disks.is_empty() && self.networks.is_empty() {
                return refuse(format!("machine {}: no trace: must have one", index + 1));
            }
            machines.push(Recording {
                pages,
                start: self.starts.get(index).copied().flatten(),
                disks,
                network,
                addresses: self.addresses.get(index).cloned().unwrap_or_default(),
            });
        }
        let network = match &self.networks[..] {
            [one] => one.clone(),
            _ => Vec::new(),
        };
        let Recorded { rule, gap, own_disks, .. } = *self;
        Ok(Some(Recordings { machines, network, rule, gap, own_disks }))
    }

    fn check(&self, traces: usize) -> Result<(), Error> {
        let counts = [
            ("disk-trace", self.disks.len()),
            ("network-trace", self.networks.len()),
            ("start-s", self.starts.len()),
        ];
        for (flag, count) in counts {
            let is_one_for_all = flag == "network-trace" && count == 1;
            if count > 0 && count != traces && !is_one_for_all {
                let or = if flag == "network-trace" { "1, or " } else { "" };
                return refuse(format!(
                    "--{flag} for {count} machines: must be {or}as many as TRACE, {traces}; \
                     {NO_TRACE} for a machine without"
                ));
            }
        }
        let needed = if self.networks.is_empty() { 0 } else { traces };
        if self.addresses.len() != needed {
            return refuse(format!(
                "--address for {} machines: must be {needed}, one for each TRACE with \
                 --network-trace",
                self.addresses.len()
            ));
        }
        let mut known = BTreeSet::new();
        for address in self.addresses.iter().flatten() {
            if !known.insert(address) {
                return refuse(format!("--address {address}: must be of one machine"));
            }
        }
        Ok(())
    }
}

fn refuse<T>(problem: String) -> Result<T, Error> {
    Err(Error::Request(problem))
}

/// Parses files of one machine, separated by commas, or `none`.
///
/// # Errors
/// One line with what is allowed.
pub fn files(text: &str) -> Result<Vec<PathBuf>, String> {
    if text == NO_TRACE {
        return Ok(Vec::new());
    }
    if text.split(',').any(str::is_empty) {
        return Err("must be files, separated by commas, or none".to_owned());
    }
    Ok(text.split(',').map(PathBuf::from).collect())
}

/// Parses addresses of one machine, separated by commas.
///
/// # Errors
/// One line with what is allowed.
pub fn addresses(text: &str) -> Result<Vec<IpAddr>, String> {
    let parsed = text.split(',').map(str::parse).collect::<Result<Vec<IpAddr>, _>>();
    parsed.map_err(|_| "must be IP addresses, separated by commas".to_owned())
}

/// Parses seconds since 1970, exact to the nanosecond, or `none`.
///
/// # Errors
/// One line with what is allowed.
pub fn start_s(text: &str) -> Result<Option<Ns>, String> {
    if text == NO_TRACE {
        return Ok(None);
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |digits: &str, most: usize| {
        (1..=most).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    if !is_digits(whole, 10) || !is_digits(part, 9) {
        return Err("must be seconds since 1970 with up to 9 decimals, or none".to_owned());
    }
    let number =
        |digits: &str| digits.bytes().fold(0, |sum, digit| 10 * sum + u64::from(digit - b'0'));
    Ok(Some(Ns(number(whole) * 1_000_000_000 + number(&format!("{part:0<9}")))))
}

/// Parses the difference of bytes at which a transfer is still matched.
///
/// # Errors
/// One line with what is allowed.
pub fn volume(text: &str) -> Result<f64, String> {
    let volume = text.parse::<f64>().ok().filter(|volume| VOLUME.contains(volume));
    volume.ok_or_else(|| "must be 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(recorded: &Recorded, traces: usize) -> String {
        let traces = vec![PathBuf::from(NO_TRACE); traces];
        match recorded.recordings(&traces) {
            Ok(_) => "no error".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_machine_has_an_entry() {
        let disks = vec![Vec::new()];
        let recorded = Recorded { disks, ..Recorded::default() };
        let expected = "--disk-trace for 1 machines: must be as many as TRACE, 2; none for a \
                        machine without";
        assert_eq!(error(&recorded, 2), expected);
        assert_eq!(error(&recorded, 1), "machine 1: no trace: must have one");
        let networks = vec![vec![PathBuf::from("a.pcap")]];
        let recorded = Recorded { networks, ..Recorded::default() };
        let expected =
            "--address for 0 machines: must be 2, one for each TRACE with --network-trace";
        assert_eq!(error(&recorded, 2), expected);
        let own = IpAddr::from([10, 0, 0, 1]);
        let twice = Recorded { addresses: vec![vec![own], vec![own]], ..recorded };
        assert_eq!(error(&twice, 2), "--address 10.0.0.1: must be of one machine");
        let alone = Recorded { addresses: vec![vec![own]], ..Recorded::default() };
        let expected = "--address: must be with --disk-trace or --network-trace";
        assert_eq!(error(&alone, 1), expected);
        let expected = "TRACE none: must be with --disk-trace or --network-trace";
        assert_eq!(error(&Recorded::default(), 2), expected);
    }

    #[test]
    fn values_are_read_exactly_or_refused() {
        assert_eq!(start_s("1795800781.427334"), Ok(Some(Ns(1_795_800_781_427_334_000))));
        assert_eq!(start_s("7"), Ok(Some(Ns(7_000_000_000))));
        assert_eq!(start_s("none"), Ok(None));
        for bad in ["", ".", "1.", "-1", "1e9", "1.0000000001", "12345678901"] {
            assert!(start_s(bad).is_err(), "{bad}");
        }
        assert_eq!(files("a,b"), Ok(vec![PathBuf::from("a"), PathBuf::from("b")]));
        assert_eq!(files("none"), Ok(Vec::new()));
        assert!(files("a,,b").is_err() && files("").is_err());
        assert!(addresses("10.0.0.1,::1").is_ok() && addresses("10.0.0").is_err());
        assert!(volume("0.25").is_ok() && volume("nan").is_err() && volume("1.1").is_err());
    }
}
