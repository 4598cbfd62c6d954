//! The memory pool: Sections given to nodes, Buffers within them, references to Buffers, and the
//! table by which each node's accesses are checked (sections 4.1 and 4.5).
//!
//! One [`MemoryPool`] is what the LPPU and the nodes' daemons of one rack know together. The
//! control plane (`join`, `grant`, `give_back`, `node_died`, `device_lost`) may allocate memory;
//! the data path ([`MemoryPool::alloc_shared_buffer`], `pass`, `build_shared_skb`,
//! `kfree_shared_skb`, `check_access`) allocates none, but for a node's first reference to a
//! Region.
//! No byte of a Buffer is here: the world has the memory.

mod check;
mod control;
mod death;
mod ledger;
mod operations;
mod sections;
mod skb;

use std::collections::BTreeMap;

use ethermem_placement::{NodeId, Placement, PlacementError, Section};
use ethermem_units::Bytes;
use ethermem_wire::dfabric::SECTION_BYTES;
use thiserror::Error;

use crate::address::{LINE_BYTES, Node, REGION_SECTIONS, REGIONS_MAX, SectionId};
use crate::mapping::MappingTable;
use ledger::{Ledger, NONE};
use sections::Region;
use skb::Skbs;

pub use check::Accounts;
pub use control::Granted;
pub use death::{Losses, Obituary};
pub use operations::{Freed, Passed};
pub use skb::{Skb, SkbRef};

/// How finely an access is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protection {
    /// The mapping table alone decides, by Section, as in the paper.
    Section,
    /// The access must also be in a Buffer to which the node holds a reference.
    #[default]
    Buffer,
}

/// What a pool is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Members of the rack, with the SN: 1 to 4096, as a CXL fabric has (section 2.1).
    pub nodes_max: u16,
    /// Buffer sizes of the daemons' classes, rising: powers of two from a line to a Section.
    pub class_bytes: Vec<u64>,
    /// Most pairs of a Buffer and its holder at once.
    pub holds_max: u32,
    /// Most `sk_buf` objects at once.
    pub skbs_max: u32,
    /// Most Regions at once.
    pub regions_max: u32,
    /// Free Sections of a class that a daemon keeps; it gives back the others. With 0, it may ask
    /// for a Section that it has just given back.
    pub sections_kept: u32,
    /// A daemon asks for a Section in advance when a class that it uses has fewer free Buffers, or
    /// fewer than a Section has.
    pub buffers_low: u32,
    /// How finely an access is checked.
    pub protection: Protection,
}

impl PoolConfig {
    /// The rack of the paper's section 6.1: two nodes and the SN, Buffers of 2 KiB and of 4 KiB,
    /// room for 4 GiB of held Buffers.
    #[must_use]
    pub fn published() -> PoolConfig {
        PoolConfig {
            nodes_max: 3,
            class_bytes: vec![64, 1024, 2048, 4096],
            holds_max: 1 << 20,
            skbs_max: 1 << 16,
            regions_max: 64,
            sections_kept: 1,
            buffers_low: 32,
            protection: Protection::default(),
        }
    }
}

/// Why a pool cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PoolConfigError {
    /// The number of members is out of range.
    #[error("nodes_max = {0}: must be 1 to 4096")]
    Nodes(u16),
    /// A class has no size of a Buffer.
    #[error("class of {0} B: must be a power of two from {LINE_BYTES} to {SECTION_BYTES}")]
    Class(u64),
    /// The classes are not in order.
    #[error("classes: must be at least one, each larger than the one before")]
    Order,
    /// The fabric address space has fewer Regions.
    #[error("regions_max = {0}: must be 1 to {REGIONS_MAX}")]
    Regions(u32),
}

/// Why the pool refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PoolError {
    /// The node is not of the rack, or has died.
    #[error("node {0} is not there")]
    NoSuchNode(u16),
    /// The node is there already.
    #[error("node {0} is there already")]
    NodeExists(u16),
    /// The size is 0, or above the largest Buffer.
    #[error("size {size}: must be 1 to {largest} B")]
    Size {
        /// What was asked for, in bytes.
        size: u64,
        /// The largest class, in bytes.
        largest: u64,
    },
    /// The node's daemon has no free Buffer of the class: a Section must be granted first.
    #[error("no free Buffer of {class_bytes} B: needs a Section")]
    NoBuffer {
        /// The class, by its number.
        class: usize,
        /// The class, in bytes.
        class_bytes: u64,
    },
    /// The node has as many Sections as it may.
    #[error("node {node} has {quota} Sections: no more are permitted")]
    OverQuota {
        /// The node.
        node: u16,
        /// Its quota.
        quota: u32,
    },
    /// All Regions are in use.
    #[error("no Region is free")]
    NoRegion,
    /// No granted Section has this address.
    #[error("{0:#x} is in no Buffer")]
    NotABuffer(u64),
    /// The data is not within one Buffer.
    #[error("{length} B at {address:#x}: must be within one Buffer of {bytes} B")]
    Crosses {
        /// The first byte.
        address: u64,
        /// Bytes of data.
        length: u64,
        /// Size of the Buffer.
        bytes: u64,
    },
    /// The node holds no reference to the Buffer.
    #[error("node {node} holds no reference to {address:#x}")]
    NotHeld {
        /// The node.
        node: u16,
        /// The address.
        address: u64,
    },
    /// The ledger has no room for another holder of a Buffer.
    #[error("no room for another reference")]
    NoReference,
    /// There are as many `sk_buf` objects as there may be.
    #[error("no room for another sk_buf")]
    NoSkb,
    /// The `sk_buf` was freed, or is of another node.
    #[error("the sk_buf is not there")]
    StaleSkb,
    /// The Section has held Buffers, or is not the node's.
    #[error("Section {0} is in use, or not granted")]
    InUse(u32),
    /// The memory device is not in the pool.
    #[error("memory device {0} is not there")]
    NoSuchDevice(u16),
    /// The placement refused.
    #[error(transparent)]
    Placement(#[from] PlacementError),
}

