//! How memory traffic shares a transmitter with Ethernet frames.

use ethermem_edm::Arbitration;

use crate::config::{Background, FrameArbitration};

/// Precedence between memory and frames, and the place where a frame in flight yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    pub(super) turns: Arbitration,
    pub(super) cut: Cut,
}

/// The place where a frame in flight yields to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The frame yields after any block: memory travels in the PHY (EDM, section 3.2.3).
    Block,
    /// The frame yields between two fragments, each a frame of its own (IEEE 802.3br, clause 99).
    Fragment,
    /// The frame yields at its end.
    End,
}

impl Sharing {
    /// Sharing by memory in the PHY, which cuts a frame at any block.
    #[must_use]
    pub const fn in_phy(turns: Arbitration) -> Sharing {
        Sharing { turns, cut: Cut::Block }
    }

    /// Sharing by memory in frames of its own. Other frames are preempted only if the background
    /// says so.
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
