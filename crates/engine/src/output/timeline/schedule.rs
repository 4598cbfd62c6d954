//! Orders events by time, and puts overlapping slices on lines of their own.

use std::cmp::Reverse;

use ethermem_units::Ps;

use super::{Event, TrackId, What};

/// A line of a track. A track has one, or more if its slices overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) track: TrackId,
}

/// One packet to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) at: Ps,
    /// Index of the packet's lane.
    pub(super) lane: usize,
    pub(super) what: StepKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepKind {
    /// The event with this index: a slice begins, or an instant or a counter.
    Event(usize),
    /// The innermost open slice of the lane ends.
    SliceEnd,
}

/// Steps in order of time, with the slices of each lane nested. Lanes are in order of track, at
/// least one for each of `tracks`.
pub(super) fn schedule(events: &[Event], tracks: usize) -> (Vec<Step>, Vec<Lane>) {
    let mut order: Vec<usize> = (0..events.len()).collect();
    // If two slices start together, the longer one contains the shorter.
    order.sort_by_key(|index| {
        let event = &events[*index];
        (event.track, event.at, Reverse(end(event)), *index)
    });
    let mut steps = Vec::with_capacity(events.len() * 2);
    let mut lanes = Vec::with_capacity(tracks);
    let mut order = order.into_iter().peekable();
    for track in 0..tracks {
        let track = TrackId(u32::try_from(track).expect("a track has a 32-bit number"));
        let first_lane = lanes.len();
        // The ends of the slices that are open on each lane, outermost first.
        let mut open: Vec<Vec<Ps>> = vec![Vec::new()];
        while let Some(index) = order.next_if(|index| events[*index].track == track) {
            let event = &events[index];
            let lane = match event.what {
                What::Slice { end } => place(&mut open, first_lane, event.at, end, &mut steps),
                What::Instant | What::Counter { .. } => 0,
            };
            let what = StepKind::Event(index);
            steps.push(Step { at: event.at, lane: first_lane + lane, what });
        }
        for (lane, open) in (first_lane..).zip(&mut open) {
            close(open, lane, Ps::MAX, &mut steps);
            lanes.push(Lane { track });
        }
    }
    // The sort is stable: within a lane, steps of one instant keep their nesting.
    steps.sort_by_key(|step| step.at);
    (steps, lanes)
}

/// The first lane in which a slice nests; a new one if there is none.
fn place(
    open: &mut Vec<Vec<Ps>>,
    first_lane: usize,
    start: Ps,
    end: Ps,
    steps: &mut Vec<Step>,
) -> usize {
    for (lane, open) in open.iter_mut().enumerate() {
        close(open, first_lane + lane, start, steps);
        if open.last().is_none_or(|outer| end <= *outer) {
            open.push(end);
            return lane;
        }
    }
    open.push(vec![end]);
    open.len() - 1
}

/// Closes the slices of a lane that end by `now`.
fn close(open: &mut Vec<Ps>, lane: usize, now: Ps, steps: &mut Vec<Step>) {
    while let Some(at) = open.pop_if(|end| *end <= now) {
        steps.push(Step { at, lane, what: StepKind::SliceEnd });
    }
}

fn end(event: &Event) -> Ps {
    match event.what {
        What::Slice { end } => end,
        What::Instant | What::Counter { .. } => event.at,
    }
}
