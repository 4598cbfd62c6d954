//! The table of the packets: which there are, and where their fields lie.

use thiserror::Error;

use super::packet::HEADER_BYTES;

/// The octet that says which packet a frame is. Responses have the high bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CxlCommand {
    /// Reads a line.
    ReadRequest = 0x01,
    /// Writes a whole line.
    WriteRequest = 0x02,
    /// Writes some bytes of a line: the second form of the write request.
    MaskedWriteRequest = 0x03,
    /// The line that was read; the ACK of a read request.
    ReadResponse = 0x81,
    /// The ACK of a write request.
    WriteResponse = 0x82,
    /// SACK + NAK: a request came, and others before it did not.
    SackNak = 0x83,
    /// SACK + NAK + ACK: the same, and a response with it.
    SackNakAck = 0x84,
    /// The receive FIFO of the memory node is above its threshold.
    Congestion = 0x85,
}

/// An octet that is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("command {0:#04x}: must be 0x01 to 0x03 or 0x81 to 0x85")]
pub struct UnknownCommand(pub u8);

impl TryFrom<u8> for CxlCommand {
    type Error = UnknownCommand;

    fn try_from(octet: u8) -> Result<CxlCommand, UnknownCommand> {
        let mut formats = FORMATS.iter().map(|format| format.command);
        formats.find(|command| *command as u8 == octet).ok_or(UnknownCommand(octet))
    }
}

/// A field of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// How many octets.
    pub octets: usize,
}

/// A packet's fields behind the header of Ethernet, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Name of the packet.
    pub name: &'static str,
    /// Its command.
    pub command: CxlCommand,
    /// The fields. The data of a SACK + NAK + ACK is there if a read is acknowledged.
    pub fields: &'static [Field],
}

const fn field(name: &'static str, octets: usize) -> Field {
    Field { name, octets }
}

const COMMAND: Field = field("command", 1);
const SEQUENCE: Field = field("sequence", 4);
const ID: Field = field("id", 1);
const LINE: Field = field("line", 5);
const MASK: Field = field("mask", 8);
const DATA: Field = field("data", 64);
const STATUS: Field = field("status", 1);
const NAK: Field = field("nak", 4);
const SACK: Field = field("sack", 4);

/// All packets. Two forms of the write request are one of the paper's seven.
pub const FORMATS: [Format; 8] = [
    Format {
        name: "read_request",
        command: CxlCommand::ReadRequest,
        fields: &[COMMAND, SEQUENCE, ID, LINE],
    },
    Format {
        name: "write_request",
        command: CxlCommand::WriteRequest,
        fields: &[COMMAND, SEQUENCE, ID, LINE, DATA],
    },
    Format {
        name: "masked_write_request",
        command: CxlCommand::MaskedWriteRequest,
        fields: &[COMMAND, SEQUENCE, ID, LINE, MASK, DATA],
    },
    Format {
        name: "read_response",
        command: CxlCommand::ReadResponse,
        fields: &[COMMAND, SEQUENCE, ID, STATUS, DATA],
    },
    Format {
        name: "write_response",
        command: CxlCommand::WriteResponse,
        fields: &[COMMAND, SEQUENCE, ID, STATUS],
    },
    Format { name: "sack_nak", command: CxlCommand::SackNak, fields: &[COMMAND, NAK, SACK] },
    Format {
        name: "sack_nak_ack",
        command: CxlCommand::SackNakAck,
        fields: &[COMMAND, NAK, SACK, field("acked", 1), SEQUENCE, ID, STATUS, DATA],
    },
    Format {
        name: "congestion",
        command: CxlCommand::Congestion,
        fields: &[COMMAND, field("number", 4), field("entries", 2)],
    },
];

/// The format of a command.
#[must_use]
pub fn format_of(command: CxlCommand) -> &'static Format {
    let found = FORMATS.iter().find(|format| format.command == command);
    found.expect("every command has its format")
}

impl Format {
    /// Octets of the whole frame before padding, with its Ethernet header; of the form with data.
    #[must_use]
    pub fn octets(&self) -> usize {
        HEADER_BYTES + self.fields.iter().map(|field| field.octets).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::FRAME_BYTES_MAX;
    use super::*;

    /// Figure 5: destination 6, source 6, EtherType 2, command 1, sequence 4, id 1, line 5, data
    /// 64. The figure's sum is published; the widths of the five between are not.
    #[test]
    fn a_write_request_has_89_octets_as_in_figure_5() {
        assert_eq!(6 + 6 + 2 + 1 + 4 + 1 + 5 + 64, 89);
        assert_eq!(format_of(CxlCommand::WriteRequest).octets(), 89);
        let longest = FORMATS.iter().map(Format::octets).max();
        assert_eq!(longest, Some(FRAME_BYTES_MAX));
    }

    #[test]
    fn a_command_is_one_of_the_table() {
        for octet in 0..=u8::MAX {
            match CxlCommand::try_from(octet) {
                Ok(command) => assert_eq!(command as u8, octet),
                Err(error) => assert_eq!(error, UnknownCommand(octet)),
            }
        }
        let requests = FORMATS.iter().filter(|format| format.command as u8 & 0x80 == 0).count();
        assert_eq!((requests, FORMATS.len() - requests), (3, 5));
    }
}
