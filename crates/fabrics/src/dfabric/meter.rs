//! What a memory reads and writes over time, if the scenario requests it.

use std::collections::BTreeMap;

use ethermem_engine::metrics::{MemoryKind, MemoryUse, MemoryUser};
use ethermem_units::Ps;

/// What uses a memory of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct User {
    /// Loads and stores of a node, or DMA of the NICs.
    pub(super) user: MemoryUser,
    /// By its number in the rack: the node, or the one whose packets the NICs read and write.
    pub(super) node: u16,
}

impl User {
    pub(super) const fn node(node: u16) -> User {
        User { user: MemoryUser::Node, node }
    }

    pub(super) const fn nics(node: u16) -> User {
        User { user: MemoryUser::Nics, node }
    }
}

/// Direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Read,
    Write,
}

/// Bytes of one memory by user and slice of time.
pub(super) struct Meter {
    slice: Ps,
    uses: BTreeMap<User, [Vec<u64>; 2]>,
}

impl Meter {
    /// A meter with slices of this length; `None` for a length of zero.
    pub(super) fn new(slice: Ps) -> Option<Box<Meter>> {
        (slice > Ps::ZERO).then(|| Box::new(Meter { slice, uses: BTreeMap::new() }))
    }

    /// Counts bytes that move evenly between two times. Each byte is in exactly one slice.
    pub(super) fn count(&mut self, user: User, way: Way, (begin, end): (Ps, Ps), bytes: u64) {
        let took = (end - begin).0.max(1);
        let slices = &mut self.uses.entry(user).or_default()[way as usize];
        let mut slice = begin.0 / self.slice.0;
        let mut counted = 0;
        while counted < bytes {
            let until = ((slice + 1) * self.slice.0 - begin.0).min(took);
            let moved = (u128::from(bytes) * u128::from(until) / u128::from(took)) as u64;
            if slices.len() <= slice as usize {
                slices.resize(slice as usize + 1, 0);
            }
            slices[slice as usize] += moved - counted;
            counted = moved;
            slice += 1;
        }
    }

    /// The uses of a memory with this name. `first` is the number of the rack's first node.
    pub(super) fn uses(
        &self,
        (rack, memory, number): (u16, MemoryKind, u16),
        first: u16,
    ) -> impl Iterator<Item = MemoryUse> {
        self.uses.iter().map(move |(user, [read, written])| MemoryUse {
            rack,
            memory,
            number,
            user: user.user,
            node: first + user.node,
            read_bytes: read.iter().sum(),
            written_bytes: written.iter().sum(),
            read_bytes_by_slice: read.clone(),
            written_bytes_by_slice: written.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(begin: u64, end: u64, bytes: u64) -> Vec<u64> {
        let mut meter = *Meter::new(Ps(10)).expect("it has slices");
        meter.count(User::node(0), Way::Read, (Ps(begin), Ps(end)), bytes);
        meter.uses((0, MemoryKind::Node, 0), 0).flat_map(|of| of.read_bytes_by_slice).collect()
    }

    #[test]
    fn bytes_are_spread_over_their_time() {
        assert_eq!(counted(5, 25, 100), [25, 50, 25]);
        assert_eq!(counted(10, 20, 7), [0, 7]);
        assert_eq!(counted(12, 12, 7), [0, 7], "an instant");
        assert_eq!(counted(0, 30, 1), [0, 0, 1], "a byte is in the slice in which it is whole");
        assert!(counted(0, 30, 0).is_empty());
    }

    #[test]
    fn without_slices_there_is_no_meter() {
        assert!(Meter::new(Ps::ZERO).is_none());
    }
}
