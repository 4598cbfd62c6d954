//! Writes what the cache does, one line an operation, for the equivalence test of the RTL's cache.
//! Standard input has the parameters on one line: `SETS FETCHES OPERATIONS SEED`.
//!
//! The first line of the trace is the range of lines that are cleaned. Every other line is the
//! operation and what came of it: `OP LINE ID MASK DATA FLAG STEP FETCH VICTIM_LINE VICTIM_MASK
//! VICTIM_DATA`, then for each read that is answered `ID GOOD DATA`. Numbers are hexadecimal, lines
//! of data begin with the byte at the highest address, and `-` is nothing. `OP` is a letter:
//! `R`, `W`, `C` (clean) or `F` (fill), small if the access stalled before and comes again.

#[path = "support/hex.rs"]
mod hex;
#[path = "../../edm/tests/support/rng.rs"]
mod rng;

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write as _};
use std::ops::Range;

use ethermem_cxl::cache::{Cache, CacheConfig, Eviction, ReadStep, Victim, WriteStep};
use ethermem_wire::cxl::{ByteMask, LineAddress, LineData};

use hex::hex;
use rng::Rng;

/// Ways of a set, as in hardware.
const WAYS: u32 = 4;
/// Identifiers of reads.
const IDS: u32 = 256;

#[derive(Clone, Copy)]
enum Op {
    Read(LineAddress, u8),
    Write(LineAddress, u8, ByteMask, LineData),
    Clean(u32, bool),
    Fill(u32, Option<LineData>),
}

/// What came of an operation: a step, and what must be fetched and written.
struct Outcome {
    step: &'static str,
    fetch: Option<u32>,
    victim: Option<Victim>,
    answers: Vec<(u8, Option<LineData>)>,
}

fn outcome(step: &'static str) -> Outcome {
    Outcome { step, fetch: None, victim: None, answers: Vec::new() }
}

struct Traffic {
    cache: Cache<u8>,
    sets: u32,
    cleaned: Range<u64>,
    rng: Rng,
    /// Fetches under way, and reads that wait.
    fetches: Vec<u32>,
    waiting: Vec<bool>,
}

impl Traffic {
    fn execute(&mut self, op: &Op) -> Outcome {
        match *op {
            Op::Read(line, id) => self.read(line, id),
            Op::Write(line, _, mask, data) => match self.cache.write(line, mask, &data) {
                WriteStep::Hit => outcome("hit"),
                WriteStep::Allocated => outcome("allocated"),
                WriteStep::Stalled => outcome("stalled"),
                WriteStep::Replaced(victim) => {
                    Outcome { victim: Some(victim), ..outcome("replaced") }
                }
            },
            Op::Clean(place, drop) => match self.cache.line_at(place) {
                Some((line, _)) if !self.cleaned.contains(&line.number()) => outcome("kept"),
                None => outcome("kept"),
                // A line that is being fetched goes once it is here.
                Some((_, true)) if drop => outcome("stalled"),
                Some(_) => {
                    Outcome { victim: self.cache.clean_at(place, drop), ..outcome("cleaned") }
                }
            },
            Op::Fill(fetch, data) => {
                self.cache.fill(fetch, data.as_ref());
                let mut filled = outcome("filled");
                while let Some((id, data)) = self.cache.poll_filled(fetch) {
                    self.waiting[usize::from(id)] = false;
                    filled.answers.push((id, data));
                }
                filled
            }
        }
    }

    fn read(&mut self, line: LineAddress, id: u8) -> Outcome {
        match self.cache.read(line, id) {
            ReadStep::Hit(data) => Outcome { answers: vec![(id, Some(data))], ..outcome("hit") },
            ReadStep::Stalled => outcome("stalled"),
            ReadStep::Merged => {
                self.waiting[usize::from(id)] = true;
                outcome("merged")
            }
            ReadStep::Miss { fetch, victim } => {
                self.waiting[usize::from(id)] = true;
                self.fetches.push(fetch);
                Outcome { fetch: Some(fetch), victim, ..outcome("miss") }
            }
        }
    }

    /// Ends any of the fetches that are under way, one in 20 without its line.
    fn fill(&mut self) -> Op {
        let at = self.rng.below(self.fetches.len() as u64) as usize;
        let fetch = self.fetches.swap_remove(at);
        let good = self.rng.below(20) != 0;
        let data = self.data();
        Op::Fill(fetch, good.then_some(data))
    }

