use std::collections::BTreeMap;
use std::fs;

use ethermem_units::Ps;
use proptest::prelude::*;
use prost::Message as _;

use super::perfetto::{EventType, Trace, TracePacket};
use super::*;

fn packets(path: &Path) -> Vec<TracePacket> {
    Trace::decode(fs::read(path).unwrap().as_slice()).unwrap().packet
}

fn names(packets: &[TracePacket]) -> BTreeMap<u64, String> {
    let tracks = packets.iter().filter_map(|packet| packet.track_descriptor.as_ref());
    tracks.map(|track| (track.uuid.unwrap(), track.name.clone().unwrap_or_default())).collect()
}

/// Every begin with the time of its end, by lane. It fails on an unmatched begin or end, and on
/// time that decreases.
fn slices(packets: &[TracePacket]) -> Vec<(u64, u64, u64)> {
    let mut open: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut slices = Vec::new();
    let mut now = 0;
    for packet in packets {
        let Some(event) = &packet.track_event else {
            continue;
        };
        let at = packet.timestamp.unwrap();
        assert!(at >= now, "{at} after {now}");
        now = at;
        let lane = event.track_uuid.unwrap();
        if event.r#type == Some(EventType::SliceBegin.into()) {
            open.entry(lane).or_default().push(at);
        } else if event.r#type == Some(EventType::SliceEnd.into()) {
            let start = open.get_mut(&lane).and_then(Vec::pop).expect("an open slice");
            slices.push((lane, start, at));
        }
    }
    assert!(open.values().all(Vec::is_empty), "slices left open");
    slices
}

#[test]
fn tracks_slices_instants_and_counters_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.perfetto-trace");
    let mut timeline = Timeline::create(&path, "edm", 100).unwrap();
    let uplink = timeline.track("port 0", "uplink");
    let queue = timeline.counter_track("port 0", "egress queue", "blocks");
    let grants = timeline.track("scheduler", "grants");
    timeline.slice(uplink, "chunk", Ps(640), Ps(7_040), &[("message", 7), ("bytes", 64)]);
    timeline.instant(grants, "grant", Ps(100), &[]);
    timeline.counter(queue, Ps(200), 3);
    assert!(!path.exists());
    let summary = timeline.close().unwrap();
    assert_eq!(summary, TimelineSummary { events: 3, events_refused: 0, complete_until: None });
    assert_eq!(summary.notice(), None);

    let packets = packets(&path);
    let names = names(&packets);
    assert_eq!(
        names.values().map(String::as_str).collect::<Vec<_>>(),
        ["", "port 0", "scheduler", "uplink", "egress queue", "grants"]
    );
    let root = packets[0].track_descriptor.as_ref().unwrap().process.as_ref().unwrap();
    assert_eq!(root.process_name.as_deref(), Some("edm (1 µs shown = 1 ns simulated)"));
    let events: Vec<_> = packets
        .iter()
        .filter_map(|packet| Some((packet.timestamp?, packet.track_event.clone()?)))
        .collect();
    let times: Vec<u64> = events.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [100, 200, 640, 7_040]);
    assert_eq!(events[1].1.counter_value, Some(3));
    let chunk = &events[2].1;
    assert_eq!(chunk.name.as_deref(), Some("chunk"));
    assert_eq!(names[&chunk.track_uuid.unwrap()], "uplink");
    let args: Vec<_> = chunk
        .debug_annotations
        .iter()
        .map(|arg| (arg.name.as_deref().unwrap(), arg.uint_value.unwrap()))
        .collect();
    assert_eq!(args, [("message", 7), ("bytes", 64)]);
}

#[test]
fn a_full_timeline_says_where_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.perfetto-trace");
    let mut timeline = Timeline::create(&path, "edm", 2).unwrap();
    let track = timeline.track("port 0", "uplink");
    for start in [0, 10, 30, 20] {
        timeline.slice(track, "chunk", Ps(start), Ps(start + 5), &[]);
    }
    assert!(timeline.is_full());
    let summary = timeline.close().unwrap();
    let complete_until = Some(Ps(20));
    assert_eq!(summary, TimelineSummary { events: 2, events_refused: 2, complete_until });
    assert_eq!(
        summary.notice().unwrap(),
        "the timeline holds 2 events and is complete until 0.020 ns; 2 events are not in it"
    );
    assert_eq!(slices(&packets(&path)).len(), 2);
}

#[test]
fn a_timeline_with_nothing_on_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.perfetto-trace");
    let mut timeline = Timeline::create(&path, "edm", 2).unwrap();
    let _ = timeline.rows("uplinks", 4);
    let summary = timeline.close().unwrap();
    let said = "the timeline has nothing on it: no message was run";
    assert_eq!(summary.notice().as_deref(), Some(said));
    assert_eq!(names(&packets(&path)).values().filter(|name| *name == "node 3").count(), 1);
}

#[test]
fn back_to_back_slices_share_a_line_and_overlapping_ones_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.perfetto-trace");
    let mut timeline = Timeline::create(&path, "edm", 100).unwrap();
    let track = timeline.track("port 0", "reads");
    // The order is mixed; [10, 20) follows [0, 10), [12, 14) lies within, [15, 25) crosses.
    for (start, end) in [(10, 20), (0, 10), (15, 25), (12, 14), (14, 14)] {
        timeline.slice(track, "read", Ps(start), Ps(end), &[]);
    }
    timeline.close().unwrap();
    let packets = packets(&path);
    let mut slices = slices(&packets);
    slices.sort_by_key(|(_, start, end)| (*start, *end));
    let lane = slices[0].0;
    let next = lane + 1;
    let expected = [(0, 10), (10, 20), (12, 14), (14, 14), (15, 25)];
    let lanes = [lane, lane, lane, lane, next];
    let expected: Vec<_> =
        lanes.iter().zip(expected).map(|(lane, (start, end))| (*lane, start, end)).collect();
    assert_eq!(slices, expected);
    assert_eq!(names(&packets)[&next], "reads");
}

proptest! {
    #[test]
    fn any_slices_nest(spans in prop::collection::vec((0_u64..50, 0_u64..20, 0_u32..3), 0..60)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.perfetto-trace");
        let mut timeline = Timeline::create(&path, "edm", 100).unwrap();
        let tracks: Vec<TrackId> =
            ["a", "b", "c"].iter().map(|name| timeline.track("g", name)).collect();
        for (start, length, track) in &spans {
            let track = tracks[*track as usize];
            timeline.slice(track, "s", Ps(*start), Ps(start + length), &[]);
        }
        timeline.close().unwrap();
        let packets = packets(&path);
        let names = names(&packets);
        let mut found: Vec<_> = slices(&packets)
            .into_iter()
            .map(|(lane, start, end)| (names[&lane].clone(), start, end))
            .collect();
        let mut expected: Vec<_> = spans
            .iter()
            .map(|(start, length, track)| {
                (["a", "b", "c"][*track as usize].to_owned(), *start, start + length)
            })
            .collect();
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
    }
}
