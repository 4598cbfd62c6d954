//! Replies in RESP2 or RESP3, written one after the other.

/// Pending replies of one client.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    bytes: Vec<u8>,
    /// Number of bytes of `bytes` that were sent.
    sent: usize,
    /// True for RESP3.
    pub(crate) is_third: bool,
}

/// An empty buffer longer than this many bytes is freed.
const KEPT_BYTES: usize = 1 << 20;

impl Replies {
    /// Writes `+OK`.
    pub(crate) fn ok(&mut self) {
        self.simple("OK");
    }

    pub(crate) fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// Writes an error, whose first word is its kind. Text from the client cannot end the line.
    pub(crate) fn error(&mut self, text: &str) {
        self.bytes.push(b'-');
        let safe = |byte: u8| if byte == b'\r' || byte == b'\n' { b' ' } else { byte };
        self.bytes.extend(text.bytes().map(safe));
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(crate) fn integer(&mut self, number: i64) {
        self.line(b':', itoa::Buffer::new().format(number).as_bytes());
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.bytes.reserve(bytes.len() + 32);
        self.line(b'$', itoa::Buffer::new().format(bytes.len()).as_bytes());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Writes a null.
    pub(crate) fn null(&mut self) {
        self.bytes.extend_from_slice(if self.is_third { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// Begins an array of `count` replies.
    pub(crate) fn array(&mut self, count: usize) {
        self.line(b'*', itoa::Buffer::new().format(count).as_bytes());
    }

    /// Begins a map of `pairs` pairs of replies.
    pub(crate) fn map(&mut self, pairs: usize) {
        if self.is_third {
            self.line(b'%', itoa::Buffer::new().format(pairs).as_bytes());
        } else {
            self.array(2 * pairs);
        }
    }

    /// Writes text for people.
    pub(crate) fn text(&mut self, text: &str) {
        if self.is_third {
            self.line(b'=', itoa::Buffer::new().format(text.len() + 4).as_bytes());
            self.bytes.extend_from_slice(b"txt:");
            self.bytes.extend_from_slice(text.as_bytes());
            self.bytes.extend_from_slice(b"\r\n");
        } else {
            self.bulk(text.as_bytes());
        }
    }

    /// Bytes that are not sent yet.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Records that `bytes` more were sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent == self.bytes.len() {
            self.sent = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEPT_BYTES {
                self.bytes = Vec::new();
            }
        }
    }

    fn line(&mut self, kind: u8, content: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(content);
        self.bytes.extend_from_slice(b"\r\n");
    }
}
