//! Random messages, and true messages with one change: each is accepted exactly when it can be
//! true.

#[path = "support/claims.rs"]
mod claims;

use claims::{Said, check};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

#[test]
fn what_is_said_is_believed_when_it_can_be_true_and_then_only() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(24);
    let (mut believed, mut refused) = ([0; 7], 0);
    for _ in 0..20_000 {
        let draw = random.next_u64();
        let mut bytes = vec![0; 104];
        // Most fields of a true message are 0.
        for byte in &mut bytes {
            if random.next_u64().is_multiple_of(200) {
                *byte = random.next_u64() as u8;
            }
        }
        bytes[4] = draw as u8;
        let mut mappings = [(0, 0, 0); 5];
        for (gap, length, kind) in &mut mappings {
            let draw = random.next_u64();
            *gap = if draw.is_multiple_of(2) { 0 } else { (draw >> 8) as u8 % 4 };
            *length = (draw >> 16) as u8;
            *kind = (draw >> 24) as u8 % if draw & 0xf0 == 0 { 11 } else { 4 };
        }
        let place = |draw: u64| {
            let beside = if draw.is_multiple_of(8) { (draw >> 16) as i8 } else { 0 };
            (!draw.is_multiple_of(29)).then_some(((draw >> 32) as u16, beside))
        };
        let kind = draw as u8 % 8;
        let names_none = kind > 2 && draw >> 48 & 7 != 0;
        let mut places = [(); 6].map(|()| place(random.next_u64()).filter(|_| !names_none));
        if draw >> 52 & 3 != 0 {
            // The message has no image.
            places[4..].fill(None);
        }
        let (has_file, is_challenged) = (kind == 0 || kind == 2, kind == 6);
        let is_usual = draw >> 40 & 15 != 0;
        let found = check(&Said {
            bytes: &bytes,
            is_near: draw >> 44 & 15 != 0,
            places,
            mappings: &mappings,
            userfault: if is_usual {
                Some(has_file)
            } else {
                [None, Some(!has_file)][kind as usize % 2]
            },
            is_challenged: is_challenged == (draw >> 56 & 15 != 0),
        });
        match found {
            Some(kind) => believed[kind as usize] += 1,
            None => refused += 1,
        }
    }
    println!("believed by kind: {believed:?}, refused: {refused}");
    assert!(believed.iter().all(|count| *count > 50) && refused > 5_000, "{believed:?} {refused}");
}
