//! The keys of TOML files: read one by one, each with its default and what is allowed.

pub(crate) mod setting;
pub(crate) mod table;
mod values;

pub use setting::{Setting, SettingError};
pub use table::{Key, Table, as_integer, as_number};
pub use values::{
    BUFFER_BYTES, LINK_GBPS, buffer_or, bytes, clock_ns, delay_ns, node, packets, rate_gbps,
    timeout_us, window_or,
};
