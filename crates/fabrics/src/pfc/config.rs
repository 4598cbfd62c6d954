//! Parameters of PFC and DCQCN.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{Table, as_integer, as_number, bytes, timeout_us};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::InputError;

use super::Thresholds;

/// Parameters of PFC and DCQCN. Rates and sizes that are `None` scale with the link's rate from the
/// paper's values at 40 Gb/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PfcConfig {
    /// IP, UDP, BTH and ICRC of a packet.
    pub header: Bytes,
    /// The kind of the pause thresholds.
    pub thresholds: Thresholds,
    /// Static thresholds: bytes kept of a link's packets above which the switch pauses the link.
    pub xoff: Option<Bytes>,
    /// Bytes kept at which the link resumes; `None` for two full frames less.
    pub xon: Option<Bytes>,
    /// Dynamic thresholds: bytes below its threshold at which the link resumes; `None` for two full
    /// frames.
    pub xon_offset: Option<Bytes>,
    /// Dynamic thresholds: the multiple of the free buffer that a link may use.
    pub alpha: f64,
    /// Dynamic thresholds: bytes of the buffer, including the headroom of all its links.
    pub buffer: Option<Bytes>,
    /// Bytes of headroom above the threshold, past which packets are dropped; `None` for what each
    /// link needs.
    pub headroom: Option<Bytes>,
    /// Kmin: queue in bytes up to which no packet is marked.
    pub ecn_min: Option<Bytes>,
    /// Kmax: queue in bytes from which on all packets are marked.
    pub ecn_max: Option<Bytes>,
    /// Pmax: probability of a mark just below Kmax.
    pub ecn_chance: f64,
    /// N: minimum time between two notifications of a flow.
    pub cnp_interval: Ps,
    /// g: weight of a notification in alpha.
    pub gain: f64,
    /// Alpha before the first notification.
    pub alpha_initial: f64,
    /// Time without a notification after which alpha decays.
    pub alpha_timer: Ps,
    /// Time after which the rate grows.
    pub increase_timer: Ps,
    /// Number of bytes after which the rate grows.
    pub byte_counter: Option<Bytes>,
    /// F: number of increases before the target rate grows.
    pub recovery_stages: u32,
    /// R_AI: step of the additive increase, in Mb/s.
    pub additive_mbps: Option<f64>,
    /// R_HAI: step of the hyper increase, in Mb/s.
    pub hyper_mbps: Option<f64>,
    /// Minimum rate, in Mb/s.
    pub rate_min_mbps: Option<f64>,
    /// Number of writes of a queue pair that one acknowledgement covers.
    pub ack_messages: u32,
    /// Maximum time for which an acknowledgement waits for another write.
    pub ack_delay: Ps,
}

impl Default for PfcConfig {
    fn default() -> PfcConfig {
        PfcConfig {
            header: Bytes(44),
            thresholds: Thresholds::Static,
            xoff: None,
            xon: None,
            xon_offset: None,
            alpha: 1.0,
            buffer: None,
            headroom: None,
            ecn_min: None,
            ecn_max: None,
            ecn_chance: 0.01,
            cnp_interval: Ps::from_ns(50_000),
            gain: 1.0 / 256.0,
            alpha_initial: 1.0,
            alpha_timer: Ps::from_ns(55_000),
            increase_timer: Ps::from_ns(55_000),
            byte_counter: None,
            recovery_stages: 5,
            additive_mbps: None,
            hyper_mbps: None,
            rate_min_mbps: None,
            ack_messages: 16,
            ack_delay: Ps::from_ns(10_000),
        }
    }
}

impl Parameters for PfcConfig {
    const TABLE: &'static str = "pfc";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<PfcConfig, InputError> {
        let default = PfcConfig::default();
        let bytes_or = |key, at_40_gbps: &str, (least, most): (u64, u64)| {
            let allowed = format!("{least} to {most}");
            let read = |bytes: &u64| (least..=most).contains(bytes);
            let given =
                table.read(key, at_40_gbps, &allowed, |value| as_integer(value).filter(read));
            given.map(|bytes| bytes.map(Bytes))
        };
        let mbps = |key, default| {
            let read = |mbps: &f64| (0.001..=1e6).contains(mbps);
            table.read(key, default, "0.001 to 1000000", |value| as_number(value).filter(read))
        };
        let stages = default.recovery_stages.into();
        let header = bytes(table, "header_bytes", default.header, (0, 128))?;
        let names = [("static", Thresholds::Static), ("dynamic", Thresholds::Dynamic)];
        let thresholds = table.choice("thresholds", &names)?;
        for (keys, of, name) in [
            (&["xoff_bytes", "xon_bytes"][..], Thresholds::Static, "static"),
            (&["alpha", "buffer_bytes", "xon_offset_bytes"], Thresholds::Dynamic, "dynamic"),
        ] {
            for key in keys {
                table.only(key, &format!("with thresholds = \"{name}\""), thresholds == of)?;
            }
        }
        let config = PfcConfig {
            header,
            thresholds,
            xoff: bytes_or("xoff_bytes", "24470 at 40 Gb/s", (0, 1_000_000_000))?,
            xon: bytes_or("xon_bytes", "two full frames under xoff_bytes", (0, 1_000_000_000))?,
            xon_offset: bytes_or("xon_offset_bytes", "two full frames", (0, 1_000_000_000))?,
            alpha: table.number("alpha", default.alpha, 0.001..=1_000.0)?,
            buffer: bytes_or("buffer_bytes", "375000 a port at 40 Gb/s", (1, 1_000_000_000_000))?,
            headroom: bytes_or("headroom_bytes", "what the link needs", (0, 1_000_000_000))?,
            ecn_min: bytes_or("ecn_min_bytes", "5000 at 40 Gb/s", (0, 1_000_000_000))?,
            ecn_max: bytes_or("ecn_max_bytes", "200000 at 40 Gb/s", (0, 1_000_000_000))?,
            ecn_chance: table.number("ecn_chance_max", default.ecn_chance, 0.0..=1.0)?,
            cnp_interval: timeout_us(table, "cnp_interval_us", default.cnp_interval)?,
            gain: table.number("gain", default.gain, 0.0..=1.0)?,
            alpha_initial: table.number("alpha_initial", default.alpha_initial, 0.0..=1.0)?,
            alpha_timer: timeout_us(table, "alpha_timer_us", default.alpha_timer)?,
            increase_timer: timeout_us(table, "increase_timer_us", default.increase_timer)?,
            byte_counter: bytes_or(
                "byte_counter_bytes",
                "10000000 at 40 Gb/s",
                (1_000, 1_000_000_000_000),
            )?,
            recovery_stages: table.integer("recovery_stages", stages, 1..=1_000)? as u32,
            additive_mbps: mbps("additive_mbps", "40 at 40 Gb/s")?,
            hyper_mbps: mbps("hyper_mbps", "400 at 40 Gb/s")?,
            rate_min_mbps: mbps("rate_min_mbps", "40 at 40 Gb/s")?,
            ack_messages: table.integer("ack_messages", default.ack_messages.into(), 1..=65_536)?
                as u32,
            ack_delay: timeout_us(table, "ack_delay_us", default.ack_delay)?,
        };
        Ok(config)
    }

    fn check(&self, config: &FabricConfig) -> Result<(), (&'static str, String)> {
        self.check_buffers(config).map_err(|problem| ("buffer_bytes", problem))
    }
}
