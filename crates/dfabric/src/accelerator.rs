//! Numbers of the fabric: latencies, and cycles of the port's accelerator (Figure 7, Table 3).
//!
//! The paper publishes latencies and no cycles. Cycles marked *ours* are what a pipelined design of
//! each part takes at least; they are parameters, so that a study can vary them.

use ethermem_units::{Clock, Cycles, Ps};

/// Cycles of the parts of one port's accelerator (Figure 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceleratorCycles {
    /// Clock of the accelerator.
    pub clock: Clock,
    /// Coherence Controller: a request of another part goes out, or its response comes in. Ours:
    /// one cycle to arbitrate, one to register.
    pub coherence_controller: Cycles,
    /// Virt-Queue Manager: reads and writes the context of a queue. Ours: one access of on-chip
    /// memory, registered on either side.
    pub virt_queue_manager: Cycles,
    /// Dispatcher: looks up the destination and splits. Ours: one associative look-up, registered.
    pub dispatcher: Cycles,
    /// Processing Unit: translates a transaction descriptor to a NIC's. It is general-purpose, so
    /// it takes instructions. Ours: 32 of them, one a cycle.
    pub processing_unit: Cycles,
    /// Translation and check of an address by the mapping table. Ours: one access of on-chip
    /// memory, registered.
    pub mapping_table: Cycles,
    /// Reading a set's tags of the DRAM cache, and comparing. Ours: as the mapping table, and one
    /// cycle to compare.
    pub cache_tags: Cycles,
}

impl AcceleratorCycles {
    /// Our cycles, at the 250 MHz of an FPGA's fabric.
    #[must_use]
    pub const fn fpga() -> AcceleratorCycles {
        AcceleratorCycles {
            clock: Clock { period: Ps::from_ns(4) },
            coherence_controller: Cycles(2),
            virt_queue_manager: Cycles(3),
            dispatcher: Cycles(2),
            processing_unit: Cycles(32),
            mapping_table: Cycles(2),
            cache_tags: Cycles(3),
        }
    }

    /// Cycles from a loaded tail to the store of a descriptor into an RxQ (4.3).
    #[must_use]
    pub fn intra_rack(&self) -> Cycles {
        Cycles(
            2 * self.coherence_controller.0
                + 2 * self.virt_queue_manager.0
                + self.dispatcher.0
                + self.mapping_table.0,
        )
    }

    /// Cycles from a loaded tail to the store of a descriptor into a NIC's queue (4.4).
    #[must_use]
    pub fn to_nic(&self) -> Cycles {
        Cycles(
            2 * self.coherence_controller.0
                + self.virt_queue_manager.0
                + self.dispatcher.0
                + self.mapping_table.0
                + self.processing_unit.0,
        )
    }

    /// Cycles from a loaded completion to the store of a descriptor into an RxQ (4.4).
    #[must_use]
    pub fn from_nic(&self) -> Cycles {
        Cycles(
            2 * self.coherence_controller.0
                + self.virt_queue_manager.0
                + self.dispatcher.0
                + self.mapping_table.0
                + self.processing_unit.0,
        )
    }
}

/// Latencies of memory and of the way there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricLatencies {
    /// An access of the node's local memory.
    pub local: Ps,
    /// An access of remote memory, over one switch.
    pub remote: Ps,
    /// Each further level of switches, one way.
    pub switch_level: Ps,
    /// A hop of Ethernet.
    pub ethernet_hop: Ps,
}

impl FabricLatencies {
    /// The prototype (Table 3): local 650 ns, remote 6.5 us, 32.5 us a hop of Ethernet. The 70 ns a
    /// switch level are section 2.1's, after Pond.
    #[must_use]
    pub const fn prototype() -> FabricLatencies {
        FabricLatencies {
            local: Ps::from_ns(650),
            remote: Ps::from_ns(6_500),
            switch_level: Ps::from_ns(70),
            ethernet_hop: Ps::from_ns(32_500),
        }
    }

    /// Commercial devices: 170 to 250 ns for CXL memory (section 6.4), here the mean; local DDR5
    /// below 100 ns (Table 1); a hop of Ethernet five times CXL memory, the prototype's ratio
    /// (6.1).
    #[must_use]
    pub const fn commercial() -> FabricLatencies {
        FabricLatencies {
            local: Ps::from_ns(100),
            remote: Ps::from_ns(210),
            switch_level: Ps::from_ns(70),
            ethernet_hop: Ps::from_ns(1_050),
        }
    }

    /// An access of remote memory over so many levels of switches; 0 is the node's own.
    #[must_use]
    pub fn access(&self, levels: u32) -> Ps {
        match levels.checked_sub(1) {
            None => self.local,
            Some(further) => self.remote + Ps(2 * u64::from(further) * self.switch_level.0),
        }
    }

    /// Time in which a node loads so many lines one behind the other, with at most `loads_max` of
    /// them under way: a bound from latency alone (challenge C2).
    ///
    /// # Panics
    /// If no load may be under way.
    #[must_use]
    pub fn copy(&self, lines: u64, levels: u32, loads_max: u32) -> Ps {
        Ps(lines.div_ceil(u64::from(loads_max)) * self.access(levels).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prototype_has_the_papers_ratios() {
        let latencies = FabricLatencies::prototype();
        assert_eq!(latencies.remote.0, 10 * latencies.local.0, "6.1: 1 to 10");
        assert_eq!(latencies.ethernet_hop.0, 5 * latencies.remote.0, "6.1: 5 to 1");
        assert_eq!(latencies.access(0), Ps::from_ns(650));
        // Two more levels, 70 ns each, there and back.
        assert_eq!(latencies.access(3), Ps::from_ns(6_500 + 280));
    }

    /// 4 KB are 64 lines: one round of 64 loads, 6.5 us, so 630 MB/s; with one load under way 64
    /// rounds.
    #[test]
    fn a_copy_takes_rounds_of_the_latency() {
        let latencies = FabricLatencies::prototype();
        assert_eq!(latencies.copy(64, 1, 64), Ps::from_ns(6_500));
        assert_eq!(latencies.copy(65, 1, 64), Ps::from_ns(13_000));
        assert_eq!(latencies.copy(64, 1, 1), Ps::from_ns(416_000));
    }

    #[test]
    fn ways_through_the_accelerator_are_sums_of_their_parts() {
        let cycles = AcceleratorCycles::fpga();
        assert_eq!(cycles.intra_rack(), Cycles(2 * 2 + 2 * 3 + 2 + 2));
        assert_eq!(cycles.to_nic(), Cycles(2 * 2 + 3 + 2 + 2 + 32));
        assert_eq!(cycles.from_nic(), cycles.to_nic());
        assert_eq!(cycles.clock.duration(cycles.intra_rack()), Ps::from_ns(56));
    }
}
