//! Reconstructs the order of changes. The kernel reports a change after it has released the
//! mappings' lock, so changes by several threads may be reported in another order than they
//! happened.

use std::ops::Range;

use crate::fault::Event;

/// Joins the two events of a moved mapping into one: the move, and then, by the same thread, the
/// unmapping of its old addresses. What another thread maps there in between is reported between
/// the two, and is not unmapped.
pub(crate) fn join(events: &mut Vec<Event>) {
    for at in 0..events.len() {
        let Some(&Event::Remap { from, bytes, kept: true, .. }) = events.get(at) else { continue };
        let gone = Event::Unmap { start: from, end: from + bytes };
        if let Some(later) = events[at + 1..].iter().position(|event| *event == gone) {
            events.remove(at + 1 + later);
            if let Event::Remap { kept, .. } = &mut events[at] {
                *kept = false;
            }
        }
    }
}

/// Pages to which a mapping moved and which a later event frees. Either the mapping moved on, or
/// the freeing happened first.
pub(crate) fn contested(events: &[Event]) -> Vec<u64> {
    let page = |(at, event): (usize, &Event)| {
        let there = moved_to(event)?;
        freed_later(&events[at + 1..], &there).map(|_| there.start)
    };
    events.iter().enumerate().filter_map(page).collect()
}

/// Puts events that freed addresses before the moves to those addresses. `events` are all changes
/// reported at a moment when none is pending. `registered` says which contested pages are
/// registered at that moment. A page is filled and freed alternately, so its final state determines
/// its earlier ones.
pub(crate) fn arrange(events: &mut Vec<Event>, registered: &[(u64, bool)]) {
    let (mut at, mut moves) = (0, 0);
    while at < events.len() {
        if let Some(there) = moved_to(&events[at])
            && moves < events.len()
            && let Some(&(page, is_registered)) =
                registered.iter().find(|(page, _)| *page == there.start)
            && i64::from(is_registered) - gained(&events[at..], page) > 0
            && let Some(later) = freed_later(&events[at + 1..], &there)
        {
            let freed = events.remove(at + 1 + later);
            events.insert(at, freed);
            // The move's target may itself have been freed earlier.
            moves += 1;
            continue;
        }
        at += 1;
    }
}

fn moved_to(event: &Event) -> Option<Range<u64>> {
    match *event {
        Event::Remap { to, bytes, .. } => Some(to..to + bytes),
        _ => None,
    }
}

/// How often `events` fill `page`, minus how often they free it.
fn gained(events: &[Event], page: u64) -> i64 {
    let page = page..page + 1;
    let fills = |event: &Event| moved_to(event).is_some_and(|there| there.contains(&page.start));
    let gain = |event: &Event| i64::from(fills(event)) - i64::from(frees(event, &page));
    events.iter().map(gain).sum()
}

/// True if `event` leaves addresses of `range` free for a later mapping.
fn frees(event: &Event, range: &Range<u64>) -> bool {
    let (start, end) = match *event {
        Event::Remap { from, bytes, kept: false, .. } => (from, from + bytes),
        Event::Unmap { start, end } => (start, end),
        Event::Remap { kept: true, .. }
        | Event::Fault { .. }
        | Event::Fork { .. }
        | Event::Remove { .. } => return false,
    };
    start < range.end && range.start < end
}

/// The first event that frees addresses of `range`. The search stops at a fork, whose child has the
/// earlier state.
fn freed_later(events: &[Event], range: &Range<u64>) -> Option<usize> {
    let until = events.iter().position(|event| matches!(event, Event::Fork { .. }));
    events[..until.unwrap_or(events.len())].iter().position(|event| frees(event, range))
}

#[cfg(test)]
mod tests {
    use super::{arrange, contested, join};
    use crate::fault::Event;

    fn remap(from: u64, to: u64) -> Event {
        Event::Remap { from, to, bytes: 0x1000, kept: false }
    }

    /// The kernel's two events for a move.
    fn told(from: u64, to: u64) -> [Event; 2] {
        let gone = Event::Unmap { start: from, end: from + 0x1000 };
        [Event::Remap { from, to, bytes: 0x1000, kept: true }, gone]
    }

