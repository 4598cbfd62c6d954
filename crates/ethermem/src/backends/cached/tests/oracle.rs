//! Random operations of several threads against an oracle of bytes.
//!
//! Every thread owns every `THREADS`-th word, so that all threads share all lines, and the owner of
//! a word knows what it holds. The caches are so small that lines are evicted all the time.

use std::collections::VecDeque;

use ethermem_pool::{Error, Pending, Permissions, Pool, Region, Segment, Thread};
use proptest::prelude::*;

use super::{Draws, Shared, pool};

const THREADS: u64 = 3;
const WORD: u64 = 8;
/// Bytes of the region: four pages, and a part of a line.
const BYTES: u64 = 4 * 4096 + 128;
const WORDS: u64 = BYTES / WORD;
/// Most operations of a thread in flight.
const DEPTH: usize = 4;

/// A word as its owner knows it; `None` after a write that may have been done or not.
type Words = Vec<Option<[u8; 8]>>;

struct Actor {
    number: u64,
    thread: Thread,
    region: Region,
    words: Words,
    flying: VecDeque<Flying>,
    /// Reads and writes are lost, and the words that a thread does not know are no mistake.
    is_lossy: bool,
}

enum Flying {
    /// First word, and the expected words, each if the thread owns and knows it.
    Read(Pending<Vec<u8>>, u64, Words),
    /// The words that it reads, and what they hold if the thread knows it.
    Gather(Pending<Vec<u8>>, Vec<u64>, Words),
    /// The words that it writes.
    Write(Pending<()>, Vec<u64>),
    /// The word, and what it held.
    Atomic(Pending<u64>, u64, Option<[u8; 8]>),
    Offload(Pending<Vec<u8>>, u64),
    Barrier(Pending<()>, Words),
}

impl Actor {
    fn owns(&self, word: u64) -> bool {
        word % THREADS == self.number
    }

    fn own(&self, draws: &mut Draws) -> u64 {
        draws.below(WORDS / THREADS) * THREADS + self.number
    }

    /// The words from `first` on as the thread knows them.
    fn known(&self, first: u64, words: u64) -> Words {
        let known = |word| self.words[word as usize].filter(|_| self.owns(word));
        (first..first + words).map(known).collect()
    }

    fn submit(&mut self, draws: &mut Draws) {
        let word = self.own(draws);
        let flying = match draws.below(100) {
            0..35 => {
                let most = if draws.percent(5) { WORDS } else { 20 };
                let first = draws.below(WORDS);
                let words = (1 + draws.below(most)).min(WORDS - first);
                let read = self.region.read(first * WORD, words * WORD);
                Flying::Read(read, first, self.known(first, words))
            }
            35..45 => {
                let words: Vec<u64> = (0..3).map(|_| self.own(draws)).collect();
                let segment =
                    |&word: &u64| Segment { address: self.region.at(word * WORD), bytes: WORD };
                let places: Vec<Segment> = words.iter().map(segment).collect();
                let known = words.iter().map(|&word| self.words[word as usize]).collect();
                Flying::Gather(self.thread.gather(&places), words, known)
            }
            45..75 => self.write(word, draws),
            75..80 => {
                let words = [word, self.own(draws)];
                let value = draws.below(u64::MAX).to_le_bytes();
                let place = |word| (self.region.at(word * WORD), &value[..]);
                let scattered = self.thread.scatter(&words.map(place));
                words.iter().for_each(|&word| self.words[word as usize] = Some(value));
                Flying::Write(scattered, words.to_vec())
            }
            80..86 => {
                let before = self.words[word as usize];
                let added = self.thread.fetch_add(self.region.at(word * WORD), 3);
                let add = |word: [u8; 8]| u64::from_le_bytes(word).wrapping_add(3).to_le_bytes();
                self.words[word as usize] = before.map(add);
                Flying::Atomic(added, word, before)
            }
            86..90 => match self.bump(word, draws) {
                Some(flying) => flying,
                None => return,
            },
            90..96 => Flying::Barrier(self.thread.release(), self.known(0, WORDS)),
            _ => Flying::Barrier(self.thread.fence(), self.known(0, WORDS)),
        };
        self.flying.push_back(flying);
    }

