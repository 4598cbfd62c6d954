//! A ring of frames, one in a slot (TPACKET_V2): the kernel fills them in their order, and has each
//! back when it was read. `docs/internals/clio-transport.md` says why this kind.

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
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::sockopt::SocketError;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, getsockopt, send, socket};
use nix::unistd::{SysconfVar, sysconf};
use thiserror::Error;

use crate::{Filter, Interface, kernel};

/// Memory of a ring, unless its frames are too long or too short for that.
const RING_BYTES: usize = 8 << 20;
/// Room for the windows of a few hundred clients, and for one of long frames.
const SLOTS_MAX: usize = 4096;
const SLOTS_MIN: usize = 128;
/// Of the kernel's memory that a ring is made of at least.
const BLOCK_BYTES: usize = 1 << 16;
/// Where TPACKET_V2 puts what follows a frame's addresses and kind: its own head, the address of
/// the sender, and 16 octets, at a multiple of 16.
const FRONT_BYTES: usize = (TPACKET2_HDRLEN + 16).next_multiple_of(16);

/// Why there is no ring.
#[derive(Debug, Error)]
pub enum RingError {
    /// The process may not.
    #[error(
        "raw Ethernet needs CAP_NET_RAW: start it as root, or allow the program \
         (setcap cap_net_raw+ep FILE)"
    )]
    Privilege,
    /// The kernel has no such ring, or no memory for it.
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

/// See the module: of one interface, for frames of one kind. What is sent comes back on the
/// loopback alone.
pub struct Ring {
    socket: Arc<OwnedFd>,
    memory: MmapRaw,
    slot_bytes: usize,
    slots: usize,
    /// The slot that is filled next, or that is read.
    at: usize,
    /// Where in that one the frame is, while it is read.
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
    /// For frames of an EtherType that a filter takes.
    ///
    /// # Errors
    /// [`RingError`].
    pub fn open(
        interface: &Interface,
        ether_type: u16,
        filter: &Filter,
    ) -> Result<Ring, RingError> {
        // Of no kind until it is bound, so that nothing comes that the filter has not seen.
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
        kernel::set(&socket, SOL_PACKET, PACKET_VERSION, &(tpacket_versions::TPACKET_V2 as c_int))?;
        kernel::attach(&socket, &mut filter.program(interface.index))?;
        // It only saves work, and old kernels do without.
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

    /// The next frame, which is the caller's until the next call; the one before is the kernel's
    /// again. One that is longer than a slot is cut off.
    pub fn take(&mut self) -> Option<&mut [u8]> {
        self.release();
        if self.status().load(Ordering::Acquire) & TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: a slot begins with this head, at a multiple of 16. The kernel wrote it before the
        // status that was read, and writes none of the slot until it has it back.
        let head: tpacket2_hdr = unsafe { self.slot().cast::<tpacket2_hdr>().read() };
        let from = usize::from(head.tp_mac).min(self.slot_bytes);
        let bytes = (head.tp_snaplen as usize).min(self.slot_bytes - from);
        self.held = Some(from..from + bytes);
        self.held()
    }

    /// The frame that was taken, if it was not given back.
    #[inline]
    pub fn held(&mut self) -> Option<&mut [u8]> {
        let Range { start, end } = self.held.clone()?;
        // SAFETY: the octets are within the slot, which is this process's until it is given back:
        // by a call that needs the ring itself, so not while they are borrowed.
        Some(unsafe { std::slice::from_raw_parts_mut(self.slot().add(start), end - start) })
    }

    /// Gives the frame that was taken back to the kernel.
    #[inline]
    pub fn release(&mut self) {
        if self.held.take().is_some() {
            self.status().store(TP_STATUS_KERNEL, Ordering::Release);
            let next = self.at + 1;
            self.at = if next == self.slots { 0 } else { next };
        }
    }

    /// Frames for which the ring had no room, since this was asked last.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn drops(&self) -> io::Result<u32> {
        let read: Statistics = kernel::get(&self.socket, SOL_PACKET, PACKET_STATISTICS)?;
        Ok(read.drops)
    }

    /// Whether the interface has been there ever since: once it was deleted, or has gone to another
    /// network, nothing comes any more, also if it comes back.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        kernel::is_bound(&self.socket)
    }

    /// Sends a frame, addresses and kind included.
    ///
    /// # Errors
    /// Of the interface: too long (`EMSGSIZE`), down (`ENETDOWN`), full (`ENOBUFS`, `EAGAIN`), gone
    /// (`ENXIO`).
    #[inline]
    pub fn send(&self, frame: &[u8]) -> Result<(), Errno> {
        use std::os::fd::AsRawFd;
        send(self.socket.as_raw_fd(), frame, MsgFlags::empty()).map(drop)
    }

    /// Looks at the interface of that name in the ring's network, whichever network the thread is
    /// in by now.
    ///
    /// # Errors
    /// Those of [`Interface::find`].
    pub fn interface(&self, name: &str) -> io::Result<Interface> {
        Interface::find_by(&self.socket, name)
    }

    /// What to sleep on.
    #[must_use]
    pub fn waiter(&self) -> Waiter {
        Waiter(self.socket.clone())
    }

    fn slot(&self) -> *mut u8 {
        // SAFETY: the ring has so many slots, and `at` is one of them.
        unsafe { self.memory.as_mut_ptr().add(self.at * self.slot_bytes) }
    }

    /// Whose the slot is.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: a slot begins with its status, at a multiple of 16, in memory that lives as long
        // as the ring; the kernel writes it in one piece, and nothing here but through this.
        unsafe { AtomicU32::from_ptr(self.slot().cast()) }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Of a slot for frames with so long a payload, and of the pieces that the kernel makes a ring of.
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
    /// Sleeps until a frame is there, or for so long.
    pub fn wait(&self, most: Duration) {
        self.wait_for(&mut [self.fd()], most);
    }

    /// Sleeps until a frame or something of another socket is there, or for so long.
    pub fn wait_with(&self, other: &impl AsFd, most: Duration) {
        self.wait_for(&mut [self.fd(), PollFd::new(other.as_fd(), PollFlags::POLLIN)], most);
    }

    fn fd(&self) -> PollFd<'_> {
        PollFd::new(self.0.as_fd(), PollFlags::POLLIN)
    }

    fn wait_for(&self, fds: &mut [PollFd<'_>], most: Duration) {
        // A signal ends the sleep early, which is as good: the caller looks again.
        let _ = ppoll(fds, Some(most.into()), None);
        if fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR)) {
            // The interface went down. That is said once: who asks again sleeps.
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
        // Kind of address, interface, field, take, leave.
        assert_eq!(program.len(), 8);
        let jumps: Vec<(u8, u8)> = program.iter().map(|step| (step.jt, step.jf)).collect();
        assert_eq!(jumps[1], (5, 0), "an address of others leaves");
        assert_eq!((jumps[3], program[3].k), ((0, 3), 7), "another interface leaves");
        assert_eq!(jumps[5], (0, 1), "another field leaves");
        assert_eq!((program[6].k, program[7].k), (u32::MAX, 0));
    }
}
