//! `node.toml`: what a memory node is to be, and how it is operated.

use std::collections::BTreeMap;
use std::fs;
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
use ethermem_wasm::{FUEL_MAX, MEMORY_BYTES_MAX, ModuleOptions};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use thiserror::Error;

use crate::keys::KEYS;
use crate::{NodeOptions, OffloadOptions, TenantOptions};

/// The sizes of a page, by their names.
pub const PAGES: [(&str, PageSize); 4] = [
    ("4KiB", PageSize::Kib4),
    ("64KiB", PageSize::Kib64),
    ("2MiB", PageSize::Mib2),
    ("4MiB", PageSize::Mib4),
];
/// How long a process lives unheard, where nothing else is said: clients are heard of several times
/// in it without a request.
pub(crate) const LEASE_S: u64 = 60;
/// Longest that a node may take to end.
pub const DRAIN_MS_MAX: u64 = 600_000;

/// The forms of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// A line of text for each event.
    Text,
    /// A line of JSON for each event.
    Json,
}

/// What is logged: events of a level and those above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// What ends the node.
    Error,
    /// What an operator should look at.
    Warn,
    /// Beginning and end.
    Info,
}

/// The keys of a file, or the flags of a command: what is not said has its default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeFile {
    /// What it serves.
    pub memory: Option<ByteSize>,
    /// The size of its pages.
    #[serde(default, deserialize_with = "page")]
    pub page: Option<PageSize>,
    /// Where it is reached.
    pub listen: Option<SocketAddr>,
    /// On which interface it is reached over raw Ethernet.
    #[serde(default, deserialize_with = "ring")]
    pub ring: Option<RingPlace>,
    /// In clear, for this machine alone.
    pub insecure: Option<bool>,
    /// How long a process lives unheard.
    pub lease_s: Option<u64>,
    /// How long it polls without a datagram.
    pub poll_ms: Option<u64>,
    /// How long it may take to end.
    pub drain_ms_max: Option<u64>,
    /// Whether it asks for huge pages.
    pub huge_pages: Option<bool>,
    /// Whose CPUs and memory it uses.
    pub numa_node: Option<u32>,
    /// Where metrics are.
    pub metrics_listen: Option<SocketAddr>,
    /// Where operators ask.
    pub control: Option<PathBuf>,
    /// The form of its logs.
    pub log_format: Option<LogFormat>,
    /// What of them is written.
    pub log_level: Option<LogLevel>,
    /// Who may use it.
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
    /// The module.
    pub file: PathBuf,
    /// Whether it acts in an address space of its own.
    pub own_space: Option<bool>,
    /// Fuel of a call.
    pub fuel_max: Option<u64>,
    /// Its memory in a call.
    pub memory_max: Option<ByteSize>,
    /// Who may call it, by name.
    pub tenants: Option<Vec<String>>,
}

impl OffloadFile {
    /// Of a file, with every default.
    #[must_use]
    pub fn of(file: PathBuf) -> OffloadFile {
        OffloadFile { file, own_space: None, fuel_max: None, memory_max: None, tenants: None }
    }
}

/// A table `[[tenant]]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantFile {
    /// What people call it.
    pub name: String,
    /// Its key.
    pub key_file: PathBuf,
    /// Most memory of all its processes.
    pub memory_max: Option<ByteSize>,
    /// The same in pages.
    pub pages_max: Option<u64>,
    /// Most processes at once.
    pub processes_max: Option<u16>,
    /// Most requests a second.
    pub operations_per_s_max: Option<u64>,
    /// Most fuel of a call of an operation at the node.
    pub offload_fuel_max: Option<u64>,
    /// Most memory of such a call.
    pub offload_memory_max: Option<ByteSize>,
    /// Most operations that its clients bring.
    pub offloads_max: Option<u16>,
}

impl TenantFile {
    /// With a key, and no quotas.
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
        serde::de::Error::custom(format!("page {name:?}: allowed are {allowed}"))
    })
}

/// Where a node is to answer on raw Ethernet: `INTERFACE` or `INTERFACE:PORT`.
///
/// # Errors
/// What is wrong, and what is allowed.
pub fn ring_place(text: &str) -> Result<RingPlace, String> {
    let place = text.parse::<RingPlace>().ok().filter(|place| place.mac.is_none());
    place.ok_or_else(|| {
        format!("ring {text:?}: allowed is INTERFACE or INTERFACE:PORT, port 1 to 65535")
    })
}

