//! Collectives of data-parallel training.
//!
//! A message's tag is the chunk that it carries. Ring allreduce is Patarasuk and Yuan's ("Bandwidth
//! optimal all-reduce algorithms for clusters of workstations", 2009), as Gloo and NCCL have it.

use ethermem_units::Bytes;

use super::graph::{Builder, Program, ProgramError, StepId};
use crate::NodeIndex;

/// How a broadcast goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BroadcastShape {
    /// The root sends to each node.
    Flat,
    /// A binomial tree: each node that has the data sends it on.
    Tree,
}

/// Bytes of a chunk, of so many; the first ones get the rest.
fn chunk_bytes(bytes: Bytes, chunks: u32, chunk: u32) -> Bytes {
    let (whole, rest) = (bytes.0 / u64::from(chunks), bytes.0 % u64::from(chunks));
    Bytes(whole + u64::from(u64::from(chunk) < rest))
}

fn at_least_two(nodes: u16) -> Result<(), ProgramError> {
    if nodes < 2 { Err(ProgramError::Nodes { has: nodes.into(), least: 2 }) } else { Ok(()) }
}

fn at_least(name: &'static str, bytes: Bytes, least: u64) -> Result<(), ProgramError> {
    let must_be = "at least 1 B for each node's chunk";
    match bytes.0 < least {
        true => Err(ProgramError::Parameter { name, value: bytes.0, must_be }),
        false => Ok(()),
    }
}

/// Rounds of a ring: in each, every member sends a chunk to the next one. A member sends in a round
/// what it received in the round before. `first_chunk` is what the first member sends first.
struct Ring<'a> {
    members: &'a [NodeIndex],
    /// What each chunk of the ring has: its tag and its bytes.
    chunks: &'a [(u32, Bytes)],
    /// The chunk that member `i` sends first is `i + offset`.
    offset: usize,
}

impl Ring<'_> {
    /// Adds `members - 1` rounds. A member waits for `own` in each round, and for `ready` in the
    /// first; `ready` then has what it received last. Returns all that each member received.
    fn add(&self, builder: &mut Builder, own: &Waits, ready: &mut Waits) -> AddedRounds {
        let count = self.members.len();
        let mut all = vec![Vec::new(); count];
        for round in 0..count - 1 {
            let mut received = vec![Vec::new(); count];
            for (at, &from) in self.members.iter().enumerate() {
                let next = (at + 1) % count;
                let (tag, bytes) = self.chunks[(at + self.offset + count - round) % count];
                let after = [ready[at].as_slice(), own[at].as_slice()].concat();
                let sent = builder.send(from, self.members[next], bytes, tag, &after)?;
                received[next].push(sent);
                all[next].push(sent);
            }
            *ready = received;
        }
        Ok(all)
    }
}

/// By member of a ring: the steps that it waits for.
type Waits = Vec<Vec<StepId>>;
type AddedRounds = Result<Waits, ProgramError>;

/// Every node ends with the sum of all nodes' vectors of `bytes`: a ring reduces and scatters, and
/// then gathers.
///
/// # Errors
/// [`ProgramError`] with fewer than two nodes, or less than a byte a node.
pub fn ring_allreduce(nodes: u16, bytes: Bytes) -> Result<Program, ProgramError> {
    at_least_two(nodes)?;
    at_least("bytes", bytes, nodes.into())?;
    let count = u32::from(nodes);
    let members: Vec<_> = (0..nodes).collect();
    let chunks: Vec<_> =
        (0..count).map(|chunk| (chunk, chunk_bytes(bytes, count, chunk))).collect();
    let mut builder = Builder::new(nodes);
    let none: Waits = vec![Vec::new(); members.len()];
    let mut ready = none.clone();
    // After the first part, member i has chunk i + 1 whole, and sends it first in the second.
    for offset in [0, 1] {
        let ring = Ring { members: &members, chunks: &chunks, offset };
        ring.add(&mut builder, &none, &mut ready)?;
    }
    Ok(builder.build())
}

