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

    /// Whether the field is zero in `word`, as reserved bits must be.
    pub(crate) const fn is_zero(self, word: u64) -> bool {
        self.get(word) == 0
    }
}

// Every block but those of WREQ begins alike, so that a switch cuts the same slices from all.
pub(crate) const OPCODE: Field = Field::new(0, 4);
pub(crate) const NODE: Field = Field::new(4, 9);
pub(crate) const ID: Field = Field::new(13, 8);
/// The 16 length bits and the unit bit.
pub(crate) const LENGTH: Field = Field::new(21, 17);
pub(crate) const LENGTH_RESERVED: Field = Field::new(38, 2);

/// /N/ and /G/, where other blocks have the opcode.
pub(crate) const FLAG: Field = Field::new(0, 1);
pub(crate) const FLAG_RESERVED: Field = Field::new(1, 3);
/// /G/, over the low bits of the length.
pub(crate) const GRANT_BYTES: Field = Field::new(21, 16);
pub(crate) const GRANT_RESERVED: Field = Field::new(37, 3);

/// /MST/.
pub(crate) const STATUS: Field = Field::new(21, 4);
pub(crate) const STATUS_RESERVED: Field = Field::new(25, 15);

/// /MT/ of a read with a 40-bit address, and the address of a posted write as one number.
pub(crate) const ADDRESS: Field = Field::new(0, 40);

/// /MT/ of everything that ends in a CRC-32.
pub(crate) const TAIL_OCTET: Field = Field::new(0, 8);
pub(crate) const CRC32: Field = Field::new(8, 32);
/// /MT/ of a read with a 64-bit address: bytes that the length is above the read.
pub(crate) const EXCESS: Field = Field::new(0, 6);
pub(crate) const EXCESS_RESERVED: Field = Field::new(6, 2);

/// /MS/ and /MT/ of a read-modify-write.
pub(crate) const RMW_RESERVED: Field = Field::new(21, 3);
pub(crate) const RMW_ADDRESS_LOW: Field = Field::new(24, 16);
pub(crate) const RMW_ADDRESS_HIGH: Field = Field::new(0, 24);
pub(crate) const CRC16: Field = Field::new(24, 16);

/// /MS/ of a read response.
pub(crate) const RRES_TAIL: Field = Field::new(21, 3);
pub(crate) const RRES_LAST: Field = Field::new(24, 1);
pub(crate) const RRES_INDEX: Field = Field::new(25, 15);

/// /MS/ of a write; address bits 32..40 are in the tail octet of /MT/.
pub(crate) const WREQ_TAIL: Field = Field::new(4, 3);
pub(crate) const WREQ_LAST: Field = Field::new(7, 1);
pub(crate) const WREQ_ADDRESS_LOW: Field = Field::new(8, 32);

/// The first /MD/ of an acknowledged write, all 64 bits of it.
pub(crate) const ACK_RESERVED: Field = Field::new(0, 4);
pub(crate) const ACK_SOURCE: Field = Field::new(4, 9);
pub(crate) const ACK_ID: Field = Field::new(13, 8);
pub(crate) const ACK_RESERVED_HIGH: Field = Field::new(21, 4);
pub(crate) const ACK_INDEX: Field = Field::new(25, 15);
pub(crate) const ACK_ADDRESS_HIGH: Field = Field::new(40, 24);
