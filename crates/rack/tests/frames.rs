//! Another rack's process sends anything: no frame harms a session.

#[path = "support/frames.rs"]
mod frames;
#[path = "support/random.rs"]
mod random;

use random::next;

const RUNS: u64 = 30_000;

#[test]
fn what_another_process_sends_stays_within_the_windows() {
    let mut seed = random::seed("FRAMES_SEED");
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
