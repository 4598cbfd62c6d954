//! The flags of `ethermem kv`: each is a key of its file of settings.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use ethermem_experiments::operate::server::{CLIENTS, ServerFile};
use ethermem_kv::Index;
use ethermem_node::LogFormat;

use crate::logs::FORMS;
use crate::value::{Named, one_of};

const SIDES: [Named<Index>; 2] = [
    ("client", "The server, by reads and one compare-and-swap", Index::Client),
    ("node", "The memory node, in one round trip", Index::Node),
];

#[derive(Args)]
pub(super) struct Flags {
    /// URL of the pool for keys and values; `local:` by default
    #[arg(long, value_name = "URL")]
    pool: Option<String>,
    /// Address and TCP port to listen on, 127.0.0.1:6379 by default; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Which side walks the key index; client by default
    #[arg(long, value_name = "SIDE", value_parser = one_of(&SIDES))]
    index: Option<Index>,
    /// Largest number of concurrent clients, 10000 by default
    #[arg(long, value_name = "COUNT", value_parser = clients())]
    clients_max: Option<u32>,
    /// File whose first line is the password for AUTH and HELLO; other users must not be able to
    /// read the file
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Certificate chain in PEM; every connection is then TLS; needs --tls-key
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate in PEM; other users must not be able to read the file
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Certificates in PEM of the authority for client certificates; without it, clients need none
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// Serve /metrics for Prometheus at this address and TCP port, in clear
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics_listen: Option<SocketAddr>,
    /// Format of the logs on the standard error; text by default
    #[arg(long, value_name = "FORMAT", value_parser = one_of(&FORMS))]
    log_format: Option<LogFormat>,
}

fn clients() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(i64::from(*CLIENTS.start())..=i64::from(*CLIENTS.end()))
}

impl Flags {
    /// The flags as if they stood in a file.
    pub(super) fn file(&self) -> ServerFile {
        ServerFile {
            pool: self.pool.clone(),
            listen: self.listen,
            index: self.index,
            clients_max: self.clients_max,
            password_file: self.password_file.clone(),
            tls_cert: self.tls_cert.clone(),
            tls_key: self.tls_key.clone(),
            tls_client_ca: self.tls_client_ca.clone(),
            metrics_listen: self.metrics_listen,
            log_format: self.log_format,
        }
    }
}
