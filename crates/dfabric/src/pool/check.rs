//! The accounts of a pool, and its invariants.

use std::collections::BTreeSet;

use ethermem_wire::dfabric::SECTION_BYTES;

use super::MemoryPool;
use super::ledger::NONE;
use super::sections::{Granted, Located, Region};
use crate::address::{Node, REGION_SECTIONS, RegionId, SectionId};

/// What is where. All sums close: granted bytes are free or held bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Sections of the devices.
    pub sections: u64,
    /// Sections that are granted.
    pub sections_granted: u64,
    /// Bytes of granted Sections.
    pub granted_bytes: u64,
    /// Bytes of free Buffers.
    pub free_bytes: u64,
    /// Bytes of Buffers that are held.
    pub held_bytes: u64,
    /// References of all nodes.
    pub references: u64,
    /// Pairs of a Buffer and its holder.
    pub holds: u64,
    /// `sk_buf` objects.
    pub skbs: u64,
    /// Sections of dead nodes.
    pub orphans: u64,
}

impl MemoryPool {
    fn all_granted(&self) -> impl Iterator<Item = (SectionId, &Region, &Granted)> {
        let regions = self.regions.iter().enumerate();
        regions.filter_map(|(at, region)| Some((at, region.as_ref()?))).flat_map(|(at, region)| {
            let slots = (0..).zip(&region.sections);
            slots.filter_map(move |(slot, section)| {
                let id = SectionId::of_region(RegionId(at as u32), slot);
                Some((id, region, section.as_ref()?))
            })
        })
    }

    /// True if one more node can hold a Buffer that others hold, too.
    #[must_use]
    pub fn has_reference(&self) -> bool {
        !self.ledger.is_full()
    }

    /// Counts everything that the pool has.
    #[must_use]
    pub fn accounts(&self) -> Accounts {
        let mut accounts = Accounts {
            skbs: u64::from(self.skbs.in_use()),
            holds: u64::from(self.ledger.in_use()),
            ..Accounts::default()
        };
        let free: u64 = (self.devices.iter().flatten())
            .filter_map(|&device| self.placement.free_sections(device))
            .map(u64::from)
            .sum();
        for (_, region, granted) in self.all_granted() {
            accounts.sections_granted += 1;
            accounts.orphans += u64::from(region.owner.is_none());
            accounts.granted_bytes += SECTION_BYTES;
            for buffer in &granted.buffers {
                match buffer.is_free {
                    true => accounts.free_bytes += region.buffer_bytes,
                    false => accounts.held_bytes += region.buffer_bytes,
                }
            }
        }
        accounts.sections = free + accounts.sections_granted;
        for node in 0..self.nodes.len() as u16 {
            let held = self.ledger.all_of(Node(node));
            accounts.references += held.map(|(_, count)| u64::from(count)).sum::<u64>();
        }
        accounts
    }

    /// Asserts the invariants of the page `docs/internals/dfabric.md`. For tests, and for the end
    /// of every run.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        self.placement.check();
        let accounts = self.accounts();
        assert_eq!(accounts.free_bytes + accounts.held_bytes, accounts.granted_bytes);
        let mut holds = 0;
        for (section, region, granted) in self.all_granted() {
            holds += self.check_section(section, region, granted);
        }
        assert_eq!(holds, accounts.holds, "holds of Buffers that are not granted");
        self.check_tables();
        for node in (0..self.nodes.len() as u16).map(Node) {
            self.check_lists(node);
        }
        for skb in self.skbs.all() {
            let node = skb.node;
            assert!(self.is_there(node), "an sk_buf of a dead node: {skb:?}");
        }
    }

    fn check_section(&self, section: SectionId, region: &Region, granted: &Granted) -> u64 {
        let owner = super::control::owner_id(section.region());
        let place = self.placement.locate(owner, section.slot());
        assert_eq!(place, Some(granted.place), "{section:?} is elsewhere in the placement");
        assert_eq!(granted.free_listed(), granted.free as usize, "free Buffers of {section:?}");
        let mut holds = 0;
        for (at, buffer) in (0..).zip(&granted.buffers) {
            let located = Located { section, at, bytes: region.buffer_bytes };
            if buffer.is_free {
                continue;
            }
            assert_ne!(buffer.link, NONE, "a Buffer of {section:?} is neither free nor held");
            for (holder, count) in self.ledger.holders(buffer.link) {
                assert!(count > 0 && self.is_there(holder), "{holder:?} holds {located:?}");
                holds += 1;
            }
        }
        holds
    }

    /// A table has what its node owns or holds, and nothing else.
    fn check_tables(&self) {
        for node in (0..self.nodes.len() as u16).map(Node) {
            let member = &self.nodes[usize::from(node.0)];
            let mut held = BTreeSet::new();
            for (buffer, _) in self.ledger.all_of(node) {
                assert!(held.insert(buffer), "{node:?} has two holds of {buffer:?}");
            }
            for region in 0..self.regions.len() as u32 {
                for slot in 0..REGION_SECTIONS {
                    let section = SectionId::of_region(RegionId(region), slot);
                    let end = section.address(SECTION_BYTES - 1);
                    let count = held.range(section.address(0)..=end).count();
                    assert_eq!(member.table.held(section), count as u32, "{node:?} {section:?}");
                    let owns = self.owner_of(section).is_some_and(|(owner, _)| owner == node);
                    let granted = self.granted(section).filter(|_| owns || count > 0);
                    let place = granted.map(|granted| granted.place);
                    assert_eq!(member.table.place(section), place, "{node:?} {section:?}");
                }
            }
        }
    }

    fn check_lists(&self, node: Node) {
        let member = &self.nodes[usize::from(node.0)];
        let mut sections = 0;
        let mut with_free = BTreeSet::new();
        for (section, region, granted) in self.all_granted() {
            if region.owner == Some(node) {
                sections += 1;
                if granted.free > 0 {
                    with_free.insert((region.class, granted.device, section));
                }
            }
        }
        assert_eq!(member.sections, sections, "Sections of {node:?}");
        let by_class = member.classes.iter().map(|class| class.sections);
        assert_eq!(by_class.sum::<u32>(), sections, "Sections of the classes of {node:?}");
        let mut listed = BTreeSet::new();
        for (number, class) in member.classes.iter().enumerate() {
            let mut free = 0;
            for (device, &head) in class.heads.iter().enumerate() {
                for section in self.listed(head) {
                    free += self.granted(section).map_or(0, |granted| u64::from(granted.free));
                    assert!(
                        listed.insert((number, device, section)),
                        "{section:?} is listed twice"
                    );
                }
            }
            assert_eq!(class.free, free, "free Buffers of class {number} of {node:?}");
        }
        assert_eq!(listed, with_free, "lists of {node:?}");
    }
}
