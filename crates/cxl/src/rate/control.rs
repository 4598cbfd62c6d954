//! Congestion control in six phases (section III.D, Figure 3).
//!
//! A PFC frame is a signal that the link's rate is too high; it is not obeyed as a pause. The
//! paper leaves open what this file decides: rates are whole Mb/s from a floor to the line rate;
//! exploration ends at the line rate; a PFC frame is a duplicate if it comes within t2 of the last
//! one that was acted on, in every phase; a timer that ends together with a PFC frame is first.

use ethermem_units::Ps;
use thiserror::Error;

/// A rate in Mb/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mbps(pub u32);

/// Times and rates of the control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlConfig {
    /// The rate of the link, above which nothing is sent.
    pub line: Mbps,
    /// The least rate: no number of PFC frames leads below it. Ours; the paper has none.
    pub floor: Mbps,
    /// The rate at the start.
    pub initial: Mbps,
    /// What one step of exploration adds: 1 Gb/s.
    pub step: Mbps,
    /// From the last PFC frame to fast recovery: 50 us.
    pub t1: Ps,
    /// Within this time of a PFC frame another one is its duplicate: 10 us.
    pub t2: Ps,
    /// Between two steps of fast recovery: 11 us.
    pub t3: Ps,
    /// Stable for this time before exploration: 200 us.
    pub t4: Ps,
    /// Between two steps of exploration: 40 us.
    pub t5: Ps,
    /// Guessing, before the rate is taken for stable: 20 us.
    pub t6: Ps,
}

impl ControlConfig {
    /// The values of section V for 100 Gb/s, with a floor of 1 Gb/s: one step of exploration.
    #[must_use]
    pub const fn published() -> ControlConfig {
        ControlConfig {
            line: Mbps(100_000),
            floor: Mbps(1_000),
            initial: Mbps(100_000),
            step: Mbps(1_000),
            t1: Ps(50_000_000),
            t2: Ps(10_000_000),
            t3: Ps(11_000_000),
            t4: Ps(200_000_000),
            t5: Ps(40_000_000),
            t6: Ps(20_000_000),
        }
    }

    fn check(&self) -> Result<(), ControlConfigError> {
        let ControlConfig { line, floor, initial, step, .. } = *self;
        if floor == Mbps(0) || floor > line {
            return Err(ControlConfigError::Floor(floor.0, line.0));
        }
        if initial < floor || initial > line {
            return Err(ControlConfigError::Initial(initial.0, floor.0, line.0));
        }
        if step == Mbps(0) || step > line {
            return Err(ControlConfigError::Step(step.0, line.0));
        }
        let times = [self.t1, self.t3, self.t4, self.t5, self.t6];
        if times.contains(&Ps::ZERO) {
            return Err(ControlConfigError::Time);
        }
        Ok(())
    }
}

/// Why a control cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ControlConfigError {
    /// The floor is out of range.
    #[error("floor {0} Mb/s: must be 1 to the line rate, {1}")]
    Floor(u32, u32),
    /// The initial rate is out of range.
    #[error("initial rate {0} Mb/s: must be {1} to {2}")]
    Initial(u32, u32, u32),
    /// The step is out of range.
    #[error("step {0} Mb/s: must be 1 to the line rate, {1}")]
    Step(u32, u32),
    /// A timer would end when it starts.
    #[error("t1, t3, t4, t5 and t6: must be above 0")]
    Time,
}

/// The six phases, a to f in Figure 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// a: the rate is taken for what the link allows.
    Stable,
    /// b: the rate was halved, and no other PFC frame is waited for.
    PfcResponse,
    /// c: the rate goes half of the way to the target rate, five times.
    FastRecovery,
    /// d: a PFC frame came in fast recovery; the rate was cut by a quarter.
    RecoveryPfcResponse,
    /// e: the rate grows by a step at a time.
    IncrementExploration,
    /// f: the last step was taken back, and it is seen whether that was enough.
    IncrementGuessing,
}

