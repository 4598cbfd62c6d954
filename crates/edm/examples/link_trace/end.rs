//! One end of a link, put together as a host port does, and what it did in a slot.

use std::collections::VecDeque;
use std::fmt;

use ethermem_edm::Arbitration;
use ethermem_edm::phy::{
    ENCODER_LATENCY_SLOTS, FaultSignal, LineBlock, LinkFaults, LinkSlot, MemorySource, RxCounters,
    RxEvent, RxExtractor, TxArbiter, Unit,
};
use ethermem_wire::{Block, Descrambler, EdmControl, Scrambler, SubType};

use crate::ethernet::Encoder;
use crate::messages::Units;

/// The RTL's scramblers begin so.
const FIRST_LINE: u64 = u64::MAX;

/// What comes in a slot.
#[derive(Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) line: LineBlock,
    pub(crate) signal: bool,
}

/// What the host or switch behind the end wants before the block is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) fail: bool,
    pub(crate) allow: bool,
}

pub(crate) struct End {
    faults: LinkFaults,
    receiver: RxExtractor,
    transmitter: TxArbiter,
    scrambler: Scrambler,
    descrambler: Descrambler,
    /// Blocks of the message that comes in.
    message: Vec<Block>,
    /// Whether the encoder was asked for a block, for the last slots.
    asked: VecDeque<bool>,
    pub(crate) encoder: Encoder,
    pub(crate) units: Units,
}

/// A block for the memory side.
#[derive(Clone, Copy)]
enum Memory {
    None,
    /// Begins a message, ends it, and how: 0 sound, 1 refused, 2 aborted.
    Block {
        first: bool,
        last: bool,
        ending: u8,
        block: Block,
    },
}

/// A slot, as a line of hexadecimal numbers. A block is its header and its payload.
pub(crate) struct Row {
    arrived: Arrived,
    wish: Wish,
    memory: Memory,
    decoder: Block,
    /// Bits: corrupt, fault of the other or no signal, started; then what the counters counted.
    events: u8,
    /// Bits: up, ready; from bit 8 on what was heard, from bit 16 on the own failure.
    state: u32,
    /// Whether the encoder answers, and its block.
    encoded: (bool, Option<Block>),
    /// What the memory side offers: of several blocks, the unit's last, the block.
    offered: Option<(bool, bool, Block)>,
    taken: bool,
    encoder_ready: bool,
    sent: LineBlock,
}

impl Row {
    pub(crate) fn line(&self) -> LineBlock {
        self.sent
    }
}

fn hex(line: LineBlock) -> String {
    format!("{:x} {:x}", line.sync, line.payload)
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bit = |set: bool, at: u32| u32::from(set) << at;
        let block = |block: Block| hex(LineBlock::from(block));
        let input = bit(self.arrived.signal, 0) | bit(self.wish.fail, 1) | bit(self.wish.allow, 2);
        let (memory, of_memory) = match self.memory {
            Memory::None => (0, Block::IDLE),
            Memory::Block { first, last, ending, block } => {
                (1 | bit(first, 1) | bit(last, 2) | u32::from(ending) << 3, block)
            }
        };
        let (answers, from_encoder) = self.encoded;
        let (offer, offered) = match self.offered {
            None => (0, Block::IDLE),
            Some((framed, last, block)) => (1 | bit(framed, 1) | bit(last, 2), block),
        };
        let out = bit(self.taken, 0) | bit(self.encoder_ready, 1);
        write!(f, "{input:x} {} ", hex(self.arrived.line))?;
        write!(f, "{memory:x} {} {} ", block(of_memory), block(self.decoder))?;
        write!(f, "{:x} {:x} ", self.events, self.state)?;
        write!(f, "{:x} {} ", u8::from(answers), block(from_encoder.unwrap_or(Block::IDLE)))?;
        write!(f, "{offer:x} {} {out:x} {}", block(offered), hex(self.sent))
    }
}

/// A memory side that notes whether its block was taken.
struct Noting<'a> {
    units: &'a mut Units,
    taken: bool,
}

impl MemorySource for Noting<'_> {
    fn head(&mut self) -> Option<Unit> {
        self.units.head()
    }

    fn take(&mut self) -> (Block, bool) {
        self.taken = true;
        self.units.take()
    }
}

impl Units {
    /// What goes next: whether it is of a unit of several blocks, and its last, and the block.
    fn peek(&self) -> Option<(bool, bool, Block)> {
        if let Some(&block) = self.open.front() {
            return Some((true, self.open.len() == 1, block));
        }
        let unit = self.singles.front().or_else(|| self.framed.front())?;
        Some((unit.len() > 1, unit.len() == 1, unit[0]))
    }
}

