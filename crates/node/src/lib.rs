//! The memory node as a program: its configuration, its limits and refusals, and the node of `clio`
//! behind a socket of `udp`. The crate parses no command line and prints nothing.

mod backing;
mod control;
pub mod doctor;
mod keys;
mod metrics;
mod observe;
mod settings;
mod status;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, NodeConfigError, Quota};
use ethermem_udp::seal::{KeyFile, NodeSeal, SENDERS};
use ethermem_udp::{BindError, Listen, Protect, RingError, RingPlace, Server, is_loopback};
use ethermem_units::{Bytes, Ns};
use ethermem_wasm::{Load, LoadError, Loader, ModuleOptions, Runtime};
use ethermem_wire::clio::{Epoch, Protection, SenderId, TenantId};
use memmap2::MmapMut;
use thiserror::Error;

pub use backing::Backing;
pub use control::{AskError, Control, ControlAnswer, ControlQuestion, ProcessStatus, ask};
pub use ethermem_wasm::MODULE_BYTES_MAX;
pub use keys::{KEYS, Key, OFFLOAD_KEYS, TENANT_KEYS};
pub use observe::Observer;
pub use settings::{
    DRAIN_MS_MAX, LogFormat, LogLevel, MODULE_FUEL_MAX, MODULE_MEMORY_BYTES_MAX, NodeFile,
    OffloadFile, PAGES, Settings, SettingsError, TenantFile, parse_toml, read_settings, ring_place,
};
pub use status::{Status, TenantStatus};

/// Largest data of one packet in bytes: what fits a datagram with room for all headers.
const DATA_BYTES_MAX: u32 = 65_000;
const TLB_ENTRIES: u32 = 4096;
/// Largest number of processes of one node.
pub const PROCESSES_MAX: u16 = 10_000;
const RECENT_REQUESTS: u32 = 1 << 14;
/// How far ahead a datagram's counter may be.
const LIFETIME_MAX: Ns = Ns(100_000_000);
/// How long an unacknowledged result is kept: longer than clients retry.
const KEEP: Ns = Ns(5_000_000_000);
/// Upper limit in bytes of memory kept ready for page faults; half of all memory, if that is less.
const READY_BYTES: u64 = 64 << 20;
const READY_PAGES_MAX: u64 = 1024;

/// A tenant of a memory node: its name, its key and its quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantOptions {
    /// Name for people.
    pub name: String,
    /// Number and key.
    pub key: KeyFile,
    /// Limits of its use.
    pub quota: Quota,
}

/// An operation that users bring, as a WebAssembly module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffloadOptions {
    /// Name of the operation.
    pub name: String,
    /// Bytes of the module.
    pub module: Vec<u8>,
    /// Limits of the module.
    pub options: ModuleOptions,
    /// Tenants that may call it; `None` is every tenant.
    pub tenants: Option<Vec<TenantId>>,
}

/// Configuration of a memory node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOptions {
    /// Memory that it serves.
    pub memory: Bytes,
    /// Unit of allocation and protection.
    pub page: PageSize,
    /// Addresses on which it is reached.
    pub listen: Listen,
    /// True without authentication and encryption; the node then serves only this machine.
    pub insecure: bool,
    /// Tenants that may use it; empty if it is insecure.
    pub tenants: Vec<TenantOptions>,
    /// Operations that users bring.
    pub offloads: Vec<OffloadOptions>,
    /// How long a process lives after its client falls silent; `None` is for ever.
    pub lease: Option<Duration>,
    /// True to request huge pages.
    pub huge_pages: bool,
    /// NUMA node whose CPUs and memory are used.
    pub numa_node: Option<u32>,
}

impl NodeOptions {
    /// In clear, on a free port of this machine, with defaults otherwise.
    #[must_use]
    pub fn in_clear(memory: Bytes) -> NodeOptions {
        NodeOptions {
            memory,
            page: PageSize::Kib64,
            listen: Listen { udp: Some(([127, 0, 0, 1], 0).into()), ring: None },
            insecure: true,
            tenants: Vec::new(),
            offloads: Vec::new(),
            lease: Some(Duration::from_secs(settings::LEASE_S)),
            huge_pages: true,
            numa_node: None,
        }
    }
}

