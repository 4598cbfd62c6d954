//! Another rack's process sends anything: no frame harms a session.

#[path = "support/frames.rs"]
mod frames;

use std::time::{SystemTime, UNIX_EPOCH};

const RUNS: u64 = 30_000;

/// Splitmix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[test]
fn what_another_process_sends_stays_within_the_windows() {
    let given = std::env::var("FRAMES_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut seed = given.unwrap_or_else(now);
    println!("FRAMES_SEED={seed}");
    let mut faults = 0;
    for _ in 0..RUNS {
        let bytes = next(&mut seed) % 2000;
        // Low octets are right fields, so that a session lasts.
        let rarely = next(&mut seed) % 100;
        let octet = |seed: &mut u64| {
            let any = next(seed);
            (if (any >> 8) % 200 < rarely { any } else { any % 0xe0 }) as u8
        };
        let input: Vec<u8> = (0..bytes).map(|_| octet(&mut seed)).collect();
        faults += u64::from(frames::run(&input));
    }
    assert!((RUNS / 10..RUNS).contains(&faults), "{faults} of {RUNS} sessions ended");
}
