//! Packets in flight, without an allocation for each.

use ethermem_units::Blocks;
use ethermem_workload::NodeIndex;

use super::{FlowId, Frame};

/// The index of a packet; valid until the packet is delivered or dropped.
pub type PacketId = u32;

/// A packet: the fields that the network uses, and `header`, which only its transport uses.
#[derive(Clone, Copy, Debug)]
pub struct Packet<H> {
    /// The flow that it belongs to, in either direction.
    pub flow: FlowId,
    /// The node whose interface it left.
    pub source: NodeIndex,
    /// The node that it goes to.
    pub destination: NodeIndex,
    /// The sizes of the packet.
    pub frame: Frame,
    /// Number of bytes of message data in it.
    pub data_bytes: u16,
    /// The priority for queues: the lower, the more urgent.
    pub rank: u32,
    /// True if it experienced congestion on its way.
    pub marked: bool,
    /// True if its data was trimmed on its way.
    pub trimmed: bool,
    /// The direction of the packet.
    pub heading: Heading,
    /// The spine that it takes, if it must cross one.
    pub spine: u8,
    /// The transport's own fields.
    pub header: H,
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// To its destination.
    Out,
    /// A queue sends it back: the network turns it around.
    Turning,
    /// Back to its sender; its destination is its source.
    Back,
}

impl<H> Packet<H> {
    /// Removes its data, leaves `frame`, and makes it as urgent as possible. Returns the number of
    /// blocks by which it is shorter on a link.
    pub fn trim(&mut self, frame: Frame) -> Blocks {
        let before = self.frame.line_blocks();
        self.frame = frame;
        self.data_bytes = 0;
        self.rank = 0;
        self.trimmed = true;
        before - frame.line_blocks()
    }
}

impl Packet<()> {
    /// A packet from node 0 to node 1, for tests of a [`Discipline`](crate::Discipline).
    #[must_use]
    pub fn sample(flow: FlowId, rank: u32, frame: Frame) -> Packet<()> {
        Packet::sample_with(flow, rank, frame, ())
    }
}

impl<H> Packet<H> {
    /// A packet as [`Packet::sample`] makes it, with the header of a transport.
    #[must_use]
    pub fn sample_with(flow: FlowId, rank: u32, frame: Frame, header: H) -> Packet<H> {
        Packet {
            flow,
            source: 0,
            destination: 1,
            frame,
            data_bytes: 0,
            rank,
            marked: false,
            trimmed: false,
            heading: Heading::Out,
            spine: 0,
            header,
        }
    }
}

/// All packets of a network.
#[derive(Debug)]
pub struct Packets<H> {
    slots: Vec<Packet<H>>,
    free: Vec<PacketId>,
}

impl<H> Default for Packets<H> {
    fn default() -> Packets<H> {
        Packets { slots: Vec::new(), free: Vec::new() }
    }
}

impl<H: Copy> Packets<H> {
    /// Keeps a packet, and returns its id.
    #[inline]
    pub fn insert(&mut self, packet: Packet<H>) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = packet;
            return id;
        }
        self.slots.push(packet);
        (self.slots.len() - 1) as PacketId
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: PacketId) -> Packet<H> {
        self.free.push(id);
        self.slots[id as usize]
    }

    /// Number of packets that are neither delivered nor dropped.
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl<H> std::ops::Index<PacketId> for Packets<H> {
    type Output = Packet<H>;

    #[inline]
    fn index(&self, id: PacketId) -> &Packet<H> {
        &self.slots[id as usize]
    }
}

impl<H> std::ops::IndexMut<PacketId> for Packets<H> {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet<H> {
        &mut self.slots[id as usize]
    }
}
