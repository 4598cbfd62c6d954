//! The epochs of a host's clock: a matching, then the sending of its result, during which the next
//! matching runs.

use ethermem_units::Ps;

use super::DcpimConfig;

/// The durations, equal for all hosts. An epoch's matching begins when the previous epoch has been
/// sending for the duration of a sending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epochs {
    rounds: u32,
    round: Ps,
    sending: Ps,
}

/// The actions of a receiver at one of its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    /// The epoch whose matching ends now.
    pub(super) ends: Option<u32>,
    /// The epoch and round that begin now.
    pub(super) begins: Option<(u32, u32)>,
}

impl Epochs {
    /// Epochs on a network where a packet without data and its answer take `round_trip`.
    pub(super) fn new(config: &DcpimConfig, round_trip: Ps) -> Epochs {
        let round = Ps((round_trip.0 as f64 * config.slack).ceil() as u64);
        let matching = round * u64::from(config.rounds);
        let sending = Ps((matching.0 as f64 * config.sending).round() as u64);
        Epochs { rounds: config.rounds, round, sending }
    }

    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    pub(super) fn sending(&self) -> Ps {
        self.sending
    }

    fn matching(&self) -> Ps {
        self.round * u64::from(self.rounds)
    }

    /// The start of a round of an epoch; the start of the round after the last is the end of the
    /// matching.
    pub(super) fn begin(&self, epoch: u32, round: u32) -> Ps {
        self.sending * u64::from(epoch) + self.round * u64::from(round)
    }

    /// The time at which a sender answers the requests of a round.
    pub(super) fn answer(&self, epoch: u32, round: u32) -> Ps {
        self.begin(epoch, round) + Ps(self.round.0 / 2)
    }

    /// The first time after `now` at which a receiver has an action.
    pub(super) fn next_stage(&self, now: Ps) -> Ps {
        let (epoch, within) = (now.0 / self.sending.0, now.0 % self.sending.0);
        let round = within / self.round.0 + 1;
        let next = if round <= u64::from(self.rounds) {
            (round * self.round.0).min(self.sending.0)
        } else {
            self.sending.0
        };
        Ps(epoch * self.sending.0 + next)
    }

    /// The actions of a receiver at a time that [`Epochs::next_stage`] returned.
    pub(super) fn stage(&self, now: Ps) -> Stage {
        let (epoch, within) = ((now.0 / self.sending.0) as u32, now.0 % self.sending.0);
        let round = (within / self.round.0) as u32;
        let joined = self.sending == self.matching();
        if within == 0 {
            let ends = epoch.checked_sub(1).filter(|_| joined);
            return Stage { ends, begins: Some((epoch, 0)) };
        }
        if round == self.rounds {
            return Stage { ends: Some(epoch), begins: None };
        }
        Stage { ends: None, begins: Some((epoch, round)) }
    }

    /// The end of the sending in progress at `now`, which is the end of the next matching.
    pub(super) fn sending_end(&self, now: Ps) -> Ps {
        let past = now.0.saturating_sub(self.matching().0);
        let first = now < self.matching();
        let epoch = if first { 0 } else { past / self.sending.0 + 1 };
        Ps(epoch * self.sending.0) + self.matching()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(sending: f64) -> Epochs {
        let config = DcpimConfig { rounds: 3, slack: 2.0, sending, ..DcpimConfig::default() };
        Epochs::new(&config, Ps(50))
    }

    fn at(now: u64, ends: Option<u32>, begins: Option<(u32, u32)>) -> (Ps, Stage) {
        (Ps(now), Stage { ends, begins })
    }

    fn stages(epochs: &Epochs) -> Vec<(Ps, Stage)> {
        let mut now = Ps(0);
        let mut all = Vec::new();
        for _ in 0..5 {
            now = epochs.next_stage(now);
            all.push((now, epochs.stage(now)));
        }
        all
    }

    #[test]
    fn a_matching_ends_where_the_next_begins_or_before() {
        assert_eq!(
            stages(&epochs(1.0)),
            [
                at(100, None, Some((0, 1))),
                at(200, None, Some((0, 2))),
                at(300, Some(0), Some((1, 0))),
                at(400, None, Some((1, 1))),
                at(500, None, Some((1, 2))),
            ]
        );
        assert_eq!(
            stages(&epochs(1.5)),
            [
                at(100, None, Some((0, 1))),
                at(200, None, Some((0, 2))),
                at(300, Some(0), None),
                at(450, None, Some((1, 0))),
                at(550, None, Some((1, 1))),
            ]
        );
    }

    #[test]
    fn what_is_matched_is_sent_until_the_next_matching_ends() {
        let epochs = epochs(1.5);
        for (now, end) in [(0, 300), (299, 300), (300, 750), (749, 750), (750, 1_200)] {
            assert_eq!(epochs.sending_end(Ps(now)), Ps(end));
        }
        assert_eq!(epochs.answer(1, 2), Ps(450 + 200 + 50));
    }
}
