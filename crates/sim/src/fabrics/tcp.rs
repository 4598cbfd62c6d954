//! TCP NewReno: loss alone tells of congestion (RFC 5681, 6582).

use ethermem_units::{Bytes, Ps};

use crate::FabricConfig;
use crate::budget::TCP_STACK;
use crate::packet::{Congestion, DropTail, PacketFabric, RenoConfig, Sender, Stream};
use crate::topology::PortKind;

/// TCP on the packet network.
pub type Tcp = PacketFabric<Stream<NewReno>>;

/// TCP's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpConfig {
    /// IP and TCP headers of a packet.
    pub header: Bytes,
    /// Buffer of a switch port.
    pub buffer: Bytes,
    /// Window, timeout and loss detection.
    pub reno: RenoConfig,
}

impl Default for TcpConfig {
    fn default() -> TcpConfig {
        TcpConfig {
            header: Bytes(40),
            buffer: Bytes(225_000),
            reno: RenoConfig {
                window_packets_initial: 2,
                timeout_min: Ps::from_ns(200_000),
                duplicates: 3,
                doublings: 6,
            },
        }
    }
}

/// NewReno: nothing beside what every sender does.
pub struct NewReno(TcpConfig);

impl Congestion for NewReno {
    type State = ();

    fn new(config: &FabricConfig) -> NewReno {
        NewReno(config.packet.tcp)
    }

    fn reno(&self) -> &RenoConfig {
        &self.0.reno
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.packet.tcp.header
    }

    fn stack() -> Ps {
        TCP_STACK
    }

    fn queue(&self, kind: PortKind) -> DropTail {
        match kind {
            // A host's queue is its own memory.
            PortKind::HostUp => DropTail::ENDLESS,
            _ => DropTail { limit_bytes: self.0.buffer.0, ..DropTail::ENDLESS },
        }
    }

    fn begin(&self, _sender: &Sender) {}

    fn acknowledged(&self, _: &mut (), _: &mut Sender, _newly: u32, _marked: bool) -> bool {
        false
    }
}
