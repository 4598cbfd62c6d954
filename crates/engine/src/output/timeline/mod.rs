//! Slices, instants and counters of a run, for Perfetto.

mod encode;
mod perfetto;
mod schedule;

use std::path::Path;

use ethermem_units::Ps;

use super::{AtomicFile, OutputError};

/// A timeline that opens in [Perfetto](https://ui.perfetto.dev).
///
/// Perfetto's unit of time is a nanosecond, and a block of a fast link takes less. So a picosecond
/// is written as a nanosecond, and 1 µs on the screen is 1 ns of the run; the common name of all
/// tracks says so. Events are kept in memory up to a limit and written by [`Timeline::close`].
#[derive(Debug)]
pub struct Timeline {
    file: AtomicFile,
    title: String,
    groups: Vec<String>,
    tracks: Vec<Track>,
    events: Vec<Event>,
    /// The arguments of all events, one after the other.
    args: Vec<Arg>,
    events_max: usize,
    events_refused: u64,
    first_refused: Option<Ps>,
}

/// A row of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrackId(u32);

/// A number shown with an event: its name, with the unit, and its value.
pub type Arg = (&'static str, u64);

/// Summary of a timeline's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineSummary {
    /// Number of events in the file.
    pub events: u64,
    /// Number of events past the limit, which are not in the file.
    pub events_refused: u64,
    /// The time of the earliest event that is not in the file: before it the timeline is complete.
    /// `None` if all events are in the file.
    pub complete_until: Option<Ps>,
}

impl TimelineSummary {
    /// A notice for the reader of a timeline that is cut off or empty.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        if self.events == 0 && self.events_refused == 0 {
            return Some("the timeline has nothing on it: no message was run".to_owned());
        }
        let until = self.complete_until?;
        Some(format!(
            "the timeline holds {} events and is complete until {until}; {} events are not in it",
            self.events, self.events_refused
        ))
    }
}

#[derive(Debug)]
struct Track {
    group: usize,
    name: String,
    /// The unit of a counter; `None` for slices and instants.
    unit: Option<&'static str>,
}

#[derive(Debug)]
struct Event {
    at: Ps,
    track: TrackId,
    name: &'static str,
    what: What,
    args_first: usize,
    args_count: usize,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Slice { end: Ps },
    Instant,
    Counter { value: i64 },
}

impl Timeline {
    /// The default maximum number of events, which the viewer handles with ease.
    pub const EVENTS_MAX_DEFAULT: usize = 500_000;

    /// Opens `path`, which takes its name with [`Timeline::close`]. It holds at most `events_max`
    /// events of some 100 bytes. All tracks are shown under the name `title`.
    ///
    /// # Errors
    /// [`OutputError`] when it cannot be created.
    pub fn create(path: &Path, title: &str, events_max: usize) -> Result<Timeline, OutputError> {
        Ok(Timeline {
            file: AtomicFile::create(path)?,
            title: title.to_owned(),
            groups: Vec::new(),
            tracks: Vec::new(),
            events: Vec::new(),
            args: Vec::new(),
            events_max,
            events_refused: 0,
            first_refused: None,
        })
    }

    /// Adds a row for slices and instants to the group of this name. Rows and groups are shown in
    /// the order of their creation.
    pub fn track(&mut self, group: &str, name: &str) -> TrackId {
        self.add_track(group, name, None)
    }

    /// Adds a row for every node to the group of this name.
    pub fn rows(&mut self, group: &str, nodes: u16) -> Vec<TrackId> {
        (0..nodes).map(|node| self.track(group, &format!("node {node}"))).collect()
    }

    /// Adds a row for a counter; `unit` is shown with it: "blocks".
    pub fn counter_track(&mut self, group: &str, name: &str, unit: &'static str) -> TrackId {
        self.add_track(group, name, Some(unit))
    }

    /// Adds a slice from `start` to `end`. Slices of a track may come in any order. Slices that
    /// overlap without nesting are drawn on lines of their own.
    ///
    /// # Panics
    /// If it ends before it starts.
    #[inline]
    pub fn slice(&mut self, track: TrackId, name: &'static str, start: Ps, end: Ps, args: &[Arg]) {
        assert!(start <= end, "slice {name} ends at {end}, before its start {start}");
        self.push(track, name, start, What::Slice { end }, args);
    }

    /// Adds an event without duration.
    #[inline]
    pub fn instant(&mut self, track: TrackId, name: &'static str, at: Ps, args: &[Arg]) {
        self.push(track, name, at, What::Instant, args);
    }

    /// Sets the value of the counter from `at` on.
    #[inline]
    pub fn counter(&mut self, track: TrackId, at: Ps, value: i64) {
        self.push(track, "", at, What::Counter { value }, &[]);
    }

    /// True if all further events are refused, so that the caller may stop making them.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.events.len() >= self.events_max
    }

    /// Writes the file.
    ///
    /// # Errors
    /// [`OutputError`] when it cannot be written; then no file is left.
    pub fn close(mut self) -> Result<TimelineSummary, OutputError> {
        let bytes = encode::encode(&self);
        let path = self.file.path().to_owned();
        std::io::Write::write_all(&mut self.file, &bytes)
            .map_err(|reason| OutputError::new(&path, reason))?;
        self.file.commit()?;
        Ok(TimelineSummary {
            events: self.events.len() as u64,
            events_refused: self.events_refused,
            complete_until: self.first_refused,
        })
    }

    fn add_track(&mut self, group: &str, name: &str, unit: Option<&'static str>) -> TrackId {
        // Tracks of a group are created one after the other, so the search is short.
        let known = self.groups.iter().rposition(|known| known == group);
        let group = known.unwrap_or_else(|| {
            self.groups.push(group.to_owned());
            self.groups.len() - 1
        });
        let id = u32::try_from(self.tracks.len()).expect("fewer than 2^32 tracks");
        self.tracks.push(Track { group, name: name.to_owned(), unit });
        TrackId(id)
    }

    #[inline]
    fn push(&mut self, track: TrackId, name: &'static str, at: Ps, what: What, args: &[Arg]) {
        if self.is_full() {
            self.events_refused += 1;
            self.first_refused = Some(self.first_refused.map_or(at, |first| first.min(at)));
            return;
        }
        let args_first = self.args.len();
        self.args.extend_from_slice(args);
        self.events.push(Event { at, track, name, what, args_first, args_count: args.len() });
    }
}

#[cfg(test)]
mod tests;
