//! Applications as programs: supersteps of a graph, a shuffle, clients of a key-value store.

use ethermem_units::{Bytes, Ps};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::graph::{Builder, Program, ProgramError, Step, StepId, Work};
use crate::pattern::unit;
use crate::{Kind, NodeIndex};

/// Bulk-synchronous supersteps: each node computes, then sends its part of the result to every
/// other one, and goes on when all of theirs have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supersteps {
    /// Nodes of the program.
    pub nodes: u16,
    /// Number of supersteps: 12 of the paper's PageRank (DFabric, 6.2).
    pub supersteps: u32,
    /// A node's computation in each.
    pub compute: Ps,
    /// Bytes from each node to each other one, in each.
    pub bytes: Bytes,
}

impl Supersteps {
    /// The program.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub fn program(&self) -> Result<Program, ProgramError> {
        if self.nodes < 2 {
            return Err(ProgramError::Nodes { has: self.nodes.into(), least: 2 });
        }
        let mut builder = Builder::new(self.nodes);
        let mut received: Vec<Vec<StepId>> = vec![Vec::new(); usize::from(self.nodes)];
        for superstep in 0..self.supersteps {
            let mut next = vec![Vec::new(); usize::from(self.nodes)];
            for from in 0..self.nodes {
                let waits = &received[usize::from(from)];
                let computed = builder.compute(from, self.compute, superstep, waits)?;
                next[usize::from(from)].push(computed);
                for to in (0..self.nodes).filter(|&to| to != from) {
                    let sent = builder.send(from, to, self.bytes, superstep, &[computed])?;
                    next[usize::from(to)].push(sent);
                }
            }
            received = next;
        }
        Ok(builder.build())
    }
}

/// A shuffle: mappers compute, then send what they have to reducers, in messages of which a few are
/// under way at once. Three to one is the paper's WordCount (DFabric, 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle {
    /// Nodes that map: 0 to `mappers - 1`.
    pub mappers: u16,
    /// Nodes that reduce: those behind.
    pub reducers: u16,
    /// A mapper's computation.
    pub map: Ps,
    /// A reducer's computation, once it has everything.
    pub reduce: Ps,
    /// Bytes from each mapper to each reducer.
    pub bytes: Bytes,
    /// Bytes of a message; the last one has the rest.
    pub message_bytes: Bytes,
    /// Messages of a mapper to a reducer that are under way at once.
    pub in_flight: u32,
}

impl Shuffle {
    /// The program.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub fn program(&self) -> Result<Program, ProgramError> {
        let must_be = "at least 1";
        for (name, value) in [
            ("mappers", u64::from(self.mappers)),
            ("reducers", u64::from(self.reducers)),
            ("message_bytes", self.message_bytes.0),
            ("in_flight", u64::from(self.in_flight)),
        ] {
            if value == 0 {
                return Err(ProgramError::Parameter { name, value, must_be });
            }
        }
        let nodes = self.mappers.checked_add(self.reducers).ok_or(ProgramError::TooLarge)?;
        let mut builder = Builder::new(nodes);
        let mapped: Vec<_> = (0..self.mappers)
            .map(|mapper| builder.compute(mapper, self.map, 0, &[]))
            .collect::<Result<_, _>>()?;
        for reducer in self.mappers..nodes {
            let mut all = Vec::new();
            for (mapper, &mapped) in (0..).zip(&mapped) {
                self.flow(&mut builder, mapper, reducer, mapped, &mut all)?;
            }
            builder.compute(reducer, self.reduce, 0, &all)?;
        }
        Ok(builder.build())
    }

    fn flow(
        &self,
        builder: &mut Builder,
        mapper: NodeIndex,
        reducer: NodeIndex,
        mapped: StepId,
        all: &mut Vec<StepId>,
    ) -> Result<(), ProgramError> {
        let first = all.len();
        let count = self.bytes.0.div_ceil(self.message_bytes.0);
        for number in 0..count {
            let sent_before = number * self.message_bytes.0;
            let bytes = Bytes(self.message_bytes.0.min(self.bytes.0 - sent_before));
            let before = number.checked_sub(u64::from(self.in_flight));
            let waits = before.map_or(mapped, |before| all[first + before as usize]);
            all.push(builder.send(mapper, reducer, bytes, number as u32, &[waits])?);
        }
        Ok(())
    }
}

/// Clients of a key-value store: each has a few requests under way, and sends the next when one is
/// answered. A key is on the server that its hash says, so a request goes to any with the same
/// probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyValue {
    /// Nodes that ask: 0 to `clients - 1`.
    pub clients: u16,
    /// Nodes that answer: those behind.
    pub servers: u16,
    /// Requests of each client.
    pub requests: u32,
    /// Requests of a client that are under way at once.
    pub in_flight: u32,
    /// Bytes of a value.
    pub value_bytes: Bytes,
    /// Share of reads, 0 to 1. memtier's default is 10 reads to 1 write.
    pub reads: f64,
    /// A server's computation for each request.
    pub serve: Ps,
    /// A client's computation between an answer and the request that it allows.
    pub think: Ps,
}

impl KeyValue {
    /// The program; the seed says which request goes where.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub fn program(&self, seed: u64) -> Result<Program, ProgramError> {
        let must_be = "at least 1";
        for (name, value) in [
            ("clients", u64::from(self.clients)),
            ("servers", u64::from(self.servers)),
            ("in_flight", u64::from(self.in_flight)),
        ] {
            if value == 0 {
                return Err(ProgramError::Parameter { name, value, must_be });
            }
        }
        if !(0.0..=1.0).contains(&self.reads) {
            let (name, value, must_be) = ("reads", self.reads as u64, "a share from 0 to 1");
            return Err(ProgramError::Parameter { name, value, must_be });
        }
        let nodes = self.clients.checked_add(self.servers).ok_or(ProgramError::TooLarge)?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut builder = Builder::new(nodes);
        for client in 0..self.clients {
            let mut answers: Vec<StepId> = Vec::new();
            for request in 0..self.requests {
                let server = self.clients + self.server(&mut random);
                let before = request.checked_sub(self.in_flight);
                let answer = before.map(|before| answers[before as usize]);
                let thought = builder.compute(client, self.think, request, answer.as_slice())?;
                let served = builder.compute(server, self.serve, request, &[thought])?;
                let is_read = unit(random.next_u64()) < self.reads;
                let kind = if is_read { Kind::Read } else { Kind::Write };
                let (compute, memory, bytes) = (client, server, self.value_bytes);
                let work = Work::Message { kind, compute, memory, bytes };
                answers.push(builder.add(Step { work, tag: request }, &[served])?);
            }
        }
        Ok(builder.build())
    }

    fn server(&self, random: &mut Xoshiro256PlusPlus) -> u16 {
        (random.next_u64() % u64::from(self.servers)) as u16
    }
}
