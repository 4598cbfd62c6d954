//! Whether a link carries anything, and how it starts anew: link fault signalling.

use ethermem_wire::Block;

use super::signal::{FaultSignal, LOCAL_FAULT, LineBlock};

/// A signal counts once it came so often in a row, with nothing in between: the errors of one event
/// touch two blocks, and no two alike.
pub const SIGNAL_REPEATS: u32 = 3;

/// Idles that an end sends before anything else once it is up: one more than its peer must see.
pub const FIRST_IDLES: u32 = SIGNAL_REPEATS + 1;

/// What a slot's block means for the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSlot {
    /// It is down. What came is not to be looked at.
    Down,
    /// It came up with this block: all that comes from now on is of the new start.
    Started,
    /// It is up, and the block is to be received.
    Up(LineBlock),
    /// It was up, and has failed: all that was under way is to be dropped.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    /// Sends its fault, with what it knows of its peer.
    Down,
}

/// One end of a link.
///
/// An end that fails drops what it had and sends a remote fault, as clause 46.3.4 has it, with the
/// number of this failure and the number of the peer's that it last heard of. Who hears its own
/// number knows that the peer was down after it went down itself, so nothing that comes behind is
/// of before. Once it is allowed to, it says so (*ready*); the link is up for an end that hears its
/// own number and *ready*, or, being ready, idles. `docs/internals/edm-faults.md` has the rules.
#[derive(Clone, Debug)]
pub struct LinkFaults {
    state: State,
    /// Number of this end's last failure; 0 is none.
    failure: u8,
    /// The peer's last failure that was heard of since then.
    heard: u8,
    /// The peer has heard of this end's last failure: both are, or were, down together.
    answered: bool,
    /// May start anew.
    allowed: bool,
    /// What came last, and how often in a row.
    last: Option<Block>,
    repeats: u32,
    /// Idles still to be sent first.
    idles: u32,
}

impl Default for LinkFaults {
    fn default() -> LinkFaults {
        LinkFaults::new()
    }
}

impl LinkFaults {
    /// An end that is up.
    #[must_use]
    pub const fn new() -> LinkFaults {
        LinkFaults {
            state: State::Up,
            failure: 0,
            heard: 0,
            answered: false,
            allowed: false,
            last: None,
            repeats: 0,
            idles: 0,
        }
    }

    /// Whether the link carries messages and frames.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Disables the link, until it is allowed to start anew.
    pub fn fail(&mut self) {
        if self.is_up() {
            self.state = State::Down;
            self.allowed = false;
            self.forget_peer();
        }
    }

    /// A link that is down may start anew, and goes on trying until it has.
    pub fn allow_start(&mut self) {
        self.allowed |= !self.is_up();
    }

    /// Another failure, as far as the peer is concerned: what it answered to the last one is void.
    fn forget_peer(&mut self) {
        self.failure = if self.failure == u8::MAX { 1 } else { self.failure + 1 };
        self.heard = 0;
        self.answered = false;
        self.last = None;
        self.repeats = 0;
    }

    /// What came in a slot, `None` without a signal. A local fault that the PHY reports is none.
    pub fn receive(&mut self, arrived: Option<LineBlock>) -> LinkSlot {
        let arrived = arrived.filter(|&line| line != LineBlock::from(LOCAL_FAULT));
        let block = arrived.and_then(|line| Block::from_line(line.sync, line.payload).ok());
        if self.is_up() {
            let signal = block.and_then(FaultSignal::decode);
            return match arrived {
                Some(_) if signal.is_some_and(|signal| self.is_of_this_start(signal)) => {
                    LinkSlot::Up(LineBlock::from(Block::IDLE))
                }
                Some(line) if signal.is_none() => LinkSlot::Up(line),
                _ => {
                    self.fail();
                    LinkSlot::Failed
                }
            };
        }
        self.receive_down(block);
        if self.is_up() { LinkSlot::Started } else { LinkSlot::Down }
    }

    /// The peer is about to follow: it sent this before it heard that this end is up.
    fn is_of_this_start(&self, signal: FaultSignal) -> bool {
        let FaultSignal { failure, heard, ready } = signal;
        ready && self.failure != 0 && (failure, heard) == (self.heard, self.failure)
    }

    fn receive_down(&mut self, block: Option<Block>) {
        let signal = block.and_then(FaultSignal::decode);
        let idle = block == Some(Block::IDLE);
        if signal.is_none() && !idle {
            // From a peer that has answered, this was its fault, its first idle or its first
            // message before an error; it may take the link for up.
            if self.answered {
                self.forget_peer();
            }
            self.last = None;
            return;
        }
        self.repeats = if self.last == block { self.repeats + 1 } else { 1 };
        self.last = block;
        if self.repeats < SIGNAL_REPEATS {
            return;
        }
        let peer_is_ready = match signal {
            Some(FaultSignal { failure, heard, ready }) => {
                self.heard = failure;
                self.answered = failure != 0 && heard == self.failure;
                ready
            }
            // It was ready, heard that this end is, and is up.
            None => true,
        };
        if self.answered && self.allowed && peer_is_ready {
            self.state = State::Up;
            self.allowed = false;
            self.idles = FIRST_IDLES;
        }
    }

    /// What this slot carries in place of messages and frames; `None` when these may be sent.
    pub fn transmit(&mut self) -> Option<Block> {
        if !self.is_up() {
            let LinkFaults { failure, heard, .. } = *self;
            let ready = self.answered && self.allowed;
            return Some(FaultSignal { failure, heard, ready }.block());
        }
        let idle = self.idles > 0;
        self.idles -= u32::from(idle);
        idle.then_some(Block::IDLE)
    }
}
