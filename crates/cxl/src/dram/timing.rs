//! Timing parameters of DDR4.

use ethermem_units::Ps;

/// Least times between commands, by their names in JESD79-4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// ACT to READ or WRITE of its bank.
    pub rcd: Ps,
    /// PRE to ACT of its bank.
    pub rp: Ps,
    /// ACT to PRE of its bank.
    pub ras: Ps,
    /// READ to its data.
    pub cl: Ps,
    /// WRITE to its data.
    pub cwl: Ps,
    /// Data of one burst: four clocks.
    pub burst: Ps,
    /// READ to READ, or WRITE to WRITE, of different bank groups.
    pub ccd_s: Ps,
    /// The same within a bank group.
    pub ccd_l: Ps,
    /// ACT to ACT of different bank groups.
    pub rrd_s: Ps,
    /// ACT to ACT within a bank group.
    pub rrd_l: Ps,
    /// Four ACTs, and no more, within this time.
    pub faw: Ps,
    /// End of written data to READ, in another bank group.
    pub wtr_s: Ps,
    /// The same within the bank group.
    pub wtr_l: Ps,
    /// Between read and written data: the bus turns round, two clocks.
    pub turn: Ps,
    /// READ to PRE of its bank.
    pub rtp: Ps,
    /// End of written data to PRE of its bank.
    pub wr: Ps,
    /// Between two refreshes.
    pub refi: Ps,
    /// A refresh.
    pub rfc: Ps,
}

impl Timing {
    /// DDR4-2400 of speed bin T (17-17-17), devices of 8 Gb and 8 bits: JESD79-4, and Micron's data
    /// sheet of MT40A1G8 (-083). A clock is 833 ps; numbers of clocks are rounded up to whole ones.
    #[must_use]
    pub const fn ddr4_2400() -> Timing {
        const CLOCK_PS: u64 = 833;
        const fn clocks(count: u64) -> Ps {
            Ps(CLOCK_PS * count)
        }
        Timing {
            rcd: Ps(14_160),
            rp: Ps(14_160),
            ras: Ps(32_000),
            cl: Ps(14_160),
            cwl: clocks(12),
            burst: clocks(4),
            ccd_s: clocks(4),
            ccd_l: clocks(6),
            rrd_s: clocks(4),
            rrd_l: Ps(4_900),
            faw: Ps(21_000),
            wtr_s: Ps(2_500),
            wtr_l: Ps(7_500),
            turn: clocks(2),
            rtp: Ps(7_500),
            wr: Ps(15_000),
            refi: Ps(7_800_000),
            rfc: Ps(350_000),
        }
    }
}
