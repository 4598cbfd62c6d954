//! MAC frames through a store-and-forward, output-queued layer 2 switch.
//!
//! The stage latencies are those of Table 1. There is no transport: hosts send at once, first come
//! first served, and the switch has buffer for all, so nothing is lost and everything queues.

use ethermem_edm::Arbitration;
use ethermem_units::{Blocks, Bytes, Ps};

use crate::FabricConfig;
use crate::budget::{L2_FORWARDING, MAC, STANDARD_PCS, Timing};
use crate::engine::{Fabric, Handle, Sim, Violation};
use crate::message::{Kind, Message, NodeIndex};
use crate::metrics::FabricStats;
use crate::output::{Timeline, TrackId};
use crate::topology::{LinkTracks, Star};
use crate::workload::LinkBlocks;

/// Largest payload of a frame.
const MTU_BYTES: u64 = 1_500;
/// Smallest frame, header and FCS included.
const FRAME_BYTES_MIN: u64 = 64;
/// Ethernet header and FCS.
const FRAME_OVERHEAD_BYTES: u64 = 18;
/// Preamble with start delimiter, and the inter-packet gap.
const PREAMBLE_BYTES: u64 = 8;
const GAP_BYTES: u64 = 12;
/// Operation, message id, length and a 64-bit address, in every frame.
const MEMORY_HEADER_BYTES: u64 = 16;
/// What the line takes of a frame beside its data, when it is not a small one.
pub(super) const OVERHEAD_BYTES: u64 =
    PREAMBLE_BYTES + FRAME_OVERHEAD_BYTES + MEMORY_HEADER_BYTES + GAP_BYTES;
/// Data that one frame carries at most.
pub(super) const DATA_BYTES_MAX: u64 = MTU_BYTES - MEMORY_HEADER_BYTES;

/// See the module.
pub struct RawEthernet {
    timing: Timing,
    memory_access: Ps,
    links: Star,
    tracks: Option<LinkTracks>,
    sent: u64,
    delivered: u64,
}

/// A frame on its way.
#[derive(Clone, Copy)]
pub struct Frame {
    handle: Handle,
    source: NodeIndex,
    destination: NodeIndex,
    data_bytes: u16,
    /// The message's last frame in this direction.
    last: bool,
    /// What the response to a request will carry; 0 when no response is due.
    response_bytes: u32,
}

/// Where a frame has arrived whole.
#[derive(Clone, Copy)]
pub enum Event {
    /// At the switch, forwarded, at the transmitter of its egress port.
    AtEgress(Frame),
    /// At its destination.
    Delivered(Frame),
}

/// Blocks of a frame on the line, with preamble and gap.
pub(super) fn frame_blocks(data_bytes: u64) -> Blocks {
    let frame = (data_bytes + MEMORY_HEADER_BYTES + FRAME_OVERHEAD_BYTES).max(FRAME_BYTES_MIN);
    Bytes(PREAMBLE_BYTES + frame + GAP_BYTES).to_blocks()
}

/// Blocks after whose arrival a frame is whole: the gap is none of it.
pub(super) fn frame_tail(data_bytes: u64) -> Blocks {
    let frame = (data_bytes + MEMORY_HEADER_BYTES + FRAME_OVERHEAD_BYTES).max(FRAME_BYTES_MIN);
    Bytes(PREAMBLE_BYTES + frame).to_blocks()
}

fn data_blocks(bytes: Bytes) -> Blocks {
    let (whole, rest) = (bytes.0 / DATA_BYTES_MAX, bytes.0 % DATA_BYTES_MAX);
    let rest = if rest > 0 { frame_blocks(rest) } else { Blocks(0) };
    Blocks(whole * frame_blocks(DATA_BYTES_MAX).0) + rest
}

fn draw(timeline: Option<&mut Timeline>, track: TrackId, frame: &Frame, start: Ps, end: Ps) {
    let Some(timeline) = timeline else { return };
    let args = [
        ("from", u64::from(frame.source)),
        ("to", u64::from(frame.destination)),
        ("data bytes", u64::from(frame.data_bytes)),
    ];
    timeline.slice(track, "frame", start, end, &args);
}

