//! The memory pool against a model: any sequence of operations, deaths and losses. A failure prints
//! the operations; `PROPTEST_CASES=2000 cargo test -p ethermem-dfabric --test pool` runs more.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use ethermem_dfabric::address::{Node, SectionId};
use ethermem_dfabric::mapping::AccessFault;
use ethermem_dfabric::pool::{
    Granted, MemoryPool, PoolConfig, PoolError, Preference, Protection, SkbRef,
};
use ethermem_placement::{NodeId, Section};
use ethermem_units::Bytes;
use ethermem_wire::dfabric::{FabricAddress, SECTION_BYTES};
use proptest::prelude::*;

const NODES: u16 = 4;
const DEVICES: u16 = 3;

fn config(protection: Protection) -> PoolConfig {
    PoolConfig {
        nodes_max: NODES,
        // Few Buffers to a Section, so that Sections fill, empty and move.
        class_bytes: vec![1 << 19, 1 << 20],
        holds_max: 24,
        skbs_max: 6,
        regions_max: 7,
        sections_kept: 1,
        buffers_low: 2,
        protection,
    }
}

/// What an operation is chosen from: its kind, and three numbers that choose its objects.
type Choice = (u8, u16, u16, u16);

struct World {
    pool: MemoryPool,
    protection: Protection,
    /// References by Buffer and node.
    model: BTreeMap<(FabricAddress, Node), u32>,
    bytes: BTreeMap<FabricAddress, u64>,
    skbs: Vec<(SkbRef, Node, FabricAddress)>,
    stale: Vec<SkbRef>,
    /// Those whose data a lost device had.
    lost: Vec<SkbRef>,
    /// By place: the owner, with its incarnation, that may have written there.
    written: BTreeMap<Section, (Node, u32)>,
    incarnation: [u32; NODES as usize],
}

impl World {
    fn new(protection: Protection) -> World {
        let mut pool = MemoryPool::new(&config(protection)).unwrap();
        (0..DEVICES).for_each(|device| pool.add_device(NodeId(device), 4).unwrap());
        for node in 0..NODES {
            pool.join(Node(node), 5, &[NodeId(node % DEVICES)]).unwrap();
        }
        World {
            pool,
            protection,
            model: BTreeMap::new(),
            bytes: BTreeMap::new(),
            skbs: Vec::new(),
            stale: Vec::new(),
            lost: Vec::new(),
            written: BTreeMap::new(),
            incarnation: [1; NODES as usize],
        }
    }

    fn held(&self, choice: u16) -> Option<(FabricAddress, Node)> {
        let at = usize::from(choice).checked_rem(self.model.len())?;
        self.model.keys().nth(at).copied()
    }

    fn add(&mut self, buffer: FabricAddress, node: Node) {
        *self.model.entry((buffer, node)).or_insert(0) += 1;
    }

    fn take(&mut self, buffer: FabricAddress, node: Node) -> bool {
        let count = self.model.get_mut(&(buffer, node)).unwrap();
        *count -= 1;
        let ended = *count == 0;
        if ended {
            self.model.remove(&(buffer, node));
        }
        ended
    }

    fn is_held(&self, buffer: FabricAddress) -> bool {
        self.model.keys().any(|(held, _)| *held == buffer)
    }

    /// A node gets a Section: no byte of its last owner may be there.
    fn enter(&mut self, node: Node, granted: Granted) {
        let owner = (node, self.incarnation[usize::from(node.0)]);
        let last = self.written.insert(granted.place, owner);
        let is_others = last.is_some_and(|last| last != owner);
        assert!(granted.must_clear || !is_others, "{granted:?} shows bytes of {last:?}");
    }

