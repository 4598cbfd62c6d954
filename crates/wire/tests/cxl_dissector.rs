//! `tools/ethermem.lua` under tshark. The dissector finds every field of every frame of golden/wire
//! at its place with its value, and marks wrong frames.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of a file of golden/wire, without its header.
fn golden(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(root().join("golden/wire").join(name)).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// The golden frames as in captures, without their check sequences: name and octets.
fn frames() -> Vec<(String, Vec<u8>)> {
    let rows = golden("cxl_packets.csv");
    let frame = |row: Vec<String>| {
        let mut octets = hex::decode(&row[3]).unwrap();
        octets.truncate(octets.len() - 4);
        (row[0].clone(), octets)
    };
    rows.into_iter().filter(|row| row[0] != "pfc").map(frame).collect()
}

/// The output of tshark for frames; `None`, with a message, if there is no tshark.
fn tshark(frames: &[Vec<u8>], arguments: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frames.pcap");
    let mut writer =
        PcapWriter::with_header(File::create(&path).unwrap(), PcapHeader::default()).unwrap();
    for (at, frame) in (0..).zip(frames) {
        let (when, length) = (Duration::from_micros(at), frame.len() as u32);
        writer.write_packet(&PcapPacket::new(when, length, frame)).unwrap();
    }
    drop(writer);
    let script = format!("lua_script:{}", root().join("tools/ethermem.lua").display());
    let mut command = Command::new("tshark");
    // Wireshark may refuse scripts when it runs as root, so it gets another home folder.
    command.env("HOME", folder.path()).args(["-X", &script, "-r"]).arg(&path);
    let Ok(output) = command.args(arguments).output() else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: the dissector: tshark is not installed");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("Lua:"), "{said}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// An attribute of an element of XML.
fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let from = element.split(&format!(" {name}=\"")).nth(1).unwrap();
    from.split('"').next().unwrap()
}

/// Our fields of a frame: name, first octet, number of octets, value in hex as in the frame.
fn fields(packet: &str) -> Vec<(String, usize, usize, String)> {
    let elements = packet.split("<field name=\"ethermem_cxl.").skip(1);
    elements
        .map(|element| {
            let name = element.split('"').next().unwrap().to_owned();
            let number = |what| attribute(element, what).parse().unwrap();
            (name, number("pos"), number("size"), attribute(element, "value").to_owned())
        })
        .collect()
}

#[test]
fn every_field_of_the_golden_frames_is_where_it_should_be() {
    let (frames, formats) = (frames(), golden("cxl_formats.csv"));
    let octets: Vec<_> = frames.iter().map(|(_, octets)| octets.clone()).collect();
    let Some(pdml) = tshark(&octets, &["-T", "pdml"]) else { return };
    let seen: Vec<&str> = pdml.split("<packet>").skip(1).collect();
    assert_eq!(seen.len(), frames.len());
    for ((name, octets), seen) in frames.iter().zip(seen) {
        assert!(!seen.contains("ethermem_cxl.malformed"), "{name}");
        let command = format!("{:#04x}", octets[14]);
        let has_data = name != "sack_nak_ack_of_write";
        let wanted: Vec<_> = formats
            .iter()
            .filter(|row| row[1] == command && (has_data || row[2] != "data"))
            .map(|row| {
                let (at, count): (usize, usize) =
                    (row[3].parse().unwrap(), row[4].parse().unwrap());
                (row[2].clone(), at, count, hex::encode(&octets[at..at + count]))
            })
            .collect();
        assert_eq!(fields(seen), wanted, "{name}");
    }
}

#[test]
fn every_frame_is_told_in_one_line() {
    let octets: Vec<_> = frames().into_iter().map(|(_, octets)| octets).collect();
    let Some(seen) = tshark(&octets, &["-T", "fields", "-e", "_ws.col.Info"]) else { return };
    assert_eq!(
        seen.lines().collect::<Vec<_>>(),
        [
            "read_request 67305985, line 0x000000a987654321",
            "write_request 67305986, line 0x000000a987654321",
            "masked_write_request 4294967295, line 0x000000a987654321",
            "read_response 67305985: Ok",
            "read_response 7: Unmapped",
            "read_response 8: Poison",
            "write_response 67305986: Ok",
            "write_response 9: Unmapped",
            "sack_nak: 4294967294 is missing, 1 came",
            "sack_nak_ack: 4294967294 is missing, 1 came",
            "sack_nak_ack: 4294967294 is missing, 1 came",
            "congestion: 258 entries",
        ]
    );
}

#[test]
fn a_wrong_frame_is_marked() {
    let write = frames().into_iter().find(|(name, _)| name == "write_request").unwrap().1;
    let mut unknown = write.clone();
    unknown[14] = 0x44;
    let wrong = [write[..60].to_vec(), unknown];
    let Some(seen) = tshark(&wrong, &["-T", "fields", "-e", "ethermem_cxl.malformed"]) else {
        return;
    };
    assert_eq!(seen.lines().filter(|line| !line.is_empty()).count(), wrong.len(), "{seen}");
}
