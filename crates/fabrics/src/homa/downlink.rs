//! A receiver's link, as the receiver sees it: when it was last idle.
//!
//! Switches serve strict priorities, so a packet may wait for as long as more urgent ones come.
//! Once the link was idle, all that its switch had by then has arrived: what is still missing is
//! lost, or was not sent.

use ethermem_units::Ps;

/// The arrivals on one link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Downlink {
    /// The time at which a packet last arrived whole.
    arrived: Ps,
    /// A time at which the link was idle.
    idle: Ps,
}

impl Downlink {
    /// Records a packet that is whole. Packets without a gap are whole at most a full packet's time
    /// after the one before.
    pub(super) fn arrive(&mut self, now: Ps, packet_time: Ps) {
        self.idle = self.last_idle(now, packet_time);
        self.arrived = now;
    }

    /// The last time at which the link is known to have been idle.
    pub(super) fn last_idle(&self, now: Ps, packet_time: Ps) -> Ps {
        if now > self.arrived + packet_time { now - packet_time } else { self.idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_idle_between_packets_that_are_too_far_apart() {
        const TIME: Ps = Ps(100);
        let mut link = Downlink::default();
        link.arrive(Ps(1_000), TIME);
        assert_eq!(link.last_idle(Ps(1_100), TIME), Ps(900));
        // Two full packets and a short one behind each other, then a gap of 50.
        for at in [1_100, 1_200, 1_210] {
            link.arrive(Ps(at), TIME);
            assert_eq!(link.last_idle(Ps(at), TIME), Ps(900));
        }
        link.arrive(Ps(1_360), TIME);
        assert_eq!(link.last_idle(Ps(1_360), TIME), Ps(1_260));
        assert_eq!(link.last_idle(Ps(1_461), TIME), Ps(1_361));
    }
}
