//! The compute node's map: which memory node has which section of CMem, and whether it is cached.

use ethermem_wire::cxl::LineAddress;
use thiserror::Error;

use super::NodeIndex;
use crate::slots::Storage;

/// How a section is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionUse {
    /// The memory node that has it.
    pub node: NodeIndex,
    /// True if its lines may be in the cache: no other compute node maps it.
    pub is_cached: bool,
}

/// Why a section cannot be mapped, or its mapping cannot end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SectionError {
    /// CMem has no such section.
    #[error("section {section}: must be below {sections}")]
    NoSuchSection {
        /// The section.
        section: usize,
        /// Sections of CMem.
        sections: usize,
    },
    /// The section is mapped already.
    #[error("section {0} is mapped already")]
    Mapped(usize),
    /// The section is not mapped.
    #[error("section {0} is not mapped")]
    NotMapped(usize),
    /// There is no such memory node.
    #[error("memory node {node}: must be below {nodes}")]
    NoSuchNode {
        /// The memory node.
        node: u16,
        /// Memory nodes of this compute node.
        nodes: usize,
    },
    /// The cache has lines of it: invalidate them first.
    #[error("section {0} has lines in the cache: invalidate them first")]
    Cached(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Sections {
    lines: u64,
    count: usize,
    /// Those from here on are not mapped; with [`Storage::Reserved`] it never grows.
    uses: Vec<Option<SectionUse>>,
}

impl Sections {
    pub(super) fn new(lines: u64, count: usize, storage: Storage) -> Sections {
        let reserved = if storage == Storage::Reserved { count } else { 0 };
        Sections { lines, count, uses: vec![None; reserved] }
    }

    /// How the section of a line is used; `None` where nothing is mapped.
    pub(super) fn of(&self, line: LineAddress) -> Option<SectionUse> {
        let section = usize::try_from(line.number() / self.lines).ok()?;
        *self.uses.get(section)?
    }

    pub(super) fn map(&mut self, section: usize, used: SectionUse) -> Result<(), SectionError> {
        let place = self.place(section)?;
        if place.is_some() {
            return Err(SectionError::Mapped(section));
        }
        *place = Some(used);
        Ok(())
    }

    pub(super) fn unmap(&mut self, section: usize) -> Result<SectionUse, SectionError> {
        self.place(section)?.take().ok_or(SectionError::NotMapped(section))
    }

    pub(super) fn contains(&self, section: usize, line: LineAddress) -> bool {
        line.number() / self.lines == section as u64
    }

    fn place(&mut self, section: usize) -> Result<&mut Option<SectionUse>, SectionError> {
        let sections = self.count;
        if self.uses.len() <= section && section < sections {
            self.uses.resize(section + 1, None);
        }
        self.uses.get_mut(section).ok_or(SectionError::NoSuchSection { section, sections })
    }
}
