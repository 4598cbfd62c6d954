//! TCP NewReno: only losses indicate congestion (RFC 5681, 6582).

mod config;

use std::marker::PhantomData;

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::topology::PortKind;
use ethermem_frames::{
    Congestion, ConnectionConfig, DropTail, PacketFabric, RenoConfig, Sender, Stream,
};
use ethermem_units::{Bytes, Ps};

pub use config::TcpConfig;

use crate::budget::TCP_STACK;

/// TCP on the packet network.
pub type Tcp = PacketFabric<Stream<NewReno<TcpConfig>>>;

/// Parameters of a fabric whose transport is TCP.
pub trait HasTcp: Parameters {
    /// TCP's parameters.
    fn tcp(&self) -> &TcpConfig;
}

impl HasTcp for TcpConfig {
    fn tcp(&self) -> &TcpConfig {
        self
    }
}

/// NewReno: the common sender without additions. `P` has its parameters.
pub struct NewReno<P> {
    tcp: TcpConfig,
    parameters: PhantomData<P>,
}

impl<P: HasTcp> Congestion for NewReno<P> {
    type State = ();
    type Parameters = P;

    fn new(config: &FabricConfig) -> NewReno<P> {
        NewReno { tcp: *config.of::<P>().tcp(), parameters: PhantomData }
    }

    fn reno(&self) -> &RenoConfig {
        &self.tcp.reno
    }

    fn connections(config: &FabricConfig) -> ConnectionConfig {
        config.of::<P>().tcp().connections
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.of::<P>().tcp().header
    }

    fn stack() -> Ps {
        TCP_STACK
    }

    fn queue(&self, kind: PortKind) -> DropTail {
        match kind {
            // A host's queue is its own memory.
            PortKind::HostUp => DropTail::ENDLESS,
            _ => DropTail { limit_bytes: self.tcp.buffer.0, ..DropTail::ENDLESS },
        }
    }

    fn begin(&self, _sender: &Sender) {}

    fn acknowledged(&self, _: &mut (), _: &mut Sender, _newly: u32, _marked: bool) -> bool {
        false
    }
}
