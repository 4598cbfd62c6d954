//! What the pager counted.

/// Counts over all processes of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Faults that the kernel told of.
    pub faults: u64,
    /// Pages that were given for the first time, as zeroes.
    pub zero_pages: u64,
    /// Pages that came back from the standby list: no remote access.
    pub rescued_pages: u64,
    /// Pages that were read from remote memory because a thread waited for them.
    pub read_pages: u64,
    /// Pages that were read along with them.
    pub prefetched_pages: u64,
    /// Pages that were taken out of programs.
    pub taken_pages: u64,
    /// Time of the pager that taking them out took, the agents' included, in nanoseconds.
    pub taking_ns: u64,
    /// Pages that were written to remote memory.
    pub written_pages: u64,
    /// Pages that left local memory unwritten: remote memory had them.
    pub dropped_pages: u64,
    /// Pages that left local memory unwritten: all their bytes were zero.
    pub empty_pages: u64,
    /// Pages that the kernel would not move, counted each time.
    pub kept_pages: u64,
    /// Times that the limit could not be held, as no page could be moved.
    pub overruns: u64,
    /// Programs and forks that were served.
    pub processes: u64,
    /// Executions of programs that no loader preloads the agent into, of which the pager was told.
    #[serde(default)]
    pub announced: u64,
    /// Programs that ran without being served.
    pub unserved: u64,
    /// Most pages that were in local memory at once.
    pub peak_pages: u64,
    /// Most pages that the program held at once, locally and remotely.
    pub held_pages: u64,
}
