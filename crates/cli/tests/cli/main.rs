//! Tests of the built `ethermem` command, called as a person would.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod bench;
mod command_page;
mod compare;
mod compare_page;
mod drain;
mod interrupt;
mod keys;
mod killed;
mod kv;
mod latency;
mod lines;
mod manual;
mod node;
mod offload;
mod operator;
#[path = "../../../units/tests/support/property.rs"]
mod property;
mod readme;
mod reference;
mod remote;
mod remote_redis;
mod replay;
mod report;
mod ring;
mod same_bytes;
mod support;
mod sweep;
mod udp;
mod workload;
