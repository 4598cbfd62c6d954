//! One connection: a request is read and answered, and its answer sent, each within a time limit.

use std::io::{ErrorKind, Read, Write};
use std::time::Instant;

use crate::Limits;

/// Largest number of headers; a client that sends more is refused.
const HEADERS_MAX: usize = 64;
/// Octets read and discarded after a response, so that the client sees it instead of a reset.
const LINGER_BYTES_MAX: usize = 1 << 20;
const CHUNK_BYTES: usize = 4096;

/// A request to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// Path without the query.
    pub path: &'a str,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Content type of the body.
    pub content_type: &'static str,
    /// Body of the response.
    pub body: String,
}

impl Reply {
    /// A response with a page.
    #[must_use]
    pub fn page(content_type: &'static str, body: String) -> Reply {
        Reply { status: 200, content_type, body }
    }

    /// A refusal, with one line for people.
    #[must_use]
    pub fn refused(status: u16, line: &str) -> Reply {
        Reply { status, content_type: "text/plain", body: format!("{line}\n") }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The head of the request is being received.
    Asking,
    /// The response is being sent.
    Answering,
    /// The response was sent; the client is to close the connection.
    Lingering,
}

/// What a stream of this crate can do beside reading and writing.
pub(crate) trait Stream: Read + Write {
    /// Closes the sending side.
    fn end_writing(&mut self);
}

/// One client's connection, with the request so far and the rest of its answer.
pub(crate) struct Connection<S> {
    stream: S,
    state: State,
    head: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
    /// Octets received after the response.
    thrown_away: usize,
    /// Time limit of the current state.
    until: Instant,
}

impl<S: Stream> Connection<S> {
    pub(crate) fn new(stream: S, now: Instant, limits: &Limits) -> Connection<S> {
        Connection {
            stream,
            state: State::Asking,
            head: Vec::new(),
            answer: Vec::new(),
            sent: 0,
            thrown_away: 0,
            until: now + limits.ask_within,
        }
    }

    /// Time when it ends, whatever the client does.
    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    /// Does what is possible without blocking, and returns whether the connection goes on.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        limits: &Limits,
        answer: &mut dyn FnMut(Asked<'_>) -> Reply,
    ) -> bool {
        if now >= self.until {
            return false;
        }
        if self.state == State::Asking {
            match self.ask(limits) {
                Ok(None) => return true,
                Ok(Some(Request { path, has_body })) => {
                    let reply = answer(Asked { path: &path });
                    self.begin_answer(now, limits, &reply, has_body);
                }
                Err(Bad::Gone) => return false,
                Err(Bad::Refused(reply)) => self.begin_answer(now, limits, &reply, true),
            }
        }
        if self.state == State::Answering && !self.send(now, limits) {
            return false;
        }
        self.state != State::Lingering || self.throw_away()
    }

    /// Reads the head of the request, and returns the request once it is complete.
    fn ask(&mut self, limits: &Limits) -> Result<Option<Request>, Bad> {
        let mut chunk = [0; CHUNK_BYTES];
        loop {
            let room = limits.head_bytes_max - self.head.len();
            match self.stream.read(&mut chunk[..room.min(CHUNK_BYTES)]) {
                Ok(0) => return Err(Bad::Gone),
                Ok(bytes) => self.head.extend_from_slice(&chunk[..bytes]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(_) => return Err(Bad::Gone),
            }
            if let Some(request) = parse(&self.head)? {
                return Ok(Some(request));
            }
            if self.head.len() >= limits.head_bytes_max {
                let most = limits.head_bytes_max;
                let line = format!("the head of a request must have less than {most} B");
                return Err(Bad::Refused(Reply::refused(431, &line)));
            }
        }
    }

    fn begin_answer(&mut self, now: Instant, limits: &Limits, reply: &Reply, has_body: bool) {
        let Reply { status, content_type, body } = reply;
        let (reason, bytes) = (reason(*status), body.len());
        let allow = if *status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        let mut text = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: \
             {bytes}\r\n{allow}Connection: close\r\n\r\n"
        );
        if has_body {
            text.push_str(body);
        }
        self.head = Vec::new();
        (self.answer, self.sent) = (text.into_bytes(), 0);
        (self.state, self.until) = (State::Answering, now + limits.take_within);
    }

    /// Sends as much as the client accepts, and returns whether the connection goes on.
    fn send(&mut self, now: Instant, limits: &Limits) -> bool {
        while self.sent < self.answer.len() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(0) => return false,
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        self.answer = Vec::new();
        self.stream.end_writing();
        (self.state, self.until) = (State::Lingering, now + limits.linger);
        true
    }

    /// Discards what the client still sends. Closing with unread octets would cause a reset, which
    /// can overtake the response.
    fn throw_away(&mut self) -> bool {
        let mut chunk = [0; CHUNK_BYTES];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return false,
                Ok(bytes) => self.thrown_away += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
            if self.thrown_away > LINGER_BYTES_MAX {
                return false;
            }
        }
    }
}

struct Request {
    path: String,
    /// True if the response has a body; a response to HEAD has none.
    has_body: bool,
}

/// The reason why there is no request.
#[derive(Debug)]
enum Bad {
    /// The client has disconnected.
    Gone,
    /// The client receives this refusal.
    Refused(Reply),
}

