//! The order of grants: shortest message first, one chunk at a time.

use std::collections::BTreeSet;

use super::Release;
use ethermem_engine::engine::Handle;
use ethermem_workload::NodeIndex;

/// The rank in every order: bytes not granted yet, then the order of arrival at the switch.
type Rank = (u64, u64);

/// A message that waits for a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    pub(super) rank: Rank,
    pub(super) handle: Handle,
    pub(super) sender: NodeIndex,
    pub(super) receiver: NodeIndex,
}

/// The state of the switch: waiting messages, receivers that were granted to and not given back,
/// and the senders that these hold.
pub(super) struct Matching {
    release: Release,
    by_receiver: Vec<BTreeSet<Waiting>>,
    by_sender: Vec<BTreeSet<Waiting>>,
    /// By receiver: the sender of its last grant, until it is given back.
    held_by: Vec<Option<NodeIndex>>,
    /// By sender: number of receivers that hold it.
    holds: Vec<u32>,
    /// The ends at which a message may have become eligible.
    changed_receivers: Vec<NodeIndex>,
    changed_senders: Vec<NodeIndex>,
}

impl Matching {
    pub(super) fn new(nodes: usize, release: Release) -> Matching {
        Matching {
            release,
            by_receiver: vec![BTreeSet::new(); nodes],
            by_sender: vec![BTreeSet::new(); nodes],
            held_by: vec![None; nodes],
            holds: vec![0; nodes],
            changed_receivers: Vec::new(),
            changed_senders: Vec::new(),
        }
    }

    /// Adds a waiting message.
    pub(super) fn insert(&mut self, waiting: Waiting) {
        self.by_receiver[usize::from(waiting.receiver)].insert(waiting);
        self.by_sender[usize::from(waiting.sender)].insert(waiting);
        self.changed_receivers.push(waiting.receiver);
    }

    /// True if a receiver was granted to and not given back.
    pub(super) fn is_held(&self, receiver: NodeIndex) -> bool {
        self.held_by[usize::from(receiver)].is_some()
    }

    /// Gives a receiver back, so that it can be granted to again.
    pub(super) fn give_back(&mut self, receiver: NodeIndex) {
        if let Some(sender) = self.held_by[usize::from(receiver)].take() {
            self.holds[usize::from(sender)] -= 1;
            self.changed_receivers.push(receiver);
            self.changed_senders.push(sender);
        }
    }

    /// Takes the next message to be granted: the shortest one whose ends are both free.
    pub(super) fn next(&mut self) -> Option<Waiting> {
        let best = {
            let receivers =
                self.changed_receivers.iter().map(|&end| &self.by_receiver[usize::from(end)]);
            let senders = self.changed_senders.iter().map(|&end| &self.by_sender[usize::from(end)]);
            receivers
                .chain(senders)
                .filter_map(|of| of.iter().find(|one| self.is_eligible(one)))
                .min()
        };
        let Some(&best) = best else {
            self.changed_receivers.clear();
            self.changed_senders.clear();
            return None;
        };
        self.by_receiver[usize::from(best.receiver)].remove(&best);
        self.by_sender[usize::from(best.sender)].remove(&best);
        self.held_by[usize::from(best.receiver)] = Some(best.sender);
        self.holds[usize::from(best.sender)] += 1;
        Some(best)
    }

    fn is_eligible(&self, waiting: &Waiting) -> bool {
        // A receiver-driven scheme does not know what other receivers request of the sender.
        let sender_free =
            self.release == Release::Sent || self.holds[usize::from(waiting.sender)] == 0;
        sender_free && !self.is_held(waiting.receiver)
    }

    /// Number of waiting messages.
    pub(super) fn waiting(&self) -> usize {
        self.by_receiver.iter().map(BTreeSet::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(bytes: u64, handle: Handle, sender: NodeIndex, receiver: NodeIndex) -> Waiting {
        Waiting { rank: (bytes, u64::from(handle)), handle, sender, receiver }
    }

    fn granted(matching: &mut Matching) -> Vec<Handle> {
        std::iter::from_fn(|| matching.next()).map(|one| one.handle).collect()
    }

    #[test]
    fn the_shortest_goes_first_and_holds_both_ends() {
        let mut matching = Matching::new(4, Release::UnderWay);
        matching.insert(waiting(900, 1, 0, 1));
        matching.insert(waiting(500, 2, 0, 2));
        matching.insert(waiting(700, 3, 3, 2));
        matching.insert(waiting(800, 4, 3, 1));
        assert_eq!(granted(&mut matching), [2, 4]);
        matching.give_back(2);
        // The sender is free, the other two ends are not.
        assert_eq!(granted(&mut matching), [0; 0]);
        matching.give_back(1);
        assert_eq!(granted(&mut matching), [3, 1]);
        assert_eq!(matching.waiting(), 0);
    }

    #[test]
    fn a_receiver_that_does_not_know_of_others_asks_a_sender_that_is_taken() {
        let mut matching = Matching::new(4, Release::Sent);
        matching.insert(waiting(900, 1, 0, 1));
        matching.insert(waiting(500, 2, 0, 2));
        matching.insert(waiting(400, 3, 3, 2));
        assert_eq!(granted(&mut matching), [3, 1]);
        matching.give_back(2);
        assert_eq!(granted(&mut matching), [2]);
    }
}
