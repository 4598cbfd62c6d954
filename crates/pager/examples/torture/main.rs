//! A program that exercises its memory in every way that programs do, and checks every byte it
//! reads.
//!
//! `torture [--accesses N] [--threads N] [--mebibytes N] [--seed N]` prints `clean` and exits with
//! 0, or names the wrong word and its page and exits with 1. It is meant to run under a pager. It
//! keeps what it expects of its memory in a shared mapping, which pagers leave alone.

mod arena;
mod calls;
mod uring;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use arena::{Arena, PAGE_BYTES};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Arguments of the command line.
struct Asked {
    accesses: u64,
    threads: u64,
    mebibytes: u64,
    seed: u64,
}

fn asked() -> Option<Asked> {
    let mut asked = Asked { accesses: 100_000, threads: 4, mebibytes: 16, seed: 1 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next()?.parse().ok()?;
        match word.as_str() {
            "--accesses" => asked.accesses = value,
            "--threads" => asked.threads = value,
            "--mebibytes" => asked.mebibytes = value,
            "--seed" => asked.seed = value,
            _ => return None,
        }
    }
    Some(asked)
}

/// Memory that all threads use, under locks that themselves lie in memory that may be remote.
struct Shared {
    cells: Vec<Mutex<[u64; 64]>>,
    sum: AtomicU64,
}

fn main() -> ExitCode {
    let Some(asked) = asked() else {
        eprintln!("usage: torture [--accesses N] [--threads N] [--mebibytes N] [--seed N]");
        return ExitCode::from(2);
    };
    calls::install_handler();
    let cells = (0..4096).map(|cell| Mutex::new([cell; 64])).collect();
    let shared = Shared { cells, sum: AtomicU64::new(0) };
    let pages = (asked.mebibytes << 20) / PAGE_BYTES as u64 / asked.threads;
    let wrong = std::thread::scope(|scope| {
        let shared = &shared;
        let threads: Vec<_> = (0..asked.threads)
            .map(|thread| {
                let seed = asked.seed ^ thread << 32;
                scope.spawn(move || work(seed, asked.accesses / asked.threads, pages, shared))
            })
            .collect();
        let wrong = |thread: std::thread::ScopedJoinHandle<'_, Result<(), String>>| {
            thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())).err()
        };
        threads.into_iter().filter_map(wrong).next()
    });
    if let Some(wrong) = wrong {
        println!("wrong with --seed {}: {wrong}", asked.seed);
        return ExitCode::FAILURE;
    }
    println!("clean: {} accesses, sum {:016x}", asked.accesses, shared.sum.load(Ordering::Relaxed));
    ExitCode::SUCCESS
}

/// One thread's work: mostly words, sometimes whole pages, now and then a system call.
fn work(seed: u64, accesses: u64, pages: u64, shared: &Shared) -> Result<(), String> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut arena = Arena::new(pages as usize, seed);
    let mut pipe = calls::Pipe::new()?;
    let mut ring = uring::Ring::new()?;
    if ring.is_none() {
        eprintln!("SKIPPED: io_uring, which the kernel refuses");
    }
    let mut sum = 0u64;
    for access in 0..accesses {
        let draw = random.next_u64();
        let page = (random.next_u64() % pages) as usize;
        let result = match draw % 4096 {
            0..3000 => arena.check_word(page, (draw >> 32) as usize % 512),
            3000..3700 => {
                arena.write_page(page);
                Ok(())
            }
            3700..3800 => arena.check_page(page),
            3800..3950 => lock(shared, &mut random),
            3950..3970 => pipe.fill_page(&mut arena, page),
            3970..3990 => pipe.send_page(&mut arena, page),
            3990..4010 => calls::give_back(&mut arena, page, &mut random),
            4010..4030 => calls::replace(&mut arena, page, &mut random),
            4030..4045 => calls::protect(&mut arena, page),
            4045..4060 => calls::file(&mut arena, page),
            4060..4070 => calls::futex(&mut arena, page),
            4070..4080 => calls::gift(&mut pipe, &mut arena, page),
            4080..4086 => calls::signal(&arena, page),
            4086..4092 => calls::relocate(&mut arena, page, &mut random),
            4092 => calls::short_thread(draw),
            4093 => match &mut ring {
                Some(ring) => ring.there_and_back(&mut arena, page, &mut random),
                None => Ok(()),
            },
            4094 if access % 8 == 0 => calls::fork(&mut arena, &mut random),
            4095 if access % 8 == 0 => calls::execute(),
            _ => Ok(()),
        };
        result.map_err(|wrong| format!("thread of seed {seed}, access {access}: {wrong}"))?;
        sum = sum.wrapping_mul(31).wrapping_add(draw);
    }
    for page in 0..pages as usize {
        arena.check_page(page).map_err(|wrong| format!("at the end: {wrong}"))?;
    }
    shared.sum.fetch_xor(sum, Ordering::Relaxed);
    Ok(())
}

fn lock(shared: &Shared, random: &mut Xoshiro256PlusPlus) -> Result<(), String> {
    let index = (random.next_u64() % shared.cells.len() as u64) as usize;
    let mut cell = shared.cells[index].lock().map_err(|_| "a lock is poisoned".to_owned())?;
    let first = cell[0];
    if let Some(other) = cell.iter().find(|word| **word != first) {
        return Err(format!("cell {index} holds {first} and {other}"));
    }
    cell.fill(random.next_u64());
    Ok(())
}
