//! Files of blktrace and tcpdump: real ones, also as `blkparse` and `tcpdump` read them, and what
//! an independent writer or damage makes of them.

#[path = "support/damage.rs"]
mod damage;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use damage::Damage;
use ethermem_trace::{
    DiskAccess, DiskTrace, NetworkTrace, Protocol, Segment, check_disk_trace, check_network_trace,
    disk_files,
};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness};
use proptest::prelude::*;

/// Octets of a record of blktrace.
const RECORD: usize = 48;

fn data(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/traces/two-machines");
    folder.join(name)
}

fn octets(name: &str) -> Vec<u8> {
    fs::read(data(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn disk(name: &str) -> DiskTrace {
    let files = disk_files(&data(name)).unwrap_or_else(|error| panic!("{error}"));
    DiskTrace::open(&files).unwrap_or_else(|error| panic!("{error}"))
}

fn network(path: &Path) -> Vec<Segment> {
    let trace = NetworkTrace::open(path).unwrap_or_else(|error| panic!("{error}"));
    trace.collect::<Result<Vec<_>, _>>().unwrap_or_else(|error| panic!("{error}"))
}

/// A file of a test with these octets.
fn file(folder: &tempfile::TempDir, octets: &[u8]) -> PathBuf {
    let path = folder.path().join("x");
    fs::write(&path, octets).unwrap_or_else(|error| panic!("{error}"));
    path
}

fn disk_error(octets: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let path = file(&folder, octets);
    match DiskTrace::open(std::slice::from_ref(&path)) {
        Ok(trace) => panic!("{trace:?}"),
        Err(error) => error.to_string().replace(&path.display().to_string(), "x"),
    }
}

fn network_error(octets: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let path = file(&folder, octets);
    let found = match NetworkTrace::open(&path) {
        Ok(trace) => trace.filter_map(Result::err).next(),
        Err(error) => Some(error),
    };
    let error = found.unwrap_or_else(|| panic!("no error"));
    error.to_string().replace(&path.display().to_string(), "x")
}

/// What a program prints; `None`, with a SKIPPED line, if it is not installed.
fn printed(command: &mut Command, name: &str) -> Option<String> {
    let Ok(output) = command.output() else {
        let line = format!("SKIPPED: comparison with {name}: {name} is not installed\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The same records with the other order of octets: the data behind them is not turned, except for
/// that of a time stamp.
fn turned(mut octets: Vec<u8>) -> Vec<u8> {
    let fields = [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2];
    let mut at = 0;
    while at < octets.len() {
        let length = usize::from(u16::from_le_bytes([octets[at + 46], octets[at + 47]]));
        let is_stamp = octets[at + 28..at + 32] == 0x0400_0001_u32.to_le_bytes();
        for field in fields {
            octets[at..at + field].reverse();
            at += field;
        }
        if is_stamp {
            octets[at..at + 4].reverse();
            octets[at + 4..at + 8].reverse();
        }
        at += length;
    }
    octets
}

#[test]
fn a_disk_trace_has_the_accesses_that_blkparse_prints() {
    for machine in ["server", "client"] {
        let trace = disk(machine);
        let (reads, writes): (Vec<&DiskAccess>, Vec<&DiskAccess>) =
            trace.accesses.iter().partition(|access| !access.is_write);
        assert!(!reads.is_empty(), "{machine}");
        assert_eq!(writes.is_empty(), machine == "server", "the client stores what it receives");
        assert!(trace.accesses.iter().all(|access| access.completed_ns.is_some()), "{machine}");
        let command = &mut Command::new("blkparse");
        let format = "%a %d %S %N %9t\\n";
        command.args(["-q", "-a", "issue", "-f", format, "-D"]).arg(data("")).args(["-i", machine]);
        let Some(printed) = printed(command, "blkparse") else { return };
        let issued = printed.lines().filter(|line| line.starts_with("D "));
        let expected: Vec<(bool, u64, u32)> = issued
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let number = |at: usize| words[at].parse::<u64>().expect("a number");
                (words[1].contains('W'), number(2), number(3) as u32)
            })
            .filter(|&(.., bytes)| bytes > 0)
            .collect();
        let found = trace.accesses.iter();
        let found: Vec<_> = found.map(|one| (one.is_write, one.sector, one.bytes)).collect();
        assert_eq!(found, expected, "{machine}");
    }
}

#[test]
fn a_disk_trace_has_the_wall_clock() {
    // The capture's own packets are of the same seconds.
    let trace = disk("server");
    let clock = trace.wall_less_trace_ns.expect("a time stamp");
    let wall = |ns: u64| ns.saturating_add_signed(clock);
    let packets = network(&data("server.pcap"));
    let (first, last) = (packets[0].at_ns, packets[packets.len() - 1].at_ns);
    let during =
        trace.accesses.iter().filter(|access| (first..=last).contains(&wall(access.issued_ns)));
    assert!(during.count() >= 9, "one read of each file at least");
}

#[test]
fn both_orders_of_octets_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["server.blktrace.1", "client.blktrace.1"] {
        let plain = DiskTrace::open(&[data(name)]).expect("a trace");
        let other = DiskTrace::open(&[file(&folder, &turned(octets(name)))]).expect("a trace");
        assert_eq!(plain, other, "{name}");
        assert!(!plain.accesses.is_empty());
    }
    let mut mixed = turned(octets("server.blktrace.0"));
    let at = mixed.len();
    mixed.extend(octets("server.blktrace.1"));
    let expected = format!(
        "x: octet {at}: 07746165 is no record of blktrace: must be 65617407, in one order of octets"
    );
    assert_eq!(disk_error(&mixed), expected);
}

#[test]
fn a_disk_trace_that_is_cut_off_says_where() {
    let whole = octets("server.blktrace.1");
    let end = whole.len() + 47;
    let cut = [&whole[..], &whole[..47]].concat();
    let at = whole.len();
    let expected =
        format!("x: octet {at}: a record of 48 octets is cut off at octet {end}: must be whole");
    assert_eq!(disk_error(&cut), expected);
    // The time stamp has 8 octets of data.
    let first = &octets("server.blktrace.0")[..RECORD + 7];
    let expected = "x: octet 0: the data of a record is cut off at octet 55: must be whole";
    assert_eq!(disk_error(first), expected);
    let expected = "x: octet 0: a1b2c3d4 is no record of blktrace: must be 65617407, in one order \
                    of octets";
    assert_eq!(disk_error(&[0xa1, 0xb2, 0xc3, 0xd4].repeat(12)), expected);
}

#[test]
fn a_name_stands_for_the_files_of_all_processors() {
    let files = disk_files(&data("server")).expect("files");
    assert_eq!(files, [data("server.blktrace.0"), data("server.blktrace.1")]);
    let one = disk_files(&data("server.blktrace.1")).expect("a file");
    assert_eq!(one, [data("server.blktrace.1")]);
    let error = disk_files(&data("nobody")).expect_err("there are none").to_string();
    assert!(error.contains("no such file, and no nobody.blktrace.0"), "{error}");
}

/// A record of an action on one sector of device 7, without data.
fn record(at_ns: u64, action: u32, sector: u64, bytes: u32) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend(0x6561_7407_u32.to_le_bytes());
    record.extend(0_u32.to_le_bytes());
    record.extend(at_ns.to_le_bytes());
    record.extend(sector.to_le_bytes());
    for number in [bytes, action, 1, 7, 0, 0] {
        record.extend(number.to_le_bytes());
    }
    record
}

#[test]
fn issues_count_and_queued_accesses_only_where_none_is_issued() {
    const READ: u32 = 1 << 16;
    const WRITE: u32 = 1 << 17;
    const DISCARD: u32 = 1 << 29;
    let [queue, requeue, issue, complete] = [1, 6, 7, 8];
    let folder = tempfile::tempdir().expect("a folder");
    let of = |records: &[Vec<u8>]| {
        let trace = DiskTrace::open(&[file(&folder, &records.concat())]).expect("a trace");
        let accesses = trace.accesses.into_iter();
        let all = accesses.map(|one| (one.issued_ns, one.completed_ns, one.bytes, one.is_write));
        all.collect::<Vec<_>>()
    };
    let queued = [record(1, READ | queue, 8, 512), record(9, READ | complete, 8, 512)];
    assert_eq!(of(&queued), [(1, Some(9), 512, false)]);
    let merged = [
        record(1, READ | queue, 8, 512),
        record(2, READ | queue, 9, 512),
        record(3, READ | issue, 8, 1024),
        record(9, READ | complete, 8, 1024),
    ];
    assert_eq!(of(&merged), [(3, Some(9), 1024, false)]);
    let again = [
        record(1, WRITE | issue, 8, 512),
        record(2, WRITE | requeue, 8, 512),
        record(3, WRITE | issue, 8, 512),
    ];
    assert_eq!(of(&again), [(3, None, 512, true)]);
    let nothing = [record(1, WRITE | DISCARD | issue, 8, 4096), record(2, WRITE | issue, 8, 0)];
    assert_eq!(of(&nothing), []);
}

#[test]
fn a_capture_has_the_data_that_tcpdump_prints() {
    let names = ["server", "client", "loopback", "loopback-sll", "loopback-sll2"];
    for name in names {
        let path = data(&format!("{name}.pcap"));
        let segments = network(&path);
        let bytes: Vec<u64> =
            segments.iter().map(|one| u64::from(one.bytes)).filter(|&bytes| bytes > 0).collect();
        let command = &mut Command::new("tcpdump");
        // Datagrams of any port count, so no protocol above UDP is guessed.
        command.args(["-nqr"]).arg(&path);
        let Some(printed) = printed(command, "tcpdump") else { return };
        let expected: Vec<u64> = printed
            .lines()
            .filter_map(|line| {
                let (_, length) = line.rsplit_once("tcp ").or(line.rsplit_once("length "))?;
                length.trim().parse().ok()
            })
            .filter(|&bytes| bytes > 0)
            .collect();
        assert_eq!(bytes, expected, "{name}");
        assert!(!bytes.is_empty());
    }
}

/// A client asks with 3 bytes, gets 3,000, and sends a datagram of 700: over IPv4 and IPv6, with
/// each of three link types.
#[test]
fn every_link_type_gives_the_same_data() {
    for name in ["loopback", "loopback-sll", "loopback-sll2"] {
        let segments = network(&data(&format!("{name}.pcap")));
        let with_data = || segments.iter().filter(|segment| segment.bytes > 0);
        let bytes: Vec<u32> = with_data().map(|segment| segment.bytes).collect();
        assert_eq!(bytes, [3, 3_000, 700, 3, 3_000, 700], "{name}");
        let first = with_data().next().expect("a packet");
        assert_eq!(first.from.0.to_string(), "127.0.0.2", "{name}");
        assert_eq!(first.to.0.to_string(), "127.0.0.1", "{name}");
        assert!(with_data().skip(3).all(|segment| segment.from.0.is_ipv6()), "{name}");
        let datagrams = with_data().filter(|segment| segment.protocol == Protocol::Udp);
        assert_eq!(datagrams.count(), 2, "{name}");
        let opened = segments
            .iter()
            .filter(|segment| matches!(segment.protocol, Protocol::Tcp { opens: true, .. }));
        assert_eq!(opened.count(), 4, "{name}: SYN and its answer, twice");
    }
}

/// Header and packets of a capture with the numbers of the other order.
fn turned_capture(mut octets: Vec<u8>) -> Vec<u8> {
    octets[..4].reverse();
    octets[4..6].reverse();
    octets[6..8].reverse();
    octets[8..24].chunks_mut(4).for_each(<[u8]>::reverse);
    let mut at = 24;
    while at < octets.len() {
        let captured = [octets[at + 8], octets[at + 9], octets[at + 10], octets[at + 11]];
        octets[at..at + 16].chunks_mut(4).for_each(<[u8]>::reverse);
        at += 16 + u32::from_le_bytes(captured) as usize;
    }
    octets
}

#[test]
fn both_orders_and_both_units_of_time_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    // One was captured in nanoseconds, the other in microseconds.
    for name in ["server.pcap", "loopback.pcap"] {
        let plain = network(&data(name));
        let other = network(&file(&folder, &turned_capture(octets(name))));
        assert_eq!(plain, other, "{name}");
        let whole_us = plain.iter().all(|segment| segment.at_ns.is_multiple_of(1_000));
        assert_eq!(whole_us, name == "loopback.pcap");
    }
}

#[test]
fn a_capture_as_pcapng_gives_the_same_data() {
    let name = "server.pcap";
    let file_octets = octets(name);
    let folder = tempfile::tempdir().expect("a folder");
    for (endianness, resolution) in
        [(Endianness::Little, 9_u8), (Endianness::Big, 9), (Endianness::Little, 6)]
    {
        let mut writer =
            PcapNgWriter::with_endianness(Vec::new(), endianness).expect("a writer in memory");
        let options = vec![InterfaceDescriptionOption::IfTsResol(resolution)];
        let interface =
            InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 96, options };
        writer.write_pcapng_block(interface).expect("a block in memory");
        let mut at = 24;
        while at < file_octets.len() {
            let number = |at: usize| {
                let octets = &file_octets[at..at + 4];
                u32::from_le_bytes([octets[0], octets[1], octets[2], octets[3]])
            };
            let ns = u64::from(number(at)) * 1_000_000_000 + u64::from(number(at + 4));
            let (captured, original_len) = (number(at + 8) as usize, number(at + 12));
            // The writer writes a number of nanoseconds, whatever the resolution is.
            let units = if resolution == 9 { ns } else { ns / 1_000 };
            let packet = EnhancedPacketBlock {
                interface_id: 0,
                timestamp: Duration::from_nanos(units),
                original_len,
                data: file_octets[at + 16..at + 16 + captured].into(),
                options: Vec::new(),
            };
            writer.write_pcapng_block(packet).expect("a block in memory");
            at += 16 + captured;
        }
        let found = network(&file(&folder, &writer.into_inner()));
        let expected = network(&data(name)).into_iter().map(|segment| {
            let part = if resolution == 9 { 0 } else { segment.at_ns % 1_000 };
            Segment { at_ns: segment.at_ns - part, ..segment }
        });
        assert_eq!(found, expected.collect::<Vec<_>>(), "{endianness:?} {resolution}");
    }
}

