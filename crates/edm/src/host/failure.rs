//! Deadlines, and what ends when a peer or the link fails.

use ethermem_units::Ps;

use crate::message::{FailReason, NodeId};

use super::entry::{NONE, Outcome, state};
use super::peers::{DOWN, Destination};
use super::{Control, Host, Target};

impl Host {
    /// The time at which [`Host::on_timer`] must be called; `None` while no request has a deadline.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Option<Ps> {
        match self.deadlines.head {
            NONE => None,
            head => Some(self.slab[head].deadline),
        }
    }

    /// Ends every read, RMW and acknowledged write whose deadline has come: the NULL response of
    /// section 3.3.
    ///
    /// An id that the switch has seen stays in quarantine and counts as active. The quarantine ends
    /// when its last chunk or its status arrives, or when its peer fails. The switch may still hold
    /// the demand, and a late message must not find a newer message under the id.
    pub fn on_timer(&mut self, now: Ps) {
        self.advance(now);
        while self.next_timeout().is_some_and(|deadline| deadline <= now) {
            let index = self.deadlines.head;
            self.end(index, Outcome::Failed(FailReason::Timeout));
            if self.slab[index].has(state::QUEUED) {
                let peer = self.slab[index].peer;
                self.remove_queued(index);
                self.pump(now, peer);
            }
        }
    }

    /// Declares a peer failed. All requests to it end, its own requests are forgotten, and new ones
    /// are refused until [`Host::restore_peer`]. The time is linear in the ended requests.
    pub fn fail_peer(&mut self, now: Ps, peer: NodeId) {
        self.advance(now);
        if self.is_known(peer) {
            self.fail(peer, FailReason::PeerDown);
        }
    }

    /// Declares this host's link failed, which has the effect of [`Host::fail_peer`] for every
    /// peer.
    pub fn fail_link(&mut self, now: Ps) {
        self.advance(now);
        self.link_down = true;
        for peer in (0..self.peers.len() as u16).map(NodeId::at) {
            if peer != self.node && !self.destination(peer).is(DOWN) {
                self.fail(peer, FailReason::LinkDown);
                self.destination(peer).flags = 0;
            }
        }
    }

    /// Declares that a failed peer works again. Both ends must have dropped what was in flight
    /// between them.
    pub fn restore_peer(&mut self, peer: NodeId) {
        if usize::from(peer.number()) < self.peers.len() {
            self.peers.destination_mut(peer).flags &= !DOWN;
        }
    }

    /// Declares that this host's link works again. Peers that were declared failed by themselves
    /// stay failed.
    pub fn restore_link(&mut self) {
        self.link_down = false;
    }

    /// Declares that this host's link works again, with every peer unreachable until
    /// [`Host::restore_peer`].
    pub(crate) fn restore_link_alone(&mut self) {
        assert!(self.link_down, "the link is in use");
        self.restore_link();
        for peer in (0..self.peers.len() as u16).map(NodeId::at) {
            self.destination(peer).flags |= DOWN;
        }
    }

    fn fail(&mut self, peer: NodeId, why: FailReason) {
        self.purge(peer);
        while let Some(index) = self.any_queued(peer) {
            self.end(index, Outcome::Failed(why));
            self.remove_queued(index);
        }
        for write in [false, true] {
            let mut rows = self.destination(peer).rows[usize::from(write)];
            while rows != 0 {
                let leader = self.peers.leader(peer, write, rows.trailing_zeros() as usize);
                rows &= rows - 1;
                let entry = &mut self.slab[leader];
                entry.state = (entry.state | state::EXPOSED) & !state::UNSENT;
                self.fail_members(leader, why);
                self.close(leader);
            }
        }
        *self.destination(peer) = Destination { flags: DOWN, ..Destination::IDLE };
        self.forget(peer);
    }

    /// Removes everything that concerns `peer` from the control and grant queues.
    fn purge(&mut self, peer: NodeId) {
        let Host { control, grants, slab, responses, statuses_queued, .. } = self;
        control.retain(|control| match control {
            Control::Open(index) => slab[*index].peer != peer,
            Control::Status(status) => {
                *statuses_queued -= usize::from(status.peer == peer);
                status.peer != peer
            }
        });
        grants.retain(|granted| match granted.target {
            Target::Write(leader) => slab[leader].peer != peer,
            Target::Response(index) => responses.peer(index) != peer,
        });
    }
}