impl Phase {
    /// All phases, a to f.
    pub const ALL: [Phase; 6] = [
        Phase::Stable,
        Phase::PfcResponse,
        Phase::FastRecovery,
        Phase::RecoveryPfcResponse,
        Phase::IncrementExploration,
        Phase::IncrementGuessing,
    ];
}

/// What became of a PFC frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The rate was changed.
    Acted,
    /// It came within t2 of one that was acted on.
    Duplicate,
}

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlCounters {
    /// PFC frames that changed the rate.
    pub acted: u64,
    /// PFC frames that were duplicates.
    pub duplicates: u64,
    /// Times that each phase was entered, in the order of [`Phase::ALL`].
    pub entered: [u64; 6],
}

/// Steps of fast recovery.
const SPEEDUPS: u8 = 5;

/// The control of one link. Two controls that are equal behave alike for ever: counters aside,
/// [`RateControl::state`] is all of it.
#[derive(Clone, Debug)]
pub struct RateControl {
    config: ControlConfig,
    phase: Phase,
    current: u32,
    /// TR: where fast recovery goes. Not below `current` from a PFC frame until recovery's end.
    target: u32,
    /// Steps of fast recovery that were made.
    speedups: u8,
    /// The last step of this exploration, which a PFC frame takes back.
    increase: u32,
    /// When the phase's timer ends; `None` in a stable phase at line rate.
    timer: Option<Ps>,
    /// When a PFC frame was acted on last.
    acted: Option<Ps>,
    counters: ControlCounters,
}

impl RateControl {
    /// A control in the stable phase at its initial rate.
    ///
    /// # Errors
    /// [`ControlConfigError`].
    pub fn new(config: ControlConfig) -> Result<RateControl, ControlConfigError> {
        config.check()?;
        let mut control = RateControl {
            config,
            phase: Phase::Stable,
            current: config.initial.0,
            target: config.initial.0,
            speedups: 0,
            increase: 0,
            timer: None,
            acted: None,
            counters: ControlCounters::default(),
        };
        control.enter_stable(Ps::ZERO);
        Ok(control)
    }

    /// The rate at which to send: from the floor to the line rate, both included.
    #[must_use]
    pub fn rate(&self) -> Mbps {
        Mbps(self.current)
    }

