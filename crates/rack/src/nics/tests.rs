//! Two sessions over subflows that delay, die and return, and a session whose peer lies.

use std::collections::{BTreeMap, VecDeque};

use super::frame::{DATA_BYTES_MAX, Fault, HEADER_BYTES, Header, Kind, open_body};
use super::order::{CHUNKS_AHEAD_MAX, WINDOW_BYTES_FIRST, WINDOW_BYTES_MAX};
use super::session::{Event, STREAMS_MAX, Session, WINDOWS_BYTES_MAX};
use crate::offer::Address;

const SUBFLOWS: usize = 4;
const MS: u64 = 1_000_000;

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn seed(variable: &str) -> u64 {
    let given = std::env::var(variable).ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    println!("{variable}={seed}");
    seed
}

/// The byte of a stream at a position.
fn byte(stream: u32, from: usize, position: u64) -> u8 {
    (position * 31 + position / 251 + u64::from(stream) * 7 + from as u64) as u8
}

/// Bytes on their way by a subflow, each with its time of arrival.
#[derive(Default)]
struct Wire {
    frames: VecDeque<(u64, Vec<u8>)>,
    into: Vec<u8>,
}

#[derive(Default)]
struct Program {
    to_send: u64,
    sent: u64,
    received: u64,
    finished: bool,
    ended: bool,
}

struct World {
    random: Random,
    now_ns: u64,
    ends: [Session; 2],
    /// From each end, by subflow.
    wires: [Vec<Wire>; 2],
    delays_ns: [u64; SUBFLOWS],
    dead: [bool; SUBFLOWS],
    incarnation: u32,
    programs: [BTreeMap<u32, Program>; 2],
    most_held: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random(seed);
        let delays_ns = std::array::from_fn(|_| 1 + random.below(20 * MS));
        let mut world = World {
            random,
            now_ns: 0,
            ends: [Session::new(true, SUBFLOWS), Session::new(false, SUBFLOWS)],
            wires: std::array::from_fn(|_| (0..SUBFLOWS).map(|_| Wire::default()).collect()),
            delays_ns,
            dead: [false; SUBFLOWS],
            incarnation: 0,
            programs: [BTreeMap::new(), BTreeMap::new()],
            most_held: 0,
        };
        (0..SUBFLOWS).for_each(|it| world.revive(it));
        world
    }

    fn revive(&mut self, subflow: usize) {
        self.incarnation += 1;
        self.dead[subflow] = false;
        for end in 0..2 {
            self.wires[end][subflow] = Wire::default();
            self.ends[end].up(subflow, self.incarnation, self.now_ns);
        }
    }

    /// A dead subflow carries nothing; what was on its way is lost.
    fn kill(&mut self, subflow: usize) {
        self.dead[subflow] = true;
        (0..2).for_each(|end| self.wires[end][subflow].frames.clear());
    }

    fn write(&mut self, end: usize) {
        self.ends[end].acknowledgements();
        for subflow in 0..SUBFLOWS {
            while let Some(bytes) = self.ends[end].stripe.unwritten(subflow) {
                let some = 1 + self.random.below(bytes.len() as u64) as usize;
                let bytes = bytes[..some].to_vec();
                self.ends[end].stripe.wrote(subflow, some);
                let at = self.now_ns + self.delays_ns[subflow];
                if !self.dead[subflow] {
                    self.wires[end][subflow].frames.push_back((at, bytes));
                }
            }
        }
    }

    fn send(&mut self, end: usize) {
        let streams: Vec<u32> = self.programs[end].keys().copied().collect();
        for _ in 0..8 {
            let Some(subflow) = self.ends[end].stripe.best(|_| true) else { break };
            if self.ends[end].stripe.assign(subflow, self.now_ns) {
                self.write(end);
                continue;
            }
            let number = streams[self.random.below(streams.len() as u64) as usize];
            let room = self.ends[end].room(number).unwrap_or(0) as u64;
            let Some(program) = self.programs[end].get_mut(&number) else { break };
            let some =
                (program.to_send - program.sent).min(room).min(1 + self.random.next() % 70_000);
            if some > 0 {
                let mut bytes = vec![0; HEADER_BYTES];
                bytes.extend((program.sent..program.sent + some).map(|at| byte(number, end, at)));
                program.sent += some;
                self.ends[end].send(subflow, number, self.now_ns, &mut bytes);
            } else if program.sent == program.to_send && !program.finished {
                program.finished = true;
                self.ends[end].finish(number);
            }
            self.write(end);
        }
    }

    fn arrive(&mut self, end: usize) {
        for subflow in 0..SUBFLOWS {
            let wire = &mut self.wires[1 - end][subflow];
            while wire.frames.front().is_some_and(|(at, _)| *at <= self.now_ns) {
                wire.into.extend(wire.frames.pop_front().unwrap().1);
            }
            let mut into = std::mem::take(&mut wire.into);
            let mut at = 0;
            while let Some(header) = into.get(at..at + HEADER_BYTES) {
                let header = Header::parse(header.try_into().unwrap()).unwrap();
                let from = at + HEADER_BYTES;
                let Some(body) = into.get(from..from + header.body_bytes) else { break };
                self.ends[end].receive(subflow, &header, body, self.now_ns).unwrap();
                at = from + header.body_bytes;
            }
            into.drain(..at);
            self.wires[1 - end][subflow].into = into;
        }
    }

    /// Programs take what has come; a slow one takes little.
    fn read(&mut self, end: usize) {
        while let Some(event) = self.ends[end].next_event() {
            match event {
                Event::Open { stream, client, server } => {
                    assert_eq!((client.port, server.port), (stream + 1, 80));
                    self.ends[end].answer(stream, true);
                    let to_send = self.random.below(3_000_000);
                    self.programs[end].insert(stream, Program { to_send, ..Program::default() });
                }
                Event::Opened(_) | Event::Readable(_) | Event::Room(_) => {}
                Event::Refused(_) | Event::Reset(_) => panic!("{event:?}"),
            }
        }
        self.most_held = self.most_held.max(self.ends[end].held());
        for (&number, program) in &mut self.programs[end] {
            if self.random.below(10) == 0 {
                continue;
            }
            while let Some(piece) = self.ends[end].ready(number) {
                for (at, &found) in (program.received..).zip(piece) {
                    assert_eq!(found, byte(number, 1 - end, at), "stream {number} at {at}");
                }
                let bytes = piece.len();
                program.received += bytes as u64;
                self.ends[end].take(number, bytes);
            }
            program.ended |= self.ends[end].is_ended(number);
        }
    }

    fn tick(&mut self) {
        for end in 0..2 {
            for subflow in self.ends[end].tick(self.now_ns) {
                assert!(self.ends[end].stripe.count_up() > 1);
                self.ends[end].down(subflow);
            }
        }
    }

    fn is_over(&self) -> bool {
        let is_over = |end: usize| {
            self.programs[end].values().all(|it| it.ended && it.finished)
                && !self.ends[end].stripe.is_busy()
        };
        is_over(0) && is_over(1)
    }
}

