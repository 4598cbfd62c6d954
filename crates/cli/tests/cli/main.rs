//! The built `ethermem` command, called as a person would.

mod bad_input;
mod interrupt;
mod latency;
mod report;
mod same_bytes;
mod support;
mod workload;
