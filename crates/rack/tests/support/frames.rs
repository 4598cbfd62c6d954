//! A session whose other process sends anything: headers of any octets, and frames that are almost
//! right, while programs take, send and leave. No panic; a fault ends the session; what waits here
//! stays within the windows that were granted.

use std::collections::BTreeMap;

use ethermem_rack::nics::frame::{
    ACK_ENTRY_BYTES, DATA_BYTES_MAX, HEADER_BYTES, Header, Kind, OPEN_BYTES, open_body, parse_open,
};
use ethermem_rack::nics::order::{CHUNKS_AHEAD_MAX, WINDOW_BYTES_FIRST, WINDOW_BYTES_MAX};
use ethermem_rack::nics::session::{Event, STREAMS_MAX, Session, WINDOWS_BYTES_MAX};
use ethermem_rack::offer::Address;

const SUBFLOWS: usize = 3;
const SOME: Address = Address { ip: 1, port: 80 };

/// What the liar has said of a stream.
#[derive(Clone, Copy, Default)]
struct Said {
    position: u64,
    is_answered: bool,
    is_ended: bool,
}

struct World<'i> {
    input: &'i [u8],
    session: Session,
    opens: bool,
    now_ns: u64,
    /// The number of the liar's next chunk and next stream, and what it has said of streams.
    chunk: u64,
    stream: u32,
    said: BTreeMap<u32, Said>,
    /// By subflow: times that it was up, and octets that the socket has taken, up to a frame.
    incarnations: [u32; SUBFLOWS],
    written: [Vec<u8>; SUBFLOWS],
    /// By subflow: chunks that were written since it is up.
    chunks: [u64; SUBFLOWS],
}

/// Takes an input to its end, or to the fault that ends the session. Returns true if one did.
pub(crate) fn run(input: &[u8]) -> bool {
    let opens = input.first().is_some_and(|first| first % 2 == 0);
    let mut world = World {
        input: input.get(1..).unwrap_or_default(),
        session: Session::new(opens, SUBFLOWS),
        opens,
        now_ns: 1,
        chunk: 0,
        stream: 0,
        said: BTreeMap::new(),
        incarnations: [0; SUBFLOWS],
        written: std::array::from_fn(|_| Vec::new()),
        chunks: [0; SUBFLOWS],
    };
    (0..SUBFLOWS).for_each(|subflow| world.up(subflow));
    while !world.input.is_empty() {
        if world.step() {
            return true;
        }
        world.settle();
        world.check();
    }
    false
}

