//! The tables `fabric` and `background`; those of fabrics are read by them.

use ethermem_units::BitsPerSecond;

use super::packet;
use crate::config::AllParameters;
use crate::config::{Background, FabricConfig, pcs_clock};
use crate::keys::{Table, clock_ns, delay_ns, rate_gbps};
use crate::registry::FABRICS;
use crate::workload::InputError;

const DEFAULT_LINK: BitsPerSecond = match BitsPerSecond::from_gbps(100) {
    Ok(rate) => rate,
    Err(_) => panic!("100 Gb/s is an Ethernet rate"),
};

/// The kind and the configuration of the fabric; `fabrics` are the kinds there are, the default
/// one first.
pub(super) fn read(
    root: &Table<'_>,
    fabrics: &[&str],
) -> Result<(String, FabricConfig), InputError> {
    let table = root.table("fabric")?;
    let kinds: Vec<(&str, &str)> = fabrics.iter().map(|&name| (name, name)).collect();
    let kind = table.choice("kind", &kinds)?.to_owned();
    let nodes = table.integer("nodes", 144, 2..=512)? as u16;
    let link = link_rate(&table)?;
    let mut config = FabricConfig {
        nodes,
        link,
        propagation: delay_ns(&table, "propagation_ns", 10)?,
        transceiver: delay_ns(&table, "transceiver_ns", 19)?,
        memory_access: delay_ns(&table, "memory_access_ns", 0)?,
        pcs_clock: clock_ns(&table, "pcs_clock_ns", "64 bits at the lane rate of link_gbps")?
            .unwrap_or_else(|| pcs_clock(link)),
        topology: packet::topology(&table, link)?,
        packet: packet::read(&table)?,
        background: background(root.table("background")?)?,
        parameters: AllParameters::default(),
    };
    config.parameters = parameters(&table, &config)?;
    config
        .parameters
        .check(&config)
        .or_else(|(of, key, problem)| Err(table.table(of)?.error(key, problem)))?;
    table.finish()?;
    Ok((kind, config))
}

/// The tables of all fabrics, in the order of the registry.
fn parameters(fabric: &Table<'_>, config: &FabricConfig) -> Result<AllParameters, InputError> {
    let mut all = AllParameters::default();
    for reader in FABRICS.iter().filter_map(|fabric| fabric.parameters) {
        reader.read(fabric.table(reader.table)?, config, &mut all)?;
    }
    Ok(all)
}

fn background(table: Table<'_>) -> Result<Background, InputError> {
    let background = Background {
        load: table.number("load", 0.0, 0.0..=1.0)?,
        frame_bytes: table.integer("frame_bytes", 1518, 64..=9018)? as u32,
    };
    table.finish()?;
    Ok(background)
}

fn link_rate(table: &Table<'_>) -> Result<BitsPerSecond, InputError> {
    Ok(rate_gbps(table, "link_gbps", "100")?.unwrap_or(DEFAULT_LINK))
}
