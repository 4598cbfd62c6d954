//! Traced machines as clusters of blades in one network: the messages of all of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use ethermem_sim::scenario::Setting;
use ethermem_sim::workload::{TraceFormat, WriteTraceError, write_trace};
use ethermem_sim::{Kind, Message, MessageSource, SourceError};
use ethermem_trace::FlowKind;
use ethermem_units::{BitsPerSecond, Bytes, Ps};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::arrivals::{Ends, Source, Stream};
use crate::machine::mix;
use crate::offered::Tally;
use crate::{Arrivals, Blades, Embedding, Machine, Offered, Scope};

/// Longest run, 26 days.
const DURATION_PS_MAX: f64 = (1_u64 << 61) as f64;

/// Parameters of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Blades of a cluster.
    pub blades: Blades,
    /// Number of nodes of the network.
    pub nodes: u16,
    /// Number of nodes per rack.
    pub rack_nodes: u16,
    /// Nodes that a cluster may use.
    pub scope: Scope,
    /// Rate of every node's link in Gb/s.
    pub link_gbps: u64,
    /// How accesses become arrivals.
    pub arrivals: Arrivals,
    /// Approximate number of accesses, of all clusters together.
    pub messages: u64,
    /// Seed of all random draws.
    pub seed: u64,
    /// Keys of the network's scenario that override the study's.
    pub settings: Vec<Setting>,
}

/// Clusters in their network, ready to be written as messages.
#[derive(Clone, Debug)]
pub struct Replay<'m> {
    plan: &'m Plan,
    machines: &'m [Machine],
    embedding: Embedding,
    duration: Ps,
}

impl Plan {
    /// Nodes of as many clusters of this many traced machines as fit the network.
    ///
    /// # Errors
    /// What was found and what is allowed: no or too many traces, or no room for a cluster.
    pub fn embedding(&self, traces: usize) -> Result<Embedding, String> {
        let slots = self.blades.machines();
        if traces == 0 || traces > usize::from(slots) {
            return Err(format!(
                "{traces} traces for {slots} machines of a cluster of {} blades: must be 1 to \
                 {slots}",
                self.blades.count()
            ));
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let Plan { blades, nodes, rack_nodes, scope, .. } = *self;
        Embedding::draw(blades, nodes, rack_nodes, scope, &mut rng)
    }
}

impl<'m> Replay<'m> {
    /// Embeds as many clusters of these machines as fit the network. If there are fewer traces than
    /// machines, they are assigned in turn.
    ///
    /// # Errors
    /// What was found and what is allowed: no or too many traces, no room for a cluster, or too few
    /// accesses per time, so that the run would be too long.
    pub fn draw(plan: &'m Plan, machines: &'m [Machine]) -> Result<Replay<'m>, String> {
        let embedding = plan.embedding(machines.len())?;
        let slots = plan.blades.machines();
        if machines.iter().any(Machine::has_peers) && !slots.is_multiple_of(machines.len() as u16) {
            return Err(format!(
                "a cluster of {} blades for {} machines with a network: must be a multiple of {}, \
                 so that every machine has its peers",
                plan.blades.count(),
                machines.len(),
                3 * machines.len()
            ));
        }
        let dealt = machines.iter().cycle().take(slots.into());
        let per_s = dealt.map(Machine::per_s).sum::<f64>() * f64::from(embedding.clusters());
        let duration_ps = plan.messages as f64 / per_s * 1e12;
        if duration_ps > DURATION_PS_MAX {
            return Err(format!(
                "{} accesses at {per_s} a second take over 26 days: must be fewer",
                plan.messages
            ));
        }
        let duration = Ps(duration_ps.max(1.0) as u64);
        Ok(Replay { plan, machines, embedding, duration })
    }

    /// Nodes of the clusters.
    #[must_use]
    pub fn embedding(&self) -> &Embedding {
        &self.embedding
    }

