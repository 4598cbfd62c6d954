//! Writes what congestion control and token bucket do, one line a clock cycle, for the equivalence
//! test of the RTL. Standard input has the parameters on one line: `LINE FLOOR INITIAL STEP T1 T2
//! T3 T4 T5 T6 CLOCK_PS DEPTH_BYTES CYCLES SEED`, rates in Mb/s and times in cycles.
//!
//! A line is `PHASE CURRENT TARGET SPEEDUPS INCREASE TIMER DEAF PFC BYTES MAY`: the state before
//! the cycle, with `-` for no timer; then 1 if a PFC frame comes that changes the rate, 2 if it is
//! a duplicate; and the bytes of a frame that is there, 0 for none, and whether it may go.

#[path = "../../edm/tests/support/rng.rs"]
mod rng;

use std::error::Error;
use std::io::{self, BufWriter, Write as _};

use ethermem_cxl::rate::{ControlConfig, Mbps, RateControl, Signal, TokenBucket};
use ethermem_units::Ps;

use rng::Rng;

/// When PFC frames come: never, in one of so many cycles, or while the rate is above a limit.
struct Network {
    rng: Rng,
    mode: u64,
    left: u64,
    limit: u32,
    /// Cycles from a PFC frame to fast recovery, and from there to exploration.
    t1: u64,
    t4: u64,
}

impl Network {
    fn comes(&mut self, rate: u32, line: u32) -> bool {
        if self.left == 0 {
            self.mode = self.rng.below(6);
            self.left = 1 + self.rng.below(3 * self.t4);
            self.limit = self.rng.below(u64::from(line) + 1) as u32;
        }
        self.left -= 1;
        match self.mode {
            0 => false,
            1 => self.rng.below(2 * self.t4) == 0,
            2 => self.rng.below(2 * self.t1) == 0,
            3 => self.rng.below(2) == 0,
            // The queue is long a little after the rate was too high.
            _ => rate > self.limit && self.rng.below(1 + self.t1 / 20) == 0,
        }
    }

    /// A frame of a length that packets have, or any that fits.
    fn frame(&mut self, longest: u64) -> usize {
        match self.rng.below(8) {
            0..3 => [84, 109, 113, 118, 121][self.rng.below(5) as usize],
            3 => 1 + self.rng.below(longest) as usize,
            _ => 0,
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let words: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
    let [line, floor, initial, step, t1, t2, t3, t4, t5, t6, clock_ps, depth_bytes, cycles, seed] =
        words?[..]
    else {
        return Err("expected rates, times, CLOCK_PS DEPTH_BYTES CYCLES SEED".into());
    };
    let rate = |rate: u64| u32::try_from(rate).map(Mbps);
    let time = |cycles: u64| Ps(cycles * clock_ps);
    let config = ControlConfig {
        line: rate(line)?,
        floor: rate(floor)?,
        initial: rate(initial)?,
        step: rate(step)?,
        t1: time(t1),
        t2: time(t2),
        t3: time(t3),
        t4: time(t4),
        t5: time(t5),
        t6: time(t6),
    };
    let mut control = RateControl::new(config)?;
    let mut bucket = TokenBucket::new(u32::try_from(depth_bytes)?, config.initial);
    let mut network = Network { rng: Rng(seed), mode: 0, left: 0, limit: 0, t1, t4 };
    let mut out = BufWriter::new(io::stdout().lock());
    for cycle in 0..cycles {
        let now = time(cycle);
        let (phase, current, target, speedups, increase, timer, deaf) = control.state(now);
        let phase = phase as u8;
        let timer = timer.map_or("-".into(), |timer| (timer.0 / clock_ps).to_string());
        let deaf = deaf.0 / clock_ps;
        // The hardware's bucket sees the rate of the register.
        bucket.set_rate(now, Mbps(current));
        let bytes = network.frame(depth_bytes.min(255));
        let may = bytes > 0 && bucket.take(bytes);
        control.on_timer(now);
        let pfc = match network.comes(current, config.line.0).then(|| control.on_pfc(now)) {
            None => 0,
            Some(Signal::Acted) => 1,
            Some(Signal::Duplicate) => 2,
        };
        let may = u8::from(may);
        writeln!(
            out,
            "{phase} {current} {target} {speedups} {increase} {timer} {deaf} {pfc} {bytes} {may}"
        )?;
    }
    out.flush()?;
    Ok(())
}
