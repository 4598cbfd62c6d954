//! A ring of frames, one per slot (TPACKET_V2). The kernel fills the slots in order, and gets each
//! back after it was read. `docs/internals/clio-transport.md` says why this version was chosen.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};
use nix::errno::Errno;
use nix::libc::{
    PACKET_QDISC_BYPASS, PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION, SOL_PACKET,
    TP_STATUS_KERNEL, TP_STATUS_USER, TPACKET2_HDRLEN, c_int, tpacket_req, tpacket_versions,
    tpacket2_hdr,
};
use nix::poll::PollFlags;
use nix::sys::socket::sockopt::SocketError;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, getsockopt, send, socket};
use nix::unistd::{SysconfVar, sysconf};
use thiserror::Error;

use crate::{Alarm, Filter, Interface, kernel};

/// Memory of a ring in bytes, unless frames are too long or too short for it.
const RING_BYTES: usize = 8 << 20;
/// Largest number of slots: room for the windows of a few hundred clients.
const SLOTS_MAX: usize = 4096;
const SLOTS_MIN: usize = 128;
/// Smallest contiguous kernel block of a ring in bytes.
const BLOCK_BYTES: usize = 1 << 16;
/// Offset where TPACKET_V2 puts what follows a frame's addresses and EtherType: its own header, the
/// address of the sender, and 16 octets, rounded up to 16.
const FRONT_BYTES: usize = (TPACKET2_HDRLEN + 16).next_multiple_of(16);

/// The reason why a ring cannot be opened.
#[derive(Debug, Error)]
pub enum RingError {
    /// The process lacks the permission.
    #[error(
        "raw Ethernet needs CAP_NET_RAW: start it as root, or allow the program \
         (setcap cap_net_raw+ep FILE)"
    )]
    Privilege,
    /// The kernel does not support the ring, or has no memory for it.
    #[error("a ring of AF_PACKET: {0}")]
    Kernel(#[from] io::Error),
}

impl From<Errno> for RingError {
    fn from(errno: Errno) -> RingError {
        match errno {
            Errno::EPERM | Errno::EACCES => RingError::Privilege,
            errno => RingError::Kernel(errno.into()),
        }
    }
}

/// A ring of one interface, for frames of one EtherType. Sent frames come back only on the
/// loopback.
pub struct Ring {
    socket: Arc<OwnedFd>,
    memory: MmapRaw,
    slot_bytes: usize,
    slots: usize,
    /// Index of the slot that is filled next, or that is being read.
    at: usize,
    /// Range of the frame in that slot, while it is being read.
    held: Option<Range<usize>>,
}

/// The kernel's `tpacket_stats`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Statistics {
    _packets: u32,
    drops: u32,
}

impl Ring {
    /// Opens a ring for frames of an EtherType that a filter accepts.
    ///
    /// # Errors
    /// [`RingError`].
    pub fn open(
        interface: &Interface,
        ether_type: u16,
        filter: &Filter,
    ) -> Result<Ring, RingError> {
        // The socket has no EtherType until it is bound, so that every frame passes the filter.
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
        kernel::set(&socket, SOL_PACKET, PACKET_VERSION, &(tpacket_versions::TPACKET_V2 as c_int))?;
        kernel::attach(&socket, &mut filter.program(interface.index))?;
        // The option only saves work, and old kernels lack it.
        let _ = kernel::set(&socket, SOL_PACKET, PACKET_QDISC_BYPASS, &1_i32);
        let (slot_bytes, block_bytes) = sizes(interface.mtu);
        let wanted = (RING_BYTES / slot_bytes).clamp(SLOTS_MIN, SLOTS_MAX);
        let blocks = (wanted * slot_bytes).div_ceil(block_bytes);
        let slots = blocks * (block_bytes / slot_bytes);
        let number = |number: usize| u32::try_from(number).expect("a ring is below 4 GiB");
        let request = tpacket_req {
            tp_block_size: number(block_bytes),
            tp_block_nr: number(blocks),
            tp_frame_size: number(slot_bytes),
            tp_frame_nr: number(slots),
        };
        kernel::set(&socket, SOL_PACKET, PACKET_RX_RING, &request)?;
        let memory = MmapOptions::new().len(slots * slot_bytes).map_raw(&socket)?;
        kernel::bind(&socket, interface.index, ether_type)?;
        Ok(Ring { socket: Arc::new(socket), memory, slot_bytes, slots, at: 0, held: None })
    }

    /// The next frame, borrowed until the next call, which returns the previous one to the kernel.
    /// A frame longer than a slot is truncated.
    pub fn take(&mut self) -> Option<&mut [u8]> {
        self.release();
        if self.status().load(Ordering::Acquire) & TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: a slot begins with this header, at a multiple of 16. The kernel wrote it before
        // the status that was read, and writes nothing to the slot until it gets the slot back.
        let head: tpacket2_hdr = unsafe { self.slot().cast::<tpacket2_hdr>().read() };
        let from = usize::from(head.tp_mac).min(self.slot_bytes);
        let bytes = (head.tp_snaplen as usize).min(self.slot_bytes - from);
        self.held = Some(from..from + bytes);
        self.held()
    }

