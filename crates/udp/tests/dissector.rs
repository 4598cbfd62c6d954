//! `tools/ethermem.lua` under tshark. The dissector shows every field of every packet of
//! golden/wire in the right place, and decodes a captured conversation of a client and a node.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_clio::transport::{Client, ClientConfig};
use ethermem_udp::seal::{ClientSeal, NodeSeal, TenantKey};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{
    Epoch, Frame, FrameBody, Mac, PIECE_FRAME_BYTES, Piece, Port, ProcessId, Protection, Request,
    SenderId, Station, TenantId,
};
use etherparse::PacketBuilder;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};

const NODE_PORT: u16 = 7400;
/// Octets of Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
const ENVELOPE: usize = 32;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Writes a capture of datagrams; `true` marks those to the node.
fn capture(path: &Path, datagrams: &[(bool, Vec<u8>)]) {
    let frame = |(to_node, datagram): &(bool, Vec<u8>)| {
        let (from, to) = if *to_node { (40_000, NODE_PORT) } else { (NODE_PORT, 40_000) };
        let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
            .udp(from, to);
        let mut frame = Vec::new();
        builder.write(&mut frame, datagram).unwrap();
        frame
    };
    capture_frames(path, datagrams.iter().map(frame));
}

fn capture_frames(path: &Path, frames: impl Iterator<Item = Vec<u8>>) {
    let mut writer = PcapWriter::with_header(File::create(path).unwrap(), PcapHeader::default());
    let writer = writer.as_mut().unwrap();
    for (at, frame) in (0..).zip(frames) {
        let (when, length) = (Duration::from_micros(at), frame.len() as u32);
        writer.write_packet(&PcapPacket::new(when, length, &frame)).unwrap();
    }
}

/// tshark's output with our dissector; `None`, with a SKIPPED line, if there is no tshark.
fn tshark(path: &Path, arguments: &[&str]) -> Option<String> {
    let script = format!("lua_script:{}", root().join("tools/ethermem.lua").display());
    let mut command = Command::new("tshark");
    // Wireshark refuses scripts if it considers running as root unsafe.
    command.env("HOME", path.parent().unwrap()).args(["-X", &script, "-r"]).arg(path);
    let Ok(output) = command.args(arguments).output() else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: the dissector: tshark is not installed");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("Lua:"), "{said}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Lines of a file of golden/wire, without the first.
fn golden(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(root().join("golden/wire").join(name)).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn octets(hex: &str) -> Vec<u8> {
    hex::decode(hex).unwrap()
}

/// An attribute of an XML element.
fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let from = element.split(&format!(" {name}=\"")).nth(1).unwrap();
    from.split('"').next().unwrap()
}

/// Our fields of a packet: name, offset in the frame, length in octets.
fn fields(packet: &str) -> Vec<(String, usize, usize)> {
    let elements = packet.split("<field name=\"ethermem.").skip(1);
    elements
        .map(|element| {
            let name = element.split('"').next().unwrap().to_owned();
            let number = |what| attribute(element, what).parse().unwrap();
            (name, number("pos"), number("size"))
        })
        .collect()
}

#[test]
fn every_field_of_the_golden_packets_is_where_it_should_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("golden.pcap");
    let packets = golden("clio_packets.csv");
    let envelope = octets(&packets[0][3]);
    assert_eq!(envelope.len(), ENVELOPE);
    let packets: Vec<_> = packets.iter().filter(|row| row[0] != "envelope").collect();
    let datagram =
        |row: &&Vec<String>| (row[0] == "request", [&envelope[..], &octets(&row[3])].concat());
    let datagrams: Vec<_> = packets.iter().map(datagram).collect();
    capture(&path, &datagrams);
    let Some(pdml) = tshark(&path, &["-T", "pdml"]) else { return };
    let seen: Vec<&str> = pdml.split("<packet>").skip(1).collect();
    assert_eq!(seen.len(), packets.len());
    let table = golden("clio_opcodes.csv");
    let numbers: BTreeMap<&str, &str> = table
        .iter()
        .filter_map(|row| Some((row[0].strip_suffix("_request")?, row[1].as_str())))
        .collect();
    let by_number: BTreeMap<&str, &str> = numbers.iter().map(|(name, n)| (*n, *name)).collect();
    let mut opcodes = BTreeSet::new();
    for ((row, (_, datagram)), seen) in packets.iter().zip(&datagrams).zip(seen) {
        assert!(!seen.contains("ethermem.malformed"), "{row:?}");
        let found = fields(seen);
        let at = HEADERS + ENVELOPE;
        let name = by_number[(datagram[ENVELOPE] & 0x7f).to_string().as_str()];
        let is_refused = row[0] == "response" && datagram[ENVELOPE + 4] > 1;
        let format = format!("{name}_{}", row[0]);
        let wanted = |format: &str, base: usize| -> Vec<(String, usize, String)> {
            let of = table.iter().filter(|field| field[0] == format && !field[4].is_empty());
            of.map(|f| (f[4].clone(), base + f[5].parse::<usize>().unwrap(), f[6].clone()))
                .collect()
        };
        let mut all = wanted("envelope", HEADERS);
        all.extend(wanted(&row[0], at));
        all.extend(if is_refused { Vec::new() } else { wanted(&format, at) });
        for (name, pos, size) in all.iter().filter(|(name, ..)| name != "reserved") {
            let rest = datagram.len() + HEADERS - pos;
            let is = |(known, place, octets): &&(String, usize, usize)| {
                known == name
                    && (size.parse() == Ok(*octets) && place == pos
                        || size == "rest" && *octets > 0
                        || size == "rest_numbers" && place == pos && *octets == 8
                        || size == "counted")
            };
            let is_empty =
                size.parse::<usize>().is_err() && (rest == 0 || format == "offload_request");
            assert!(is_empty || found.iter().any(|field| is(&field)), "{row:?}: {name}: {found:?}");
        }
        let detail = found.iter().any(|(name, ..)| name == "detail");
        assert_eq!(detail, is_refused, "{row:?}");
        opcodes.insert(name);
    }
    assert_eq!(opcodes.len(), numbers.len(), "a packet of every opcode");
}

