//! The self-synchronising scrambler of clause 49: x^58 + x^39 + 1 over the payloads, without the
//! sync headers.

const NEAR: u32 = 39;
const FAR: u32 = 58;

/// The sum of earlier line bits that the polynomial adds to a payload, for all its 64 bits at once.
/// `line` is the last payload on the line; its bit 63 is the latest.
#[inline]
const fn history(line: u64) -> u64 {
    line >> (64 - NEAR) ^ line >> (64 - FAR)
}

/// The scrambler of the transmit side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrambler {
    line: u64,
}

impl Scrambler {
    /// A scrambler whose last 64 bits on the line were `line`, bit 63 the latest. Any start works:
    /// the receiver synchronises after 58 bits.
    #[must_use]
    pub const fn new(line: u64) -> Scrambler {
        Scrambler { line }
    }

    /// Scrambles one payload for the line.
    #[inline]
    pub const fn scramble(&mut self, payload: u64) -> u64 {
        // Bits 0..39 depend on the past alone. The other bits also depend on bits of this very
        // word. Each of these is final before it is used, since 39 + 39 and 39 + 58 exceed 63.
        let past = payload ^ history(self.line);
        self.line = past ^ past << NEAR ^ past << FAR;
        self.line
    }
}

/// The descrambler of the receive side. One wrong bit on the line makes three wrong bits here: the
/// bit itself, and the bits 39 and 58 later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descrambler {
    line: u64,
}

impl Descrambler {
    /// A descrambler that last saw `line`. If the line carried something else, the first payload is
    /// wrong and all later ones are right.
    #[must_use]
    pub const fn new(line: u64) -> Descrambler {
        Descrambler { line }
    }

    /// Descrambles one payload from the line.
    #[inline]
    pub const fn descramble(&mut self, line: u64) -> u64 {
        let payload = line ^ history(self.line) ^ line << NEAR ^ line << FAR;
        self.line = line;
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Scrambles bit by bit, from the polynomial; `state` bit 0 is the latest bit on the line.
    fn scramble_serially(state: &mut u64, payload: u64) -> u64 {
        (0..64).fold(0, |line, index| {
            let bit = (payload >> index ^ *state >> (NEAR - 1) ^ *state >> (FAR - 1)) & 1;
            *state = *state << 1 | bit;
            line | bit << index
        })
    }

    proptest! {
        #[test]
        fn words_and_bits_agree(
            start: u64, payloads in prop::collection::vec(any::<u64>(), 1..20),
        ) {
            let mut scrambler = Scrambler::new(start);
            let mut state = start.reverse_bits();
            for payload in payloads {
                prop_assert_eq!(
                    scrambler.scramble(payload),
                    scramble_serially(&mut state, payload)
                );
            }
        }

        #[test]
        fn any_start_is_in_step_after_one_block(sent: u64, seen: u64, payloads: [u64; 4]) {
            let (mut tx, mut rx) = (Scrambler::new(sent), Descrambler::new(seen));
            rx.descramble(tx.scramble(0));
            for payload in payloads {
                prop_assert_eq!(rx.descramble(tx.scramble(payload)), payload);
            }
        }
    }

    #[test]
    fn one_line_error_becomes_three() {
        for bit in 0..64 {
            let (mut tx, mut rx) = (Scrambler::new(0), Descrambler::new(0));
            let first = rx.descramble(tx.scramble(0x1e) ^ 1 << bit) ^ 0x1e;
            let second = rx.descramble(tx.scramble(0x1e)) ^ 0x1e;
            assert_eq!(rx.descramble(tx.scramble(0x1e)), 0x1e, "no error reaches a third block");
            let errors = u128::from(second) << 64 | u128::from(first);
            assert_eq!(errors, (1 | 1 << 39 | 1 << 58) << bit, "line bit {bit}");
        }
    }
}
