//! The check codes, all reflected. A code's bits leave in the order of its polynomial's powers when
//! the low bit goes first, as on the line. So an error burst on the line is a burst for the code.

use crc::{Algorithm, CRC_16_IBM_SDLC, CRC_32_ISCSI, CRC_32_ISO_HDLC, Crc, Digest, Table};

/// x^8 + x^5 + x^4 + x^2 + x + 1, over sub-type and content of an EDM control block. The candidates
/// are the polynomials of degree 8 that detect every error of up to three bits, and every two line
/// errors after the descrambler. Of these, it misses the fewest triples of line errors;
/// `tests/polynomial.rs` repeats the search.
pub(crate) const CONTROL_CRC: Algorithm<u8> = Algorithm {
    width: 8,
    poly: 0x37,
    init: 0xff,
    refin: true,
    refout: true,
    xorout: 0x00,
    check: 0xc1,
    residue: 0x00,
};

static CONTROL: Crc<u8> = Crc::<u8>::new(&CONTROL_CRC);
static OPERANDS: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_SDLC);
static CHUNK: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
static DATAGRAM: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);
static FRAME: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

/// CRC-8 of an EDM control block.
pub(crate) fn control(sub_type: u8, content: u64) -> u8 {
    let octets = (content << 8 | u64::from(sub_type)).to_le_bytes();
    CONTROL.checksum(&octets[..6])
}

/// CRC-16 of a read-modify-write request with a 40-bit address.
pub(crate) fn operands() -> Digest<'static, u16, Table<1>> {
    OPERANDS.digest()
}

/// CRC-32C of a chunk.
pub(crate) fn chunk() -> Digest<'static, u32, Table<1>> {
    CHUNK.digest()
}

/// CRC-32C of a datagram. It is a chunk's code with larger tables, since a datagram has up to 64
/// KiB.
pub(crate) fn datagram(octets: &[u8]) -> u32 {
    DATAGRAM.checksum(octets)
}

/// The frame check sequence of an Ethernet frame, as the number that is sent low byte first.
pub(crate) fn frame(octets: &[u8]) -> u32 {
    FRAME.checksum(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_crc_is_the_remainder_of_the_division() {
        // Bit by bit, as the RTL's shift register does it: low bit first, into 0x37 reflected.
        let remainder = |octets: &[u8]| {
            octets.iter().fold(0xff_u8, |register, octet| {
                (0..8).fold(register ^ octet, |register, _| {
                    register >> 1 ^ if register & 1 == 1 { 0xec } else { 0 }
                })
            })
        };
        let octets = [0x33, 1, 2, 3, 4, 0xff];
        assert_eq!(control(0x33, 0xff_0403_0201), remainder(&octets));
        assert_eq!(remainder(b"123456789"), CONTROL_CRC.check);
        assert_eq!(CONTROL.checksum(b"123456789"), CONTROL_CRC.check);
    }
}
