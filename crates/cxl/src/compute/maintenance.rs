//! Flush and invalidation of the cache.
//!
//! A flush writes all dirty lines, and ends once their memory nodes, and those of all write-backs
//! before it, have acknowledged. An invalidation also empties the cache. Accesses go on meanwhile;
//! what they write after the line was passed is not a part of it.

use core::ops::RangeInclusive;

use ethermem_units::Ps;
use ethermem_wire::cxl::{LineAddress, Sequence};
use thiserror::Error;

use super::{ComputeNode, Event};
use crate::cache::Cache;

/// What is done with the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaintenanceKind {
    /// Dirty lines are written; all stay in the cache.
    Flush,
    /// Dirty lines are written; none stays.
    Invalidate,
}

/// Why a flush or an invalidation did not begin, or did not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MaintenanceError {
    /// One is under way: wait for its event.
    #[error("a flush or an invalidation is under way: wait for its end")]
    Busy,
    /// Writes were not acknowledged in time.
    #[error("not all lines were acknowledged in time")]
    TimedOut,
    /// Some writes were lost; an event said which.
    #[error("{0} writes were lost")]
    Lost(u64),
}

/// What is under way, if anything is. The value lives as long as its compute node, so that nothing
/// is allocated for one.
#[derive(Clone, Debug)]
pub(super) struct Maintenance {
    is_active: bool,
    kind: MaintenanceKind,
    lines: RangeInclusive<u64>,
    /// The next place to look at.
    place: u32,
    /// Once all places were looked at: by memory node, the requests that must be delivered.
    until: Vec<Sequence>,
    all_sent: bool,
    deadline: Ps,
    /// Writes that had been lost before.
    lost_before: u64,
}

impl Maintenance {
    pub(super) fn new(nodes: usize) -> Maintenance {
        Maintenance {
            is_active: false,
            kind: MaintenanceKind::Flush,
            lines: 0..=0,
            place: 0,
            until: Vec::with_capacity(nodes),
            all_sent: false,
            deadline: Ps::MAX,
            lost_before: 0,
        }
    }

    /// When what is under way is given up.
    pub(super) fn next_wake(&self) -> Option<Ps> {
        self.is_active.then_some(self.deadline)
    }
}

impl ComputeNode {
    /// Begins to write dirty lines, and with [`MaintenanceKind::Invalidate`] to empty the cache of
    /// them. [`Event::Maintained`], or [`Event::NotMaintained`], says when it has ended.
    ///
    /// # Errors
    /// [`MaintenanceError::Busy`].
    pub fn begin_maintenance(
        &mut self,
        now: Ps,
        kind: MaintenanceKind,
        lines: RangeInclusive<LineAddress>,
    ) -> Result<(), MaintenanceError> {
        if self.maintenance.is_active {
            return Err(MaintenanceError::Busy);
        }
        let deadline = now + self.config.give_up_after;
        let lost_before = self.counters.writes_lost;
        let work = &mut self.maintenance;
        work.until.clear();
        (work.is_active, work.kind, work.place, work.all_sent) = (true, kind, 0, false);
        work.lines = lines.start().number()..=lines.end().number();
        (work.deadline, work.lost_before) = (deadline, lost_before);
        self.maintain(now);
        Ok(())
    }

    /// Goes on with what is under way.
    pub(super) fn maintain(&mut self, now: Ps) {
        if !self.maintenance.is_active {
            return;
        }
        self.walk();
        let work = &self.maintenance;
        let lost = self.counters.writes_lost - work.lost_before;
        let event = if work.all_sent && self.is_delivered() {
            match lost {
                0 => Event::Maintained(work.kind),
                lost => Event::NotMaintained(MaintenanceError::Lost(lost)),
            }
        } else if work.deadline <= now {
            Event::NotMaintained(MaintenanceError::TimedOut)
        } else {
            return;
        };
        self.maintenance.is_active = false;
        self.tell(event);
    }

    /// Cleans lines, from the first place that was not looked at, while there is room for requests.
    fn walk(&mut self) {
        let places = self.cache.as_ref().map_or(0, Cache::places);
        let drop = self.maintenance.kind == MaintenanceKind::Invalidate;
        while self.maintenance.place < places {
            if self.nodes.iter().any(|node| !node.requester.has_room(1)) {
                return;
            }
            let Some(cache) = &mut self.cache else { return };
            let place = self.maintenance.place;
            if let Some((line, is_fetching)) = cache.line_at(place)
                && self.maintenance.lines.contains(&line.number())
            {
                // A line that is being fetched goes once it is here.
                if drop && is_fetching {
                    return;
                }
                if let Some(victim) = cache.clean_at(place, drop) {
                    self.flush_back(victim);
                }
            }
            self.maintenance.place += 1;
        }
        if !self.maintenance.all_sent {
            self.maintenance.all_sent = true;
            let next = self.nodes.iter().map(|node| node.requester.next_sequence());
            self.maintenance.until.extend(next);
        }
    }

    fn is_delivered(&self) -> bool {
        let mut pairs = self.nodes.iter().zip(&self.maintenance.until);
        pairs.all(|(node, until)| node.requester.oldest().since(*until) >= 0)
    }
}
