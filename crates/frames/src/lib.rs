//! The packet substrate, which all fabrics of store-and-forward packets share.
//!
//! It has hosts, links, switches and their queues, framing, the mapping of messages to flows and
//! back, and deadlines. A fabric brings a [`Transport`] and a [`Discipline`]; see
//! `docs/internals/packet-fabrics.md`.

mod deadlines;
mod discipline;
mod fabric;
mod flow;
mod lasting;
mod levels;
mod network;
mod pacer;
mod pause;
mod port;
mod received;
mod reno;
mod slab;
mod spray;
mod stream;
mod timers;
mod transport;
mod turns;

pub use deadlines::{Deadlines, backed_off};
pub use discipline::{Discipline, DropTail, Trimmed};
pub use ethermem_engine::config::PacketConfig;
pub use ethermem_engine::topology::{FRAME_OVERHEAD_BYTES, Frame, GAP_BYTES, PREAMBLE_BYTES};
pub use fabric::PacketFabric;
pub use flow::{Flow, FlowId, Purpose};
pub(crate) use flow::{Flows, Opening};
pub use lasting::ConnectionConfig;
pub use levels::Levels;
pub use network::{Event, Network};
pub use pacer::Pacers;
pub(crate) use pause::{Ingress, SharedBuffer, Verdict};
pub use pause::{PauseLimits, Threshold, UNPAUSED_RANK};
pub use received::Received;
pub use reno::{DOUBLINGS_MAX, Progress, RenoConfig, Sender};
pub use slab::{Heading, Packet, PacketId, Packets};
pub use spray::{Spray, ecmp_spine};
pub use stream::{Congestion, Ends, Header, Stream};
pub use transport::{End, Left, Net, Outgoing, Path, Sizes, Transport};
pub use turns::{Rank, Ranked, Turns};
