//! A session between the processes of two racks, pure: streams over subflows in both directions.
//!
//! The connecting process opens streams, and the accepting one answers. What the other process says
//! is checked here; a [`Fault`] ends the session.

use std::collections::{BTreeMap, VecDeque};

use super::frame::{ACK_ENTRY_BYTES, DATA_BYTES_MAX, Fault, HEADER_BYTES, Header, Kind};
use super::frame::{open_body, parse_open};
use super::order::{Arrived, CHUNKS_AHEAD_MAX, Incoming, WINDOW_BYTES_FIRST};
use super::stripe::Stripe;
use crate::offer::Address;

/// Most streams of a session at a time.
pub const STREAMS_MAX: usize = 4096;
/// Most bytes of all windows of a session, of which each stream has its first one in any case.
pub const WINDOWS_BYTES_MAX: u64 = 512 << 20;

/// Stands for the incarnation of a subflow that is not up.
const NONE: u32 = 0;
/// Acknowledgements from before a subflow was up come at most so much later.
const LEFT_NS: u64 = 500_000_000;

/// What has happened to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A program of the other rack connects.
    Open {
        /// The new stream.
        stream: u32,
        /// The program's address.
        client: Address,
        /// The address it connects to.
        server: Address,
    },
    /// The other rack's program has accepted.
    Opened(u32),
    /// The other rack's program has not accepted.
    Refused(u32),
    /// The program may take bytes, or the end.
    Readable(u32),
    /// The stream may send more.
    Room(u32),
    /// The stream was reset.
    Reset(u32),
}

#[derive(Debug)]
struct Stream {
    sent: u64,
    credit: u64,
    is_out_done: bool,
    incoming: Incoming,
    is_in_done: bool,
    /// The other process has answered.
    is_open: bool,
    /// The program went away before that.
    is_dropped: bool,
}

/// What has arrived on a subflow.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    incarnation: u32,
    up_ns: u64,
    /// The other process has left the subflow.
    is_left: bool,
    chunks: u64,
    is_due: bool,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    /// This process opens the streams.
    opens: bool,
    /// The chunks that are sent.
    pub stripe: Stripe,
    arrived: Arrived,
    heard: Vec<Heard>,
    streams: BTreeMap<u32, Stream>,
    /// All streams below have been opened.
    next_stream: u32,
    windows: u64,
    /// Pieces of streams that wait behind gaps.
    apart: usize,
    events: VecDeque<Event>,
}

impl Session {
    /// A session of so many subflows, none of them up.
    #[must_use]
    pub fn new(opens: bool, subflows: usize) -> Session {
        Session {
            opens,
            stripe: Stripe::new(subflows),
            arrived: Arrived::default(),
            heard: vec![Heard::default(); subflows],
            streams: BTreeMap::new(),
            next_stream: 0,
            windows: 0,
            apart: 0,
            events: VecDeque::new(),
        }
    }

    /// A subflow is connected for the time `incarnation`, which both ends count alike.
    pub fn up(&mut self, subflow: usize, incarnation: u32, now_ns: u64) {
        self.stripe.up(subflow, now_ns);
        self.heard[subflow] = Heard { incarnation, up_ns: now_ns, ..Heard::default() };
    }

    /// The time for which a subflow was last connected.
    #[must_use]
    pub fn incarnation(&self, subflow: usize) -> u32 {
        self.heard[subflow].incarnation
    }

    /// What has happened.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The streams.
    pub fn streams(&self) -> impl Iterator<Item = u32> {
        self.streams.keys().copied()
    }

    /// True if the stream exists.
    #[must_use]
    pub fn has(&self, number: u32) -> bool {
        self.streams.contains_key(&number)
    }

