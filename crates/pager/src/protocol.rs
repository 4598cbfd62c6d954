//! The messages between the pager and its agent, on a socket that preserves message boundaries.
//!
//! The agent is compiled separately, without the standard library, and shares this file.

/// Bytes of a page, the unit that is moved, stored and recorded.
pub const PAGE_BYTES: usize = 4096;
/// Most pages that one request takes out of a program.
pub const BATCH_PAGES: usize = 64;
/// The environment variable that names the pager's socket (in the abstract namespace).
pub const SOCKET_VARIABLE: &str = "ETHERMEM_PAGER";
/// Changes with this file, so that an agent of another version is refused.
pub const VERSION: u32 = 5;

/// `Hello::kind`: a program was executed; the message brings its userfaultfd.
pub const STARTED: u32 = 0;
/// `Hello::kind`: a fork's child; the parent's fork event brought its userfaultfd to the pager.
pub const FORKED: u32 = 1;
/// `Hello::kind`: as [`STARTED`], but the agent was written into the program, whose C library is
/// unknown.
pub const INJECTED: u32 = 2;

/// `Hello::kind`: a thread is about to execute a program into which no loader preloads the agent,
/// and waits for the answer.
pub const EXECUTES: u32 = 3;
/// `Hello::kind`: as [`EXECUTES`], but the next process that the thread starts executes it.
pub const SPAWNS: u32 = 4;
/// `Hello::kind`: the execution that [`EXECUTES`] or [`SPAWNS`] announced is over, done or not.
pub const OVER: u32 = 5;
/// `Hello::kind`: the answer to a challenge ([`Welcome::PROVE`]); it carries only `secret`.
pub const PROOF: u32 = 6;

/// The agent's announcement. It does not name the sending process: the kernel does that for each
/// message. Everything else is accepted once the pager has proved it (`claim.rs`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// [`STARTED`], [`FORKED`] or [`INJECTED`]; or [`EXECUTES`], [`SPAWNS`] or [`OVER`], which
    /// carry only `thread`; or [`PROOF`].
    pub kind: u32,
    /// Error number for which no userfaultfd could be opened; or 0.
    pub error: u32,
    /// Always 0.
    pub reserved: u32,
    /// The sending thread's number in its own namespace.
    pub thread: u64,
    /// Address of the staging area for pages that are taken out: [`BATCH_PAGES`] pages.
    pub staging: u64,
    /// Address of the probe page, where the pager puts a secret that only the process itself can
    /// read.
    pub probe: u64,
    /// Content of the probe page, for [`FORKED`] and [`PROOF`].
    pub secret: [u64; 2],
    /// First address of the agent's own memory, which stays in place.
    pub own_start: u64,
    /// End address of the agent's own memory.
    pub own_end: u64,
    /// First address of the agent's code, where it was written into the program.
    pub image_start: u64,
    /// End address of the agent's code.
    pub image_end: u64,
}

/// The pager's answer to [`Hello`]. For a process that is served, it brings the memory to which the
/// agent copies pages and, for [`FORKED`], the userfaultfd.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Welcome {
    /// One of the constants below.
    pub answer: u32,
}

impl Welcome {
    /// The process is not served, or the execution not followed.
    pub const REFUSED: u32 = 0;
    /// The process is served, or the announced execution may proceed.
    pub const ACCEPTED: u32 = 1;
    /// A secret is at the probe page: the agent must repeat it ([`PROOF`]).
    pub const PROVE: u32 = 2;
}

/// `Order::kind`: move pages into the staging area, page `i` to place `i`, and copy them from there
/// to the memory shared with the pager.
pub const TAKE: u32 = 0;
/// `Order::kind`: unshare pages that a fork left shared, so that they can be moved.
pub const UNSHARE: u32 = 1;

/// `Order::kind`: the program may run. Where `count` is not 0, each mapping that the program makes
/// from now on waits until the pager has registered it ([`Ask::GROWN`]).
pub const GO: u32 = 2;
/// `Order::kind`: what the last [`Ask`] wanted is done. The agent sends no [`Done`].
pub const GRANT: u32 = 3;

/// An order of the pager to the agent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// [`TAKE`], [`UNSHARE`], [`GO`] or [`GRANT`].
    pub kind: u32,
    /// Number of valid entries in `pages`.
    pub count: u32,
    /// Addresses of pages.
    pub pages: [u64; BATCH_PAGES],
}

/// Result for each page of an [`Order`]: 0, or the error's number. The agent sends the first one
/// unsolicited, as its sign that it is ready, with its thread in the first entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Results in the order of [`Order::pages`].
    pub errors: [i32; BATCH_PAGES],
}

/// A thread of the program waits until the pager has answered with [`GRANT`]. Its length differs
/// from that of [`Done`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// One of the constants below.
    pub kind: u64,
    /// First address, for [`Ask::GROWN`].
    pub start: u64,
    /// Length in bytes, for [`Ask::GROWN`].
    pub bytes: u64,
}

impl Ask {
    /// The program mapped private, anonymous memory, which must be registered.
    pub const GROWN: u64 = 1;
    /// The program is about to fork: the child shares all pages, and each write copies one.
    pub const FORKS: u64 = 2;
}

/// Features of a userfaultfd that the pager requires.
pub mod feature {
    /// Forks are reported, and the child's memory is served, too.
    pub const EVENT_FORK: u64 = 1 << 1;
    /// Moved mappings are reported.
    pub const EVENT_REMAP: u64 = 1 << 2;
    /// Discarded memory (`MADV_DONTNEED`, `MADV_FREE`) is reported.
    pub const EVENT_REMOVE: u64 = 1 << 3;
    /// Unmapped memory is reported.
    pub const EVENT_UNMAP: u64 = 1 << 6;
    /// Faults name their thread.
    pub const THREAD_ID: u64 = 1 << 8;
    /// Pages can be moved, not only copied (Linux 6.8).
    pub const MOVE: u64 = 1 << 16;
    /// All required features.
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