/// Every node ends with a part of the sum of all nodes' vectors of `bytes`: the first half of
/// [`ring_allreduce`].
///
/// # Errors
/// The errors of [`ring_allreduce`].
pub fn ring_reduce_scatter(nodes: u16, bytes: Bytes) -> Result<Program, ProgramError> {
    at_least_two(nodes)?;
    at_least("bytes", bytes, nodes.into())?;
    let count = u32::from(nodes);
    half_ring(nodes, |chunk| chunk_bytes(bytes, count, chunk))
}

/// Every node ends with `bytes` of each node: the second half of [`ring_allreduce`].
///
/// # Errors
/// [`ProgramError`] with fewer than two nodes, or without data.
pub fn ring_all_gather(nodes: u16, bytes: Bytes) -> Result<Program, ProgramError> {
    at_least_two(nodes)?;
    half_ring(nodes, |_| bytes)
}

fn half_ring(nodes: u16, bytes: impl Fn(u32) -> Bytes) -> Result<Program, ProgramError> {
    let members: Vec<_> = (0..nodes).collect();
    let chunks: Vec<_> = (0..u32::from(nodes)).map(|chunk| (chunk, bytes(chunk))).collect();
    let none: Waits = vec![Vec::new(); members.len()];
    let mut builder = Builder::new(nodes);
    let ring = Ring { members: &members, chunks: &chunks, offset: 0 };
    ring.add(&mut builder, &none, &mut none.clone())?;
    Ok(builder.build())
}

/// As [`ring_allreduce`], for groups of nodes with faster links inside, as racks are: reduce and
/// scatter in each group, allreduce of each chunk over the groups, gather in each group. Nodes of a
/// group follow each other.
///
/// # Errors
/// [`ProgramError`] with fewer than two groups or two nodes a group, or less than a byte a node.
pub fn hierarchical_allreduce(
    groups: u16,
    group_nodes: u16,
    bytes: Bytes,
) -> Result<Program, ProgramError> {
    at_least_two(groups)?;
    at_least_two(group_nodes)?;
    let nodes = groups.checked_mul(group_nodes).ok_or(ProgramError::TooLarge)?;
    at_least("bytes", bytes, nodes.into())?;
    let (all, parts) = (u32::from(nodes), u32::from(groups));
    // Chunk c of a group is parts c * groups to c * groups + groups - 1 of the vector.
    let part = |chunk: u32, part: u32| chunk_bytes(bytes, all, chunk * parts + part);
    let whole = |chunk: u32| Bytes((0..parts).map(|one| part(chunk, one).0).sum());
    let tag = |chunk: u32| chunk * parts;
    let chunks: Vec<_> =
        (0..u32::from(group_nodes)).map(|chunk| (tag(chunk), whole(chunk))).collect();
    let mut builder = Builder::new(nodes);
    let all_nodes: Vec<NodeIndex> = (0..nodes).collect();
    let width = usize::from(group_nodes);
    let none: Waits = vec![Vec::new(); width];
    let mut ready: Waits = Vec::new();
    for members in all_nodes.chunks(width) {
        let mut of_group = none.clone();
        let ring = Ring { members, chunks: &chunks, offset: 0 };
        ring.add(&mut builder, &none, &mut of_group)?;
        ready.extend(of_group);
    }
    for rank in 0..group_nodes {
        // Member i of a group has chunk i + 1 whole.
        let chunk = u32::from((rank + 1) % group_nodes);
        let members: Vec<_> = (0..groups).map(|group| group * group_nodes + rank).collect();
        let of_chunk: Vec<_> = (0..parts).map(|one| (tag(chunk) + one, part(chunk, one))).collect();
        let waits = over_groups(&mut builder, &members, &of_chunk, &ready)?;
        for (&node, waits) in members.iter().zip(waits) {
            ready[usize::from(node)] = waits;
        }
    }
    for (members, ready) in all_nodes.chunks(width).zip(ready.chunks(width)) {
        let ring = Ring { members, chunks: &chunks, offset: 1 };
        ring.add(&mut builder, &none, &mut ready.to_vec())?;
    }
    Ok(builder.build())
}

