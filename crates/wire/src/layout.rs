//! Where each field lies in the 40 content bits of an EDM control block; bit 0 goes first on the
//! line. Offsets live here and nowhere else.

/// A run of bits in a word.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    at: u32,
    width: u32,
}

impl Field {
    const fn new(at: u32, width: u32) -> Field {
        Field { at, width }
    }

    const fn mask(self) -> u64 {
        (1 << self.width) - 1
    }

    /// The field's value in `word`.
    #[inline]
    pub(crate) const fn get(self, word: u64) -> u64 {
        word >> self.at & self.mask()
    }

    /// `value` at the field's place. The value types guarantee that it fits.
    #[inline]
    pub(crate) const fn put(self, value: u64) -> u64 {
        debug_assert!(value <= self.mask());
        (value & self.mask()) << self.at
    }

    /// `word` with the field cleared.
    pub(crate) const fn clear(self, word: u64) -> u64 {
        word & !(self.mask() << self.at)
    }

    /// True if the field is zero in `word`, as reserved bits must be.
    pub(crate) const fn is_zero(self, word: u64) -> bool {
        self.get(word) == 0
    }
}

// Every block except those of WREQ begins with these fields, so that a switch cuts equal slices
// from all.
pub(crate) const OPCODE: Field = Field::new(0, 4);
pub(crate) const NODE: Field = Field::new(4, 9);
pub(crate) const ID: Field = Field::new(13, 8);
/// The 16 length bits and the unit bit.
pub(crate) const LENGTH: Field = Field::new(21, 17);
pub(crate) const LENGTH_RESERVED: Field = Field::new(38, 2);

/// A field of /N/ and /G/, where other blocks have the opcode.
pub(crate) const FLAG: Field = Field::new(0, 1);
pub(crate) const FLAG_RESERVED: Field = Field::new(1, 3);
/// A field of /G/, over the low bits of the length.
pub(crate) const GRANT_BYTES: Field = Field::new(21, 16);
pub(crate) const GRANT_RESERVED: Field = Field::new(37, 3);

/// A field of /MST/.
pub(crate) const STATUS: Field = Field::new(21, 4);
pub(crate) const STATUS_RESERVED: Field = Field::new(25, 15);

/// The /MT/ of a read with a 40-bit address; also the address of a posted write as one number.
pub(crate) const ADDRESS: Field = Field::new(0, 40);

/// The /MT/ of every message that ends in a CRC-32.
pub(crate) const TAIL_OCTET: Field = Field::new(0, 8);
pub(crate) const CRC32: Field = Field::new(8, 32);
/// The /MT/ of a read with a 64-bit address: number of bytes by which the length exceeds the read.
pub(crate) const EXCESS: Field = Field::new(0, 6);
pub(crate) const EXCESS_RESERVED: Field = Field::new(6, 2);

/// Fields of the /MS/ and /MT/ of a read-modify-write.
pub(crate) const RMW_RESERVED: Field = Field::new(21, 3);
pub(crate) const RMW_ADDRESS_LOW: Field = Field::new(24, 16);
pub(crate) const RMW_ADDRESS_HIGH: Field = Field::new(0, 24);
pub(crate) const CRC16: Field = Field::new(24, 16);

/// Fields of the /MS/ of a read response.
pub(crate) const RRES_TAIL: Field = Field::new(21, 3);
pub(crate) const RRES_LAST: Field = Field::new(24, 1);
pub(crate) const RRES_INDEX: Field = Field::new(25, 15);

/// Fields of the /MS/ of a write; address bits 32..40 are in the tail octet of /MT/.
pub(crate) const WREQ_TAIL: Field = Field::new(4, 3);
pub(crate) const WREQ_LAST: Field = Field::new(7, 1);
pub(crate) const WREQ_ADDRESS_LOW: Field = Field::new(8, 32);