    fn alloc(&mut self, node: Node, size: u16, device: u16) {
        let size = Bytes(1 + u64::from(size) * 17);
        let preference = match device % 4 {
            3 => Preference::Near,
            device => Preference::Device(NodeId(device)),
        };
        let mut got = self.pool.alloc_shared_buffer(node, size, preference);
        if let Err(PoolError::NoBuffer { class, .. }) = got
            && let Ok(granted) = self.pool.grant(node, class, preference)
        {
            self.enter(node, granted);
            got = self.pool.alloc_shared_buffer(node, size, preference);
        }
        let Ok(buffer) = got else { return };
        assert!(!self.is_held(buffer), "{buffer:?} was given twice");
        assert!(self.pool.may_write(node, buffer));
        self.bytes.insert(buffer, if size.0 <= 1 << 19 { 1 << 19 } else { 1 << 20 });
        self.add(buffer, node);
    }

    /// The daemon asks in advance: what it gets, it does not give back at once.
    fn supply(&mut self, node: Node) {
        let Some(class) = self.pool.shortage(node) else { return };
        let Ok(granted) = self.pool.grant(node, class, Preference::Near) else { return };
        self.enter(node, granted);
        assert_ne!(self.pool.surplus(node), Some(granted.section));
        assert_ne!(self.pool.shortage(node), Some(class));
    }

    fn free_skb(&mut self, choice: u16, by: Node) {
        if self.skbs.is_empty() {
            return;
        }
        let at = usize::from(choice) % self.skbs.len();
        let (skb, node, buffer) = self.skbs[at];
        if by != node && choice.is_multiple_of(2) {
            assert_eq!(self.pool.kfree_shared_skb(by, skb), Err(PoolError::StaleSkb));
            return;
        }
        let was_held = self.model.contains_key(&(buffer, node));
        let is_lost = self.lost.contains(&skb);
        assert_eq!(self.pool.skb(skb).unwrap().data.is_none(), is_lost);
        let freed = self.pool.kfree_shared_skb(node, skb);
        self.skbs.swap_remove(at);
        self.stale.push(skb);
        if is_lost {
            assert_eq!(freed, Ok(None));
        } else if was_held {
            let ended = self.take(buffer, node);
            let freed = freed.unwrap().unwrap();
            assert_eq!((freed.flush, freed.is_free), (ended, !self.is_held(buffer)));
        } else {
            assert!(freed.is_err(), "wrapped twice, held once");
        }
    }

    fn die(&mut self, node: Node) {
        let expected: u32 =
            self.model.iter().filter(|((_, holder), _)| *holder == node).map(|(_, n)| *n).sum();
        let Ok(left) = self.pool.node_died(node) else { return };
        assert_eq!(left.references, u64::from(expected));
        self.model.retain(|(_, holder), _| *holder != node);
        let dead = self.skbs.iter().filter(|skb| skb.1 == node).map(|skb| skb.0);
        self.stale.extend(dead);
        self.skbs.retain(|skb| skb.1 != node);
        let size = Bytes(64);
        let late = self.pool.alloc_shared_buffer(node, size, Preference::Near);
        assert_eq!(late, Err(PoolError::NoSuchNode(node.0)));
    }

    fn lose(&mut self, device: NodeId) {
        let on = |pool: &MemoryPool, buffer| pool.device_of(buffer) == Some(device);
        let before = self.model.clone();
        let lost: u64 = before
            .iter()
            .filter(|((b, _), _)| on(&self.pool, *b))
            .map(|(_, n)| u64::from(*n))
            .sum();
        let is_lost: Vec<_> = before.keys().filter(|(b, _)| on(&self.pool, *b)).copied().collect();
        let skbs = self.skbs.iter().filter(|skb| on(&self.pool, skb.2)).map(|skb| skb.0);
        let skbs: Vec<_> = skbs.collect();
        let Ok(losses) = self.pool.device_lost(device) else { return };
        self.lost.extend(skbs);
        assert_eq!(losses.references, lost);
        for (buffer, node) in is_lost {
            self.model.remove(&(buffer, node));
            let access = self.pool.check_access(node, buffer, 64);
            assert_eq!(access, Err(AccessFault::NotMapped(buffer.number())));
        }
        self.written.retain(|place, _| place.node != device);
        // It comes back with empty memory.
        self.pool.add_device(device, 4).unwrap();
    }

