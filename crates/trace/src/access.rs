use ethermem_units::{Bytes, Ns};

/// Largest number of bytes of one access: what a message of the simulator may hold.
pub const ACCESS_BYTES_MAX: u64 = 1 << 30;
/// Numbers of processes and threads, and times, are stored in signed columns.
const NUMBER_MAX: u32 = i32::MAX as u32;
const TIME_NS_MAX: u64 = i64::MAX as u64;
/// End of the address space of any program.
const ADDRESS_END_MAX: u64 = 1 << 63;

/// Kind of an access to remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// Pages are fetched to the program.
    Read,
    /// Changed pages are written back.
    WriteBack,
}

impl AccessKind {
    /// Every kind.
    pub const ALL: [AccessKind; 2] = [AccessKind::Read, AccessKind::WriteBack];

    /// Name in traces and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            AccessKind::Read => "read",
            AccessKind::WriteBack => "write_back",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Option<AccessKind> {
        AccessKind::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}

/// Kind of a flow between two blades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowKind {
    /// Pages from a memory blade to a compute blade.
    Read,
    /// Pages from a compute blade to a memory blade.
    WriteBack,
    /// Data from a disk blade to a compute blade.
    DiskRead,
    /// Data from a compute blade to a disk blade.
    DiskWrite,
    /// Data from one compute blade to another.
    Network,
}

impl FlowKind {
    /// Every kind.
    pub const ALL: [FlowKind; 5] = [
        FlowKind::Read,
        FlowKind::WriteBack,
        FlowKind::DiskRead,
        FlowKind::DiskWrite,
        FlowKind::Network,
    ];

    /// Name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FlowKind::Read => AccessKind::Read.name(),
            FlowKind::WriteBack => AccessKind::WriteBack.name(),
            FlowKind::DiskRead => "disk_read",
            FlowKind::DiskWrite => "disk_write",
            FlowKind::Network => "network",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Option<FlowKind> {
        FlowKind::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}

impl From<AccessKind> for FlowKind {
    fn from(kind: AccessKind) -> FlowKind {
        match kind {
            AccessKind::Read => FlowKind::Read,
            AccessKind::WriteBack => FlowKind::WriteBack,
        }
    }
}

/// One access to remote memory: a page, or a run of pages that moved together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Time since the program's start at which it needed the pages or gave them up.
    pub time: Ns,
    /// Process number of the system.
    pub process: u32,
    /// Thread number of the system.
    pub thread: u32,
    /// Address of the first byte, in the process's virtual memory.
    pub address: u64,
    /// Number of bytes moved, at least one.
    pub bytes: Bytes,
    /// Direction of the data.
    pub kind: AccessKind,
    /// True if the pages were prefetched: no thread waits.
    pub prefetched: bool,
}

impl Access {
    /// What a trace cannot hold, and what is allowed instead.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.time.0 > TIME_NS_MAX {
            return Err(format!("time_ns = {}: must be 0 to {TIME_NS_MAX}", self.time.0));
        }
        for (name, number) in [("process", self.process), ("thread", self.thread)] {
            if number > NUMBER_MAX {
                return Err(format!("{name} = {number}: must be 0 to {NUMBER_MAX}"));
            }
        }
        let bytes = self.bytes.0;
        if !(1..=ACCESS_BYTES_MAX).contains(&bytes) {
            return Err(format!("bytes = {bytes}: must be 1 to {ACCESS_BYTES_MAX}"));
        }
        let end = self.address.checked_add(bytes);
        if end.is_none_or(|end| end > ADDRESS_END_MAX) {
            let address = self.address;
            return Err(format!(
                "address = {address} with bytes = {bytes}: must be an end up to \
                 {ADDRESS_END_MAX}"
            ));
        }
        if self.prefetched && self.kind != AccessKind::Read {
            let kind = self.kind.name();
            return Err(format!("prefetched = true with kind = {kind}: must be read"));
        }
        Ok(())
    }
}
