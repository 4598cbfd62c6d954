//! What the rules leave open.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::Table;
use ethermem_units::{BLOCK_PAYLOAD_BYTES, Blocks, Bytes};
use ethermem_workload::InputError;

/// When a receiver is granted to again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// While little enough is under way to it; whoever it was granted to last waits as well.
    #[default]
    UnderWay,
    /// When the sender has sent its chunk, however many others it has to send before.
    Sent,
}

/// Parameters of `fabric.kind = "edm-artifact"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArtifactConfig {
    /// When a receiver is granted to again.
    pub release: Release,
    /// What may be under way to a receiver that is granted to.
    pub under_way: Bytes,
    /// Whether bytes behind the last whole block stay under way.
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
    /// Blocks that a chunk takes, and its bytes that none of them brings.
    pub(super) fn blocks_of(&self, chunk: u64) -> (Blocks, Bytes) {
        let left_over = chunk % BLOCK_PAYLOAD_BYTES;
        // A grant of less than a block is answered with one.
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
