//! The key-value server as its file of settings says: each flag of `ethermem kv` is a key.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ethermem_kv::Index;
use ethermem_node::{LogFormat, parse_toml, read_settings};
use ethermem_resp::{Options, PASSWORD_BYTES_MAX, Password, TlsFile, outside_its_time, tls_config};
use serde::{Deserialize, Deserializer};

use crate::Error;

/// How many clients a server may admit at once.
pub const CLIENTS: RangeInclusive<u32> = 1..=1_000_000;
/// A file of a password, a key or certificates is at most as long, in bytes.
const SECRET_BYTES_MAX: u64 = 1 << 20;

/// The keys of a file, or the flags of a command. An absent key has its default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerFile {
    /// URL of the pool that holds keys and values; `local:` by default.
    pub pool: Option<String>,
    /// Address and TCP port of the server, 127.0.0.1:6379 by default.
    pub listen: Option<SocketAddr>,
    /// Which side walks the key index; the client by default.
    #[serde(default, deserialize_with = "index")]
    pub index: Option<Index>,
    /// Most clients at once, 10,000 by default.
    pub clients_max: Option<u32>,
    /// File whose first line is the password that clients must name.
    pub password_file: Option<PathBuf>,
    /// Certificate chain in PEM; with it every connection is TLS.
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate in PEM.
    pub tls_key: Option<PathBuf>,
    /// Certificates in PEM that sign the clients' certificates.
    pub tls_client_ca: Option<PathBuf>,
    /// Address and TCP port of the metrics for Prometheus.
    pub metrics_listen: Option<SocketAddr>,
    /// The form of logs; text by default.
    pub log_format: Option<LogFormat>,
}

fn index<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Index>, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "client" => Ok(Some(Index::Client)),
        "node" => Ok(Some(Index::Node)),
        other => {
            Err(serde::de::Error::custom(format!("index {other:?}: must be one of client, node")))
        }
    }
}

impl ServerFile {
    /// Reads a file. The folder of the file is where relative paths in it begin.
    ///
    /// # Errors
    /// [`Error::Request`], one line: the file cannot be read, is not TOML, or a key is wrong.
    pub fn read(path: &Path) -> Result<ServerFile, Error> {
        let failed = |error: String| Error::Request(format!("--config {error}"));
        let unread = |error| failed(format!("{}: {error}", path.display()));
        let text = read_settings(path).map_err(unread)?;
        let mut file: ServerFile =
            parse_toml(&text, path).map_err(|error| failed(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let ServerFile { password_file, tls_cert, tls_key, tls_client_ca, .. } = &mut file;
        for named in [password_file, tls_cert, tls_key, tls_client_ca].into_iter().flatten() {
            *named = folder.join(&*named);
        }
        if let Some(found) = file.clients_max.filter(|most| !CLIENTS.contains(most)) {
            let (least, most) = (CLIENTS.start(), CLIENTS.end());
            let problem = format!("clients_max = {found}: must be {least} to {most}");
            return Err(failed(format!("{}: {problem}", path.display())));
        }
        Ok(file)
    }

    /// The keys of `self`, and those of `below` that `self` lacks.
    #[must_use]
    pub fn over(self, below: ServerFile) -> ServerFile {
        ServerFile {
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

    /// What is allowed, but keeps clients out: a certificate outside its time.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let Some(path) = &self.tls_cert else { return Vec::new() };
        let outside = read(path, Readers::Any).ok().and_then(|cert| outside_its_time(&cert));
        outside.map(|why| format!("{}: {why}", path.display())).into_iter().collect()
    }

    /// The server's options: files are read, and absent keys have their defaults.
    ///
    /// # Errors
    /// [`Error::Request`], one line: a file of a password, a key or certificates cannot be used.
    pub fn options(&self) -> Result<Options, Error> {
        let tls = match (&self.tls_cert, &self.tls_key) {
            (None, None) if self.tls_client_ca.is_none() => None,
            (Some(cert), Some(key)) => {
                let read_public = |path: &PathBuf| read(path, Readers::Any);
                let client_ca = self.tls_client_ca.as_ref().map(read_public).transpose()?;
                let (chain, secret) = (read_public(cert)?, read(key, Readers::Owner)?);
                let config = tls_config(&chain, &secret, client_ca.as_deref());
                Some(config.map_err(|error| {
                    let (flag, path) = match error.file() {
                        TlsFile::Cert => ("--tls-cert", Some(cert)),
                        TlsFile::Key => ("--tls-key", Some(key)),
                        TlsFile::ClientCa => ("--tls-client-ca", self.tls_client_ca.as_ref()),
                    };
                    let path = path.map_or(Path::new(""), PathBuf::as_path);
                    Error::Request(format!("{flag} {}: {error}", path.display()))
                })?)
            }
            _ => {
                let problem = "TLS: --tls-cert and --tls-key must be given together";
                return Err(Error::Request(problem.to_owned()));
            }
        };
        Ok(Options {
            listen: self.listen.unwrap_or_else(|| ([127, 0, 0, 1], 6379).into()),
            index: self.index.unwrap_or(Index::Client),
            clients_max: self.clients_max.unwrap_or(10_000) as usize,
            password: self.password_file.as_deref().map(password).transpose()?,
            tls,
        })
    }
}

/// Which users a file may let read it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readers {
    Any,
    Owner,
}

fn read(path: &Path, readers: Readers) -> Result<Vec<u8>, Error> {
    let failed = |problem: String| Error::Request(format!("{}: {problem}", path.display()));
    let unread = |error: std::io::Error| failed(error.to_string());
    let file = File::open(path).map_err(unread)?;
    let mode = file.metadata().map_err(unread)?.permissions().mode() & 0o7777;
    if readers == Readers::Owner && mode & 0o007 != 0 {
        let problem = "lets everybody read a secret: must let no others, as 0600";
        return Err(failed(format!("mode {mode:04o} {problem}")));
    }
    let mut bytes = Vec::new();
    file.take(SECRET_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > SECRET_BYTES_MAX {
        return Err(failed(format!("a longer file: must have at most {SECRET_BYTES_MAX} B")));
    }
    Ok(bytes)
}

/// The first line of a file. The error never quotes it.
fn password(path: &Path) -> Result<Password, Error> {
    let bytes = read(path, Readers::Owner)?;
    let line = bytes.split(|&octet| octet == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Password::new(line).ok_or_else(|| {
        let problem = format!("a password of {} B: must be 1 to {PASSWORD_BYTES_MAX}", line.len());
        Error::Request(format!("{}: {problem}", path.display()))
    })
}
