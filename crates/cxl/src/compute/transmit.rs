//! Frames that leave the compute node, at the rate that the control allows.

use ethermem_units::Ps;
use ethermem_wire::cxl::{Frame, NoRoom, Packet};

use super::ComputeNode;

impl ComputeNode {
    /// Writes the next frame, with its check sequence, and gives its octets; `None` if there is
    /// none, or its time has not come. [`ComputeNode::next_wake`] says when it comes.
    ///
    /// # Errors
    /// [`NoRoom`]: the frame stays the next one.
    pub fn poll_transmit(&mut self, now: Ps, into: &mut [u8]) -> Result<Option<usize>, NoRoom> {
        self.settle_rate(now);
        if now < self.paused_until {
            return Ok(None);
        }
        let Some((node, frame)) = self.next_frame() else { return Ok(None) };
        let octets = frame.emit_with_fcs(into)?;
        if !self.bucket.take(frame.packet.link_octets()) {
            return Ok(None);
        }
        self.nodes[node].requester.mark_sent(now);
        self.turn = (node + 1) % self.nodes.len();
        Ok(Some(octets))
    }

    /// When a frame that is there may go.
    pub(super) fn next_transmit(&mut self, now: Ps) -> Option<Ps> {
        let (_, frame) = self.next_frame()?;
        let ready = self.bucket.ready_at(frame.packet.link_octets())?;
        Some(ready.max(self.paused_until).max(now))
    }

    /// The next frame, of the memory node whose turn it is.
    fn next_frame(&mut self) -> Option<(usize, Frame)> {
        let count = self.nodes.len();
        let from = self.config.mac;
        for node in (self.turn..self.turn + count).map(|node| node % count) {
            let attached = &mut self.nodes[node];
            let to = attached.at.mac;
            if let Some(packet) = attached.requester.next_packet() {
                return Some((node, Frame { to, from, packet: Packet::Request(*packet) }));
            }
        }
        None
    }

    /// Brings control and bucket to now.
    pub(super) fn settle_rate(&mut self, now: Ps) {
        self.control.on_timer(now);
        self.bucket.set_rate(now, self.control.rate());
    }
}