impl World<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.input.split_first() else { return 0 };
        self.input = rest;
        *first
    }

    fn number(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    fn up(&mut self, subflow: usize) {
        self.incarnations[subflow] += 1;
        self.session.up(subflow, self.incarnations[subflow], self.now_ns);
        self.written[subflow].clear();
        self.chunks[subflow] = 0;
    }

    /// One step of the liar, of a program, or of time. True if a fault has ended the session.
    fn step(&mut self) -> bool {
        let subflow = usize::from(self.byte()) % SUBFLOWS;
        match self.byte() % 64 {
            0 => {
                let octets: [u8; HEADER_BYTES] = std::array::from_fn(|_| self.byte());
                return match Header::parse(&octets) {
                    Ok(header) => self.receive(subflow, &header),
                    Err(fault) => !fault.to_string().is_empty(),
                };
            }
            1..=35 => {
                let header = self.almost();
                return Header::parse(&header.bytes()).is_err() || self.receive(subflow, &header);
            }
            36..=43 => self.take(),
            44..=46 => {
                self.session.open(SOME, SOME);
            }
            47..=52 => self.send(subflow),
            53 => {
                let stream = self.stream();
                self.session.finish(stream);
            }
            54 => {
                let stream = self.stream();
                self.session.reset(stream);
            }
            55..=60 => {
                self.session.acknowledgements();
                self.write(subflow);
            }
            _ => self.time(subflow),
        }
        false
    }

    fn time(&mut self, subflow: usize) {
        self.now_ns += u64::from(self.byte()) * 4_000_000;
        for left in self.session.tick(self.now_ns) {
            if self.session.stripe.count_up() > 1 {
                self.session.down(left);
            }
        }
        if !self.session.stripe.is_up(subflow) {
            self.up(subflow);
        }
    }

    /// A stream that there is, or any.
    fn stream(&mut self) -> u32 {
        let byte = self.byte();
        let streams = self.session.streams().count();
        if byte >= 0xf8 || streams == 0 {
            return self.number() as u32;
        }
        self.session.streams().nth(usize::from(byte) % streams).expect("one of them")
    }

    /// A number that is mostly `of`.
    fn near(&mut self, of: u64) -> u64 {
        match self.byte() {
            0..0xe8 => of,
            byte @ 0xe8..0xf8 => of.wrapping_add(u64::from(byte)).wrapping_sub(0xf0),
            _ => self.number(),
        }
    }

    /// A kind that is mostly right at this time, and its stream.
    fn kind(&mut self) -> (Kind, u32) {
        use Kind::{
            Ack, Challenge, Credit, Data, Fin, Hello, Open, Opened, Probe, Proof, Ready, Refused,
            Reset,
        };
        let all = [
            Hello, Challenge, Proof, Ready, Ack, Probe, Open, Opened, Refused, Data, Fin, Reset,
            Credit,
        ];
        let byte = usize::from(self.byte());
        if byte >= 0xf8 {
            return (all[usize::from(self.byte()) % all.len()], self.stream());
        }
        let is_none = self.session.streams().next().is_none();
        match byte % 16 {
            0 => (Ack, 0),
            1 => (Probe, 0),
            2..=4 if !self.opens => (Open, self.stream),
            _ if is_none => (if self.opens { Probe } else { Open }, self.stream),
            what => {
                let stream = self.stream();
                let said = self.said.get(&stream).copied().unwrap_or_default();
                let kind = match what {
                    2..=4 if !said.is_answered => [Opened, Opened, Refused][what - 2],
                    5 if !said.is_ended => Fin,
                    6 => Reset,
                    _ if said.is_ended || what <= 8 => Credit,
                    _ => Data,
                };
                (kind, stream)
            }
        }
    }

    /// A header that is right in most fields.
    fn almost(&mut self) -> Header {
        let (kind, stream) = self.kind();
        let body_bytes = match kind {
            Kind::Ack => usize::from(self.byte()) % (SUBFLOWS + 1) * ACK_ENTRY_BYTES,
            Kind::Open => OPEN_BYTES,
            Kind::Data => match self.byte() {
                0xff => DATA_BYTES_MAX,
                byte @ 0xe0.. => usize::from(byte) << 7,
                byte => usize::from(byte).max(1),
            },
            _ => 0,
        };
        let chunk = self.near(self.chunk);
        if kind.is_chunk() && chunk == self.chunk {
            self.chunk += 1;
        }
        if kind == Kind::Open && stream == self.stream {
            self.stream += 1;
        }
        let next = self.said.get(&stream).map_or(0, |said| said.position);
        let position = self.near(next);
        let said = self.said.entry(stream).or_default();
        match kind {
            Kind::Data if position == next => {
                said.position = next.saturating_add(body_bytes as u64);
            }
            Kind::Opened | Kind::Refused => said.is_answered = true,
            Kind::Fin => said.is_ended = true,
            _ => {}
        }
        Header { kind, body_bytes, stream, chunk, position }
    }

    fn body(&mut self, header: &Header) -> Vec<u8> {
        match header.kind {
            Kind::Open if !self.byte().is_multiple_of(8) => open_body(SOME, SOME).to_vec(),
            Kind::Open | Kind::Hello | Kind::Challenge | Kind::Proof => {
                (0..header.body_bytes).map(|_| self.byte()).collect()
            }
            Kind::Ack => {
                let mut body = Vec::new();
                for entry in 0..header.body_bytes / ACK_ENTRY_BYTES {
                    let subflow = self.near(entry as u64) as u32;
                    let own = usize::try_from(subflow).unwrap_or(usize::MAX);
                    let incarnation = self.incarnations.get(own).copied().unwrap_or(0);
                    let chunks = self.chunks.get(own).copied().unwrap_or(0);
                    body.extend(subflow.to_le_bytes());
                    body.extend((self.near(incarnation.into()) as u32).to_le_bytes());
                    body.extend(self.near(chunks).to_le_bytes());
                }
                body
            }
            _ => vec![self.byte(); header.body_bytes],
        }
    }

    fn receive(&mut self, subflow: usize, header: &Header) -> bool {
        let body = self.body(header);
        assert_eq!(body.len(), header.body_bytes);
        let result = self.session.receive(subflow, header, &body, self.now_ns);
        result.is_err_and(|fault| !fault.to_string().is_empty())
    }

    /// A program takes bytes, or finds the end.
    fn take(&mut self) {
        let stream = self.stream();
        let some = usize::from(self.byte());
        if let Some(bytes) = self.session.ready(stream).map(<[u8]>::len) {
            let bytes = if some < 0x80 { bytes } else { bytes.min(some) };
            self.session.take(stream, bytes);
        }
        self.session.is_ended(stream);
    }

    /// A program sends.
    fn send(&mut self, subflow: usize) {
        let stream = self.stream();
        let some = 1 + usize::from(self.byte()) * 300;
        let Some(subflow) = self.session.stripe.best(|it| it == subflow) else { return };
        let bytes = self.session.room(stream).unwrap_or(0).min(some);
        if bytes > 0 {
            self.session.send(subflow, stream, self.now_ns, &mut vec![0; HEADER_BYTES + bytes]);
        }
    }

    /// The socket takes what there is: whole frames of kinds that this process may send.
    fn write(&mut self, subflow: usize) {
        while self.session.stripe.best(|it| it == subflow).is_some() {
            if !self.session.stripe.assign(subflow, self.now_ns) {
                break;
            }
            self.take_written(subflow);
        }
        self.take_written(subflow);
    }

    fn take_written(&mut self, subflow: usize) {
        while let Some(bytes) = self.session.stripe.unwritten(subflow) {
            let written = &mut self.written[subflow];
            written.extend_from_slice(bytes);
            let bytes = bytes.len();
            self.session.stripe.wrote(subflow, bytes);
            let mut at = 0;
            while let Some(header) = written[at..].first_chunk::<HEADER_BYTES>() {
                let header = Header::parse(header).expect("this process sends what may be");
                let end = at + HEADER_BYTES + header.body_bytes;
                let Some(body) = written.get(at + HEADER_BYTES..end) else { break };
                match header.kind {
                    Kind::Open => assert_eq!(parse_open(body), Some((SOME, SOME))),
                    Kind::Hello | Kind::Challenge | Kind::Proof | Kind::Ready => {
                        panic!("{header:?}: after the handshake")
                    }
                    _ => {}
                }
                self.chunks[subflow] += u64::from(header.kind.is_chunk());
                at = end;
            }
            written.drain(..at);
        }
    }

    /// The process answers what has happened.
    fn settle(&mut self) {
        while let Some(event) = self.session.next_event() {
            if let Event::Open { stream, client, .. } = event {
                // A number may be opened again once its stream has ended.
                self.said.insert(stream, Said::default());
                self.session.answer(stream, client.port != 81);
            }
        }
    }

    fn check(&self) {
        let (held, windows) = (self.session.held(), self.session.windows());
        assert!(held <= windows && windows <= WINDOWS_BYTES_MAX, "{held} B of {windows} B");
        let streams = self.session.streams().count();
        let bounds = [WINDOW_BYTES_FIRST, WINDOW_BYTES_MAX].map(|bytes| bytes * streams as u64);
        assert!((bounds[0]..=bounds[1]).contains(&windows), "{windows} B of {streams} streams");
        assert!(streams <= STREAMS_MAX);
        let sent = self.session.stripe.unacknowledged();
        assert!(sent <= 2 * CHUNKS_AHEAD_MAX, "{sent} chunks wait here");
        for stream in self.session.streams() {
            assert!(self.session.room(stream).is_none_or(|room| room <= DATA_BYTES_MAX));
        }
    }
}
