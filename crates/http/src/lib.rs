//! A small HTTP server for metrics and status, which no client can hold up.
//!
//! One thread serves all connections without blocking on any of them. Every connection has a time
//! limit for its request and one for reading its response, a limit on the head of its request, and
//! exactly one request. The number of connections is limited. When all places are taken, the oldest
//! connection gives way, after it had at least one turn. So a client that sends nothing, reads
//! nothing or never ends its request occupies a place for a while, and delays no other client.

mod connection;
mod endpoint;

pub use connection::{Asked, Reply};
pub use endpoint::{Endpoint, Limits};
