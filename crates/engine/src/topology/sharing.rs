//! How memory traffic shares a transmitter with Ethernet frames.

use ethermem_edm::Arbitration;

use crate::config::{Background, FrameArbitration};

/// Which of memory and frames goes first, and where a frame in flight yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    pub(super) turns: Arbitration,
    pub(super) cut: Cut,
}

/// Where a frame in flight yields to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// After any block: memory travels in the PHY (EDM, section 3.2.3).
    Block,
    /// Between two fragments, each of which is a frame of its own (IEEE 802.3br, clause 99).
    Fragment,
    /// At its end.
    End,
}

impl Sharing {
    /// Memory in the PHY, which cuts a frame at any block.
    #[must_use]
    pub const fn in_phy(turns: Arbitration) -> Sharing {
        Sharing { turns, cut: Cut::Block }
    }

    /// Memory in frames of its own, which cannot be preempted unless the background says so.
    #[must_use]
    pub const fn of_frames(background: &Background) -> Sharing {
        match background.arbitration {
            FrameArbitration::Fair => Sharing { turns: Arbitration::Fair, cut: Cut::End },
            FrameArbitration::Strict => Sharing { turns: Arbitration::Strict, cut: Cut::End },
            FrameArbitration::Preemptive => {
                Sharing { turns: Arbitration::Strict, cut: Cut::Fragment }
            }
        }
    }
}
