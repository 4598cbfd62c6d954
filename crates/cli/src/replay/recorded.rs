//! Options of `replay` for traces of disks and the network.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use ethermem_experiments::recorded::{Recorded, addresses, files, start_s, volume};
use ethermem_experiments::replay::ms;
use ethermem_study::MatchRule;
use ethermem_units::Ns;

use crate::files::Files;
use crate::value::{Named, one_of};

const DISK_BLADES: [Named<bool>; 2] = [
    ("spread", "Spread over all disk blades of the cluster, in the blocks of --block-kib", false),
    ("own", "The disk blade of the machine", true),
];

#[derive(Args, Clone, Debug)]
pub(crate) struct RecordedArguments {
    /// Files of blktrace for the next machine, separated by commas; what `blktrace -o` names stands
    /// for the files of all processors; `none` for a machine without. Repeat it for each TRACE
    #[arg(long, value_name = "FILES", value_parser = files)]
    disk_trace: Vec<Vec<PathBuf>>,

    /// Captures of tcpdump for the next machine, pcap or pcapng, separated by commas; `none` for a
    /// machine without. Repeat it for each TRACE, or give it once for all machines
    #[arg(long, value_name = "FILES", value_parser = files)]
    network_trace: Vec<Vec<PathBuf>>,

    /// IP addresses of the next machine, separated by commas. Repeat it for each TRACE
    #[arg(long, value_name = "IP,IP", value_parser = addresses)]
    address: Vec<Vec<IpAddr>>,

    /// Start of the next machine's program, in seconds since 1970, or `none`; reads of pages are
    /// then matched as well. Repeat it for each TRACE [default: the first access to a disk or
    /// transfer of any machine]
    #[arg(long, value_name = "SECONDS", value_parser = start_s)]
    start_s: Vec<Option<Ns>>,

    /// Longest time from a read to the transfer of its data to another machine, in ms
    #[arg(long, value_name = "MS", default_value = "10", value_parser = ms)]
    match_window_ms: Ns,

    /// Largest difference between the bytes of reads and of the transfer that they match, as a
    /// fraction of the transfer, 0 to 1
    #[arg(long, value_name = "FRACTION", default_value = "0.25", value_parser = volume)]
    match_bytes: f64,

    /// Longest pause within a transfer, in ms
    #[arg(long, value_name = "MS", default_value = "1", value_parser = ms)]
    transfer_gap_ms: Ns,

    /// Disk blade that holds the data of a machine's disks
    #[arg(long, value_name = "BLADES", default_value = "spread", action = ArgAction::Set,
          value_parser = one_of(&DISK_BLADES))]
    disk_blades: bool,
}

impl RecordedArguments {
    /// Adds the files that are read.
    pub(crate) fn reading(&self, files: Files) -> Files {
        let given = [
            ("also --disk-trace", &self.disk_trace),
            ("also --network-trace", &self.network_trace),
        ];
        let given = given
            .into_iter()
            .flat_map(|(name, all)| all.iter().flatten().map(move |path| (name, path)));
        given.fold(files, |files, (name, path)| files.reading(name, Some(path)))
    }

    pub(crate) fn request(&self) -> Recorded {
        Recorded {
            disks: self.disk_trace.clone(),
            networks: self.network_trace.clone(),
            addresses: self.address.clone(),
            starts: self.start_s.clone(),
            rule: MatchRule { window: self.match_window_ms, volume: self.match_bytes },
            gap: self.transfer_gap_ms,
            own_disks: self.disk_blades,
        }
    }
}
