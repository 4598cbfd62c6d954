//! The reaction point of DCQCN, which sets the rate of one flow (SIGCOMM 2015).
//!
//! Its timers have no events: their effects are applied when the rate is used.

use ethermem_units::Ps;

/// The parameters that all flows of a run share. Rates are shares of the link's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Alpha before the first notification.
    pub alpha_initial: f64,
    /// g: weight of a notification in alpha.
    pub gain: f64,
    /// Time without a notification after which alpha decays once.
    pub alpha_timer: Ps,
    /// Time after which the rate grows once.
    pub increase_timer: Ps,
    /// Number of bytes after which the rate grows once.
    pub byte_counter: u64,
    /// F: number of increases, by the timer or by bytes, before the target rate grows.
    pub recovery_stages: u32,
    /// R_AI: step of the additive increase.
    pub additive: f64,
    /// R_HAI: step of the hyper increase.
    pub hyper: f64,
    /// Minimum rate.
    pub rate_min: f64,
}

/// The rate of a flow, which is the link's until the first notification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reaction {
    current: f64,
    target: f64,
    alpha: f64,
    /// The times of the next decay of alpha and of the timer's next increase; `None` for a flow
    /// that was never notified.
    timers: Option<(Ps, Ps)>,
    bytes: u64,
    timer_stages: u32,
    byte_stages: u32,
}

impl Default for Reaction {
    fn default() -> Reaction {
        Reaction {
            current: 1.0,
            target: 1.0,
            alpha: 1.0,
            timers: None,
            bytes: 0,
            timer_stages: 0,
            byte_stages: 0,
        }
    }
}

impl Reaction {
    /// The state of a flow that begins.
    #[must_use]
    pub fn new(rules: &Rules) -> Reaction {
        Reaction { alpha: rules.alpha_initial, ..Reaction::default() }
    }

    /// The rate, as a share of the link's rate.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.current
    }

    /// Handles a congestion notification.
    pub fn notified(&mut self, now: Ps, rules: &Rules) {
        self.advance(now, rules);
        self.target = self.current;
        self.current = (self.current * (1.0 - self.alpha / 2.0)).max(rules.rate_min);
        self.alpha += rules.gain * (1.0 - self.alpha);
        self.timers = Some((now + rules.alpha_timer, now + rules.increase_timer));
        (self.bytes, self.timer_stages, self.byte_stages) = (0, 0, 0);
    }

    /// Records a sent packet of this many bytes.
    #[inline]
    pub fn sent(&mut self, bytes: u64, now: Ps, rules: &Rules) {
        if self.timers.is_none() {
            return;
        }
        self.advance(now, rules);
        self.bytes += bytes;
        while self.bytes >= rules.byte_counter {
            self.bytes -= rules.byte_counter;
            self.byte_stages += 1;
            self.increase(rules);
        }
    }

    /// Applies the effects of the timers until now.
    fn advance(&mut self, now: Ps, rules: &Rules) {
        let Some((mut decay, mut raise)) = self.timers else { return };
        while decay <= now {
            self.alpha *= 1.0 - rules.gain;
            decay += rules.alpha_timer;
        }
        while raise <= now {
            self.timer_stages += 1;
            self.increase(rules);
            raise += rules.increase_timer;
        }
        self.timers = Some((decay, raise));
    }

    fn increase(&mut self, rules: &Rules) {
        let stages = (self.timer_stages, self.byte_stages);
        if stages.0.min(stages.1) > rules.recovery_stages {
            self.target += rules.hyper;
        } else if stages.0.max(stages.1) >= rules.recovery_stages {
            self.target += rules.additive;
        }
        self.target = self.target.min(1.0);
        self.current = (self.current + self.target) / 2.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        alpha_initial: 1.0,
        gain: 1.0 / 256.0,
        alpha_timer: Ps(1_000),
        increase_timer: Ps(1_500),
        byte_counter: 10_000,
        recovery_stages: 5,
        additive: 0.001,
        hyper: 0.01,
        rate_min: 0.01,
    };

    #[test]
    fn a_flow_that_is_not_notified_stays_at_the_rate_of_the_link() {
        let mut flow = Reaction::new(&RULES);
        flow.sent(1 << 40, Ps(1 << 40), &RULES);
        assert_eq!(flow, Reaction::new(&RULES));
    }

    #[test]
    fn a_notification_cuts_by_half_of_alpha_and_never_below_the_least() {
        let mut flow = Reaction::new(&RULES);
        flow.notified(Ps(0), &RULES);
        assert_eq!((flow.rate(), flow.target, flow.alpha), (0.5, 1.0, 1.0));
        // Alpha decays twice, and the timer has raised the rate once, to 0.75.
        flow.notified(Ps(2_500), &RULES);
        let alpha = (255.0_f64 / 256.0).powi(2);
        assert_eq!((flow.target, flow.rate()), (0.75, 0.75 * (1.0 - alpha / 2.0)));
        assert!((flow.alpha - (alpha + (1.0 - alpha) / 256.0)).abs() < 1e-12);
        for _ in 0..100 {
            flow.notified(Ps(2_500), &RULES);
        }
        assert_eq!(flow.rate(), 0.01);
        // A flow with a lower initial alpha is cut by less.
        let rules = Rules { alpha_initial: 0.5, ..RULES };
        let mut flow = Reaction::new(&rules);
        flow.notified(Ps(0), &rules);
        assert_eq!(flow.rate(), 0.75);
    }

    #[test]
    fn rates_recover_then_grow_by_additive_then_by_hyper_increase() {
        let mut flow = Reaction::new(&RULES);
        for _ in 0..2 {
            flow.notified(Ps(0), &RULES);
        }
        assert_eq!((flow.rate(), flow.target), (0.25, 0.5));
        // Four timer increases: each goes half of the way to the target.
        flow.sent(0, Ps(4 * 1_500), &RULES);
        assert_eq!((flow.rate(), flow.target), (0.5 - 0.25 / 16.0, 0.5));
        // The fifth adds to the target, as do bytes up to their fifth stage.
        flow.sent(0, Ps(5 * 1_500), &RULES);
        assert_eq!(flow.target, 0.501);
        flow.sent(0, Ps(6 * 1_500), &RULES);
        flow.sent(50_000, Ps(6 * 1_500), &RULES);
        assert!((flow.target - (0.5 + 7.0 * 0.001)).abs() < 1e-12, "{}", flow.target);
        // Both counts are past F.
        flow.sent(10_000, Ps(6 * 1_500), &RULES);
        assert!((flow.target - 0.517).abs() < 1e-12, "{}", flow.target);
        flow.sent(1_000_000, Ps(6 * 1_500), &RULES);
        assert_eq!(flow.target, 1.0);
    }
}