/// The request whose head is `octets`; `None` while it is incomplete.
fn parse(octets: &[u8]) -> Result<Option<Request>, Bad> {
    let refused = |status, line: &str| Bad::Refused(Reply::refused(status, line));
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    match head.parse(octets) {
        Ok(httparse::Status::Partial) => return Ok(None),
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => {
            let line = format!("a request must have at most {HEADERS_MAX} headers");
            return Err(refused(431, &line));
        }
        Err(error) => return Err(refused(400, &format!("malformed request: {error}"))),
    }
    let (method, target) = (head.method.unwrap_or(""), head.path.unwrap_or(""));
    if method != "GET" && method != "HEAD" {
        return Err(refused(405, "the method of a request must be GET or HEAD"));
    }
    let path = target.split_once('?').map_or(target, |(path, _)| path).to_owned();
    Ok(Some(Request { path, has_body: method == "GET" }))
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Other",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io;
    use std::time::Duration;

    use super::*;

    /// A scripted peer: the pieces that it sends, and how much of the response it accepts.
    #[derive(Default)]
    struct Peer {
        sends: VecDeque<Vec<u8>>,
        takes: usize,
        took: Vec<u8>,
        ended: bool,
    }

    impl Read for Peer {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let Some(mut piece) = self.sends.pop_front() else {
                return Err(ErrorKind::WouldBlock.into());
            };
            let bytes = piece.len().min(into.len());
            into[..bytes].copy_from_slice(&piece[..bytes]);
            if bytes < piece.len() {
                self.sends.push_front(piece.split_off(bytes));
            }
            Ok(bytes)
        }
    }

    impl Write for Peer {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let bytes = data.len().min(self.takes);
            if bytes == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.takes -= bytes;
            self.took.extend_from_slice(&data[..bytes]);
            Ok(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Stream for Peer {
        fn end_writing(&mut self) {
            self.ended = true;
        }
    }

    const LIMITS: Limits = Limits {
        connections_max: 4,
        head_bytes_max: 100,
        ask_within: Duration::from_secs(5),
        take_within: Duration::from_secs(10),
        linger: Duration::from_secs(1),
    };

    fn hello(asked: Asked<'_>) -> Reply {
        Reply::page("text/plain", format!("you asked for {}", asked.path))
    }

    fn connection(sends: &[&[u8]], takes: usize, now: Instant) -> Connection<Peer> {
        let sends = sends.iter().map(|piece| piece.to_vec()).collect();
        Connection::new(Peer { sends, takes, ..Peer::default() }, now, &LIMITS)
    }

    fn answer_to(sends: &[&[u8]]) -> String {
        let now = Instant::now();
        let mut connection = connection(sends, usize::MAX, now);
        assert!(connection.advance(now, &LIMITS, &mut hello), "it lingers");
        assert!(connection.stream.ended);
        String::from_utf8(connection.stream.took).expect("ASCII")
    }

    #[test]
    fn a_request_in_pieces_is_answered_once_it_is_whole() {
        let pieces: [&[u8]; 4] = [b"G", b"ET /x?y=1 HTTP/1.1\r\nHo", b"st: a\r\n\r", b"\n"];
        let answer = answer_to(&pieces);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("\r\nContent-Length: 16\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nyou asked for /x"), "{answer}");
        let head = answer_to(&[b"HEAD /x HTTP/1.1\r\n\r\n"]);
        assert!(head.contains("Content-Length: 16\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    }

    #[test]
    fn what_is_no_request_is_refused_in_one_line() {
        for (sent, status) in [
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 of TLS\r\n\r\n".as_slice(), 400),
            (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
            (&[b'a'; 200], 431),
        ] {
            let answer = answer_to(&[sent]);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
            assert_eq!(body.matches('\n').count(), 1, "{answer}");
        }
        let many = "a: b\r\n".repeat(HEADERS_MAX + 1);
        let many = format!("GET / HTTP/1.1\r\n{many}\r\n");
        assert!(matches!(parse(many.as_bytes()), Err(Bad::Refused(Reply { status: 431, .. }))));
    }

    #[test]
    fn each_state_ends_in_its_time() {
        let start = Instant::now();
        let ask = b"GET / HTTP/1.1\r\n\r\n".as_slice();
        // In turn: no request is sent; the response is not read; the client does not close.
        for (sends, takes, within) in
            [(vec![], 0, LIMITS.ask_within), (vec![ask], 10, LIMITS.take_within)]
        {
            let mut connection = connection(&sends, takes, start);
            assert!(connection.advance(start, &LIMITS, &mut hello));
            let almost = start + within - Duration::from_millis(1);
            assert!(connection.advance(almost, &LIMITS, &mut hello));
            assert!(!connection.advance(start + within, &LIMITS, &mut hello));
        }
        let mut connection = connection(&[ask], usize::MAX, start);
        assert!(connection.advance(start, &LIMITS, &mut hello));
        assert!(!connection.advance(start + LIMITS.linger, &LIMITS, &mut hello));
    }

    #[test]
    fn a_client_that_sends_for_ever_is_left() {
        let now = Instant::now();
        let ask = b"GET / HTTP/1.1\r\n\r\n".as_slice();
        let more = vec![0; LINGER_BYTES_MAX + 1];
        let mut connection = connection(&[ask, &more], usize::MAX, now);
        assert!(!connection.advance(now, &LIMITS, &mut hello));
    }
}
