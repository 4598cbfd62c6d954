//! The NIC pool: working queues of NICs, and which NIC a TxQ has (sections 4.2 and 4.4).
//!
//! TxQs are mapped to NICs many to one, by the depth of the NICs' queues. A TxQ without packets
//! under way may get another NIC; one with packets under way stays, so that its subflow keeps its
//! order.

mod receive;

pub use receive::{MemoryDevice, ReceiveSpread};

use ethermem_units::BitsPerSecond;
use ethermem_wire::dfabric::{Descriptor, FabricAddress};
use thiserror::Error;

use crate::fifo::Fifo;

/// A NIC of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NicId(pub u16);

/// A TxQ of the rack, by its number among all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxQueue(pub u32);

/// What a NIC has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicConfig {
    /// Its rate.
    pub rate: BitsPerSecond,
    /// Entries of its TX queue.
    pub tx_entries: u32,
    /// Entries of its RX queue.
    pub rx_entries: u32,
}

/// Why a packet was not given to a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PostError {
    /// No NIC of the pool is up.
    #[error("no NIC is up")]
    NoNic,
    /// The NIC's TX queue is full; the TxQ waits.
    #[error("the TX queue of NIC {} is full", .0.0)]
    Full(NicId),
}

#[derive(Clone, Debug)]
struct Nic {
    is_up: bool,
    rate: BitsPerSecond,
    /// The TX queue: each entry with the TxQ that it came from.
    tx: Fifo<(Descriptor, TxQueue)>,
    tx_bytes: u64,
    /// The RX queue: Buffers for packets, in the order in which they are used.
    rx: Fifo<FabricAddress>,
    /// Packets that found no Buffer.
    dropped: u64,
    /// TxQs that have this NIC.
    queues: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Assigned {
    nic: Option<NicId>,
    under_way: u32,
    /// True if it keeps its NIC while that is up.
    is_pinned: bool,
}

/// The NICs of a rack, with the physical queues of each.
#[derive(Clone, Debug)]
pub struct NicPool {
    nics: Box<[Nic]>,
    queues: Box<[Assigned]>,
}

impl NicPool {
    /// A pool of these NICs for so many TxQs.
    #[must_use]
    pub fn new(nics: &[NicConfig], queues: u32) -> NicPool {
        let nic = |config: &NicConfig| Nic {
            is_up: true,
            rate: config.rate,
            tx: Fifo::new(config.tx_entries as usize),
            tx_bytes: 0,
            rx: Fifo::new(config.rx_entries as usize),
            dropped: 0,
            queues: 0,
        };
        let queues = vec![Assigned::default(); queues as usize].into();
        NicPool { nics: nics.iter().map(nic).collect(), queues }
    }

    /// True if a NIC is up.
    #[must_use]
    pub fn is_up(&self, nic: NicId) -> bool {
        self.nics.get(usize::from(nic.0)).is_some_and(|nic| nic.is_up)
    }

    /// The NIC of a TxQ, if it has one.
    #[must_use]
    pub fn nic_of(&self, queue: TxQueue) -> Option<NicId> {
        self.queues.get(queue.0 as usize)?.nic
    }

    /// Depth of a NIC's TX queue: the time to send what is in it, and `bytes` more, in picoseconds.
    fn depth(&self, nic: usize, bytes: u32) -> u128 {
        let Nic { rate, tx_bytes, .. } = &self.nics[nic];
        let bytes = ethermem_units::Bytes(tx_bytes + u64::from(bytes));
        u128::from(rate.bytes_time(bytes).0)
    }

    /// The NIC for the next packet of a TxQ. A TxQ with nothing under way gets the NIC that would
    /// have sent the packet first; of equal ones its present NIC, or else the first with fewest
    /// TxQs.
    fn assign(&mut self, queue: TxQueue, bytes: u32) -> Option<NicId> {
        let Assigned { nic, under_way, is_pinned } = self.queues[queue.0 as usize];
        let present = nic.filter(|nic| self.is_up(*nic));
        if (under_way > 0 || is_pinned) && present.is_some() {
            return present;
        }
        let up = (0..self.nics.len()).filter(|&at| self.nics[at].is_up);
        let chosen = up.min_by_key(|&at| {
            let is_other = present != Some(NicId(at as u16));
            (self.depth(at, bytes), is_other, self.nics[at].queues)
        });
        let chosen = chosen.map(|at| NicId(at as u16));
        self.give(queue, chosen);
        chosen
    }

    fn give(&mut self, queue: TxQueue, chosen: Option<NicId>) {
        let nic = std::mem::replace(&mut self.queues[queue.0 as usize].nic, chosen);
        for (nic, change) in [(nic, -1), (chosen, 1)] {
            if let Some(nic) = nic {
                let queues = &mut self.nics[usize::from(nic.0)].queues;
                *queues = queues.checked_add_signed(change).expect("a TxQ has one NIC");
            }
        }
    }

    /// Maps a TxQ to this NIC, whatever its depth, as long as the NIC is up.
    ///
    /// # Panics
    /// If the pool has no such TxQ or NIC.
    pub fn pin(&mut self, queue: TxQueue, nic: NicId) {
        self.give(queue, Some(nic));
        self.queues[queue.0 as usize].is_pinned = true;
    }

    /// The NIC that would take the next packet of a TxQ now.
    ///
    /// # Errors
    /// [`PostError`].
    ///
    /// # Panics
    /// If the pool has no such TxQ.
    pub fn choose(&mut self, queue: TxQueue, bytes: u32) -> Result<NicId, PostError> {
        let nic = self.assign(queue, bytes).ok_or(PostError::NoNic)?;
        match self.nics[usize::from(nic.0)].tx.is_full() {
            true => Err(PostError::Full(nic)),
            false => Ok(nic),
        }
    }

