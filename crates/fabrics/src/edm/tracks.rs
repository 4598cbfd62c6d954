//! EDM on a timeline: every link's items, the scheduler's grants, and the messages that wait for
//! grants.
//!
//! An item is drawn at its place when it is handed to its transmitter. Later control blocks that go
//! before it move it by a block or two, which the drawing omits.

use ethermem_engine::output::{Timeline, TrackId};
use ethermem_engine::topology::LinkTracks;
use ethermem_units::Ps;

use super::flight::{Item, Payload};

/// The rows of the timeline.
pub(super) struct Tracks {
    links: LinkTracks,
    grants: Vec<TrackId>,
    waiting: TrackId,
}

impl Tracks {
    pub(super) fn new(timeline: &mut Timeline, nodes: u16) -> Tracks {
        let waiting = timeline.counter_track("scheduler", "notifications", "messages");
        let grants = timeline.rows("grants", nodes);
        Tracks { waiting, grants, links: LinkTracks::new(timeline, nodes) }
    }

    /// Draws an item on the uplink of its sender.
    pub(super) fn up(&self, timeline: Option<&mut Timeline>, item: &Item, start: Ps, end: Ps) {
        draw(timeline, self.links.up(item.from), item, start, end);
    }

    /// Draws an item on the downlink of its receiver.
    pub(super) fn down(&self, timeline: Option<&mut Timeline>, item: &Item, start: Ps, end: Ps) {
        draw(timeline, self.links.down(item.to), item, start, end);
    }

    /// Draws a grant, at the port that may send.
    pub(super) fn granted(&self, timeline: Option<&mut Timeline>, item: &Item, at: Ps) {
        if let Some(timeline) = timeline {
            let args = [("to", u64::from(item.from)), ("bytes", item.bytes())];
            timeline.instant(self.grants[usize::from(item.to)], "grant", at, &args);
        }
    }

    /// Draws the number of messages that wait for grants.
    pub(super) fn waiting(&self, timeline: Option<&mut Timeline>, at: Ps, messages: usize) {
        if let Some(timeline) = timeline {
            timeline.counter(self.waiting, at, messages as i64);
        }
    }
}

fn draw(timeline: Option<&mut Timeline>, track: TrackId, item: &Item, start: Ps, end: Ps) {
    let Some(timeline) = timeline else { return };
    let name = match item.payload {
        Payload::Request(_) => "request",
        Payload::Notify(_) => "/N/",
        Payload::Grant(_) => "/G/",
        Payload::Chunk(..) => "chunk",
        Payload::Status(_) => "status",
    };
    let args = [
        ("from", u64::from(item.from)),
        ("to", u64::from(item.to)),
        ("blocks", u64::from(item.blocks)),
        ("bytes", item.bytes()),
    ];
    timeline.slice(track, name, start, end, &args);
}