fn ring<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RingPlace>, D::Error> {
    let text = String::deserialize(deserializer)?;
    ring_place(&text).map(Some).map_err(serde::de::Error::custom)
}

/// What a node is to be, and how it is operated.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node.
    pub node: NodeOptions,
    /// How long it polls without a datagram.
    pub poll_for: Duration,
    /// How long it may take to end.
    pub drain_for: Duration,
    /// Where metrics are.
    pub metrics_listen: Option<SocketAddr>,
    /// Where operators ask.
    pub control: Option<PathBuf>,
    /// The form of its logs.
    pub log_format: LogFormat,
    /// What of them is written.
    pub log_level: LogLevel,
}

/// Why there are no settings.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    /// It is not what it should be.
    #[error("{0}:{1}: {2}")]
    Malformed(PathBuf, usize, String),
    /// There is no default for it.
    #[error("memory is missing: allowed are whole pages, as 64GiB")]
    Memory,
    /// Too much or too little.
    #[error("{key} = {found}: allowed are {allowed}")]
    Range {
        /// Which.
        key: &'static str,
        /// What it says.
        found: u64,
        /// What it may.
        allowed: &'static str,
    },
    /// Metrics could not tell them apart.
    #[error("two tenants named {0:?}: allowed is each name once")]
    SameName(String),
    /// A key cannot be had.
    #[error("tenant {0:?}: {1}")]
    Key(String, KeyFileError),
    /// A module cannot be had.
    #[error("offload {name:?}: {problem}")]
    Offload {
        /// Which.
        name: String,
        /// What is wrong, and what is allowed.
        problem: String,
    },
}

/// Reads a text in TOML that came from `path`.
///
/// # Errors
/// [`SettingsError::Malformed`], with the line.
pub fn parse_toml<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T, SettingsError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..start].iter().filter(|&&octet| octet == b'\n').count() + 1;
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        SettingsError::Malformed(path.to_owned(), line, message)
    })
}

impl NodeFile {
    /// Reads a file. What it names is looked up from its own folder.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn read(path: &Path) -> Result<NodeFile, SettingsError> {
        let failed = |error| SettingsError::File(path.to_owned(), error);
        NodeFile::parse(&fs::read_to_string(path).map_err(failed)?, path)
    }

    /// The same of a text that was read. What it names is not looked at.
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

    /// What `self` says, and what `below` says where `self` does not; tenants of both.
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

    /// All of it, with keys read and defaults put in.
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
    /// Over raw Ethernet alone where that is all that is said.
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
        let quota = Quota {
            memory_bytes: bytes.min(pages),
            processes: self.processes_max.unwrap_or(u16::MAX),
            requests_per_s: self.operations_per_s_max.unwrap_or(u64::MAX),
            offload: OffloadLimits {
                fuel_max: self.offload_fuel_max.unwrap_or(u64::MAX),
                memory_bytes_max: self.offload_memory_max.map_or(u64::MAX, |size| size.as_u64()),
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
        let read = fs::read(&self.file);
        let module = read.map_err(|error| failed(format!("{}: {error}", self.file.display())))?;
        let number = |wanted: &String| {
            let found = tenants.iter().find(|tenant| tenant.name == *wanted);
            found.map(|tenant| tenant.key.tenant).ok_or_else(|| {
                let names: Vec<&str> = tenants.iter().map(|tenant| tenant.name.as_str()).collect();
                failed(format!("tenant {wanted:?}: allowed are {}", names.join(", ")))
            })
        };
        let said = self.tenants.as_ref();
        let tenants = said.map(|names| names.iter().map(number).collect()).transpose()?;
        let options = ModuleOptions {
            fuel_max: self.fuel_max.unwrap_or(FUEL_MAX),
            memory_bytes_max: self.memory_max.map_or(MEMORY_BYTES_MAX, |size| size.as_u64()),
            own_space: self.own_space.unwrap_or(false),
        };
        Ok(OffloadOptions { name: name.to_owned(), module, options, tenants })
    }
}

fn in_range(key: &'static str, found: u64, least: u64, most: u64) -> Result<u64, SettingsError> {
    if (least..=most).contains(&found) {
        return Ok(found);
    }
    let known = KEYS.iter().find(|known| known.name == key);
    let allowed = known.map_or("", |known| known.values);
    Err(SettingsError::Range { key, found, allowed })
}
