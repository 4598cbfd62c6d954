//! The memory node: receive FIFO, packet manager, translator (sections III.C, III.D and IV).
//!
//! Events in: frames ([`MemoryNode::on_frame`]), the pace at which the FIFO is drained
//! ([`MemoryNode::drain`]), and what the memory answers ([`MemoryNode::on_read`],
//! [`MemoryNode::on_written`]). Actions out: accesses to the memory ([`MemoryNode::poll_access`])
//! and frames ([`MemoryNode::poll_transmit`], [`MemoryNode::poll_pause`]). It holds no bytes of the
//! memory; [`crate::dram::Dram`] says how long an access takes.

mod config;
mod fifo;
mod in_flight;

use ethermem_units::Ps;
use ethermem_wire::cxl::{
    Congestion, Failure, Frame, FrameFault, LineAddress, LineData, Mac, NoRoom, Packet, Pause,
    Request, Response, Sequence,
};
use thiserror::Error;

use crate::retry::{Arrival, Responder, ResponderCounters};
use crate::slots::Storage;
use crate::translate::{MapError, Translation, Translator, TranslatorCounters};

pub use config::{Backpressure, MemoryConfig, MemoryConfigError};
use fifo::ReceiveFifo;
use in_flight::InFlight;

/// An access to the memory, for the world to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Its name, for [`MemoryNode::on_read`] or [`MemoryNode::on_written`].
    pub handle: AccessHandle,
    /// The line of the pool (MPMem).
    pub line: LineAddress,
    /// What to do.
    pub request: Request,
    /// Lines of the page table that were read before it: 0 for a TLB hit.
    pub table_reads: u8,
}

/// The name of an access that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessHandle(u32);

/// Why a compute node cannot be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AttachError {
    /// It is attached.
    #[error("compute node {0} is attached already")]
    Attached(Mac),
    /// There is no room for another one.
    #[error("{0} compute nodes are attached: no room for another one")]
    Full(usize),
    /// A station has no group address.
    #[error("compute node {0}: must be the address of one station")]
    Group(Mac),
}

/// Why a frame changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameDropped {
    /// It is no frame of the protocol, or some of its bits are wrong.
    #[error(transparent)]
    Fault(#[from] FrameFault),
    /// It is for another node.
    #[error("frame to {0}: is for another node")]
    NotForUs(Mac),
    /// It is from a compute node that is not attached.
    #[error("frame from {0}: is not attached")]
    Stranger(Mac),
    /// A compute node sends requests alone.
    #[error("a response came to a memory node")]
    Response,
    /// The receive FIFO is full. Retransmission makes up for it.
    #[error("receive FIFO of {0} entries is full")]
    Full(u32),
}

impl FrameDropped {
    fn place(self) -> usize {
        match self {
            FrameDropped::Fault(_) => 0,
            FrameDropped::NotForUs(_) => 1,
            FrameDropped::Stranger(_) => 2,
            FrameDropped::Response => 3,
            FrameDropped::Full(_) => 4,
        }
    }
}

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounters {
    /// Frames that were dropped, in the order of [`FrameDropped`].
    pub dropped: [u64; 5],
    /// Accesses that were begun.
    pub accesses: u64,
    /// Times that a request had to wait for another one to its line, or for a place.
    pub stalls: u64,
    /// Requests to lines that are not mapped.
    pub unmapped: u64,
    /// PFC frames that were sent.
    pub pauses: u64,
    /// Congestion packets that were sent.
    pub congestion: u64,
    /// Most entries of the receive FIFO that were in use at once.
    pub fifo_max: u32,
}

/// A compute node, as the memory node sees it.
#[derive(Clone, Debug)]
struct Peer {
    mac: Mac,
    responder: Responder,
    /// Where the next request goes, once that was looked up: it may have to wait there.
    head: Option<Translation>,
    /// Congestion packets that were sent to it, and whether one is due.
    congestion: u32,
    congestion_due: bool,
}

/// The memory node: packet manager, translator and memory.
#[derive(Clone, Debug)]
pub struct MemoryNode {
    config: MemoryConfig,
    peers: Vec<Option<Peer>>,
    translator: Translator,
    fifo: ReceiveFifo,
    in_flight: InFlight,
    /// The compute node whose turn it is to have a request executed, and to be sent a frame.
    issue_turn: usize,
    transmit_turn: usize,
    pause_due: bool,
    /// When the signal of congestion was given last.
    signalled: Option<Ps>,
    counters: MemoryCounters,
}

impl MemoryNode {
    /// A memory node without compute nodes. All its memory is reserved here, but that of
    /// [`MemoryNode::attach`].
    ///
    /// # Errors
    /// [`MemoryConfigError`].
    pub fn new(config: MemoryConfig) -> Result<MemoryNode, MemoryConfigError> {
        config.check()?;
        Ok(MemoryNode {
            config,
            peers: (0..config.peers_max).map(|_| None).collect(),
            translator: Translator::new(config.translator)?,
            fifo: ReceiveFifo::new(config.fifo_entries),
            in_flight: InFlight::new(config.accesses_max),
            issue_turn: 0,
            transmit_turn: 0,
            pause_due: false,
            signalled: None,
            counters: MemoryCounters::default(),
        })
    }

