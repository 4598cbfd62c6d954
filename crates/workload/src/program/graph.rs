//! The graph of a program: steps, and which must have ended before which.

use ethermem_units::{Bytes, Ps};
use thiserror::Error;

use crate::{Kind, NodeIndex};

/// Maximum number of steps of a program: 200 MB of them.
pub const STEPS_MAX: u64 = 1 << 22;
/// Maximum number of dependencies of a program.
pub const EDGES_MAX: u64 = 1 << 25;

/// A step of a program, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub u32);

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A message: it has ended when its data is there.
    Message {
        /// The operation.
        kind: Kind,
        /// The node that issues it.
        compute: NodeIndex,
        /// The other node.
        memory: NodeIndex,
        /// Bytes of data.
        bytes: Bytes,
    },
    /// A computation of a node.
    Compute {
        /// The node.
        node: NodeIndex,
        /// How long it takes.
        duration: Ps,
    },
}

/// A step: its work, and which part of the program's data it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it does.
    pub work: Work,
    /// The part of the data, as the program counts: a chunk, a superstep, a request.
    pub tag: u32,
}

/// Why a program cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// It has too few nodes.
    #[error("{has} nodes: must be at least {least}")]
    Nodes {
        /// What it has.
        has: u32,
        /// What it needs.
        least: u32,
    },
    /// A node is not of the program.
    #[error("node {node}: must be below {nodes}")]
    NoSuchNode {
        /// The node.
        node: NodeIndex,
        /// Nodes of the program.
        nodes: u16,
    },
    /// A message begins and ends at one node.
    #[error("step {0}: the two nodes of a message must differ")]
    SameNode(u32),
    /// A message has no data.
    #[error("step {0}: a message has at least 1 B")]
    Empty(u32),
    /// A step depends on a later one, or on one that is not there.
    #[error("step {step} depends on step {on}: must be an earlier one")]
    Later {
        /// The step.
        step: u32,
        /// What it depends on.
        on: u32,
    },
    /// The program has too many steps, or nodes, to be built.
    #[error("more than {STEPS_MAX} steps, {EDGES_MAX} dependencies or 65535 nodes")]
    TooLarge,
    /// A parameter is out of range.
    #[error("{name} = {value}: must be {must_be}")]
    Parameter {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: u64,
        /// Its range.
        must_be: &'static str,
    },
}

/// A program: steps in an order in which each comes after all that it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    nodes: u16,
    steps: Vec<Step>,
    /// By step: how many steps it depends on.
    waits_for: Vec<u32>,
    /// By step: where its followers begin in `followers`; one more at the end.
    first_follower: Vec<u32>,
    followers: Vec<StepId>,
}

impl Work {
    /// The two ends of a message, or the node of a computation twice.
    #[must_use]
    pub fn ends(&self) -> [NodeIndex; 2] {
        match *self {
            Work::Message { compute, memory, .. } => [compute, memory],
            Work::Compute { node, .. } => [node, node],
        }
    }

    /// Bytes of data that it moves, from the first node to the second; `None` for a computation.
    #[must_use]
    pub fn moves(&self) -> Option<(NodeIndex, NodeIndex, Bytes)> {
        match *self {
            Work::Message { kind: Kind::Write, compute, memory, bytes } => {
                Some((compute, memory, bytes))
            }
            Work::Message { compute, memory, bytes, .. } => Some((memory, compute, bytes)),
            Work::Compute { .. } => None,
        }
    }
}

impl std::fmt::Display for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Work::Message { kind, compute, memory, bytes } => {
                write!(f, "{} of {} B from node {compute} to {memory}", kind.name(), bytes.0)
            }
            Work::Compute { node, duration } => {
                write!(f, "computation of {} ns on node {node}", duration.as_ns_f64())
            }
        }
    }
}

impl Program {
    /// Nodes of the program.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.nodes
    }

    /// All steps.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How many steps a step depends on.
    ///
    /// # Panics
    /// If there is no such step.
    #[must_use]
    pub fn waits_for(&self, step: StepId) -> u32 {
        self.waits_for[step.0 as usize]
    }

    /// The steps that depend on a step.
    ///
    /// # Panics
    /// If there is no such step.
    #[must_use]
    pub fn followers(&self, step: StepId) -> &[StepId] {
        let at = step.0 as usize;
        let (first, end) = (self.first_follower[at], self.first_follower[at + 1]);
        &self.followers[first as usize..end as usize]
    }

    /// By step: the steps that it depends on.
    #[must_use]
    pub fn dependencies(&self) -> Vec<Vec<StepId>> {
        let mut before = vec![Vec::new(); self.steps().len()];
        for step in (0..self.steps().len() as u32).map(StepId) {
            for follower in self.followers(step) {
                before[follower.0 as usize].push(step);
            }
        }
        before
    }

    fn message_bytes(&self) -> impl Iterator<Item = u64> {
        self.steps.iter().filter_map(|step| step.work.moves()).map(|(.., bytes)| bytes.0)
    }

    /// Bytes of all messages.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.message_bytes().sum())
    }

    /// Number of messages of at most so many bytes.
    #[must_use]
    pub fn messages(&self, most: Bytes) -> u64 {
        self.message_bytes().map(|bytes| parts_of(Bytes(bytes), most)).sum()
    }
}

