//! Homa's parameters.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{BUFFER_BYTES, Table, as_integer, bytes, timeout_us};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::InputError;

/// Homa's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HomaConfig {
    /// IP and transport headers of a packet.
    pub header: Bytes,
    /// Buffer of a switch port.
    pub buffer: Bytes,
    /// Number of priorities of switches.
    pub priorities: u32,
    /// Number of priorities for unscheduled data; `None` for a share as large as that data's.
    pub unscheduled_priorities: Option<u32>,
    /// RTTbytes: data that a message sends without a grant, and that is granted ahead; `None` for a
    /// bandwidth-delay product.
    pub unscheduled: Option<Bytes>,
    /// Number of messages that a receiver grants at one time; `None` for one per scheduled
    /// priority.
    pub overcommitment: Option<u32>,
    /// Silence after which a packet is considered lost.
    pub resend: Ps,
    /// Number of a client's own requests without a response above which a response sends a single
    /// packet without a grant; `None` for as many RTTbytes as fit the buffer of a port.
    pub incast_requests: Option<u32>,
    /// Number of messages after which a receiver chooses priorities for the first time; each later
    /// choice follows twice as many.
    pub first_choice_messages: u32,
    /// Upper limit of the number of messages between two choices; at this limit older messages
    /// count for half.
    pub choice_messages: u32,
}

impl Default for HomaConfig {
    fn default() -> HomaConfig {
        HomaConfig {
            header: Bytes(40),
            buffer: Bytes(2_000_000),
            priorities: 8,
            unscheduled_priorities: None,
            unscheduled: None,
            overcommitment: None,
            resend: Ps::from_ns(1_000_000),
            incast_requests: None,
            first_choice_messages: 16,
            choice_messages: 1_024,
        }
    }
}

impl Parameters for HomaConfig {
    const TABLE: &'static str = "homa";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<HomaConfig, InputError> {
        let default = HomaConfig::default();
        let count = |key, default: &str, (least, most): (u64, u64)| {
            let read = |count: &u64| (least..=most).contains(count);
            let allowed = format!("{least} to {most}");
            table.read(key, default, &allowed, |value| as_integer(value).filter(read))
        };
        let choice = |key, default: u32| -> Result<u32, InputError> {
            Ok(table.integer(key, default.into(), 1..=1_000_000)? as u32)
        };
        let config = HomaConfig {
            header: bytes(table, "header_bytes", default.header, (0, 128))?,
            buffer: bytes(table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
            priorities: table.integer("priorities", default.priorities.into(), 1..=64)? as u32,
            unscheduled_priorities: count(
                "unscheduled_priorities",
                "by their share of bytes",
                (1, 63),
            )?
            .map(|count| count as u32),
            unscheduled: count(
                "unscheduled_bytes",
                "a bandwidth-delay product",
                (1, 1_000_000_000),
            )?
            .map(Bytes),
            overcommitment: count("overcommitment", "one a scheduled priority", (1, 512))?
                .map(|count| count as u32),
            resend: timeout_us(table, "resend_us", default.resend)?,
            incast_requests: count(
                "incast_requests",
                "what fits the buffer of a port",
                (0, 1_000_000),
            )?
            .map(|count| count as u32),
            first_choice_messages: choice("first_choice_messages", default.first_choice_messages)?,
            choice_messages: choice("choice_messages", default.choice_messages)?,
        };
        Ok(config)
    }
}
