//! Counters of the pager.

/// Counters over all processes of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Faults that the kernel reported.
    pub faults: u64,
    /// Pages provided for the first time, as zeroes.
    pub zero_pages: u64,
    /// Pages that came back from the standby list, without a remote access.
    pub rescued_pages: u64,
    /// Pages read from remote memory because a thread waited for them.
    pub read_pages: u64,
    /// Pages prefetched along with them.
    pub prefetched_pages: u64,
    /// Largest number of reads of a pool under way at once.
    #[serde(default)]
    pub overlap_most: u64,
    /// Pages taken out of programs.
    pub taken_pages: u64,
    /// Time the pager spent taking pages out, including the agents' time, in nanoseconds.
    pub taking_ns: u64,
    /// Pages written to remote memory.
    pub written_pages: u64,
    /// Pages that left local memory unwritten because remote memory had their content.
    pub dropped_pages: u64,
    /// Pages that left local memory unwritten because all their bytes were zero.
    pub empty_pages: u64,
    /// Pages that the kernel refused to move, counted each time.
    pub kept_pages: u64,
    /// Pages that were put above the limit, and forks above it, because no page could be moved.
    pub overruns: u64,
    /// Time for which the pager and the threads that make the faults were kept on one processor, in
    /// nanoseconds.
    #[serde(default)]
    pub together_ns: u64,
    /// Programs and forks that were served.
    pub processes: u64,
    /// Announced executions of programs into which no loader preloads the agent.
    #[serde(default)]
    pub announced: u64,
    /// Programs that ran without being served.
    pub unserved: u64,
    /// Largest number of pages in local memory at once.
    pub peak_pages: u64,
    /// Largest number of pages of files and shared memory in local memory at once, which the limit
    /// does not count. A page counts for each process that has it.
    #[serde(default)]
    pub beside_pages: u64,
    /// Largest number of pages that the program held at once, locally and remotely.
    pub held_pages: u64,
}