/// A node that is ready to serve, on the thread that started it.
pub struct Started {
    /// The node with its network.
    pub server: Server<MmapMut>,
    /// Pages of its memory.
    pub backing: Backing,
    /// Where its thread and memory are, as text.
    pub placement: String,
}

/// The reason why a node cannot start.
#[derive(Debug, Error)]
pub enum StartError {
    /// Datagrams would not be encrypted.
    #[error(
        "without a tenant's key, datagrams are neither authenticated nor encrypted, so somebody \
         must say that this is meant; loopback addresses alone are allowed then"
    )]
    NotSecure,
    /// Keys are given but would not be used.
    #[error("keys of {0} tenants, and no encryption: must be one of the two")]
    KeysUnused(usize),
    /// Two key files have one tenant number.
    #[error("tenant {number}: is the key of {one:?} and of {other:?}; must be one key for each")]
    SameTenant {
        /// Tenant number in both key files.
        number: u16,
        /// Name of the first tenant.
        one: String,
        /// Name of the second tenant.
        other: String,
    },
    /// Other machines could reach an unprotected node.
    #[error("{0}: without encryption, must be a loopback address (127.0.0.0/8 and [::1])")]
    NotLoopback(SocketAddr),
    /// Other machines could reach an unprotected node by raw Ethernet.
    #[error("ring {0}: without encryption, must be the loopback interface (lo)")]
    NotLoopbackRing(RingPlace),
    /// The interface cannot be used.
    #[error("ring {0}: {1}")]
    Ring(RingPlace, RingError),
    /// The node would have no address.
    #[error("neither an address nor an interface to be reached at: must be one of one, and both")]
    Nowhere,
    /// The machine has less memory.
    #[error("memory of {asked} B: {available} B are available")]
    Memory {
        /// Memory to be served, in bytes.
        asked: u64,
        /// Available memory of the machine, in bytes.
        available: u64,
    },
    /// The system refused to map this many bytes.
    #[error("memory of {0} B: {1}")]
    Map(u64, io::Error),
    /// The NUMA node cannot be used.
    #[error("NUMA node {0}: {1}")]
    Numa(u32, io::Error),
    /// The node's configuration is not allowed.
    #[error(transparent)]
    Config(#[from] NodeConfigError),
    /// An operation that users bring cannot be loaded.
    #[error("offload {0:?}: {1}")]
    Offload(String, LoadError),
    /// An operation that users bring has the name of a built-in one.
    #[error("offload {0:?}: it is the node's own: must be another name")]
    OwnOffload(String),
    /// The system gave no random numbers.
    #[error("no random numbers from the system: {0}")]
    Random(getrandom::Error),
    /// The address or the ring cannot be used.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// Builds a node and binds it to its addresses.
///
/// # Errors
/// [`StartError`].
pub fn start(options: &NodeOptions) -> Result<Started, StartError> {
    check_security(options)?;
    let asked = options.memory.0;
    if let Some(available) = available_bytes().filter(|available| asked > *available) {
        return Err(StartError::Memory { asked, available });
    }
    let config = config(options)?;
    let protect = protect(options, config.sender)?;
    // The placement precedes the first touch of the memory, which is then on the thread's NUMA
    // node.
    let placement = place(options.numa_node)?;
    let mapped = backing::map(asked, options.huge_pages);
    let (memory, backing) = mapped.map_err(|error| StartError::Map(asked, error))?;
    let mut node = Node::new(config, memory)?;
    bring(options, &mut node)?;
    let server = Server::bind(node, protect, &options.listen)?;
    Ok(Started { server, backing, placement })
}

/// Loads the operations that users bring, and lets permitted tenants load others.
fn bring(options: &NodeOptions, node: &mut Node<MmapMut>) -> Result<(), StartError> {
    let loaders = options.tenants.iter().filter(|tenant| tenant.quota.offload.loaded_max > 0);
    let loaders: Vec<TenantId> = loaders.map(|tenant| tenant.key.tenant).collect();
    if options.offloads.is_empty() && loaders.is_empty() {
        return Ok(());
    }
    let failed = |name: &str| {
        let name = name.to_owned();
        move |error| StartError::Offload(name, error)
    };
    let runtime = Runtime::new().map_err(failed(Load::NAME))?;
    for OffloadOptions { name, module, options, tenants } in &options.offloads {
        if node.knows(name) || name == Load::NAME {
            return Err(StartError::OwnOffload(name.clone()));
        }
        let module = Arc::new(runtime.module(module, *options).map_err(failed(name))?);
        match tenants {
            None => node.register(name, module),
            Some(tenants) => {
                tenants.iter().for_each(|id| node.register_for(*id, name, module.clone()));
            }
        }
    }
    let loader = Arc::new(Loader::new(runtime));
    loaders.into_iter().for_each(|id| node.register_for(id, Load::NAME, loader.clone()));
    Ok(())
}

fn place(numa_node: Option<u32>) -> Result<String, StartError> {
    if let Some(node) = numa_node {
        backing::stay_on(node).map_err(|error| StartError::Numa(node, error))?;
        return Ok(format!("NUMA node {node}"));
    }
    Ok(match backing::numa_nodes().len() {
        0 | 1 => "one NUMA node".to_owned(),
        nodes => format!("any of {nodes} NUMA nodes: numa_node chooses one"),
    })
}

fn check_security(options: &NodeOptions) -> Result<(), StartError> {
    let tenants = &options.tenants;
    if options.listen == Listen::default() {
        return Err(StartError::Nowhere);
    }
    if !options.insecure {
        if tenants.is_empty() {
            return Err(StartError::NotSecure);
        }
        for (at, other) in tenants.iter().enumerate() {
            let same = |one: &&TenantOptions| one.key.tenant == other.key.tenant;
            if let Some(one) = tenants[..at].iter().find(same) {
                let (number, other) = (other.key.tenant.0, other.name.clone());
                return Err(StartError::SameTenant { number, one: one.name.clone(), other });
            }
        }
        return Ok(());
    }
    if !tenants.is_empty() {
        return Err(StartError::KeysUnused(tenants.len()));
    }
    if let Some(address) = options.listen.udp.filter(|address| !address.ip().is_loopback()) {
        return Err(StartError::NotLoopback(address));
    }
    if let Some(ring) = &options.listen.ring {
        let stays = is_loopback(&ring.interface);
        if !stays.map_err(|error| StartError::Ring(ring.clone(), error))? {
            return Err(StartError::NotLoopbackRing(ring.clone()));
        }
    }
    Ok(())
}

fn protect(options: &NodeOptions, node: SenderId) -> Result<Protect, StartError> {
    if options.insecure {
        return Ok(Protect::Node);
    }
    let keys: Vec<_> =
        options.tenants.iter().map(|tenant| (tenant.key.tenant, tenant.key.key)).collect();
    Ok(Protect::Seal(Box::new(NodeSeal::new(&keys, node, [random()?, random()?], SENDERS))))
}

fn config(options: &NodeOptions) -> Result<NodeConfig, StartError> {
    let ready = READY_BYTES.min(options.memory.0 / 2) / options.page.bytes();
    let lease = options.lease.map_or(u64::MAX, |lease| lease.as_nanos() as u64);
    let (protection, tenants) = if options.insecure {
        (Protection::Carrier, vec![(TenantId(0), Quota::UNLIMITED)])
    } else {
        let quota = |tenant: &TenantOptions| (tenant.key.tenant, tenant.quota);
        (Protection::Gcm, options.tenants.iter().map(quota).collect())
    };
    Ok(NodeConfig {
        memory: MemoryConfig {
            memory: options.memory,
            page: options.page,
            tlb_entries: TLB_ENTRIES,
            fault_buffer_pages: ready.clamp(1, READY_PAGES_MAX) as u32,
        },
        key: HashKey([random()?, random()?]),
        // The lowest bit is set, because 0 means "not known".
        epoch: Epoch(random()? as u32 | 1),
        sender: SenderId(random()?),
        protection,
        data_bytes_max: DATA_BYTES_MAX,
        processes_max: PROCESSES_MAX,
        recent_requests: RECENT_REQUESTS,
        lifetime_max: LIFETIME_MAX,
        keep: KEEP,
        lease: Ns(lease),
        tenants,
    })
}

fn random() -> Result<u64, StartError> {
    getrandom::u64().map_err(StartError::Random)
}

/// Available memory of the machine in bytes, if the system reports it.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn options() -> NodeOptions {
        NodeOptions { page: PageSize::Kib4, ..NodeOptions::in_clear(Bytes(1 << 20)) }
    }

    fn refused(options: &NodeOptions) -> String {
        start(options).err().expect("it is refused").to_string()
    }

    #[test]
    fn a_node_in_clear_has_the_defaults_of_the_command() {
        let in_clear = NodeOptions::in_clear(Bytes(1 << 20));
        let file = NodeFile {
            memory: Some(bytesize::ByteSize(1 << 20)),
            listen: in_clear.listen.udp,
            insecure: Some(true),
            ..NodeFile::default()
        };
        assert_eq!(file.settings().expect("it can be").node, in_clear);
    }

    #[test]
    fn nothing_is_served_in_clear_but_to_this_machine() {
        let secure = NodeOptions { insecure: false, ..options() };
        assert!(refused(&secure).starts_with("without a tenant's key"));
        for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7400"] {
            let udp = Some(listen.parse().expect("an address"));
            let open = NodeOptions { listen: Listen { udp, ring: None }, ..options() };
            assert!(refused(&open).starts_with(listen), "{listen}");
        }
        let nowhere = NodeOptions { listen: Listen::default(), ..options() };
        assert!(refused(&nowhere).starts_with("neither an address nor an interface"));
        let ring = |place: &str| Listen { udp: None, ring: Some(place.parse().expect("a place")) };
        let nobody = NodeOptions { listen: ring("no-such-one"), ..options() };
        let says = "ring no-such-one: interface `no-such-one`: there is none of that name";
        assert_eq!(refused(&nobody), says);
    }

    #[test]
    fn with_a_key_it_is_served_anywhere_and_never_in_clear() {
        let tenant = |name: &str, number| TenantOptions {
            name: name.to_owned(),
            key: KeyFile::generate(TenantId(number)).expect("there is randomness"),
            quota: Quota::UNLIMITED,
        };
        let listen = Listen { udp: Some(([0; 4], 0).into()), ring: None };
        let tenants = vec![tenant("one", 3), tenant("two", 4)];
        let secure = NodeOptions { insecure: false, tenants, listen, ..options() };
        assert!(start(&secure).is_ok());
        let both = NodeOptions { insecure: true, ..secure.clone() };
        assert_eq!(refused(&both), "keys of 2 tenants, and no encryption: must be one of the two");
        let mut same = secure;
        same.tenants.push(tenant("three", 3));
        assert!(refused(&same).contains("tenant 3: is the key of \"one\" and of \"three\""));
    }

    #[test]
    fn memory_is_whole_pages_that_the_machine_has() {
        let uneven = NodeOptions { memory: Bytes(4097), ..options() };
        assert!(refused(&uneven).contains("whole pages of 4 KiB"));
        let none = NodeOptions { memory: Bytes(0), ..options() };
        assert!(refused(&none).contains("whole pages"));
        if available_bytes().is_some() {
            let all = NodeOptions { memory: Bytes(1 << 60), ..options() };
            assert!(refused(&all).contains("are available"));
        }
    }

    #[test]
    fn a_server_that_is_told_to_stop_does() {
        let mut server = start(&options()).expect("it starts").server;
        assert!(server.address().expect("it is bound").ip().is_loopback());
        server.run(Duration::ZERO, &AtomicBool::new(true)).expect("it ends");
    }
}
