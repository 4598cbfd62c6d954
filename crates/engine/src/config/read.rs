//! Reads the tables `fabric` and `background` of a scenario. Each fabric reads its own parameters.

use std::cell::RefCell;
use std::path::Path;

use ethermem_files::InputError;
use ethermem_units::BitsPerSecond;
use toml::de::DeTable;

use super::{
    AllParameters, Background, FabricConfig, FrameArbitration, NODES_MAX, PacketConfig, Reader,
    Topology, pcs_clock,
};
use crate::keys::{Source, Table, clock_ns, delay_ns, rate_gbps};

const DEFAULT_LINK: BitsPerSecond = match BitsPerSecond::from_gbps(100) {
    Ok(rate) => rate,
    Err(_) => panic!("100 Gb/s is an Ethernet rate"),
};

impl FabricConfig {
    /// Reads the kind and the configuration of a fabric from the tables `fabric` and `background`.
    /// `kinds` lists the valid kinds, the default one first; `readers` read their parameters.
    ///
    /// # Errors
    /// [`InputError`] with the line and key of an invalid value.
    pub fn read(
        root: &Table<'_>,
        kinds: &[&str],
        readers: impl Iterator<Item = Reader>,
    ) -> Result<(String, FabricConfig), InputError> {
        let table = root.table("fabric")?;
        let kinds: Vec<(&str, &str)> = kinds.iter().map(|&name| (name, name)).collect();
        let kind = table.choice("kind", &kinds)?.to_owned();
        let nodes = table.integer("nodes", 144, 2..=u64::from(NODES_MAX))? as u16;
        let link = rate_gbps(&table, "link_gbps", "100")?.unwrap_or(DEFAULT_LINK);
        let mut config = FabricConfig {
            nodes,
            link,
            propagation: delay_ns(&table, "propagation_ns", 10)?,
            transceiver: delay_ns(&table, "transceiver_ns", 19)?,
            memory_access: delay_ns(&table, "memory_access_ns", 0)?,
            pcs_clock: clock_ns(&table, "pcs_clock_ns", "64 bits at the lane rate of link_gbps")?
                .unwrap_or_else(|| pcs_clock(link)),
            topology: Topology::read(&table, link)?,
            packet: PacketConfig::read(&table)?,
            background: background(root.table("background")?)?,
            parameters: AllParameters::default(),
        };
        let mut parameters = AllParameters::default();
        for reader in readers {
            reader.read(table.table(reader.table)?, &config, &mut parameters)?;
        }
        config.parameters = parameters;
        config
            .parameters
            .check(&config)
            .or_else(|(of, key, problem)| Err(table.table(of)?.error(key, problem)))?;
        table.finish()?;
        Ok((kind, config))
    }

    /// Reads the configuration of a fabric from TOML that has no other tables.
    ///
    /// # Errors
    /// [`InputError`] with the line and key of an invalid value.
    pub fn parse(
        text: &str,
        kind: &str,
        readers: impl Iterator<Item = Reader>,
    ) -> Result<FabricConfig, InputError> {
        let file = Path::new("fabric.toml");
        let source = Source { file, text, file_bytes: text.len(), keys: RefCell::default() };
        let values = DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(text.len(), |span| span.start);
            source.error(offset, format!("not TOML: {}", error.message()))
        })?;
        let root = source.root(values.get_ref());
        let (_, config) = FabricConfig::read(&root, &[kind], readers)?;
        root.finish()?;
        Ok(config)
    }
}

fn background(table: Table<'_>) -> Result<Background, InputError> {
    let arbitrations = [
        ("fair", FrameArbitration::Fair),
        ("strict", FrameArbitration::Strict),
        ("preemptive", FrameArbitration::Preemptive),
    ];
    let background = Background {
        load: table.number("load", 0.0, 0.0..=1.0)?,
        frame_bytes: table.integer("frame_bytes", 1518, 64..=9018)? as u32,
        arbitration: table.choice("arbitration", &arbitrations)?,
    };
    table.finish()?;
    Ok(background)
}