    fn pass(&mut self, choice: u16, to: Node) {
        let Some((buffer, from)) = self.held(choice) else { return };
        match self.pool.pass(from, to, buffer, 64) {
            Ok(passed) if from != to => {
                assert_eq!(passed.flush, self.take(buffer, from));
                self.add(buffer, to);
                assert!(self.pool.check_access(to, buffer, 64).is_ok());
            }
            Ok(passed) => assert!(!passed.flush),
            Err(PoolError::NoSuchNode(node)) => assert_eq!(node, to.0),
            Err(error) => assert_eq!(error, PoolError::NoReference),
        }
    }

    fn step(&mut self, (kind, a, b, c): Choice) {
        let (node, other) = (Node(a % NODES), Node(b % NODES));
        match kind % 16 {
            0..=4 => self.alloc(node, b, c),
            5..=7 => self.pass(c, node),
            8 => {
                let Some((buffer, holder)) = self.held(c) else { return };
                if self.pool.retain(holder, buffer).is_ok() {
                    self.add(buffer, holder);
                }
            }
            9 | 10 => {
                let Some((buffer, holder)) = self.held(c) else { return };
                let freed = self.pool.release(holder, buffer).unwrap();
                assert_eq!(freed.flush, self.take(buffer, holder));
                assert_eq!(freed.is_free, !self.is_held(buffer));
            }
            11 => {
                let Some((buffer, holder)) = self.held(c) else { return };
                if let Ok(skb) = self.pool.build_shared_skb(holder, buffer, 64) {
                    self.skbs.push((skb, holder, buffer));
                }
            }
            12 => self.free_skb(c, other),
            13 if c % 4 == 0 => self.die(node),
            13 if c % 4 == 1 => self.lose(NodeId(b % DEVICES)),
            13 => {
                if self.pool.join(node, 5, &[NodeId(node.0 % DEVICES)]).is_ok() {
                    self.incarnation[usize::from(node.0)] += 1;
                }
            }
            14 if c.is_multiple_of(2) => self.supply(node),
            14 => {
                if let Some(section) = self.pool.surplus(node) {
                    self.pool.give_back(node, section).unwrap();
                }
            }
            _ => while self.pool.take_orphan().is_some() {},
        }
    }

    /// Another node's reference, an old `sk_buf`, an address between: refused, and nothing changes.
    fn attack(&mut self, (_, a, b, c): Choice) {
        let (node, byte) = (Node(a % (NODES + 1)), u64::from(b) * 4096 + u64::from(c) % 4096);
        let Some((buffer, _)) = self.held(b) else { return };
        if !self.model.contains_key(&(buffer, node)) {
            assert!(self.pool.pass(node, Node(0), buffer, 1).is_err());
            assert!(self.pool.release(node, buffer).is_err());
            assert!(self.pool.build_shared_skb(node, buffer, 1).is_err());
        }
        if let Some(&skb) = self.stale.last() {
            let late = self.pool.kfree_shared_skb(node, skb);
            assert_eq!(late, Err(PoolError::StaleSkb));
        }
        let address = FabricAddress::new(byte % (4 << 30)).unwrap();
        let section = SectionId::of(address);
        let access = self.pool.check_access(node, address, 64);
        let holds_in = |range: &dyn Fn(FabricAddress) -> bool| {
            self.model.keys().any(|&(held, holder)| holder == node && range(held))
        };
        let in_section = holds_in(&|held| SectionId::of(held) == section);
        let in_buffer = holds_in(&|held| {
            let end = held.number() + self.bytes[&held];
            held <= address && address.number() + 64 <= end
        });
        match self.protection {
            Protection::Buffer => assert_eq!(access.is_ok(), in_buffer, "{address:?}"),
            Protection::Section if access.is_ok() => {
                let owns = self.pool.table(node).unwrap().place(section).is_some();
                assert!(in_section || owns);
            }
            Protection::Section => {
                let crosses = address.number() % SECTION_BYTES + 64 > SECTION_BYTES;
                assert!(crosses || !in_section);
            }
        }
    }

