//! From the traces of all nodes to one graph: sends meet receives, and collectives are rings.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use ethermem_files::InputError;
use ethermem_units::{Bytes, Ps};

use super::super::collectives::{all_to_all, ring_all_gather, ring_allreduce, ring_reduce_scatter};
use super::super::graph::{Builder, Program, ProgramError, STEPS_MAX, Step, StepId, Work};
use super::record::{Node, Value, at};
use crate::{Kind, MESSAGE_BYTES_MAX, NodeIndex};

/// Numbers of `NodeType` that move data.
const SEND: i32 = 5;
const RECEIVE: i32 = 6;
const COLLECTIVE: i32 = 7;

/// Most time of all computations of all traces, in us: 50 days. Times are picoseconds in 64 bits.
const COMPUTED_MICROS_MAX: u64 = 1 << 42;

/// The trace of one node.
pub(super) struct Trace<'f> {
    pub(super) file: &'f PathBuf,
    /// Its nodes, with the offsets of their records.
    pub(super) nodes: Vec<(u64, Node)>,
}

/// A step before it has its place: its work, what it waits for, and where it comes from.
struct Vertex {
    work: Work,
    after: Vec<usize>,
    /// The trace, and its node.
    origin: (usize, usize),
}

/// The ends of a message as both traces name it: sender, receiver, tag.
type Pair = (NodeIndex, NodeIndex, u64);

/// A collective as one trace names it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Collective {
    kind: u64,
    bytes: u64,
    origin: (usize, usize),
}

struct Assembly<'t, 'f> {
    traces: &'t [Trace<'f>],
    vertices: Vec<Vertex>,
    /// By trace and node: the vertex that ends it.
    done: Vec<Vec<usize>>,
    /// By pair: messages in the order in which they are sent, and the receives in theirs.
    sent: BTreeMap<Pair, VecDeque<usize>>,
    received: BTreeMap<Pair, VecDeque<(usize, u64)>>,
    /// By trace: its collectives in order.
    collectives: Vec<Vec<Collective>>,
    /// Time of all computations, in us.
    computed_micros: u64,
}

