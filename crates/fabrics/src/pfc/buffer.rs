//! A switch's buffer for its links: the pause thresholds, and the headroom above them.

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::{Layout, PortKind, Tier};
use ethermem_frames::{Frame, PauseLimits, Threshold};
use ethermem_units::{BLOCK_PAYLOAD_BYTES, Bytes};

use super::{PAPER_GBPS, PfcConfig};

/// The pause threshold of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thresholds {
    /// It depends on the bytes kept of the link.
    #[default]
    Static,
    /// It also depends on the free part of the buffer that all links of the switch share.
    Dynamic,
}

/// The paper's static bound of the pause threshold, in bytes.
const XOFF_BYTES: f64 = 24_470.0;
/// A port's part of the buffer of the paper's switch, in bytes: 12 MB for 32 ports.
const BUFFER_BYTES_A_PORT: f64 = 375_000.0;

/// The rate of a link behind ports of this kind, relative to a node's link.
pub(super) fn faster(layout: &Layout, kind: PortKind) -> f64 {
    layout.slot(PortKind::HostUp).0 as f64 / layout.slot(kind).0 as f64
}

pub(super) fn limits(config: &FabricConfig, layout: &Layout, kind: PortKind) -> PauseLimits {
    let pfc = &config.of::<PfcConfig>();
    let faster = faster(layout, kind);
    let grown = |bytes: Bytes| (bytes.0 as f64 * faster) as u64;
    let resume_bytes = 2 * full_frame_bytes(config);
    let threshold = match pfc.thresholds {
        Thresholds::Dynamic => Threshold::Dynamic {
            alpha: pfc.alpha,
            resume_bytes: pfc.xon_offset.map_or(resume_bytes, grown),
        },
        Thresholds::Static => {
            let scale = config.link.as_gbps_f64() / PAPER_GBPS;
            let xoff = pfc.xoff.map_or(XOFF_BYTES * scale, |bytes| bytes.0 as f64);
            let xoff_bytes = (xoff * faster) as u64;
            let xon_bytes = pfc.xon.map_or(xoff_bytes.saturating_sub(resume_bytes), grown);
            Threshold::Static { xoff_bytes, xon_bytes: xon_bytes.min(xoff_bytes) }
        }
    };
    let headroom_bytes = headroom(config, layout, kind);
    PauseLimits { threshold, headroom_bytes, drops: pfc.headroom.is_some() }
}

/// Bytes of the buffer that the links into a switch share: all but their headroom.
///
/// # Errors
/// A text that says how many bytes the headroom takes, if the rest cannot hold a full frame.
pub(super) fn shared_bytes(
    config: &FabricConfig,
    layout: &Layout,
    tier: Tier,
) -> Result<u64, String> {
    let scale = config.link.as_gbps_f64() / PAPER_GBPS;
    let links = layout.links_into(tier);
    let sum = |of: &dyn Fn(PortKind) -> f64| -> f64 {
        links.iter().map(|&(kind, links)| of(kind) * f64::from(links)).sum()
    };
    let reserved = sum(&|kind| headroom(config, layout, kind) as f64) as u64;
    let scaled = || sum(&|kind| BUFFER_BYTES_A_PORT * scale * faster(layout, kind)) as u64;
    let buffer = config.of::<PfcConfig>().buffer.map_or_else(scaled, |buffer| buffer.0);
    let least = reserved + full_frame_bytes(config);
    if buffer >= least {
        return Ok(buffer - reserved);
    }
    let switch = match tier {
        Tier::Leaf => "switch with nodes",
        Tier::Spine => "spine",
    };
    Err(format!(
        "the headroom of the links into a {switch} takes {reserved} B of its {buffer}: must be \
         at least {least}"
    ))
}

/// Bytes that can still arrive through a link after a switch has decided to pause it. They are the
/// frame that crossed the threshold, one frame that the pause frame waits for, and one that the
/// sender has begun. Added are the link's bytes while the pause frame is sent and in flight, and
/// the bytes then in flight to the switch.
fn headroom(config: &FabricConfig, layout: &Layout, kind: PortKind) -> u64 {
    if let Some(given) = config.of::<PfcConfig>().headroom {
        return (given.0 as f64 * faster(layout, kind)) as u64;
    }
    let full = full_frame_bytes(config);
    let background = if config.background.load > 0.0 {
        2 * full.max(Frame::of(config.background.frame_bytes.into()).line_bytes())
    } else {
        0
    };
    let way = layout.pause_latency(kind) + layout.latency(kind);
    let on_the_way = Bytes(way.0.div_ceil(layout.slot(kind).0) * BLOCK_PAYLOAD_BYTES).0;
    3 * full + background + Frame::of(0).line_bytes() + on_the_way
}

/// Number of bytes of the longest frame in a buffer.
fn full_frame_bytes(config: &FabricConfig) -> u64 {
    Frame::of(config.packet.mtu.0).line_bytes()
}
