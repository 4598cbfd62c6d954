//! The tables of fabrics that send on credit or by allocation.

use ethermem_units::Bytes;

use super::fabric::{delay_ns, rate_gbps};
use super::table::{Table, as_integer};
use super::workload::node;
use crate::fabrics::Framing;
use crate::fabrics::cxl::{CxlConfig, Flit, Sharing};
use crate::fabrics::edm_artifact::{ArtifactConfig, Release};
use crate::fabrics::fastpass::{FastpassConfig, Starts};
use crate::fabrics::ird::IrdConfig;
use crate::workload::InputError;

/// What a window may be: from a frame's worth to what no link holds.
const WINDOW_BYTES: (u64, u64) = (64, 1_000_000_000);

pub(super) fn ird(table: Table<'_>) -> Result<IrdConfig, InputError> {
    let (least, most) = WINDOW_BYTES;
    let config = IrdConfig {
        framing: table.choice("framing", &[("mac", Framing::Mac), ("phy", Framing::Phy)])?,
        window: table
            .read("window_bytes", "a round trip of the link", &format!("{least} to {most}"), |v| {
                as_integer(v).filter(|bytes| (least..=most).contains(bytes))
            })?
            .map(Bytes),
    };
    table.finish()?;
    Ok(config)
}

pub(super) fn edm_artifact(table: Table<'_>) -> Result<ArtifactConfig, InputError> {
    let default = ArtifactConfig::default();
    let config = ArtifactConfig {
        release: table
            .choice("release", &[("under-way", Release::UnderWay), ("sent", Release::Sent)])?,
        under_way: Bytes(table.integer("under_way_bytes", default.under_way.0, 0..=65_536)?),
        left_over: table.flag("left_over", default.left_over)?,
    };
    table.finish()?;
    Ok(config)
}

pub(super) fn fastpass(table: Table<'_>, nodes: u16) -> Result<FastpassConfig, InputError> {
    let default = FastpassConfig::default();
    let timeslots = u64::from(default.allocation_timeslots);
    let config = FastpassConfig {
        arbiter_link: rate_gbps(&table, "arbiter_gbps", "link_gbps")?,
        timeslot: Bytes(table.integer("timeslot_bytes", default.timeslot.0, 128..=9_038)?),
        allocation_timeslots: table.integer("allocation_timeslots", timeslots, 1..=255)? as u8,
        epoch_timeslots: table
            .read("epoch_timeslots", "8 on leaf-spine", "1 to 14", |value| {
                as_integer(value).filter(|timeslots| (1..=14).contains(timeslots))
            })?
            .map(|timeslots| timeslots as u8),
        arbiter_beside: node(&table, "arbiter_beside", nodes)?,
        starts: table
            .choice("starts", &[("when-told", Starts::WhenTold), ("together", Starts::Together)])?,
    };
    table.finish()?;
    Ok(config)
}

pub(super) fn cxl(table: Table<'_>) -> Result<CxlConfig, InputError> {
    let default = CxlConfig::default();
    let flit = table.read("flit_bytes", 68, "68, 256", |value| match as_integer(value)? {
        68 => Some(Flit::Bytes68),
        256 => Some(Flit::Bytes256),
        _ => None,
    })?;
    let config = CxlConfig {
        flit: flit.unwrap_or(default.flit),
        sharing: sharing(&table)?,
        requests_each: table.integer("requests_per_entry", default.requests_each.into(), 1..=4)?
            as u32,
        switch: delay_ns(&table, "switch_ns", 70)?,
        port: delay_ns(&table, "port_ns", 25)?,
        credit_return: delay_ns(&table, "credit_return_ns", 25)?,
    };
    table.finish()?;
    Ok(config)
}

/// The entries of a buffer, for all classes of messages or by class.
fn sharing(table: &Table<'_>) -> Result<Sharing, InputError> {
    let by_class = table.choice("credits", &[("shared", false), ("by-class", true)])?;
    table.only("buffer_entries", "with credits = \"shared\"", !by_class)?;
    let entries = |key, default| Ok(table.integer(key, default, 1..=65_536)? as u32);
    let shared = Sharing::Shared { entries: entries("buffer_entries", 64)? };
    for key in ["request_entries", "write_entries", "response_entries"] {
        table.only(key, "with credits = \"by-class\"", by_class)?;
    }
    let own = Sharing::ByClass {
        request_entries: entries("request_entries", 16)?,
        write_entries: entries("write_entries", 24)?,
        response_entries: entries("response_entries", 24)?,
    };
    Ok(if by_class { own } else { shared })
}
