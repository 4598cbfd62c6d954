//! Operations that go past the cache to the memory node.
//!
//! Before such an operation is sent, the cached lines that it uses are written back and forgotten.
//! Until it has ended, no access may bring them back: what a fetch brings could be older than what
//! the operation leaves behind.

use ethermem_pool::{Asker, Error, Op, OpId, ProcessId, Segment};
use ethermem_wire::cxl::LineAddress;
use smallvec::SmallVec;

use super::regions::Lines;
use super::{Awaits, Cached, Purpose, Step, Work};

/// An operation on its way past the cache.
pub(super) struct Pass {
    pub(super) id: OpId,
    pub(super) asker: Asker,
    /// The operation, until it is sent.
    op: Option<Op>,
    scope: Scope,
    /// Accesses wait for it.
    is_known: bool,
    /// Number of the scope's lines, or of the cache's places, that are clean by now.
    clean: u64,
    pub(super) awaits: Awaits,
    /// A write-back that it needs had no answer.
    pub(super) error: Option<Error>,
}

/// The cached lines that an operation uses.
enum Scope {
    Lines(SmallVec<[Lines; 1]>),
    /// Lines of a region that was freed: no access finds them any more, but writes of them may be
    /// in flight.
    Freed(Lines),
    All,
}

impl Cached {
    /// Begins an operation that the cache does not take.
    pub(super) fn pass(&mut self, id: OpId, asker: Asker, op: Op) {
        let scope = match &op {
            Op::Free(address, bytes) => {
                let key = self.regions.exact(asker.process, *address, *bytes);
                match key.and_then(|key| self.forget(key)) {
                    Some(freed) => Scope::Freed(freed),
                    None => self.scope_of(asker.process, &op),
                }
            }
            op => self.scope_of(asker.process, op),
        };
        if matches!(&scope, Scope::Lines(lines) if lines.is_empty()) {
            return self.send(id, asker, op);
        }
        let (op, awaits, error) = (Some(op), Awaits::default(), None);
        let pass = Pass { id, asker, op, scope, is_known: false, clean: 0, awaits, error };
        self.work_on(Work::Pass(pass));
    }

    /// The cached lines that an operation uses.
    fn scope_of(&self, process: ProcessId, op: &Op) -> Scope {
        let lines = |segments: &[Segment]| {
            let lines = segments.iter().flat_map(|&segment| self.regions.lines(process, segment));
            Scope::Lines(lines.collect())
        };
        match op {
            Op::Read(segments) | Op::Write(segments, _) => lines(segments),
            Op::Modify(address, _) | Op::Lock { word: address, .. } => {
                lines(&[Segment { address: *address, bytes: 8 }])
            }
            // Whole regions are not cached any more then, whatever part of them is named.
            Op::Share { region, .. } => Scope::Lines(self.regions.whole(process, *region).into()),
            Op::Free(address, bytes) => {
                let segment = Segment { address: *address, bytes: *bytes };
                Scope::Lines(self.regions.whole(process, segment).into())
            }
            // An operation at the node that names no range may use any.
            Op::Offload { touches, .. } if touches.is_empty() && self.regions.has(process) => {
                Scope::All
            }
            Op::Offload { touches, .. } => lines(touches),
            Op::Alloc { .. } if self.regions.is_worn() => Scope::All,
            Op::Alloc { .. } | Op::Fence | Op::Flush | Op::Sleep(_) => lines(&[]),
        }
    }

    /// Forgets a region: its lines are never found again.
    fn forget(&mut self, key: (u32, u64)) -> Option<Lines> {
        self.recent = None;
        let lines = self.regions.remove(key);
        self.leaving.purge(&self.regions);
        lines
    }

    /// Passes an operation on that needs nothing of the cache any more.
    pub(super) fn send(&mut self, id: OpId, asker: Asker, op: Op) {
        let purpose = match op {
            Op::Alloc { bytes, permissions, .. } => Purpose::Alloc { id, bytes, permissions },
            _ => Purpose::Passed(id),
        };
        self.ask(asker, purpose, op);
    }

