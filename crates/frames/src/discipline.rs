//! Queue disciplines: how a port treats waiting packets.

use ethermem_units::Blocks;

use super::{Packet, PacketId, Packets};

/// How a port orders, marks and drops packets. Each port has a value of its own.
pub trait Discipline<H>: Send + 'static {
    /// True if packets leave in the order of arrival and no kept packet is dropped. Then the port
    /// knows at arrival when a packet starts, and needs no event of its own. The discipline keeps
    /// no packet, and `take` is never called.
    const IN_ORDER: bool = false;

    /// True if it trims packets, and sends back packets for which there is still no room.
    const TRIMS: bool = false;

    /// Offers a packet that arrived behind `queued_bytes`, including the one being sent. It may be
    /// marked; returns true if it is kept. Kept packets that make room for it go to `dropped`, also
    /// packets that must go back ([`Heading::Turning`](super::Heading)).
    fn offer(
        &mut self,
        packets: &mut Packets<H>,
        id: PacketId,
        queued_bytes: u64,
        dropped: &mut Vec<PacketId>,
    ) -> bool;

    /// True if a packet that arrives at an empty queue and a free link may be sent unchanged, as
    /// after an `offer` and a `take`.
    #[inline]
    fn passes(&self, _packets: &Packets<H>, _id: PacketId) -> bool {
        false
    }

    /// What the last `offer` trimmed.
    fn trimmed(&mut self) -> Trimmed {
        Trimmed::default()
    }

    /// The link is free: returns the next packet to send, of the kept ones.
    fn take(&mut self, _packets: &Packets<H>) -> Option<PacketId> {
        None
    }

    /// The far end of the link pauses or resumes it.
    fn pause(&mut self, _paused: bool) {}

    /// True if no kept packet may be sent while the link is paused.
    fn is_blocked(&self) -> bool {
        false
    }
}

/// The result of trimming.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Number of packets that lost their data.
    pub packets: u64,
    /// Number of blocks that packets kept before lost.
    pub kept_blocks: Blocks,
}

/// First in, first out. The tail is dropped at `limit_bytes`, and a packet kept behind more than
/// `mark_bytes` is marked. `u64::MAX` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropTail {
    /// Maximum bytes that wait, including the new frame and the rest of the one being sent.
    pub limit_bytes: u64,
    /// K: minimum queue in bytes that a packet must find to be marked.
    pub mark_bytes: u64,
}

impl DropTail {
    /// A queue without a limit that marks no packet.
    pub const ENDLESS: DropTail = DropTail { limit_bytes: u64::MAX, mark_bytes: u64::MAX };
}

/// The default is [`DropTail::ENDLESS`].
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
