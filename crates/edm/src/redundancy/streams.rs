//! Which of a peer's streams acts (rule R8 of `docs/internals/edm-faults.md`).
//!
//! What a node sends to a peer by an interface is a stream, and a new one begins whenever the
//! interface has lost the peer. A copy of a stream that was given up may be under way for as long
//! as an egress queue is, so no later message may act before the memory node knows that it is not
//! to act any more. Each node numbers its streams, and says the numbers by every interface.

use crate::message::NodeId;

/// Bits of a stream's number, and of the number of a node's start.
const NUMBER_BITS: u8 = 3;
const NUMBER: u8 = (1 << NUMBER_BITS) - 1;
const START: u8 = 0b11;

/// A node's newest streams to one peer: which start of the node they are of, and a number by
/// interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    start: u8,
    numbers: [u8; 2],
}

impl Streams {
    /// The first streams of a start of a node.
    pub(super) const fn of_start(start: u8) -> Streams {
        Streams { start: start & START, numbers: [0; 2] }
    }

    /// As they go on the wire, in the eight bits of a message id.
    #[must_use]
    pub const fn to_bits(self) -> u8 {
        self.numbers[0] | self.numbers[1] << NUMBER_BITS | self.start << (2 * NUMBER_BITS)
    }

    /// From the wire.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Streams {
        let numbers = [bits & NUMBER, bits >> NUMBER_BITS & NUMBER];
        Streams { start: bits >> (2 * NUMBER_BITS), numbers }
    }

    /// The interface has lost the peer.
    pub(super) fn begin(&mut self, interface: usize) {
        self.numbers[interface] = self.numbers[interface].wrapping_add(1) & NUMBER;
    }

    /// Of two counts of the same losses the later. They are less than half of all apart: a node
    /// loses a peer no more often while word of it is under way.
    fn merge(&mut self, told: Streams) {
        for (newest, told) in self.numbers.iter_mut().zip(told.numbers) {
            let ahead = told.wrapping_sub(*newest) & NUMBER;
            if ahead <= NUMBER / 2 {
                *newest = told;
            }
        }
    }

    /// Whether all streams of this were given up by the time of `newest`: what came by them has no
    /// copy that may yet act.
    pub(super) fn have_ended(self, newest: Streams) -> bool {
        let ended = |interface: usize| self.numbers[interface] != newest.numbers[interface];
        self.start != newest.start || (ended(0) && ended(1))
    }
}

/// What one peer said of its streams.
#[derive(Clone, Copy, Debug)]
struct Told {
    newest: Streams,
    /// The number that it said last by each interface itself.
    by_itself: [Option<u8>; 2],
}

/// The streams of all peers, at a memory node.
#[derive(Debug)]
pub(super) struct PeerStreams(Vec<Told>);

impl PeerStreams {
    /// Every peer on the first streams of its first start.
    pub(super) fn new(nodes: u16) -> PeerStreams {
        let told = Told { newest: Streams::of_start(0), by_itself: [Some(0); 2] };
        PeerStreams(vec![told; usize::from(nodes)])
    }

    /// A peer said its numbers by an interface.
    pub(super) fn hear(&mut self, peer: NodeId, interface: usize, streams: Streams) {
        let Some(told) = self.0.get_mut(usize::from(peer.number())) else { return };
        if told.newest.start == streams.start {
            told.newest.merge(streams);
        } else {
            *told = Told { newest: streams, by_itself: [None; 2] };
        }
        told.by_itself[interface] = Some(streams.numbers[interface]);
    }

    /// A peer's newest streams.
    pub(super) fn newest(&self, peer: NodeId) -> Streams {
        self.0[usize::from(peer.number())].newest
    }

    /// Whether what a peer sends by an interface acts.
    pub(super) fn is_newest(&self, peer: NodeId, interface: usize) -> bool {
        let told = self.0.get(usize::from(peer.number()));
        told.is_some_and(|told| told.by_itself[interface] == Some(told.newest.numbers[interface]))
    }
}

#[cfg(test)]
mod tests {
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
        // Word of the first loss by the slower interface comes behind word of the second.
        peers.hear(PEER, 0, numbers(0, [2, 0]));
        peers.hear(PEER, 1, numbers(0, [1, 0]));
        assert_eq!(acts(&peers), [true, true]);
        // After power-on it counts anew.
        peers.hear(PEER, 1, numbers(1, [0, 0]));
        assert_eq!(acts(&peers), [false, true]);
        peers.hear(PEER, 0, numbers(1, [0, 0]));
        assert_eq!(acts(&peers), [true, true]);
    }

    #[test]
    fn an_older_number_is_older_across_the_wrap() {
        let mut newest = numbers(0, [7, 2]);
        newest.merge(numbers(0, [1, 7]));
        assert_eq!(newest, numbers(0, [1, 2]));
    }

    #[test]
    fn copies_can_come_until_both_streams_have_ended() {
        let first = Streams::of_start(0);
        let ended = |start, losses| first.have_ended(numbers(start, losses));
        assert!(!ended(0, [0, 0]) && !ended(0, [3, 0]) && !ended(0, [0, 1]));
        assert!(ended(0, [1, 1]) && ended(1, [0, 0]));
    }
}
