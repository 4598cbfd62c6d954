//! How packets are read. Nothing that a frame says is taken unchecked, and nothing here panics.

use thiserror::Error;

use super::field::{
    AccessId, ByteMask, Failure, LineAddress, LineData, Sequence, UnknownStatus, status_of,
};
use super::format::{CxlCommand, UnknownCommand};
use super::packet::{
    Congestion, Frame, Negative, Packet, Request, RequestPacket, Response, ResponsePacket, padded,
};
use super::{ETHER_TYPE, FCS_BYTES};
use crate::clio::Mac;
use crate::ethernet::has_valid_fcs;
use crate::octets::Reader;

/// Why octets are no frame of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameFault {
    /// The check sequence is wrong: some octets are not what was sent.
    #[error("frame check sequence of {0} B is wrong")]
    Check(usize),
    /// The frame ends before its fields do.
    #[error("frame of {0} B is cut off")]
    Short(usize),
    /// The frame is of another protocol.
    #[error("EtherType {0:#06x}: must be {ETHER_TYPE:#06x}")]
    Foreign(u16),
    /// The source is a group address, which no sender has.
    #[error("source {0}: must be the address of one station")]
    Source(Mac),
    /// There is no such packet.
    #[error(transparent)]
    Command(#[from] UnknownCommand),
    /// The frame is longer or shorter than its packet.
    #[error("frame of {octets} B: must be {must_be} B")]
    Length {
        /// What it has.
        octets: usize,
        /// What its packet has.
        must_be: usize,
    },
    /// There is no such status.
    #[error(transparent)]
    Status(#[from] UnknownStatus),
    /// A SACK + NAK + ACK acknowledges neither a read nor a write.
    #[error("acknowledged command {0:#04x}: must be 0x81 or 0x82")]
    Acked(u8),
    /// A read that failed carries data.
    #[error("data of a failed read: must be zeros")]
    DataOfFailure,
    /// A SACK is of no request after the NAK's.
    #[error("SACK {sack} with NAK {nak}: must be after it")]
    SackBeforeNak {
        /// The first request that has not come.
        nak: u32,
        /// The request that came.
        sack: u32,
    },
}

impl Frame {
    /// Reads a frame with its check sequence.
    ///
    /// # Errors
    /// [`FrameFault`]; [`FrameFault::Check`] before all others.
    pub fn parse_with_fcs(octets: &[u8]) -> Result<Frame, FrameFault> {
        if !has_valid_fcs(octets) {
            return Err(FrameFault::Check(octets.len()));
        }
        Frame::parse(&octets[..octets.len() - FCS_BYTES])
    }

    /// Reads a frame without its check sequence, which a MAC has checked.
    ///
    /// # Errors
    /// [`FrameFault`].
    pub fn parse(octets: &[u8]) -> Result<Frame, FrameFault> {
        let short = FrameFault::Short(octets.len());
        let mut reader = Reader(octets);
        let to = Mac(reader.array().ok_or(short)?);
        let from = Mac(reader.array().ok_or(short)?);
        let ether_type = u16::from_be_bytes(reader.array().ok_or(short)?);
        if ether_type != ETHER_TYPE {
            return Err(FrameFault::Foreign(ether_type));
        }
        if from.is_multicast() {
            return Err(FrameFault::Source(from));
        }
        let command = CxlCommand::try_from(reader.u8().ok_or(short)?)?;
        let packet = Packet::parse(command, &mut reader)?.ok_or(short)?;
        // What pads a frame is not looked at: IEEE 802.3 leaves it open.
        let must_be = padded(packet.octets());
        if octets.len() != must_be {
            return Err(FrameFault::Length { octets: octets.len(), must_be });
        }
        Ok(Frame { to, from, packet })
    }
}

/// `Ok(None)`: the octets end before the fields do.
type Parsed<T> = Result<Option<T>, FrameFault>;

impl Packet {
    fn parse(command: CxlCommand, reader: &mut Reader<'_>) -> Parsed<Packet> {
        Ok(match command {
            CxlCommand::ReadRequest | CxlCommand::WriteRequest | CxlCommand::MaskedWriteRequest => {
                RequestPacket::parse(command, reader).map(Packet::Request)
            }
            CxlCommand::ReadResponse | CxlCommand::WriteResponse => {
                ResponsePacket::parse(command, reader)?.map(Packet::Response)
            }
            CxlCommand::SackNak => Negative::parse(reader)?.map(Packet::Negative),
            CxlCommand::SackNakAck => {
                let Some(negative) = Negative::parse(reader)? else { return Ok(None) };
                let Some(acked) = reader.u8() else { return Ok(None) };
                let acked = match CxlCommand::try_from(acked) {
                    Ok(command @ (CxlCommand::ReadResponse | CxlCommand::WriteResponse)) => command,
                    _ => return Err(FrameFault::Acked(acked)),
                };
                let response = ResponsePacket::parse(acked, reader)?;
                response.map(|response| Packet::Merged(negative, response))
            }
            CxlCommand::Congestion => reader
                .u32()
                .zip(reader.u16())
                .map(|(number, entries)| Packet::Congestion(Congestion { number, entries })),
        })
    }
}

impl RequestPacket {
    /// `None` where it is cut off.
    fn parse(command: CxlCommand, reader: &mut Reader<'_>) -> Option<RequestPacket> {
        let (sequence, id) = (Sequence(reader.u32()?), AccessId(reader.u8()?));
        let line = LineAddress::new(reader.u40()?).expect("40 bits are a line");
        let request = match command {
            CxlCommand::WriteRequest => Request::Write(reader.array()?),
            CxlCommand::MaskedWriteRequest => {
                Request::MaskedWrite(ByteMask(reader.u64()?), reader.array()?)
            }
            _ => Request::Read,
        };
        Some(RequestPacket { sequence, id, line, request })
    }
}

impl ResponsePacket {
    fn parse(command: CxlCommand, reader: &mut Reader<'_>) -> Parsed<ResponsePacket> {
        let Some((sequence, id)) = reader.u32().zip(reader.u8()) else { return Ok(None) };
        let Some(status) = reader.u8() else { return Ok(None) };
        let failure = status_of(status)?;
        let response = if command == CxlCommand::ReadResponse {
            let Some(data) = reader.array() else { return Ok(None) };
            Response::Read(read_result(failure, data)?)
        } else {
            Response::Write(failure.map_or(Ok(()), Err))
        };
        let (sequence, id) = (Sequence(sequence), AccessId(id));
        Ok(Some(ResponsePacket { sequence, id, response }))
    }
}

fn read_result(
    failure: Option<Failure>,
    data: LineData,
) -> Result<Result<LineData, Failure>, FrameFault> {
    match failure {
        None => Ok(Ok(data)),
        Some(failure) if data.iter().all(|&byte| byte == 0) => Ok(Err(failure)),
        Some(_) => Err(FrameFault::DataOfFailure),
    }
}

impl Negative {
    fn parse(reader: &mut Reader<'_>) -> Parsed<Negative> {
        let Some((nak, sack)) = reader.u32().zip(reader.u32()) else { return Ok(None) };
        if Sequence(sack).since(Sequence(nak)) <= 0 {
            return Err(FrameFault::SackBeforeNak { nak, sack });
        }
        Ok(Some(Negative { nak: Sequence(nak), sack: Sequence(sack) }))
    }
}
