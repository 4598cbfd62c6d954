//! DCTCP: TCP that cuts its window by the share of marked packets (SIGCOMM 2010, RFC 8257).

mod config;

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::PortKind;
use ethermem_frames::{
    Congestion, ConnectionConfig, DropTail, PacketFabric, RenoConfig, Sender, Stream,
};
use ethermem_units::Bytes;

pub use config::DctcpConfig;

/// DCTCP on the packet network.
pub type Dctcp = PacketFabric<Stream<Marks>>;

/// DCTCP's reaction to marks.
pub struct Marks(DctcpConfig);

/// The estimate of a flow's marks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    alpha: f64,
    acked: u32,
    marked: u32,
    /// The window that is being counted ends with this packet.
    window_end: u32,
    /// The next cut comes only after all packets before this one are acknowledged.
    cut_end: u32,
}

impl Congestion for Marks {
    type State = Estimate;
    type Parameters = DctcpConfig;

    fn new(config: &FabricConfig) -> Marks {
        Marks(*config.of::<DctcpConfig>())
    }

    fn reno(&self) -> &RenoConfig {
        &self.0.reno
    }

    fn connections(config: &FabricConfig) -> ConnectionConfig {
        config.of::<DctcpConfig>().connections
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.of::<DctcpConfig>().header
    }

    fn queue(&self, kind: PortKind) -> DropTail {
        match kind {
            // A host's flows wait in its memory.
            PortKind::HostUp => DropTail::ENDLESS,
            _ => DropTail { limit_bytes: self.0.buffer.0, mark_bytes: self.0.ecn_threshold.0 },
        }
    }

    fn begin(&self, sender: &Sender) -> Estimate {
        let window_end = sender.window() as u32;
        Estimate { alpha: self.0.alpha_initial, window_end, ..Estimate::default() }
    }

    #[inline]
    fn acknowledged(
        &self,
        state: &mut Estimate,
        sender: &mut Sender,
        newly: u32,
        marked: bool,
    ) -> bool {
        state.acked += newly;
        state.marked += if marked { newly } else { 0 };
        if sender.acked() >= state.window_end && state.acked > 0 {
            let share = f64::from(state.marked) / f64::from(state.acked);
            state.alpha += self.0.gain * (share - state.alpha);
            (state.acked, state.marked, state.window_end) = (0, 0, sender.next());
        }
        // A loss is handled as in TCP, and is the only reaction to its window (RFC 8257, 3.4).
        if sender.recovering() {
            state.cut_end = sender.sent_end() + 1;
            return false;
        }
        let cut = marked && sender.acked() >= state.cut_end;
        if cut {
            sender.cut(1.0 - state.alpha / 2.0, f64::from(self.0.window_packets_min));
            state.cut_end = sender.next();
        }
        cut
    }

    fn timed_out(&self, state: &mut Estimate, sender: &Sender) {
        state.cut_end = sender.sent_end() + 1;
    }
}

#[cfg(test)]
mod tests {
    use ethermem_units::Ps;

    use super::*;

    #[test]
    fn the_window_is_cut_once_a_window_by_half_the_marked_share() {
        let config = DctcpConfig { alpha_initial: 0.5, ..DctcpConfig::default() };
        let marks = Marks(config);
        let mut sender = Sender::new(100, &config.reno);
        while sender.take(Ps(0)).is_some() {}
        let mut state = marks.begin(&sender);
        let mut ack = |sender: &mut Sender, number: u32, marked| {
            let newly = sender.acknowledge(number, Ps(0), &config.reno).newly;
            let cut = marks.acknowledged(&mut state, sender, newly, marked);
            (cut, sender.window(), state.alpha)
        };
        assert_eq!(ack(&mut sender, 1, false), (false, 10.0, 0.5));
        assert_eq!(ack(&mut sender, 2, true), (true, 7.5, 0.5));
        for number in 3..10 {
            assert_eq!(ack(&mut sender, number, true), (false, 7.5, 0.5), "{number}");
        }
        // In the first window nine of ten packets were marked; the next cut uses the new share.
        let alpha = 0.5 + (0.9 - 0.5) / 16.0;
        assert_eq!(ack(&mut sender, 10, true), (true, 7.5 * (1.0 - alpha / 2.0), alpha));
    }

    #[test]
    fn a_loss_is_the_one_reaction_to_its_window() {
        let config = DctcpConfig { alpha_initial: 0.1, ..DctcpConfig::default() };
        let marks = Marks(config);
        let mut sender = Sender::new(100, &config.reno);
        while sender.take(Ps(0)).is_some() {}
        let mut state = marks.begin(&sender);
        let mut ack = |sender: &mut Sender, number: u32| {
            let newly = sender.acknowledge(number, Ps(0), &config.reno).newly;
            (marks.acknowledged(&mut state, sender, newly, true), sender.window())
        };
        // The first of ten packets is lost: the window is half of them, and a packet for each that
        // arrived.
        for duplicate in 1..3 {
            assert!(ack(&mut sender, 0).1 > 9.0, "{duplicate}");
        }
        assert_eq!(ack(&mut sender, 0), (false, 8.0));
        assert_eq!(ack(&mut sender, 0), (false, 9.0));
        assert_eq!(ack(&mut sender, 10), (false, 5.0), "recovered, marks of its window are void");
        while sender.take(Ps(0)).is_some() {}
        assert!(ack(&mut sender, 11).0, "those of the next one are not");
    }
}
