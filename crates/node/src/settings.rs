//! `node.toml`: configuration of a memory node and of its operation.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use ethermem_clio::memory::PageSize;
use ethermem_clio::node::Quota;
use ethermem_clio::offload::{OffloadLimits, check_name};
use ethermem_udp::seal::{KeyFile, KeyFileError};
use ethermem_udp::{Listen, RingPlace};
use ethermem_units::Bytes;
use ethermem_wasm::ModuleOptions;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use thiserror::Error;

use crate::keys::{KEYS, Key, OFFLOAD_KEYS, TENANT_KEYS};
use crate::{NodeOptions, OffloadOptions, TenantOptions};

const SETTINGS_BYTES_MAX: u64 = 1 << 20;
const MODULE_BYTES_MAX: u64 = 64 << 20;

/// Page sizes with their names.
pub const PAGES: [(&str, PageSize); 4] = [
    ("4KiB", PageSize::Kib4),
    ("64KiB", PageSize::Kib64),
    ("2MiB", PageSize::Mib2),
    ("4MiB", PageSize::Mib4),
];
/// Default lease of a silent process in seconds: idle clients send several keep-alives in this
/// time.
pub(crate) const LEASE_S: u64 = 60;
/// Longest time in milliseconds that a node may take to end.
pub const DRAIN_MS_MAX: u64 = 600_000;

/// Most fuel of a call that settings may allow: some minutes. A call with more would never end, and
/// would hold one of the places for calls.
pub const MODULE_FUEL_MAX: u64 = 1_000_000_000_000;
/// Most memory in bytes of a call that settings may allow: all that a module can address.
pub const MODULE_MEMORY_BYTES_MAX: u64 = 4 << 30;

/// Format of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// A line of text for each event.
    Text,
    /// A line of JSON for each event.
    Json,
}

/// Lowest level of logged events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Events that end the node.
    Error,
    /// Events that an operator should examine.
    Warn,
    /// Start and end.
    Info,
}

/// The keys of a file, or the flags of a command; an absent one has its default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeFile {
    /// Memory to serve.
    pub memory: Option<ByteSize>,
    /// Size of a page.
    #[serde(default, deserialize_with = "page")]
    pub page: Option<PageSize>,
    /// UDP address to listen on.
    pub listen: Option<SocketAddr>,
    /// Interface for raw Ethernet.
    #[serde(default, deserialize_with = "ring")]
    pub ring: Option<RingPlace>,
    /// True to serve in clear, only on this machine.
    pub insecure: Option<bool>,
    /// Lease of a silent process in seconds.
    pub lease_s: Option<u64>,
    /// How long the server polls without a datagram, in milliseconds.
    pub poll_ms: Option<u64>,
    /// How long the server may take to end, in milliseconds.
    pub drain_ms_max: Option<u64>,
    /// True to request huge pages.
    pub huge_pages: Option<bool>,
    /// NUMA node whose CPUs and memory are used.
    pub numa_node: Option<u32>,
    /// Address for metrics.
    pub metrics_listen: Option<SocketAddr>,
    /// Path of the operators' socket.
    pub control: Option<PathBuf>,
    /// Format of the logs.
    pub log_format: Option<LogFormat>,
    /// Lowest level that is logged.
    pub log_level: Option<LogLevel>,
    /// Tenants.
    #[serde(default)]
    pub tenant: Vec<TenantFile>,
    /// Operations that users bring, by name.
    #[serde(default)]
    pub offload: BTreeMap<String, OffloadFile>,
}

/// A table `[offload.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffloadFile {
    /// Path of the module.
    pub file: PathBuf,
    /// True if it runs in an address space of its own.
    pub own_space: Option<bool>,
    /// Limit of fuel per call.
    pub fuel_max: Option<u64>,
    /// Limit of the module's own memory per call.
    pub memory_max: Option<ByteSize>,
    /// Names of the tenants that may call it.
    pub tenants: Option<Vec<String>>,
}

impl OffloadFile {
    /// A table with this file, and every default.
    #[must_use]
    pub fn of(file: PathBuf) -> OffloadFile {
        OffloadFile { file, own_space: None, fuel_max: None, memory_max: None, tenants: None }
    }
}

/// A table `[[tenant]]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantFile {
    /// Name for people.
    pub name: String,
    /// Path of its key file.
    pub key_file: PathBuf,
    /// Limit of memory of all its processes.
    pub memory_max: Option<ByteSize>,
    /// Limit of pages of all its processes.
    pub pages_max: Option<u64>,
    /// Limit of concurrent processes.
    pub processes_max: Option<u16>,
    /// Limit of requests per second.
    pub operations_per_s_max: Option<u64>,
    /// Limit of fuel per call of an operation at the node.
    pub offload_fuel_max: Option<u64>,
    /// Limit of memory per such call.
    pub offload_memory_max: Option<ByteSize>,
    /// Limit of operations that its clients bring.
    pub offloads_max: Option<u16>,
}

