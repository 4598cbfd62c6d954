//! The two ends of every port: until when each is busy, and what it holds for.

use ethermem_units::Ps;

use super::queues::Queues;
use super::releases::{Release, Releases};
use super::rule::{ControlDebt, OPEN, SchedulerConfig, hold_threshold};
use crate::Policy;

/// One end of a port: its uplink as a source, or its downlink as a destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The time at which the port's last chunk, and what was charged since, has passed.
    pub(super) free: Ps,
    debt: ControlDebt,
    /// Number of granted blocks that have not passed: for a source, the switch's ingress; for a
    /// destination, the egress.
    outstanding: u32,
    /// A request found the window full; the end is examined again once there is room.
    pub(super) full: bool,
    /// A wake-up at the end's release is queued.
    pub(super) armed: bool,
    pub(super) failed: bool,
    /// For a destination: its request may have changed.
    pub(super) dirty: bool,
}

impl End {
    pub(super) const FREE: End = End {
        free: Ps::ZERO,
        debt: ControlDebt::NONE,
        outstanding: 0,
        full: false,
        armed: false,
        failed: false,
        dirty: false,
    };

    /// Queues a wake-up the time `before` ahead of this end's release; `name` names the end.
    #[inline]
    pub(super) fn arm(&mut self, before: Ps, name: u16, releases: &mut Releases) {
        if !std::mem::replace(&mut self.armed, true) {
            releases.push(Release::new(self.free.saturating_sub(before), name));
        }
    }

    #[inline]
    pub(super) fn charge(&mut self, now: Ps, blocks: u32, config: &SchedulerConfig) {
        if self.free > now {
            let late = self.debt.charge(blocks, config.control_blocks_free);
            self.free += config.slot * u64::from(late);
        }
    }

    /// True if more blocks are outstanding than `limit`; the end is then `full` until they are not.
    #[inline]
    pub(super) fn is_full(&mut self, limit: u32) -> bool {
        self.full = self.outstanding > limit;
        self.full
    }

    /// Adds blocks that arrived without a grant.
    #[inline]
    pub(super) fn exceed(&mut self, blocks: u32) {
        self.outstanding = self.outstanding.saturating_add(blocks);
    }

    /// Removes blocks that passed, or never will. Returns whether a waiting request now has room.
    #[inline]
    pub(super) fn pass(&mut self, blocks: u32, limit: u32) -> bool {
        self.outstanding = self.outstanding.saturating_sub(blocks);
        self.full && !self.is_full(limit)
    }

    /// Forgets all granted blocks, which are lost.
    pub(super) fn fail(&mut self) {
        (self.failed, self.outstanding, self.full) = (true, 0, false);
    }

    pub(super) fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Occupies the port from `start` for the time `busy`, with this number of `blocks`.
    #[inline]
    pub(super) fn take(&mut self, start: Ps, (busy, blocks): (Ps, u32), slot: Ps) {
        self.outstanding = self.outstanding.saturating_add(blocks);
        if self.debt != ControlDebt::NONE && start > self.free {
            self.debt.pay((start - self.free).0 / slot.0);
        }
        self.free = self.free.max(start) + busy;
    }
}

/// The messages for which a free port holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// A port never holds.
    None,
    /// A port holds for a message that is the best of both its ends.
    Heads,
    /// A port holds for any message whose class is the least at both its ends.
    Classes,
}

impl Holds {
    pub(super) fn of(policy: Policy) -> Holds {
        match policy {
            Policy::Fcfs | Policy::SrptPublished => Holds::None,
            Policy::Srpt | Policy::Auto => Holds::Heads,
            Policy::SrptClasses => Holds::Classes,
        }
    }
}

/// The class limits that free ports impose while they hold.
#[derive(Clone, Copy)]
pub(super) struct Thresholds {
    pub(super) holds: Holds,
    pub(super) window: Ps,
    pub(super) ahead: Ps,
}

impl Thresholds {
    /// The class below which a free destination takes messages. It is limited while the
    /// destination's best message is also the best of a busy source. So the two meet when the
    /// source comes free.
    #[inline]
    pub(super) fn of_destination(self, queues: &Queues, sources: &[End], destination: u16) -> u8 {
        let head = queues.candidates.head(destination);
        let busy = |source: u16| sources[usize::from(source)].free > self.window;
        let waits = match self.holds {
            Holds::None => return OPEN,
            Holds::Heads => busy(head.peer) && queues.peers.head(head.peer).peer == destination,
            Holds::Classes => (0..queues.candidates.len(destination)).any(|place| {
                let candidate = queues.candidates.get(destination, place);
                candidate.priority == head.priority
                    && busy(candidate.source)
                    && queues.peers.head(candidate.source).priority == head.priority
            }),
        };
        if waits { hold_threshold(head.priority) } else { OPEN }
    }

    /// The class limit of a free source, and the busy destination that it waits for: the source's
    /// best message is also that destination's best.
    #[inline]
    pub(super) fn of_source(
        self,
        queues: &Queues,
        destinations: &[End],
        source: u16,
    ) -> Option<(u16, u8)> {
        let head = queues.peers.head(source);
        let busy = |peer: u16| destinations[usize::from(peer)].free > self.window + self.ahead;
        let wanted = match self.holds {
            Holds::None => None,
            Holds::Heads => {
                let mutual = queues.candidates.head(head.peer).peer == source;
                (busy(head.peer) && mutual).then_some(head.peer)
            }
            Holds::Classes => (0..queues.peers.len(source))
                .map(|place| queues.peers.get(source, place))
                .find(|peer| {
                    queues.priority_of(peer.pair) == head.priority
                        && busy(peer.destination)
                        && queues.candidates.head(peer.destination).priority == head.priority
                })
                .map(|peer| peer.destination),
        };
        wanted.map(|peer| (peer, hold_threshold(head.priority)))
    }
}
