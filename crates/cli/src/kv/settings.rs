//! Settings of a server, from flags and a file: one struct serves both, so every flag is a key.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ethermem_kv::Index;
use ethermem_node::LogFormat;
use ethermem_resp::{Options, PASSWORD_BYTES_MAX, Password, tls_config};
use serde::Deserialize;

use crate::failure::Failure;
use crate::logs::FORMS;
use crate::value::one_of;

/// Largest size in bytes of a file with a password, a key or certificates.
const SECRET_BYTES_MAX: u64 = 1 << 20;

#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// URL of the pool for keys and values; `local:` by default
    #[arg(long, value_name = "URL")]
    pub(super) pool: Option<String>,
    /// Address and TCP port to listen on, 127.0.0.1:6379 by default; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) listen: Option<SocketAddr>,
    /// Which side walks the key index; client by default
    #[arg(long, value_name = "SIDE")]
    index: Option<Side>,
    /// Largest number of concurrent clients, 10000 by default
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
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
    pub(super) metrics_listen: Option<SocketAddr>,
    /// Format of the logs on the standard error; text by default
    #[arg(long, value_name = "FORMAT", value_parser = one_of(&FORMS))]
    log_format: Option<LogFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Side {
    /// The server, by reads and one compare-and-swap
    Client,
    /// The memory node, in one round trip
    Node,
}

impl Settings {
    /// Reads a file. Paths in it are relative to its own folder.
    pub(super) fn read(path: &Path) -> Result<Settings, Failure> {
        let unread = |error| Failure::input(format!("--config {}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(unread)?;
        let mut file: Settings = ethermem_node::parse_toml(&text, path)
            .map_err(|error| Failure::input(format!("--config {error}")))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let Settings { password_file, tls_cert, tls_key, tls_client_ca, .. } = &mut file;
        for named in [password_file, tls_cert, tls_key, tls_client_ca].into_iter().flatten() {
            *named = folder.join(&*named);
        }
        if file.clients_max.is_some_and(|most| !(1..=1_000_000).contains(&most)) {
            let found = file.clients_max.unwrap_or(0);
            let problem = format!("clients_max = {found}: must be 1 to 1000000");
            return Err(Failure::input(format!("--config {}: {problem}", path.display())));
        }
        Ok(file)
    }

    /// The values of `self`, and those of `below` where `self` has none.
    pub(super) fn over(self, below: Settings) -> Settings {
        Settings {
            pool: self.pool.or(below.pool),
            listen: self.listen.or(below.listen),
            index: self.index.or(below.index),
            clients_max: self.clients_max.or(below.clients_max),
            password_file: self.password_file.or(below.password_file),
            tls_cert: self.tls_cert.or(below.tls_cert),
            tls_key: self.tls_key.or(below.tls_key),
            tls_client_ca: self.tls_client_ca.or(below.tls_client_ca),
            metrics_listen: self.metrics_listen.or(below.metrics_listen),
            log_format: self.log_format.or(below.log_format),
        }
    }

    pub(super) fn log_format(&self) -> LogFormat {
        self.log_format.unwrap_or(LogFormat::Text)
    }

    /// The server's options, with files read and defaults filled in.
    pub(super) fn options(&self) -> Result<Options, Failure> {
        let index = match self.index.unwrap_or(Side::Client) {
            Side::Client => Index::Client,
            Side::Node => Index::Node,
        };
        let tls = match (&self.tls_cert, &self.tls_key) {
            (None, None) if self.tls_client_ca.is_none() => None,
            (Some(cert), Some(key)) => {
                let read_public = |path: &PathBuf| read(path, Readers::Any);
                let (cert, key) = (read_public(cert)?, read(key, Readers::Owner)?);
                let client_ca = self.tls_client_ca.as_ref().map(read_public).transpose()?;
                let config = tls_config(&cert, &key, client_ca.as_deref());
                Some(config.map_err(|error| Failure::input(format!("TLS: {error}")))?)
            }
            _ => {
                let problem = "TLS: --tls-cert and --tls-key must be given together";
                return Err(Failure::input(problem));
            }
        };
        Ok(Options {
            listen: self.listen.unwrap_or_else(|| ([127, 0, 0, 1], 6379).into()),
            index,
            clients_max: self.clients_max.unwrap_or(10_000) as usize,
            password: self.password_file.as_deref().map(password).transpose()?,
            tls,
        })
    }
}

/// Users that may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readers {
    Any,
    Owner,
}

fn read(path: &Path, readers: Readers) -> Result<Vec<u8>, Failure> {
    let failed = |problem: String| Failure::input(format!("{}: {problem}", path.display()));
    let unread = |error: std::io::Error| failed(error.to_string());
    let file = File::open(path).map_err(unread)?;
    let mode = file.metadata().map_err(unread)?.permissions().mode() & 0o7777;
    if readers == Readers::Owner && mode & 0o007 != 0 {
        let problem = "lets everybody read a secret: must let no others, as 0600";
        return Err(failed(format!("mode {mode:04o} {problem}")));
    }
    let mut bytes = Vec::new();
    file.take(SECRET_BYTES_MAX).read_to_end(&mut bytes).map_err(unread)?;
    Ok(bytes)
}

/// The first line of a file. An error never quotes it.
fn password(path: &Path) -> Result<Password, Failure> {
    let bytes = read(path, Readers::Owner)?;
    let line = bytes.split(|&octet| octet == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Password::new(line).ok_or_else(|| {
        let problem = format!("a password of {} B: must be 1 to {PASSWORD_BYTES_MAX}", line.len());
        Failure::input(format!("{}: {problem}", path.display()))
    })
}