impl TenantFile {
    /// A tenant with a key, and no quotas.
    #[must_use]
    pub fn of(name: String, key_file: PathBuf) -> TenantFile {
        TenantFile {
            name,
            key_file,
            memory_max: None,
            pages_max: None,
            processes_max: None,
            operations_per_s_max: None,
            offload_fuel_max: None,
            offload_memory_max: None,
            offloads_max: None,
        }
    }
}

fn page<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PageSize>, D::Error> {
    let name = String::deserialize(deserializer)?;
    let found = PAGES.iter().find(|(known, _)| *known == name);
    found.map(|(_, page)| Some(*page)).ok_or_else(|| {
        let allowed = PAGES.map(|(name, _)| name).join(", ");
        serde::de::Error::custom(format!("page {name:?}: must be one of {allowed}"))
    })
}

/// A node's place on raw Ethernet: `INTERFACE` or `INTERFACE:PORT`.
///
/// # Errors
/// What is wrong, and what is allowed.
pub fn ring_place(text: &str) -> Result<RingPlace, String> {
    let place = text.parse::<RingPlace>().ok().filter(|place| place.mac.is_none());
    place.ok_or_else(|| {
        format!("ring {text:?}: must be INTERFACE or INTERFACE:PORT, port 1 to 65535")
    })
}

fn ring<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RingPlace>, D::Error> {
    let text = String::deserialize(deserializer)?;
    ring_place(&text).map(Some).map_err(serde::de::Error::custom)
}

/// Configuration of a node and of its operation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Configuration of the node.
    pub node: NodeOptions,
    /// How long the server polls without a datagram.
    pub poll_for: Duration,
    /// How long the server may take to end.
    pub drain_for: Duration,
    /// Address for metrics.
    pub metrics_listen: Option<SocketAddr>,
    /// Path of the operators' socket.
    pub control: Option<PathBuf>,
    /// Format of the logs.
    pub log_format: LogFormat,
    /// Lowest level that is logged.
    pub log_level: LogLevel,
}

/// The reason why settings are refused.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    /// The file is malformed at this line.
    #[error("{0}:{1}: {2}")]
    Malformed(PathBuf, usize, String),
    /// The memory is not given, and has no default.
    #[error("memory is missing: must be whole pages, as 64GiB")]
    Memory,
    /// A value is out of range.
    #[error("{key} = {found}: must be {allowed}")]
    Range {
        /// Name of the key.
        key: &'static str,
        /// Value that was found.
        found: u64,
        /// Allowed range.
        allowed: &'static str,
    },
    /// Two tenants have one name, so metrics could not tell them apart.
    #[error("two tenants named {0:?}: must have different names")]
    SameName(String),
    /// A key file cannot be used.
    #[error("tenant {0:?}: {1}")]
    Key(String, KeyFileError),
    /// A module cannot be loaded.
    #[error("offload {name:?}: {problem}")]
    Offload {
        /// Name of the operation.
        name: String,
        /// What is wrong, and what is allowed.
        problem: String,
    },
}

/// Parses TOML text that was read from `path`.
///
/// # Errors
/// [`SettingsError::Malformed`], with the line.
pub fn parse_toml<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T, SettingsError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..start].iter().filter(|&&octet| octet == b'\n').count() + 1;
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        let key = key_of(text.lines().nth(line - 1).unwrap_or_default());
        let message = told(key, &message);
        SettingsError::Malformed(path.to_owned(), line, message)
    })
}

/// The key that a line of TOML sets. Values may be secrets.
fn key_of(line: &str) -> Option<&str> {
    let key = line.split_once('=')?.0.trim();
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    (!key.is_empty() && key.chars().all(is_part)).then_some(key)
}

/// What a size must be.
const SIZE: &str = ": must be bytes, or text with a unit, such as \"64GiB\"";
/// Ends of the parser's messages that do not say what is allowed, and what is.
const ALLOWED: [(&str, &str); 9] = [
    (
        "invalid socket address syntax",
        "must be an IP address and a port, such as 127.0.0.1:7400 or [::1]:7400",
    ),
    (", expected integer overflow", SIZE),
    (", expected parsable string", SIZE),
    (", expected a string", ": must be text in quotes"),
    (", expected path string", ": must be a path in quotes"),
    (", expected a boolean", ": must be true or false"),
    (", expected u16", ": must be a whole number, 0 to 65535"),
    (", expected u32", ": must be a whole number, 0 to 4294967295"),
    (", expected u64", ": must be a whole number from 0"),
];