/// Number of messages of at most `most` bytes that a step of so many bytes is.
pub(super) fn parts_of(bytes: Bytes, most: Bytes) -> u64 {
    bytes.0.div_ceil(most.0)
}

/// Bytes of the part `part` of a step that is `parts` messages: the first are a byte longer where
/// the bytes cannot be divided.
pub(super) fn part_bytes(bytes: Bytes, parts: u64, part: u64) -> Bytes {
    Bytes(bytes.0 / parts + u64::from(part < bytes.0 % parts))
}

/// Builds a program, step by step.
#[derive(Clone, Debug)]
pub struct Builder {
    nodes: u16,
    steps: Vec<Step>,
    /// Each dependency: the earlier step, and the later one.
    edges: Vec<(u32, u32)>,
}

impl Builder {
    /// A program without steps.
    #[must_use]
    pub fn new(nodes: u16) -> Builder {
        Builder { nodes, steps: Vec::new(), edges: Vec::new() }
    }

    /// Adds a step that depends on earlier ones.
    ///
    /// # Errors
    /// [`ProgramError`]; nothing was added.
    pub fn add(&mut self, step: Step, after: &[StepId]) -> Result<StepId, ProgramError> {
        let number = u32::try_from(self.steps.len()).map_err(|_| ProgramError::TooLarge)?;
        self.check(number, &step.work)?;
        if let Some(on) = after.iter().find(|on| on.0 >= number) {
            return Err(ProgramError::Later { step: number, on: on.0 });
        }
        let edges = (self.edges.len() + after.len()) as u64;
        if edges > EDGES_MAX || u64::from(number) >= STEPS_MAX {
            return Err(ProgramError::TooLarge);
        }
        self.steps.push(step);
        self.edges.extend(after.iter().map(|on| (on.0, number)));
        Ok(StepId(number))
    }

    fn check(&self, number: u32, work: &Work) -> Result<(), ProgramError> {
        let (ends, bytes) = (work.ends(), work.moves().map(|(.., bytes)| bytes));
        let nodes = self.nodes;
        if let Some(&node) = ends.iter().find(|node| **node >= nodes) {
            return Err(ProgramError::NoSuchNode { node, nodes });
        }
        match bytes {
            Some(_) if ends[0] == ends[1] => Err(ProgramError::SameNode(number)),
            Some(Bytes(0)) => Err(ProgramError::Empty(number)),
            _ => Ok(()),
        }
    }

    /// Adds a message that writes data to another node.
    ///
    /// # Errors
    /// As [`Builder::add`].
    pub fn send(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        bytes: Bytes,
        tag: u32,
        after: &[StepId],
    ) -> Result<StepId, ProgramError> {
        let work = Work::Message { kind: Kind::Write, compute: from, memory: to, bytes };
        self.add(Step { work, tag }, after)
    }

    /// Adds a computation.
    ///
    /// # Errors
    /// As [`Builder::add`].
    pub fn compute(
        &mut self,
        node: NodeIndex,
        duration: Ps,
        tag: u32,
        after: &[StepId],
    ) -> Result<StepId, ProgramError> {
        self.add(Step { work: Work::Compute { node, duration }, tag }, after)
    }

    /// The program. A dependency that was named twice counts once.
    #[must_use]
    pub fn build(mut self) -> Program {
        self.edges.sort_unstable();
        self.edges.dedup();
        let count = self.steps.len();
        let mut waits_for = vec![0; count];
        let mut first_follower = vec![0; count + 1];
        for &(before, after) in &self.edges {
            waits_for[after as usize] += 1;
            first_follower[before as usize + 1] += 1;
        }
        for at in 0..count {
            first_follower[at + 1] += first_follower[at];
        }
        let followers = self.edges.iter().map(|edge| StepId(edge.1)).collect();
        Program { nodes: self.nodes, steps: self.steps, waits_for, first_follower, followers }
    }
}