/// Where a Buffer or a Section is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preference {
    /// On the nearest device that has room, in the node's own order.
    #[default]
    Near,
    /// On this device; where it has no room, as [`Preference::Near`].
    Device(NodeId),
}

/// A class of Buffers of one node.
#[derive(Clone, Debug)]
struct Class {
    /// By device: the first Section with a free Buffer.
    heads: Vec<u32>,
    /// Free Buffers of the class.
    free: u64,
    /// Sections of the class.
    sections: u32,
}

/// A member of the rack.
#[derive(Clone, Debug)]
struct Member {
    is_there: bool,
    /// Counts the times that the node joined: a Section of an earlier one is cleared, too.
    incarnation: u32,
    quota: u32,
    sections: u32,
    /// Devices in the order of preference, by their number in the pool.
    near: Vec<usize>,
    classes: Vec<Class>,
    table: MappingTable,
}

/// The memory pool of one rack.
#[derive(Clone, Debug)]
pub struct MemoryPool {
    class_bytes: Box<[u64]>,
    sections_kept: u32,
    buffers_low: u32,
    protection: Protection,
    placement: Placement,
    /// Devices by their number in the pool; `None`: it is lost.
    devices: Vec<Option<NodeId>>,
    nodes: Box<[Member]>,
    regions: Box<[Option<Region>]>,
    next_region: usize,
    ledger: Ledger,
    skbs: Skbs,
    /// The node that had a Section of a device last, with its incarnation.
    last_owner: BTreeMap<Section, (Node, u32)>,
    /// Orphaned Sections whose Buffers are all free: [`MemoryPool::take_orphan`] returns them.
    orphans_due: Vec<SectionId>,
}

impl MemoryPool {
    /// A pool without nodes and devices.
    ///
    /// # Errors
    /// [`PoolConfigError`].
    pub fn new(config: &PoolConfig) -> Result<MemoryPool, PoolConfigError> {
        if !(1..=4096).contains(&config.nodes_max) {
            return Err(PoolConfigError::Nodes(config.nodes_max));
        }
        let is_size =
            |bytes: &u64| bytes.is_power_of_two() && (LINE_BYTES..=SECTION_BYTES).contains(bytes);
        if let Some(&wrong) = config.class_bytes.iter().find(|bytes| !is_size(bytes)) {
            return Err(PoolConfigError::Class(wrong));
        }
        if config.class_bytes.is_empty() || !config.class_bytes.is_sorted_by(|a, b| a < b) {
            return Err(PoolConfigError::Order);
        }
        if !(1..=REGIONS_MAX).contains(&config.regions_max) {
            return Err(PoolConfigError::Regions(config.regions_max));
        }
        let member = Member {
            is_there: false,
            incarnation: 0,
            quota: 0,
            sections: 0,
            near: Vec::new(),
            classes: Vec::new(),
            table: MappingTable::default(),
        };
        Ok(MemoryPool {
            class_bytes: config.class_bytes.as_slice().into(),
            sections_kept: config.sections_kept,
            buffers_low: config.buffers_low,
            protection: config.protection,
            placement: Placement::new(),
            devices: Vec::new(),
            nodes: vec![member; usize::from(config.nodes_max)].into(),
            regions: vec![None; config.regions_max as usize].into(),
            next_region: 0,
            ledger: Ledger::new(config.nodes_max, config.holds_max),
            skbs: Skbs::new(config.skbs_max),
            last_owner: BTreeMap::new(),
            // Room for every Section, so that the data path never allocates.
            orphans_due: Vec::with_capacity((config.regions_max * REGION_SECTIONS) as usize),
        })
    }

    /// Which Section of which device is which Region's.
    #[must_use]
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The mapping table of a node.
    ///
    /// # Errors
    /// [`PoolError::NoSuchNode`].
    pub fn table(&self, node: Node) -> Result<&MappingTable, PoolError> {
        Ok(&self.member(node)?.table)
    }

    /// True if a node is of the rack.
    #[must_use]
    pub fn is_there(&self, node: Node) -> bool {
        self.member(node).is_ok()
    }

    fn member(&self, node: Node) -> Result<&Member, PoolError> {
        let found = self.nodes.get(usize::from(node.0)).filter(|member| member.is_there);
        found.ok_or(PoolError::NoSuchNode(node.0))
    }

    fn member_mut(&mut self, node: Node) -> Result<&mut Member, PoolError> {
        let found = self.nodes.get_mut(usize::from(node.0)).filter(|member| member.is_there);
        found.ok_or(PoolError::NoSuchNode(node.0))
    }

    /// The smallest class for a size.
    ///
    /// # Errors
    /// [`PoolError::Size`].
    pub fn class_of(&self, size: Bytes) -> Result<usize, PoolError> {
        let largest = self.class_bytes[self.class_bytes.len() - 1];
        let fits = self.class_bytes.iter().position(|&bytes| size.0 <= bytes);
        fits.filter(|_| size.0 > 0).ok_or(PoolError::Size { size: size.0, largest })
    }

    fn device_number(&self, device: NodeId) -> Result<usize, PoolError> {
        let found = self.devices.iter().position(|known| *known == Some(device));
        found.ok_or(PoolError::NoSuchDevice(device.0))
    }

    fn no_lists(&self) -> Vec<Class> {
        let heads = vec![NONE; self.devices.len()];
        self.class_bytes
            .iter()
            .map(|_| Class { heads: heads.clone(), free: 0, sections: 0 })
            .collect()
    }
}
