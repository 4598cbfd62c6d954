//! The order of changes: the kernel tells of a change after it let go of the mappings, so that
//! those of several threads may be told in another order than they happened.

use std::ops::Range;

use crate::fault::Event;

/// Whether `event` leaves addresses of `range` to whoever maps something next.
fn frees(event: &Event, range: &Range<u64>) -> bool {
    let (start, end) = match *event {
        Event::Remap { from, bytes, .. } => (from, from + bytes),
        Event::Unmap { start, end } => (start, end),
        Event::Fault { .. } | Event::Fork { .. } | Event::Remove { .. } => return false,
    };
    start < range.end && range.start < end
}

/// Puts what freed addresses before what moved a mapping there. `events` are all changes that are
/// told of at a moment when none is left untold; `is_mapped` says what is mapped after them: what
/// was moved to an address and is there had it freed before.
pub(crate) fn arrange(events: &mut Vec<Event>, is_mapped: impl Fn(u64) -> bool) {
    let (mut at, mut moves) = (0, 0);
    while at < events.len() {
        if let Event::Remap { to, bytes, .. } = events[at]
            && moves < events.len()
            && let Some(later) = freed_later(&events[at + 1..], &(to..to + bytes))
            && is_mapped(to)
        {
            let freed = events.remove(at + 1 + later);
            events.insert(at, freed);
            // Where it leads to may have been freed before, in turn.
            moves += 1;
            continue;
        }
        at += 1;
    }
}

/// The first that frees addresses of `range`; none from a fork on, whose child has what was before.
fn freed_later(events: &[Event], range: &Range<u64>) -> Option<usize> {
    let until = events.iter().position(|event| matches!(event, Event::Fork { .. }));
    events[..until.unwrap_or(events.len())].iter().position(|event| frees(event, range))
}

#[cfg(test)]
mod tests {
    use super::arrange;
    use crate::fault::Event;

    fn remap(from: u64, to: u64) -> Event {
        Event::Remap { from, to, bytes: 4096 }
    }

    #[test]
    fn what_frees_an_address_comes_before_what_fills_it() {
        let (away, there) = (remap(0x1000, 0x9000), remap(0x5000, 0x1000));
        let mut events = vec![there, away];
        arrange(&mut events, |_| true);
        assert_eq!(events, [away, there]);
        let gone = Event::Unmap { start: 0, end: 0x2000 };
        let mut events = vec![there, gone];
        arrange(&mut events, |_| true);
        assert_eq!(events, [gone, there]);
    }

    #[test]
    fn one_mapping_that_moved_twice_did_so_in_turn() {
        let (first, second) = (remap(0x5000, 0x1000), remap(0x1000, 0x9000));
        let mut events = vec![first, second];
        arrange(&mut events, |page| page == 0x9000);
        assert_eq!(events, [first, second]);
    }

    #[test]
    fn chains_are_undone_circles_end_and_forks_are_not_crossed() {
        let chain = [remap(0x3000, 0x2000), remap(0x2000, 0x1000), remap(0x1000, 0x9000)];
        let mut events = chain.to_vec();
        arrange(&mut events, |_| true);
        assert_eq!(events, [chain[2], chain[1], chain[0]]);
        let mut circle = vec![remap(0x1000, 0x2000), remap(0x2000, 0x1000)];
        arrange(&mut circle, |_| true);
        assert_eq!(circle.len(), 2);
        let forked = vec![chain[0], Event::Fork { file: 9 }, chain[1]];
        let mut events = forked.clone();
        arrange(&mut events, |_| true);
        assert_eq!(events, forked);
    }
}
