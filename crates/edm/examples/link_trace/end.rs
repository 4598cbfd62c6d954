//! One end of a link, assembled as in a host port, and a record of what it did in each slot.

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

/// The scramblers of the RTL start from this state.
const FIRST_LINE: u64 = u64::MAX;

/// The block that arrives in a slot.
#[derive(Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) line: LineBlock,
    pub(crate) signal: bool,
}

/// What the host or switch behind the end requests before the block is processed.
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
    /// Blocks of the message that is being received.
    message: Vec<Block>,
    /// For each of the last slots: true if the encoder was asked for a block.
    asked: VecDeque<bool>,
    pub(crate) encoder: Encoder,
    pub(crate) units: Units,
}

/// A block for the memory side.
#[derive(Clone, Copy)]
enum Memory {
    None,
    /// A block that may begin or end its message. At the end, `ending` is 0 for valid, 1 for
    /// refused and 2 for aborted.
    Block {
        first: bool,
        last: bool,
        ending: u8,
        block: Block,
    },
}

/// A slot as a line of hexadecimal numbers. A block is printed as its header and its payload.
pub(crate) struct Row {
    arrived: Arrived,
    wish: Wish,
    memory: Memory,
    decoder: Block,
    /// Bits: corrupt, remote fault or no signal, started. The bits above tell which counters moved.
    events: u8,
    /// Bits: up, ready. From bit 8: the peer's failure number that was heard. From bit 16: this
    /// end's failure number.
    state: u32,
    /// True if the encoder answers, and its block.
    encoded: (bool, Option<Block>),
    /// What the memory side offers: whether its unit has several blocks, whether this is the unit's
    /// last block, and the block.
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

/// A memory side that records whether its block was taken.
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
    /// The next block: whether its unit has several blocks, whether it is the unit's last block,
    /// and the block.
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

    /// The fault signal that this end sends, or would send.
    pub(crate) fn signal(&self) -> FaultSignal {
        let none = FaultSignal { failure: 0, heard: 0, ready: false };
        self.faults.clone().transmit().and_then(FaultSignal::decode).unwrap_or(none)
    }

    fn disable(&mut self) {
        self.faults.fail();
        self.receiver.reset();
        self.units = Units::default();
    }

    /// Runs one slot. A `strange` block is sent in place of the normal one.
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

    /// Receives a block on a link that is up. Returns a block for the memory side, a block for the
    /// decoder, and the event bits.
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

    /// Ends the message in progress, if there is one, without its /MT/.
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
