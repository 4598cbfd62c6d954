//! Packets in flight, without an allocation each.

use ethermem_units::Blocks;
use ethermem_workload::NodeIndex;

use super::{FlowId, Frame};

/// A packet's place; valid until it is delivered or dropped.
pub type PacketId = u32;

/// A packet: what the network looks at, and `header`, which only its transport does.
#[derive(Clone, Copy, Debug)]
pub struct Packet<H> {
    /// The flow it belongs to, whichever way it goes.
    pub flow: FlowId,
    /// Whose network interface it left.
    pub source: NodeIndex,
    /// Where it goes.
    pub destination: NodeIndex,
    /// Its sizes.
    pub frame: Frame,
    /// Message data in it.
    pub data_bytes: u16,
    /// What queues may go by: the lower, the more urgent.
    pub rank: u32,
    /// Congestion was experienced on its way.
    pub marked: bool,
    /// Its data was taken from it on its way.
    pub trimmed: bool,
    /// Where it is going.
    pub heading: Heading,
    /// The spine it takes, where it must cross one.
    pub spine: u8,
    /// The transport's own fields.
    pub header: H,
}

/// Where a packet is going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// To where it was sent.
    Out,
    /// A queue sends it back: the network turns it round.
    Turning,
    /// Back to who sent it; its destination is its source.
    Back,
}

impl<H> Packet<H> {
    /// Takes its data from it and leaves `frame`; it is as urgent as can be. Gives the blocks that
    /// it takes of a link no more.
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
    /// As [`Packet::sample`], with the header of a transport.
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
    /// Keeps a packet, and gives its id.
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

    /// Packets that are neither delivered nor dropped.
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
