//! The framing of scheduled fabrics: MAC frames, or EDM's blocks and stages.

use ethermem_edm::{Arbitration, budget as edm};
use ethermem_engine::FabricConfig;
use ethermem_engine::topology::{LinkTiming, MAC, STANDARD_PCS, Sharing, Transmitter};
use ethermem_frames::{FRAME_OVERHEAD_BYTES, Frame, GAP_BYTES, PREAMBLE_BYTES};
use ethermem_units::{Blocks, Bytes, Ps};
use ethermem_wire::{AddressWidth, ChunkKind};

use crate::edm::EdmParameters;

/// The framing of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// MAC frames through a store-and-forward switch, as in `raw-ethernet`.
    #[default]
    Mac,
    /// Blocks of the PCS, cut through, as in EDM: the only difference is then the scheduling.
    Phy,
}

/// The sizes of one item on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Number of blocks that it takes.
    pub(super) line: Blocks,
    /// Number of blocks that carry data.
    pub(super) data: Blocks,
    /// Number of blocks until the switch can forward it.
    forwarded: Blocks,
    /// Number of blocks until it is whole.
    whole: Blocks,
}

impl Size {
    /// Time from the departure of its first block until the next switch can forward it, without the
    /// delays of link and switch.
    #[inline]
    pub(super) fn until_forwarded(self, slot: Ps) -> Ps {
        slot * (self.forwarded.0 - 1)
    }
}

/// A framing with its delays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Medium {
    framing: Framing,
    /// Maximum data bytes of one item.
    pub(super) data_max: u64,
    /// Number of bytes of every frame's payload before its data.
    memory_header: u64,
    /// Time of a host before the transmitter, for control.
    pub(super) request: Ps,
    /// Time of a host from received control to its action.
    pub(super) receive: Ps,
    /// Time of a host before the transmitter, for data.
    pub(super) generate: Ps,
    /// Time of a host for received data.
    pub(super) take: Ps,
    hop: Ps,
    forward: Ps,
}

impl Medium {
    pub(super) fn of(config: &FabricConfig, framing: Framing) -> Medium {
        let timing = LinkTiming::of(config);
        let memory_header = config.packet.memory_header.0;
        match framing {
            Framing::Mac => {
                let mac = timing.cycles(MAC);
                Medium {
                    framing,
                    data_max: config.packet.mtu.0 - memory_header,
                    memory_header,
                    request: mac,
                    receive: mac,
                    generate: mac,
                    take: mac,
                    hop: timing.hop(STANDARD_PCS),
                    forward: mac * 2 + config.packet.forwarding,
                }
            }
            Framing::Phy => Medium {
                framing,
                data_max: config.of::<EdmParameters>().chunk.0,
                memory_header,
                request: timing.cycles(edm::GENERATE_REQUEST),
                receive: timing.cycles(edm::RECEIVE_REQUEST + edm::GRANT_QUEUE),
                generate: timing.cycles(edm::GENERATE_DATA),
                take: timing.cycles(edm::RECEIVE_DATA),
                hop: timing.hop(edm::PCS),
                forward: timing.cycles(edm::FORWARD),
            },
        }
    }

    /// How its items share links with Ethernet frames.
    pub(super) fn sharing(&self, config: &FabricConfig) -> Sharing {
        match self.framing {
            Framing::Mac => Sharing::of_frames(&config.background),
            Framing::Phy => Sharing::in_phy(Arbitration::Fair),
        }
    }

    /// The size of an item with `bytes` of data, at most `data_max`.
    pub(super) fn data(&self, bytes: u64) -> Size {
        let data = Bytes(bytes).to_blocks();
        match self.framing {
            Framing::Mac => self.frame(bytes),
            Framing::Phy => {
                let line = ethermem_wire::chunk_blocks(ChunkKind::ReadResponse, Bytes(bytes));
                Size { line, data, forwarded: Blocks(1), whole: line }
            }
        }
    }

    /// The size of a credit or a request: a frame of minimum size, or an RREQ. It is whole before
    /// it is forwarded.
    pub(super) fn control(&self) -> Size {
        match self.framing {
            Framing::Mac => self.frame(0),
            Framing::Phy => {
                let line = ethermem_wire::read_request_blocks(AddressWidth::Bits40);
                Size { line, data: Blocks(0), forwarded: line, whole: line }
            }
        }
    }

    /// Number of blocks and of items of a message's data, with at most `each` bytes per item.
    pub(super) fn data_blocks(&self, bytes: Bytes, each: u64) -> (f64, u64) {
        let (full, rest) = (bytes.0 / each, bytes.0 % each);
        let last = if rest > 0 { self.data(rest).line } else { Blocks(0) };
        let line = full * self.data(each).line.0 + last.0;
        (line as f64, full + u64::from(rest > 0))
    }

    /// Hands an item to an uplink; returns the time at which it is at its egress.
    pub(super) fn up(&self, link: &mut Transmitter, ready: Ps, size: Size) -> Ps {
        let start = link.send(ready, size.line, size.data);
        start + link.tail(size.forwarded) + self.hop + self.forward
    }

    /// The time at which an item with this start on its uplink is at its egress.
    pub(super) fn after_up(&self, start: Ps, size: Size, slot: Ps) -> Ps {
        start + size.until_forwarded(slot) + self.hop + self.forward
    }

    /// The time at which an item with this start on its downlink is whole at the host.
    pub(super) fn after_down(&self, start: Ps, size: Size, slot: Ps) -> Ps {
        start + slot * (size.whole.0 - 1) + self.hop
    }

    /// Time of an item from one host to another on an idle network.
    pub(super) fn crossing(&self, size: Size, slot: Ps, before: Ps, after: Ps) -> Ps {
        let egress = self.after_up(before, size, slot);
        self.after_down(egress, size, slot) + after
    }

    /// The size of a MAC frame with this much data.
    fn frame(&self, bytes: u64) -> Size {
        let frame = Frame::of(self.memory_header + bytes);
        let whole = Blocks(u64::from(frame.tail) + 1);
        Size { line: frame.line_blocks(), data: Bytes(bytes).to_blocks(), forwarded: whole, whole }
    }

    /// Number of data bytes of the frame that takes this many bytes on the line, including preamble
    /// and gap.
    pub(super) fn frame_data(&self, line: Bytes) -> u64 {
        // A timeslot holds the longest header; a frame is at most the MTU.
        let around = PREAMBLE_BYTES + FRAME_OVERHEAD_BYTES + self.memory_header + GAP_BYTES;
        (line.0 - around).min(self.data_max)
    }
}