/// The parser's message with the key of its line, and with what the value must be.
fn told(key: Option<&str>, message: &str) -> String {
    if let Some(name) = message.strip_prefix("missing field `") {
        return format!("no `{name}: must be given");
    }
    let found = ALLOWED
        .iter()
        .find_map(|(words, allowed)| Some(format!("{}{allowed}", message.strip_suffix(words)?)));
    let message = found.unwrap_or_else(|| message.to_owned());
    match key.filter(|key| !message.contains(*key)) {
        Some(key) => format!("{key}: {message}"),
        None => message,
    }
}

/// The text of a file of settings.
///
/// # Errors
/// Errors of the system; [`ErrorKind::FileTooLarge`] for a file that is longer than settings are,
/// as one without an end is.
pub fn read_settings(path: &Path) -> io::Result<String> {
    let bytes = read_at_most(path, SETTINGS_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "not UTF-8 text"))
}

fn read_at_most(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let problem = format!("a longer file: must have at most {bytes_max} B");
        return Err(io::Error::new(ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

impl NodeFile {
    /// Reads a file. Paths in it are relative to its own folder.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn read(path: &Path) -> Result<NodeFile, SettingsError> {
        let failed = |error| SettingsError::File(path.to_owned(), error);
        NodeFile::parse(&read_settings(path).map_err(failed)?, path)
    }

    /// As [`NodeFile::read`], from text that was already read. Files that it names are not opened.
    ///
    /// # Errors
    /// [`SettingsError::Malformed`].
    pub fn parse(text: &str, path: &Path) -> Result<NodeFile, SettingsError> {
        let mut file: NodeFile = parse_toml(text, path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for tenant in &mut file.tenant {
            tenant.key_file = folder.join(&tenant.key_file);
        }
        file.control = file.control.map(|control| folder.join(control));
        for offload in file.offload.values_mut() {
            offload.file = folder.join(&offload.file);
        }
        Ok(file)
    }

    /// The values of `self`, and those of `below` where `self` has none; tenants of both.
    #[must_use]
    pub fn over(mut self, below: NodeFile) -> NodeFile {
        self.tenant.extend(below.tenant);
        for (name, offload) in below.offload {
            self.offload.entry(name).or_insert(offload);
        }
        NodeFile {
            memory: self.memory.or(below.memory),
            page: self.page.or(below.page),
            listen: self.listen.or(below.listen),
            ring: self.ring.or(below.ring),
            insecure: self.insecure.or(below.insecure),
            lease_s: self.lease_s.or(below.lease_s),
            poll_ms: self.poll_ms.or(below.poll_ms),
            drain_ms_max: self.drain_ms_max.or(below.drain_ms_max),
            huge_pages: self.huge_pages.or(below.huge_pages),
            numa_node: self.numa_node.or(below.numa_node),
            metrics_listen: self.metrics_listen.or(below.metrics_listen),
            control: self.control.or(below.control),
            log_format: self.log_format.or(below.log_format),
            log_level: self.log_level.or(below.log_level),
            tenant: self.tenant,
            offload: self.offload,
        }
    }

    /// The complete settings, with keys read and defaults filled in.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn settings(&self) -> Result<Settings, SettingsError> {
        let memory = Bytes(self.memory.ok_or(SettingsError::Memory)?.as_u64());
        let page = self.page.unwrap_or(PageSize::Kib64);
        let lease = in_range("lease_s", self.lease_s.unwrap_or(LEASE_S), 0, 1_000_000_000)?;
        let drain = in_range("drain_ms_max", self.drain_ms_max.unwrap_or(2000), 0, DRAIN_MS_MAX)?;
        let mut tenants: Vec<TenantOptions> = Vec::new();
        for tenant in &self.tenant {
            if tenants.iter().any(|other| other.name == tenant.name) {
                return Err(SettingsError::SameName(tenant.name.clone()));
            }
            tenants.push(tenant.options(page)?);
        }
        let offloads = self.offload.iter().map(|(name, file)| file.options(name, &tenants));
        let offloads = offloads.collect::<Result<_, _>>()?;
        let node = NodeOptions {
            memory,
            page,
            listen: self.listens(),
            insecure: self.insecure.unwrap_or(false),
            tenants,
            offloads,
            lease: (lease > 0).then(|| Duration::from_secs(lease)),
            huge_pages: self.huge_pages.unwrap_or(true),
            numa_node: self.numa_node,
        };
        Ok(Settings {
            node,
            poll_for: Duration::from_millis(self.poll_ms.unwrap_or(1)),
            drain_for: Duration::from_millis(drain),
            metrics_listen: self.metrics_listen,
            control: self.control.clone(),
            log_format: self.log_format.unwrap_or(LogFormat::Text),
            log_level: self.log_level.unwrap_or(LogLevel::Info),
        })
    }
}

impl NodeFile {
    /// The addresses to listen on; only raw Ethernet if that is all that was given.
    fn listens(&self) -> Listen {
        let udp = || self.ring.is_none().then(|| ([127, 0, 0, 1], 7400).into());
        Listen { udp: self.listen.or_else(udp), ring: self.ring.clone() }
    }
}

impl TenantFile {
    fn options(&self, page: PageSize) -> Result<TenantOptions, SettingsError> {
        let failed = |error| SettingsError::Key(self.name.clone(), error);
        let key = KeyFile::read(&self.key_file).map_err(failed)?;
        let pages = self.pages_max.map_or(u64::MAX, |pages| pages.saturating_mul(page.bytes()));
        let bytes = self.memory_max.map_or(u64::MAX, |size| size.as_u64());
        // At 0 every request would wait at its client for ever.
        if self.operations_per_s_max == Some(0) {
            let key = "operations_per_s_max";
            return Err(SettingsError::Range { key, found: 0, allowed: "at least 1" });
        }
        let quota = Quota {
            memory_bytes: bytes.min(pages),
            processes: self.processes_max.unwrap_or(u16::MAX),
            requests_per_s: self.operations_per_s_max.unwrap_or(u64::MAX),
            offload: OffloadLimits {
                fuel_max: module_fuel("offload_fuel_max", self.offload_fuel_max)?
                    .unwrap_or(u64::MAX),
                memory_bytes_max: module_memory("offload_memory_max", self.offload_memory_max)?
                    .unwrap_or(u64::MAX),
                loaded_max: self.offloads_max.unwrap_or(0),
            },
        };
        Ok(TenantOptions { name: self.name.clone(), key, quota })
    }
}

impl OffloadFile {
    fn options(
        &self,
        name: &str,
        tenants: &[TenantOptions],
    ) -> Result<OffloadOptions, SettingsError> {
        let failed = |problem: String| SettingsError::Offload { name: name.to_owned(), problem };
        check_name(name).map_err(|error| failed(error.to_string()))?;
        let read = read_at_most(&self.file, MODULE_BYTES_MAX);
        let module = read.map_err(|error| failed(format!("{}: {error}", self.file.display())))?;
        let number = |wanted: &String| {
            let found = tenants.iter().find(|tenant| tenant.name == *wanted);
            found.map(|tenant| tenant.key.tenant).ok_or_else(|| {
                let names: Vec<&str> = tenants.iter().map(|tenant| tenant.name.as_str()).collect();
                failed(format!("tenant {wanted:?}: must be one of {}", names.join(", ")))
            })
        };
        let said = self.tenants.as_ref();
        let tenants = said.map(|names| names.iter().map(number).collect()).transpose()?;
        let ours = |error: SettingsError| failed(error.to_string());
        let unsaid = ModuleOptions::default();
        let fuel = module_fuel("fuel_max", self.fuel_max).map_err(ours)?;
        let memory = module_memory("memory_max", self.memory_max).map_err(ours)?;
        let options = ModuleOptions {
            fuel_max: fuel.unwrap_or(unsaid.fuel_max),
            memory_bytes_max: memory.unwrap_or(unsaid.memory_bytes_max),
            own_space: self.own_space.unwrap_or(false),
        };
        Ok(OffloadOptions { name: name.to_owned(), module, options, tenants })
    }
}

fn module_fuel(key: &'static str, said: Option<u64>) -> Result<Option<u64>, SettingsError> {
    said.map(|fuel| in_range(key, fuel, 1, MODULE_FUEL_MAX)).transpose()
}

fn module_memory(key: &'static str, said: Option<ByteSize>) -> Result<Option<u64>, SettingsError> {
    let bytes = said.map(|size| size.as_u64());
    bytes.map(|bytes| in_range(key, bytes, 0, MODULE_MEMORY_BYTES_MAX)).transpose()
}

fn in_range(key: &'static str, found: u64, least: u64, most: u64) -> Result<u64, SettingsError> {
    if (least..=most).contains(&found) {
        return Ok(found);
    }
    let keys: [&[Key]; 3] = [&KEYS, &OFFLOAD_KEYS, &TENANT_KEYS];
    let known = keys.into_iter().flatten().find(|known| known.name == key);
    let allowed = known.map_or("", |known| known.values);
    Err(SettingsError::Range { key, found, allowed })
}