    /// Writes all messages as a Parquet trace of `sim`. Returns the load that they offer to links
    /// of this rate, and the flow of each message.
    ///
    /// # Errors
    /// [`WriteTraceError`] when the file cannot be written, or no access falls into the run.
    pub fn write(
        &self,
        path: &Path,
        link: BitsPerSecond,
    ) -> Result<(Offered, Flows), WriteTraceError> {
        let Plan { blades, arrivals, seed, nodes, .. } = *self.plan;
        let dealt = (0..blades.machines()).zip(self.machines.iter().cycle());
        let traced = self.machines.len() as u16;
        let source = |index, machine| arrivals.source(machine, blades, seed, (index, traced));
        let sources: Vec<Source<'_>> =
            dealt.map(|(index, machine)| source(index, machine)).collect();
        let mut streams = Vec::new();
        for cluster in 0..self.embedding.clusters() {
            for (machine, source) in (0_u16..).zip(&sources) {
                let own = mix(seed ^ mix((u64::from(cluster) << 16) | u64::from(machine)));
                streams.extend(source.streams(own).into_iter().map(|stream| (cluster, stream)));
            }
        }
        let mut messages = Messages {
            embedding: &self.embedding,
            end: self.duration,
            next: (0..).zip(&streams).map(|(at, s)| Reverse((s.1.next_at(), at))).collect(),
            streams,
            index: 0,
            tally: Tally::new(nodes),
            flows: Flows::default(),
        };
        let written = write_trace(&mut messages, path, TraceFormat::Parquet)?;
        if written == 0 {
            let problem = "no access falls into the run: must be more of them";
            return Err(SourceError(problem.to_owned()).into());
        }
        Ok((messages.tally.over(self.duration, link), messages.flows))
    }

    /// Caveats for readers of the results.
    #[must_use]
    pub fn notices(&self, offered: &Offered) -> Vec<String> {
        let mut notices: Vec<String> = offered.notice().into_iter().collect();
        let unrecorded: u64 = self.machines.iter().map(|machine| machine.unrecorded).sum();
        if unrecorded > 0 {
            notices.push(format!("{unrecorded} accesses of the programs are not in their traces"));
        }
        notices
    }
}

/// The flow of each message, by its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flows {
    /// The kind, and whether no thread waits for it.
    flows: Vec<(FlowKind, bool)>,
}

impl Flows {
    /// Kind of the message at `index`.
    ///
    /// # Panics
    /// When there is no such message.
    #[must_use]
    pub fn kind(&self, index: u64) -> FlowKind {
        self.flows[index as usize].0
    }

    /// True if no thread waits for the message at `index`.
    #[must_use]
    pub fn is_prefetched(&self, index: u64) -> bool {
        self.flows.get(index as usize).is_some_and(|flow| flow.1)
    }

    /// Number of messages for which no thread waits.
    #[must_use]
    pub fn prefetched(&self) -> u64 {
        self.flows.iter().filter(|flow| flow.1).count() as u64
    }
}

/// The accesses of all clusters in order of time.
struct Messages<'s> {
    embedding: &'s Embedding,
    end: Ps,
    /// Streams with their cluster.
    streams: Vec<(u16, Stream<'s>)>,
    /// Time of each stream's next access.
    next: BinaryHeap<Reverse<(Ps, usize)>>,
    index: u64,
    tally: Tally,
    flows: Flows,
}

impl MessageSource for Messages<'_> {
    fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
        let Some(Reverse((at, stream))) = self.next.pop() else { return Ok(None) };
        if at >= self.end {
            // The earliest is too late, and therefore all are.
            return Ok(None);
        }
        let (cluster, arrivals) = &mut self.streams[stream];
        let arrival = arrivals.take();
        self.next.push(Reverse((arrivals.next_at(), stream)));
        let (cluster, Ends { compute, target }) = (*cluster, arrival.ends);
        let (kind, memory) = match arrival.kind {
            FlowKind::Read => (Kind::Read, self.embedding.memory(cluster, target)),
            FlowKind::WriteBack => (Kind::Write, self.embedding.memory(cluster, target)),
            FlowKind::DiskRead => (Kind::Read, self.embedding.disk(cluster, target)),
            FlowKind::DiskWrite => (Kind::Write, self.embedding.disk(cluster, target)),
            FlowKind::Network => (Kind::Write, self.embedding.compute(cluster, target)),
        };
        let message = Message {
            index: self.index,
            arrival: arrival.at,
            kind,
            compute: self.embedding.compute(cluster, compute),
            memory,
            bytes: Bytes(arrival.bytes.into()),
        };
        self.flows.flows.push((arrival.kind, arrival.prefetched));
        self.index += 1;
        self.tally.add(&message);
        Ok(Some(message))
    }

    fn messages_total(&self) -> Option<u64> {
        None
    }
}
