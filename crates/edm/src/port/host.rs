//! A node on its links.

use std::collections::VecDeque;

use ethermem_units::{Bytes, Ps};
use ethermem_wire as wire;
use wire::{Block, Message};

use crate::memory::Memory;
use crate::message::{
    Action, Address, Chunk, Event, MemoryRequest, MessageId, Op, Outbound, Request, StatusCode,
    SubmitError, Token, WriteKind,
};
use crate::phy::{
    LineBlock, LinkFaults, LinkSlot, MemorySource, RxEvent, RxExtractor, TxArbiter, Unit,
};
use crate::redundancy::{Interface, MirroredConfig, MirroredHost, Streams, Transmit};

use super::convert;
use super::responses::Responses;

/// Blocks of the longest unit that a host sends: an acknowledged write of the largest chunk.
const UNIT_BLOCKS_MAX: usize = 1024 / 8 + 3;

/// The caller's memory: the data of writes until they end, and the destination of reads.
pub trait Buffers {
    /// Bytes `offset` to `offset + bytes` of the data of the write with this token.
    fn write_data(&self, token: Token, offset: Bytes, bytes: Bytes) -> &[u8];

    /// Takes a part of the response to the read or RMW with this token.
    fn deliver(&mut self, token: Token, offset: Bytes, data: &[u8]);
}

/// The parameters of a host port.
#[derive(Clone, Copy, Debug)]
pub struct HostPortConfig<'a> {
    /// The node and its network. Chunks must have at least [`super::chunk_bytes_min`].
    pub host: MirroredConfig<'a>,
    /// Longest read that is served, in bytes: each read that can be open has a buffer of this size.
    pub read_bytes_max: usize,
}

/// The output of one slot of one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSlot {
    /// The block for the scrambler.
    pub line: Block,
    /// The block for the decoder.
    pub decoder: Block,
    /// True if the encoder may produce a block; see [`crate::phy::TxSlot::encoder_ready`].
    pub encoder_ready: bool,
}

/// A node: host stack, memory, and both edges of the link of each interface.
#[derive(Debug)]
pub struct HostPort<B> {
    host: MirroredHost,
    chunk_bytes: Bytes,
    posted: bool,
    memory: Memory<B>,
    responses: Responses,
    links: Vec<Link>,
}

#[derive(Debug)]
struct Link {
    faults: LinkFaults,
    transmitter: TxArbiter,
    receiver: RxExtractor,
    /// The rest of the unit that goes out.
    unit: VecDeque<Block>,
}

