//! Lines that are being fetched, and the reads that wait for each.

use super::Place;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Fetch {
    place: Place,
    /// The first and the last read that wait, in their order.
    first: u32,
    last: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    UnderWay,
    /// It has ended, and not all that waited were told.
    Ended,
}

/// A table of fetches, and lists of reads in a second table.
#[derive(Clone, Debug)]
pub(super) struct Fetches<W> {
    fetches: Box<[Fetch]>,
    waiters: Box<[(Option<W>, u32)]>,
    free_waiter: u32,
    under_way: u32,
}

impl<W: Copy> Fetches<W> {
    pub(super) fn new(fetches_max: u32, waiting_max: u32) -> Fetches<W> {
        let free = Fetch { place: Place(0), first: NONE, last: NONE, state: State::Free };
        let next = |at: u32| if at + 1 == waiting_max { NONE } else { at + 1 };
        Fetches {
            fetches: (0..fetches_max).map(|_| free).collect(),
            waiters: (0..waiting_max).map(|at| (None, next(at))).collect(),
            free_waiter: if waiting_max == 0 { NONE } else { 0 },
            under_way: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.under_way as usize == self.fetches.len()
    }

    /// Begins a fetch for a read; `None`, and nothing changed, if a table is full.
    pub(super) fn begin(&mut self, place: Place, waiter: W) -> Option<u32> {
        let fetch = self.fetches.iter().position(|fetch| fetch.state == State::Free)? as u32;
        let at = self.take_waiter(waiter)?;
        self.fetches[fetch as usize] = Fetch { place, first: at, last: at, state: State::UnderWay };
        self.under_way += 1;
        Some(fetch)
    }

    /// Lets a read wait for the fetch of a place; `false`, and nothing changed, if the table is
    /// full.
    pub(super) fn join(&mut self, place: Place, waiter: W) -> bool {
        let is_it = |fetch: &Fetch| fetch.state == State::UnderWay && fetch.place == place;
        let Some(fetch) = self.fetches.iter().position(is_it) else { return false };
        let Some(at) = self.take_waiter(waiter) else { return false };
        let last = self.fetches[fetch].last;
        self.waiters[last as usize].1 = at;
        self.fetches[fetch].last = at;
        true
    }

    /// Ends a fetch, and says for which place it was.
    pub(super) fn end(&mut self, fetch: u32) -> Place {
        let fetch = &mut self.fetches[fetch as usize];
        assert!(fetch.state == State::UnderWay, "a fetch ends once");
        fetch.state = State::Ended;
        fetch.place
    }

    /// The next read that waited for a fetch that has ended. After the last one the fetch is free.
    pub(super) fn poll_waiter(&mut self, number: u32) -> Option<(W, Place)> {
        let fetch = &mut self.fetches[number as usize];
        if fetch.state != State::Ended {
            return None;
        }
        let at = fetch.first;
        if at == NONE {
            fetch.state = State::Free;
            self.under_way -= 1;
            return None;
        }
        let place = fetch.place;
        let (waiter, next) = &mut self.waiters[at as usize];
        fetch.first = *next;
        *next = self.free_waiter;
        self.free_waiter = at;
        waiter.take().map(|waiter| (waiter, place))
    }

    fn take_waiter(&mut self, waiter: W) -> Option<u32> {
        let at = self.free_waiter;
        let (kept, next) = self.waiters.get_mut(at as usize)?;
        self.free_waiter = *next;
        (*kept, *next) = (Some(waiter), NONE);
        Some(at)
    }
}
