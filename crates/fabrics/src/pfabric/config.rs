//! pFabric's parameters.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{BUFFER_BYTES, Table, buffer_or, bytes, timeout_or, window_or};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::InputError;

/// pFabric's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PfabricConfig {
    /// IP and transport headers of a packet.
    pub header: Bytes,
    /// Bytes of a port's buffer; `None` for two bandwidth-delay products.
    pub buffer: Option<Bytes>,
    /// Window of a new flow in packets; `None` for a bandwidth-delay product.
    pub window_packets_initial: Option<u32>,
    /// Maximum window in packets; `None` for a quarter more than the initial one.
    pub window_packets_max: Option<u32>,
    /// Retransmission timeout; `None` for a round trip and the drain of full queues.
    pub timeout: Option<Ps>,
    /// Number of consecutive timeouts after which a flow only probes.
    pub probe_after: u32,
    /// If true, acknowledgements go before all data; if false, behind it.
    pub acknowledgements_first: bool,
}

impl Default for PfabricConfig {
    fn default() -> PfabricConfig {
        PfabricConfig {
            header: Bytes(40),
            buffer: None,
            window_packets_initial: None,
            window_packets_max: None,
            timeout: None,
            probe_after: 5,
            acknowledgements_first: true,
        }
    }
}

impl Parameters for PfabricConfig {
    const TABLE: &'static str = "pfabric";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<PfabricConfig, InputError> {
        let default = PfabricConfig::default();
        let header = bytes(table, "header_bytes", default.header, (0, 128))?;
        let buffer_default = "2 bandwidth-delay products";
        let buffer = buffer_or(table, "buffer_bytes", buffer_default, BUFFER_BYTES.0)?;
        let window = |key, default| window_or(table, key, default);
        let config = PfabricConfig {
            header,
            buffer,
            window_packets_initial: window("window_packets_initial", "a bandwidth-delay product")?,
            window_packets_max: window("window_packets_max", "1.25 of the initial one")?,
            timeout: timeout_or(table, "rto_us", "a round trip and full queues")?,
            probe_after: table.integer("probe_after", default.probe_after.into(), 1..=1_000)?
                as u32,
            acknowledgements_first: table
                .flag("acknowledgements_first", default.acknowledgements_first)?,
        };
        Ok(config)
    }
}
