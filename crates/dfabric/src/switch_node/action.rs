//! What a switch node asks of the world, and counts.

use ethermem_wire::dfabric::{
    Descriptor, DescriptorFault, DescriptorKind, FabricAddress, Identity,
};
use thiserror::Error;

use crate::address::Node;
use crate::nic::NicId;
use crate::pool::{Freed, PoolError};

/// Why an entry of a queue was refused. It is consumed, and no reference was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Its words are no descriptor.
    #[error(transparent)]
    Descriptor(#[from] DescriptorFault),
    /// The kind belongs into another queue.
    #[error("{0:?} does not belong into this queue")]
    Kind(DescriptorKind),
    /// The source is another one than the queue's node.
    #[error("source {:#x} is not the queue's node", .0.0)]
    Source(Identity),
    /// The source has no such reference.
    #[error(transparent)]
    Reference(#[from] PoolError),
}

/// What is to be done with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Idle,
    /// Store the descriptor into an RxQ, and write the node's interrupt register.
    ToRx {
        /// The node that has the RxQ.
        node: Node,
        /// The RxQ, by its number among all.
        queue: u32,
        /// The entry.
        descriptor: Descriptor,
        /// The node whose DRAM cache is to flush a Buffer first.
        flush: Option<(Node, FabricAddress)>,
    },
    /// Store the descriptor into the TX queue of a NIC, and ring its doorbell.
    ToNic {
        /// The NIC.
        nic: NicId,
        /// The entry.
        work: Descriptor,
        /// The node whose DRAM cache is to flush a Buffer first.
        flush: Option<(Node, FabricAddress)>,
    },
    /// It waits for room in a queue, or for a reference of a pool that has no more; its queue is
    /// not polled meanwhile.
    Waits,
    /// The destination is unknown or dead, or no NIC is up. The reference stays the source's.
    Unreachable {
        /// The node of the queue.
        node: Node,
        /// The entry.
        descriptor: Descriptor,
    },
    /// A received packet is for no node of the rack: its Buffer is free.
    Dropped {
        /// What freeing it did.
        freed: Option<Freed>,
    },
    /// The entry cannot be.
    Refused {
        /// The node of the queue; the SN for a NIC's completion.
        node: Node,
        /// The reason.
        refusal: Refusal,
    },
}

/// What a lost NIC had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// A packet that was to be sent.
    Packet {
        /// Its entry.
        work: Descriptor,
        /// What giving up the reference did.
        freed: Option<Freed>,
    },
    /// A receive buffer.
    Receive {
        /// Its first byte.
        buffer: FabricAddress,
        /// What giving up the reference did.
        freed: Option<Freed>,
    },
}

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Descriptors that went to a node of the rack.
    pub intra_rack: u64,
    /// Descriptors that went to a NIC.
    pub inter_rack: u64,
    /// Packets that were received for a node.
    pub received: u64,
    /// Packets that were received for no node.
    pub dropped: u64,
    /// How often a descriptor had to wait.
    pub waits: u64,
    /// Descriptors to unknown or dead destinations.
    pub unreachable: u64,
    /// Entries that cannot be.
    pub refused: u64,
}
