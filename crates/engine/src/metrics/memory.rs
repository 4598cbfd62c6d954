//! Bytes that memories read and write, over time.

use serde::Serialize;

/// Traffic of the memories that a fabric simulates, by memory, by user and by slice of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct MemoryTraffic {
    /// Length of a slice.
    pub slice_ns: f64,
    /// One entry for each memory and user that moved a byte.
    pub uses: Vec<MemoryUse>,
}

/// What one user moved to and from one memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct MemoryUse {
    /// Rack of the memory.
    pub rack: u16,
    /// Kind of the memory.
    pub memory: MemoryKind,
    /// Number of the memory: the node that it belongs to, or the number of the device in its rack.
    pub number: u16,
    /// What reads and writes.
    pub user: MemoryUser,
    /// The node that reads and writes, or whose packets the NICs read and write.
    pub node: u16,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes read in each slice, from time 0 to the last slice with a byte.
    pub read_bytes_by_slice: Vec<u64>,
    /// Bytes written in each slice, from time 0 to the last slice with a byte.
    pub written_bytes_by_slice: Vec<u64>,
}

/// Kind of a memory of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MemoryKind {
    /// DRAM of a node.
    Node,
    /// A memory device on the memory fabric.
    Device,
    /// The DRAM cache in the port of a node.
    Cache,
}

/// What reads and writes a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MemoryUser {
    /// A node, by loads and stores or through its DRAM cache.
    Node,
    /// The NICs of the rack, by DMA.
    Nics,
}

impl MemoryTraffic {
    /// Bytes read and written in each slice, by the uses that a filter selects.
    pub fn by_slice(&self, is_selected: impl Fn(&MemoryUse) -> bool) -> Vec<u64> {
        let mut sum = Vec::new();
        for one in self.uses.iter().filter(|one| is_selected(one)) {
            for slices in [&one.read_bytes_by_slice, &one.written_bytes_by_slice] {
                if slices.len() > sum.len() {
                    sum.resize(slices.len(), 0);
                }
                sum.iter_mut().zip(slices).for_each(|(sum, bytes)| *sum += bytes);
            }
        }
        sum
    }

    /// Gb/s of the busiest slice, over the uses that a filter selects.
    pub fn gbps_max(&self, is_selected: impl Fn(&MemoryUse) -> bool) -> f64 {
        let most = self.by_slice(is_selected).into_iter().max().unwrap_or(0);
        most as f64 * 8.0 / self.slice_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_slice_is_that_of_the_sum() {
        let one = |node, read: &[u64], written: &[u64]| MemoryUse {
            rack: 0,
            memory: MemoryKind::Device,
            number: 0,
            user: MemoryUser::Node,
            node,
            read_bytes: read.iter().sum(),
            written_bytes: written.iter().sum(),
            read_bytes_by_slice: read.to_vec(),
            written_bytes_by_slice: written.to_vec(),
        };
        let uses = vec![one(0, &[100, 0, 20], &[0, 30]), one(1, &[], &[0, 80])];
        let traffic = MemoryTraffic { slice_ns: 8.0, uses };
        assert_eq!(traffic.by_slice(|_| true), [100, 110, 20]);
        assert_eq!(traffic.gbps_max(|_| true), 110.0);
        assert_eq!(traffic.gbps_max(|of| of.node == 1), 80.0);
        assert_eq!(traffic.gbps_max(|of| of.node == 2), 0.0);
    }
}
