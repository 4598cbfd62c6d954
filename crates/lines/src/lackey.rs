//! The text of valgrind's tool `lackey` with `--trace-mem=yes`.
//!
//! A line is `I  04016b80,3` for an instruction, and ` L 1ffeffe7e0,8`, ` S ...` or ` M ...` for a
//! load, a store, or both at one address: an address in hexadecimal, and a number of bytes.

/// Longest line that is kept; a longer one is none of lackey's.
const LINE_BYTES_MAX: usize = 64;
/// Most bytes of one access: `xsave` of all state takes fewer.
const ACCESS_BYTES_MAX: u64 = 1 << 16;

/// What a line of the text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An instruction begins.
    Instruction,
    /// The instruction accesses memory.
    Access {
        /// Address of the first byte.
        address: u64,
        /// Number of bytes, at least one.
        bytes: u64,
        /// True if it loads.
        loads: bool,
        /// True if it stores, after the load.
        stores: bool,
    },
    /// The line is not of the trace: a message of valgrind, or something that it cannot have
    /// written.
    Other,
}

/// The text in pieces of any length, as a pipe gives it.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// The beginning of a line whose end is still to come.
    begun: Vec<u8>,
    /// True if that line is too long, so that its rest is skipped.
    is_skipping: bool,
}

impl Text {
    /// Reads the next piece.
    pub fn feed(&mut self, mut piece: &[u8], each: &mut impl FnMut(Event)) {
        while let Some(end) = piece.iter().position(|&byte| byte == b'\n') {
            let (line, rest) = (&piece[..end], &piece[end + 1..]);
            piece = rest;
            if self.begun.is_empty() && !self.is_skipping {
                each(event(line));
                continue;
            }
            self.keep(line);
            let whole = if self.is_skipping { Event::Other } else { event(&self.begun) };
            each(whole);
            self.begun.clear();
            self.is_skipping = false;
        }
        self.keep(piece);
    }

    /// True if the text ended within a line: the tracer was killed.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_skipping || !self.begun.is_empty()
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.begun.len() + piece.len() > LINE_BYTES_MAX {
            self.is_skipping = true;
            self.begun.clear();
        }
        if !self.is_skipping {
            self.begun.extend_from_slice(piece);
        }
    }
}

/// What a line says, without its end.
#[must_use]
pub fn event(line: &[u8]) -> Event {
    if line.len() > LINE_BYTES_MAX {
        return Event::Other;
    }
    let Some((kind, place)) = line.split_at_checked(3) else { return Event::Other };
    let Some((address, bytes)) = place_of(place) else { return Event::Other };
    let access = |loads, stores| Event::Access { address, bytes, loads, stores };
    match kind {
        b"I  " => Event::Instruction,
        b" L " => access(true, false),
        b" S " => access(false, true),
        b" M " => access(true, true),
        _ => Event::Other,
    }
}

fn place_of(text: &[u8]) -> Option<(u64, u64)> {
    let comma = text.iter().position(|&byte| byte == b',')?;
    let digits = |text: &[u8], radix| {
        // A sign is a number for the library, and none here.
        let text = std::str::from_utf8(text).ok()?;
        let is_number = text.chars().all(|digit| digit.is_digit(radix));
        if is_number { u64::from_str_radix(text, radix).ok() } else { None }
    };
    let address = digits(&text[..comma], 16)?;
    let bytes = digits(&text[comma + 1..], 10)?;
    (1..=ACCESS_BYTES_MAX).contains(&bytes).then_some((address, bytes))
}

/// Reads `bytes` as a whole, and in pieces of `piece` bytes: both give the same events.
///
/// # Panics
/// When they do not.
#[doc(hidden)]
pub fn check(bytes: &[u8], piece: usize) -> usize {
    let (mut whole, mut pieces) = (Vec::new(), Vec::new());
    let mut text = Text::default();
    text.feed(bytes, &mut |event| whole.push(event));
    let mut parts = Text::default();
    for part in bytes.chunks(piece.max(1)) {
        parts.feed(part, &mut |event| pieces.push(event));
        assert!(parts.begun.len() <= LINE_BYTES_MAX, "a line without an end is kept");
    }
    assert_eq!(whole, pieces, "pieces of {piece} bytes");
    assert_eq!(text.is_cut(), parts.is_cut());
    whole.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: u64, bytes: u64, loads: bool, stores: bool) -> Event {
        Event::Access { address, bytes, loads, stores }
    }

    #[test]
    fn lines_are_what_they_say() {
        assert_eq!(event(b"I  04016b80,3"), Event::Instruction);
        assert_eq!(event(b" L 1ffeffe7e0,8"), access(0x1f_feff_e7e0, 8, true, false));
        assert_eq!(event(b" S 0421c000,4"), access(0x421_c000, 4, false, true));
        assert_eq!(event(b" M 1ffeffe80c,4"), access(0x1f_feff_e80c, 4, true, true));
        for other in [
            "",
            "I",
            "==123== Lackey, an example Valgrind tool",
            " L ,8",
            " L 10,",
            " L 10,0",
            " L 10,65537",
            " L 10,-8",
            " L +10,8",
            " L 0x10,8",
            " L 11112222333344445,8",
            " X 10,8",
            " L 10 8",
            "I  04016b80",
            " L 10,8 ",
            &format!(" L {}10,8", "0".repeat(LINE_BYTES_MAX)),
        ] {
            assert_eq!(event(other.as_bytes()), Event::Other, "{other}");
        }
    }

    #[test]
    fn pieces_of_every_length_are_the_same_text() {
        let mut text =
            String::from("==1== a message of valgrind, which is longer than a line can be");
        text.push_str(" and therefore kept by nobody\nI  04016b80,3\n L 1ffeffe7e0,8\n\n M 10,1\n");
        text.push_str(&"x".repeat(1000));
        text.push_str("\n S 20,2\n S 30,3");
        for piece in 1..=text.len() {
            assert_eq!(check(text.as_bytes(), piece), 7, "pieces of {piece}");
        }
        let mut cut = Text::default();
        cut.feed(text.as_bytes(), &mut |_| {});
        assert!(cut.is_cut());
    }
}
