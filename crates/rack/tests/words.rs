//! A liar stores anything into the shared words: no call panics, loops, or leaves the ring.

#[path = "support/random.rs"]
mod random;
#[path = "support/words.rs"]
mod words;

use random::next;

const RUNS: u64 = 200_000;
const STEPS: usize = 200;

#[test]
fn what_a_liar_stores_stays_within_the_ring() {
    let mut seed = random::seed("WORDS_SEED");
    for _ in 0..RUNS {
        let steps: Vec<(u8, u64)> =
            (0..STEPS).map(|_| (next(&mut seed) as u8, next(&mut seed))).collect();
        words::run(steps);
    }
}
