//! Incremental parsing of requests.
//!
//! A request is an array of bulk strings, or one line of words, which is less than RESP allows.
//! Limits must hold before memory is allocated for an announced length, with Redis's error texts.
//! General decoders build frames of any depth first.

use std::ops::Range;

use ethermem_kv::VALUE_BYTES_MAX;

/// Longest line in bytes, and longest line of a number.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Largest number of words of a request.
pub const REQUEST_WORDS_MAX: u64 = 1 << 20;
/// Longest request in bytes.
pub const REQUEST_BYTES_MAX: usize = 128 << 20;
/// Largest number of words and largest length from a client that has not authenticated.
const STRANGER_WORDS_MAX: i64 = 10;
const STRANGER_WORD_BYTES_MAX: usize = 16 << 10;
/// Largest number of digits that are parsed in one pass, enough for any word's length.
const SHORT_DIGITS_MAX: usize = 9;
/// Smallest read in bytes.
const READ_BYTES: usize = 16 << 10;
/// An empty buffer longer than this many bytes is freed.
const KEPT_BYTES: usize = 1 << 20;

/// A protocol error: the client receives its text and is disconnected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolError {
    /// A line exceeds its limit.
    #[error("too big inline request")]
    LongLine,
    /// The line of a word count exceeds its limit.
    #[error("too big mbulk count string")]
    LongCount,
    /// An unauthenticated client sends too many words.
    #[error("unauthenticated multibulk length")]
    StrangerCount,
    /// An unauthenticated client sends too long a word.
    #[error("unauthenticated bulk length")]
    StrangerLength,
    /// The line of a length exceeds its limit.
    #[error("too big bulk count string")]
    LongLength,
    /// A word count is invalid or too large.
    #[error("invalid multibulk length")]
    Count,
    /// A length is invalid or too large.
    #[error("invalid bulk length")]
    Length,
    /// A bulk string is missing.
    #[error("expected '$', got '{}'", char::from(*.0).escape_default())]
    NoString(u8),
    /// A quote is not closed.
    #[error("unbalanced quotes in request")]
    Quotes,
    /// The request exceeds its total limit.
    #[error("a request of more than {REQUEST_BYTES_MAX} B")]
    LongRequest,
}

/// The unparsed bytes of one client, and the last request.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    buffer: Vec<u8>,
    /// Number of bytes of `buffer` that were received.
    filled: usize,
    /// Start of the next request in `buffer`.
    start: usize,
    /// Position up to which it was parsed.
    at: usize,
    /// Words of an array that are still missing.
    words_left: usize,
    is_open: bool,
    /// The words, relative to `start`.
    words: Vec<Range<usize>>,
    /// True if the words are a request that was returned.
    is_ready: bool,
    /// True if the client must authenticate first; its limits are lower.
    pub(crate) is_of_stranger: bool,
}

