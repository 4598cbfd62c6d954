//! A program by its name and its parameters, as scenarios give it.

use ethermem_units::{Bytes, Ps};

use super::applications::{KeyValue, Shuffle, Supersteps};
use super::collectives::{
    BroadcastShape, all_to_all, broadcast, gather, hierarchical_allreduce, ring_allreduce,
};
use super::graph::{Program, ProgramError};
use crate::NodeIndex;

/// The algorithm of a program, without the number of its nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Algorithm {
    /// [`ring_allreduce`].
    RingAllreduce,
    /// [`hierarchical_allreduce`].
    HierarchicalAllreduce {
        /// Groups of equally many nodes.
        groups: u16,
    },
    /// [`all_to_all`].
    AllToAll,
    /// [`gather`].
    Gather {
        /// The receiver.
        root: NodeIndex,
    },
    /// [`broadcast`].
    Broadcast {
        /// The first sender.
        root: NodeIndex,
        /// Which node sends to which.
        shape: BroadcastShape,
    },
    /// [`Supersteps`].
    Supersteps,
    /// [`Shuffle`], with reducers behind the mappers.
    Shuffle {
        /// Nodes that map.
        mappers: u16,
        /// A reducer's computation.
        reduce: Ps,
        /// Bytes of a message.
        message_bytes: Bytes,
        /// Messages of a mapper to a reducer that are under way at once.
        in_flight: u32,
    },
    /// [`KeyValue`], with servers behind the clients.
    KeyValue {
        /// Nodes that ask.
        clients: u16,
        /// Requests of a client.
        requests: u32,
        /// Requests of a client that are under way at once.
        in_flight: u32,
        /// Share of reads.
        reads: f64,
        /// A client's computation between an answer and the next request.
        think: Ps,
    },
}

/// A program on any number of nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramConfig {
    /// What it does.
    pub algorithm: Algorithm,
    /// Bytes: of the vector of an allreduce, of a value, or else from a node to another one.
    pub bytes: Bytes,
    /// How often it is done.
    pub iterations: u32,
    /// Computation of a node before each iteration, of a mapper, or of a server for a request.
    pub compute: Ps,
}

/// The size of a program, known before it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramSize {
    /// Number of messages.
    pub messages: u64,
    /// Number of computations.
    pub computations: u64,
}

impl ProgramSize {
    /// Number of steps.
    #[must_use]
    pub fn steps(self) -> u64 {
        self.messages.saturating_add(self.computations)
    }
}