    fn compare(&self) {
        self.pool.check();
        let accounts = self.pool.accounts();
        let references: u64 = self.model.values().map(|count| u64::from(*count)).sum();
        assert_eq!((accounts.references, accounts.holds), (references, self.model.len() as u64));
        assert_eq!(accounts.sections, u64::from(4 * DEVICES));
        for node in (0..NODES).map(Node) {
            let mut held: Vec<_> = self.pool.references_of(node).collect();
            held.sort_unstable();
            let model = self.model.iter().filter(|((_, holder), _)| *holder == node);
            let model: Vec<_> = model.map(|((buffer, _), count)| (*buffer, *count)).collect();
            assert_eq!(held, model, "{node:?}");
        }
    }

    /// All nodes end, and everything is where it began.
    fn end(mut self) {
        for node in (0..NODES).map(Node) {
            let _ = self.pool.node_died(node);
        }
        while self.pool.take_orphan().is_some() {}
        self.pool.check();
        let accounts = self.pool.accounts();
        assert_eq!((accounts.granted_bytes, accounts.references, accounts.skbs), (0, 0, 0));
        assert_eq!((accounts.orphans, accounts.sections), (0, u64::from(4 * DEVICES)));
    }
}

proptest! {
    #[test]
    fn accounts_close_after_any_operations_deaths_and_losses(
        is_fine in any::<bool>(),
        choices in proptest::collection::vec(any::<Choice>(), 1..80),
    ) {
        let protection = if is_fine { Protection::Buffer } else { Protection::Section };
        let mut world = World::new(protection);
        for choice in choices {
            world.step(choice);
            world.attack(choice);
            world.compare();
        }
        world.end();
    }
}

/// A neighbour's Buffer of the same Section, the end of one's own, a range that wraps: refused.
/// With protection by Section, as in the paper, the neighbour's bytes of the same Section are
/// readable.
#[test]
fn no_access_leaves_the_buffer() {
    for protection in [Protection::Buffer, Protection::Section] {
        let mut pool = MemoryPool::new(&config(protection)).unwrap();
        pool.add_device(NodeId(0), 4).unwrap();
        (0..2).for_each(|node| pool.join(Node(node), 4, &[]).unwrap());
        pool.grant(Node(0), 0, Preference::Near).unwrap();
        let size = 1_u64 << 19;
        let [first, second] = [(); 2]
            .map(|()| pool.alloc_shared_buffer(Node(0), Bytes(size), Preference::Near).unwrap());
        assert_eq!(first.number() + size, second.number());
        let crosses = PoolError::Crosses { address: first.number(), length: size + 1, bytes: size };
        assert_eq!(pool.pass(Node(0), Node(1), first, size as u32 + 1), Err(crosses));
        assert_eq!(pool.build_shared_skb(Node(0), first, size as u32 + 1), Err(crosses));
        pool.pass(Node(0), Node(1), first, size as u32).unwrap();
        let end = FabricAddress::new(second.number() - 64).unwrap();
        let is_paper = protection == Protection::Section;
        for (address, length, fits) in [
            (first, size, true),
            (end, 64, true),
            (end, 65, is_paper),
            (second, 1, is_paper),
            (first, 2 * size, is_paper),
            (first, u64::MAX, false),
            (first, SECTION_BYTES + 1, false),
        ] {
            let access = pool.check_access(Node(1), address, length);
            assert_eq!(access.is_ok(), fits, "{protection:?} {address:?} {length}");
        }
        // The owner gave its reference away; only the paper lets it in.
        assert_eq!(pool.check_access(Node(0), first, 64).is_ok(), is_paper);
        assert!(pool.check_access(Node(2), first, 64).is_err());
    }
}
