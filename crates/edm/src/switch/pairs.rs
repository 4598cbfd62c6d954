//! The pairs of ports that exchange messages.

use crate::message::NodeId;

/// A notice to a node that the switch cannot reach one of its peers any more, or reaches it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The node to notify.
    pub to: NodeId,
    /// The peer of the node.
    pub peer: NodeId,
    /// True if they are joined from now on, false if they are parted.
    pub joined: bool,
}

/// The state of all pairs. A pair parts when a port fails, and joins when both are in service.
/// Before it joins, each end must have said that it heard of the parting. What it sent until then
/// may still be on its uplink, and lacks what the failure took. A port whose link restarts has
/// nothing on its uplink, so it need not answer.
#[derive(Debug)]
pub(super) struct Pairs {
    failed: Vec<bool>,
    /// By (node, peer): true if messages of the node to the peer may be older than their parting.
    unheard: Vec<bool>,
    unheard_total: u32,
}

impl Pairs {
    pub(super) fn new(ports: u16) -> Pairs {
        let ports = usize::from(ports);
        Pairs { failed: vec![false; ports], unheard: vec![false; ports * ports], unheard_total: 0 }
    }

    fn position(&self, node: NodeId, peer: NodeId) -> usize {
        usize::from(node.number()) * self.failed.len() + usize::from(peer.number())
    }

    fn others(&self, port: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.failed.len() as u16).map(NodeId::at).filter(move |&other| other != port)
    }

    /// True if an end has not heard yet that the pair parted.
    #[inline]
    pub(super) fn is_parting(&self, a: NodeId, b: NodeId) -> bool {
        let ports = self.failed.len() as u16;
        self.unheard_total > 0
            && a.max(b).number() < ports
            && (self.unheard[self.position(a, b)] || self.unheard[self.position(b, a)])
    }

    pub(super) fn is_joined(&self, a: NodeId, b: NodeId) -> bool {
        let works = |port: NodeId| self.failed.get(usize::from(port.number())) == Some(&false);
        works(a) && works(b) && !self.is_parting(a, b)
    }

    pub(super) fn fail(&mut self, port: NodeId, mut tell: impl FnMut(Notice)) {
        if self.failed[usize::from(port.number())] {
            return;
        }
        for other in self.others(port) {
            let joined = self.is_joined(other, port);
            self.clear(port, other);
            if joined {
                let position = self.position(other, port);
                self.unheard[position] = true;
                self.unheard_total += 1;
                tell(Notice { to: other, peer: port, joined: false });
            }
        }
        self.failed[usize::from(port.number())] = true;
    }

    pub(super) fn restore(&mut self, port: NodeId, mut tell: impl FnMut(Notice)) {
        if std::mem::take(&mut self.failed[usize::from(port.number())]) {
            self.others(port).for_each(|other| self.join(port, other, &mut tell));
        }
    }

    /// Records that all messages which `node` sent to `peer` before it heard of their parting have
    /// arrived.
    pub(super) fn heard(&mut self, node: NodeId, peer: NodeId, mut tell: impl FnMut(Notice)) {
        let known = usize::from(peer.number()) < self.failed.len();
        if known && self.clear(node, peer) {
            self.join(node, peer, &mut tell);
        }
    }

    fn clear(&mut self, node: NodeId, peer: NodeId) -> bool {
        let position = self.position(node, peer);
        let unheard = std::mem::take(&mut self.unheard[position]);
        self.unheard_total -= u32::from(unheard);
        unheard
    }

    fn join(&self, a: NodeId, b: NodeId, tell: &mut impl FnMut(Notice)) {
        if self.is_joined(a, b) {
            tell(Notice { to: a, peer: b, joined: true });
            tell(Notice { to: b, peer: a, joined: true });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId::at(0);
    const B: NodeId = NodeId::at(1);
    const C: NodeId = NodeId::at(2);

    /// The notices of `act`, as (to, peer, joined).
    fn told(act: impl FnOnce(&mut dyn FnMut(Notice))) -> Vec<(NodeId, NodeId, bool)> {
        let mut told = Vec::new();
        act(&mut |Notice { to, peer, joined }| told.push((to, peer, joined)));
        told
    }

    #[test]
    fn a_pair_joins_once_the_port_is_back_and_the_other_end_has_heard() {
        for heard_first in [false, true] {
            let mut pairs = Pairs::new(2);
            assert!(pairs.is_joined(A, B));
            assert_eq!(told(|tell| pairs.fail(B, tell)), [(A, B, false)]);
            let both = [(A, B, true), (B, A, true)];
            if heard_first {
                assert_eq!(told(|tell| pairs.heard(A, B, tell)), []);
                assert!(!pairs.is_joined(A, B));
                let joined = told(|tell| pairs.restore(B, tell));
                assert_eq!(joined, [both[1], both[0]]);
            } else {
                assert_eq!(told(|tell| pairs.restore(B, tell)), []);
                assert!(!pairs.is_joined(A, B) && pairs.is_parting(B, A));
                assert_eq!(told(|tell| pairs.heard(A, B, tell)), both);
            }
            assert!(pairs.is_joined(A, B) && !pairs.is_parting(A, B));
            assert_eq!(told(|tell| pairs.heard(A, B, tell)), [], "said twice");
        }
    }

    #[test]
    fn a_second_failure_before_the_first_was_heard_is_told_once() {
        let mut pairs = Pairs::new(3);
        assert_eq!(told(|tell| pairs.fail(B, tell)), [(A, B, false), (C, B, false)]);
        assert_eq!(told(|tell| pairs.fail(B, tell)), []);
        assert_eq!(told(|tell| pairs.restore(B, tell)), []);
        assert_eq!(told(|tell| pairs.heard(C, B, tell)).len(), 2);
        assert_eq!(told(|tell| pairs.fail(B, tell)), [(C, B, false)]);
        assert_eq!(told(|tell| pairs.restore(B, tell)), []);
        assert_eq!(told(|tell| pairs.heard(A, B, tell)).len(), 2);
        assert!(pairs.is_joined(A, B) && !pairs.is_joined(C, B));
    }

    #[test]
    fn a_link_that_starts_anew_has_heard_of_everything() {
        let mut pairs = Pairs::new(2);
        pairs.fail(B, |_| {});
        assert_eq!(told(|tell| pairs.fail(A, tell)), []);
        assert_eq!(told(|tell| pairs.restore(B, tell)), []);
        assert_eq!(told(|tell| pairs.restore(A, tell)), [(A, B, true), (B, A, true)]);
        assert_eq!(pairs.unheard_total, 0);
    }
}
