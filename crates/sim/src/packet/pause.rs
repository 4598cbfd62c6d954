//! Pausing a link: what a switch keeps of its packets, and when it says stop (IEEE 802.1Qbb).

/// Packets of this rank are of a class of their own, which no pause stops.
pub const UNPAUSED_RANK: u32 = 0;

/// What a switch allows the packets of one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseLimits {
    /// More than this kept, and the link is paused.
    pub xoff_bytes: u64,
    /// No more than this kept, and it goes on.
    pub xon_bytes: u64,
    /// What may still come after the threshold was crossed.
    pub headroom_bytes: u64,
}

/// The packets that came through one link and are still in the switch behind it.
#[derive(Debug)]
pub(crate) struct Ingress {
    limits: PauseLimits,
    bytes: u64,
    bytes_max: u64,
    paused: bool,
}

impl Ingress {
    pub(crate) fn new(limits: PauseLimits) -> Ingress {
        Ingress { limits, bytes: 0, bytes_max: 0, paused: false }
    }

    /// A packet has come; true when the link is to stop now.
    #[inline]
    pub(crate) fn add(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        self.bytes_max = self.bytes_max.max(self.bytes);
        self.bytes > self.limits.xoff_bytes && !std::mem::replace(&mut self.paused, true)
    }

    /// A packet has left; true when the link is to go on now.
    #[inline]
    pub(crate) fn remove(&mut self, bytes: u64) -> bool {
        self.bytes -= bytes;
        self.bytes <= self.limits.xon_bytes && std::mem::take(&mut self.paused)
    }

    /// The most that it ever kept, where its buffer has no room for that.
    pub(crate) fn overflow(&self) -> Option<(u64, u64)> {
        let room = self.limits.xoff_bytes + self.limits.headroom_bytes;
        (self.bytes_max > room).then_some((self.bytes_max, room))
    }

    /// Nothing is kept and the link may send.
    pub(crate) fn is_idle(&self) -> bool {
        self.bytes == 0 && !self.paused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_paused_once_over_xoff_and_goes_on_once_at_xon() {
        let limits = PauseLimits { xoff_bytes: 300, xon_bytes: 100, headroom_bytes: 200 };
        let mut ingress = Ingress::new(limits);
        let added: Vec<bool> = [300, 1, 100, 99].map(|bytes| ingress.add(bytes)).into();
        assert_eq!(added, [false, true, false, false]);
        assert_eq!((ingress.overflow(), ingress.is_idle()), (None, false));
        let removed: Vec<bool> = [399, 1, 50, 50].map(|bytes| ingress.remove(bytes)).into();
        assert_eq!(removed, [false, true, false, false]);
        assert!(ingress.is_idle());
        ingress.add(501);
        assert_eq!(ingress.overflow(), Some((501, 500)));
    }
}
