//! One remote memory access of a workload.

use ethermem_files::InputError;
use ethermem_units::{Bytes, Ps};

/// A port of the switch, and the node behind it: 0 to `nodes - 1`.
pub type NodeIndex = u16;

/// The operation of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The compute node gets `bytes` from the memory node.
    Read,
    /// The compute node puts `bytes` into the memory node.
    Write,
    /// An atomic at the memory node; `bytes` is the size of its result.
    ReadModifyWrite,
}

impl Kind {
    /// Every kind, in the order of reports.
    pub const ALL: [Kind; 3] = [Kind::Read, Kind::Write, Kind::ReadModifyWrite];

    /// The name in scenarios, traces and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::ReadModifyWrite => "rmw",
        }
    }
}

/// One access of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Position in the workload, from 0; arrival times never decrease with it.
    pub index: u64,
    /// The time at which the application hands it to its host.
    pub arrival: Ps,
    /// The operation.
    pub kind: Kind,
    /// The node that issues the access.
    pub compute: NodeIndex,
    /// The node that holds the memory; never `compute`.
    pub memory: NodeIndex,
    /// Data bytes moved: read result, written data, or atomic result. At least 1.
    pub bytes: Bytes,
}

impl Message {
    /// The node whose uplink carries the data.
    #[must_use]
    pub fn data_source(&self) -> NodeIndex {
        match self.kind {
            Kind::Write => self.compute,
            Kind::Read | Kind::ReadModifyWrite => self.memory,
        }
    }

    /// The node whose downlink carries the data.
    #[must_use]
    pub fn data_destination(&self) -> NodeIndex {
        match self.kind {
            Kind::Write => self.memory,
            Kind::Read | Kind::ReadModifyWrite => self.compute,
        }
    }
}

/// A source of a run's messages. They are drawn one at a time, so ten million take no memory.
pub trait MessageSource: Send {
    /// The next message in arrival order, `None` at the end.
    ///
    /// # Errors
    /// A [`SourceError`] that names the file and line of a trace row that cannot be used.
    fn next_message(&mut self) -> Result<Option<Message>, SourceError>;

    /// Total number of messages, where it is known: for progress and for cutting the warm-up.
    fn messages_total(&self) -> Option<u64>;
}

/// A source whose messages arrive when earlier ones have ended, as those of a program do.
pub trait ClosedLoop: Send {
    /// The arrival of the earliest known message. `None` while all others wait for messages in
    /// flight, and at the end.
    fn next_arrival(&mut self) -> Option<Ps>;

    /// Takes the earliest known message. Messages are numbered in the order in which they are
    /// taken.
    ///
    /// # Panics
    /// If none is known.
    fn take(&mut self) -> Message;

    /// Notes that the message with this index ended at a time, or was lost (`None`).
    ///
    /// # Panics
    /// If it is not in flight.
    fn ended(&mut self, index: u64, at: Option<Ps>);
}

/// An error of a workload in one line, for the author of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError(pub String);

impl std::fmt::Display for SourceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SourceError {}

impl From<InputError> for SourceError {
    fn from(error: InputError) -> SourceError {
        SourceError(error.to_string())
    }
}
