//! The parameters of an arbiter in a scenario.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{Table, as_integer, node, rate_gbps};
use ethermem_engine::topology::Topology;
use ethermem_units::{BitsPerSecond, Bytes};
use ethermem_workload::{InputError, NodeIndex};

/// Parameters of `fabric.kind = "fastpass"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastpassConfig {
    /// Rate of the arbiter's link; `None` for the rate of the other links.
    pub arbiter_link: Option<BitsPerSecond>,
    /// Size of a timeslot on a link: one frame, with preamble and gap.
    pub timeslot: Bytes,
    /// Maximum timeslots of one allocation, if each timeslot is decided by itself.
    pub allocation_timeslots: u8,
    /// Number of timeslots decided at once. `None` for 8 on leaf and spine; on a single switch each
    /// timeslot is then decided by itself.
    pub epoch_timeslots: Option<u8>,
    /// The node whose switch has the arbiter, on a port of its own.
    pub arbiter_beside: NodeIndex,
    /// The start of an epoch's timeslots.
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

/// The start of an epoch's timeslots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// Each node starts when its allocation arrives.
    WhenTold,
    /// All nodes start at one time, by a shared clock, when the last of them has its allocation.
    Together,
}

/// Number of timeslots of an epoch on leaf and spine, if the scenario has no value.
const EPOCH_TIMESLOTS: u8 = 8;

/// Number of timeslots decided at once; `None` if each is decided by itself.
pub(super) fn epoch_timeslots(config: &FabricConfig) -> Option<u8> {
    let default = match config.topology {
        Topology::SingleSwitch => None,
        Topology::LeafSpine(_) => Some(EPOCH_TIMESLOTS),
    };
    config.of::<FastpassConfig>().epoch_timeslots.or(default)
}
