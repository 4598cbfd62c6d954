//! CXL's parameters.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{Table, as_integer, delay_ns};
use ethermem_units::Ps;
use ethermem_workload::InputError;

use super::{Flit, Queues, Sharing};

/// Parameters of `fabric.kind = "cxl"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CxlConfig {
    /// The packing of slots.
    pub flit: Flit,
    /// The buffer entries at either end of a link; an entry holds a line with its header, or
    /// requests.
    pub sharing: Sharing,
    /// The order in which a switch forwards entries.
    pub queues: Queues,
    /// Number of requests of a message that share an entry: at most the four of a flit of 68 B.
    pub requests_each: u32,
    /// Time through the switch, including its two ports.
    pub switch: Ps,
    /// Time through a node's port in one direction.
    pub port: Ps,
    /// Time from the release of an entry to its credit on the wire.
    pub credit_return: Ps,
}

impl Default for CxlConfig {
    fn default() -> CxlConfig {
        CxlConfig {
            flit: Flit::Bytes68,
            sharing: Sharing::ByClass {
                request_entries: 64,
                write_entries: 64,
                response_entries: 64,
            },
            queues: Queues::PerPort,
            requests_each: 4,
            switch: Ps::from_ns(70),
            port: Ps::from_ns(25),
            credit_return: Ps::from_ns(25),
        }
    }
}

impl Parameters for CxlConfig {
    const TABLE: &'static str = "cxl";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<CxlConfig, InputError> {
        let default = CxlConfig::default();
        let flit = table.read("flit_bytes", 68, "68, 256", |value| match as_integer(value)? {
            68 => Some(Flit::Bytes68),
            256 => Some(Flit::Bytes256),
            _ => None,
        })?;
        let config = CxlConfig {
            flit: flit.unwrap_or(default.flit),
            sharing: sharing(table)?,
            queues: table.choice(
                "queues",
                &[("per-port", Queues::PerPort), ("per-output", Queues::PerOutput)],
            )?,
            requests_each: table.integer(
                "requests_per_entry",
                default.requests_each.into(),
                1..=4,
            )? as u32,
            switch: delay_ns(table, "switch_ns", 70)?,
            port: delay_ns(table, "port_ns", 25)?,
            credit_return: delay_ns(table, "credit_return_ns", 25)?,
        };
        Ok(config)
    }
}

/// The entries of a buffer, for all classes of messages or by class.
fn sharing(table: &Table<'_>) -> Result<Sharing, InputError> {
    let by_class = table.choice("credits", &[("by-class", true), ("shared", false)])?;
    table.only("buffer_entries", "with credits = \"shared\"", !by_class)?;
    let entries = |key, default| Ok(table.integer(key, default, 1..=65_536)? as u32);
    let shared = Sharing::Shared { entries: entries("buffer_entries", 64)? };
    for key in ["request_entries", "write_entries", "response_entries"] {
        table.only(key, "with credits = \"by-class\"", by_class)?;
    }
    let own = Sharing::ByClass {
        request_entries: entries("request_entries", 64)?,
        write_entries: entries("write_entries", 64)?,
        response_entries: entries("response_entries", 64)?,
    };
    Ok(if by_class { own } else { shared })
}
