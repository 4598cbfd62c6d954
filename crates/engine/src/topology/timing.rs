//! The time that a link and the standard parts at its ends take.

use ethermem_units::{Clock, Cycles, Ps};

use crate::config::FabricConfig;

/// Cycles of one pass through the MAC of a host or a switch port: 7.68 ns on the testbed.
pub const MAC: Cycles = Cycles(3);
/// Cycles of one pass through the PCS of a standard PHY with its MAC interface: 7.68 ns on the
/// testbed.
pub const STANDARD_PCS: Cycles = Cycles(3);

/// The clock and the fixed delays of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTiming {
    /// The PCS clock.
    pub pcs: Clock,
    /// Delay of PMA, PMD and transceiver at one end of a link.
    pub transceiver: Ps,
    /// One-way propagation of one link.
    pub propagation: Ps,
}

impl LinkTiming {
    /// The timing of a fabric's links to its nodes.
    #[must_use]
    pub fn of(config: &FabricConfig) -> LinkTiming {
        LinkTiming {
            pcs: Clock { period: config.pcs_clock },
            transceiver: config.transceiver,
            propagation: config.propagation,
        }
    }

    /// The time of `cycles` of the PCS clock.
    #[must_use]
    pub fn cycles(&self, cycles: Cycles) -> Ps {
        self.pcs.duration(cycles)
    }

    /// Time from the transmitter of one node to the receiver at the other end of a link, whose PCS
    /// takes `pcs` per pass.
    #[must_use]
    pub fn hop(&self, pcs: Cycles) -> Ps {
        self.cycles(pcs) * 2 + self.transceiver * 2 + self.propagation
    }
}
