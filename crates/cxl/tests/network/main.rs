//! A compute node and memory nodes over a virtual network: what a host sees whatever the network
//! does, the rules of retransmission, and wrong frames and requests.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod forged;
mod oracle;
mod retransmission;
mod world;
