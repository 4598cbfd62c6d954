//! The CXL agent: CXL.mem messages of the host on one side, accesses with AXI identifiers on the
//! other (sections III.B and IV).
//!
//! The agent has 256 identifiers for reads and 256 for writes. A host that sends more gets a typed
//! error. An access that has no response in time is ended: a load with poison, as CXL does.

use ethermem_units::Ps;
use ethermem_wire::cxl::{AccessId, ByteMask, LineData};
use thiserror::Error;

/// Reads in flight, and writes in flight (section IV).
pub const ACCESSES_MAX: usize = 256;

/// The host's name of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u16);

/// Opcode of a request without data (M2S Req; CXL 2.0, 3.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReqOpcode {
    /// Reads a line.
    MemRd,
    /// Reads a line in advance: a hint without a response.
    MemSpecRd,
    /// Changes meta data alone, of which this memory has none: completes at once.
    MemInv,
}

/// A request without data: M2S Req.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Req {
    /// What to do.
    pub opcode: ReqOpcode,
    /// The host's name of it.
    pub tag: Tag,
    /// Byte address in CMem: a multiple of 64.
    pub address: u64,
}

/// A request with data: M2S RwD. A whole line is MemWr, some bytes of it MemWrPtl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rwd {
    /// The host's name of it.
    pub tag: Tag,
    /// Byte address in CMem: a multiple of 64.
    pub address: u64,
    /// The bytes to write.
    pub mask: ByteMask,
    /// The line.
    pub data: LineData,
}

/// A response to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum S2m {
    /// S2M NDR, Cmp: the request is complete.
    Ndr(Tag),
    /// S2M DRS, MemData: the line.
    Drs {
        /// The request.
        tag: Tag,
        /// The line; zeros if it is poisoned.
        data: LineData,
        /// The data must not be used.
        poison: bool,
    },
}

impl S2m {
    /// The request that it answers.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        match self {
            S2m::Ndr(tag) | S2m::Drs { tag, .. } => *tag,
        }
    }
}

/// Why a request of the host was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AgentError {
    /// The host has more reads in flight than it has credits for.
    #[error("{ACCESSES_MAX} reads are in flight: no credit for another one")]
    NoReadCredit,
    /// The host has more writes in flight than it has credits for.
    #[error("{ACCESSES_MAX} writes are in flight: no credit for another one")]
    NoWriteCredit,
    /// The address cannot be one of a line.
    #[error(transparent)]
    Address(#[from] ethermem_wire::cxl::LineError),
}

/// An access of the agent. The generation tells it from earlier ones with its identifier, so that
/// a response that comes after the access was ended is no other access's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Its AXI identifier.
    pub id: AccessId,
    /// True if the access is a write.
    pub is_write: bool,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: Tag,
    generation: u32,
    deadline: Ps,
    is_open: bool,
    /// In the order of deadlines while open; in the list of free ones otherwise.
    next: u16,
    before: u16,
}

const NONE: u16 = u16::MAX;

/// A list of open accesses, oldest first, and one of free identifiers.
#[derive(Clone, Debug)]
struct Table {
    entries: Box<[Entry]>,
    free: u16,
    oldest: u16,
    newest: u16,
    open: usize,
}

impl Table {
    fn new() -> Table {
        let entry = |at: usize| Entry {
            tag: Tag(0),
            generation: 0,
            deadline: Ps::ZERO,
            is_open: false,
            next: if at + 1 == ACCESSES_MAX { NONE } else { at as u16 + 1 },
            before: NONE,
        };
        let entries = (0..ACCESSES_MAX).map(entry).collect();
        Table { entries, free: 0, oldest: NONE, newest: NONE, open: 0 }
    }

    fn begin(&mut self, tag: Tag, deadline: Ps) -> Option<(AccessId, u32)> {
        let id = self.free;
        let newest = self.newest;
        let entry = self.entries.get_mut(usize::from(id))?;
        self.free = entry.next;
        entry.generation = entry.generation.wrapping_add(1);
        (entry.tag, entry.deadline, entry.is_open) = (tag, deadline, true);
        (entry.next, entry.before) = (NONE, newest);
        let generation = entry.generation;
        match self.entries.get_mut(usize::from(newest)) {
            Some(before) => before.next = id,
            None => self.oldest = id,
        }
        self.newest = id;
        self.open += 1;
        Some((AccessId(id as u8), generation))
    }

    fn is_open(&self, id: AccessId, generation: u32) -> bool {
        let entry = &self.entries[usize::from(id.0)];
        entry.is_open && entry.generation == generation
    }

    fn end(&mut self, id: AccessId, generation: u32) -> Option<Tag> {
        if !self.is_open(id, generation) {
            return None;
        }
        let at = u16::from(id.0);
        let Entry { tag, next, before, .. } = self.entries[usize::from(at)];
        match self.entries.get_mut(usize::from(before)) {
            Some(entry) => entry.next = next,
            None => self.oldest = next,
        }
        match self.entries.get_mut(usize::from(next)) {
            Some(entry) => entry.before = before,
            None => self.newest = before,
        }
        let free = self.free;
        let entry = &mut self.entries[usize::from(at)];
        (entry.is_open, entry.next, entry.before) = (false, free, NONE);
        self.free = at;
        self.open -= 1;
        Some(tag)
    }