/// The program of all traces. Node `n` of the network is the `n`-th trace.
pub(super) fn program(traces: &[Trace<'_>]) -> Result<Program, InputError> {
    let mut assembly = Assembly {
        traces,
        vertices: Vec::new(),
        done: Vec::new(),
        sent: BTreeMap::new(),
        received: BTreeMap::new(),
        collectives: vec![Vec::new(); traces.len()],
        computed_micros: 0,
    };
    for trace in 0..traces.len() {
        assembly.add_nodes(trace)?;
    }
    for trace in 0..traces.len() {
        assembly.add_dependencies(trace)?;
    }
    assembly.join_messages()?;
    assembly.join_collectives()?;
    assembly.build()
}

impl Assembly<'_, '_> {
    fn node(&self, (trace, node): (usize, usize)) -> &Node {
        &self.traces[trace].nodes[node].1
    }

    fn error(&self, (trace, node): (usize, usize), problem: &str) -> InputError {
        let Trace { file, nodes } = &self.traces[trace];
        let (offset, node) = &nodes[node];
        at(file, *offset, &format!("node {}: {problem}", node.id))
    }

    fn push(&mut self, work: Work, origin: (usize, usize)) -> Result<usize, InputError> {
        if self.vertices.len() as u64 >= STEPS_MAX {
            let problem = format!("more than {STEPS_MAX} steps: must be at most that");
            return Err(self.error(origin, &problem));
        }
        self.vertices.push(Vertex { work, after: Vec::new(), origin });
        Ok(self.vertices.len() - 1)
    }

    /// Adds a vertex for each node of a trace.
    fn add_nodes(&mut self, trace: usize) -> Result<(), InputError> {
        let mut done = Vec::new();
        for node in 0..self.traces[trace].nodes.len() {
            let origin = (trace, node);
            let work = self.work(origin)?;
            done.push(self.push(work, origin)?);
        }
        self.done.push(done);
        Ok(())
    }

    /// The work of the vertex that ends a node. A receive, and a collective, end when their
    /// messages have ended, and take no time of their own.
    fn work(&mut self, origin: (usize, usize)) -> Result<Work, InputError> {
        let own = origin.0 as NodeIndex;
        let nothing = Work::Compute { node: own, duration: Ps::ZERO };
        match self.node(origin).kind {
            SEND => {
                let (to, tag) = self.peer(origin, "comm_dst")?;
                let bytes = self.bytes(origin)?;
                self.sent.entry((own, to, tag)).or_default().push_back(self.vertices.len());
                let bytes = Bytes(bytes);
                Ok(Work::Message { kind: Kind::Write, compute: own, memory: to, bytes })
            }
            RECEIVE => {
                let (from, tag) = self.peer(origin, "comm_src")?;
                let bytes = self.bytes(origin)?;
                let receives = self.received.entry((from, own, tag)).or_default();
                receives.push_back((self.vertices.len(), bytes));
                Ok(nothing)
            }
            COLLECTIVE => {
                let kind = self.attribute(origin, "comm_type")?;
                self.refuse_parts(origin)?;
                let bytes = self.bytes(origin)?;
                self.collectives[origin.0].push(Collective { kind, bytes, origin });
                Ok(nothing)
            }
            _ => {
                let micros = self.node(origin).duration_micros;
                self.computed_micros = self.computed_micros.saturating_add(micros);
                if self.computed_micros > COMPUTED_MICROS_MAX {
                    let must_be = format!("the sum of all must be at most {COMPUTED_MICROS_MAX}");
                    let problem = format!("duration_micros = {micros}: {must_be}");
                    return Err(self.error(origin, &problem));
                }
                Ok(Work::Compute { node: own, duration: Ps::from_ns(micros * 1_000) })
            }
        }
    }

    fn attribute(&self, origin: (usize, usize), name: &str) -> Result<u64, InputError> {
        self.node(origin).unsigned(name).ok_or_else(|| {
            let problem = format!("{name} is not set: must be an integer of at least 0");
            self.error(origin, &problem)
        })
    }

    fn bytes(&self, origin: (usize, usize)) -> Result<u64, InputError> {
        let bytes = self.attribute(origin, "comm_size")?;
        if (1..=MESSAGE_BYTES_MAX).contains(&bytes) {
            return Ok(bytes);
        }
        let problem = format!("comm_size = {bytes}: must be 1 to {MESSAGE_BYTES_MAX}");
        Err(self.error(origin, &problem))
    }

    /// The other end of a send or a receive, and its tag.
    fn peer(&self, origin: (usize, usize), name: &str) -> Result<(NodeIndex, u64), InputError> {
        let peer = self.attribute(origin, name)?;
        let nodes = self.traces.len() as u64;
        if peer >= nodes || peer == origin.0 as u64 {
            let last = nodes - 1;
            let problem = format!("{name} = {peer}: must be another node of 0 to {last}");
            return Err(self.error(origin, &problem));
        }
        Ok((peer as NodeIndex, self.node(origin).unsigned("comm_tag").unwrap_or(0)))
    }

    /// Refuses a collective of a part of the nodes.
    fn refuse_parts(&self, origin: (usize, usize)) -> Result<(), InputError> {
        let node = self.node(origin);
        let part = match (node.value("involved_dim"), node.value("pg_name")) {
            (Some(Value::BoolList(dimensions)), _) if dimensions.values.contains(&false) => {
                "involved_dim has false"
            }
            (_, Some(Value::Text(name))) if !name.is_empty() => "pg_name is set",
            _ => return Ok(()),
        };
        Err(self.error(origin, &format!("{part}: must be a collective of all nodes")))
    }

    /// Adds what the nodes of a trace wait for.
    fn add_dependencies(&mut self, trace: usize) -> Result<(), InputError> {
        let nodes = &self.traces[trace].nodes;
        let mut by_id = BTreeMap::new();
        for (node, (_, record)) in nodes.iter().enumerate() {
            if by_id.insert(record.id, node).is_some() {
                return Err(self.error((trace, node), "its id is that of an earlier node"));
            }
        }
        for (node, (_, record)) in nodes.iter().enumerate() {
            for id in record.ctrl_deps.iter().chain(&record.data_deps) {
                let Some(&before) = by_id.get(id) else {
                    let problem = format!("it depends on node {id}: must be in the same file");
                    return Err(self.error((trace, node), &problem));
                };
                let before = self.done[trace][before];
                self.vertices[self.done[trace][node]].after.push(before);
            }
        }
        Ok(())
    }

    /// A receive waits for the message that is sent as the same in number of its pair.
    fn join_messages(&mut self) -> Result<(), InputError> {
        let mut sent = std::mem::take(&mut self.sent);
        for (pair, receives) in std::mem::take(&mut self.received) {
            let mut messages = sent.remove(&pair).unwrap_or_default();
            for (receive, expected) in receives {
                let (from, _, tag) = pair;
                let origin = self.vertices[receive].origin;
                let Some(message) = messages.pop_front() else {
                    let problem = format!("no message of tag {tag} is left that node {from} sends");
                    return Err(self.error(origin, &problem));
                };
                let bytes = self.vertices[message].work.moves().map_or(0, |(.., bytes)| bytes.0);
                if bytes != expected {
                    let problem = format!("comm_size = {expected}: node {from} sends {bytes} B");
                    return Err(self.error(origin, &problem));
                }
                self.vertices[receive].after.push(message);
            }
            sent.insert(pair, messages);
        }
        let left = sent.iter().find_map(|(pair, messages)| Some((pair, *messages.front()?)));
        let Some((&(_, to, tag), message)) = left else { return Ok(()) };
        let problem = format!("node {to} has no receive of tag {tag} for it");
        Err(self.error(self.vertices[message].origin, &problem))
    }

    /// Collectives of one number are one, in every trace.
    fn join_collectives(&mut self) -> Result<(), InputError> {
        let all = std::mem::take(&mut self.collectives);
        let Some(first) = all.first() else { return Ok(()) };
        for others in &all[1..] {
            let differs = first
                .iter()
                .zip(others)
                .find(|(one, other)| (one.kind, one.bytes) != (other.kind, other.bytes));
            if let Some((one, other)) = differs {
                let problem = format!(
                    "collective {} of {} B: node 0 has {} of {} B in its place",
                    other.kind, other.bytes, one.kind, one.bytes
                );
                return Err(self.error(other.origin, &problem));
            }
            let (longer, count) =
                if first.len() > others.len() { (first, others) } else { (others, first) };
            if let Some(extra) = longer.get(count.len()) {
                let problem = format!("another node has only {} collectives", count.len());
                return Err(self.error(extra.origin, &problem));
            }
        }
        for (number, &collective) in first.iter().enumerate() {
            let origins: Vec<_> = all.iter().map(|of_trace| of_trace[number].origin).collect();
            self.expand(collective, &origins)?;
        }
        Ok(())
    }

    /// Adds the messages of a collective, whose nodes in all traces are `origins`.
    fn expand(
        &mut self,
        collective: Collective,
        origins: &[(usize, usize)],
    ) -> Result<(), InputError> {
        let nodes = origins.len() as NodeIndex;
        let bytes = Bytes(collective.bytes);
        // A part of less than a byte is one.
        let whole = Bytes(bytes.0.max(nodes.into()));
        let program = match collective.kind {
            0 => ring_allreduce(nodes, whole),
            2 => ring_all_gather(nodes, bytes),
            6 => all_to_all(nodes, Bytes(bytes.0.div_ceil(nodes.into()))),
            7 => ring_reduce_scatter(nodes, whole),
            kind => {
                let must_be = "must be 0 (all-reduce), 2 (all-gather), 6 (all-to-all) or 7 \
                               (reduce-scatter)";
                let problem = format!("comm_type = {kind}: {must_be}");
                return Err(self.error(collective.origin, &problem));
            }
        };
        let program = program
            .map_err(|error| self.error(collective.origin, &format!("no collective: {error}")))?;
        let done: Vec<usize> =
            origins.iter().map(|&(trace, node)| self.done[trace][node]).collect();
        // The end of the node waits for its messages; its begin is a vertex of its own.
        let mut begins = Vec::new();
        for (own, (&done, &origin)) in done.iter().zip(origins).enumerate() {
            let work = Work::Compute { node: own as NodeIndex, duration: Ps::ZERO };
            let begin = self.push(work, origin)?;
            self.vertices[begin].after = std::mem::take(&mut self.vertices[done].after);
            self.vertices[done].after.push(begin);
            begins.push(begin);
        }
        let first = self.vertices.len();
        for (step, before) in program.steps().iter().zip(program.dependencies()) {
            let [issuer, other] = step.work.ends().map(usize::from);
            let vertex = self.push(step.work, origins[issuer])?;
            let after = before.iter().map(|step| first + step.0 as usize);
            self.vertices[vertex].after = after.chain([begins[issuer]]).collect();
            self.vertices[done[issuer]].after.push(vertex);
            self.vertices[done[other]].after.push(vertex);
        }
        Ok(())
    }

    /// Orders the vertices, each behind all that it waits for.
    fn build(self) -> Result<Program, InputError> {
        let count = self.vertices.len();
        let mut followers = vec![Vec::new(); count];
        let mut waits = vec![0_usize; count];
        for (vertex, Vertex { after, .. }) in self.vertices.iter().enumerate() {
            waits[vertex] = after.len();
            after.iter().for_each(|&before| followers[before].push(vertex));
        }
        let mut ready: VecDeque<usize> = (0..count).filter(|&vertex| waits[vertex] == 0).collect();
        let mut builder = Builder::new(self.traces.len() as NodeIndex);
        let mut steps = vec![StepId(0); count];
        let mut placed = vec![false; count];
        while let Some(vertex) = ready.pop_front() {
            let Vertex { work, after, origin } = &self.vertices[vertex];
            let after: Vec<StepId> = after.iter().map(|&before| steps[before]).collect();
            let step = Step { work: *work, tag: 0 };
            let added = builder.add(step, &after);
            steps[vertex] = added.map_err(|error: ProgramError| {
                self.error(*origin, &format!("no step of a program: {error}"))
            })?;
            placed[vertex] = true;
            for &follower in &followers[vertex] {
                waits[follower] -= 1;
                if waits[follower] == 0 {
                    ready.push_back(follower);
                }
            }
        }
        match placed.iter().position(|placed| !placed) {
            None => Ok(builder.build()),
            Some(vertex) => {
                let problem = "it waits for itself: must not depend on a node that waits for it";
                Err(self.error(self.vertices[vertex].origin, problem))
            }
        }
    }
}