/// One run: streams both ways, subflows that die and return.
fn run(seed: u64) -> u64 {
    let mut world = World::new(seed);
    let streams = 1 + world.random.below(6) as u32;
    for number in 0..streams {
        let (client, server) = (Address { ip: 1, port: number + 1 }, Address { ip: 2, port: 80 });
        assert_eq!(world.ends[0].open(client, server), Some(number));
        let to_send = world.random.below(3_000_000);
        world.programs[0].insert(number, Program { to_send, ..Program::default() });
    }
    let mut opened = false;
    while !world.is_over() || !opened {
        opened |= world.programs[1].len() == streams as usize;
        assert!(world.now_ns < 120_000 * MS, "seed {seed}: it hangs");
        world.now_ns += MS / 2;
        for end in 0..2 {
            world.arrive(end);
            world.read(end);
            // The library waits for the answer before the program may send.
            if opened {
                world.send(end);
            } else if let Some(subflow) = world.ends[end].stripe.best(|_| true) {
                world.ends[end].stripe.assign(subflow, world.now_ns);
            }
            world.write(end);
        }
        world.tick();
        if world.random.below(100) == 0 {
            let subflow = world.random.below(SUBFLOWS as u64) as usize;
            if world.dead[subflow] {
                world.revive(subflow);
            } else if world.dead.iter().filter(|dead| !**dead).count() > 1 {
                world.kill(subflow);
            }
        }
    }
    for end in 0..2 {
        assert_eq!(world.ends[end].streams().count(), 0, "all streams are forgotten");
        for (number, program) in &world.programs[end] {
            let other = &world.programs[1 - end][number];
            assert_eq!((program.received, program.to_send), (other.to_send, program.sent));
        }
    }
    let again = world.ends.iter().map(|end| end.stripe.sent_again).sum();
    assert!(world.most_held <= u64::from(streams) * WINDOW_BYTES_MAX);
    again
}

#[test]
fn no_byte_is_lost_while_subflows_die_and_return() {
    let first = seed("NICS_SEED");
    let again: u64 = (0..20).map(|number| run(first.wrapping_add(number))).sum();
    assert!(again > 30, "{again} chunks were sent again");
}

