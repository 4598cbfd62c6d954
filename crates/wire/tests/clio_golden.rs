//! The vectors of `golden/wire/clio_*.csv`, against which dissectors and other languages check
//! themselves. With `UPDATE_GOLDEN=1` in the environment, the test writes the files instead of
//! comparing them.

#[path = "support/clio_samples.rs"]
mod clio_samples;
#[path = "support/golden_file.rs"]
mod golden_file;

use std::fmt::Write as _;

use clio_samples::{envelopes, requests, responses};
use ethermem_wire::clio::{
    ClioStatus, ENVELOPE_BYTES, ENVELOPE_FIELDS, Field, FieldBytes, OPCODES, Protection,
    REQUEST_BYTES, REQUEST_FIELDS, RESPONSE_BYTES, RESPONSE_FIELDS,
};
use golden_file::compare;

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        write!(text, "{octet:02x}").expect("a string takes all");
        text
    })
}

fn row(vectors: &mut String, cells: &[&dyn std::fmt::Display]) {
    let cells: Vec<String> = cells.iter().map(ToString::to_string).collect();
    writeln!(vectors, "{}", cells.join(",")).expect("a string takes all");
}

#[test]
fn packets() {
    let mut vectors = String::from("kind,opcode,what,octets\n");
    let mut octets = [0; 256];
    for envelope in envelopes() {
        let length = envelope.emit(&mut octets).expect("samples are short");
        let length = envelope.seal(&mut octets, length).expect("samples are short");
        let what = format!("{envelope:?}").replace(',', ";");
        // The octets that AES-GCM puts behind the envelope depend on a key.
        let shown = if envelope.protection == Protection::Gcm { ENVELOPE_BYTES } else { length };
        row(&mut vectors, &[&"envelope", &"", &what, &hex(&octets[..shown])]);
    }
    for packet in requests() {
        let length = packet.emit(&mut octets).expect("samples are short");
        let name = packet.body.opcode().row().name;
        let what = format!("{packet:?}").replace(',', ";");
        row(&mut vectors, &[&"request", &name, &what, &hex(&octets[..length])]);
    }
    for packet in responses() {
        let length = packet.emit(&mut octets).expect("samples are short");
        let what = format!("{packet:?}").replace(',', ";");
        row(&mut vectors, &[&"response", &packet.opcode, &what, &hex(&octets[..length])]);
    }
    compare("clio_packets.csv", &vectors);
}

/// Writes a line for each field of a format that begins this many octets into its packet or
/// datagram.
fn layout(
    vectors: &mut String,
    format: &str,
    of: &[&dyn std::fmt::Display; 3],
    fields: &[Field],
    at: usize,
) {
    let none = [Field { name: "", bytes: FieldBytes::Number(0) }];
    let mut at = at;
    for field in if fields.is_empty() { &none } else { fields } {
        let octets = match field.bytes {
            FieldBytes::Number(octets) => octets.to_string(),
            FieldBytes::Counted => "counted".to_owned(),
            FieldBytes::Rest => "rest".to_owned(),
            FieldBytes::RestNumbers => "rest_numbers".to_owned(),
        };
        row(vectors, &[&format, of[0], of[1], of[2], &field.name, &at, &octets]);
        if let FieldBytes::Number(octets) = field.bytes {
            at += usize::from(octets);
        }
    }
}

#[test]
fn table() {
    let mut vectors = String::from("format,opcode,path,repeatable,field,first_octet,octets\n");
    let headers: [(_, _, &[Field]); 3] = [
        ("envelope", ENVELOPE_BYTES, &ENVELOPE_FIELDS),
        ("request", REQUEST_BYTES, &REQUEST_FIELDS),
        ("response", RESPONSE_BYTES, &RESPONSE_FIELDS),
    ];
    for (format, octets, fields) in headers {
        layout(&mut vectors, format, &[&"", &"", &""], fields, 0);
        let sum = fields.iter().map(|field| match field.bytes {
            FieldBytes::Number(octets) => usize::from(octets),
            _ => 0,
        });
        assert_eq!(sum.sum::<usize>(), octets, "{format}");
    }
    for table_row in &OPCODES {
        let number = table_row.opcode as u8;
        let path = format!("{:?}", table_row.path).to_lowercase();
        let of: [&dyn std::fmt::Display; 3] =
            [&number, &path, &u8::from(table_row.opcode.is_repeatable())];
        let name = table_row.name;
        layout(&mut vectors, &format!("{name}_request"), &of, table_row.request, REQUEST_BYTES);
        layout(&mut vectors, &format!("{name}_response"), &of, table_row.response, RESPONSE_BYTES);
    }
    compare("clio_opcodes.csv", &vectors);
}

#[test]
fn statuses() {
    let mut vectors = String::from("number,status,done,retryable\n");
    for status in ClioStatus::ALL {
        let flags = (u8::from(status.is_done()), u8::from(status.is_retryable()));
        row(&mut vectors, &[&(status as u8), &format!("{status:?}"), &flags.0, &flags.1]);
    }
    compare("clio_status.csv", &vectors);
}
