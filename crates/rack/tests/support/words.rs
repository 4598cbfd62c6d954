//! Both ends of a direction, whose shared words a liar changes before any call: what the calls
//! believe stays within the ring.

use std::sync::atomic::{AtomicU64, Ordering};

use ethermem_rack::line::{Armed, Consumer, Line, Next, Producer};

const SIZE: u64 = 4096;
const WORDS: usize = size_of::<Line>() / size_of::<u64>();

/// Runs steps: what is done, and a number for it.
pub(crate) fn run(steps: impl IntoIterator<Item = (u8, u64)>) {
    let (line, mut from, mut to) = (Line::default(), Producer::default(), Consumer::default());
    // SAFETY: a line is words that are all atomic, and is aligned to more than a word.
    let words = unsafe { &*(&raw const line).cast::<[AtomicU64; WORDS]>() };
    for (step, number) in steps {
        let word = &words[usize::from(step / 16) % WORDS];
        let now = word.load(Ordering::Relaxed);
        match step % 16 {
            0 => word.store(number, Ordering::Relaxed),
            1 => word.store(now.wrapping_add(number % 5).wrapping_sub(2), Ordering::Relaxed),
            2 => word.store(now ^ 1 << (number % 64), Ordering::Relaxed),
            3 => {
                let other = words[(number % WORDS as u64) as usize].load(Ordering::Relaxed);
                word.store(other, Ordering::Relaxed);
            }
            4..=7 => send(&line, &mut from, number),
            8..=12 => receive(&line, &mut to, number),
            13 => Consumer::close(&line),
            14 => drop((to.queued(&line, SIZE, number), to.is_rung(&line))),
            _ => to.quiet(&line),
        }
    }
}

fn send(line: &Line, from: &mut Producer, number: u64) {
    if !from.in_ring() {
        from.kernel += number % 100;
        if from.may_enter_ring(line) {
            from.enter_ring(line);
        }
        return;
    }
    let Ok(room) = from.room(line, SIZE) else { return from.enter_kernel(line) };
    assert!(room <= SIZE, "{room}: a copy would leave the ring");
    let bytes = room.min(number % SIZE);
    match from.publish(line, bytes) {
        Ok(true) if number.is_multiple_of(3) => from.unring(line),
        Ok(true) => from.kernel += 1,
        Ok(false) => {}
        Err(_) => return from.enter_kernel(line),
    }
    from.rang(line);
}

fn receive(line: &Line, to: &mut Consumer, number: u64) {
    match to.next(line, SIZE) {
        Next::Ring(0) => match to.arm(line) {
            Armed::Empty(bells) | Armed::Arrived(bells) => assert!(bells <= 64, "{bells}"),
        },
        Next::Ring(bytes) => {
            assert!(bytes <= SIZE, "{bytes}: a copy would leave the ring");
            to.advance(line, bytes.min(number % SIZE + 1));
        }
        Next::Bells(count) => {
            assert!(count > 0 && count <= u64::from(u32::MAX), "{count}");
            to.took_bells(count.min(64));
        }
        Next::Kernel(limit) => {
            assert_ne!(limit, Some(0));
            to.kernel += limit.unwrap_or(100).min(number % 100);
        }
        Next::Fault => {}
    }
}