    /// Stores a packet's descriptor in the TX queue of its TxQ's NIC.
    ///
    /// # Errors
    /// [`PostError`]; nothing was stored.
    ///
    /// # Panics
    /// If the pool has no such TxQ.
    pub fn post(&mut self, queue: TxQueue, work: Descriptor) -> Result<NicId, PostError> {
        let nic = self.choose(queue, work.length)?;
        let found = &mut self.nics[usize::from(nic.0)];
        found.tx.push((work, queue));
        found.tx_bytes += u64::from(work.length);
        self.queues[queue.0 as usize].under_way += 1;
        Ok(nic)
    }

    /// The packet that is `after` behind the first of a NIC's TX queue: its DMA engine may read
    /// several at once.
    #[must_use]
    pub fn peek(&self, nic: NicId, after: usize) -> Option<Descriptor> {
        let nic = self.nics.get(usize::from(nic.0)).filter(|nic| nic.is_up)?;
        nic.tx.get(after).map(|(work, _)| *work)
    }

    /// The first packet of a NIC was sent, and its Buffer is no longer read.
    pub fn complete(&mut self, nic: NicId) -> Option<(Descriptor, TxQueue)> {
        self.take(nic, true)
    }

    fn take(&mut self, nic: NicId, is_up: bool) -> Option<(Descriptor, TxQueue)> {
        let found = self.nics.get_mut(usize::from(nic.0)).filter(|nic| nic.is_up == is_up)?;
        let (work, queue) = found.tx.pop()?;
        found.tx_bytes -= u64::from(work.length);
        self.queues[queue.0 as usize].under_way -= 1;
        Some((work, queue))
    }

    /// A NIC is gone. Its TxQs get others with their next packets; [`NicPool::poll_lost`] returns
    /// what it had.
    pub fn lose(&mut self, nic: NicId) {
        if let Some(found) = self.nics.get_mut(usize::from(nic.0)) {
            (found.is_up, found.queues) = (false, 0);
        }
        for queue in self.queues.iter_mut().filter(|queue| queue.nic == Some(nic)) {
            queue.nic = None;
        }
    }

    /// A packet that a lost NIC had: its reference is to be given up, and its subflow told.
    pub fn poll_lost(&mut self, nic: NicId) -> Option<(Descriptor, TxQueue)> {
        self.take(nic, false)
    }

    /// A Buffer of a lost NIC's RX queue: its reference is to be given up.
    pub fn poll_lost_buffer(&mut self, nic: NicId) -> Option<FabricAddress> {
        self.nics.get_mut(usize::from(nic.0)).filter(|nic| !nic.is_up)?.rx.pop()
    }

    /// A NIC is back. False while what it had was not taken by [`NicPool::poll_lost`].
    pub fn restore(&mut self, nic: NicId) -> bool {
        let Some(found) = self.nics.get_mut(usize::from(nic.0)) else { return false };
        let is_empty = found.tx.len() == 0 && found.rx.len() == 0;
        found.is_up |= is_empty;
        is_empty
    }

    /// Removes what refers to lost memory from all queues.
    pub(crate) fn forget(&mut self, is_lost: impl Fn(FabricAddress) -> bool) {
        let queues = &mut self.queues;
        for nic in &mut self.nics {
            let bytes = &mut nic.tx_bytes;
            nic.rx.retain(|buffer| !is_lost(*buffer));
            nic.tx.retain(|(work, queue)| {
                let gone = is_lost(work.reference);
                if gone {
                    *bytes -= u64::from(work.length);
                    queues[queue.0 as usize].under_way -= 1;
                }
                !gone
            });
        }
    }

    /// Fills a NIC's RX queue with one more Buffer. False if it is full, or the NIC is not up.
    pub fn post_receive(&mut self, nic: NicId, buffer: FabricAddress) -> bool {
        let found = self.nics.get_mut(usize::from(nic.0)).filter(|nic| nic.is_up);
        found.is_some_and(|nic| nic.rx.push(buffer))
    }

    /// A packet has come: the Buffer into which the NIC writes it. `None`: there is none, and the
    /// packet is dropped.
    pub fn arrive(&mut self, nic: NicId) -> Option<FabricAddress> {
        let found = self.nics.get_mut(usize::from(nic.0)).filter(|nic| nic.is_up)?;
        let buffer = found.rx.pop();
        found.dropped += u64::from(buffer.is_none());
        buffer
    }

    /// Room of a NIC's RX queue, in Buffers.
    #[must_use]
    pub fn wants(&self, nic: NicId) -> bool {
        let nic = self.nics.get(usize::from(nic.0));
        nic.is_some_and(|nic| nic.is_up && !nic.rx.is_full())
    }

    /// Bytes in a NIC's TX queue, and packets that found no Buffer.
    #[must_use]
    pub fn tx_bytes_and_drops(&self, nic: NicId) -> (u64, u64) {
        let nic = self.nics.get(usize::from(nic.0));
        nic.map_or((0, 0), |nic| (nic.tx_bytes, nic.dropped))
    }

    /// Packets of a TxQ in TX queues.
    #[must_use]
    pub fn under_way(&self, queue: TxQueue) -> u32 {
        self.queues.get(queue.0 as usize).map_or(0, |queue| queue.under_way)
    }
}

#[cfg(test)]
mod tests;
