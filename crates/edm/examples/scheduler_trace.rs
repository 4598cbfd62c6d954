//! Writes a trace of the clocked scheduler, as in `golden/sched` but of any length, for the RTL's
//! equivalence test. Standard input has the parameters on one line: `PORTS POLICY CYCLES SEED`.

#[path = "../tests/support/rng.rs"]
mod rng;
#[path = "../tests/support/trace.rs"]
mod trace;

use std::error::Error;
use std::io::{self, Write as _};

use ethermem_edm::Order;
use trace::{Case, POLICIES, Recorder, header, record, value_of};

/// Text is written in pieces of this many bytes.
const PIECE_BYTES: usize = 1 << 16;

fn main() -> Result<(), Box<dyn Error>> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let [ports, policy, cycles, seed] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err("expected PORTS POLICY CYCLES SEED".into());
    };
    let case = Case {
        ports: ports.parse()?,
        policy: value_of(&POLICIES, policy),
        order: Order::Pair,
        messages: u32::MAX,
        cycles: cycles.parse()?,
        seed: seed.parse()?,
    };
    let mut out = io::stdout().lock();
    out.write_all(header(&case, &case.config()).as_bytes())?;
    let mut written = Ok(());
    let recorder = record(&case, |recorder: &mut Recorder| {
        recorder.grants.clear();
        if recorder.rows.len() > PIECE_BYTES && written.is_ok() {
            written = out.write_all(recorder.rows.as_bytes());
            recorder.rows.clear();
        }
    });
    written?;
    out.write_all(recorder.rows.as_bytes())?;
    // The trace is complete: every demanded byte was granted.
    writeln!(out, "# demanded_bytes={}", recorder.demanded_bytes)?;
    Ok(())
}
