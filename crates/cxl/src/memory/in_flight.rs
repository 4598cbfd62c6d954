//! Accesses to the memory that are under way: a table as a CAM, by line.

use ethermem_wire::cxl::{LineAddress, Request, RequestPacket};

/// An access that is under way, or has just ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// The place of its compute node; `None` once that was detached.
    pub(super) peer: Option<usize>,
    pub(super) packet: RequestPacket,
    line: LineAddress,
}

#[derive(Clone, Debug)]
pub(super) struct InFlight {
    open: Box<[Option<Open>]>,
    count: usize,
}

impl InFlight {
    pub(super) fn new(accesses_max: u32) -> InFlight {
        InFlight { open: vec![None; accesses_max as usize].into(), count: 0 }
    }

    pub(super) fn is_full(&self) -> bool {
        self.count == self.open.len()
    }

    /// True if an access to this line must wait: a read for a write, a write for any access.
    pub(super) fn conflicts(&self, line: LineAddress, is_write: bool) -> bool {
        let under_way = self.open.iter().flatten().take(self.count);
        let mut same = under_way.filter(|open| open.line == line);
        same.any(|open| is_write || !matches!(open.packet.request, Request::Read))
    }

    /// Begins an access, and gives its number.
    ///
    /// # Panics
    /// If the table is full.
    pub(super) fn begin(&mut self, peer: usize, packet: &RequestPacket, line: LineAddress) -> u32 {
        let free = self.open.iter().position(Option::is_none).expect("the caller asked for room");
        self.open[free] = Some(Open { peer: Some(peer), packet: *packet, line });
        self.count += 1;
        free as u32
    }

    /// Ends an access.
    ///
    /// # Panics
    /// If it is not under way.
    pub(super) fn end(&mut self, number: u32) -> Open {
        let ended = self.open[number as usize].take().expect("an access ends once");
        self.count -= 1;
        ended
    }

    /// A compute node is gone: its accesses go on without a receiver.
    pub(super) fn forget(&mut self, peer: usize) {
        for open in self.open.iter_mut().flatten().filter(|open| open.peer == Some(peer)) {
            open.peer = None;
        }
    }
}