#[test]
fn a_capture_that_cannot_be_used_says_where() {
    let whole = octets("loopback.pcap");
    assert_eq!(network_error(&[]), "x: octet 0: an empty file: must be a capture, pcap or pcapng");
    assert_eq!(
        network_error(b"PAR1...."),
        "x: octet 0: 50415231 begins no capture: must be a1b2c3d4, a1b23c4d or 0a0d0d0a, in any \
         order"
    );
    let end = whole.len();
    let error = network_error(&whole[..end - 1]);
    assert!(error.ends_with(&format!("a packet is cut off at octet {}: must be whole", end - 1)));
    let mut other_link = whole.clone();
    other_link[20] = 105;
    assert_eq!(
        network_error(&other_link),
        "x: octet 20: link type 105: must be 1 (Ethernet), 101, 228, 229 (raw IP), 113, 276 (Linux \
         cooked)"
    );
    let mut late = whole.clone();
    late[28..32].copy_from_slice(&1_000_000_u32.to_le_bytes());
    assert_eq!(
        network_error(&late),
        "x: octet 24: 1000000 parts of a second: must be less than a second"
    );
    let mut huge = whole;
    huge[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        network_error(&huge),
        "x: octet 24: a packet of 4294967295 octets: must be at most 67108864"
    );
}

proptest! {
    #[test]
    fn damage_to_a_disk_trace_is_an_error_or_other_accesses(damage in Damage::any()) {
        check_disk_trace(&damage.done_to(octets("server.blktrace.1")));
    }

    #[test]
    fn damage_to_a_capture_is_an_error_or_other_packets(damage in Damage::any()) {
        for name in ["server.pcap", "loopback-sll2.pcap"] {
            check_network_trace(&damage.done_to(octets(name)));
        }
    }

    #[test]
    fn any_octets_are_no_trace_or_one(octets in prop::collection::vec(any::<u8>(), 0..300)) {
        check_disk_trace(&octets);
        check_network_trace(&octets);
        // Behind a good start, blocks of pcapng.
        let mut section = vec![0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a];
        section.resize(28, 0);
        section.extend(&octets);
        check_network_trace(&section);
    }
}
