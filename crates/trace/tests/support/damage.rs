//! Damage to a file.

use proptest::prelude::*;
use proptest::sample::Index;

/// Changed octets, and a truncation, if any.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    octets: Vec<(Index, u8)>,
    end: Option<Index>,
}

impl Damage {
    pub(crate) fn any() -> impl Strategy<Value = Damage> {
        let octets = prop::collection::vec((any::<Index>(), any::<u8>()), 1..4);
        (octets, any::<Option<Index>>()).prop_map(|(octets, end)| Damage { octets, end })
    }

    /// The damaged file.
    pub(crate) fn done_to(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        for (at, octet) in &self.octets {
            let at = at.index(bytes.len());
            bytes[at] = *octet;
        }
        if let Some(end) = self.end {
            bytes.truncate(end.index(bytes.len()));
        }
        bytes
    }
}
