//! Blocks: cut from regions, taken, freed. A block keeps its class for ever, so a reader with an
//! old link reads a whole block, and the check reveals the new use.

use ethermem::OffloadError as Error;

use super::{Shard, done, refused};
use crate::call::{Answer, Became, Request, links};
use crate::layout::{GIVEN_BYTES_AT, HEAP_BYTES_AT, UNCUT_AT, free_at};
use crate::link::{Class, Link, UNIT_BYTES};

/// Largest number of blocks taken at once.
const TAKEN_MAX: u64 = 1024;

impl Shard<'_, '_> {
    /// Handles [`crate::call::What::Take`].
    pub(super) fn take(&mut self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let class = Class::new(request.operand).ok_or_else(|| refused("no class of blocks"))?;
        let mut taken = Vec::new();
        for _ in 0..request.tag.min(TAKEN_MAX) {
            let Some(link) = self.block(class)? else { break };
            taken.extend_from_slice(&link.word().to_le_bytes());
        }
        if taken.is_empty() {
            return self.needs_region();
        }
        Ok(Answer { bytes: &taken, ..Answer::new(Became::Done, 0) }.encode())
    }

    /// Handles [`crate::call::What::Give`].
    pub(super) fn give(&mut self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        links(request.value).try_for_each(|link| self.free(link))?;
        Ok(done())
    }

    /// Handles [`crate::call::What::Extend`]. The rest of the previous region is cut into blocks.
    pub(super) fn extend(&mut self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let (from, bytes) = (request.operand, request.tag);
        if !from.is_multiple_of(UNIT_BYTES) || bytes < UNIT_BYTES {
            return Err(refused("no region for blocks"));
        }
        if self.word(HEAP_BYTES_AT)? != request.hash {
            return Ok(Answer::new(Became::Refused, 0).encode());
        }
        let (mut at, to) = self.uncut()?;
        while at < to {
            let largest = Class::holding(to - at);
            let class = if largest.bytes() == to - at {
                largest
            } else {
                Class::new(largest.number() as u64 - 1).expect("16 B have a class")
            };
            self.push_free(Link::new(at, class))?;
            at += class.bytes();
        }
        self.set_uncut(from, from + bytes / UNIT_BYTES * UNIT_BYTES);
        self.add_to_word(HEAP_BYTES_AT, bytes)?;
        Ok(done())
    }

    /// The answer of a request that finds no memory. It changes nothing: blocks that it had taken
    /// for copies stay free.
    pub(super) fn needs_region(&mut self) -> Result<Vec<u8>, Error> {
        self.changes.forget();
        let bytes = self.word(HEAP_BYTES_AT)?;
        Ok(Answer::new(Became::NeedsRegion, bytes).encode())
    }

    /// Takes a free block, with its version advanced; `None` if there is none.
    pub(super) fn block(&mut self, class: Class) -> Result<Option<Link>, Error> {
        let link = match Link::from_word(self.word(free_at(class))?) {
            Some(free) => {
                let next = self.word_at(self.at(free))?;
                self.set_word(free_at(class), next);
                free.next_use()
            }
            None => {
                let (from, to) = self.uncut()?;
                if to.saturating_sub(from) < class.bytes() {
                    return Ok(None);
                }
                self.set_uncut(from + class.bytes(), to);
                Link::new(from, class)
            }
        };
        self.add_to_word(GIVEN_BYTES_AT, class.bytes())?;
        Ok(Some(link))
    }

    /// Frees a block, which ends this use of it.
    pub(super) fn free(&mut self, link: Link) -> Result<(), Error> {
        self.add_to_word(GIVEN_BYTES_AT, link.bytes().wrapping_neg())?;
        self.push_free(link)
    }

    fn push_free(&mut self, link: Link) -> Result<(), Error> {
        let first = self.word(free_at(link.class()))?;
        self.changes.set_word(self.at(link), first);
        self.set_word(free_at(link.class()), link.word());
        Ok(())
    }

    fn uncut(&mut self) -> Result<(u64, u64), Error> {
        Ok((self.word(UNCUT_AT)?, self.word(UNCUT_AT + 8)?))
    }

    fn set_uncut(&mut self, from: u64, to: u64) {
        self.set_word(UNCUT_AT, from);
        self.set_word(UNCUT_AT + 8, to);
    }
}
