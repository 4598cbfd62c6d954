//! Frames that come to the compute node.

use ethermem_units::Ps;
use ethermem_wire::cxl::{Frame, FrameFault, Mac, Packet, Pause};
use thiserror::Error;

use super::ComputeNode;
use crate::retry::ResponseFault;

/// Why a frame changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameDropped {
    /// It is no frame of the protocol, or some of its bits are wrong.
    #[error(transparent)]
    Fault(#[from] FrameFault),
    /// It is for another node.
    #[error("frame to {0}: is for another node")]
    NotForUs(Mac),
    /// It is from a node that is none of this compute node's memory nodes.
    #[error("frame from {0}: is no memory node of this one")]
    Stranger(Mac),
    /// A memory node sends no requests.
    #[error("a request came to a compute node")]
    Request,
    /// It answers no request that is under way.
    #[error(transparent)]
    Response(#[from] ResponseFault),
}

impl FrameDropped {
    fn place(self) -> usize {
        match self {
            FrameDropped::Fault(_) => 0,
            FrameDropped::NotForUs(_) => 1,
            FrameDropped::Stranger(_) => 2,
            FrameDropped::Request => 3,
            FrameDropped::Response(_) => 4,
        }
    }
}

impl ComputeNode {
    /// A frame has come, with its check sequence.
    ///
    /// # Errors
    /// [`FrameDropped`]: it changed nothing, and was counted. Losses and duplicates on the network
    /// are enough for it, so a caller need not look.
    pub fn on_frame(&mut self, now: Ps, octets: &[u8]) -> Result<(), FrameDropped> {
        self.settle_rate(now);
        let taken = self.take_frame(now, octets);
        if let Err(dropped) = taken {
            self.counters.dropped[dropped.place()] += 1;
        }
        taken
    }

    fn take_frame(&mut self, now: Ps, octets: &[u8]) -> Result<(), FrameDropped> {
        if let Some(pause) = Pause::parse_with_fcs(octets)? {
            self.on_pause(now, &pause);
            return Ok(());
        }
        let frame = Frame::parse_with_fcs(octets)?;
        if frame.to != self.config.mac {
            return Err(FrameDropped::NotForUs(frame.to));
        }
        let found = self.nodes.iter().position(|node| node.at.mac == frame.from);
        let node = found.ok_or(FrameDropped::Stranger(frame.from))?;
        let requester = &mut self.nodes[node].requester;
        match &frame.packet {
            Packet::Request(_) => return Err(FrameDropped::Request),
            Packet::Response(response) => requester.on_response(response)?,
            Packet::Negative(negative) => requester.on_negative(*negative)?,
            Packet::Merged(negative, response) => {
                // Either half may be of use without the other.
                let marked = requester.on_negative(*negative);
                requester.on_response(response).or(marked)?;
            }
            Packet::Congestion(congestion) => {
                let last = self.nodes[node].congestion;
                let is_new = |last: u32| congestion.number.wrapping_sub(last).cast_signed() > 0;
                if last.is_none_or(is_new) {
                    self.nodes[node].congestion = Some(congestion.number);
                    self.signal(now);
                } else {
                    self.counters.old_congestion += 1;
                }
            }
        }
        self.deliver(node);
        self.pump();
        self.maintain(now);
        Ok(())
    }

    /// A PFC frame is a signal of congestion, and does not pause unless that is asked for.
    fn on_pause(&mut self, now: Ps, pause: &Pause) {
        let Some(quanta) = pause.quanta[usize::from(self.config.priority)] else { return };
        if self.config.pause {
            // A quantum is 512 bit times: 512e6 / Mb/s picoseconds.
            let bits = u64::from(quanta) * 512;
            let line = u64::from(self.config.control.line.0.max(1));
            self.paused_until = now + Ps(bits * 1_000_000 / line);
        }
        // Zero quanta end a pause: the queue is short again.
        if quanta > 0 {
            self.signal(now);
        }
    }

    fn signal(&mut self, now: Ps) {
        self.control.on_pfc(now);
        self.settle_rate(now);
    }
}