impl Link {
    /// Drops what was in progress in both directions, and disables the link.
    fn disable(&mut self) {
        self.faults.fail();
        self.receiver.reset();
        self.unit.clear();
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> HostPort<B> {
    /// A node without requests, whose memory is `memory`.
    ///
    /// # Panics
    /// If the configuration is out of the ranges that its types state.
    #[must_use]
    pub fn new(config: HostPortConfig<'_>, memory: B) -> HostPort<B> {
        let MirroredConfig { nodes, edm, interfaces, .. } = config.host;
        let chunk_bytes = edm.chunk;
        assert!(chunk_bytes >= convert::chunk_bytes_min(), "chunks of {} B", chunk_bytes.0);
        let link = || Link {
            faults: LinkFaults::new(),
            transmitter: TxArbiter::new(edm.arbitration),
            receiver: RxExtractor::new(),
            unit: VecDeque::with_capacity(UNIT_BLOCKS_MAX),
        };
        HostPort {
            host: MirroredHost::new(config.host),
            chunk_bytes,
            posted: interfaces == 1,
            memory: Memory::new(memory),
            responses: Responses::new(nodes, edm.notifications_max, config.read_bytes_max),
            links: (0..interfaces).map(|_| link()).collect(),
        }
    }

    /// The host stack.
    #[must_use]
    pub const fn host(&self) -> &MirroredHost {
        &self.host
    }

    /// The node's memory.
    #[must_use]
    pub const fn memory(&self) -> &Memory<B> {
        &self.memory
    }

    /// Accepts a request; see [`MirroredHost::submit`]. A posted write to an address above 40 bits
    /// becomes an acknowledged one.
    ///
    /// # Errors
    /// [`SubmitError`]; the host then keeps nothing of the request.
    pub fn submit(&mut self, now: Ps, mut request: Request) -> Result<(), SubmitError> {
        if let Op::Write { bytes, kind } = &mut request.op {
            let end = request.address.0.saturating_add(bytes.0);
            if wire::Address40::new(end).is_err() {
                *kind = WriteKind::Acknowledged;
            }
        }
        self.host.submit(now, request)
    }

    /// The result of the next ended request.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.host.poll_event()
    }

    /// Runs one slot of one link. It takes what arrived, `None` for a link without signal, and what
    /// the encoder produced; see [`TxArbiter::slot`]. On a corrupt, faulty or dead link, what was
    /// in flight ends with an error or goes on by the other link. This end then sends a remote
    /// fault.
    pub fn slot(
        &mut self,
        now: Ps,
        interface: Interface,
        arrived: Option<LineBlock>,
        from_encoder: Option<Block>,
        buffers: &mut impl Buffers,
    ) -> PortSlot {
        if self.host.next_timeout().is_some_and(|at| at <= now) {
            self.host.on_timer(now);
        }
        let decoder = self.receive(now, interface, arrived, buffers);
        let HostPort { host, chunk_bytes, responses, links, .. } = self;
        let link = &mut links[usize::from(interface.0)];
        if !host.is_up(interface) && link.faults.is_up() {
            link.disable();
        }
        if let Some(line) = link.faults.transmit() {
            let slot = link.transmitter.slot_without(from_encoder, line);
            return PortSlot { line, decoder, encoder_ready: slot.encoder_ready };
        }
        let mut source = Source {
            now,
            interface,
            host,
            chunk_bytes: *chunk_bytes,
            responses,
            unit: &mut link.unit,
            buffers,
        };
        let slot = link.transmitter.slot(from_encoder, &mut source);
        PortSlot { line: slot.line, decoder, encoder_ready: slot.encoder_ready }
    }

    /// Lets a failed link restart as soon as its other end may, too; see [`LinkFaults`].
    pub fn restore(&mut self, interface: Interface) {
        if !self.host.is_up(interface) {
            let link = &mut self.links[usize::from(interface.0)];
            link.disable();
            link.faults.allow_start();
        }
    }

    fn receive(
        &mut self,
        now: Ps,
        interface: Interface,
        arrived: Option<LineBlock>,
        buffers: &mut impl Buffers,
    ) -> Block {
        let HostPort { host, chunk_bytes, posted, memory, responses, links } = self;
        let link = &mut links[usize::from(interface.0)];
        if !host.is_up(interface) && link.faults.is_up() {
            link.disable();
        }
        let LineBlock { sync, payload } = match link.faults.receive(arrived) {
            LinkSlot::Up(line) => line,
            LinkSlot::Down => return Block::IDLE,
            LinkSlot::Started => {
                // Nothing from before the failure may leave by the link.
                while host.poll_outbound(now, interface).is_some() {}
                host.restore_interface(interface);
                return Block::IDLE;
            }
            LinkSlot::Failed => {
                link.disable();
                host.fail_interface(now, interface);
                return Block::IDLE;
            }
        };
        let slot = link.receiver.slot(sync, payload);
        let mut arrival = Arrival {
            now,
            interface,
            host,
            chunk_bytes: *chunk_bytes,
            posted: *posted,
            memory,
            responses,
            buffers,
        };
        let decoder = slot.decoder;
        let sound = match slot.event {
            RxEvent::None | RxEvent::Refused(_) => true,
            RxEvent::Message(message) => {
                arrival.take(message);
                true
            }
            RxEvent::RemoteFault | RxEvent::Corrupt(_) => false,
        };
        if !sound {
            link.disable();
            host.fail_interface(now, interface);
            return Block::IDLE;
        }
        decoder
    }
}

/// The parts of a node that an arriving message passes through.
struct Arrival<'a, B, U> {
    now: Ps,
    interface: Interface,
    host: &'a mut MirroredHost,
    chunk_bytes: Bytes,
    /// True if posted writes are accepted. They carry no id, so duplicates cannot be detected: only
    /// a node with one switch takes them.
    posted: bool,
    memory: &'a mut Memory<B>,
    responses: &'a mut Responses,
    buffers: &'a mut U,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>, U: Buffers> Arrival<'_, B, U> {
    fn take(&mut self, message: Message<'_>) {
        let (now, interface) = (self.now, self.interface);
        match message {
            Message::Grant(grant) => {
                if let Some(grant) = convert::from_grant(&grant) {
                    self.host.on_grant(now, interface, grant);
                }
            }
            Message::ReadRequest(request) => self.request(convert::read_request(&request)),
            Message::RmwRequest(request) => self.request(convert::rmw_request(&request)),
            Message::ReadResponse(response) => {
                let chunk = convert::from_response(&response, self.chunk_bytes);
                self.chunk(chunk, response.data.bytes());
            }
            Message::AcknowledgedWrite(write) => {
                let chunk = convert::from_write(&write, self.chunk_bytes);
                self.chunk(chunk, write.data.bytes());
            }
            Message::PostedWrite(write) => {
                if self.posted {
                    // The writer of a posted write does not wait for a refusal.
                    let address = Address(write.address.number());
                    let _refused = self.memory.write(address, write.data.bytes());
                }
            }
            Message::Status(status) if status.opcode.bits() == convert::PEER_DOWN_OPCODE => {
                match status.code {
                    StatusCode::LinkDisabled => self.host.fail_peer(now, interface, status.peer),
                    StatusCode::Ok => self.host.restore_peer(interface, status.peer),
                    convert::STREAMS => {
                        let streams = Streams::from_bits(status.id.0);
                        self.host.on_streams(interface, status.peer, streams);
                    }
                    _ => {}
                }
            }
            Message::Status(status) => {
                self.host.on_status(now, interface, convert::from_status(&status));
            }
            // Only a switch handles notifications.
            Message::Notification(_) => {}
        }
    }

    fn request(&mut self, request: MemoryRequest) {
        let Some(Action::Serve(request)) = self.host.on_request(self.now, self.interface, request)
        else {
            return;
        };
        let MemoryRequest { peer, id, address, bytes, modify } = request;
        let kept = match modify {
            Some(modify) => self
                .memory
                .modify(address, modify)
                .map(|modified| self.responses.keep(peer, id, &modified.old.to_le_bytes())),
            None => self
                .memory
                .read(address, bytes.0 as usize)
                .map(|data| self.responses.keep(peer, id, data)),
        };
        match kept {
            Ok(true) => {}
            Ok(false) => self.host.refuse(peer, id, StatusCode::Overloaded),
            Err(error) => self.host.refuse(peer, id, error.into()),
        }
    }

    fn chunk(&mut self, chunk: Chunk, data: &[u8]) {
        match self.host.on_chunk(self.now, self.interface, chunk) {
            Some(Action::Store(chunk)) => {
                let written = self.memory.write(chunk.address, data);
                let code = written.map_or_else(StatusCode::from, |()| StatusCode::Ok);
                self.host.on_written(self.now, self.interface, &chunk, code);
            }
            Some(Action::Deliver { token, offset, .. }) => {
                self.buffers.deliver(token, offset, data);
            }
            Some(Action::Serve(_)) | None => {}
        }
    }
}

/// The memory side of a host's transmitter: it polls the host when the last unit has left.
struct Source<'a, U> {
    now: Ps,
    interface: Interface,
    host: &'a mut MirroredHost,
    chunk_bytes: Bytes,
    responses: &'a Responses,
    unit: &'a mut VecDeque<Block>,
    buffers: &'a U,
}

