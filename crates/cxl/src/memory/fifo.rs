//! The receive FIFO: frames between the MAC and the packet manager, counted in entries of 512 bits.

use ethermem_wire::cxl::{Mac, RequestPacket};

use crate::ring::Ring;

/// Octets of an entry: the data path has 512 bits (section IV).
const ENTRY_BYTES: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    peer: u32,
    mac: Mac,
    packet: RequestPacket,
    entries: u32,
}

#[derive(Clone, Debug)]
pub(super) struct ReceiveFifo {
    frames: Ring<Waiting>,
    entries: u32,
    used: u32,
}

impl ReceiveFifo {
    pub(super) fn new(entries: u32) -> ReceiveFifo {
        ReceiveFifo { frames: Ring::new(entries as usize), entries, used: 0 }
    }

    /// Entries in use.
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// Takes a frame of so many octets; `false` if there is no room.
    pub(super) fn push(
        &mut self,
        peer: u32,
        mac: Mac,
        packet: RequestPacket,
        octets: usize,
    ) -> bool {
        let entries = octets.div_ceil(ENTRY_BYTES) as u32;
        if self.used + entries > self.entries {
            return false;
        }
        self.used += entries;
        self.frames.push(Waiting { peer, mac, packet, entries }).is_ok()
    }

    /// The oldest frame: the place and the address of its sender, and its packet.
    pub(super) fn pop(&mut self) -> Option<(u32, Mac, RequestPacket)> {
        let Waiting { peer, mac, packet, entries } = self.frames.pop()?;
        self.used -= entries;
        Some((peer, mac, packet))
    }
}
