//! A small HTTP server for metrics and status, which no client can hold up.
//!
//! One thread serves all connections without blocking on any of them. Every connection has a
//! deadline for its request and one for taking its answer, a bound on the head of its request, and
//! one request; the number of connections is bounded. When all places are taken, the connection
//! that is there longest gives way, after it had at least one turn. So a client that sends nothing,
//! reads nothing or never ends its request costs a place for a while, and delays no other client.

mod connection;
mod endpoint;

pub use connection::{Asked, Reply};
pub use endpoint::{Endpoint, Limits};
