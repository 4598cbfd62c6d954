//! One operator connection: a question arrives and an answer leaves, each within a time limit.
//! Nothing here blocks.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::{ControlAnswer, ControlQuestion};

/// Time limit of a peer for sending its question, and again for reading the answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
const QUESTION_BYTES_MAX: usize = 256;

enum State {
    /// Octets of the question received so far.
    Asking(Vec<u8>),
    /// The answer, and the number of its octets sent.
    Answering(Vec<u8>, usize),
}

/// An operator's connection.
pub(super) struct Connection<S> {
    stream: S,
    state: State,
    /// Time limit of the current state.
    until: Instant,
}

impl<S: Read + Write> Connection<S> {
    pub(super) fn new(stream: S, now: Instant) -> Connection<S> {
        Connection { stream, state: State::Asking(Vec::new()), until: now + PATIENCE }
    }

    pub(super) fn stream(&self) -> &S {
        &self.stream
    }

    /// Time when the connection ends, whatever its peer does.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// True if it waits for the peer to read, and not for the peer to send.
    pub(super) fn is_answering(&self) -> bool {
        matches!(self.state, State::Answering(..))
    }

    /// Does what is possible without blocking, and returns whether the connection goes on.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        answer: &mut dyn FnMut(ControlQuestion) -> ControlAnswer,
    ) -> bool {
        if now >= self.until {
            return false;
        }
        if let State::Asking(line) = &mut self.state {
            let reply = match read_question(&mut self.stream, line) {
                Ok(None) => return true,
                Ok(Some(question)) => answer(question),
                Err(Bad::Gone) => return false,
                Err(Bad::Refused(problem)) => ControlAnswer::Refused(problem),
            };
            let mut octets = serde_json::to_vec(&reply).expect("it has only names and numbers");
            octets.push(b'\n');
            self.state = State::Answering(octets, 0);
            // The node may have been slow to answer.
            self.until = Instant::now().max(now) + PATIENCE;
        }
        match &mut self.state {
            State::Answering(octets, sent) => write_answer(&mut self.stream, octets, sent),
            State::Asking(_) => true,
        }
    }
}

/// The reason why there is no question.
enum Bad {
    /// The peer has disconnected.
    Gone,
    /// The peer receives this refusal.
    Refused(String),
}

/// The question, once its line is complete.
fn read_question(
    stream: &mut impl Read,
    line: &mut Vec<u8>,
) -> Result<Option<ControlQuestion>, Bad> {
    let mut some = [0; QUESTION_BYTES_MAX];
    while !line.ends_with(b"\n") {
        let room = QUESTION_BYTES_MAX - line.len();
        if room == 0 {
            let problem =
                format!("the question must be one line of at most {QUESTION_BYTES_MAX} B");
            return Err(Bad::Refused(problem));
        }
        match stream.read(&mut some[..room]) {
            Ok(0) => return Err(Bad::Gone),
            Ok(bytes) => line.extend_from_slice(&some[..bytes]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(_) => return Err(Bad::Gone),
        }
    }
    // The question of a peer that gave up must not be answered.
    if matches!(stream.read(&mut some[..1]), Ok(0)) {
        return Err(Bad::Gone);
    }
    let question = serde_json::from_slice(line);
    question.map(Some).map_err(|error| Bad::Refused(format!("malformed question: {error}")))
}

/// Writes as much as the peer accepts, and returns whether more is left.
fn write_answer(stream: &mut impl Write, octets: &[u8], sent: &mut usize) -> bool {
    while *sent < octets.len() {
        match stream.write(&octets[*sent..]) {
            Ok(0) => return false,
            Ok(bytes) => *sent += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io;

    use super::*;

    /// A scripted peer: the pieces that it sends, and the number of octets it accepts.
    #[derive(Default)]
    struct Peer {
        sends: VecDeque<Vec<u8>>,
        takes: usize,
        took: Vec<u8>,
    }

    impl Read for Peer {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let mut piece = self.sends.pop_front().ok_or(ErrorKind::WouldBlock)?;
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

    fn connection(sends: &[&[u8]], takes: usize, now: Instant) -> Connection<Peer> {
        let sends = sends.iter().map(|piece| piece.to_vec()).collect();
        Connection::new(Peer { sends, takes, ..Peer::default() }, now)
    }

    fn ended(question: ControlQuestion) -> ControlAnswer {
        ControlAnswer::Ended(question == ControlQuestion::End { tenant: 7, process: 9 })
    }

    fn answer_to(sends: &[&[u8]]) -> String {
        let now = Instant::now();
        let mut connection = connection(sends, usize::MAX, now);
        assert!(!connection.advance(now, &mut ended), "one question, one answer");
        String::from_utf8(connection.stream.took).expect("JSON")
    }

    #[test]
    fn a_question_in_pieces_is_answered_once_its_line_is_complete() {
        let pieces: [&[u8]; 3] = [b"{\"end\":{\"ten", b"ant\":7,\"process\":9}", b"}\n"];
        assert_eq!(answer_to(&pieces), "{\"ended\":true}\n");
    }

    #[test]
    fn each_half_of_a_connection_ends_in_its_time() {
        let start = Instant::now();
        let later = start + PATIENCE - Duration::from_millis(1);
        let mut silent = connection(&[b"{\"proc"], 0, start);
        assert!(silent.advance(start, &mut ended) && silent.advance(later, &mut ended));
        assert!(!silent.advance(start + PATIENCE, &mut ended));
        // The peer accepts only five octets of its answer.
        let mut lazy = connection(&[b"{\"processes\":{}}\n"], 5, start);
        assert!(lazy.advance(later, &mut ended) && lazy.is_answering());
        let end = lazy.until();
        assert!(end >= later + PATIENCE, "the answer has its own time");
        assert!(lazy.advance(end - Duration::from_millis(1), &mut ended));
        assert!(!lazy.advance(end, &mut ended));
    }

    #[test]
    fn what_is_no_question_is_refused_in_one_line_and_does_nothing() {
        let long = [b'['; 10_000];
        for sent in [
            &b"\n"[..],
            b"{}\n",
            b"{\"end\":{\"tenant\":0}}\n",
            b"{\"end\":{\"tenant\":70000,\"process\":1}}\n",
            b"{\"end\":{\"tenant\":0,\"process\":-1}}\n",
            b"{\"processes\":{},\"end\":{\"tenant\":0,\"process\":1}}\n",
            b"{\"processes\":{}}\n{\"processes\":{}}\n",
            b"\xff\xfe\n",
            &long,
        ] {
            let now = Instant::now();
            let mut connection = connection(&[sent], usize::MAX, now);
            let asked = |question| panic!("{question:?} of {sent:?}");
            assert!(!connection.advance(now, &mut { asked }));
            let said = String::from_utf8(connection.stream.took).expect("JSON");
            let answer: ControlAnswer = serde_json::from_str(&said).expect("JSON");
            assert!(matches!(answer, ControlAnswer::Refused(_)), "{sent:?}: {said}");
            assert_eq!(said.matches('\n').count(), 1, "{said:?}");
        }
    }
}