/// An allreduce of one chunk over the groups: a member adds its group's sum, which it has when what
/// it is `ready` for has ended. Returns what each member waits for until it has all parts.
fn over_groups(
    builder: &mut Builder,
    members: &[NodeIndex],
    chunks: &[(u32, Bytes)],
    ready: &[Vec<StepId>],
) -> AddedRounds {
    let own: Waits = members.iter().map(|&node| ready[usize::from(node)].clone()).collect();
    let mut last = own.clone();
    Ring { members, chunks, offset: 0 }.add(builder, &own, &mut last)?;
    let mut waits = last.clone();
    let gathered = Ring { members, chunks, offset: 1 }.add(builder, &own, &mut last)?;
    for ((waits, gathered), own) in waits.iter_mut().zip(gathered).zip(own) {
        waits.extend(gathered);
        waits.extend(own);
    }
    Ok(waits)
}

/// Every node sends `bytes` to every other one, by rounds of a pairwise exchange: in round r to the
/// node r places on, after its message and the one to it of the round before.
///
/// # Errors
/// [`ProgramError`] with fewer than two nodes, or without data.
pub fn all_to_all(nodes: u16, bytes: Bytes) -> Result<Program, ProgramError> {
    at_least_two(nodes)?;
    let mut builder = Builder::new(nodes);
    let mut ready = vec![Vec::new(); usize::from(nodes)];
    for round in 1..nodes {
        let mut next = vec![Vec::new(); usize::from(nodes)];
        for from in 0..nodes {
            let to = ((u32::from(from) + u32::from(round)) % u32::from(nodes)) as NodeIndex;
            let tag = u32::from(from);
            let sent = builder.send(from, to, bytes, tag, &ready[usize::from(from)])?;
            next[usize::from(from)].push(sent);
            next[usize::from(to)].push(sent);
        }
        ready = next;
    }
    Ok(builder.build())
}

/// Every node sends `bytes` to the root, all at once.
///
/// # Errors
/// [`ProgramError`] with fewer than two nodes, without data, or without such a root.
pub fn gather(nodes: u16, root: NodeIndex, bytes: Bytes) -> Result<Program, ProgramError> {
    at_least_two(nodes)?;
    let mut builder = Builder::new(nodes);
    for from in (0..nodes).filter(|&from| from != root) {
        builder.send(from, root, bytes, u32::from(from), &[])?;
    }
    Ok(builder.build())
}

/// The root's `bytes` reach every node.
///
/// # Errors
/// [`ProgramError`] with fewer than two nodes, without data, or without such a root.
pub fn broadcast(
    nodes: u16,
    root: NodeIndex,
    bytes: Bytes,
    shape: BroadcastShape,
) -> Result<Program, ProgramError> {
    at_least_two(nodes)?;
    if root >= nodes {
        return Err(ProgramError::NoSuchNode { node: root, nodes });
    }
    let count = u32::from(nodes);
    let node = |rank: u32| ((u32::from(root) + rank) % count) as NodeIndex;
    let mut builder = Builder::new(nodes);
    let mut received: Vec<Vec<StepId>> = vec![Vec::new(); usize::from(nodes)];
    for rank in 1..count {
        // In the tree, a rank gets the data from the rank without its highest bit.
        let from = match shape {
            BroadcastShape::Flat => 0,
            BroadcastShape::Tree => rank - (1 << rank.ilog2()),
        };
        let sent = builder.send(node(from), node(rank), bytes, 0, &received[from as usize])?;
        received[rank as usize].push(sent);
    }
    Ok(builder.build())
}
