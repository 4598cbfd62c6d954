//! Parameters of the idealised receiver-driven transport.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{Table, as_integer};
use ethermem_units::Bytes;
use ethermem_workload::InputError;

use crate::Framing;

/// What a window may be: from a frame's worth to what no link holds.
const WINDOW_BYTES: (u64, u64) = (64, 1_000_000_000);

/// Parameters of `fabric.kind = "ird"`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IrdConfig {
    /// What messages and credits are put into.
    pub framing: Framing,
    /// Data that a receiver may have called for and not got, as the line counts it; `None` for a
    /// round trip of it.
    pub window: Option<Bytes>,
}

impl Parameters for IrdConfig {
    const TABLE: &'static str = "ird";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<IrdConfig, InputError> {
        let (least, most) = WINDOW_BYTES;
        let config = IrdConfig {
            framing: table.choice("framing", &[("mac", Framing::Mac), ("phy", Framing::Phy)])?,
            window: table
                .read(
                    "window_bytes",
                    "a round trip of the link",
                    &format!("{least} to {most}"),
                    |v| as_integer(v).filter(|bytes| (least..=most).contains(bytes)),
                )?
                .map(Bytes),
        };
        Ok(config)
    }
}
