//! The vectors in `golden/wire`, which the RTL's tests and Python read as well. With
//! `UPDATE_GOLDEN=1` in the environment, the test writes the files instead of comparing them.

#[path = "support/errors.rs"]
mod errors;
#[path = "support/golden_file.rs"]
mod golden_file;
#[path = "support/samples.rs"]
mod samples;

use std::fmt::Write as _;

use ethermem_wire::{
    Address, Block, ControlError, EdmControl, GrantKind, Message, Scrambler, SubType, WriteKind,
};
use golden_file::compare;

fn hex(bits: u128) -> String {
    format!("{bits:017x}")
}

fn address(address: Address) -> String {
    match address {
        Address::Short(address) => format!("address_bits=40;address={:#x}", address.number()),
        Address::Long(address) => format!("address_bits=64;address={address:#x}"),
    }
}

fn octets(data: &[u8]) -> String {
    data.iter().fold(String::from("data="), |mut text, octet| {
        write!(text, "{octet:02x}").expect("a string takes all");
        text
    })
}

/// A message's kind and its fields, in the order of their bits.
fn fields(message: &Message<'_>) -> (&'static str, String) {
    match message {
        Message::Notification(n) => {
            let acknowledged = u8::from(n.kind == WriteKind::Acknowledged);
            let (node, id, bytes) = (n.destination.number(), n.id.0, n.demand.bytes().0);
            let text = format!("acknowledged={acknowledged};node={node};id={id};bytes={bytes}");
            ("notification", text)
        }
        Message::Grant(g) => {
            let response = u8::from(g.kind == GrantKind::Response);
            let (node, id) = (g.peer.number(), g.id.0);
            ("grant", format!("response={response};node={node};id={id};bytes={}", g.bytes))
        }
        Message::Status(s) => {
            let (opcode, node, id) = (s.opcode.bits(), s.peer.number(), s.id.0);
            ("status", format!("opcode={opcode};node={node};id={id};code={}", s.code as u8))
        }
        Message::ReadRequest(r) => {
            let (node, id, bytes) = (r.peer().number(), r.id().0, r.bytes().0);
            let address = address(r.address());
            ("read_request", format!("node={node};id={id};bytes={bytes};{address}"))
        }
        Message::RmwRequest(r) => {
            let (opcode, node, id) = (r.operation.kind().opcode(), r.peer.number(), r.id.0);
            let [first, second] = r.operation.operands();
            let mut text = format!("opcode={};node={node};id={id};", opcode as u8);
            write!(text, "{};operand={first:#x}", address(r.address)).expect("a string takes all");
            if r.operation.kind().operand_count() == 2 {
                write!(text, ";operand_second={second:#x}").expect("a string takes all");
            }
            ("rmw_request", text)
        }
        Message::ReadResponse(r) => {
            let (node, id, last) = (r.source.number(), r.id.0, u8::from(r.last));
            let (index, data) = (r.index.number(), octets(r.data.bytes()));
            ("read_response", format!("node={node};id={id};last={last};index={index};{data}"))
        }
        Message::PostedWrite(w) => {
            let address = w.address.number();
            ("posted_write", format!("address={address:#x};{}", octets(w.data.bytes())))
        }
        Message::AcknowledgedWrite(w) => {
            let (node, id, last) = (w.source.number(), w.id.0, u8::from(w.last));
            let (index, data) = (w.index.number(), octets(w.data.bytes()));
            let mut text = format!("address={:#x};last={last};node={node};id={id};", w.address);
            write!(text, "index={index};{data}").expect("a string takes all");
            ("acknowledged_write", text)
        }
    }
}

#[test]
fn messages() {
    let mut vectors = String::from("kind,fields,blocks\n");
    for message in samples::samples() {
        let (kind, fields) = fields(&message);
        let blocks: Vec<String> = message.blocks().map(|block| hex(block.to_bits())).collect();
        writeln!(vectors, "{kind},{fields},{}", blocks.join(" ")).expect("a string takes all");
    }
    compare("messages.csv", &vectors);
}

#[test]
fn scrambler() {
    let mut vectors = String::from("payload,line\n");
    let mut scrambler = Scrambler::new(u64::MAX);
    let idle = [Block::IDLE; 3];
    let blocks = samples::samples().into_iter().flat_map(|message| message.blocks());
    let payloads = idle.into_iter().chain(blocks.take(61)).map(Block::payload);
    for payload in payloads {
        let line = scrambler.scramble(payload);
        writeln!(vectors, "{payload:016x},{line:016x}").expect("a string takes all");
    }
    compare("scrambler.csv", &vectors);
}

/// What a receiver concludes from a block's sync header, type, sub-type and CRC-8 alone.
fn verdict(sync: u8, payload: u64) -> &'static str {
    let Ok(block) = Block::from_line(sync, payload) else {
        return "sync";
    };
    match EdmControl::decode(block) {
        Ok(_) => "valid",
        Err(ControlError::NotEdm) => "not_edm",
        Err(ControlError::Type(_)) => "type",
        Err(ControlError::SubType(_)) => "sub_type",
        Err(ControlError::Crc { .. }) => "crc",
    }
}

#[test]
fn errors() {
    let mut vectors = String::from("sent,line_errors,received,verdict\n");
    let errors = errors::line_errors();
    for (row, sub_type) in SubType::ALL.into_iter().enumerate() {
        let sent = EdmControl::new(sub_type, 0x5a_1234_a5a5 >> row).encode();
        let mut write = |names: &str, sync: u8, payload: u64| {
            let (sync, payload) = (sent.sync() as u8 ^ sync, sent.payload() ^ payload);
            let received = hex((u128::from(payload) << 2) | u128::from(sync));
            let (sent, verdict) = (hex(sent.to_bits()), verdict(sync, payload));
            writeln!(vectors, "{sent},{names},{received},{verdict}").expect("a string takes all");
        };
        write("", 0, 0);
        for (index, (name, error)) in errors.iter().enumerate() {
            write(name, error.sync, error.payload);
            // A second error follows each error; it differs from sub-type to sub-type.
            let (other_name, other) = &errors[(index + 1 + 23 * row) % errors.len()];
            let names = format!("{name}+{other_name}");
            write(&names, error.sync ^ other.sync, error.payload ^ other.payload);
        }
    }
    compare("errors.csv", &vectors);
}