#[test]
fn a_slow_program_holds_no_other_stream_up() {
    let mut ends = [Session::new(true, 1), Session::new(false, 1)];
    ends.iter_mut().for_each(|end| end.up(0, 1, 0));
    let address = Address { ip: 1, port: 1 };
    let streams = [0, 1].map(|_| ends[0].open(address, address).unwrap());
    let mut received = [0u64; 2];
    for _ in 0..300 {
        for end in 0..2 {
            let other = 1 - end;
            ends[end].acknowledgements();
            while let Some(subflow) = ends[end].stripe.best(|_| true) {
                if ends[end].stripe.assign(subflow, 0) {
                } else if let Some(&stream) =
                    streams.iter().find(|it| end == 0 && ends[0].room(**it).unwrap() > 0)
                {
                    let bytes = ends[0].room(stream).unwrap();
                    ends[0].send(0, stream, 0, &mut vec![0; HEADER_BYTES + bytes]);
                } else {
                    break;
                }
                deliver(&mut ends, end);
            }
            deliver(&mut ends, end);
            while let Some(event) = ends[other].next_event() {
                if let Event::Open { stream, .. } = event {
                    ends[other].answer(stream, true);
                }
            }
        }
        // The program of stream 0 takes nothing.
        while let Some(bytes) = ends[1].ready(1).map(<[u8]>::len) {
            received[1] += bytes as u64;
            ends[1].take(1, bytes);
        }
    }
    assert!(received[1] > 15_000_000, "{received:?}");
    assert_eq!(ends[1].held(), WINDOW_BYTES_FIRST, "of the slow one");
}

/// Moves all that `end` has written to the other end.
fn deliver(ends: &mut [Session; 2], end: usize) {
    while let Some(bytes) = ends[end].stripe.unwritten(0).map(<[u8]>::to_vec) {
        ends[end].stripe.wrote(0, bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let header = bytes[at..at + HEADER_BYTES].try_into().unwrap();
            let header = Header::parse(header).unwrap();
            let from = at + HEADER_BYTES;
            let body = &bytes[from..from + header.body_bytes];
            ends[1 - end].receive(0, &header, body, 0).unwrap();
            at = from + header.body_bytes;
        }
    }
}

/// A header that is right in most fields; `sent` has what the streams have sent.
fn lie(random: &mut Random, opens: bool, chunk: u64, sent: &mut [u64; 4]) -> [u8; HEADER_BYTES] {
    let mut rarely = |one_in: u64| random.below(one_in) == 0;
    let [any_kind, any_length, any_chunk, any_position] = [40, 60, 80, 60].map(&mut rarely);
    let kinds: &[u8] =
        if opens { &[5, 6, 8, 9, 10, 10, 10, 10, 11, 12, 13] } else { &[7, 10, 10, 13] };
    let mut kind = kinds[random.below(kinds.len() as u64) as usize];
    if any_kind {
        kind = random.next() as u8;
    }
    let length = match kind {
        _ if any_length => random.next(),
        7 => 16,
        10 => [1, 16, 1000, DATA_BYTES_MAX as u64][random.below(4) as usize],
        _ => 0,
    };
    let stream = random.below(3) as usize;
    let position = match kind {
        _ if any_position => {
            [0, 1, 1000, random.below(70_000), random.next()][random.below(5) as usize]
        }
        13 => random.below(1 << 20),
        _ => sent[stream],
    };
    sent[stream] += if kind == 10 { length & 0xffff_ffff } else { 0 };
    let mut header = [0; HEADER_BYTES];
    header[0] = kind;
    header[4..8].copy_from_slice(&(length as u32).to_le_bytes());
    header[8] = if any_kind { random.next() as u8 } else { stream as u8 };
    let chunk = if any_chunk { random.next() } else { chunk };
    header[16..24].copy_from_slice(&chunk.to_le_bytes());
    header[24..32].copy_from_slice(&position.to_le_bytes());
    header
}

/// Any frames, most of them almost right: no panic, and no more memory than the windows.
#[test]
fn a_process_that_lies_harms_nothing() {
    let first = seed("NICS_LIES_SEED");
    let (mut faults, mut taken) = (0, 0u64);
    for number in 0..1000u64 {
        let mut random = Random(first.wrapping_add(number));
        let opens = number % 2 == 0;
        let mut session = Session::new(opens, 2);
        let mut sent = [0; 4];
        (0..2).for_each(|it| session.up(it, 1, 0));
        if opens {
            let address = Address { ip: 1, port: 1 };
            (0..3).for_each(|number| assert_eq!(session.open(address, address), Some(number)));
        }
        for chunk in 0..200u64 {
            let Ok(header) = Header::parse(&lie(&mut random, opens, chunk, &mut sent)) else {
                continue;
            };
            let body: Vec<u8> = (0..header.body_bytes).map(|_| random.below(3) as u8).collect();
            let subflow = random.below(2) as usize;
            if session.receive(subflow, &header, &body, chunk).is_err() {
                faults += 1;
                break;
            }
            taken += 1;
            let streams: Vec<u32> = session.streams().collect();
            while let Some(event) = session.next_event() {
                if let Event::Open { stream, .. } = event {
                    session.answer(stream, random.below(2) == 0);
                }
            }
            for stream in streams {
                if let Some(bytes) = session.ready(stream).map(<[u8]>::len) {
                    session.take(stream, random.below(bytes as u64 + 1) as usize);
                }
                session.is_ended(stream);
                assert!(session.room(stream).is_none_or(|room| room <= DATA_BYTES_MAX));
            }
            assert!(session.held() <= 4 * WINDOW_BYTES_MAX);
            session.acknowledgements();
            while let Some(subflow) = session.stripe.best(|_| true) {
                if !session.stripe.assign(subflow, 0) {
                    break;
                }
                let bytes = session.stripe.unwritten(subflow).map_or(0, <[u8]>::len);
                session.stripe.wrote(subflow, bytes);
            }
        }
    }
    assert!(faults > 300 && taken > 5000, "{faults} faults, {taken} frames taken");
}

