//! Writes what one end of a link does, one line a slot, for the equivalence tests of the RTL's PHY.
//! Standard input has the parameters on one line: `fair|strict SLOTS SEED`.
//!
//! Two ends exchange messages of all kinds and Ethernet frames. Bits flip on the line, the signal
//! is lost, and unsolicited blocks are inserted; the link restarts after each failure.

#[path = "../../tests/support/draws.rs"]
mod draws;
mod end;
#[path = "../../tests/block_level/ethernet.rs"]
mod ethernet;
#[path = "../../tests/block_level/messages.rs"]
mod messages;
#[path = "../../tests/support/rng.rs"]
mod rng;
#[path = "../../../wire/tests/support/sealed.rs"]
mod sealed;
mod traffic;

use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, BufWriter, Write as _};

use ethermem_edm::Arbitration;
use ethermem_edm::phy::LineBlock;

use end::{Arrived, End, Wish};
use rng::Rng;
use traffic::Traffic;

/// Number of slots that a block is on the link.
const FLIGHT_SLOTS: usize = 6;

/// The state of a line before its first block.
const DARK: LineBlock = LineBlock { sync: 0, payload: 0 };

/// One direction of a link: the scrambled blocks in flight.
struct Line {
    flying: VecDeque<LineBlock>,
    /// Number of slots without a signal that are still to come.
    dark: u64,
}

impl Line {
    /// A line that has carried no block yet.
    fn new() -> Line {
        let flying = [DARK; FLIGHT_SLOTS];
        Line { flying: VecDeque::from(flying), dark: FLIGHT_SLOTS as u64 + 2 }
    }

    /// Runs one slot. With `errors`, bits may flip at random.
    fn carry(&mut self, line: LineBlock, rng: &mut Rng, errors: bool) -> Arrived {
        self.flying.push_back(line);
        let mut line = self.flying.pop_front().expect("a line is as long as it was");
        if errors && rng.below(1_500) == 0 {
            for _ in 0..=rng.below(3) {
                match rng.below(66) {
                    bit @ 0..2 => line.sync ^= 1 << bit,
                    bit => line.payload ^= 1 << (bit - 2),
                }
            }
        }
        if errors && rng.below(20_000) == 0 {
            self.dark = 1 + rng.below(50);
        }
        self.dark = self.dark.saturating_sub(1);
        Arrived { line, signal: self.dark == 0 }
    }
}

/// Draws what a host or switch does about its link.
fn wish(end: &End, rng: &mut Rng, errors: bool) -> Wish {
    let fail = errors && rng.below(10_000) == 0;
    Wish { fail, allow: (!end.is_up() || rng.below(100) == 0) && rng.below(40) == 0 }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let [arbitration, slots, seed] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err("expected fair|strict SLOTS SEED".into());
    };
    let arbitration = match arbitration {
        "fair" => Arbitration::Fair,
        "strict" => Arbitration::Strict,
        other => return Err(format!("no arbitration {other}").into()),
    };
    let mut rng = Rng(seed.parse()?);
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut near, mut far) = (End::new(arbitration), End::new(Arbitration::Fair));
    let (mut inwards, mut outwards) = (Line::new(), Line::new());
    let (mut of_near, mut of_far) = (Traffic::default(), Traffic::default());
    let (mut from_near, mut from_far) = (DARK, DARK);
    for _ in 0..slots.parse::<u64>()? {
        of_near.slot(&mut near, &mut rng);
        of_far.slot(&mut far, &mut rng);
        let errors = of_far.has_errors();
        let arrived = inwards.carry(from_far, &mut rng, errors);
        let to_far = outwards.carry(from_near, &mut rng, errors);
        let row = near.slot(arrived, wish(&near, &mut rng, errors), None);
        writeln!(out, "{row}")?;
        let strange = of_far.strange(&near, &mut rng);
        let there = far.slot(to_far, wish(&far, &mut rng, errors), strange);
        (from_near, from_far) = (row.line(), there.line());
    }
    out.flush()?;
    Ok(())
}