impl End {
    pub(crate) fn new(arbitration: Arbitration) -> End {
        End {
            faults: LinkFaults::new(),
            receiver: RxExtractor::new(),
            transmitter: TxArbiter::new(arbitration),
            scrambler: Scrambler::new(FIRST_LINE),
            descrambler: Descrambler::new(FIRST_LINE),
            message: Vec::new(),
            asked: VecDeque::from([false; ENCODER_LATENCY_SLOTS]),
            encoder: Encoder::default(),
            units: Units::default(),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.faults.is_up()
    }

    fn scrambled(&mut self, block: Block) -> LineBlock {
        let payload = self.scrambler.scramble(block.payload());
        LineBlock { sync: block.sync() as u8, payload }
    }

    /// What its fault says, or would say.
    pub(crate) fn signal(&self) -> FaultSignal {
        let none = FaultSignal { failure: 0, heard: 0, ready: false };
        self.faults.clone().transmit().and_then(FaultSignal::decode).unwrap_or(none)
    }

    fn disable(&mut self) {
        self.faults.fail();
        self.receiver.reset();
        self.units = Units::default();
    }

    /// One slot. `strange` goes out in place of whatever would.
    pub(crate) fn slot(&mut self, arrived: Arrived, wish: Wish, strange: Option<Block>) -> Row {
        let before = *self.receiver.counters();
        if wish.fail && self.is_up() {
            self.disable();
        }
        if wish.allow {
            self.faults.allow_start();
        }
        let payload = self.descrambler.descramble(arrived.line.payload);
        let line = LineBlock { sync: arrived.line.sync, payload };
        let received = self.faults.receive(arrived.signal.then_some(line));
        let (memory, decoder, found) = match received {
            LinkSlot::Up(line) => self.receive(line),
            LinkSlot::Failed => {
                self.disable();
                (self.abort(), Block::IDLE, 2)
            }
            LinkSlot::Started => (Memory::None, Block::IDLE, 4),
            LinkSlot::Down => (self.abort(), Block::IDLE, 0),
        };
        let events = found | counted(&before, self.receiver.counters());
        let up = self.is_up();
        let FaultSignal { failure, heard, ready } = self.signal();
        let state = u32::from(up)
            | u32::from(ready) << 1
            | u32::from(heard) << 8
            | u32::from(failure) << 16;
        let answers = self.asked.pop_front().expect("a latency is kept");
        let from_encoder = self.encoder.arrive();
        let offered = if up { self.units.peek() } else { None };
        let (line, taken, encoder_ready) = self.transmit(from_encoder);
        self.asked.push_back(encoder_ready);
        self.encoder.hear(encoder_ready);
        let sent = self.scrambled(strange.unwrap_or(line));
        Row {
            arrived,
            wish,
            memory,
            decoder,
            events,
            state,
            encoded: (answers, from_encoder),
            offered,
            taken,
            encoder_ready,
            sent,
        }
    }

    fn transmit(&mut self, from_encoder: Option<Block>) -> (Block, bool, bool) {
        if let Some(line) = self.faults.transmit() {
            let slot = self.transmitter.slot_without(from_encoder, line);
            return (slot.line, false, slot.encoder_ready);
        }
        let mut memory = Noting { units: &mut self.units, taken: false };
        let slot = self.transmitter.slot(from_encoder, &mut memory);
        (slot.line, memory.taken, slot.encoder_ready)
    }

    /// A block of a link that is up: for the memory side, for the decoder, whether it is corrupt.
    fn receive(&mut self, line: LineBlock) -> (Memory, Block, u8) {
        let aborted = self.receiver.counters().messages_aborted;
        let block = Block::from_line(line.sync, line.payload).unwrap_or(Block::IDLE);
        let first = self.message.is_empty();
        let slot = self.receiver.slot(line.sync, line.payload);
        let decoder = slot.decoder;
        let ending = match slot.event {
            RxEvent::None => None,
            RxEvent::Message(message) => {
                let blocks = self.message.iter().copied().chain([block]);
                assert!(blocks.eq(message.blocks()), "other blocks than the message's");
                Some(0)
            }
            RxEvent::Refused(_) => Some(1),
            RxEvent::RemoteFault => unreachable!("faults were taken before"),
            RxEvent::Corrupt(_) => {
                self.disable();
                return (self.abort(), Block::IDLE, 1);
            }
        };
        if let Some(ending) = ending {
            self.message.clear();
            return (Memory::Block { first, last: true, ending, block }, decoder, 0);
        }
        if self.receiver.counters().messages_aborted > aborted {
            return (self.abort(), decoder, 0);
        }
        let starts = EdmControl::decode(block).is_ok_and(|it| it.sub_type() == SubType::Start);
        if first && !starts {
            return (Memory::None, decoder, 0);
        }
        self.message.push(block);
        (Memory::Block { first, last: false, ending: 0, block }, decoder, 0)
    }

    /// The message under way, if there is one, ends without its end.
    fn abort(&mut self) -> Memory {
        if self.message.is_empty() {
            return Memory::None;
        }
        self.message.clear();
        Memory::Block { first: false, last: true, ending: 2, block: Block::IDLE }
    }
}

/// The counters that moved, from bit 3 on.
fn counted(before: &RxCounters, after: &RxCounters) -> u8 {
    let moved = [
        after.messages_aborted - before.messages_aborted,
        after.frames_aborted - before.frames_aborted,
        after.frames_too_long - before.frames_too_long,
        after.frames_corrupt - before.frames_corrupt,
    ];
    assert!(moved.iter().all(|&count| count < 2), "a slot counts once");
    moved.iter().enumerate().fold(0, |bits, (index, &count)| bits | (count as u8) << (3 + index))
}