    pub(super) fn step_pass(&mut self, place: usize, pass: &mut Pass) -> Step {
        if let Some(error) = pass.error.take() {
            self.passed(place);
            return Step::Ended(Err(error));
        }
        if !pass.is_known && !matches!(pass.scope, Scope::Freed(_)) {
            if self.passing_all.is_some() {
                return Step::Park(Awaits::Others);
            }
            pass.is_known = true;
            // Regions may have new line numbers since the operation came.
            let op = pass.op.as_ref().expect("it was not sent");
            pass.scope = self.scope_of(pass.asker.process, op);
            match &pass.scope {
                Scope::Lines(lines) => {
                    self.passing.extend(lines.iter().map(|&lines| (place, lines)));
                }
                Scope::All => self.passing_all = Some(place),
                Scope::Freed(_) => {}
            }
        }
        let awaits = match &pass.scope {
            Scope::All => self.clean_all(),
            Scope::Freed(lines) => self.leaving.holds_any(&[*lines]).then_some(Awaits::Leaving),
            Scope::Lines(lines) => self.clean_lines(lines, &mut pass.clean),
        };
        match awaits {
            Some(awaits) => {
                if awaits == Awaits::Leaving {
                    self.retry();
                }
                Step::Park(awaits)
            }
            None => self.send_pass(place, pass),
        }
    }

    /// Writes back and forgets lines, from the `clean`-th on. Returns what must be waited for.
    fn clean_lines(&mut self, ranges: &[Lines], clean: &mut u64) -> Option<Awaits> {
        let lines: u64 = ranges.iter().map(|&(from, to)| to - from + 1).sum();
        let by_line = lines <= u64::from(self.cache.places());
        let most = if by_line { lines } else { u64::from(self.cache.places()) };
        while *clean < most {
            let place = if by_line { self.place_of(ranges, *clean) } else { Some(*clean as u32) };
            let held = place.and_then(|place| Some((place, self.cache.line_at(place)?)));
            let within = |line: u64| ranges.iter().any(|&(from, to)| (from..=to).contains(&line));
            if let Some((place, (line, is_fetching))) = held
                && within(line.number())
            {
                if is_fetching {
                    return Some(Awaits::Others);
                }
                if self.leaving.is_full() {
                    return Some(Awaits::Leaving);
                }
                let victim = self.cache.clean_at(place, true);
                victim.iter().for_each(|victim| self.leave(victim));
            }
            *clean += 1;
        }
        self.leaving.holds_any(ranges).then_some(Awaits::Leaving)
    }

    /// The cache's place of the line with this index in all ranges.
    fn place_of(&self, ranges: &[Lines], index: u64) -> Option<u32> {
        let mut index = index;
        for &(from, to) in ranges {
            if index <= to - from {
                let line = LineAddress::new(from + index).ok()?;
                return self.cache.place_of(line);
            }
            index -= to - from + 1;
        }
        None
    }

    /// Writes back everything, with no other operation past the cache and no fetch in flight.
    /// Returns what must be waited for.
    fn clean_all(&mut self) -> Option<Awaits> {
        if !self.passing.is_empty() {
            return Some(Awaits::Others);
        }
        self.pull(usize::MAX);
        if !self.leaving.is_empty() || self.cache.dirty_max() > 0 {
            return Some(Awaits::Leaving);
        }
        (self.fetches > 0).then_some(Awaits::Others)
    }

    /// Sends an operation: nothing of what it uses is in the cache or on its way.
    fn send_pass(&mut self, place: usize, pass: &mut Pass) -> Step {
        let Pass { id, asker, .. } = *pass;
        let op = pass.op.take().expect("it is sent once");
        if matches!(pass.scope, Scope::All) {
            self.recent = None;
            if self.regions.renumber() {
                self.cache.clear();
            }
        }
        match &op {
            // A lock is held for as long as its holder likes, so its line cannot wait for it.
            Op::Lock { word, .. } => {
                self.recent = None;
                self.regions.uncache_word(asker.process, *word);
            }
            // Other processes may change the region from now on.
            Op::Share { region: segment, .. } => self.uncache(asker, *segment),
            Op::Free(address, bytes) => {
                self.uncache(asker, Segment { address: *address, bytes: *bytes });
            }
            _ => {
                self.ask(asker, Purpose::Pass(place), op);
                return Step::Underway;
            }
        }
        self.passed(place);
        self.send(id, asker, op);
        Step::Gone
    }

    /// No longer caches the regions that hold any of these bytes.
    fn uncache(&mut self, asker: Asker, segment: Segment) {
        for key in self.regions.touched(asker.process, segment) {
            self.forget(key);
        }
    }

    /// Lets accesses use the lines of a pass again.
    pub(super) fn passed(&mut self, place: usize) {
        self.has_passed = true;
        self.passing.retain(|&(other, _)| other != place);
        if self.passing_all == Some(place) {
            self.passing_all = None;
        }
    }
}

impl Pass {
    /// True once it is sent.
    pub(super) fn is_sent(&self) -> bool {
        self.op.is_none()
    }
}
