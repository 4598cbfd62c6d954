//! Two ends of a link restart it: at any offset, one long after the other, through further faults
//! and errors. Each end receives what the other sent since that restart, whole and in order.

use ethermem_edm::phy::{LineBlock, LinkFaults, LinkSlot};
use ethermem_wire::{BLOCK_BITS, Block};
use proptest::prelude::*;
use std::collections::VecDeque;

use crate::cases;
use crate::links::{FLIGHT_SLOTS, Line};

/// Maximum number of slots from the last fault until both ends are up: each of three signals
/// crosses the line, and must arrive three times.
const START_SLOTS: u64 = 4 * (FLIGHT_SLOTS as u64 + 4);

struct End {
    faults: LinkFaults,
    /// Number of times the end went down, and number of blocks it sent since it came up.
    downs: u32,
    sent: u32,
    /// The peer's count of downs at the blocks that this end takes, and number of blocks taken.
    taking: u32,
    taken: u32,
    line: Line,
    /// The blocks that entered the line, each with the count of downs, to detect changes on the
    /// line.
    entered: VecDeque<(Block, u32)>,
}

impl End {
    fn new() -> End {
        let entered = (0..FLIGHT_SLOTS).map(|_| (Block::IDLE, 0)).collect();
        let (faults, line) = (LinkFaults::new(), Line::new());
        End { faults, downs: 0, sent: 0, taking: 0, taken: 0, line, entered }
    }

    fn goes_down(&mut self) {
        self.downs += 1;
        self.sent = 0;
    }

    fn fail(&mut self) {
        if self.faults.is_up() {
            self.faults.fail();
            self.goes_down();
        }
    }

    fn send(&mut self) {
        let block = self.faults.transmit().unwrap_or_else(|| {
            self.sent += 1;
            Block::data(u64::from(self.downs) << 32 | u64::from(self.sent))
        });
        self.line.push(block);
        self.entered.push_back((block, self.downs));
    }

    /// Receives a block that the peer sent with this count of downs.
    fn receive(&mut self, arrived: Option<LineBlock>, (sent, peer_downs): (Block, u32)) {
        let is_data = sent.block_type() == Ok(None);
        match self.faults.receive(arrived) {
            LinkSlot::Down => {}
            LinkSlot::Failed => self.goes_down(),
            LinkSlot::Started => {
                let down_since = peer_downs > self.taking || self.taken == 0;
                assert!(down_since, "the other was not down since");
                self.taking = peer_downs;
                self.taken = 0;
            }
            // The checks of the receiver detect a changed block, also a block of a message that
            // became an idle. A signal of this start arrives as an idle.
            LinkSlot::Up(line) if line != LineBlock::from(sent) && (line != idle() || is_data) => {
                self.fail();
            }
            LinkSlot::Up(line) if line == idle() => {}
            LinkSlot::Up(line) => {
                self.taken += 1;
                let (downs, number) = ((line.payload >> 32) as u32, line.payload as u32);
                assert_eq!(self.taking, downs, "of another start");
                assert_eq!(number, self.taken, "a gap");
            }
        }
    }
}

fn idle() -> LineBlock {
    LineBlock::from(Block::IDLE)
}

#[derive(Clone, Debug)]
enum Act {
    /// An end disables the link.
    Fail(usize),
    /// An end may restart the link.
    Allow(usize),
    /// Bits flip on the way from an end.
    Bits(usize, Vec<(u64, u32)>),
    /// No signal comes from an end for this many slots.
    Cut(usize, u64),
}

fn run(acts: &[(u64, Act)]) {
    let mut ends = [End::new(), End::new()];
    let mut mended = [0; 2];
    let last = acts.iter().map(|&(at, _)| at).max().unwrap_or(0);
    let mut both_up = None;
    for slot in 0..last + 400 + START_SLOTS {
        for (_, act) in acts.iter().filter(|&&(at, _)| at == slot) {
            match *act {
                Act::Fail(end) => ends[end].fail(),
                Act::Allow(end) => ends[end].faults.allow_start(),
                Act::Bits(end, ref bits) => ends[end].line.damage(bits),
                Act::Cut(end, slots) => mended[end] = mended[end].max(slot + slots),
            }
        }
        for (end, mended) in ends.iter_mut().zip(mended) {
            end.line.cut = slot < mended;
            // At the end of the run both may restart.
            if slot >= last + 400 {
                end.faults.allow_start();
            }
        }
        for end in 0..2 {
            let from = &mut ends[1 - end];
            let arrived = from.line.pop();
            let sent = from.entered.pop_front().expect("as many as on the line");
            ends[end].receive(arrived, sent);
        }
        ends.iter_mut().for_each(End::send);
        let up = ends.iter().all(|end| end.faults.is_up());
        both_up = if up { both_up.or(Some(slot)) } else { None };
    }
    assert!(both_up.is_some(), "not both are up: {:?}", ends.map(|end| end.faults));
    assert!(ends.iter().all(|end| end.downs == 0 || end.sent > 0), "nothing was sent");
}

fn bits() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let one = (0_u64..2, 0..BLOCK_BITS);
    let burst = (2..BLOCK_BITS - 2).prop_map(|bit| (bit..bit + 3).map(|bit| (0, bit)).collect());
    prop_oneof![prop::collection::vec(one, 1..3), burst]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => (0..2_usize).prop_map(Act::Fail),
        6 => (0..2_usize).prop_map(Act::Allow),
        3 => (0..2_usize, bits()).prop_map(|(end, bits)| Act::Bits(end, bits)),
        1 => (0..2_usize, 1_u64..150).prop_map(|(end, slots)| Act::Cut(end, slots)),
    ]
}

#[test]
fn either_end_may_start_first_at_any_offset() {
    for first in 0..2 {
        for failed in 0..2 {
            for (at, after) in (0..80).flat_map(|at| [0, 1, 2, 30, 300].map(|after| (at, after))) {
                // An end that has not noticed the fault is allowed again later.
                run(&[
                    (5, Act::Fail(failed)),
                    (5 + at, Act::Allow(first)),
                    (5 + at + after, Act::Allow(1 - first)),
                ]);
            }
        }
    }
}

#[test]
fn an_error_in_any_block_of_a_start_delays_it_and_no_more() {
    for (end, slot) in (0..2).flat_map(|end| (0..110).map(move |slot| (end, slot))) {
        for bit in (0..BLOCK_BITS).step_by(5) {
            run(&[
                (5, Act::Fail(0)),
                (30, Act::Allow(0)),
                (30, Act::Allow(1)),
                (5 + slot, Act::Bits(end, vec![(0, bit)])),
            ]);
        }
    }
}

/// Hits the thirtieth block, 0x1e, and flips both bits of its sync header.
#[test]
fn a_block_of_a_message_that_errors_made_an_idle_of_is_no_idle() {
    run(&[(29, Act::Bits(0, vec![(0, 0), (0, 1)]))]);
}

proptest! {
    #![proptest_config(cases(4_000))]

    #[test]
    fn nothing_of_before_passes_a_start(acts in prop::collection::vec((0_u64..600, act()), 1..30)) {
        run(&acts);
    }
}
