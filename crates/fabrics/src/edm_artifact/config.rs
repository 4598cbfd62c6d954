//! The parameters that the rules leave open.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::Table;
use ethermem_units::{BLOCK_PAYLOAD_BYTES, Blocks, Bytes};
use ethermem_workload::InputError;

/// The time at which a receiver is granted to again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// While few enough bytes are in flight to it; the sender of its last grant waits as well.
    #[default]
    UnderWay,
    /// When the sender has sent its chunk, however many others it has to send before.
    Sent,
}

/// Parameters of `fabric.kind = "edm-artifact"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArtifactConfig {
    /// The time at which a receiver is granted to again.
    pub release: Release,
    /// Maximum bytes in flight to a receiver that is granted to.
    pub under_way: Bytes,
    /// If true, bytes behind the last whole block stay in flight.
    pub left_over: bool,
}

impl Default for ArtifactConfig {
    fn default() -> ArtifactConfig {
        ArtifactConfig { release: Release::UnderWay, under_way: Bytes(256), left_over: false }
    }
}

impl Parameters for ArtifactConfig {
    const TABLE: &'static str = "edm_artifact";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<ArtifactConfig, InputError> {
        let default = ArtifactConfig::default();
        let config = ArtifactConfig {
            release: table
                .choice("release", &[("under-way", Release::UnderWay), ("sent", Release::Sent)])?,
            under_way: Bytes(table.integer("under_way_bytes", default.under_way.0, 0..=65_536)?),
            left_over: table.flag("left_over", default.left_over)?,
        };
        Ok(config)
    }
}

impl ArtifactConfig {
    /// Number of blocks of a chunk, and number of its bytes that no block carries.
    pub(super) fn blocks_of(&self, chunk: u64) -> (Blocks, Bytes) {
        let left_over = chunk % BLOCK_PAYLOAD_BYTES;
        // A grant of less than a block is answered with one block.
        if self.left_over && chunk >= BLOCK_PAYLOAD_BYTES {
            (Bytes(chunk - left_over).to_blocks(), Bytes(left_over))
        } else {
            (Bytes(chunk).to_blocks(), Bytes(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fill_a_block_is_left_over_unless_it_is_all() {
        let sent = ArtifactConfig::default();
        let left = ArtifactConfig { left_over: true, ..sent };
        for (chunk, whole, cut) in
            [(256, (32, 0), (32, 0)), (180, (23, 0), (22, 4)), (4, (1, 0), (1, 0))]
        {
            let expected = |(blocks, bytes)| (Blocks(blocks), Bytes(bytes));
            assert_eq!(sent.blocks_of(chunk), expected(whole));
            assert_eq!(left.blocks_of(chunk), expected(cut));
        }
    }
}