    /// Takes requests of a compute node, from this sequence number on.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach(&mut self, mac: Mac, initial: Sequence) -> Result<(), AttachError> {
        if mac.is_multicast() {
            return Err(AttachError::Group(mac));
        }
        if self.find(mac).is_some() {
            return Err(AttachError::Attached(mac));
        }
        let full = AttachError::Full(self.peers.len());
        let free = self.peers.iter_mut().find(|peer| peer.is_none()).ok_or(full)?;
        let MemoryConfig { window, retransmission, storage, .. } = self.config;
        let responder = Responder::new(window, retransmission, initial, storage);
        *free = Some(Peer { mac, responder, head: None, congestion: 0, congestion_due: false });
        Ok(())
    }

    /// Takes no more requests of a compute node. Accesses that are under way end without a
    /// response.
    pub fn detach(&mut self, mac: Mac) {
        if let Some(place) = self.find(mac) {
            self.peers[place] = None;
            self.in_flight.forget(place);
        }
    }

    /// Maps a page of a compute node's CMem to a page of the pool. With [`Storage::OnDemand`] the
    /// table grows when it is full.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn map(&mut self, mac: Mac, page: u64, frame: u64) -> Result<(), MapError> {
        loop {
            match self.translator.map(mac, page, frame) {
                Err(MapError::Full { .. }) if self.config.storage == Storage::OnDemand => {
                    self.translator.grow();
                }
                done => return done,
            }
        }
    }

    /// Ends the mapping of a page, and gives the page of the pool that it had.
    pub fn unmap(&mut self, mac: Mac, page: u64) -> Option<u64> {
        self.peers.iter_mut().flatten().for_each(|peer| peer.head = None);
        self.translator.unmap(mac, page)
    }

    fn find(&self, mac: Mac) -> Option<usize> {
        self.peers.iter().position(|peer| peer.as_ref().is_some_and(|peer| peer.mac == mac))
    }

    /// A frame has come, with its check sequence: it goes into the receive FIFO.
    ///
    /// # Errors
    /// [`FrameDropped`]: it changed nothing, and was counted.
    pub fn on_frame(&mut self, now: Ps, octets: &[u8]) -> Result<(), FrameDropped> {
        let taken = self.take_frame(octets);
        if let Err(dropped) = taken {
            self.counters.dropped[dropped.place()] += 1;
        }
        self.counters.fifo_max = self.counters.fifo_max.max(self.fifo.used());
        self.signal_congestion(now);
        taken
    }

    fn take_frame(&mut self, octets: &[u8]) -> Result<(), FrameDropped> {
        let frame = Frame::parse_with_fcs(octets)?;
        if frame.to != self.config.mac {
            return Err(FrameDropped::NotForUs(frame.to));
        }
        let peer = self.find(frame.from).ok_or(FrameDropped::Stranger(frame.from))?;
        let Packet::Request(packet) = frame.packet else { return Err(FrameDropped::Response) };
        let kept = self.fifo.push(peer as u32, frame.from, packet, frame.packet.octets());
        kept.then_some(()).ok_or(FrameDropped::Full(self.config.fifo_entries))
    }

    /// Takes a frame from the receive FIFO; the caller decides the pace. What became of it, or
    /// `None` if the FIFO is empty.
    pub fn drain(&mut self, now: Ps) -> Option<Arrival> {
        let (peer, mac, packet) = self.fifo.pop()?;
        self.signal_congestion(now);
        match self.peers.get_mut(peer as usize) {
            // Another one may have its place by now.
            Some(Some(peer)) if peer.mac == mac => Some(peer.responder.on_request(&packet)),
            _ => Some(Arrival::OutsideWindow),
        }
    }

    /// Entries of the receive FIFO in use.
    #[must_use]
    pub fn fifo_used(&self) -> u32 {
        self.fifo.used()
    }

    /// Signals congestion while the FIFO is above its threshold, once in each interval.
    fn signal_congestion(&mut self, now: Ps) {
        let is_due = |last: Ps| now >= last + self.config.signal_interval;
        if self.fifo.used() <= self.config.fifo_threshold || !self.signalled.is_none_or(is_due) {
            return;
        }
        self.signalled = Some(now);
        let (pauses, packets) = match self.config.backpressure {
            Backpressure::None => (false, false),
            Backpressure::Pfc => (true, false),
            Backpressure::Congestion => (false, true),
        };
        self.pause_due |= pauses;
        for peer in self.peers.iter_mut().flatten().filter(|_| packets) {
            peer.congestion_due = true;
        }
    }

    /// When congestion must be signalled again, if the FIFO stays above its threshold: call
    /// [`MemoryNode::on_timer`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Ps> {
        let is_above = self.fifo.used() > self.config.fifo_threshold;
        let last = self.signalled.filter(|_| is_above)?;
        Some(last + self.config.signal_interval)
    }

    /// Lets time pass.
    pub fn on_timer(&mut self, now: Ps) {
        self.signal_congestion(now);
    }

    /// The next access to the memory: each compute node's in the order of its requests. A request
    /// waits while another one to its line is under way, unless both read: AXI has no order between
    /// reads and writes.
    pub fn poll_access(&mut self) -> Option<Access> {
        let count = self.peers.len();
        for place in (self.issue_turn..self.issue_turn + count).map(|place| place % count.max(1)) {
            while let Some(step) = self.issue(place) {
                if let Some(access) = step {
                    self.issue_turn = (place + 1) % count;
                    return Some(access);
                }
            }
        }
        None
    }

    /// Executes the next request of a compute node: `None` if it has none, or must wait;
    /// `Some(None)` if it needed no access.
    fn issue(&mut self, place: usize) -> Option<Option<Access>> {
        let peer = self.peers[place].as_mut()?;
        let packet = *peer.responder.next_request()?;
        if self.in_flight.is_full() {
            self.counters.stalls += 1;
            return None;
        }
        let is_read = matches!(packet.request, Request::Read);
        let translate = || self.translator.translate(peer.mac, packet.line);
        let Translation { line, table_reads } = *peer.head.get_or_insert_with(translate);
        let Some(line) = line else {
            self.counters.unmapped += 1;
            peer.head = None;
            peer.responder.issue();
            peer.responder.complete(&packet, failed(is_read, Failure::Unmapped));
            return Some(None);
        };
        if self.in_flight.conflicts(line, !is_read) {
            self.counters.stalls += 1;
            return None;
        }
        peer.head = None;
        peer.responder.issue();
        let handle = AccessHandle(self.in_flight.begin(place, &packet, line));
        self.counters.accesses += 1;
        Some(Some(Access { handle, line, request: packet.request, table_reads }))
    }

    /// The memory has read a line, or has lost it.
    ///
    /// # Panics
    /// If the access is not a read that is under way: true of [`MemoryNode::on_written`] for
    /// writes.
    pub fn on_read(&mut self, handle: AccessHandle, data: Option<LineData>) {
        self.end(handle, Response::Read(data.ok_or(Failure::Poison)));
    }

    /// The memory has written a line.
    ///
    /// # Panics
    /// See [`MemoryNode::on_read`].
    pub fn on_written(&mut self, handle: AccessHandle) {
        self.end(handle, Response::Write(Ok(())));
    }

    fn end(&mut self, handle: AccessHandle, response: Response) {
        let ended = self.in_flight.end(handle.0);
        let is_read = matches!(ended.packet.request, Request::Read);
        assert_eq!(is_read, matches!(response, Response::Read(_)), "a read is answered as a read");
        if let Some(Some(peer)) = ended.peer.map(|place| &mut self.peers[place]) {
            peer.responder.complete(&ended.packet, response);
        }
    }

    /// Writes the next frame to a compute node, with its check sequence, and gives its octets.
    ///
    /// # Errors
    /// [`NoRoom`]; `into` must have 101 B, or the frame is lost.
    pub fn poll_transmit(&mut self, into: &mut [u8]) -> Result<Option<usize>, NoRoom> {
        let count = self.peers.len();
        let entries = self.fifo.used().min(u32::from(u16::MAX)) as u16;
        for place in (self.transmit_turn..self.transmit_turn + count).map(|at| at % count.max(1)) {
            let Some(peer) = &mut self.peers[place] else { continue };
            let packet = if peer.congestion_due {
                peer.congestion_due = false;
                peer.congestion = peer.congestion.wrapping_add(1);
                self.counters.congestion += 1;
                Some(Packet::Congestion(Congestion { number: peer.congestion, entries }))
            } else {
                peer.responder.poll_transmit()
            };
            let Some(packet) = packet else { continue };
            self.transmit_turn = (place + 1) % count;
            let frame = Frame { to: peer.mac, from: self.config.mac, packet };
            return frame.emit_with_fcs(into).map(Some);
        }
        Ok(None)
    }

    /// The PFC frame that is due, for the port at the other end of the link. It goes before all
    /// other frames.
    pub fn poll_pause(&mut self) -> Option<Pause> {
        let due = core::mem::take(&mut self.pause_due);
        self.counters.pauses += u64::from(due);
        let priority = usize::from(self.config.priority);
        due.then(|| Pause::of(self.config.mac, priority, self.config.pause_quanta))
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> MemoryCounters {
        self.counters
    }

    /// What the translator did.
    #[must_use]
    pub fn translator_counters(&self) -> TranslatorCounters {
        self.translator.counters()
    }

    /// What happened with a compute node's packets.
    #[must_use]
    pub fn responder_counters(&self, mac: Mac) -> Option<ResponderCounters> {
        let peer = self.peers[self.find(mac)?].as_ref()?;
        Some(peer.responder.counters())
    }
}

fn failed(is_read: bool, failure: Failure) -> Response {
    if is_read { Response::Read(Err(failure)) } else { Response::Write(Err(failure)) }
}