impl ProgramConfig {
    /// The name in scenarios and results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.algorithm {
            Algorithm::RingAllreduce => "ring-allreduce",
            Algorithm::HierarchicalAllreduce { .. } => "hierarchical-allreduce",
            Algorithm::AllToAll => "all-to-all",
            Algorithm::Gather { .. } => "gather",
            Algorithm::Broadcast { .. } => "broadcast",
            Algorithm::Supersteps => "supersteps",
            Algorithm::Shuffle { .. } => "shuffle",
            Algorithm::KeyValue { .. } => "key-value",
        }
    }

    /// The graph on so many nodes; the seed draws what is random in it.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub fn program(&self, nodes: u16, seed: u64) -> Result<Program, ProgramError> {
        let (bytes, compute) = (self.bytes, self.compute);
        let once = match self.algorithm {
            Algorithm::RingAllreduce => ring_allreduce(nodes, bytes),
            Algorithm::HierarchicalAllreduce { groups } => {
                if groups == 0 || !nodes.is_multiple_of(groups) {
                    let (name, value) = ("groups", groups.into());
                    let must_be = "a divisor of the number of nodes";
                    return Err(ProgramError::Parameter { name, value, must_be });
                }
                hierarchical_allreduce(groups, nodes / groups, bytes)
            }
            Algorithm::AllToAll => all_to_all(nodes, bytes),
            Algorithm::Gather { root } => gather(nodes, root, bytes),
            Algorithm::Broadcast { root, shape } => broadcast(nodes, root, bytes, shape),
            Algorithm::Supersteps => {
                let supersteps = self.iterations;
                return Supersteps { nodes, supersteps, compute, bytes }.program();
            }
            Algorithm::Shuffle { mappers, reduce, message_bytes, in_flight } => {
                let reducers = nodes.saturating_sub(mappers);
                let map = compute;
                let shuffle =
                    Shuffle { mappers, reducers, map, reduce, bytes, message_bytes, in_flight };
                return shuffle.program()?.repeated(self.iterations, Ps::ZERO);
            }
            Algorithm::KeyValue { clients, requests, in_flight, reads, think } => {
                let servers = nodes.saturating_sub(clients);
                let (value_bytes, serve) = (bytes, compute);
                let store = KeyValue {
                    clients,
                    servers,
                    requests,
                    in_flight,
                    value_bytes,
                    reads,
                    serve,
                    think,
                };
                return store.program(seed);
            }
        };
        once?.repeated(self.iterations, compute)
    }

    /// The size of the graph on so many nodes.
    #[must_use]
    pub fn size(&self, nodes: u16) -> ProgramSize {
        let all = u64::from(nodes);
        let others = all.saturating_sub(1);
        let (messages, computations) = match self.algorithm {
            Algorithm::RingAllreduce => (2 * others * all, 0),
            Algorithm::HierarchicalAllreduce { groups } => {
                let groups = u64::from(groups.max(1));
                // Two rings in every group, and two over the groups for each rank.
                (2 * all * (all / groups).saturating_sub(1) + 2 * all * (groups - 1), 0)
            }
            Algorithm::AllToAll => (all * others, 0),
            Algorithm::Gather { .. } | Algorithm::Broadcast { .. } => (others, 0),
            Algorithm::Supersteps => {
                let supersteps = u64::from(self.iterations);
                let messages = (all * others).saturating_mul(supersteps);
                return ProgramSize { messages, computations: all.saturating_mul(supersteps) };
            }
            Algorithm::Shuffle { mappers, message_bytes, .. } => {
                let mappers = u64::from(mappers);
                let flows = mappers * all.saturating_sub(mappers);
                let messages = self.bytes.0.div_ceil(message_bytes.0.max(1));
                (flows.saturating_mul(messages), all)
            }
            Algorithm::KeyValue { clients, requests, .. } => {
                let requests = u64::from(clients) * u64::from(requests);
                return ProgramSize { messages: requests, computations: 2 * requests };
            }
        };
        let has_own = matches!(self.algorithm, Algorithm::Shuffle { .. });
        let is_plain = self.iterations == 1 && (has_own || self.compute == Ps::ZERO);
        let times = u64::from(self.iterations);
        let between = if is_plain { 0 } else { all };
        ProgramSize {
            messages: messages.saturating_mul(times),
            computations: (computations + between).saturating_mul(times),
        }
    }

    /// Bytes of the largest message on so many nodes.
    #[must_use]
    pub fn message_bytes_max(&self, nodes: u16) -> Bytes {
        let all = u64::from(nodes.max(1));
        Bytes(match self.algorithm {
            Algorithm::RingAllreduce => self.bytes.0.div_ceil(all),
            Algorithm::HierarchicalAllreduce { groups } => {
                let groups = u64::from(groups.max(1));
                // A group's chunk is its parts of the vector; the first parts get the rest.
                let (part, rest) = (self.bytes.0 / all, self.bytes.0 % all);
                part * groups + rest.min(groups)
            }
            Algorithm::Shuffle { message_bytes, .. } => message_bytes.0.min(self.bytes.0),
            _ => self.bytes.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::graph::Work;
    use super::*;

    fn algorithms() -> impl Strategy<Value = Algorithm> {
        let shape = prop_oneof![Just(BroadcastShape::Flat), Just(BroadcastShape::Tree)];
        let shuffle = (1..12_u16, 1..500_u64, 1..5_u32, 0..9_u64);
        let store = (1..12_u16, 0..50_u32, 1..5_u32, 0.0..=1.0_f64, 0..9_u64);
        prop_oneof![
            Just(Algorithm::RingAllreduce),
            prop::sample::select(&[2_u16, 3, 4, 6][..])
                .prop_map(|groups| Algorithm::HierarchicalAllreduce { groups }),
            Just(Algorithm::AllToAll),
            (0..12_u16).prop_map(|root| Algorithm::Gather { root }),
            (0..12_u16, shape).prop_map(|(root, shape)| Algorithm::Broadcast { root, shape }),
            Just(Algorithm::Supersteps),
            shuffle.prop_map(|(mappers, bytes, in_flight, reduce)| Algorithm::Shuffle {
                mappers,
                reduce: Ps(reduce),
                message_bytes: Bytes(bytes),
                in_flight,
            }),
            store.prop_map(|(clients, requests, in_flight, reads, think)| Algorithm::KeyValue {
                clients,
                requests,
                in_flight,
                reads,
                think: Ps(think),
            }),
        ]
    }

    proptest! {
        #![proptest_config(crate::property::cases(128))]

        #[test]
        fn the_size_is_that_of_the_graph(
            algorithm in algorithms(),
            bytes in 12..2000_u64,
            iterations in 1..4_u32,
            compute in 0..2_u64,
            seed in any::<u64>(),
        ) {
            let (bytes, compute) = (Bytes(bytes), Ps(compute));
            let config = ProgramConfig { algorithm, bytes, iterations, compute };
            // Twelve nodes: each parameter above fits them, but for a program without servers or
            // reducers.
            let program = match config.program(12, seed) {
                Ok(program) => program,
                Err(error) => return Err(TestCaseError::fail(format!("{config:?}: {error}"))),
            };
            let is_message = |work: &Work| work.moves().is_some();
            let works: Vec<_> = program.steps().iter().map(|step| step.work).collect();
            let messages = works.iter().filter(|work| is_message(work)).count() as u64;
            let size = config.size(12);
            prop_assert_eq!((size.messages, size.steps()), (messages, works.len() as u64));
            let largest = works.iter().filter_map(Work::moves).map(|(.., b)| b).max();
            let most = config.message_bytes_max(12);
            prop_assert!(largest.is_none_or(|largest| largest == most), "{largest:?} {most:?}");
        }
    }

    #[test]
    fn sizes_without_end_do_not_overflow() {
        let algorithm = Algorithm::KeyValue {
            clients: u16::MAX,
            requests: u32::MAX,
            in_flight: 1,
            reads: 0.5,
            think: Ps(0),
        };
        let most = |algorithm| ProgramConfig {
            algorithm,
            bytes: Bytes(u64::MAX),
            iterations: u32::MAX,
            compute: Ps(1),
        };
        assert!(most(algorithm).size(u16::MAX).steps() > 1 << 40);
        let shuffle = Algorithm::Shuffle {
            mappers: 1000,
            reduce: Ps(0),
            message_bytes: Bytes(1),
            in_flight: 1,
        };
        assert_eq!(most(shuffle).size(u16::MAX).steps(), u64::MAX);
        assert!(most(Algorithm::Supersteps).size(u16::MAX).steps() > 1 << 60);
    }
}
