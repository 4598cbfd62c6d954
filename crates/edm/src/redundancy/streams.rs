//! The streams of a peer, and which of them acts (rule R8 of `docs/internals/edm-faults.md`).
//!
//! A stream is what a node sends to a peer by one interface; a new stream begins whenever the
//! interface has lost the peer. A copy of an abandoned stream may be in flight for as long as an
//! egress queue is. So no later message may act before the memory node knows that this copy must
//! not act any more. Each node numbers its streams, and sends the numbers by every interface.

use crate::message::NodeId;

/// Number of bits of a stream's number, and of the number of a node's start.
const NUMBER_BITS: u8 = 3;
const NUMBER: u8 = (1 << NUMBER_BITS) - 1;
const START: u8 = 0b11;

/// A node's newest streams to one peer: the start of the node that they belong to, and a number per
/// interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    start: u8,
    numbers: [u8; 2],
}

impl Streams {
    /// The first streams after a start of a node.
    pub(super) const fn of_start(start: u8) -> Streams {
        Streams { start: start & START, numbers: [0; 2] }
    }

    /// The streams as the eight bits of a message id on the wire.
    #[must_use]
    pub const fn to_bits(self) -> u8 {
        self.numbers[0] | self.numbers[1] << NUMBER_BITS | self.start << (2 * NUMBER_BITS)
    }

    /// Reads streams from the wire.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Streams {
        let numbers = [bits & NUMBER, bits >> NUMBER_BITS & NUMBER];
        Streams { start: bits >> (2 * NUMBER_BITS), numbers }
    }

    /// Begins a new stream, because the interface has lost the peer.
    pub(super) fn begin(&mut self, interface: usize) {
        self.numbers[interface] = self.numbers[interface].wrapping_add(1) & NUMBER;
    }

    /// True if all of these streams were abandoned by the time of `newest`: no copy that came by
    /// them may still act.
    pub(super) fn have_ended(self, newest: Streams) -> bool {
        let ended = |interface: usize| self.numbers[interface] != newest.numbers[interface];
        self.start != newest.start || (ended(0) && ended(1))
    }
}

/// The streams that one peer announced, by both interfaces.
#[derive(Clone, Copy, Debug)]
struct Told {
    newest: Streams,
    /// The first index is the interface that an announcement came by, the second the interface that
    /// it is about. The value is the number of losses by which the last announcement is behind the
    /// newest, up to `BEHIND_MAX`. That maximum also stands for no announcement at all.
    behind: [[u8; 2]; 2],
}

/// Half of all numbers. An announcement is misread if it is more losses behind the other
/// interface's announcement.
const BEHIND_MAX: u8 = 1 << (NUMBER_BITS - 1);

impl Told {
    /// Processes an announcement. A number has eight consecutive values, and announcements by one
    /// interface come in order. So it is the first number with these bits that is not before the
    /// interface's last announcement, and at most [`BEHIND_MAX`] before the newest.
    fn hear(&mut self, by: usize, said: Streams) {
        for (of, (newest, said)) in self.newest.numbers.iter_mut().zip(said.numbers).enumerate() {
            let behind = self.behind[by][of];
            let since = said.wrapping_sub(*newest).wrapping_add(behind) & NUMBER;
            if let Some(ahead) = since.checked_sub(behind) {
                *newest = said;
                let other = &mut self.behind[1 - by][of];
                *other = (*other + ahead).min(BEHIND_MAX);
                self.behind[by][of] = 0;
            } else {
                self.behind[by][of] = behind - since;
            }
        }
    }
}

/// The streams of all peers, as a memory node knows them.
#[derive(Debug)]
pub(super) struct PeerStreams(Vec<Told>);

impl PeerStreams {
    /// Every peer is on the first streams of its first start.
    pub(super) fn new(nodes: u16) -> PeerStreams {
        let told = Told { newest: Streams::of_start(0), behind: [[0; 2]; 2] };
        PeerStreams(vec![told; usize::from(nodes)])
    }

    /// Processes the numbers that a peer announced by an interface.
    pub(super) fn hear(&mut self, peer: NodeId, interface: usize, streams: Streams) {
        let Some(told) = self.0.get_mut(usize::from(peer.number())) else { return };
        if told.newest.start != streams.start {
            *told = Told { newest: streams, behind: [[BEHIND_MAX; 2]; 2] };
            told.behind[interface] = [0; 2];
        }
        told.hear(interface, streams);
    }

    /// The newest streams of a peer.
    pub(super) fn newest(&self, peer: NodeId) -> Streams {
        self.0[usize::from(peer.number())].newest
    }