    /// An operation at random; `most` fetches are under way at once.
    fn draw(&mut self, most: u64) -> Op {
        let free = self.waiting.iter().position(|&waits| !waits);
        match self.rng.below(20) {
            0..8 if free.is_some() => Op::Read(self.line(), free.unwrap_or(0) as u8),
            8..15 => {
                let id = self.rng.below(256) as u8;
                Op::Write(self.line(), id, self.mask(), self.data())
            }
            15 => {
                let place = self.rng.below(u64::from(self.cache.places())) as u32;
                Op::Clean(place, self.rng.below(2) == 0)
            }
            _ if self.fetches.len() as u64 > self.rng.below(most) => self.fill(),
            _ => Op::Write(self.line(), 0, ByteMask::FULL, self.data()),
        }
    }

    /// One of seven lines of a set, which differ in their highest and lowest bits, or any line.
    fn line(&mut self) -> LineAddress {
        let set = self.rng.below(u64::from(self.sets));
        let number = match self.rng.below(32) {
            0 => self.rng.next() % LineAddress::LINES,
            n @ 1..12 => set + (n % 3) * u64::from(self.sets),
            n => set + (1 << (36 + n % 4)),
        };
        LineAddress::new(number).expect("40 bits")
    }

    /// The whole line, no byte, one byte, eight of a word, or any.
    fn mask(&mut self) -> ByteMask {
        let at = self.rng.below(64);
        ByteMask(match self.rng.below(8) {
            0..3 => u64::MAX,
            3 => 0,
            4 => 1 << at,
            5 => 0xff << (at & 56),
            _ => self.rng.next(),
        })
    }

    fn data(&mut self) -> LineData {
        let mut data = [0; 64];
        for word in data.chunks_exact_mut(8) {
            word.copy_from_slice(&self.rng.next().to_le_bytes());
        }
        data
    }
}

fn row(op: &Op, again: bool, came: &Outcome) -> String {
    let none = String::from("-");
    let (letter, line, id, mask, data, flag) = match *op {
        Op::Read(line, id) => ('R', line.number(), u32::from(id), 0, none, false),
        Op::Write(line, id, mask, data) => {
            ('W', line.number(), u32::from(id), mask.0, hex(Some(&data)), false)
        }
        Op::Clean(place, drop) => ('C', u64::from(place), 0, 0, none, drop),
        Op::Fill(fetch, data) => ('F', 0, fetch, 0, hex(data.as_ref()), data.is_some()),
    };
    let letter = if again { letter.to_ascii_lowercase() } else { letter };
    let mut row =
        format!("{letter} {line:x} {id:x} {mask:x} {data} {} {}", u8::from(flag), came.step);
    let fetch = came.fetch.map_or("-".into(), |fetch| format!("{fetch:x}"));
    let _ = match came.victim {
        Some(Victim { line, mask, data }) => {
            write!(row, " {fetch} {:x} {:x} {}", line.number(), mask.0, hex(Some(&data)))
        }
        None => write!(row, " {fetch} - - -"),
    };
    for (id, data) in &came.answers {
        let _ = write!(row, " {id:x} {} {}", u8::from(data.is_some()), hex(data.as_ref()));
    }
    row
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let words: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
    let [sets, fetches, operations, seed] = words?[..] else {
        return Err("expected SETS FETCHES OPERATIONS SEED".into());
    };
    let (sets, fetches_max) = (u32::try_from(sets)?, u32::try_from(fetches)?);
    let bytes = sets * WAYS * 64;
    let config = CacheConfig { bytes, ways: WAYS, fetches_max, eviction: Eviction::default() };
    let mut traffic = Traffic {
        cache: Cache::new(config, IDS)?,
        sets,
        cleaned: 1..1 << 38,
        rng: Rng(seed),
        fetches: Vec::new(),
        waiting: vec![false; IDS as usize],
    };
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "{:x} {:x}", traffic.cleaned.start, traffic.cleaned.end - 1)?;
    let (mut held, mut ended): (Option<Op>, bool) = (None, false);
    let mut left = operations;
    // At the end all fetches end, and every place is cleaned.
    let mut places = (0..traffic.cache.places()).map(|place| Op::Clean(place, true));
    loop {
        let again = held.is_some() && ended;
        let op = match held {
            Some(op) if again => op,
            Some(_) => traffic.fill(),
            None if left > 0 => traffic.draw(fetches + fetches / 2),
            None if !traffic.fetches.is_empty() => traffic.fill(),
            None => match places.next() {
                Some(op) => op,
                None => break,
            },
        };
        left = left.saturating_sub(1);
        let came = traffic.execute(&op);
        traffic.cache.check();
        writeln!(out, "{}", row(&op, again, &came))?;
        ended = matches!(op, Op::Fill(..));
        if came.step == "stalled" {
            held = Some(op);
        } else if again {
            held = None;
        }
    }
    out.flush()?;
    Ok(())
}