impl Requests {
    /// Space for the next bytes; report with [`Requests::fill`] how many arrived.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.compact();
        // As much space as was received so far: an announced length alone gets no memory.
        let least = self.filled + READ_BYTES.max(self.filled.min(4 << 20));
        if self.buffer.len() < least {
            self.buffer.resize(least, 0);
        }
        &mut self.buffer[self.filled..]
    }

    /// Records that `bytes` bytes of the space were filled.
    ///
    /// # Panics
    /// When `bytes` exceeds the space.
    pub(crate) fn fill(&mut self, bytes: usize) {
        self.filled += bytes;
        assert!(self.filled <= self.buffer.len(), "more came than there was room for");
    }

    /// The bytes received.
    fn come(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// The words of the next request, once it is complete.
    ///
    /// # Errors
    /// [`ProtocolError`]; the client cannot be understood after it.
    pub(crate) fn next(&mut self) -> Result<Option<Words<'_>>, ProtocolError> {
        if self.is_ready {
            self.is_ready = false;
            self.start = self.at;
            self.words.clear();
        }
        loop {
            if !self.is_open {
                match self.come().get(self.at) {
                    None => return Ok(None),
                    Some(b'*') => {
                        if !self.array()? {
                            return Ok(None);
                        }
                    }
                    Some(_) => {
                        if !self.line()? {
                            return Ok(None);
                        }
                    }
                }
            }
            while self.is_open && self.words_left > 0 {
                if !self.word()? {
                    return Ok(None);
                }
            }
            self.is_open = false;
            if !self.words.is_empty() {
                break;
            }
            // An empty array is not a request.
            self.start = self.at;
        }
        self.is_ready = true;
        Ok(Some(Words { buffer: &self.buffer, words: &self.words }))
    }

    /// Parses `*N`; returns whether the line is complete.
    fn array(&mut self) -> Result<bool, ProtocolError> {
        let Some((count, end)) = self.number(ProtocolError::LongCount, ProtocolError::Count)?
        else {
            return Ok(false);
        };
        if count > REQUEST_WORDS_MAX as i64 {
            return Err(ProtocolError::Count);
        }
        if self.is_of_stranger && count > STRANGER_WORDS_MAX {
            return Err(ProtocolError::StrangerCount);
        }
        self.at = end;
        self.words_left = usize::try_from(count).unwrap_or(0);
        self.is_open = true;
        Ok(true)
    }

    /// Parses `$N` and N bytes; returns whether they are complete.
    fn word(&mut self) -> Result<bool, ProtocolError> {
        let Some(&first) = self.come().get(self.at) else { return Ok(false) };
        if first != b'$' {
            return Err(ProtocolError::NoString(first));
        }
        let found = self.number(ProtocolError::LongLength, ProtocolError::Length)?;
        let Some((length, begin)) = found else { return Ok(false) };
        let length = usize::try_from(length).map_err(|_| ProtocolError::Length)?;
        if length > VALUE_BYTES_MAX {
            return Err(ProtocolError::Length);
        }
        if self.is_of_stranger && length > STRANGER_WORD_BYTES_MAX {
            return Err(ProtocolError::StrangerLength);
        }
        let end = begin + length;
        if end - self.start > REQUEST_BYTES_MAX {
            return Err(ProtocolError::LongRequest);
        }
        if self.filled < end + 2 {
            return Ok(false);
        }
        self.words.push(begin..end);
        self.words_left -= 1;
        self.at = end + 2;
        Ok(true)
    }

    /// Parses a line of words; returns whether it is complete.
    fn line(&mut self) -> Result<bool, ProtocolError> {
        let rest = &self.come()[self.at..];
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            let long = rest.len() > LINE_BYTES_MAX;
            return if long { Err(ProtocolError::LongLine) } else { Ok(false) };
        };
        if length > LINE_BYTES_MAX {
            return Err(ProtocolError::LongLine);
        }
        let from = self.at;
        self.at += length + 1;
        split(&mut self.buffer, from..from + length, &mut self.words)?;
        Ok(true)
    }

    /// The number of a line whose first byte is its type, and the start of the next line.
    #[inline]
    fn number(
        &self,
        too_long: ProtocolError,
        no_number: ProtocolError,
    ) -> Result<Option<(i64, usize)>, ProtocolError> {
        let from = self.at + 1;
        if let Some((number, length)) = short_number(&self.come()[from..]) {
            return Ok(Some((number, from + length)));
        }
        let Some((line, next)) = self.crlf(from, too_long)? else { return Ok(None) };
        let number = crate::number::integer(&self.buffer[line]).ok_or(no_number)?;
        Ok(Some((number, next)))
    }

    /// The line from `from` on without its end, and the start of the next line.
    fn crlf(
        &self,
        from: usize,
        too_long: ProtocolError,
    ) -> Result<Option<(Range<usize>, usize)>, ProtocolError> {
        let rest = self.come().get(from..).unwrap_or_default();
        // Lines of numbers are short, so rescanning them is cheap.
        let seen = &rest[..rest.len().min(LINE_BYTES_MAX)];
        match seen.iter().position(|byte| *byte == b'\r') {
            Some(length) if length + 1 < rest.len() => {
                Ok(Some((from..from + length, from + length + 2)))
            }
            Some(_) => Ok(None),
            None if seen.len() == LINE_BYTES_MAX => Err(too_long),
            None => Ok(None),
        }
    }

    /// Discards what was parsed.
    fn compact(&mut self) {
        if self.is_ready {
            self.is_ready = false;
            self.words.clear();
            self.start = self.at;
        }
        let gone = self.start;
        if gone == 0 {
            return;
        }
        self.buffer.copy_within(gone..self.filled, 0);
        self.filled -= gone;
        if self.filled == 0 && self.buffer.capacity() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
        self.words.iter_mut().for_each(|word| *word = word.start - gone..word.end - gone);
        if self.words.capacity() > KEPT_BYTES / size_of::<Range<usize>>() && self.words.is_empty() {
            self.words = Vec::new();
        }
        self.start = 0;
        self.at -= gone;
    }
}

