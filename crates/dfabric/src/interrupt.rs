//! Interrupt registers of nodes: a store to one says that its RxQs have entries (section 4.3).
//!
//! While a node has not served its interrupt, further stores change nothing. With moderation, the
//! processor is told after so many entries, or after a time.

use ethermem_units::Ps;

/// When a processor is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moderation {
    /// After so many entries; 1: with each.
    pub entries: u32,
    /// After this time at the latest.
    pub delay_max: Ps,
}

impl Moderation {
    /// Tells the processor at once, as the paper does.
    pub const OFF: Moderation = Moderation { entries: 1, delay_max: Ps(0) };
}

/// The interrupt register of one node.
#[derive(Clone, Copy, Debug)]
pub struct InterruptRegister {
    moderation: Moderation,
    entries: u32,
    due: Option<Ps>,
    is_raised: bool,
}

impl InterruptRegister {
    /// A register without entries.
    #[must_use]
    pub const fn new(moderation: Moderation) -> InterruptRegister {
        InterruptRegister { moderation, entries: 0, due: None, is_raised: false }
    }

    /// An entry was stored into an RxQ. Returns true if the processor is to be told now.
    pub fn store(&mut self, now: Ps) -> bool {
        self.entries = self.entries.saturating_add(1);
        self.due.get_or_insert(now + self.moderation.delay_max);
        self.raise_if(now)
    }

    /// Returns true if the processor is to be told now, as the time is over.
    pub fn on_timer(&mut self, now: Ps) -> bool {
        self.raise_if(now)
    }

    fn raise_if(&mut self, now: Ps) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        let raises = !self.is_raised && (self.entries >= self.moderation.entries || is_due);
        if raises && self.entries > 0 {
            self.is_raised = true;
            return true;
        }
        false
    }

    /// When [`InterruptRegister::on_timer`] is to be called next.
    #[must_use]
    pub fn next_wake(&self) -> Option<Ps> {
        self.due.filter(|_| !self.is_raised)
    }

    /// The processor begins to read RxQs. It reads until they are empty, and an entry that comes
    /// after this call raises the interrupt again.
    pub fn serve(&mut self) {
        (self.entries, self.due, self.is_raised) = (0, None, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_that_is_not_served_is_not_raised_again() {
        let mut register = InterruptRegister::new(Moderation::OFF);
        assert!(register.store(Ps(5)));
        assert!(!register.store(Ps(6)) && !register.on_timer(Ps(9)));
        register.serve();
        assert_eq!(register.next_wake(), None);
        assert!(!register.on_timer(Ps(9)), "there is no entry");
        assert!(register.store(Ps(10)));
    }

    #[test]
    fn moderation_waits_for_entries_or_for_the_time() {
        let moderation = Moderation { entries: 3, delay_max: Ps(100) };
        let mut register = InterruptRegister::new(moderation);
        assert!(!register.store(Ps(0)) && !register.store(Ps(50)));
        assert_eq!(register.next_wake(), Some(Ps(100)));
        assert!(!register.on_timer(Ps(99)));
        assert!(register.on_timer(Ps(100)));
        assert_eq!(register.next_wake(), None);
        register.serve();
        assert!(!register.store(Ps(200)) && !register.store(Ps(201)) && register.store(Ps(202)));
    }
}
