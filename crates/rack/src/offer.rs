//! What the two ends of a connection, and the launcher and the library, tell each other.

/// Version of the shared memory and of the messages; both ends must have the same one.
pub const VERSION: u64 = 0x6574_6872_6163_6b03;
/// Environment variable with the rack's settings: name, bytes of a ring, bytes of the pool, run,
/// ledger, addresses, networks of other racks; separated by semicolons, and the addresses by
/// commas. A network is its address and its prefix's bits, joined by a slash.
pub const VARIABLE: &str = "ETHERMEM_RACK";
/// Bytes in front of the rings: the header and the words of both directions.
pub const HEADER_BYTES: usize = 4096;
/// Least bytes of a ring.
pub const RING_BYTES_MIN: u64 = 4096;
/// Most bytes of a ring.
pub const RING_BYTES_MAX: u64 = 64 << 20;
/// Most addresses of a rack.
pub const NODES_MAX: usize = 64;
/// Most networks of all other racks.
pub const NETWORKS_MAX: usize = 64;

/// One end's address: the IPv4 address and the port, as numbers of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Address {
    /// The IPv4 address.
    pub ip: u32,
    /// The port.
    pub port: u32,
}

/// The client's message to the server's listener, with the memory's descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Offer {
    /// [`VERSION`].
    pub version: u64,
    /// Bytes of each of the two rings, a power of two.
    pub ring_bytes: u64,
    /// The end that connected.
    pub client: Address,
    /// The end that accepted.
    pub server: Address,
}

/// The address that stands for a rack's process of NICs in the name of its mailbox.
pub const NICS: Address = Address { ip: u32::MAX, port: u32::MAX };

/// The library's question to the process of the rack's NICs: may `client` connect to `server`?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Ask {
    /// [`VERSION`].
    pub version: u64,
    /// The program's socket.
    pub client: Address,
    /// An address of another rack.
    pub server: Address,
}

/// The answer, after the other rack's program has accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Answer {
    /// [`VERSION`].
    pub version: u64,
    /// The port of the process, on the client's address; 0 if the kernel has to connect.
    pub port: u64,
}

/// True if a ring of so many bytes can be.
#[must_use]
pub const fn is_ring(bytes: u64) -> bool {
    bytes.is_power_of_two() && bytes >= RING_BYTES_MIN && bytes <= RING_BYTES_MAX
}

/// Bytes of a connection's memory.
#[must_use]
pub const fn memory_bytes(ring_bytes: u64) -> usize {
    HEADER_BYTES + 2 * ring_bytes as usize
}

/// Bytes of the pool that each end of a connection accounts for.
#[must_use]
pub const fn share_bytes(ring_bytes: u64) -> u64 {
    memory_bytes(ring_bytes) as u64 / 2
}