    /// An operation at the node that adds one to a word. Without ranges the thread orders nothing,
    /// so that it must wait before and after.
    fn bump(&mut self, word: u64, draws: &mut Draws) -> Option<Flying> {
        let at = self.region.at(word * WORD);
        let touches = [Segment { address: at, bytes: WORD }];
        let named = if self.flying.is_empty() && draws.percent(50) { 0 } else { 1 };
        let bumped = self.thread.offload("bump", at, &at.0.to_le_bytes(), &touches[..named]);
        let add = |word: [u8; 8]| (u64::from_le_bytes(word).wrapping_add(1)).to_le_bytes();
        self.words[word as usize] = self.words[word as usize].map(add);
        if named == 1 {
            return Some(Flying::Offload(bumped, word));
        }
        if bumped.wait().is_err() {
            assert!(self.is_lossy, "nothing is lost");
            self.forget(word);
        }
        None
    }

    /// A write of a word was done or not. What followed it expected that it was done.
    fn forget(&mut self, word: u64) {
        self.words[word as usize] = None;
        for flying in &mut self.flying {
            match flying {
                Flying::Read(_, first, known) => {
                    let known = word.checked_sub(*first).and_then(|at| known.get_mut(at as usize));
                    known.into_iter().for_each(|known| *known = None);
                }
                Flying::Gather(_, words, known) => {
                    let same = words.iter().zip(known).filter(|&(&of, _)| of == word);
                    same.for_each(|(_, known)| *known = None);
                }
                Flying::Atomic(_, of, before) if *of == word => *before = None,
                Flying::Write(..)
                | Flying::Atomic(..)
                | Flying::Offload(..)
                | Flying::Barrier(..) => {}
            }
        }
    }

    /// Writes a word, or the last bytes of it.
    fn write(&mut self, word: u64, draws: &mut Draws) -> Flying {
        let mut value = draws.below(u64::MAX).to_le_bytes();
        let from = draws.below(WORD) as usize;
        if let Some(before) = self.words[word as usize]
            && draws.percent(50)
        {
            value[..from].copy_from_slice(&before[..from]);
            let written = self.region.write(word * WORD + from as u64, &value[from..]);
            self.words[word as usize] = Some(value);
            return Flying::Write(written, vec![word]);
        }
        self.words[word as usize] = Some(value);
        Flying::Write(self.region.write(word * WORD, &value), vec![word])
    }

    /// Takes the results that are there.
    fn take(&mut self, far: &Shared) -> Result<(), TestCaseError> {
        for _ in 0..self.flying.len() {
            let Some(flying) = self.flying.pop_front() else { break };
            if let Some(flying) = self.check(flying, far)? {
                self.flying.push_back(flying);
            }
        }
        Ok(())
    }

    /// Checks a result, or gives back what has none yet.
    fn check(&mut self, flying: Flying, far: &Shared) -> Result<Option<Flying>, TestCaseError> {
        Ok(match flying {
            Flying::Read(mut pending, first, known) => match pending.poll_result() {
                None => Some(Flying::Read(pending, first, known)),
                Some(read) => self.compare(read, &known)?,
            },
            Flying::Gather(mut pending, words, known) => match pending.poll_result() {
                None => Some(Flying::Gather(pending, words, known)),
                Some(read) => self.compare(read, &known)?,
            },
            Flying::Write(mut pending, words) => match pending.poll_result() {
                None => Some(Flying::Write(pending, words)),
                Some(Ok(())) => None,
                Some(Err(_)) => {
                    prop_assert!(self.is_lossy);
                    words.iter().for_each(|&word| self.forget(word));
                    None
                }
            },
            Flying::Atomic(mut pending, word, before) => match pending.poll_result() {
                None => Some(Flying::Atomic(pending, word, before)),
                Some(Ok(found)) => {
                    let expected = before.map(u64::from_le_bytes);
                    prop_assert!(expected.is_none_or(|expected| expected == found));
                    None
                }
                Some(Err(_)) => {
                    prop_assert!(self.is_lossy);
                    self.forget(word);
                    None
                }
            },
            Flying::Offload(mut pending, word) => match pending.poll_result() {
                None => Some(Flying::Offload(pending, word)),
                Some(Ok(_)) => None,
                Some(Err(_)) => {
                    prop_assert!(self.is_lossy);
                    self.forget(word);
                    None
                }
            },
            Flying::Barrier(mut pending, known) => match pending.poll_result() {
                None => Some(Flying::Barrier(pending, known)),
                Some(Ok(())) => {
                    self.is_durable(&known, far)?;
                    None
                }
                Some(Err(_)) => {
                    prop_assert!(self.is_lossy);
                    None
                }
            },
        })
    }