#[test]
fn statuses_have_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("status.pcap");
    let envelope = octets(&golden("clio_packets.csv")[0][3]);
    let statuses = golden("clio_status.csv");
    // The response to a read, refused.
    let answer = |status: &Vec<String>| {
        let mut packet = [0; 24];
        (packet[0], packet[2], packet[4]) = (0x81, 24, status[0].parse().unwrap());
        (false, [&envelope[..], &packet].concat())
    };
    let refused: Vec<_> = statuses.iter().filter(|row| row[2] == "0").collect();
    capture(&path, &refused.iter().map(|row| answer(row)).collect::<Vec<_>>());
    let Some(seen) = tshark(&path, &["-V"]) else { return };
    for status in refused {
        let line = format!("status: {} ({})", status[1], status[0]);
        assert!(seen.contains(&line), "{line}");
    }
}

/// A conversation of a node and a client, which asks for its facts and for a process.
fn conversation(protection: Protection) -> Vec<(bool, Vec<u8>)> {
    conversation_with(protection, Ns(u64::MAX))
}

/// As [`conversation`], with a node that has this lease.
fn conversation_with(protection: Protection, lease: Ns) -> Vec<(bool, Vec<u8>)> {
    let (tenant, key, sender) = (TenantId(1), TenantKey([4; 32]), SenderId(9));
    let config = NodeConfig {
        memory: MemoryConfig {
            memory: Bytes(1 << 16),
            page: PageSize::Kib4,
            tlb_entries: 16,
            fault_buffer_pages: 4,
        },
        key: HashKey([1, 2]),
        epoch: Epoch(7),
        sender: SenderId(8),
        protection,
        data_bytes_max: 1400,
        processes_max: 4,
        recent_requests: 64,
        lifetime_max: Ns(1_000_000),
        keep: Ns(10_000_000),
        lease,
        tenants: vec![(tenant, Quota::UNLIMITED)],
    };
    let mut node = Node::new(config, vec![0; 1 << 16]).unwrap();
    let mut node_seal = NodeSeal::new(&[(tenant, key)], SenderId(8), [1, 2], 4);
    let mut client = Client::new(ClientConfig {
        sender,
        tenant,
        protection,
        datagram_bytes_max: 1472,
        datagram_bytes_base: 1472,
        window_max: 4,
        incast_window: Bytes(1 << 16),
        queueing_target: Ns(100_000),
        retry_after_min: Ns(100_000),
        retry_after_max: Ns(200_000),
        give_up_after: Ns(1_000_000),
    })
    .unwrap();
    let mut client_seal = ClientSeal::new(tenant, &key, sender);
    client.submit(ProcessId(0), Request::CreateProcess);
    let (mut said, mut octets, mut answer) = (Vec::new(), vec![0; 1472], vec![0; 1472]);
    for now in (1..).map(|turn| Ns(turn * 1000)) {
        let bytes = client.poll_transmit(now, &mut octets);
        let mut datagram = octets[..bytes].to_vec();
        if protection == Protection::Gcm {
            client_seal.seal(&mut datagram).unwrap();
        }
        said.push((true, datagram.clone()));
        let bytes = match protection {
            Protection::Gcm => node.on_sealed(now, &mut datagram, &mut answer, &mut node_seal),
            _ => node.on_datagram(now, &datagram, &mut answer),
        };
        said.push((false, answer[..bytes].to_vec()));
        match protection {
            Protection::Gcm => {
                let sealed = client_seal.open(&mut answer[..bytes]).unwrap();
                client.on_packets(now, &sealed.envelope, &answer[sealed.packets]);
            }
            _ => client.on_datagram(now, &answer[..bytes]),
        }
        if client.poll_event().is_some_and(|event| event.outcome.is_ok()) && node.processes() == 1 {
            return said;
        }
    }
    unreachable!("it ends once the process is made")
}

