//! What a scenario says of an arbiter.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{Table, as_integer, node, rate_gbps};
use ethermem_engine::topology::Topology;
use ethermem_units::{BitsPerSecond, Bytes};
use ethermem_workload::{InputError, NodeIndex};

/// Parameters of `fabric.kind = "fastpass"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastpassConfig {
    /// Rate of the arbiter's link; `None` for that of the others.
    pub arbiter_link: Option<BitsPerSecond>,
    /// What a timeslot takes of a link: one frame, with preamble and gap.
    pub timeslot: Bytes,
    /// Most timeslots of one allocation, where each timeslot is decided by itself.
    pub allocation_timeslots: u8,
    /// Timeslots decided at once; `None` for 8 on leaf and spine and, on a single switch, for each
    /// by itself.
    pub epoch_timeslots: Option<u8>,
    /// The node on whose switch the arbiter is, on a port of its own.
    pub arbiter_beside: NodeIndex,
    /// When the timeslots of an epoch begin.
    pub starts: Starts,
}

impl Default for FastpassConfig {
    fn default() -> FastpassConfig {
        FastpassConfig {
            arbiter_link: None,
            timeslot: Bytes(1_538),
            allocation_timeslots: 8,
            epoch_timeslots: None,
            arbiter_beside: 0,
            starts: Starts::WhenTold,
        }
    }
}

impl Parameters for FastpassConfig {
    const TABLE: &'static str = "fastpass";

    fn read(table: &Table<'_>, config: &FabricConfig) -> Result<FastpassConfig, InputError> {
        let default = FastpassConfig::default();
        let timeslots = u64::from(default.allocation_timeslots);
        let config = FastpassConfig {
            arbiter_link: rate_gbps(table, "arbiter_gbps", "link_gbps")?,
            timeslot: Bytes(table.integer("timeslot_bytes", default.timeslot.0, 128..=9_038)?),
            allocation_timeslots: table.integer("allocation_timeslots", timeslots, 1..=255)? as u8,
            epoch_timeslots: table
                .read("epoch_timeslots", "8 on leaf-spine", "1 to 14", |value| {
                    as_integer(value).filter(|timeslots| (1..=14).contains(timeslots))
                })?
                .map(|timeslots| timeslots as u8),
            arbiter_beside: node(table, "arbiter_beside", config.nodes)?,
            starts: table.choice(
                "starts",
                &[("when-told", Starts::WhenTold), ("together", Starts::Together)],
            )?,
        };
        Ok(config)
    }
}

/// When the timeslots of an epoch begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// At each node with its allocation.
    WhenTold,
    /// At all nodes at once, by a clock that they share, when the last of them has its allocation.
    Together,
}

/// Timeslots of an epoch on leaf and spine, where the scenario does not say.
const EPOCH_TIMESLOTS: u8 = 8;

/// Timeslots decided at once; `None` for each by itself.
pub(super) fn epoch_timeslots(config: &FabricConfig) -> Option<u8> {
    let default = match config.topology {
        Topology::SingleSwitch => None,
        Topology::LeafSpine(_) => Some(EPOCH_TIMESLOTS),
    };
    config.of::<FastpassConfig>().epoch_timeslots.or(default)
}
