//! The C library as C uses it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod forks;
mod header;
mod light;
mod names;
mod node;
mod programs;
