//! Accesses with addresses: their lines are in the compute node's cache, and their bytes too.
//!
//! A compute node's CMem has a section for each MiB of a memory node that it uses, in the order of
//! their first use, behind the sections of accesses without addresses.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use ethermem_cxl::compute::{Event, MaintenanceError, MaintenanceKind, Path};
use ethermem_cxl::stages::StageLatencies;
use ethermem_engine::engine::Modify;
use ethermem_frames::FlowId;
use ethermem_units::Cycles;
use ethermem_wire::cxl::{ByteMask, LINE_BYTES, LineAddress, LineData};
use ethermem_workload::NodeIndex;

use super::compute::Work;
use super::{Access, SECTION_LINES};

/// Bytes of a line, as addresses count.
const LINE: u64 = LINE_BYTES as u64;
/// Bytes of a section.
pub(super) const SECTION_BYTES: u64 = SECTION_LINES * LINE;
/// Bytes of the word of an atomic.
const WORD_BYTES: usize = 8;

/// What a message with addresses does.
pub(super) enum Doing {
    Read,
    Write,
    /// The line is read, and the word replaced; `None` once it was.
    Modify(Option<Modify>),
}

/// A message with addresses under way.
pub(super) struct Message {
    /// The caller's name of it.
    pub(super) name: u64,
    memory: NodeIndex,
    address: u64,
    /// The bytes that are written, or those that were read.
    pub(super) data: Vec<u8>,
    pub(super) doing: Doing,
    /// What an atomic's read took in the board.
    pub(super) before: Cycles,
}

/// A line of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Its address at the memory node.
    pub(super) address: u64,
    /// Offset of its first byte that the message has, in the line and in the message.
    at: usize,
    offset: usize,
    bytes: usize,
}

impl Part {
    pub(super) fn mask(&self) -> ByteMask {
        let ones = if self.bytes == LINE_BYTES { u64::MAX } else { (1 << self.bytes) - 1 };
        ByteMask(ones << self.at)
    }
}

impl Message {
    pub(super) fn new(
        name: u64,
        memory: NodeIndex,
        address: u64,
        data: Vec<u8>,
        doing: Doing,
    ) -> Message {
        Message { name, memory, address, data, doing, before: Cycles(0) }
    }

    /// Number of lines that it touches.
    pub(super) fn lines(&self) -> u32 {
        let end = self.address + self.data.len() as u64;
        (end.div_ceil(LINE) - self.address / LINE) as u32
    }

    /// The line of this index.
    pub(super) fn part(&self, index: u32) -> Part {
        let line = (self.address / LINE + u64::from(index)) * LINE;
        let first = line.max(self.address);
        let end = (line + LINE).min(self.address + self.data.len() as u64);
        Part {
            address: line,
            at: (first - line) as usize,
            offset: (first - self.address) as usize,
            bytes: (end - first) as usize,
        }
    }

    /// The bytes of a line that is written.
    pub(super) fn written(&self, part: Part) -> LineData {
        let mut line = [0; LINE_BYTES];
        line[part.at..][..part.bytes].copy_from_slice(&self.data[part.offset..][..part.bytes]);
        line
    }

    /// Takes the bytes of a line that was read.
    pub(super) fn read(&mut self, part: Part, line: &LineData) {
        self.data[part.offset..][..part.bytes].copy_from_slice(&line[part.at..][..part.bytes]);
    }

    /// The word after an atomic whose line was read, in that line.
    pub(super) fn modified(&mut self, part: Part, line: &LineData) -> Option<LineData> {
        let Doing::Modify(modify) = &mut self.doing else { return None };
        let modify = modify.take()?;
        let mut after = *line;
        let word = after[part.at..].first_chunk_mut::<WORD_BYTES>()?;
        *word = modify(u64::from_le_bytes(*word)).to_le_bytes();
        Some(after)
    }
}

/// A flush of the cache, or of ranges of it.
pub(super) struct Clean {
    pub(super) access: Access,
    kind: MaintenanceKind,
    /// What is to come.
    ranges: VecDeque<RangeInclusive<LineAddress>>,
    /// The range that is being written.
    range: Option<RangeInclusive<LineAddress>>,
    /// Times that it was begun.
    tries: u32,
    pub(super) failed: bool,
}

/// Most times that a range is flushed: a large cache takes longer than an access may wait, and each
/// time fewer lines are dirty.
const TRIES_MAX: u32 = 100;

/// A store of an atomic that has its line.
pub(super) struct Store {
    pub(super) access: Access,
    pub(super) address: u64,
    pub(super) mask: ByteMask,
    pub(super) data: LineData,
}

/// What a compute node has of messages with addresses.
#[derive(Default)]
pub(super) struct Placing {
    /// By flow.
    pub(super) messages: BTreeMap<FlowId, Message>,
    /// Sections of CMem, by memory node and number of the MiB.
    sections: BTreeMap<(NodeIndex, u64), u64>,
    /// The first section of these.
    first: u64,
    /// Lines of atomics between their read and their write, by their addresses in CMem.
    locked: Vec<u64>,
    /// Writes of atomics that wait for a credit.
    pub(super) stores: VecDeque<Store>,
    cleans: VecDeque<Clean>,
    is_cleaning: bool,
}

impl Placing {
    pub(super) fn new(first: u64) -> Placing {
        Placing { first, ..Placing::default() }
    }