/// An accepting session with this many open streams, and the number of the next chunk.
fn accepting(streams: u32) -> (Session, u64) {
    let mut session = Session::new(false, 1);
    session.up(0, 1, 0);
    (0..streams).for_each(|stream| assert!(open(&mut session, stream, stream.into()).is_ok()));
    (session, streams.into())
}

/// The other process opens a stream, which is accepted.
fn open(session: &mut Session, stream: u32, chunk: u64) -> Result<(), Fault> {
    let body = open_body(Address { ip: 1, port: 1 }, Address { ip: 2, port: 80 });
    let kind = Kind::Open;
    let header = Header { kind, body_bytes: body.len(), stream, chunk, position: 0 };
    session.receive(0, &header, &body, 0)?;
    while session.next_event().is_some() {}
    Ok(())
}

fn data(session: &mut Session, stream: u32, chunk: u64, position: u64) -> Result<(), Fault> {
    let body = [7; DATA_BYTES_MAX];
    let kind = Kind::Data;
    let header = Header { kind, body_bytes: body.len(), stream, chunk, position };
    session.receive(0, &header, &body, 0)?;
    while session.next_event().is_some() {}
    Ok(())
}

/// Programs that take all that comes have their windows grow. The windows of all streams, with
/// those that are opened last, stay within their limit.
#[test]
fn all_windows_have_their_limit() {
    let (mut session, mut chunk) = accepting(32);
    let mut position = 0;
    while position < 2 * WINDOW_BYTES_MAX {
        for stream in 0..32 {
            data(&mut session, stream, chunk, position).unwrap();
            chunk += 1;
            session.take(stream, DATA_BYTES_MAX);
        }
        position += DATA_BYTES_MAX as u64;
    }
    let reserved = (STREAMS_MAX as u64 - 32) * WINDOW_BYTES_FIRST;
    assert_eq!(session.windows(), WINDOWS_BYTES_MAX - reserved);
    for stream in 32..STREAMS_MAX as u32 {
        open(&mut session, stream, chunk).unwrap();
        chunk += 1;
    }
    assert_eq!(session.windows(), WINDOWS_BYTES_MAX);
}

/// Bytes lie behind a gap although every chunk has come: the gap will never be filled.
#[test]
fn a_gap_without_a_missing_chunk_is_a_fault() {
    let bytes = DATA_BYTES_MAX as u64;
    let mut session = accepting(2).0;
    // Chunk 2 is missing, and may have the first byte; chunk 4 may have the third.
    for (chunk, position) in [(3, 1), (5, 3), (2, 0), (4, 2)] {
        assert_eq!(piece(&mut session, 0, chunk, position), Ok(()));
    }
    assert_eq!(piece(&mut session, 1, 6, bytes - 1), Err(Fault::Gap(1)));
}

fn piece(session: &mut Session, stream: u32, chunk: u64, position: u64) -> Result<(), Fault> {
    let header = Header { kind: Kind::Data, body_bytes: 1, stream, chunk, position };
    session.receive(0, &header, &[7], 0)
}

/// A process opens streams that are refused, and acknowledges nothing.
#[test]
fn answers_without_acknowledgement_are_a_fault_at_their_limit() {
    let mut session = accepting(0).0;
    for number in 0..CHUNKS_AHEAD_MAX {
        assert_eq!(open(&mut session, number as u32, number), Ok(()));
        session.answer(number as u32, false);
    }
    let last = CHUNKS_AHEAD_MAX;
    assert_eq!(open(&mut session, last as u32, last), Ok(()));
    session.answer(last as u32, false);
    let sent = last + 1;
    assert_eq!(open(&mut session, sent as u32, sent), Err(Fault::Unacknowledged(sent)));
}