    fn compare(
        &self,
        read: Result<Vec<u8>, Error>,
        known: &Words,
    ) -> Result<Option<Flying>, TestCaseError> {
        let Ok(read) = read else {
            prop_assert!(self.is_lossy);
            return Ok(None);
        };
        let found = read.as_chunks().0;
        prop_assert_eq!(found.len(), known.len());
        for (at, (found, known)) in found.iter().zip(known).enumerate() {
            prop_assert!(known.is_none_or(|known| known == *found), "word {} of a read", at);
        }
        Ok(None)
    }

    /// After a release or a fence, the node itself has every word as it was or newer.
    fn is_durable(&self, known: &Words, far: &Shared) -> Result<(), TestCaseError> {
        if self.is_lossy {
            // Words are forgotten after the barrier was submitted.
            return Ok(());
        }
        let segment = Segment { address: self.region.address(), bytes: BYTES };
        let node = far.bytes(self.thread.process(), segment);
        for (word, known) in known.iter().enumerate() {
            // A later write of the thread may be there already.
            let now = self.words[word];
            let found = node.as_chunks().0[word];
            let is_it = known.is_none_or(|known| known == found) || *known != now;
            prop_assert!(is_it, "word {} at the node: {:?}, {:?}", word, found, known);
        }
        Ok(())
    }
}

fn run(seed: u64, bytes: u32, line_bytes: u32, lost: u64, steps: u32) -> Result<(), TestCaseError> {
    let (pool, far) = pool(seed, bytes, line_bytes, lost);
    let mut draws = Draws::new(seed ^ 1);
    let thread = pool.thread().unwrap();
    let region = thread.alloc(BYTES, Permissions::READ_WRITE).wait().unwrap();
    let mut actors: Vec<Actor> = (0..THREADS)
        .map(|number| {
            let thread = thread.fork();
            let region = region.by(&thread);
            let words = vec![Some([0; 8]); WORDS as usize];
            let is_lossy = lost > 0;
            Actor { number, thread, region, words, flying: VecDeque::new(), is_lossy }
        })
        .collect();
    for _ in 0..steps {
        let actor = &mut actors[draws.below(THREADS) as usize];
        actor.take(&far)?;
        if actor.flying.len() < DEPTH && draws.percent(70) {
            actor.submit(&mut draws);
        } else {
            pool.step();
        }
    }
    far.far().lost_percent = 0;
    finish(&pool, &far, &mut actors, &region)
}

/// Lets everything end; then the node has, and every thread reads, what it knows.
fn finish(
    pool: &Pool,
    far: &Shared,
    actors: &mut [Actor],
    region: &Region,
) -> Result<(), TestCaseError> {
    for actor in &mut *actors {
        while !actor.flying.is_empty() {
            pool.step();
            actor.take(far)?;
        }
        // What was lost before is written by the first or the second try.
        let fenced = [(); 3].map(|()| actor.thread.fence().wait());
        prop_assert!(fenced[2].is_ok() && (actor.is_lossy || fenced[0].is_ok()), "{:?}", fenced);
    }
    let thread = region.thread();
    let segment = Segment { address: region.address(), bytes: BYTES };
    let node = far.bytes(thread.process(), segment);
    for at in (0..BYTES).step_by(2048) {
        let bytes = (BYTES - at).min(2048);
        let read = region.read(at, bytes).wait().unwrap();
        prop_assert_eq!(&read[..], &node[at as usize..][..bytes as usize]);
    }
    for actor in actors {
        for word in (0..WORDS).filter(|&word| actor.owns(word)) {
            let found = node.as_chunks().0[word as usize];
            let known = actor.words[word as usize];
            prop_assert!(known.is_none_or(|known| known == found), "word {}", word);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// What a thread reads is what it wrote last, and what was released is at the node.
    #[test]
    fn threads_read_what_they_wrote(seed: u64, size in 0..3_u32, line in 0..5_u32) {
        let bytes = 4096 << size;
        run(seed, bytes, (64 << (line * 3 / 2)).min(bytes / 4), 0, 4_000)?;
    }

    /// The same where reads, writes and answers are lost: an error is told, no write is lost
    /// silently, and nothing hangs.
    #[test]
    fn a_write_without_an_answer_is_kept_until_it_is_done(seed: u64, line in 0..3_u32) {
        run(seed, 4096, 64 << (2 * line), 10, 4_000)?;
    }
}

/// A read waits behind an operation past the cache, and is tried just before that one ends with
/// the error of a write; nothing else is in flight then that could try the read again.
#[test]
fn a_failed_pass_lets_go_what_was_tried_before_it() -> Result<(), TestCaseError> {
    run(2_018_334_691_141_149_527, 4096, 256, 10, 4_000)
}