impl RawEthernet {
    /// Hands all frames of `bytes` to a node's transmitter.
    fn send(&mut self, sim: &mut Sim<Event>, bytes: u64, frame: Frame) {
        let ready = sim.now() + self.timing.cycles(MAC);
        let mut left = bytes;
        loop {
            let data = left.min(DATA_BYTES_MAX);
            left -= data;
            let frame = Frame { data_bytes: data as u16, last: left == 0, ..frame };
            let link = self.links.up(frame.source);
            let start = link.send(ready, frame_blocks(data), Bytes(data).to_blocks());
            if let Some(tracks) = &self.tracks {
                let end = start + link.tail(frame_tail(data));
                draw(sim.timeline(), tracks.up(frame.source), &frame, start, end);
            }
            let whole = start + link.tail(frame_tail(data)) + self.timing.hop(STANDARD_PCS);
            let forwarded = whole + self.timing.cycles(MAC) * 2 + L2_FORWARDING;
            self.sent += 1;
            sim.at(forwarded, Event::AtEgress(frame));
            if left == 0 {
                break;
            }
        }
    }

    fn deliver(&mut self, sim: &mut Sim<Event>, frame: Frame) {
        self.delivered += 1;
        if !frame.last {
            return;
        }
        if frame.response_bytes == 0 {
            sim.finish(frame.handle, sim.now());
            return;
        }
        let response = Frame {
            source: frame.destination,
            destination: frame.source,
            response_bytes: 0,
            ..frame
        };
        self.send(sim, u64::from(frame.response_bytes), response);
    }
}

impl Fabric for RawEthernet {
    type Event = Event;

    fn build(config: &FabricConfig, seed: u64) -> RawEthernet {
        RawEthernet {
            timing: Timing::of(config),
            memory_access: config.memory_access,
            links: Star::new(config, Arbitration::Fair, seed),
            tracks: None,
            sent: 0,
            delivered: 0,
        }
    }

    fn draw_on(&mut self, timeline: &mut Timeline) {
        self.tracks = Some(LinkTracks::new(timeline, self.links.nodes()));
    }

    fn submit(&mut self, sim: &mut Sim<Event>, handle: Handle, message: &Message) {
        let (bytes, response_bytes) = match message.kind {
            Kind::Write => (message.bytes.0, 0),
            Kind::Read | Kind::ReadModifyWrite => (0, message.bytes.0 as u32),
        };
        let frame = Frame {
            handle,
            source: message.compute,
            destination: message.memory,
            data_bytes: 0,
            last: true,
            response_bytes,
        };
        self.send(sim, bytes, frame);
    }

    fn handle(&mut self, sim: &mut Sim<Event>, event: Event) {
        match event {
            Event::AtEgress(frame) => {
                let data = u64::from(frame.data_bytes);
                let link = self.links.down(frame.destination);
                let start = link.send(sim.now(), frame_blocks(data), Bytes(data).to_blocks());
                if let Some(tracks) = &self.tracks {
                    let end = start + link.tail(frame_tail(data));
                    draw(sim.timeline(), tracks.down(frame.destination), &frame, start, end);
                }
                let whole = start + link.tail(frame_tail(data)) + self.timing.hop(STANDARD_PCS);
                let access = if frame.response_bytes > 0 { self.memory_access } else { Ps::ZERO };
                sim.at(whole + self.timing.cycles(MAC) + access, Event::Delivered(frame));
            }
            Event::Delivered(frame) => self.deliver(sim, frame),
        }
    }

    fn period(&self) -> Bytes {
        Bytes(DATA_BYTES_MAX)
    }

    fn blocks(_config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        let (request, data) = (frame_blocks(0).0 as f64, data_blocks(bytes).0 as f64);
        LinkBlocks::unscheduled(kind, request, data)
    }

    fn close(&self, ended: Ps) -> Result<FabricStats, Violation> {
        if self.sent != self.delivered {
            return Err(Violation(format!(
                "{} frames sent, {} delivered",
                self.sent, self.delivered
            )));
        }
        Ok(self.links.stats(ended))
    }
}
