//! The state of a link and its restart: link fault signalling.

use ethermem_wire::Block;

use super::signal::{FaultSignal, LOCAL_FAULT, LineBlock};

/// A signal counts once it arrived this many times in a row. The errors of one event touch two
/// blocks, and never two alike.
pub const SIGNAL_REPEATS: u32 = 3;

/// Number of idles that an end sends first once it is up: one more than its peer must see.
pub const FIRST_IDLES: u32 = SIGNAL_REPEATS + 1;

/// The meaning of a slot's block for the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSlot {
    /// The link is down. The arrived block must be ignored.
    Down,
    /// The link came up with this block: all later blocks were sent after the restart.
    Started,
    /// The link is up, and the block must be received.
    Up(LineBlock),
    /// The link was up and has failed: all that was in progress must be dropped.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    /// The end sends its fault, with what it knows of its peer.
    Down,
}

/// One end of a link.
///
/// An end that fails drops what it had and sends a remote fault, as clause 46.3.4 defines. The
/// fault carries the number of this failure and the last failure number heard from the peer. An end
/// that hears its own number knows that the peer was down after it went down itself. So all later
/// blocks belong to the new start. Once it is allowed to start, it signals *ready*. The link is up
/// for an end that hears its own number and *ready* or, being ready, idles.
/// `docs/internals/edm-faults.md` has the rules.
#[derive(Clone, Debug)]
pub struct LinkFaults {
    state: State,
    /// Number of this end's last failure; 0 stands for none.
    failure: u8,
    /// Number of the peer's last failure that was heard since then.
    heard: u8,
    /// True if the peer has heard of this end's last failure: both ends are, or were, down
    /// together.
    answered: bool,
    /// True if the end may restart.
    allowed: bool,
    /// The last block that arrived, and how often in a row.
    last: Option<Block>,
    repeats: u32,
    /// Number of idles still to be sent first.
    idles: u32,
}

impl Default for LinkFaults {
    fn default() -> LinkFaults {
        LinkFaults::new()
    }
}

impl LinkFaults {
    /// An end of a link that is up.
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

    /// True if the link carries messages and frames.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Disables the link until it is allowed to restart.
    pub fn fail(&mut self) {
        if self.is_up() {
            self.state = State::Down;
            self.allowed = false;
            self.forget_peer();
        }
    }

    /// Allows a link that is down to restart; it keeps trying until it is up.
    pub fn allow_start(&mut self) {
        self.allowed |= !self.is_up();
    }

    /// Begins another failure as the peer sees it: the peer's answer to the last one is void.
    fn forget_peer(&mut self) {
        self.failure = if self.failure == u8::MAX { 1 } else { self.failure + 1 };
        self.heard = 0;
        self.answered = false;
        self.last = None;
        self.repeats = 0;
    }

    /// Processes what arrived in a slot, `None` without a signal. A local fault that the PHY
    /// reports counts as no signal.
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

    /// True if the signal was sent before the peer heard that this end is up; the peer is about to
    /// follow.
    fn is_of_this_start(&self, signal: FaultSignal) -> bool {
        let FaultSignal { failure, heard, ready } = signal;
        ready && self.failure != 0 && (failure, heard) == (self.heard, self.failure)
    }

    fn receive_down(&mut self, block: Option<Block>) {
        let signal = block.and_then(FaultSignal::decode);
        let idle = block == Some(Block::IDLE);
        if signal.is_none() && !idle {
            // A peer that has answered sent a fault, its first idle or its first message, and an
            // error hit it. The peer may take the link for up.
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
            // An idle: the peer was ready, heard that this end is ready, and came up.
            None => true,
        };
        if self.answered && self.allowed && peer_is_ready {
            self.state = State::Up;
            self.idles = FIRST_IDLES;
        }
    }

    /// The block that this slot carries in place of messages and frames; `None` when these may be
    /// sent.
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

    /// The failure number in the peer's signals here: its ninth failure.
    const PEERS: u8 = 9;

    fn signal(failure: u8, heard: u8, ready: bool) -> Option<LineBlock> {
        Some(LineBlock::from(FaultSignal { failure, heard, ready }.block()))
    }

    fn idle() -> Option<LineBlock> {
        Some(LineBlock::from(Block::IDLE))
    }

    /// Receives a block as often as a signal must be repeated.
    fn hear(link: &mut LinkFaults, line: Option<LineBlock>) {
        for _ in 0..SIGNAL_REPEATS {
            link.receive(line);
        }
    }

    /// The signal of an end: its failure, the peer's failure that it heard of, and whether it is
    /// ready.
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

    /// An end that is up again after its first failure.
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