    /// True if what a peer sends by an interface acts.
    pub(super) fn is_newest(&self, peer: NodeId, interface: usize) -> bool {
        let told = self.0.get(usize::from(peer.number()));
        told.is_some_and(|told| told.behind[interface][interface] == 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const PEER: NodeId = NodeId::at(1);

    const fn numbers(start: u8, numbers: [u8; 2]) -> Streams {
        Streams { start, numbers }
    }

    #[test]
    fn numbers_survive_the_wire_and_wrap() {
        let mut streams = Streams::of_start(7);
        for losses in 1..40_u8 {
            streams.begin(1);
            assert_eq!(streams, numbers(3, [0, losses % 8]));
            assert_eq!(Streams::from_bits(streams.to_bits()), streams);
        }
        assert_eq!(numbers(2, [3, 6]).to_bits(), 0b10_110_011);
    }

    #[test]
    fn a_stream_acts_from_its_own_word_on_until_another_tells_of_its_end() {
        let mut peers = PeerStreams::new(2);
        let acts = |peers: &PeerStreams| [0, 1].map(|at| peers.is_newest(PEER, at));
        assert_eq!(acts(&peers), [true, true]);
        peers.hear(PEER, 1, numbers(0, [1, 0]));
        assert_eq!(acts(&peers), [false, true], "interface 0 was lost");
        peers.hear(PEER, 0, numbers(0, [1, 0]));
        assert_eq!(acts(&peers), [true, true], "its new stream");
        // The slower interface's announcement of the first loss comes behind the announcement of
        // the second.
        peers.hear(PEER, 0, numbers(0, [2, 0]));
        peers.hear(PEER, 1, numbers(0, [1, 0]));
        assert_eq!(acts(&peers), [true, true]);
        // After power-on the count starts again.
        peers.hear(PEER, 1, numbers(1, [0, 0]));
        assert_eq!(acts(&peers), [false, true]);
        peers.hear(PEER, 0, numbers(1, [0, 0]));
        assert_eq!(acts(&peers), [true, true]);
    }

    #[test]
    fn an_older_number_is_older_across_the_wrap() {
        let mut peers = PeerStreams::new(2);
        (1..=7).for_each(|losses| peers.hear(PEER, 0, numbers(0, [losses, 0])));
        peers.hear(PEER, 0, numbers(0, [1, 0]));
        peers.hear(PEER, 1, numbers(0, [6, 0]));
        assert_eq!(peers.newest(PEER), numbers(0, [1, 0]));
    }

    /// With one path left, an announcement of each loss must come before the next loss.
    #[test]
    fn seven_losses_whose_words_are_all_lost_are_heard_of_by_the_next() {
        for losses in 1..=7 {
            let mut peers = PeerStreams::new(2);
            peers.hear(PEER, 1, numbers(0, [0, losses]));
            assert_eq!(peers.newest(PEER), numbers(0, [0, losses]));
            assert!(peers.is_newest(PEER, 1), "{losses}");
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Loss { of: usize },
        Word { by: usize, late: [u64; 2] },
    }

    proptest::proptest! {
        /// The model counts without wrapping. Announcements are lost and late, but arrive in order
        /// on one interface.
        #[test]
        fn what_was_heard_is_the_latest_that_was_said(steps in vec(step(), 0..80)) {
            let mut peers = PeerStreams::new(2);
            let mut losses = [0_u64; 2];
            let mut heard = [[0_u64; 2]; 2];
            let newest = |heard: [[u64; 2]; 2], of: usize| heard[0][of].max(heard[1][of]);
            for step in steps {
                // The first count that an announcement by an interface can stand for.
                let first = |by: usize, of: usize| {
                    heard[by][of].max(newest(heard, of).saturating_sub(u64::from(BEHIND_MAX)))
                };
                match step {
                    Step::Loss { of } => {
                        let most = first(0, of).min(first(1, of)) + u64::from(NUMBER);
                        losses[of] = (losses[of] + 1).min(most);
                    }
                    Step::Word { by, late } => {
                        let said = [0, 1].map(|of| (losses[of] - late[of].min(losses[of]))
                            .max(first(by, of)));
                        heard[by] = said;
                        peers.hear(PEER, by, numbers(0, said.map(|count| count as u8 & NUMBER)));
                    }
                }
                for of in 0..2 {
                    let heard_newest = newest(heard, of);
                    assert_eq!(peers.newest(PEER).numbers[of], heard_newest as u8 & NUMBER);
                    assert_eq!(peers.is_newest(PEER, of), heard[of][of] == heard_newest);
                }
            }
        }
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..2_usize).prop_map(|of| Step::Loss { of }),
            (0..2_usize, [0..6_u64, 0..6]).prop_map(|(by, late)| Step::Word { by, late }),
        ]
    }

    #[test]
    fn copies_can_come_until_both_streams_have_ended() {
        let first = Streams::of_start(0);
        let ended = |start, losses| first.have_ended(numbers(start, losses));
        assert!(!ended(0, [0, 0]) && !ended(0, [3, 0]) && !ended(0, [0, 1]));
        assert!(ended(0, [1, 1]) && ended(1, [0, 0]));
    }
}