    /// Arranges `events`; `registered` are the pages registered at the end.
    fn arranged(events: &[Event], registered: &[u64]) -> Vec<Event> {
        let mut events = events.to_vec();
        join(&mut events);
        let known = |page: &u64| (*page, registered.contains(page));
        let known: Vec<_> = contested(&events).iter().map(known).collect();
        arrange(&mut events, &known);
        events
    }

    #[test]
    fn what_moved_and_that_it_is_gone_are_one_change() {
        // One thread moves a mapping twice.
        let twice = [told(0x5000, 0x1000), told(0x1000, 0x9000)].concat();
        let moves = [remap(0x5000, 0x1000), remap(0x1000, 0x9000)];
        assert_eq!(arranged(&twice, &[0x9000]), moves);
        // Two mappings are exchanged through a third place.
        let exchange = [told(0x1000, 0x9000), told(0x5000, 0x1000), told(0x9000, 0x5000)].concat();
        let moves = [remap(0x1000, 0x9000), remap(0x5000, 0x1000), remap(0x9000, 0x5000)];
        assert_eq!(arranged(&exchange, &[0x1000, 0x5000]), moves);
        // Another thread fills the old addresses before their unmapping is reported.
        let [away, gone] = told(0x1000, 0x9000);
        let [there, left] = told(0x5000, 0x1000);
        let moves = [remap(0x1000, 0x9000), remap(0x5000, 0x1000)];
        assert_eq!(arranged(&[away, there, gone, left], &[0x1000, 0x9000]), moves);
        assert_eq!(arranged(&[there, away, left, gone], &[0x1000, 0x9000]), moves);
    }

    #[test]
    fn addresses_that_a_move_keeps_are_not_free() {
        let kept = Event::Remap { from: 0x1000, to: 0x9000, bytes: 0x1000, kept: true };
        let all = [told(0x5000, 0x1000).as_slice(), &[kept]].concat();
        let moves = [remap(0x5000, 0x1000), kept];
        assert_eq!(arranged(&all, &[0x1000, 0x9000]), moves);
    }

    #[test]
    fn what_frees_an_address_comes_before_what_fills_it() {
        let (away, there) = (remap(0x1000, 0x9000), remap(0x5000, 0x1000));
        assert_eq!(arranged(&[there, away], &[0x1000, 0x9000]), [away, there]);
        assert_eq!(arranged(&[away, there], &[0x1000, 0x9000]), [away, there]);
        let gone = Event::Unmap { start: 0, end: 0x2000 };
        assert_eq!(arranged(&[there, gone], &[0x1000]), [gone, there]);
        // The moved mapping also moved on.
        let on = remap(0x1000, 0x7000);
        assert_eq!(arranged(&[there, gone, on], &[0x7000]), [gone, there, on]);
        assert_eq!(arranged(&[there, on, away], &[0x7000, 0x9000])[1], there);
    }

    #[test]
    fn one_mapping_that_moved_twice_did_so_in_turn() {
        let turns = [remap(0x5000, 0x1000), remap(0x1000, 0x9000)];
        assert_eq!(arranged(&turns, &[0x9000]), turns);
        // Something else was mapped there before, and its unmapping was reported.
        let gone = Event::Unmap { start: 0x1000, end: 0x2000 };
        let all = [gone, turns[0], turns[1]];
        assert_eq!(arranged(&all, &[0x9000]), all);
        let and_gone = [turns[0], gone];
        assert_eq!(arranged(&and_gone, &[]), and_gone);
    }

    #[test]
    fn chains_are_undone_circles_end_and_forks_are_not_crossed() {
        let chain = [remap(0x3000, 0x2000), remap(0x2000, 0x1000), remap(0x1000, 0x9000)];
        let undone = [chain[2], chain[1], chain[0]];
        assert_eq!(arranged(&chain, &[0x9000, 0x2000, 0x1000]), undone);
        let circle = [remap(0x1000, 0x2000), remap(0x2000, 0x1000)];
        assert_eq!(arranged(&circle, &[0x1000, 0x2000]).len(), 2);
        let fork = Event::Fork { file: 0 };
        let beside = [remap(0x3000, 0x2000), fork, remap(0x2000, 0x9000)];
        assert_eq!(arranged(&beside, &[0x2000, 0x9000]), beside);
    }
}
