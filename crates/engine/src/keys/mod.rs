//! The keys of TOML files: read one by one, each with its default and its valid values.

mod setting;
mod table;
mod values;

pub use setting::{Lines, Setting, SettingError, refuse_own};
pub use table::{Key, SET, Source, Table, as_integer, as_number, as_text};
pub use values::{
    BUFFER_BYTES, LINK_GBPS, buffer_or, bytes, clock_ns, delay_ns, delay_or, node, packets,
    rate_gbps, timeout_or, timeout_us, window_or,
};