/// Fields of the first /MD/ of an acknowledged write, over all 64 bits.
pub(crate) const ACK_RESERVED: Field = Field::new(0, 4);
pub(crate) const ACK_SOURCE: Field = Field::new(4, 9);
pub(crate) const ACK_ID: Field = Field::new(13, 8);
pub(crate) const ACK_RESERVED_HIGH: Field = Field::new(21, 4);
pub(crate) const ACK_INDEX: Field = Field::new(25, 15);
pub(crate) const ACK_ADDRESS_HIGH: Field = Field::new(40, 24);

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;
    use crate::block::{BLOCK_BITS, BlockType, SyncHeader};
    use crate::control::{CONTENT_BITS, SubType};
    use crate::crc::CONTROL_CRC;
    use crate::field::MAX_CHUNK_BYTES;
    use crate::message::StatusCode;
    use crate::opcode::Opcode;

    const WORD_BITS: u32 = 64;

    type Fields = Vec<(&'static str, Field)>;

    /// A format that has these fields after opcode, node and id.
    fn headed(rest: &[(&'static str, Field)]) -> Fields {
        [&[("opcode", OPCODE), ("node", NODE), ("id", ID)], rest].concat()
    }

    /// The formats of /N/, /G/, /MST/ and the first block of each message: name and fields, from
    /// bit 0 up. The names are those of the RTL.
    fn first_blocks() -> Vec<(&'static str, Fields)> {
        let flagged = |flag, rest: &[(&'static str, Field)]| {
            let head = [(flag, FLAG), ("reserved_low", FLAG_RESERVED), ("node", NODE), ("id", ID)];
            [&head, rest].concat()
        };
        let length = [("length", LENGTH), ("reserved", LENGTH_RESERVED)];
        let wreq = [("opcode", OPCODE), ("tail", WREQ_TAIL), ("last", WREQ_LAST)];
        vec![
            ("notification", flagged("acknowledged", &length)),
            ("grant", flagged("response", &[("bytes", GRANT_BYTES), ("reserved", GRANT_RESERVED)])),
            ("rreq_ms", headed(&length)),
            ("status", headed(&[("code", STATUS), ("reserved", STATUS_RESERVED)])),
            ("rmwreq_ms", headed(&[("reserved", RMW_RESERVED), ("address_low", RMW_ADDRESS_LOW)])),
            ("rres_ms", headed(&[("tail", RRES_TAIL), ("last", RRES_LAST), ("index", RRES_INDEX)])),
            ("wreq_ms", [&wreq[..], &[("address_low", WREQ_ADDRESS_LOW)]].concat()),
        ]
    }

    /// The formats of the last block of each message, and of the one data block that has fields.
    fn later_blocks() -> Vec<(&'static str, Fields)> {
        let crc32 = ("crc", CRC32);
        let acknowledged = vec![
            ("reserved_low", ACK_RESERVED),
            ("node", ACK_SOURCE),
            ("id", ACK_ID),
            ("reserved", ACK_RESERVED_HIGH),
            ("index", ACK_INDEX),
            ("address_high", ACK_ADDRESS_HIGH),
        ];
        vec![
            ("rreq40_mt", vec![("address", ADDRESS)]),
            ("rreq64_mt", vec![("excess", EXCESS), ("reserved", EXCESS_RESERVED), crc32]),
            ("rmwreq40_mt", vec![("address_high", RMW_ADDRESS_HIGH), ("crc", CRC16)]),
            ("crc32_mt", vec![("tail_octet", TAIL_OCTET), crc32]),
            ("acknowledged", acknowledged),
        ]
    }

    fn formats() -> Vec<(&'static str, Fields)> {
        [first_blocks(), later_blocks()].concat()
    }

    /// Every number that is not the place of a field.
    fn constants() -> Vec<(String, u64)> {
        let mut all = vec![
            ("BlockBits".to_owned(), u64::from(BLOCK_BITS)),
            ("ContentBits".to_owned(), u64::from(CONTENT_BITS)),
            ("NodeBits".to_owned(), u64::from(NODE.width)),
            ("IdBits".to_owned(), u64::from(ID.width)),
            ("LengthBits".to_owned(), u64::from(LENGTH.width)),
            ("GrantBytesBits".to_owned(), u64::from(GRANT_BYTES.width)),
            ("ChunkBytesMax".to_owned(), MAX_CHUNK_BYTES as u64),
            ("Crc8Poly".to_owned(), u64::from(CONTROL_CRC.poly)),
            ("Crc8Init".to_owned(), u64::from(CONTROL_CRC.init)),
        ];
        let sync = [SyncHeader::Control, SyncHeader::Data];
        all.extend(sync.map(|value| (format!("Sync{value:?}"), value as u64)));
        all.extend(BlockType::ALL.map(|value| (format!("Block{value:?}"), value as u64)));
        all.extend(SubType::ALL.map(|value| (format!("Sub{value:?}"), value as u64)));
        all.extend(Opcode::ALL.map(|value| (format!("Op{value:?}"), value as u64)));
        all.extend(StatusCode::ALL.map(|value| (format!("Status{value:?}"), value as u64)));
        all
    }

    fn compare(name: &str, now: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/wire").join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, now).expect("golden/wire is writable");
        }
        let golden = std::fs::read_to_string(&path).expect("golden/wire is there");
        assert_eq!(golden, now, "{name}");
    }

    #[test]
    fn the_tables_that_other_languages_check_themselves_by() {
        let mut text = String::from("format,field,first_bit,bits\n");
        for (format, fields) in formats() {
            for (name, Field { at, width }) in fields {
                writeln!(text, "{format},{name},{at},{width}").expect("a string takes all");
            }
        }
        compare("layout.csv", &text);
        let mut text = String::from("name,value\n");
        for (name, value) in constants() {
            writeln!(text, "{name},{value:#x}").expect("a string takes all");
        }
        compare("constants.csv", &text);
    }

    #[test]
    fn fields_fill_their_format_without_a_gap() {
        for (format, fields) in formats() {
            let end = fields.iter().fold(0, |at, (name, field)| {
                assert_eq!(field.at, at, "{format}: {name}");
                at + field.width
            });
            let bits = if format == "acknowledged" { WORD_BITS } else { CONTENT_BITS };
            assert_eq!(end, bits, "{format}");
        }
    }
}
