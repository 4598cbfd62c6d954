//! The transactions of messages: CXL.mem, in slots (CXL 2.0, 3.3 and 4.2).

use ethermem_engine::engine::Handle;
use ethermem_units::Bytes;
use ethermem_workload::{Kind, LinkBlocks, Message, NodeIndex};

use super::Order;
use super::link::Flit;

/// Bytes of a cache line, the unit of all transfers.
pub(super) const LINE_BYTES: u64 = 64;
/// Number of slots of a line: a header and four of 16 B.
pub(super) const LINE_SLOTS: u64 = 5;
const LINE_DATA_SLOTS: u64 = 4;
/// Most lines of a short message: as many as share a request's flit.
const SHORT_LINES: u32 = 4;
/// Number of additional slots of a partly written line: its byte enables.
const BYTE_ENABLE_SLOTS: u64 = 1;
/// Number of slots of a request's header; an atomic brings an operand.
const REQUEST_SLOTS: u64 = 1;
const ATOMIC_SLOTS: u64 = 2;

/// The rest of a message.
pub(super) struct Flow {
    /// Its number among all flows of the network: handles are used again.
    serial: u64,
    pub(super) compute: NodeIndex,
    pub(super) memory: NodeIndex,
    kind: Kind,
    /// True if the last line is not whole.
    partial: bool,
    piece: Piece,
    /// Number of lines to be requested, at the compute node.
    requests: u32,
    /// Number of lines of data to be sent, at their source.
    pub(super) ready: u32,
    /// Number of lines that have not arrived.
    pub(super) missing: u32,
}

/// A class of messages that CXL.mem may give credits of its own (CXL 2.0, 3.3). Completions without
/// data (S2M NDR) are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// M2S Req.
    Request,
    /// M2S RwD: writes, and atomics for their operand.
    Write,
    /// S2M DRS.
    Response,
}

/// What of a message passes a port before another message has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A line, or an entry of requests.
    Line,
    /// All of a short message. Only long ones take turns with it, line by line.
    Short,
    /// All of a long message. Only short ones take turns with it.
    Long,
}

/// A message's turn at its node.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) handle: Handle,
    pub(super) class: Class,
    /// True if it sends lines of data; false if it sends requests.
    pub(super) is_data: bool,
    pub(super) piece: Piece,
}

/// The content of a buffer entry.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) handle: Handle,
    /// The number of its flow.
    pub(super) serial: u64,
    pub(super) to: NodeIndex,
    pub(super) slots: u8,
    pub(super) data_slots: u8,
    /// Number of lines requested; 0 for a line of data.
    pub(super) requests: u8,
    pub(super) piece: Piece,
}

fn lines(bytes: Bytes) -> u64 {
    bytes.0.div_ceil(LINE_BYTES)
}

impl Flow {
    pub(super) fn of(message: &Message, order: Order, serial: u64) -> Flow {
        let lines = lines(message.bytes) as u32;
        let write = message.kind == Kind::Write;
        Flow {
            serial,
            compute: message.compute,
            memory: message.memory,
            kind: message.kind,
            partial: !message.bytes.0.is_multiple_of(LINE_BYTES),
            piece: match order {
                Order::InTurn => Piece::Line,
                Order::Whole if lines <= SHORT_LINES => Piece::Short,
                Order::Whole => Piece::Long,
            },
            requests: if write { 0 } else { lines },
            ready: if write { lines } else { 0 },
            missing: lines,
        }
    }

    /// The message's turn: at its compute node first, and at its memory to answer.
    pub(super) fn turn(&self, handle: Handle, answers: bool) -> Turn {
        let class = match self.kind {
            _ if answers => Class::Response,
            Kind::Read => Class::Request,
            Kind::Write | Kind::ReadModifyWrite => Class::Write,
        };
        let is_data = answers || self.kind == Kind::Write;
        Turn { handle, class, is_data, piece: self.piece }
    }

    /// The next requests, at most `most` in their entry, and whether more are left.
    pub(super) fn request(&mut self, handle: Handle, most: u32) -> (Entry, bool) {
        let lines = self.requests.min(most);
        self.requests -= lines;
        let slots = match self.kind {
            Kind::ReadModifyWrite => ATOMIC_SLOTS,
            Kind::Read | Kind::Write => u64::from(lines) * REQUEST_SLOTS,
        };
        let entry = Entry {
            handle,
            serial: self.serial,
            to: self.memory,
            slots: slots as u8,
            data_slots: 0,
            requests: lines as u8,
            piece: self.piece,
        };
        (entry, self.requests > 0)
    }

    /// The next line of data, and whether another is ready.
    pub(super) fn data(&mut self, handle: Handle) -> (Entry, bool) {
        self.ready -= 1;
        let write = self.kind == Kind::Write;
        let masked = write && self.partial && self.ready == 0;
        let slots = LINE_SLOTS + if masked { BYTE_ENABLE_SLOTS } else { 0 };
        let entry = Entry {
            handle,
            serial: self.serial,
            to: if write { self.memory } else { self.compute },
            slots: slots as u8,
            data_slots: LINE_DATA_SLOTS as u8,
            requests: 0,
            piece: self.piece,
        };
        (entry, self.ready > 0)
    }
}

/// Number of 64-bit blocks that a message takes on its links, excluding the empty slots of flits.
pub(super) fn blocks(flit: Flit, kind: Kind, bytes: Bytes) -> LinkBlocks {
    let blocks = |slots: u64| slots as f64 * flit.blocks() / flit.slots() as f64;
    let lines = lines(bytes);
    let partial = kind == Kind::Write && !bytes.0.is_multiple_of(LINE_BYTES);
    let data = LINE_SLOTS * lines + if partial { BYTE_ENABLE_SLOTS } else { 0 };
    let request = if kind == Kind::ReadModifyWrite { ATOMIC_SLOTS } else { REQUEST_SLOTS * lines };
    LinkBlocks::unscheduled(kind, blocks(request), blocks(data))
}