/// Parses a complete line of a few digits, the usual case, in one pass, and returns its length too.
/// `None` decides nothing: the line may be a number, or incomplete.
#[inline]
fn short_number(line: &[u8]) -> Option<(i64, usize)> {
    let mut number = 0;
    for (at, &byte) in line.iter().enumerate().take(SHORT_DIGITS_MAX + 1) {
        match byte {
            b'0'..=b'9' if number > 0 || at == 0 => number = number * 10 + i64::from(byte - b'0'),
            b'\r' if at > 0 && at + 1 < line.len() => return Some((number, at + 2)),
            _ => return None,
        }
    }
    None
}

/// Splits a line as a person types it: quotes may hold spaces, `\n` and `\x41`. The result is never
/// longer than the input, so it overwrites the input.
fn split(
    buffer: &mut [u8],
    line: Range<usize>,
    words: &mut Vec<Range<usize>>,
) -> Result<(), ProtocolError> {
    let (mut at, end) = (line.start, line.end);
    let mut to = line.start;
    while at < end {
        if buffer[at].is_ascii_whitespace() || buffer[at] == 0 {
            at += 1;
            continue;
        }
        let begin = to;
        let mut quote = None;
        while at < end {
            let byte = buffer[at];
            match quote {
                None if byte.is_ascii_whitespace() => break,
                None if byte == b'"' || byte == b'\'' => quote = Some(byte),
                Some(own) if own == byte => {
                    quote = None;
                    at += 1;
                    // A word must end with its closing quote.
                    if at < end && !buffer[at].is_ascii_whitespace() {
                        return Err(ProtocolError::Quotes);
                    }
                    break;
                }
                Some(b'"') if byte == b'\\' && at + 1 < end => {
                    let (meant, length) = escape(&buffer[at + 1..end]);
                    buffer[to] = meant;
                    to += 1;
                    at += length;
                }
                Some(b'\'') if byte == b'\\' && buffer[at + 1..end].first() == Some(&b'\'') => {
                    buffer[to] = b'\'';
                    to += 1;
                    at += 1;
                }
                _ => {
                    buffer[to] = byte;
                    to += 1;
                }
            }
            at += 1;
        }
        if quote.is_some() {
            return Err(ProtocolError::Quotes);
        }
        words.push(begin..to);
    }
    Ok(())
}

/// The byte that an escape means, and the escape's length.
fn escape(behind: &[u8]) -> (u8, usize) {
    let digit = |at: usize| behind.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    match behind[0] {
        b'x' => match (digit(1), digit(2)) {
            (Some(high), Some(low)) => ((high * 16 + low) as u8, 3),
            _ => (b'x', 1),
        },
        b'n' => (b'\n', 1),
        b'r' => (b'\r', 1),
        b't' => (b'\t', 1),
        b'b' => (8, 1),
        b'a' => (7, 1),
        other => (other, 1),
    }
}

/// The words of a request, at least one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'b> {
    buffer: &'b [u8],
    words: &'b [Range<usize>],
}

impl<'b> Words<'b> {
    /// Number of words, including the command's name.
    pub(crate) fn count(&self) -> usize {
        self.words.len()
    }