    /// The frame that was taken and not released.
    #[inline]
    pub fn held(&mut self) -> Option<&mut [u8]> {
        let Range { start, end } = self.held.clone()?;
        // SAFETY: the octets are within the slot, which this process owns until it is released.
        // Releasing needs the ring itself, so it cannot happen while they are borrowed.
        Some(unsafe { std::slice::from_raw_parts_mut(self.slot().add(start), end - start) })
    }

    /// Returns the taken frame to the kernel.
    #[inline]
    pub fn release(&mut self) {
        if self.held.take().is_some() {
            self.status().store(TP_STATUS_KERNEL, Ordering::Release);
            let next = self.at + 1;
            self.at = if next == self.slots { 0 } else { next };
        }
    }

    /// Number of frames for which the ring had no room, since the last call.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn drops(&self) -> io::Result<u32> {
        let read: Statistics = kernel::get(&self.socket, SOL_PACKET, PACKET_STATISTICS)?;
        Ok(read.drops)
    }

    /// True if the interface has existed ever since. Once it was deleted or moved to another
    /// network namespace, nothing arrives any more, even if it comes back.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        kernel::is_bound(&self.socket)
    }

    /// Sends a frame, including addresses and EtherType.
    ///
    /// # Errors
    /// Errors of the interface: frame too long (`EMSGSIZE`), down (`ENETDOWN`), full (`ENOBUFS`,
    /// `EAGAIN`), gone (`ENXIO`).
    #[inline]
    pub fn send(&self, frame: &[u8]) -> Result<(), Errno> {
        use std::os::fd::AsRawFd;
        send(self.socket.as_raw_fd(), frame, MsgFlags::empty()).map(drop)
    }

    /// Reads the properties of an interface in the ring's network namespace, whichever namespace
    /// the thread is in.
    ///
    /// # Errors
    /// Errors of [`Interface::find`].
    pub fn interface(&self, name: &str) -> io::Result<Interface> {
        Interface::find_by(&self.socket, name)
    }

    /// A handle to sleep on.
    #[must_use]
    pub fn waiter(&self) -> Waiter {
        Waiter(self.socket.clone())
    }

    fn slot(&self) -> *mut u8 {
        // SAFETY: `at` is below the ring's number of slots.
        unsafe { self.memory.as_mut_ptr().add(self.at * self.slot_bytes) }
    }

    /// Ownership of the slot.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: a slot begins with its status, at a multiple of 16, in memory that lives as long
        // as the ring. The kernel writes it atomically, and this process accesses it only here.
        unsafe { AtomicU32::from_ptr(self.slot().cast()) }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sizes in bytes of a slot for frames with this MTU, and of the blocks that the ring consists of.
fn sizes(mtu: usize) -> (usize, usize) {
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096) as usize;
    let slot = FRONT_BYTES + mtu;
    if slot <= BLOCK_BYTES / 2 {
        let slot = slot.next_power_of_two();
        return (slot, BLOCK_BYTES.max(page));
    }
    let slot = slot.next_multiple_of(page);
    (slot, slot)
}

/// Waits for frames without the ring.
#[derive(Clone, Debug)]
pub struct Waiter(Arc<OwnedFd>);

impl Waiter {
    /// Sleeps until a frame arrives, or for at most `most`.
    pub fn wait(&self, alarm: &Alarm, most: Duration) {
        self.heed(alarm.sleep(self.descriptor(), None, most));
    }

    /// Sleeps until a frame or an event of another socket arrives, or for at most `most`.
    pub fn wait_with(&self, other: &impl AsFd, alarm: &Alarm, most: Duration) {
        self.heed(alarm.sleep(self.descriptor(), Some(other.as_fd()), most));
    }

    /// The descriptor that becomes readable when a frame arrives.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn heed(&self, events: PollFlags) {
        if events.contains(PollFlags::POLLERR) {
            // The interface went down. The error is reported once, so a second call sleeps.
            let _ = getsockopt(&self.0, SocketError);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;

    #[test]
    fn slots_hold_their_frames_and_fill_blocks_of_whole_pages() {
        for mtu in [576, 1500, 1968, 1969, 9000, 32_688, 32_689, 65_536] {
            let (slot, block) = sizes(mtu);
            assert!(slot >= FRONT_BYTES + mtu, "{mtu}");
            assert!(slot.is_multiple_of(16) && block.is_multiple_of(4096), "{mtu}");
            assert!(block.is_multiple_of(slot), "{mtu}: slots are one behind the other");
        }
        assert_eq!(sizes(1500).0, 2048);
    }

    #[test]
    fn a_filter_leaves_what_is_for_others_and_takes_what_is_ours() {
        let filter = Filter { fields: vec![Field::Half(14, [1, 2])], broadcast: true };
        let program = filter.program(7);
        // Kind of address, interface, field, accept, reject.
        assert_eq!(program.len(), 8);
        let jumps: Vec<(u8, u8)> = program.iter().map(|step| (step.jt, step.jf)).collect();
        assert_eq!(jumps[1], (5, 0), "an address of others leaves");
        assert_eq!((jumps[3], program[3].k), ((0, 3), 7), "another interface leaves");
        assert_eq!(jumps[5], (0, 1), "another field leaves");
        assert_eq!((program[6].k, program[7].k), (u32::MAX, 0));
    }
}
