//! A server that speaks RESP, the protocol of Redis, over the key-value store of a pool.
//!
//! One thread reads, executes and answers: [`Server::bind`], then [`Server::run`] until its stop
//! flag is set. It implements strings and their commands, keys, expiry and scans. It does not
//! persist, replicate, cluster, subscribe or script. A client's requests cost other clients at most
//! one share of the server's time, and memory up to a bound.

mod absence;
mod access;
mod clock;
mod command;
mod connection;
mod glob;
mod handshake;
mod info;
mod keeper;
mod keyspace;
mod metrics;
mod number;
mod reply;
mod request;
mod server;
mod session;
mod tls;
mod together;
mod transport;

pub use access::{PASSWORD_BYTES_MAX, Password};
pub use command::REPLY_BYTES_MAX;
pub use metrics::{Observer, Published, Snapshot};
pub use request::{LINE_BYTES_MAX, REQUEST_BYTES_MAX, REQUEST_WORDS_MAX};
pub use server::{Error, Options, Server};
pub use session::Session;
pub use tls::{TlsError, TlsFile, outside_its_time, tls_config};