impl<U: Buffers> Source<'_, U> {
    fn load(&mut self, transmit: Transmit) {
        let message = match transmit {
            Transmit::Unused { peer, id } => convert::link_status(peer, id, StatusCode::Null),
            Transmit::Heard { peer } => {
                convert::link_status(peer, MessageId(0), StatusCode::LinkDisabled)
            }
            Transmit::Streams { peer, streams } => convert::streams(peer, streams),
            Transmit::Message(Outbound::Request(request)) => {
                convert::request(&request).expect("checked at submission")
            }
            Transmit::Message(Outbound::Notify(notification)) => {
                convert::notification(&notification, WriteKind::Acknowledged)
            }
            Transmit::Message(Outbound::Status(status)) => convert::status(&status),
            Transmit::Message(Outbound::Chunk { chunk, token }) => {
                let data = match token {
                    Some(token) => self.buffers.write_data(token, chunk.offset, chunk.bytes),
                    None => {
                        let (offset, bytes) = (chunk.offset.0 as usize, chunk.bytes.0 as usize);
                        self.responses.part(chunk.peer, chunk.id, offset, bytes)
                    }
                };
                convert::chunk(self.host.node(), &chunk, self.chunk_bytes, data)
            }
        };
        self.unit.extend(message.blocks());
    }
}

impl<U: Buffers> MemorySource for Source<'_, U> {
    fn head(&mut self) -> Option<Unit> {
        if self.unit.is_empty() {
            let transmit = self.host.poll_outbound(self.now, self.interface)?;
            self.load(transmit);
        }
        Some(if self.unit.len() == 1 { Unit::Single } else { Unit::Framed })
    }

    fn take(&mut self) -> (Block, bool) {
        let block = self.unit.pop_front().expect("a unit was named");
        (block, self.unit.is_empty())
    }
}
