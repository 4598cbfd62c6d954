//! Queue disciplines: what a port does with packets that wait.

use ethermem_units::Blocks;

use super::{Packet, PacketId, Packets};

/// How a port orders, marks and drops. One value a port.
pub trait Discipline<H>: Send + 'static {
    /// Whether packets leave in the order of arrival and none is dropped once it was kept. Then
    /// the port knows at arrival when a packet starts; it needs no event of its own, the
    /// discipline keeps nothing, and `take` is never called.
    const IN_ORDER: bool = false;

    /// Whether it trims packets, and sends back those that it has no room for even then.
    const TRIMS: bool = false;

    /// A packet has arrived behind `queued_bytes`, the one being sent included. It may be marked;
    /// it is kept when this gives true. Kept ones that make room for it go to `dropped`, also those
    /// that are to go back ([`Heading::Turning`](super::Heading)).
    fn offer(
        &mut self,
        packets: &mut Packets<H>,
        id: PacketId,
        queued_bytes: u64,
        dropped: &mut Vec<PacketId>,
    ) -> bool;

    /// Whether a packet that comes to an empty queue and a free link is sent on as it is: what an
    /// `offer` and a `take` would do, too.
    #[inline]
    fn passes(&self, _packets: &Packets<H>, _id: PacketId) -> bool {
        false
    }

    /// What was trimmed by the last `offer`.
    fn trimmed(&mut self) -> Trimmed {
        Trimmed::default()
    }

    /// The link is free: the packet that is sent next, of those kept.
    fn take(&mut self, _packets: &Packets<H>) -> Option<PacketId> {
        None
    }

    /// The far end of the link pauses it, or lets it go on.
    fn pause(&mut self, _paused: bool) {}

    /// Whether nothing of what is kept may be sent, as long as the link is paused.
    fn is_blocked(&self) -> bool {
        false
    }
}

/// What was taken from packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// How many packets lost their data.
    pub packets: u64,
    /// By how much those grew shorter that were kept before.
    pub kept_blocks: Blocks,
}

/// First in, first out; the tail is dropped at `limit_bytes`, and what is kept behind more than
/// `mark_bytes` is marked. `u64::MAX` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropTail {
    /// Most bytes that wait, the new frame's and the rest of the one being sent included.
    pub limit_bytes: u64,
    /// K: bytes that a packet must find to be marked.
    pub mark_bytes: u64,
}

impl DropTail {
    /// A queue without end that marks nothing.
    pub const ENDLESS: DropTail = DropTail { limit_bytes: u64::MAX, mark_bytes: u64::MAX };
}

/// [`DropTail::ENDLESS`].
impl Default for DropTail {
    fn default() -> DropTail {
        DropTail::ENDLESS
    }
}

impl<H> Discipline<H> for DropTail {
    const IN_ORDER: bool = true;

    #[inline]
    fn offer(
        &mut self,
        packets: &mut Packets<H>,
        id: PacketId,
        queued_bytes: u64,
        _dropped: &mut Vec<PacketId>,
    ) -> bool {
        let packet: &mut Packet<H> = &mut packets[id];
        if queued_bytes.saturating_add(packet.frame.line_bytes()) > self.limit_bytes {
            return false;
        }
        packet.marked |= queued_bytes > self.mark_bytes;
        true
    }
}
