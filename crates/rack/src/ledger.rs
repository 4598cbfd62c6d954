//! The accounts of a rack: a file in shared memory with one row per process. The preloaded library
//! counts into its row; the launcher adds up the rows of its run.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What the name of a file with unread bytes begins with, after the ledger's; the socket's cookie
/// follows.
pub const LEFT: &str = "-left-";
/// Most processes of one rack at a time. A process without a row uses the kernel's sockets.
pub const ROWS: usize = 1024;
/// First word of a ledger: its format.
pub const MAGIC: u64 = 0x7261_636b_0000_0003;

/// Counters of a row, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Ends of connections that pass bytes through memory.
    Joined,
    /// Bytes sent through memory.
    MemoryBytes,
    /// Bytes sent through the kernel's sockets by connections of the rack.
    KernelBytes,
    /// Bells put into sockets.
    Bells,
    /// Bytes mapped since the start.
    Mapped,
    /// Bytes unmapped since the start.
    Unmapped,
    /// Connections whose other end runs no library.
    NoLibrary,
    /// Connections that the pool, or this process, had no room for.
    NoRoom,
    /// Connections that returned to the kernel because of a call that needs its socket.
    Returned,
    /// Times that a full ring, or a peer that does not read, sent bytes by the kernel.
    Overflows,
    /// Connections whose other end stored words that cannot be.
    Faults,
    /// Unread bytes that a return to the kernel put aside for whoever has the socket next.
    Carried,
    /// Bytes that were put aside, and read.
    Claimed,
    /// Bytes sent through memory by reference.
    ReferenceBytes,
    /// Connections to other racks that go by all NICs.
    ByNics,
    /// Connections to other racks that the kernel carries.
    NotByNics,
}

/// Number of counters.
pub const COUNTS: usize = 16;
/// Most connections of other racks' programs at a time whose address an accepting program is told.
pub const SHOWN: usize = 8192;
/// Places of a connection in the table: the first is computed, the others follow it.
const PLACES: usize = 64;
/// A place that is being filled.
const BUSY: u64 = u64::MAX;

/// The true address of a client of another rack.
#[derive(Debug)]
#[repr(C)]
pub struct Shown {
    /// The socket by which the process of the rack's NICs connects; 0 if the place is free.
    socket: AtomicU64,
    /// The client.
    client: AtomicU64,
}

/// What one process has counted.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Row {
    /// The process, or 0.
    pub process: AtomicU32,
    /// The run that it belongs to, or 0: the row is free.
    pub run: AtomicU32,
    counts: [AtomicU64; COUNTS],
}

/// The file.
#[derive(Debug)]
#[repr(C)]
pub struct Ledger {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// Bytes of rings in use in the whole rack.
    pub pool_bytes: AtomicU64,
    /// Files with unread bytes of connections that returned to the kernel.
    pub left_files: AtomicU64,
    /// Clients of other racks.
    pub shown: [Shown; SHOWN],
    /// One row per process.
    pub rows: [Row; ROWS],
}

impl Row {
    /// Adds to a counter.
    pub fn add(&self, count: Count, by: u64) {
        self.counts[count as usize].fetch_add(by, Ordering::Relaxed);
    }

    /// Reads a counter.
    #[must_use]
    pub fn get(&self, count: Count) -> u64 {
        self.counts[count as usize].load(Ordering::Acquire)
    }

    /// Sets all counters to 0.
    pub fn clear(&self) {
        for count in &self.counts {
            count.store(0, Ordering::Release);
        }
    }
}

impl Ledger {
    /// The row of `process` in `run`; a free one is taken.
    #[must_use]
    pub fn row(&self, run: u32, process: u32) -> Option<&Row> {
        let is_own = |row: &&Row| {
            row.run.load(Ordering::Acquire) == run && row.process.load(Ordering::Acquire) == process
        };
        if let Some(own) = self.rows.iter().find(is_own) {
            return Some(own);
        }
        let free = |row: &&Row| {
            row.run.compare_exchange(0, run, Ordering::AcqRel, Ordering::Acquire).is_ok()
        };
        let row = self.rows.iter().find(free)?;
        row.clear();
        row.process.store(process, Ordering::Release);
        Some(row)
    }

    /// Takes `bytes` of a pool of `limit` bytes. False if it has no room.
    #[must_use]
    pub fn take(&self, bytes: u64, limit: u64) -> bool {
        let taken = |was: u64| was.checked_add(bytes).filter(|next| *next <= limit);
        self.pool_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, taken).is_ok()
    }

    /// Gives `bytes` back.
    pub fn give(&self, bytes: u64) {
        let given = |was: u64| Some(was.saturating_sub(bytes));
        let _ = self.pool_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, given);
    }

    fn places(&self, socket: u64) -> impl Iterator<Item = &Shown> {
        let first = (socket.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize;
        (first..first + PLACES).map(|place| &self.shown[place % SHOWN])
    }

    /// Notes the client behind a socket. False if the table has no place.
    #[must_use]
    pub fn show(&self, socket: u64, client: u64) -> bool {
        let is_free = |place: &&Shown| {
            let order = (Ordering::AcqRel, Ordering::Relaxed);
            place.socket.compare_exchange(0, BUSY, order.0, order.1).is_ok()
        };
        self.places(socket).find(is_free).is_some_and(|place| {
            place.client.store(client, Ordering::Relaxed);
            place.socket.store(socket, Ordering::Release);
            true
        })
    }

    /// Frees the place of a socket.
    pub fn hide(&self, socket: u64) {
        for place in self.places(socket) {
            let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            if place.socket.compare_exchange(socket, 0, order, failed).is_ok() {
                return;
            }
        }
    }

    /// The client behind a socket.
    #[must_use]
    pub fn client(&self, socket: u64) -> Option<u64> {
        let is_it = |place: &&Shown| place.socket.load(Ordering::Acquire) == socket;
        self.places(socket).find(is_it).map(|place| place.client.load(Ordering::Relaxed))
    }
}