    /// True if a section of CMem is one of these.
    pub(super) fn has(&self, line: LineAddress) -> bool {
        line.number() / SECTION_LINES >= self.first
    }

    /// The sections of a message that CMem does not have yet: their numbers, and where they begin
    /// at the memory node. It has them then.
    pub(super) fn add(&mut self, memory: NodeIndex, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        let mut added = Vec::new();
        for number in address / SECTION_BYTES..=(address + bytes - 1) / SECTION_BYTES {
            let next = self.first + self.sections.len() as u64;
            let section = *self.sections.entry((memory, number)).or_insert(next);
            if section == next {
                added.push((section, number * SECTION_BYTES));
            }
        }
        added
    }

    /// The address in CMem of an address of a memory node.
    pub(super) fn place(&self, memory: NodeIndex, address: u64) -> u64 {
        let section = self.sections[&(memory, address / SECTION_BYTES)];
        section * SECTION_BYTES + address % SECTION_BYTES
    }

    /// The line of a message: its address in CMem.
    pub(super) fn line(&self, flow: FlowId, index: u32) -> u64 {
        let message = &self.messages[&flow];
        self.place(message.memory, message.part(index).address)
    }

    /// The lines of a range that may be in the cache.
    pub(super) fn lines(
        &self,
        memory: NodeIndex,
        address: u64,
        bytes: u64,
    ) -> impl Iterator<Item = RangeInclusive<LineAddress>> {
        let end = address + bytes;
        let numbers = address / SECTION_BYTES..=(end - 1) / SECTION_BYTES;
        self.sections.range((memory, *numbers.start())..=(memory, *numbers.end())).map(
            move |(&(_, number), &section)| {
                let base = number * SECTION_BYTES;
                let from = address.max(base) - base;
                let last = end.min(base + SECTION_BYTES) - 1 - base;
                let line = |at: u64| {
                    LineAddress::new(section * SECTION_LINES + at / LINE).expect("a line of CMem")
                };
                line(from)..=line(last)
            },
        )
    }

    /// True if the next access of a message must wait for an atomic that has read its line. Plain
    /// reads need not: they see the word before it.
    pub(super) fn must_wait(&self, work: &Work) -> bool {
        let of_word = |flow| matches!(self.messages[&flow].doing, Doing::Modify(_));
        work.is_placed
            && (work.is_write || of_word(work.flow))
            && self.locked.contains(&self.line(work.flow, work.begun))
    }

    pub(super) fn is_locking(&self) -> bool {
        !self.locked.is_empty()
    }

    pub(super) fn lock(&mut self, line: u64) {
        self.locked.push(line);
    }

    pub(super) fn unlock(&mut self, line: u64) {
        self.locked.retain(|locked| *locked != line);
    }

    /// Queues a flush.
    pub(super) fn clean(
        &mut self,
        access: Access,
        drops: bool,
        ranges: VecDeque<RangeInclusive<LineAddress>>,
    ) {
        let kind = if drops { MaintenanceKind::Invalidate } else { MaintenanceKind::Flush };
        let clean = Clean { access, kind, ranges, range: None, tries: 0, failed: false };
        self.cleans.push_back(clean);
    }

    /// What to flush now.
    pub(super) fn next_clean(&mut self) -> Option<(MaintenanceKind, RangeInclusive<LineAddress>)> {
        let clean = self.cleans.front_mut().filter(|_| !self.is_cleaning)?;
        let range = clean.ranges.pop_front()?;
        clean.range = Some(range.clone());
        clean.tries += 1;
        self.is_cleaning = true;
        Some((clean.kind, range))
    }

    /// Takes an event of the protocol's compute node.
    pub(super) fn hear(&mut self, event: Event) {
        let error = match event {
            Event::Maintained(_) => None,
            Event::NotMaintained(error) => Some(error),
            // The flush that wrote the line says it, too; an eviction has no message to fail.
            Event::WriteLost { .. } => return,
        };
        self.is_cleaning = false;
        let Some(clean) = self.cleans.front_mut() else { return };
        match (error, clean.range.take()) {
            (Some(MaintenanceError::TimedOut), Some(range)) if clean.tries < TRIES_MAX => {
                clean.ranges.push_front(range);
            }
            (error, _) => {
                clean.failed |= error.is_some();
                clean.tries = 0;
            }
        }
    }

    /// A flush that has ended.
    pub(super) fn cleaned(&mut self) -> Option<Clean> {
        let has_ended = self.cleans.front().is_some_and(|clean| clean.ranges.is_empty());
        if has_ended && !self.is_cleaning { self.cleans.pop_front() } else { None }
    }

    /// True if nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_empty() && self.cleans.is_empty() && self.stores.is_empty()
    }
}

/// Cycles that the cache takes for an access that goes this way, beside those that an access
/// without a cache takes. The lookup is counted at the end, also where a frame leaves after it.
pub(super) fn cache_cycles(stages: &StageLatencies, path: Path) -> Cycles {
    let victim = match path {
        Path::WriteMissReplace => stages.victim_read,
        _ => Cycles(0),
    };
    let all = stages.cache_lookup + victim + stages.to_host(path);
    Cycles(all.0 - stages.agent_response.0)
}

/// The line at a memory node of an access under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedLine {
    /// Number of the access.
    pub(super) number: u64,
    pub(super) address: u64,
    /// The bytes that are written; `None` for a read.
    pub(super) mask: Option<ByteMask>,
    /// What is written, or what the memory gave.
    pub(super) data: LineData,
}
