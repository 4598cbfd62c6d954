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

#[cfg(test)]
mod tests {
    use super::*;

    /// What the peer's signals say here: that this is its ninth failure.
    const PEERS: u8 = 9;

    fn signal(failure: u8, heard: u8, ready: bool) -> Option<LineBlock> {
        Some(LineBlock::from(FaultSignal { failure, heard, ready }.block()))
    }

    fn idle() -> Option<LineBlock> {
        Some(LineBlock::from(Block::IDLE))
    }

    /// As often as it takes to be taken.
    fn hear(link: &mut LinkFaults, line: Option<LineBlock>) {
        for _ in 0..SIGNAL_REPEATS {
            link.receive(line);
        }
    }

    /// What it says of itself: its failure, the peer's that it heard of, whether it is ready.
    fn says(link: &mut LinkFaults) -> (u8, u8, bool) {
        let block = link.transmit().expect("it is down");
        let FaultSignal { failure, heard, ready } = FaultSignal::decode(block).expect("a fault");
        (failure, heard, ready)
    }

    fn failed() -> LinkFaults {
        let mut link = LinkFaults::new();
        link.fail();
        link
    }

    /// Up again after its first failure.
    fn started() -> LinkFaults {
        let mut link = failed();
        link.allow_start();
        hear(&mut link, signal(PEERS, 1, true));
        assert!(link.is_up());
        link
    }

    #[test]
    fn only_its_own_number_answers_it() {
        let mut link = failed();
        link.allow_start();
        for line in [signal(PEERS, 2, true), signal(PEERS, 0, true), signal(0, 1, true), idle()] {
            hear(&mut link, line);
            assert!(!link.is_up() && !says(&mut link).2, "{line:?}");
        }
        hear(&mut link, signal(PEERS, 1, false));
        assert_eq!(says(&mut link), (1, PEERS, true));
        hear(&mut link, idle());
        assert!(link.is_up());
    }

    #[test]
    fn a_signal_counts_when_it_came_three_times_in_a_row() {
        let mut link = failed();
        for _ in 0..SIGNAL_REPEATS - 1 {
            link.receive(signal(PEERS, 1, false));
        }
        link.receive(signal(PEERS + 1, 1, false));
        assert_eq!(says(&mut link), (1, 0, false));
        hear(&mut link, signal(PEERS, 1, false));
        assert_eq!(says(&mut link), (1, PEERS, false));
    }

    #[test]
    fn what_is_no_signal_after_the_answer_is_another_failure() {
        let mut link = failed();
        hear(&mut link, signal(PEERS, 1, false));
        link.receive(Some(LineBlock { sync: 0b01, payload: 7 }));
        assert_eq!(says(&mut link), (2, 0, false), "nothing of before counts");
    }

    #[test]
    fn signals_of_this_start_are_no_news_and_all_others_are_failures() {
        let receive = |line| started().receive(line);
        let none = LinkSlot::Up(LineBlock::from(Block::IDLE));
        assert_eq!(receive(signal(PEERS, 1, true)), none);
        let news =
            [signal(PEERS, 1, false), signal(PEERS + 1, 1, true), signal(PEERS, 2, true), None];
        for line in news {
            assert_eq!(receive(line), LinkSlot::Failed, "{line:?}");
        }
        assert_eq!(LinkFaults::new().receive(signal(0, 0, true)), LinkSlot::Failed);
    }

    #[test]
    fn no_failure_has_the_number_that_says_none() {
        let mut link = failed();
        for failure in (1..=u8::MAX).chain(1..=3) {
            assert_eq!(says(&mut link).0, failure);
            link.allow_start();
            hear(&mut link, signal(PEERS, failure, true));
            assert!(link.is_up());
            link.fail();
            assert!(!says(&mut link).2, "one permission is for one start");
            hear(&mut link, signal(PEERS, failure.checked_add(1).unwrap_or(1), true));
            assert!(!link.is_up());
        }
    }
}