    /// The phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> ControlCounters {
        self.counters
    }

    /// When [`RateControl::on_timer`] has something to do.
    #[must_use]
    pub fn next_wake(&self) -> Option<Ps> {
        self.timer
    }

    /// All that decides what happens next, with times seen from `now`: phase, current and target
    /// rate, steps of recovery, last increase, time to the timer, and time in which a PFC frame is
    /// a duplicate. For model checkers and for comparison with hardware.
    #[must_use]
    pub fn state(&self, now: Ps) -> (Phase, u32, u32, u8, u32, Option<Ps>, Ps) {
        let timer = self.timer.map(|timer| timer.saturating_sub(now));
        let deaf =
            self.acted.map_or(Ps::ZERO, |acted| (acted + self.config.t2).saturating_sub(now));
        (self.phase, self.current, self.target, self.speedups, self.increase, timer, deaf)
    }

    /// Lets time pass: timers that have ended take effect, one after the other.
    pub fn on_timer(&mut self, now: Ps) {
        while let Some(at) = self.timer.filter(|&at| at <= now) {
            self.expire(at);
        }
    }

    /// A PFC frame, or a congestion packet, has come.
    pub fn on_pfc(&mut self, now: Ps) -> Signal {
        self.on_timer(now);
        if self.acted.is_some_and(|acted| now < acted + self.config.t2) {
            self.counters.duplicates += 1;
            return Signal::Duplicate;
        }
        self.acted = Some(now);
        self.counters.acted += 1;
        match self.phase {
            Phase::Stable | Phase::IncrementGuessing => {
                self.target = self.current;
                self.current = self.at_least(self.current / 2);
                self.enter(Phase::PfcResponse, now + self.config.t1);
            }
            Phase::PfcResponse => {
                self.current = self.at_least(self.current / 2);
                self.timer = Some(now + self.config.t1);
            }
            Phase::FastRecovery => {
                self.target = self.at_least(fraction(self.current, 7, 8));
                self.current = self.at_least(fraction(self.current, 3, 4));
                self.enter(Phase::RecoveryPfcResponse, now + self.config.t1);
            }
            Phase::RecoveryPfcResponse => {
                self.current = self.at_least(fraction(self.current, 3, 4));
                self.timer = Some(now + self.config.t1);
            }
            Phase::IncrementExploration => {
                self.current -= self.increase;
                self.enter(Phase::IncrementGuessing, now + self.config.t6);
            }
        }
        Signal::Acted
    }

    fn expire(&mut self, at: Ps) {
        match self.phase {
            Phase::PfcResponse | Phase::RecoveryPfcResponse => {
                self.speedups = 0;
                self.enter(Phase::FastRecovery, at + self.config.t3);
            }
            Phase::FastRecovery => {
                self.current = self.current.midpoint(self.target);
                self.speedups += 1;
                if self.speedups == SPEEDUPS {
                    self.enter_stable(at);
                } else {
                    self.timer = Some(at + self.config.t3);
                }
            }
            Phase::Stable => {
                self.increase = 0;
                self.enter(Phase::IncrementExploration, at + self.config.t5);
            }
            // The last step had its t5, too: the line rate itself has been tried.
            Phase::IncrementExploration if self.current == self.config.line.0 => {
                self.enter_stable(at);
            }
            Phase::IncrementExploration => {
                let raised = (self.current + self.config.step.0).min(self.config.line.0);
                self.increase = raised - self.current;
                self.current = raised;
                self.timer = Some(at + self.config.t5);
            }
            Phase::IncrementGuessing => self.enter_stable(at),
        }
    }

    fn enter_stable(&mut self, at: Ps) {
        self.enter(Phase::Stable, at + self.config.t4);
        if self.current == self.config.line.0 {
            self.timer = None;
        }
        // What no phase looks at any more is made equal, so that equal states are one.
        (self.target, self.speedups, self.increase) = (self.current, 0, 0);
    }

    fn enter(&mut self, phase: Phase, timer: Ps) {
        self.phase = phase;
        self.timer = Some(timer);
        self.counters.entered[phase as usize] += 1;
        if !matches!(phase, Phase::FastRecovery) {
            self.speedups = 0;
        }
        if !matches!(phase, Phase::IncrementExploration) {
            self.increase = 0;
        }
    }

    fn at_least(&self, rate: u32) -> u32 {
        rate.max(self.config.floor.0)
    }
}

