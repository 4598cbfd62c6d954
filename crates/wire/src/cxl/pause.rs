//! Priority flow control (IEEE 802.1Qbb), which the congestion control takes as its signal.
//!
//! A PFC frame goes from one port to the next, by MAC control frames that no bridge forwards.

use super::parse::FrameFault;
use super::{FCS_BYTES, FRAME_BYTES_MIN};
use crate::clio::Mac;
use crate::ethernet::{frame_check_sequence, has_valid_fcs};
use crate::octets::{NoRoom, Reader, Writer};

/// EtherType of MAC control frames.
pub const MAC_CONTROL_ETHER_TYPE: u16 = 0x8808;
/// Where PFC frames go: a group address that bridges do not forward.
pub const PFC_ADDRESS: Mac = Mac([0x01, 0x80, 0xc2, 0x00, 0x00, 0x01]);
/// Priorities of a link.
pub const PFC_PRIORITIES: usize = 8;
/// A PFC frame without its check sequence.
pub const PFC_BYTES: usize = FRAME_BYTES_MIN;
/// The opcode of PFC among MAC control frames (802.1Qbb, 36.1; PAUSE is 1).
const OPCODE: u16 = 0x0101;

/// A PFC frame: for each priority that it names, for how long not to send, in units of 512 bit
/// times; 0 is "send again".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The sender: the port at the other end of the link.
    pub from: Mac,
    /// By priority; `None`: the frame does not name it.
    pub quanta: [Option<u16>; PFC_PRIORITIES],
}

impl Pause {
    /// A frame for one priority, 0 to 7.
    ///
    /// # Panics
    /// If `priority` is above 7.
    #[must_use]
    pub fn of(from: Mac, priority: usize, quanta: u16) -> Pause {
        let mut all = [None; PFC_PRIORITIES];
        all[priority] = Some(quanta);
        Pause { from, quanta: all }
    }

    /// Writes the frame without its check sequence.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(into);
        writer.put(&PFC_ADDRESS.0);
        writer.put(&self.from.0);
        writer.put(&MAC_CONTROL_ETHER_TYPE.to_be_bytes());
        writer.put(&OPCODE.to_be_bytes());
        let named = (0..PFC_PRIORITIES).filter(|&priority| self.quanta[priority].is_some());
        let enabled = named.fold(0_u16, |bits, priority| bits | 1 << priority);
        writer.put(&enabled.to_be_bytes());
        for quanta in self.quanta {
            writer.put(&quanta.unwrap_or(0).to_be_bytes());
        }
        writer.zeros((PFC_BYTES - 34) as u16);
        writer.end()
    }

    /// Writes the frame with its check sequence.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn emit_with_fcs(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let (needed, room) = (PFC_BYTES + FCS_BYTES, into.len());
        let Some(place) = into.get_mut(..needed) else { return Err(NoRoom { needed, room }) };
        self.emit(place)?;
        let check = frame_check_sequence(&place[..PFC_BYTES]);
        place[PFC_BYTES..].copy_from_slice(&check.to_le_bytes());
        Ok(needed)
    }

    /// Reads a PFC frame without its check sequence; `None` of any other frame.
    ///
    /// # Errors
    /// [`FrameFault`] of a MAC control frame for PFC that is malformed.
    pub fn parse(octets: &[u8]) -> Result<Option<Pause>, FrameFault> {
        let mut reader = Reader(octets);
        let head = |reader: &mut Reader<'_>| {
            let (to, from) = (Mac(reader.array()?), Mac(reader.array()?));
            let ether_type = u16::from_be_bytes(reader.array()?);
            Some((to, from, ether_type, u16::from_be_bytes(reader.array()?)))
        };
        let Some((to, from, MAC_CONTROL_ETHER_TYPE, OPCODE)) = head(&mut reader) else {
            return Ok(None);
        };
        if to != PFC_ADDRESS {
            return Ok(None);
        }
        if from.is_multicast() {
            return Err(FrameFault::Source(from));
        }
        if octets.len() != PFC_BYTES {
            return Err(FrameFault::Length { octets: octets.len(), must_be: PFC_BYTES });
        }
        let short = FrameFault::Short(octets.len());
        let enabled = u16::from_be_bytes(reader.array().ok_or(short)?);
        let mut quanta = [None; PFC_PRIORITIES];
        for (priority, place) in quanta.iter_mut().enumerate() {
            let number = u16::from_be_bytes(reader.array().ok_or(short)?);
            *place = (enabled >> priority & 1 == 1).then_some(number);
        }
        Ok(Some(Pause { from, quanta }))
    }

    /// Reads a PFC frame with its check sequence; `None` of any other frame.
    ///
    /// # Errors
    /// As [`Pause::parse`], and [`FrameFault::Check`].
    pub fn parse_with_fcs(octets: &[u8]) -> Result<Option<Pause>, FrameFault> {
        if !has_valid_fcs(octets) {
            return Err(FrameFault::Check(octets.len()));
        }
        Pause::parse(&octets[..octets.len() - FCS_BYTES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pfc_frame_is_these_octets() {
        let pause = Pause::of(Mac([2, 0, 0, 0, 0, 9]), 3, 0x1234);
        let mut octets = [0xee; PFC_BYTES + FCS_BYTES];
        assert_eq!(pause.emit_with_fcs(&mut octets), Ok(64));
        let head = [1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08, 1, 1, 0, 8];
        assert_eq!(octets[..18], head);
        assert_eq!(octets[18..34], [0, 0, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(octets[34..60].iter().all(|&octet| octet == 0));
        assert_eq!(Pause::parse_with_fcs(&octets), Ok(Some(pause)));
        assert_eq!(Pause::parse(&octets[..60]), Ok(Some(pause)));
        octets[20] ^= 1;
        assert_eq!(Pause::parse_with_fcs(&octets), Err(FrameFault::Check(64)));
    }

    #[test]
    fn what_is_no_pfc_frame_is_left_to_others_and_a_malformed_one_is_refused() {
        let pause = Pause::of(Mac([2, 0, 0, 0, 0, 9]), 0, 0);
        let mut octets = [0; PFC_BYTES];
        pause.emit(&mut octets).unwrap();
        let with = |at: usize, octet: u8| {
            let mut changed = octets;
            changed[at] = octet;
            Pause::parse(&changed)
        };
        for (at, octet) in [(0, 3), (12, 0x08), (14, 0), (15, 2)] {
            assert_eq!(with(at, octet), Ok(None), "octet {at}");
        }
        assert_eq!(with(6, 3), Err(FrameFault::Source(Mac([3, 0, 0, 0, 0, 9]))));
        let long = Pause::parse(&[&octets[..], &[0]].concat());
        assert_eq!(long, Err(FrameFault::Length { octets: 61, must_be: 60 }));
        assert_eq!(
            Pause::parse(&octets[..16]),
            Err(FrameFault::Length { octets: 16, must_be: 60 })
        );
        assert_eq!(Pause::parse(&octets[..15]), Ok(None));
    }
}
