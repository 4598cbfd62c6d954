//! TCP NewReno: only losses indicate congestion (RFC 5681, 6582).

mod config;

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::PortKind;
use ethermem_frames::{
    Congestion, ConnectionConfig, DropTail, PacketFabric, RenoConfig, Sender, Stream,
};
use ethermem_units::{Bytes, Ps};

pub use config::TcpConfig;

use crate::budget::TCP_STACK;

/// TCP on the packet network.
pub type Tcp = PacketFabric<Stream<NewReno>>;

/// NewReno: the common sender without additions.
pub struct NewReno(TcpConfig);

impl Congestion for NewReno {
    type State = ();
    type Parameters = TcpConfig;

    fn new(config: &FabricConfig) -> NewReno {
        NewReno(*config.of::<TcpConfig>())
    }

    fn reno(&self) -> &RenoConfig {
        &self.0.reno
    }

    fn connections(config: &FabricConfig) -> ConnectionConfig {
        config.of::<TcpConfig>().connections
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.of::<TcpConfig>().header
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
