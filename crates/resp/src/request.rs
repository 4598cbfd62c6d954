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
    /// True if that request is to be returned again.
    is_put_back: bool,
    /// The error that ended the client's requests.
    broken: Option<ProtocolError>,
    /// Requests that [`Requests::gather`] took: their words, and the number of words of each.
    gathered: Vec<Range<usize>>,
    gathered_counts: Vec<usize>,
    /// Number of them that were executed.
    gathered_done: usize,
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
    /// [`ProtocolError`]; the client cannot be understood after it, and it stays.
    pub(crate) fn next(&mut self) -> Result<Option<Words<'_>>, ProtocolError> {
        if !std::mem::take(&mut self.is_put_back) {
            if let Some(error) = &self.broken {
                return Err(error.clone());
            }
            let parsed = self.parse();
            self.broken = parsed.as_ref().err().cloned();
            if !parsed? {
                return Ok(None);
            }
        }
        Ok(Some(Words { buffer: &self.buffer, words: &self.words }))
    }

    /// Parses the next request; returns whether it is complete.
    fn parse(&mut self) -> Result<bool, ProtocolError> {
        if self.is_ready {
            self.is_ready = false;
            self.start = self.at;
            self.words.clear();
        }
        loop {
            if !self.is_open {
                match self.come().get(self.at) {
                    None => return Ok(false),
                    Some(b'*') => {
                        if !self.array()? {
                            return Ok(false);
                        }
                    }
                    Some(_) => {
                        if !self.line()? {
                            return Ok(false);
                        }
                    }
                }
            }
            while self.is_open && self.words_left > 0 {
                if !self.word()? {
                    return Ok(false);
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
        Ok(true)
    }

    /// Gathers the request that [`Requests::next`] has returned and those behind it, up to `most`,
    /// while they fit. The first that does not fit is returned by [`Requests::next`], and so is a
    /// protocol error. Returns the number gathered.
    pub(crate) fn gather(&mut self, most: usize, fits: impl Fn(Words<'_>) -> bool) -> usize {
        self.gathered.clear();
        self.gathered_counts.clear();
        self.gathered_done = 0;
        loop {
            if !fits(Words { buffer: &self.buffer, words: &self.words }) {
                self.is_put_back = true;
                break;
            }
            self.gathered.extend_from_slice(&self.words);
            self.gathered_counts.push(self.words.len());
            if self.gathered_counts.len() == most || !matches!(self.next(), Ok(Some(_))) {
                break;
            }
        }
        self.gathered_counts.len()
    }

    /// The gathered requests that were not executed, in order. No bytes may be received until they
    /// are.
    pub(crate) fn gathered(&self) -> impl Iterator<Item = Words<'_>> {
        let mut at = 0;
        let all = self.gathered_counts.iter().map(move |&count| {
            at += count;
            Words { buffer: &self.buffer, words: &self.gathered[at - count..at] }
        });
        all.skip(self.gathered_done)
    }

    /// Records that so many of the gathered requests were executed.
    pub(crate) fn executed(&mut self, count: usize) {
        self.gathered_done += count;
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
        if self.is_ready && !self.is_put_back {
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
mod tests;