    /// One word; the command's name is word 0.
    ///
    /// # Panics
    /// When `at` is not below the number of words.
    pub(crate) fn word(&self, at: usize) -> &'b [u8] {
        &self.buffer[self.words[at].clone()]
    }

    /// All words from index `at` on.
    pub(crate) fn from(&self, at: usize) -> impl ExactSizeIterator<Item = &'b [u8]> + use<'b> {
        let buffer = self.buffer;
        self.words[at.min(self.words.len())..].iter().map(move |word| &buffer[word.clone()])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All requests of bytes that arrive in parts of these lengths.
    fn read(bytes: &[u8], parts: &[usize]) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
        let mut requests = Requests::default();
        let (mut all, mut rest) = (Vec::new(), bytes);
        let mut lengths = parts.iter().copied().cycle();
        while !rest.is_empty() {
            let room = requests.room();
            let most = lengths.next().unwrap_or(1 << 20);
            let length = most.clamp(1, rest.len()).min(room.len());
            room[..length].copy_from_slice(&rest[..length]);
            requests.fill(length);
            rest = &rest[length..];
            while let Some(words) = requests.next()? {
                all.push(words.from(0).map(<[u8]>::to_vec).collect());
            }
        }
        Ok(all)
    }

    fn text(requests: &[Vec<Vec<u8>>]) -> Vec<Vec<String>> {
        let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
        requests.iter().map(|words| words.iter().map(text).collect()).collect()
    }

    #[test]
    fn arrays_and_lines_are_requests() {
        let bytes =
            b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n\r\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\n  SET  a b\n";
        let expected = vec![vec!["GET", "k"], vec!["PING"], vec![""], vec!["SET", "a", "b"]];
        for parts in [&[1][..], &[3, 1], &[1000]] {
            assert_eq!(text(&read(bytes, parts).unwrap()), expected, "{parts:?}");
        }
    }

    #[test]
    fn a_line_may_be_quoted() {
        let line = b"SET \"a b\\n\\x41\\q\" 'it\\'s' plain\r\n";
        let words = text(&read(line, &[1000]).unwrap());
        assert_eq!(words, [["SET", "a b\nAq", "it's", "plain"]]);
        for line in ["\"a", "'a", "\"a\"b"] {
            let read = read(format!("{line}\n").as_bytes(), &[1000]);
            assert_eq!(read, Err(ProtocolError::Quotes), "{line}");
        }
    }

    #[test]
    fn what_is_too_much_is_refused_before_it_comes() {
        let refused = |bytes: &[u8]| read(bytes, &[1 << 20]).unwrap_err().to_string();
        assert_eq!(refused(b"*1\r\n$1073741824\r\n"), "invalid bulk length");
        assert_eq!(refused(b"*1\r\n$-1\r\n"), "invalid bulk length");
        assert_eq!(refused(b"*1048577\r\n"), "invalid multibulk length");
        assert_eq!(refused(b"*x\r\n"), "invalid multibulk length");
        assert_eq!(refused(b"*1\r\n:1\r\n"), "expected '$', got ':'");
        assert_eq!(refused(&[b'a'; 70_000]), "too big inline request");
        assert_eq!(
            refused(&[&b"*1\r\n$"[..], &[b'1'; 70_000]].concat()),
            "too big bulk count string"
        );
        assert_eq!(refused(&[&b"*"[..], &[b'1'; 70_000]].concat()), "too big mbulk count string");
    }

    /// Number of requests in these bytes, optionally for an unauthenticated client.
    fn read_as(bytes: &[u8], is_of_stranger: bool) -> Result<usize, ProtocolError> {
        let mut requests = Requests { is_of_stranger, ..Requests::default() };
        let mut rest = bytes;
        let mut count = 0;
        while !rest.is_empty() {
            let room = requests.room();
            let length = rest.len().min(room.len());
            room[..length].copy_from_slice(&rest[..length]);
            requests.fill(length);
            rest = &rest[length..];
            while requests.next()?.is_some() {
                count += 1;
            }
        }
        Ok(count)
    }

    #[test]
    fn what_is_as_much_as_may_be_is_waited_for() {
        let (most, longest) = (REQUEST_WORDS_MAX, VALUE_BYTES_MAX);
        let line = "a".repeat(LINE_BYTES_MAX);
        for (bytes, stranger, expected) in [
            (format!("*{most}\r\n"), false, Ok(0)),
            (format!("*{}\r\n", most + 1), false, Err(ProtocolError::Count)),
            (format!("*1\r\n${longest}\r\n"), false, Ok(0)),
            (format!("*1\r\n${}\r\n", longest + 1), false, Err(ProtocolError::Length)),
            ("*10\r\n".to_owned(), true, Ok(0)),
            ("*11\r\n".to_owned(), true, Err(ProtocolError::StrangerCount)),
            ("*11\r\n".to_owned(), false, Ok(0)),
            ("*1\r\n$16384\r\n".to_owned(), true, Ok(0)),
            ("*1\r\n$16385\r\n".to_owned(), true, Err(ProtocolError::StrangerLength)),
            ("*1\r\n$16385\r\n".to_owned(), false, Ok(0)),
            (line.clone(), false, Ok(0)),
            (format!("{line}a"), false, Err(ProtocolError::LongLine)),
            (format!("{line}\n"), false, Ok(1)),
            (format!("PING\n{line}a\n"), false, Err(ProtocolError::LongLine)),
            ("*01\r\n$4\r\nPING\r\n".to_owned(), false, Err(ProtocolError::Count)),
            ("*1\r\n$04\r\nPING\r\n".to_owned(), false, Err(ProtocolError::Length)),
        ] {
            assert_eq!(read_as(bytes.as_bytes(), stranger), expected, "{bytes:.40}, {stranger}");
        }
    }

    /// Parsed bytes hold no memory, and announced bytes get none before they arrive.
    #[test]
    fn memory_goes_with_what_it_was_for() {
        let mut requests = Requests::default();
        let give = |requests: &mut Requests, bytes: &[u8]| {
            let mut rest = bytes;
            while !rest.is_empty() {
                let room = requests.room();
                let length = rest.len().min(room.len());
                room[..length].copy_from_slice(&rest[..length]);
                requests.fill(length);
                rest = &rest[length..];
                while requests.next().expect("they are good").is_some() {}
            }
        };
        for _ in 0..100 {
            give(&mut requests, &b"*1\r\n$10\r\n0123456789\r\n".repeat(1000));
        }
        assert!(requests.buffer.len() <= 4 * READ_BYTES, "{}", requests.buffer.len());
        // Half of a long word has arrived: the space doubles, but does not become the announced
        // length.
        give(&mut requests, format!("*1\r\n${}\r\n", 32 << 20).as_bytes());
        assert!(requests.room().len() < 1 << 20);
        give(&mut requests, &vec![b'x'; 2 << 20]);
        assert!((1 << 20..8 << 20).contains(&requests.room().len()));
        give(&mut requests, &vec![b'x'; 30 << 20]);
        // The word ends, and the beginning of another request stays.
        give(&mut requests, b"\r\n*1\r\n$4\r\nPI");
        requests.room();
        assert_eq!(requests.come(), b"*1\r\n$4\r\nPI");
        give(&mut requests, b"NG\r\n");
        requests.room();
        assert!(requests.buffer.len() <= 4 * READ_BYTES, "{}", requests.buffer.len());
        // A request of many words.
        let many = [&b"*200000\r\n"[..], &b"$1\r\nx\r\n".repeat(200_000)].concat();
        give(&mut requests, &many);
        requests.room();
        assert!(requests.words.capacity() <= KEPT_BYTES / size_of::<Range<usize>>());
    }

    #[test]
    fn the_words_of_a_request_are_limited_together() {
        let word = vec![b'x'; VALUE_BYTES_MAX];
        let mut bytes = b"*3\r\n".to_vec();
        for _ in 0..2 {
            bytes.extend_from_slice(format!("${VALUE_BYTES_MAX}\r\n").as_bytes());
            bytes.extend_from_slice(&word);
            bytes.extend_from_slice(b"\r\n");
        }
        let left = REQUEST_BYTES_MAX - bytes.len();
        for (more, refused) in [(left - 10, false), (left, true)] {
            let mut requests = Requests::default();
            let bytes = [&bytes[..], format!("${more}\r\n").as_bytes()].concat();
            requests.room();
            requests.buffer.resize(bytes.len(), 0);
            requests.buffer.copy_from_slice(&bytes);
            requests.fill(bytes.len());
            let read = requests.next().map(|words| words.map(|words| words.count()));
            assert_eq!(read, if refused { Err(ProtocolError::LongRequest) } else { Ok(None) });
        }
    }

    /// Reference for `short_number`.
    fn long_number(line: &[u8]) -> Option<(i64, usize)> {
        let end = line.iter().position(|byte| *byte == b'\r')?;
        (end + 1 < line.len()).then_some(())?;
        Some((crate::number::integer(&line[..end])?, end + 2))
    }

    proptest! {
        #[test]
        fn a_short_number_is_what_the_long_way_gives(
            digits in "-?[0-9]{0,11}",
            behind in "(\r\n[^\r]{0,3}|\r|[0-9:\r\n]{0,3})",
        ) {
            let line = format!("{digits}{behind}");
            let (short, long) = (short_number(line.as_bytes()), long_number(line.as_bytes()));
            prop_assert!(short.is_none() || short == long, "{line:?}: {short:?}, {long:?}");
            let is_short = matches!(long, Some((0..1_000_000_000, _)));
            prop_assert!(short.is_some() || !is_short, "{line:?}: {long:?}");
        }

        #[test]
        fn requests_read_back_in_any_parts(
            requests in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..5),
                1..5,
            ),
            parts in proptest::collection::vec(1..30_usize, 1..5),
        ) {
            let mut bytes = Vec::new();
            for words in &requests {
                bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
                for word in words {
                    bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                    bytes.extend_from_slice(word);
                    bytes.extend_from_slice(b"\r\n");
                }
            }
            prop_assert_eq!(read(&bytes, &parts).unwrap(), requests);
        }

        #[test]
        fn the_parts_make_no_difference(
            bytes in proptest::collection::vec(
                proptest::sample::select(b"*$\r\n0123-aG\"'\\x ".to_vec()), 0..60),
            parts in proptest::collection::vec(1..9_usize, 1..5),
        ) {
            prop_assert_eq!(read(&bytes, &parts), read(&bytes, &[1000]));
        }
    }
}
