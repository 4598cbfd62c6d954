//! Encodes a timeline as a Perfetto trace.

use prost::Message;

use super::perfetto::{
    ChildOrdering, CounterDescriptor, DebugAnnotation, EventType, ProcessDescriptor, Trace,
    TracePacket, TrackDescriptor, TrackEvent,
};
use super::schedule::{Lane, Step, StepKind, schedule};
use super::{Timeline, What};

/// The scale, in a place that every reader of the timeline sees: see [`Timeline`].
const SCALE: &str = "1 µs shown = 1 ns simulated";
const PROCESS_ID: i32 = 1;
/// The root of all tracks; groups and lanes are numbered from the next number.
const ROOT_UUID: u64 = 1;
/// Packets of one sequence keep their order where their times are equal.
const SEQUENCE_ID: u32 = 1;

pub(super) fn encode(timeline: &Timeline) -> Vec<u8> {
    let (steps, lanes) = schedule(&timeline.events, timeline.tracks.len());
    let groups = timeline.groups.len() as u64;
    let lane_uuid = |lane: usize| ROOT_UUID + 1 + groups + lane as u64;
    let mut bytes = Vec::new();
    append(&mut bytes, descriptor_packet(root(timeline)));
    for (group, name) in timeline.groups.iter().enumerate() {
        append(&mut bytes, descriptor_packet(group_track(group, name)));
    }
    for (index, lane) in lanes.iter().enumerate() {
        let track = lane_track(timeline, *lane, lane_uuid(index));
        append(&mut bytes, descriptor_packet(track));
    }
    for step in &steps {
        append(&mut bytes, event_packet(timeline, step, lane_uuid(step.lane)));
    }
    bytes
}

fn append(bytes: &mut Vec<u8>, packet: TracePacket) {
    // Traces concatenate, so that packets need not all be in memory as values.
    let trace = Trace { packet: vec![packet] };
    trace.encode(bytes).expect("a vector grows");
}

fn descriptor_packet(descriptor: TrackDescriptor) -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE_ID),
        track_descriptor: Some(descriptor),
        ..TracePacket::default()
    }
}

fn root(timeline: &Timeline) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(ROOT_UUID),
        process: Some(ProcessDescriptor {
            pid: Some(PROCESS_ID),
            process_name: Some(format!("{} ({SCALE})", timeline.title)),
        }),
        child_ordering: Some(ChildOrdering::Explicit.into()),
        ..TrackDescriptor::default()
    }
}

fn group_uuid(group: usize) -> u64 {
    ROOT_UUID + 1 + group as u64
}

fn group_track(group: usize, name: &str) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(group_uuid(group)),
        name: Some(name.to_owned()),
        parent_uuid: Some(ROOT_UUID),
        child_ordering: Some(ChildOrdering::Explicit.into()),
        sibling_order_rank: i32::try_from(group).ok(),
        ..TrackDescriptor::default()
    }
}

/// The descriptor of a lane. Lanes of a track share its name: Perfetto draws such siblings as one
/// row of several lines.
fn lane_track(timeline: &Timeline, lane: Lane, uuid: u64) -> TrackDescriptor {
    let track = &timeline.tracks[lane.track.0 as usize];
    TrackDescriptor {
        uuid: Some(uuid),
        name: Some(track.name.clone()),
        parent_uuid: Some(group_uuid(track.group)),
        counter: track.unit.map(|unit| CounterDescriptor { unit_name: Some(unit.to_owned()) }),
        sibling_order_rank: i32::try_from(lane.track.0).ok(),
        ..TrackDescriptor::default()
    }
}

fn event_packet(timeline: &Timeline, step: &Step, uuid: u64) -> TracePacket {
    let mut track_event = TrackEvent { track_uuid: Some(uuid), ..TrackEvent::default() };
    match step.what {
        StepKind::SliceEnd => track_event.r#type = Some(EventType::SliceEnd.into()),
        StepKind::Event(index) => {
            let event = &timeline.events[index];
            let event_type = match event.what {
                What::Slice { .. } => EventType::SliceBegin,
                What::Instant => EventType::Instant,
                What::Counter { value } => {
                    track_event.counter_value = Some(value);
                    EventType::Counter
                }
            };
            track_event.r#type = Some(event_type.into());
            track_event.name = (!event.name.is_empty()).then(|| event.name.to_owned());
            let args = &timeline.args[event.args_first..][..event.args_count];
            track_event.debug_annotations = args
                .iter()
                .map(|(name, value)| DebugAnnotation {
                    uint_value: Some(*value),
                    name: Some((*name).to_owned()),
                })
                .collect();
        }
    }
    TracePacket {
        timestamp: Some(step.at.0),
        trusted_packet_sequence_id: Some(SEQUENCE_ID),
        track_event: Some(track_event),
        ..TracePacket::default()
    }
}
