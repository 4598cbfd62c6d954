//! Parameters of the idealised receiver-driven transport.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{Table, as_integer};
use ethermem_units::Bytes;
use ethermem_workload::InputError;

use crate::Framing;

/// Bounds of a window in bytes: from one frame to more than any link holds.
const WINDOW_BYTES: (u64, u64) = (64, 1_000_000_000);

/// Parameters of `fabric.kind = "ird"`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IrdConfig {
    /// The framing of messages and credits.
    pub framing: Framing,
    /// Maximum data that a receiver has requested and not received, as counted on the line; `None`
    /// for a round trip of it.
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