    /// Bytes of streams that wait here for their programs.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.streams.values().map(|it| it.incoming.held()).sum()
    }

    /// Bytes of all windows: at least those that wait here, and at most [`WINDOWS_BYTES_MAX`].
    #[must_use]
    pub fn windows(&self) -> u64 {
        self.windows
    }

    fn insert(&mut self, number: u32, is_open: bool) {
        let stream = Stream {
            sent: 0,
            credit: WINDOW_BYTES_FIRST,
            is_out_done: false,
            incoming: Incoming::new(number),
            is_in_done: false,
            is_open,
            is_dropped: false,
        };
        self.windows += WINDOW_BYTES_FIRST;
        self.streams.insert(number, stream);
    }

    fn remove(&mut self, number: u32) {
        if let Some(stream) = self.streams.remove(&number) {
            self.windows -= stream.incoming.window();
            self.apart -= stream.incoming.apart();
        }
    }

    fn order(&mut self, kind: Kind, stream: u32, position: u64, body: &[u8]) {
        self.stripe.push(|chunk| {
            Header { kind, body_bytes: body.len(), stream, chunk, position }.frame(body)
        });
    }

    /// Opens a stream to a server; `None` without room for one.
    pub fn open(&mut self, client: Address, server: Address) -> Option<u32> {
        if !self.opens || self.streams.len() >= STREAMS_MAX {
            return None;
        }
        let number = self.next_stream;
        self.next_stream = number.checked_add(1)?;
        self.insert(number, false);
        self.order(Kind::Open, number, 0, &open_body(client, server));
        Some(number)
    }

    /// Answers an [`Event::Open`].
    pub fn answer(&mut self, number: u32, accepts: bool) {
        if !self.streams.contains_key(&number) {
            return;
        }
        if accepts {
            self.order(Kind::Opened, number, 0, &[]);
        } else {
            self.remove(number);
            self.order(Kind::Refused, number, 0, &[]);
        }
    }

    /// Bytes that the stream may send in its next chunk; `None` if the stream is gone.
    #[must_use]
    pub fn room(&self, number: u32) -> Option<usize> {
        let stream = self.streams.get(&number).filter(|it| !it.is_out_done)?;
        let room = stream.credit - stream.sent;
        let has_number = self.stripe.next_number().is_some();
        Some(if has_number { room.min(DATA_BYTES_MAX as u64) as usize } else { 0 })
    }

    /// Sends bytes by a subflow that [`Stripe::best`] has named. They lie in `bytes` behind room
    /// for a header; an earlier frame's memory comes back there.
    ///
    /// # Panics
    /// If there are none, or more than [`Session::room`].
    pub fn send(&mut self, subflow: usize, number: u32, now_ns: u64, bytes: &mut Vec<u8>) {
        let room = self.room(number).unwrap_or(0);
        let body_bytes = bytes.len() - HEADER_BYTES;
        assert!((1..=room).contains(&body_bytes), "{body_bytes} B where {room} B have room");
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let position = stream.sent;
        stream.sent += body_bytes as u64;
        self.stripe.send(subflow, now_ns, |chunk, mut spare| {
            std::mem::swap(&mut spare, bytes);
            let kind = Kind::Data;
            let header = Header { kind, body_bytes, stream: number, chunk, position };
            spare[..HEADER_BYTES].copy_from_slice(&header.bytes());
            spare
        });
    }

    /// The program will send no more on this stream.
    pub fn finish(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number).filter(|it| !it.is_out_done) else {
            return;
        };
        stream.is_out_done = true;
        let (sent, is_over) = (stream.sent, stream.is_in_done);
        self.order(Kind::Fin, number, sent, &[]);
        if is_over {
            self.remove(number);
        }
    }

    /// The program has reset its connection, or is gone.
    pub fn reset(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        if stream.is_open {
            self.remove(number);
            self.order(Kind::Reset, number, 0, &[]);
        } else {
            // A reset could overtake the open.
            stream.is_dropped = true;
            stream.is_out_done = true;
        }
    }

    /// Bytes for the program.
    #[must_use]
    pub fn ready(&self, number: u32) -> Option<&[u8]> {
        self.streams.get(&number)?.incoming.ready()
    }

    /// The program took bytes of [`Session::ready`].
    pub fn take(&mut self, number: u32, bytes: usize) {
        // Streams that may still be opened have their first window in any case.
        let reserved = (STREAMS_MAX - self.streams.len()) as u64 * WINDOW_BYTES_FIRST;
        let more = WINDOWS_BYTES_MAX.saturating_sub(self.windows + reserved);
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let before = stream.incoming.window();
        let credit = stream.incoming.take(bytes, more);
        self.windows += stream.incoming.window() - before;
        if let Some(position) = credit {
            self.order(Kind::Credit, number, position, &[]);
        }
    }

    /// True once if the program has all bytes of a stream that has ended.
    pub fn is_ended(&mut self, number: u32) -> bool {
        let Some(stream) = self.streams.get_mut(&number) else { return false };
        let ends = stream.incoming.is_done() && !stream.is_in_done;
        if ends {
            stream.is_in_done = true;
            if stream.is_out_done {
                self.remove(number);
            }
        }
        ends
    }

    /// Takes a frame of a subflow.
    ///
    /// # Errors
    /// [`Fault`]: the session must end.
    pub fn receive(
        &mut self,
        subflow: usize,
        header: &Header,
        body: &[u8],
        now_ns: u64,
    ) -> Result<(), Fault> {
        self.stripe.heard(subflow, now_ns);
        match header.kind {
            Kind::Ack => return self.acknowledge(body, now_ns),
            Kind::Probe => {
                self.heard[subflow].is_due = true;
                return Ok(());
            }
            kind if !kind.is_chunk() => return Err(Fault::Kind(kind as u8)),
            _ => {}
        }
        let heard = &mut self.heard[subflow];
        heard.chunks += 1;
        heard.is_due = true;
        if self.arrived.note(header.chunk)? {
            self.chunk(header, body)?;
        }
        self.bounded(header.stream)
    }

    /// What waits here for chunks and acknowledgements is bounded, whatever the other process does.
    fn bounded(&self, stream: u32) -> Result<(), Fault> {
        // A piece waits behind a gap because a chunk before its own is missing.
        if self.apart > self.arrived.ahead() {
            return Err(Fault::Gap(stream));
        }
        let sent = self.stripe.unacknowledged();
        if sent > CHUNKS_AHEAD_MAX { Err(Fault::Unacknowledged(sent)) } else { Ok(()) }
    }

    fn acknowledge(&mut self, body: &[u8], now_ns: u64) -> Result<(), Fault> {
        for entry in body.chunks_exact(ACK_ENTRY_BYTES) {
            let word = |at: usize| {
                u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
            };
            let (subflow, incarnation) = (word(0), word(4));
            let chunks = u64::from(word(8)) | u64::from(word(12)) << 32;
            let fault = Fault::Ack { subflow, chunks };
            let known = self.heard.get_mut(subflow as usize).ok_or(fault)?;
            // Older acknowledgements may come after the subflow is up.
            let is_late = now_ns > known.up_ns + LEFT_NS;
            known.is_left |= self.opens && incarnation == NONE && is_late;
            if known.incarnation == incarnation && self.stripe.is_up(subflow as usize) {
                self.stripe.acknowledge(subflow as usize, chunks, now_ns)?;
            }
        }
        Ok(())
    }

    fn chunk(&mut self, header: &Header, body: &[u8]) -> Result<(), Fault> {
        let number = header.stream;
        if header.kind == Kind::Open {
            return self.opened_by_other(header, body);
        }
        if !self.streams.contains_key(&number) {
            // Frames of a stream that has ended here may still be on their way.
            let was_open = number < self.next_stream;
            return if was_open { Ok(()) } else { Err(Fault::Stream(number)) };
        }
        self.of_stream(header, body)
    }

    fn opened_by_other(&mut self, header: &Header, body: &[u8]) -> Result<(), Fault> {
        let number = header.stream;
        let ahead = number.checked_sub(self.next_stream);
        // Opens may overtake each other, but not by more streams than there may be.
        let may_be = ahead.is_none_or(|ahead| (ahead as usize) < STREAMS_MAX);
        if self.opens || !may_be || self.streams.contains_key(&number) {
            return Err(Fault::Stream(number));
        }
        let (client, server) = parse_open(body).ok_or(Fault::Stream(number))?;
        self.next_stream = self.next_stream.max(number.saturating_add(1));
        if self.streams.len() >= STREAMS_MAX {
            self.order(Kind::Refused, number, 0, &[]);
            return Ok(());
        }
        self.insert(number, true);
        self.events.push_back(Event::Open { stream: number, client, server });
        Ok(())
    }

    fn of_stream(&mut self, header: &Header, body: &[u8]) -> Result<(), Fault> {
        let (number, position) = (header.stream, header.position);
        let fault = Fault::Stream(number);
        let stream = self.streams.get_mut(&number).ok_or(fault)?;
        match header.kind {
            Kind::Opened if self.opens && !stream.is_open => {
                stream.is_open = true;
                if stream.is_dropped {
                    self.reset(number);
                } else {
                    self.events.push_back(Event::Opened(number));
                }
            }
            Kind::Refused if self.opens && !stream.is_open => {
                self.remove(number);
                self.events.push_back(Event::Refused(number));
            }
            _ if stream.is_dropped && header.kind != Kind::Reset => {}
            Kind::Data => {
                let before = stream.incoming.apart();
                let is_more = stream.incoming.put(position, body.to_vec())?;
                self.apart = self.apart + stream.incoming.apart() - before;
                if is_more {
                    self.events.push_back(Event::Readable(number));
                }
            }
            Kind::Fin => {
                stream.incoming.end_at(position)?;
                self.events.push_back(Event::Readable(number));
            }
            Kind::Reset => {
                self.remove(number);
                self.events.push_back(Event::Reset(number));
            }
            Kind::Credit => {
                // Credits may overtake each other.
                if position > stream.credit {
                    stream.credit = position;
                    self.events.push_back(Event::Room(number));
                }
            }
            kind => return Err(Fault::Kind(kind as u8)),
        }
        Ok(())
    }

    /// Puts acknowledgements that are due between the chunks.
    pub fn acknowledgements(&mut self) {
        let is_due = |it: usize, of: &Session| {
            of.heard[it].is_due && of.stripe.is_up(it) && !of.stripe.is_saying(it)
        };
        let due: Vec<usize> = (0..self.heard.len()).filter(|&it| is_due(it, self)).collect();
        if due.is_empty() {
            return;
        }
        let mut body = Vec::with_capacity(ACK_ENTRY_BYTES * self.heard.len());
        for (subflow, heard) in self.heard.iter().enumerate() {
            let incarnation = if self.stripe.is_up(subflow) { heard.incarnation } else { NONE };
            body.extend((subflow as u32).to_le_bytes());
            body.extend(incarnation.to_le_bytes());
            body.extend(heard.chunks.to_le_bytes());
        }
        let header =
            Header { kind: Kind::Ack, body_bytes: body.len(), stream: 0, chunk: 0, position: 0 };
        let frame = header.frame(&body);
        for subflow in due {
            self.stripe.say(subflow, &frame);
            self.heard[subflow].is_due = false;
        }
    }

    /// Asks for acknowledgements where a subflow makes no progress. Returns the subflows to leave.
    pub fn tick(&mut self, now_ns: u64) -> Vec<usize> {
        let probe =
            Header { kind: Kind::Probe, body_bytes: 0, stream: 0, chunk: 0, position: 0 }.bytes();
        for subflow in self.stripe.probes(now_ns) {
            self.stripe.say(subflow, &probe);
        }
        let mut left = self.stripe.stalled();
        let told = |it: &usize| self.heard[*it].is_left && self.stripe.is_up(*it);
        let others: Vec<usize> = (0..self.heard.len()).filter(told).collect();
        left.extend(others.into_iter().filter(|it| !left.contains(it)).collect::<Vec<_>>());
        left
    }

    /// A subflow is left. The other process is told by the next acknowledgements.
    pub fn down(&mut self, subflow: usize) {
        self.stripe.down(subflow);
        self.heard.iter_mut().for_each(|heard| heard.is_due = true);
    }
}