/// `rate * above / below`, rounded down.
fn fraction(rate: u32, above: u32, below: u32) -> u32 {
    (u64::from(rate) * u64::from(above) / u64::from(below)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000_000;

    fn at(us: u64) -> Ps {
        Ps(us * US)
    }

    fn started(initial: u32) -> RateControl {
        let config = ControlConfig { initial: Mbps(initial), ..ControlConfig::published() };
        RateControl::new(config).unwrap()
    }

    /// 100 -> 50 at the frame, 50 us, then (CR + TR) / 2 every 11 us: 75, 87.5, 93.75, 96.875 and
    /// 98.437 Gb/s, which is stable for 200 us; 40 us later the first step.
    #[test]
    fn one_frame_halves_the_rate_and_five_steps_bring_it_back() {
        let mut control = started(100_000);
        assert_eq!(control.next_wake(), None);
        assert_eq!(control.on_pfc(at(1000)), Signal::Acted);
        assert_eq!((control.phase(), control.rate()), (Phase::PfcResponse, Mbps(50_000)));
        assert_eq!(control.next_wake(), Some(at(1050)));
        control.on_timer(at(1050));
        assert_eq!((control.phase(), control.rate()), (Phase::FastRecovery, Mbps(50_000)));
        let rates = [75_000, 87_500, 93_750, 96_875, 98_437];
        for (step, rate) in (1..).zip(rates) {
            control.on_timer(Ps(at(1050 + 11 * step).0 - 1));
            assert_ne!(control.rate(), Mbps(rate));
            control.on_timer(at(1050 + 11 * step));
            assert_eq!(control.rate(), Mbps(rate));
        }
        assert_eq!((control.phase(), control.next_wake()), (Phase::Stable, Some(at(1305))));
        control.on_timer(at(1305));
        assert_eq!(control.phase(), Phase::IncrementExploration);
        control.on_timer(at(1345));
        assert_eq!(control.rate(), Mbps(99_437));
        control.on_timer(at(1385));
        assert_eq!((control.rate(), control.phase()), (Mbps(100_000), Phase::IncrementExploration));
        control.on_timer(at(1425));
        assert_eq!((control.phase(), control.next_wake()), (Phase::Stable, None));
    }

    #[test]
    fn frames_within_t2_are_duplicates_and_later_ones_halve_again() {
        let mut control = started(100_000);
        control.on_pfc(at(100));
        assert_eq!(control.on_pfc(Ps(at(110).0 - 1)), Signal::Duplicate);
        assert_eq!(control.on_pfc(at(110)), Signal::Acted);
        assert_eq!((control.rate(), control.next_wake()), (Mbps(25_000), Some(at(160))));
        let counters = control.counters();
        assert_eq!((counters.acted, counters.duplicates), (2, 1));
        // Fast recovery goes to the rate before the first of them.
        control.on_timer(at(171));
        assert_eq!(control.rate(), Mbps(62_500));
    }

    /// A frame in fast recovery at 75 Gb/s: TR = 7/8 of it, 65.625; CR = 3/4 of it, 56.25; another
    /// one: CR = 42.187.
    #[test]
    fn a_frame_in_fast_recovery_aims_lower() {
        let mut control = started(100_000);
        control.on_pfc(at(0));
        control.on_pfc(at(62));
        assert_eq!((control.phase(), control.rate()), (Phase::RecoveryPfcResponse, Mbps(56_250)));
        control.on_pfc(at(80));
        assert_eq!((control.rate(), control.next_wake()), (Mbps(42_187), Some(at(130))));
        control.on_timer(at(141));
        // (42187 + 65625) / 2 = 53906.
        assert_eq!((control.phase(), control.rate()), (Phase::FastRecovery, Mbps(53_906)));
    }

    #[test]
    fn a_frame_in_exploration_takes_one_step_back_and_guesses() {
        let mut control = started(40_000);
        control.on_timer(at(200 + 2 * 40));
        assert_eq!(control.rate(), Mbps(42_000));
        control.on_pfc(at(300));
        assert_eq!((control.phase(), control.rate()), (Phase::IncrementGuessing, Mbps(41_000)));
        let mut worse = control.clone();
        control.on_timer(at(320));
        assert_eq!((control.phase(), control.rate()), (Phase::Stable, Mbps(41_000)));
        worse.on_pfc(at(312));
        assert_eq!((worse.phase(), worse.rate()), (Phase::PfcResponse, Mbps(20_500)));
    }

    #[test]
    fn before_the_first_step_of_an_exploration_there_is_none_to_take_back() {
        let mut control = started(40_000);
        control.on_pfc(at(210));
        assert_eq!((control.phase(), control.rate()), (Phase::IncrementGuessing, Mbps(40_000)));
    }

    #[test]
    fn a_configuration_out_of_range_says_what_it_must_be() {
        let published = ControlConfig::published();
        let error = |config| RateControl::new(config).unwrap_err().to_string();
        let floor = ControlConfig { floor: Mbps(0), ..published };
        assert_eq!(error(floor), "floor 0 Mb/s: must be 1 to the line rate, 100000");
        let initial = ControlConfig { initial: Mbps(999), ..published };
        assert_eq!(error(initial), "initial rate 999 Mb/s: must be 1000 to 100000");
        let step = ControlConfig { step: Mbps(0), ..published };
        assert_eq!(error(step), "step 0 Mb/s: must be 1 to the line rate, 100000");
        assert!(RateControl::new(ControlConfig { t5: Ps::ZERO, ..published }).is_err());
    }
}
