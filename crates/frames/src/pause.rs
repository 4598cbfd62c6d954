//! Pausing of a link: a switch's record of the link's packets, and its threshold (IEEE 802.1Qbb).

/// The rank of packets in a class of their own, which pauses do not stop.
pub const UNPAUSED_RANK: u32 = 0;

/// The threshold at which a switch pauses a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// By the packets kept of this link only.
    Static {
        /// The link is paused when more bytes are kept.
        xoff_bytes: u64,
        /// The link resumes when at most this many bytes are kept.
        xon_bytes: u64,
    },
    /// By the free buffer, too. A link may have this multiple of the free part of the buffer that
    /// all links of the switch share (Choudhury and Hahne, 1998).
    Dynamic {
        /// The multiple of the free part.
        alpha: f64,
        /// The link resumes this many bytes below its threshold, once its headroom is empty.
        resume_bytes: u64,
    },
}

/// The buffer limits of a switch for one link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PauseLimits {
    /// The threshold at which the link is paused.
    pub threshold: Threshold,
    /// Bytes that may still arrive after the threshold was crossed.
    pub headroom_bytes: u64,
    /// If true, packets without room are dropped. If false, the headroom is guaranteed, and a run
    /// that needs more of it fails.
    pub drops: bool,
}

/// The result for a packet that has arrived at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The packet is kept, and its link continues or is already paused.
    Go,
    /// The packet is kept, and its link must pause now.
    Stop,
    /// There is no room for the packet.
    Refused,
}

/// The buffer that the links of one switch share, beside the headroom of each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SharedBuffer {
    size_bytes: u64,
    used_bytes: u64,
}

impl SharedBuffer {
    pub(crate) fn new(size_bytes: u64) -> SharedBuffer {
        SharedBuffer { size_bytes, used_bytes: 0 }
    }

    fn free_bytes(&self) -> u64 {
        self.size_bytes - self.used_bytes
    }

    /// Number of bytes that one link may have of it now.
    fn threshold_bytes(&self, alpha: f64) -> u64 {
        (self.free_bytes() as f64 * alpha) as u64
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.used_bytes == 0
    }
}

/// The packets that came through one link and are still in the switch behind it.
#[derive(Debug)]
pub(crate) struct Ingress {
    limits: PauseLimits,
    bytes: u64,
    /// Bytes in the headroom: with a dynamic threshold, bytes that arrived beyond it.
    over_bytes: u64,
    over_bytes_max: u64,
    paused: bool,
}

impl Ingress {
    pub(crate) fn new(limits: PauseLimits) -> Ingress {
        Ingress { limits, bytes: 0, over_bytes: 0, over_bytes_max: 0, paused: false }
    }

    /// Adds a packet that has arrived.
    #[inline]
    pub(crate) fn add(&mut self, bytes: u64, shared: &mut SharedBuffer) -> Verdict {
        let over = match self.limits.threshold {
            Threshold::Static { xoff_bytes, .. } => (self.bytes + bytes).saturating_sub(xoff_bytes),
            Threshold::Dynamic { alpha, .. } => {
                let own = self.bytes - self.over_bytes + bytes;
                let fits = own <= shared.threshold_bytes(alpha) && bytes <= shared.free_bytes();
                self.over_bytes + if fits { 0 } else { bytes }
            }
        };
        if over > self.limits.headroom_bytes && self.limits.drops {
            return Verdict::Refused;
        }
        let crosses = over > self.over_bytes;
        if let Threshold::Dynamic { .. } = self.limits.threshold {
            shared.used_bytes += if crosses { 0 } else { bytes };
        }
        self.bytes += bytes;
        self.over_bytes = over;
        self.over_bytes_max = self.over_bytes_max.max(over);
        let stop = crosses && !std::mem::replace(&mut self.paused, true);
        if stop { Verdict::Stop } else { Verdict::Go }
    }

    /// Removes a packet that has left, from the headroom first. Returns true if the link must
    /// resume now.
    #[inline]
    pub(crate) fn remove(&mut self, bytes: u64, shared: &mut SharedBuffer) -> bool {
        self.bytes -= bytes;
        let goes_on = match self.limits.threshold {
            Threshold::Static { xoff_bytes, xon_bytes } => {
                self.over_bytes = self.bytes.saturating_sub(xoff_bytes);
                self.bytes <= xon_bytes
            }
            Threshold::Dynamic { alpha, resume_bytes } => {
                let of_headroom = bytes.min(self.over_bytes);
                self.over_bytes -= of_headroom;
                shared.used_bytes -= bytes - of_headroom;
                let threshold = shared.threshold_bytes(alpha);
                self.bytes == 0 || (self.over_bytes == 0 && self.bytes + resume_bytes <= threshold)
            }
        };
        goes_on && std::mem::take(&mut self.paused)
    }

    /// Maximum bytes of the headroom that were ever used, and the headroom.
    pub(crate) fn headroom(&self) -> (u64, u64) {
        (self.over_bytes_max, self.limits.headroom_bytes)
    }

