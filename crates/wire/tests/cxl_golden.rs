//! The vectors of `golden/wire/cxl_*.csv`, against which dissectors, other languages and the RTL
//! check themselves. With `UPDATE_GOLDEN=1` in the environment, the test writes the files instead
//! of comparing them.

#[path = "support/cxl_samples.rs"]
mod cxl_samples;
#[path = "support/golden_file.rs"]
mod golden_file;

use std::fmt::Write as _;

use cxl_samples::{frames, on_the_link};
use ethermem_wire::cxl::{FORMATS, HEADER_BYTES, Mac, Pause};
use golden_file::compare;

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        write!(text, "{octet:02x}").expect("a string takes all");
        text
    })
}

#[test]
fn packets() {
    let mut vectors = String::from("packet,command,what,octets\n");
    for (name, frame) in frames() {
        let what = format!("{:?}", frame.packet).replace(',', ";");
        let (command, octets) = (frame.packet.command() as u8, hex(&on_the_link(&frame)));
        writeln!(vectors, "{name},{command:#04x},{what},{octets}").expect("a string takes all");
    }
    let pause = Pause::of(Mac([0x02, 0, 0, 0, 0, 0x0e]), 3, 0x1234);
    let mut octets = [0; 64];
    pause.emit_with_fcs(&mut octets).expect("a PFC frame has 64 B");
    let what = format!("{pause:?}").replace(',', ";");
    writeln!(vectors, "pfc,,{what},{}", hex(&octets)).expect("a string takes all");
    compare("cxl_packets.csv", &vectors);
}

#[test]
fn formats() {
    let mut vectors = String::from("packet,command,field,first_octet,octets\n");
    for format in &FORMATS {
        let mut at = HEADER_BYTES;
        for field in format.fields {
            let (command, octets) = (format.command as u8, field.octets);
            writeln!(vectors, "{},{command:#04x},{},{at},{octets}", format.name, field.name)
                .expect("a string takes all");
            at += octets;
        }
    }
    compare("cxl_formats.csv", &vectors);
}
