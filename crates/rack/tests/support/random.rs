//! Random numbers of a seed that a failed test shows.

use std::time::{SystemTime, UNIX_EPOCH};

/// Splitmix64.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// The seed of an environment variable, or else of the time. It is printed in the variable's form.
pub(crate) fn seed(variable: &str) -> u64 {
    let given = std::env::var(variable).ok().and_then(|seed| seed.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos() as u64);
    let seed = given.unwrap_or_else(now);
    println!("{variable}={seed}");
    seed
}
