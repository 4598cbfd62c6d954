//! A liar stores anything into the shared words: no call panics, loops, or leaves the ring.

#[path = "support/words.rs"]
mod words;

use std::time::{SystemTime, UNIX_EPOCH};

const RUNS: u64 = 200_000;
const STEPS: usize = 200;

/// Splitmix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[test]
fn what_a_liar_stores_stays_within_the_ring() {
    let given = std::env::var("WORDS_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut seed = given.unwrap_or_else(now);
    println!("WORDS_SEED={seed}");
    for _ in 0..RUNS {
        let steps: Vec<(u8, u64)> =
            (0..STEPS).map(|_| (next(&mut seed) as u8, next(&mut seed))).collect();
        words::run(steps);
    }
}