#[test]
fn a_conversation_is_read_as_what_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("said.pcap");
    for (protection, said) in [
        (Protection::Carrier, ["hello", "hello answer", "create_process", "create_process answer"]),
        (Protection::Crc, ["hello", "hello answer", "create_process", "create_process answer"]),
        (Protection::Gcm, ["encrypted, 24 B", "encrypted, 48 B", "encrypted, 24 B", "encrypted, "]),
    ] {
        capture(&path, &conversation(protection));
        let Some(seen) = tshark(&path, &["-T", "fields", "-e", "_ws.col.Info"]) else { return };
        let lines: Vec<&str> = seen.lines().collect();
        assert_eq!(lines.len(), said.len(), "{protection:?}: {seen}");
        for (line, said) in lines.iter().zip(said) {
            assert!(line.starts_with(said), "{protection:?}: {line:?} is no {said:?}");
        }
        let Some(whole) = tshark(&path, &["-V"]) else { return };
        assert!(!whole.contains("no packet of this format"), "{whole}");
    }
}

#[test]
fn a_lease_is_shown_in_ms_and_none_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.pcap");
    // The longest lease that the field can express is shown as such.
    for (lease, shown) in [
        (60_000_000_000, "lease_ms: 60000"),
        (1_000_000_000_000_000_000, "lease_ms: 1000000000000"),
        (u64::MAX, "lease_ms: none: processes live until they are ended"),
    ] {
        capture(&path, &conversation_with(Protection::Crc, Ns(lease)));
        let Some(seen) = tshark(&path, &["-V"]) else { return };
        let lines: Vec<&str> =
            seen.lines().map(str::trim).filter(|line| line.starts_with("lease_ms")).collect();
        assert_eq!(lines, [shown]);
    }
}

/// A raw Ethernet frame, padded to the minimum length.
fn raw_frame(body: FrameBody, octets: &[u8]) -> Vec<u8> {
    let station = |last, port| Station { mac: Mac([2, 0, 0, 0, 0, last]), port: Port(port) };
    let (to, from) = (station(1, 7400), station(2, 1 << 63 | 7));
    let frame = Frame { to, from, carries: 1468, body };
    let mut written = vec![0; PIECE_FRAME_BYTES];
    let front = frame.emit(octets.len() as u16, &mut written).unwrap();
    written.truncate(front);
    written.extend_from_slice(octets);
    written.resize(written.len().max(60), 0);
    written
}

#[test]
fn frames_of_raw_ethernet_are_read_with_the_datagrams_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frames.pcap");
    let said = conversation(Protection::Crc);
    let piece = |index| Piece { number: 0x0102_0304, index, count: 2, total: 9 };
    let mut frames: Vec<Vec<u8>> =
        said.iter().map(|(_, octets)| raw_frame(FrameBody::Datagram, octets)).collect();
    frames.extend([
        raw_frame(FrameBody::Question, &[]),
        raw_frame(FrameBody::Answer, &[]),
        raw_frame(FrameBody::Piece(piece(0)), &[1; 5]),
        raw_frame(FrameBody::Piece(piece(1)), &[2; 4]),
    ]);
    capture_frames(&path, frames.iter().cloned());
    let Some(seen) = tshark(&path, &["-T", "fields", "-e", "_ws.col.Info"]) else { return };
    let expected = [
        "hello",
        "hello answer",
        "create_process",
        "create_process answer",
        "question",
        "answer",
        "piece 1 of 2, 5 B",
        "piece 2 of 2, 4 B",
    ];
    assert_eq!(seen.lines().collect::<Vec<_>>(), expected);
    let fields = ["kind", "bytes", "carries", "to_port", "from_port", "number", "index", "total"];
    let names: Vec<String> = fields.iter().map(|name| format!("ethermem_frame.{name}")).collect();
    let mut arguments = vec!["-T", "fields", "-E", "separator=,"];
    names.iter().for_each(|name| arguments.extend(["-e", name]));
    let Some(seen) = tshark(&path, &arguments) else { return };
    let bytes = said[0].1.len();
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines[0], format!("0,{bytes},1468,7400,9223372036854775815,,,"));
    assert_eq!(lines[5], "3,0,1468,7400,9223372036854775815,,,");
    assert_eq!(lines[7], "1,4,1468,7400,9223372036854775815,16909060,1,9");
    let Some(whole) = tshark(&path, &["-V"]) else { return };
    assert!(!whole.contains("no packet of this format"), "{whole}");
    assert!(!whole.contains("no frame of this format"), "{whole}");
}
