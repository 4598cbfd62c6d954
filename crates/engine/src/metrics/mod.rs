//! The measurements of a run: a recorder for the hot path, the fabric's own counters, and the
//! result.

mod cdf;
mod fabric;
mod frames;
mod kind;
mod memory;
mod program;
mod recorder;
mod result;
mod steady;
mod way;

pub use cdf::CdfPoint;
pub use fabric::{FabricStats, Matching, PacketCounts, Queue, Utilisation};
pub use frames::FrameStats;
pub(crate) use frames::FrameTimes;
pub use memory::{MemoryKind, MemoryTraffic, MemoryUse, MemoryUser};
pub use program::ProgramStats;
pub use recorder::{Recorder, Window};
pub use result::{KindStats, Kinds, RunFacts, RunResult};
pub use steady::{MEAN_PRECISION, P99_PRECISION, Steady, SteadyState};
pub use way::MessageWay;
