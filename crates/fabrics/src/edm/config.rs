//! EDM's parameters. Fabrics that frame or schedule as EDM does read them as well.

use std::ops::{Deref, RangeInclusive};

use ethermem_edm::{Arbitration, EdmConfig, Order, Policy};
use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::config::pcs_clock;
use ethermem_engine::keys::{Table, as_integer, clock_ns, timeout_us};
use ethermem_units::{BitsPerSecond, Bytes, Ps};
use ethermem_workload::InputError;

const CHUNK_BYTES: RangeInclusive<u64> = 64..=1024;
const EGRESS_WINDOW_BLOCKS: RangeInclusive<u64> = 130..=1_000_000;

/// EDM's own configuration, as a table of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdmParameters(pub EdmConfig);

impl Deref for EdmParameters {
    type Target = EdmConfig;

    fn deref(&self) -> &EdmConfig {
        &self.0
    }
}

impl Parameters for EdmParameters {
    const TABLE: &'static str = "edm";

    fn read(table: &Table<'_>, config: &FabricConfig) -> Result<EdmParameters, InputError> {
        let default = EdmConfig::default();
        let chunk = table.read(
            "chunk_bytes",
            default.chunk.0,
            &format!("a multiple of 64 from {} to {}", CHUNK_BYTES.start(), CHUNK_BYTES.end()),
            |value| as_integer(value).filter(|b| CHUNK_BYTES.contains(b) && b.is_multiple_of(64)),
        )?;
        let config = EdmConfig {
            chunk: chunk.map_or(default.chunk, Bytes),
            notifications_max: table.integer(
                "notifications_max",
                u64::from(default.notifications_max),
                1..=8,
            )? as u8,
            policy: table.choice(
                "policy",
                &[
                    ("srpt", Policy::Srpt),
                    ("srpt-published", Policy::SrptPublished),
                    ("srpt-classes", Policy::SrptClasses),
                    ("fcfs", Policy::Fcfs),
                    ("auto", Policy::Auto),
                ],
            )?,
            order: table.choice(
                "order",
                &[("pair", Order::Pair), ("strict", Order::Strict), ("relaxed", Order::Relaxed)],
            )?,
            arbitration: table.choice(
                "arbitration",
                &[("fair", Arbitration::Fair), ("strict", Arbitration::Strict)],
            )?,
            batching: table.flag("batching", default.batching)?,
            read_timeout: timeout_us(table, "read_timeout_us", default.read_timeout)?,
            scheduler_clock: clock_ns(table, "scheduler_clock_ns", "0.333, up to 25 Gb/s 2.56")?
                .or(Some(scheduler_clock(config.link))),
            lookahead_iterations: table.integer(
                "lookahead_iterations",
                u64::from(default.lookahead_iterations),
                1..=8,
            )? as u8,
            ahead_blocks: table.integer("ahead_blocks", u64::from(default.ahead_blocks), 0..=256)?
                as u32,
            egress_window_blocks: egress_window(table)?,
        };
        Ok(EdmParameters(config))
    }

    fn quiet(&mut self) {
        // A read that comes later than a user waits for it still takes its time.
        self.0.read_timeout = Ps::from_ns(1_000_000_000_000);
    }
}

/// Reads the egress window: at least the blocks of the longest chunk.
fn egress_window(table: &Table<'_>) -> Result<Option<u32>, InputError> {
    let (least, most) = EGRESS_WINDOW_BLOCKS.into_inner();
    let allowed = format!("{least} to {most}");
    let window =
        table.read("egress_window_blocks", "a round trip and 1024", &allowed, |value| {
            as_integer(value).filter(|blocks| EGRESS_WINDOW_BLOCKS.contains(blocks))
        })?;
    Ok(window.map(|blocks| blocks as u32))
}

/// The default clock of the grant scheduler: the testbed's up to 25 Gb/s, and above that the 3 GHz
/// of the ASIC (section 4.1). At 100 Gb/s an iteration at the testbed's clock, 7.68 ns, would take
/// longer than a 64 B message.
#[must_use]
pub fn scheduler_clock(link: BitsPerSecond) -> Ps {
    const ASIC: Ps = Ps(333);
    if link.as_gbps_f64() > 25.0 { ASIC } else { pcs_clock(link) }
}