    /// True if no packet is kept and the link may send.
    pub(crate) fn is_idle(&self) -> bool {
        self.bytes == 0 && !self.paused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(threshold: Threshold, drops: bool) -> PauseLimits {
        PauseLimits { threshold, headroom_bytes: 200, drops }
    }

    const STATIC: Threshold = Threshold::Static { xoff_bytes: 300, xon_bytes: 100 };

    #[test]
    fn a_link_is_paused_once_over_xoff_and_goes_on_once_at_xon() {
        let (mut ingress, mut none) =
            (Ingress::new(limits(STATIC, false)), SharedBuffer::default());
        let added = [300, 1, 100, 99].map(|bytes| ingress.add(bytes, &mut none));
        assert_eq!(added, [Verdict::Go, Verdict::Stop, Verdict::Go, Verdict::Go]);
        assert_eq!((ingress.headroom(), ingress.is_idle()), ((200, 200), false));
        let removed = [399, 1, 50, 50].map(|bytes| ingress.remove(bytes, &mut none));
        assert_eq!(removed, [false, true, false, false]);
        assert!(ingress.is_idle());
        ingress.add(501, &mut none);
        assert_eq!(ingress.headroom(), (201, 200));
    }

    #[test]
    fn what_finds_no_headroom_is_refused_and_counted_nowhere() {
        let dynamic = Threshold::Dynamic { alpha: 1.0, resume_bytes: 0 };
        for threshold in [STATIC, dynamic] {
            let (mut ingress, mut shared) =
                (Ingress::new(limits(threshold, true)), SharedBuffer::new(600));
            let added = [300, 150, 51, 50].map(|bytes| ingress.add(bytes, &mut shared));
            assert_eq!(
                added,
                [Verdict::Go, Verdict::Stop, Verdict::Refused, Verdict::Go],
                "{threshold:?}"
            );
            assert_eq!((ingress.headroom(), ingress.bytes), ((200, 200), 500));
        }
    }

    /// Number of cells per link, filled in turn, before the first link is paused.
    fn cells_before_a_pause(links: usize, alpha: f64, size_bytes: u64) -> u64 {
        let threshold = Threshold::Dynamic { alpha, resume_bytes: 0 };
        let mut shared = SharedBuffer::new(size_bytes);
        let mut ingress: Vec<Ingress> =
            (0..links).map(|_| Ingress::new(limits(threshold, false))).collect();
        loop {
            for link in &mut ingress {
                if link.add(8, &mut shared) == Verdict::Stop {
                    return (link.bytes - link.over_bytes) / 8;
                }
            }
        }
    }

    #[test]
    fn each_of_n_links_gets_alpha_of_what_n_leave() {
        // If each link has q, then q = alpha (B - n q).
        const SIZE: u64 = 8_000_000;
        for alpha in [0.125, 1.0, 8.0] {
            for links in [1, 2, 7, 64] {
                let each = alpha * SIZE as f64 / (1.0 + links as f64 * alpha);
                let cells = cells_before_a_pause(links, alpha, SIZE) as f64;
                assert!((cells - each / 8.0).abs() <= 2.0, "{links} links, {alpha}: {cells} cells");
            }
        }
    }

    #[test]
    fn a_dynamic_threshold_lets_a_link_go_on_with_its_headroom_empty_and_room_below() {
        let threshold = Threshold::Dynamic { alpha: 0.5, resume_bytes: 40 };
        let mut shared = SharedBuffer::new(900);
        let (mut one, mut other) =
            (Ingress::new(limits(threshold, false)), Ingress::new(limits(threshold, false)));
        // The link gets 300 of 450, then 50 more of 300.
        assert_eq!(one.add(300, &mut shared), Verdict::Go);
        assert_eq!(one.add(50, &mut shared), Verdict::Stop);
        assert_eq!(other.add(200, &mut shared), Verdict::Go);
        // The first 50 bytes come from the headroom.
        assert!(!one.remove(50, &mut shared));
        assert_eq!((one.headroom(), shared.used_bytes), ((50, 200), 500));
        assert!(!one.remove(80, &mut shared), "220 of 240, less 40");
        assert!(!other.remove(200, &mut shared), "it was not paused");
        assert!(one.remove(10, &mut shared), "210 of 345, less 40");
        assert!(!one.remove(210, &mut shared) && one.is_idle() && shared.is_idle());
    }

    #[test]
    fn no_link_takes_more_than_is_free_and_an_empty_one_always_goes_on() {
        let threshold = Threshold::Dynamic { alpha: 8.0, resume_bytes: 1_000 };
        let mut shared = SharedBuffer::new(100);
        let mut ingress = Ingress::new(limits(threshold, false));
        assert_eq!(ingress.add(101, &mut shared), Verdict::Stop);
        assert!(shared.is_idle());
        assert!(ingress.remove(101, &mut shared) && ingress.is_idle());
    }
}