    fn oldest(&self) -> Option<(AccessId, &Entry)> {
        let entry = self.entries.get(usize::from(self.oldest))?;
        Some((AccessId(self.oldest as u8), entry))
    }
}

/// The accesses of one host.
#[derive(Clone, Debug)]
pub struct Agent {
    reads: Table,
    writes: Table,
    give_up_after: Ps,
}

impl Agent {
    /// An agent that ends an access after this time.
    #[must_use]
    pub fn new(give_up_after: Ps) -> Agent {
        Agent { reads: Table::new(), writes: Table::new(), give_up_after }
    }

    /// Begins an access.
    ///
    /// # Errors
    /// [`AgentError::NoReadCredit`] or [`AgentError::NoWriteCredit`].
    pub fn begin(&mut self, now: Ps, tag: Tag, is_write: bool) -> Result<Token, AgentError> {
        let deadline = now + self.give_up_after;
        let (table, error) = match is_write {
            false => (&mut self.reads, AgentError::NoReadCredit),
            true => (&mut self.writes, AgentError::NoWriteCredit),
        };
        let (id, generation) = table.begin(tag, deadline).ok_or(error)?;
        Ok(Token { id, is_write, generation })
    }

    /// True if an access has not ended.
    #[must_use]
    pub fn is_open(&self, token: Token) -> bool {
        self.table(token.is_write).is_open(token.id, token.generation)
    }

    /// Ends an access, and gives the host's name of it; `None` if it has ended.
    pub fn end(&mut self, token: Token) -> Option<Tag> {
        let table = if token.is_write { &mut self.writes } else { &mut self.reads };
        table.end(token.id, token.generation)
    }

    /// An access whose time is over; it must be ended.
    #[must_use]
    pub fn overdue(&self, now: Ps) -> Option<Token> {
        [false, true].into_iter().find_map(|is_write| {
            let (id, entry) = self.table(is_write).oldest()?;
            let token = Token { id, is_write, generation: entry.generation };
            (entry.deadline <= now).then_some(token)
        })
    }

    /// When the next access is overdue.
    #[must_use]
    pub fn next_wake(&self) -> Option<Ps> {
        let oldest = [&self.reads, &self.writes].into_iter().filter_map(Table::oldest);
        oldest.map(|(_, entry)| entry.deadline).min()
    }

    /// Reads and writes in flight.
    #[must_use]
    pub fn in_flight(&self) -> (usize, usize) {
        (self.reads.open, self.writes.open)
    }

    fn table(&self, is_write: bool) -> &Table {
        if is_write { &self.writes } else { &self.reads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_256_reads_and_256_writes_and_no_more() {
        let mut agent = Agent::new(Ps(10));
        for tag in 0..256 {
            let read = agent.begin(Ps(0), Tag(tag), false).unwrap();
            let write = agent.begin(Ps(0), Tag(tag), true).unwrap();
            assert_eq!((read.id, write.id), (AccessId(tag as u8), AccessId(tag as u8)));
        }
        assert_eq!(agent.begin(Ps(0), Tag(0), false), Err(AgentError::NoReadCredit));
        assert_eq!(agent.begin(Ps(0), Tag(0), true), Err(AgentError::NoWriteCredit));
        assert_eq!(agent.in_flight(), (256, 256));
    }

    #[test]
    fn a_token_is_of_one_access_even_if_its_identifier_is_used_again() {
        let mut agent = Agent::new(Ps(10));
        let first = agent.begin(Ps(0), Tag(1), false).unwrap();
        assert_eq!(agent.end(first), Some(Tag(1)));
        let second = agent.begin(Ps(0), Tag(2), false).unwrap();
        assert_eq!(first.id, second.id);
        assert_eq!((agent.end(first), agent.is_open(first)), (None, false));
        assert_eq!(agent.end(second), Some(Tag(2)));
    }

    #[test]
    fn accesses_are_overdue_in_the_order_in_which_they_began() {
        let mut agent = Agent::new(Ps(10));
        let tokens = [0, 1, 2].map(|at| agent.begin(Ps(at), Tag(at as u16), false).unwrap());
        let write = agent.begin(Ps(1), Tag(9), true).unwrap();
        agent.end(tokens[1]);
        assert_eq!((agent.overdue(Ps(9)), agent.next_wake()), (None, Some(Ps(10))));
        assert_eq!(agent.overdue(Ps(10)), Some(tokens[0]));
        agent.end(tokens[0]);
        assert_eq!((agent.overdue(Ps(11)), agent.next_wake()), (Some(write), Some(Ps(11))));
        agent.end(write);
        assert_eq!(agent.overdue(Ps(12)), Some(tokens[2]));
        agent.end(tokens[2]);
        assert_eq!((agent.overdue(Ps::MAX), agent.next_wake()), (None, None));
    }
}
