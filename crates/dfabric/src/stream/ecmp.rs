//! Paths of subflows: a switch of the core hashes the five numbers of a packet, so that all packets
//! of a subflow take one path (section 4.4: "mapped to a fixed path via ECMP").
//!
//! The hash is Toeplitz with the key of Microsoft's RSS, whose published vectors test it. Which
//! hash a switch has is the vendor's; what matters is that it is fixed for a subflow.

/// The key of the published vectors.
pub const TOEPLITZ_KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// The numbers by which a switch tells flows apart. The protocol is TCP for all subflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FiveTuple {
    /// IPv4 address of the sender.
    pub source: u32,
    /// IPv4 address of the receiver.
    pub destination: u32,
    /// The sender's port; a subflow has its own.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
}

impl FiveTuple {
    /// The Toeplitz hash of addresses and ports.
    #[must_use]
    pub fn hash(&self) -> u32 {
        let mut octets = [0; 12];
        octets[..4].copy_from_slice(&self.source.to_be_bytes());
        octets[4..8].copy_from_slice(&self.destination.to_be_bytes());
        octets[8..10].copy_from_slice(&self.source_port.to_be_bytes());
        octets[10..].copy_from_slice(&self.destination_port.to_be_bytes());
        let mut key = [0; 8];
        let mut hash = 0;
        for (at, octet) in octets.into_iter().enumerate() {
            key.copy_from_slice(&TOEPLITZ_KEY[at..at + 8]);
            let window = u64::from_be_bytes(key);
            for bit in (0..8).filter(|bit| octet >> (7 - bit) & 1 == 1) {
                hash ^= (window << bit >> 32) as u32;
            }
        }
        hash
    }
}

/// The path of a subflow among so many equal ones.
///
/// # Panics
/// If there is no path.
#[must_use]
pub fn pinned_path(subflow: &FiveTuple, paths: u16) -> u16 {
    (subflow.hash() % u32::from(paths)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Microsoft, "Verifying the RSS Hash Calculation": IPv4 with TCP.
    #[test]
    fn the_hash_is_that_of_the_published_vectors() {
        let ip = |a, b, c, d| u32::from_be_bytes([a, b, c, d]);
        let vectors = [
            (ip(66, 9, 149, 187), 2794, ip(161, 142, 100, 80), 1766, 0x51cc_c178),
            (ip(199, 92, 111, 2), 14230, ip(65, 69, 140, 83), 4739, 0xc626_b0ea),
            (ip(24, 19, 198, 95), 12898, ip(12, 22, 207, 184), 38024, 0x5c2b_394a),
        ];
        for (source, source_port, destination, destination_port, hash) in vectors {
            let tuple = FiveTuple { source, destination, source_port, destination_port };
            assert_eq!(tuple.hash(), hash, "{tuple:?}");
        }
    }

    #[test]
    fn subflows_spread_over_paths_and_each_keeps_its_own() {
        let tuple = |source_port| FiveTuple {
            source: 0x0a00_0001,
            destination: 0x0a01_0001,
            source_port,
            destination_port: 80,
        };
        let mut used = [0; 4];
        for port in 40_000..40_400 {
            let path = pinned_path(&tuple(port), 4);
            assert_eq!(path, pinned_path(&tuple(port), 4));
            used[usize::from(path)] += 1;
        }
        assert!(used.iter().all(|&count| (60..=140).contains(&count)), "{used:?}");
    }
}
