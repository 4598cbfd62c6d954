//! What the pager and its agent say to each other, on a socket that keeps messages whole.
//!
//! The agent is compiled by itself, without the standard library, and shares this file.

/// Bytes of a page: what is moved, stored and recorded.
pub const PAGE_BYTES: usize = 4096;
/// Most pages that one request takes out of a program.
pub const BATCH_PAGES: usize = 64;
/// The environment variable that names the pager's socket (in the abstract namespace).
pub const SOCKET_VARIABLE: &str = "ETHERMEM_PAGER";
/// Changes with this file, so that an agent of another version is refused.
pub const VERSION: u32 = 4;

/// `Hello::kind`: a program began (it was executed); the message brings its userfaultfd.
pub const STARTED: u32 = 0;
/// `Hello::kind`: a fork's child; its userfaultfd came to the pager as an event of the parent's.
pub const FORKED: u32 = 1;
/// `Hello::kind`: as [`STARTED`], but the agent was written into the program, whose C library is
/// unknown.
pub const INJECTED: u32 = 2;

/// `Hello::kind`: a thread is about to execute a program that no loader preloads the agent into; it
/// waits for the answer.
pub const EXECUTES: u32 = 3;
/// `Hello::kind`: as [`EXECUTES`], but the next process that the thread starts does.
pub const SPAWNS: u32 = 4;
/// `Hello::kind`: what [`EXECUTES`] or [`SPAWNS`] announced is over, whether it was done or not.
pub const OVER: u32 = 5;
/// `Hello::kind`: the answer to a challenge ([`Welcome::PROVE`]); it says `secret` alone.
pub const PROOF: u32 = 6;

/// What the agent says. Which process says it is not in here: the kernel tells that of each
/// message. Everything else is believed once the pager has proved it (`claim.rs`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// [`STARTED`], [`FORKED`] or [`INJECTED`]; or [`EXECUTES`], [`SPAWNS`] or [`OVER`], which
    /// say `thread` alone; or [`PROOF`].
    pub kind: u32,
    /// Why no userfaultfd could be opened, as the number of the system's error; or 0.
    pub error: u32,
    /// Always 0.
    pub reserved: u32,
    /// The thread that asks, as itself sees it.
    pub thread: u64,
    /// Where pages that are taken out go: [`BATCH_PAGES`] pages.
    pub staging: u64,
    /// A page where the pager puts a secret, which only the process itself can read.
    pub probe: u64,
    /// What is at the probe page, for [`FORKED`] and [`PROOF`].
    pub secret: [u64; 2],
    /// The first byte of the agent's own memory, which stays as it is.
    pub own_start: u64,
    /// The end of the agent's own memory.
    pub own_end: u64,
    /// The agent's code, where it was written into the program.
    pub image_start: u64,
    /// Its end.
    pub image_end: u64,
}

/// The pager's answer to [`Hello`]. Where a process is served, it brings the memory that the agent
/// copies pages to and, for [`FORKED`], the userfaultfd.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Welcome {
    /// One of the constants below.
    pub answer: u32,
}

impl Welcome {
    /// The process is not served, or the execution not followed.
    pub const REFUSED: u32 = 0;
    /// The process is served, or what was announced may go on.
    pub const ACCEPTED: u32 = 1;
    /// A secret is at the probe page: the agent must say it ([`PROOF`]).
    pub const PROVE: u32 = 2;
}

/// `Order::kind`: move pages into the staging area, page `i` to place `i`, and copy them from there
/// to the memory that the pager sees.
pub const TAKE: u32 = 0;
/// `Order::kind`: make pages the process's own again that a fork left shared, so that they can be
/// moved.
pub const UNSHARE: u32 = 1;

/// What the pager wants of the agent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// [`TAKE`] or [`UNSHARE`].
    pub kind: u32,
    /// How many of `pages` are meant.
    pub count: u32,
    /// First bytes of pages.
    pub pages: [u64; BATCH_PAGES],
}

/// What became of each page of an [`Order`]: 0, or the number of the system's error. The first, to
/// which there is no order, says that the agent is ready, and its thread in the first place.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// In the order of [`Order::pages`].
    pub errors: [i32; BATCH_PAGES],
}

/// Features that a program's userfaultfd must have, and the pager relies on.
pub mod feature {
    /// A fork tells, and the child's memory is served, too.
    pub const EVENT_FORK: u64 = 1 << 1;
    /// Moved mappings tell.
    pub const EVENT_REMAP: u64 = 1 << 2;
    /// Memory given back (`MADV_DONTNEED`, `MADV_FREE`) tells.
    pub const EVENT_REMOVE: u64 = 1 << 3;
    /// Unmapped memory tells.
    pub const EVENT_UNMAP: u64 = 1 << 6;
    /// Faults name their thread.
    pub const THREAD_ID: u64 = 1 << 8;
    /// Pages can be moved, not only copied (Linux 6.8).
    pub const MOVE: u64 = 1 << 16;
    /// All of them.
    pub const ALL: u64 = EVENT_FORK | EVENT_REMAP | EVENT_REMOVE | EVENT_UNMAP | THREAD_ID | MOVE;
}

/// Requests of the userfaultfd (linux/userfaultfd.h).
pub mod request {
    const fn code(direction: u64, number: u64, bytes: u64) -> u64 {
        direction << 30 | bytes << 16 | 0xaa << 8 | number
    }
    /// `UFFDIO_API`.
    pub const API: u64 = code(3, 0x3f, 24);
    /// `UFFDIO_REGISTER`.
    pub const REGISTER: u64 = code(3, 0x00, 32);
    /// `UFFDIO_UNREGISTER`.
    pub const UNREGISTER: u64 = code(2, 0x01, 16);
    /// `UFFDIO_WAKE`.
    pub const WAKE: u64 = code(2, 0x02, 16);
    /// `UFFDIO_COPY`.
    pub const COPY: u64 = code(3, 0x03, 40);
    /// `UFFDIO_ZEROPAGE`.
    pub const ZEROPAGE: u64 = code(3, 0x04, 32);
    /// `UFFDIO_CONTINUE`.
    pub const CONTINUE: u64 = code(3, 0x07, 32);
    /// `UFFDIO_MOVE`.
    pub const MOVE: u64 = code(3, 0x05, 40);
    /// `UFFD_API`: the version of the interface.
    pub const API_VERSION: u64 = 0xaa;
    /// `UFFDIO_REGISTER_MODE_MISSING`.
    pub const MODE_MISSING: u64 = 1;
    /// `UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES` and friends are not used: an absent page is an error.
    pub const MOVE_MODE: u64 = 0;
}
