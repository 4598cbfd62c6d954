//! The end of a sleep, kept in the kernel from one sleep to the next.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::Maker;

/// The scheduler's own tick comes before a timer of this length on every kernel, so such a timer
/// does not change when the processor's clock rings next.
const FAR: Duration = Duration::from_millis(10);

/// Sleeps on descriptors, for a limited time, again and again.
///
/// A sleep with a time limit of its own sets a timer, and cancels it when a descriptor is ready. If
/// that timer is the processor's next, each costs a write to its clock, which on a virtual machine
/// is an exit to the hypervisor. So this timer is left as it is when a sleep ends early. A later
/// sleep that may last longer takes it over, and ends too early once: the callers look at their
/// own clock in any case. `docs/internals/clio-transport.md` has what was measured.
#[derive(Debug)]
pub struct Alarm {
    maker: Maker,
    /// Locked by the thread that sleeps with the timer; others have their own time limits.
    timer: Mutex<Option<Timer>>,
}

#[derive(Debug)]
struct Timer {
    descriptor: TimerFd,
    /// When it rings, or rang.
    rings: Instant,
}

impl Alarm {
    /// An alarm that was never set. It is of this process: a fork's sleeps do not change it.
    #[must_use]
    pub fn new() -> Alarm {
        Alarm { maker: Maker::new(), timer: Mutex::new(None) }
    }

    /// Sleeps until there is something to read from `first` or `second`, a signal was handled, or
    /// `most` has passed; it may also end for no reason. Returns the events of `first`.
    pub fn sleep(
        &self,
        first: BorrowedFd<'_>,
        second: Option<BorrowedFd<'_>>,
        most: Duration,
    ) -> PollFlags {
        if most >= FAR || !self.maker.is_here() {
            return sleep(first, second, Err(most));
        }
        let mut timer = match self.timer.try_lock() {
            Ok(timer) => timer,
            Err(TryLockError::Poisoned(timer)) => timer.into_inner(),
            Err(TryLockError::WouldBlock) => return sleep(first, second, Err(most)),
        };
        match Timer::within(&mut timer, most) {
            Some(timer) => sleep(first, second, Ok(timer.descriptor.as_fd())),
            None => sleep(first, second, Err(most)),
        }
    }
}

impl Default for Alarm {
    fn default() -> Alarm {
        Alarm::new()
    }
}

impl Timer {
    /// The timer, which rings within `most` from now; `None` if the kernel refuses it.
    fn within(timer: &mut Option<Timer>, most: Duration) -> Option<&Timer> {
        let now = Instant::now();
        let rings = now + most;
        if !timer.as_ref().is_some_and(|timer| now < timer.rings && timer.rings <= rings) {
            let descriptor = match timer.take() {
                Some(timer) => timer.descriptor,
                None => TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::all()).ok()?,
            };
            // To set it also ends that it is readable. A time of zero would turn it off.
            let after = Expiration::OneShot(TimeSpec::from_duration(most.max(Duration::new(0, 1))));
            descriptor.set(after, TimerSetTimeFlags::empty()).ok()?;
            *timer = Some(Timer { descriptor, rings });
        }
        timer.as_ref()
    }
}

/// Sleeps until a descriptor is readable: the timer's, if there is one, or for at most a time.
fn sleep(
    first: BorrowedFd<'_>,
    second: Option<BorrowedFd<'_>>,
    end: Result<BorrowedFd<'_>, Duration>,
) -> PollFlags {
    let readable = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
    let (most, timer) = match end {
        Ok(timer) => (None, Some(timer)),
        Err(most) => (Some(most.into()), None),
    };
    let mut fds = [(); 3].map(|()| readable(first));
    let mut used = 1;
    for descriptor in [second, timer].into_iter().flatten() {
        fds[used] = readable(descriptor);
        used += 1;
    }
    // A signal ends the sleep early, which is harmless: the caller polls again.
    let _ = ppoll(&mut fds[..used], most, None);
    fds[0].revents().unwrap_or(PollFlags::empty())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::Arc;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_millis(9);

    fn rings(alarm: &Alarm) -> Option<Instant> {
        alarm.timer.lock().unwrap().as_ref().map(|timer| timer.rings)
    }

    /// A socket with a datagram, and one without.
    fn sockets() -> (UdpSocket, UdpSocket) {
        let [full, empty] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        full.send_to(&[1], full.local_addr().unwrap()).unwrap();
        (full, empty)
    }

    #[test]
    fn a_sleep_that_ends_early_leaves_the_timer_to_the_next() {
        let (full, _) = sockets();
        let alarm = Alarm::new();
        assert_eq!(alarm.sleep(full.as_fd(), None, LONG), PollFlags::POLLIN);
        let set = rings(&alarm).expect("it is set");
        while Instant::now() < set - Duration::from_millis(5) {
            assert_eq!(alarm.sleep(full.as_fd(), None, LONG), PollFlags::POLLIN);
            if Instant::now() < set {
                assert_eq!(rings(&alarm), Some(set));
            }
        }
    }

    #[test]
    fn a_sleep_ends_in_its_time_whatever_the_timer_was() {
        let (_, empty) = sockets();
        let alarm = Alarm::new();
        for us in [5_000, 300, 2_000, 1, 0, 9_999, 20_000, 1_000] {
            let (most, began) = (Duration::from_micros(us), Instant::now());
            // The timer of an earlier sleep ends this one early, at most once.
            while began.elapsed() < most {
                let left = most.saturating_sub(began.elapsed());
                assert_eq!(alarm.sleep(empty.as_fd(), None, left), PollFlags::empty());
            }
            assert_eq!(alarm.sleep(empty.as_fd(), None, Duration::ZERO), PollFlags::empty());
        }
    }

    #[test]
    fn a_shorter_sleep_sets_the_timer_anew() {
        let (full, empty) = sockets();
        let alarm = Alarm::new();
        alarm.sleep(full.as_fd(), None, LONG);
        let set = rings(&alarm).expect("it is set");
        alarm.sleep(empty.as_fd(), None, Duration::from_micros(10));
        assert!(rings(&alarm).expect("it is set") < set);
    }

    #[test]
    fn the_second_descriptor_ends_a_sleep_too() {
        let (full, empty) = sockets();
        let alarm = Alarm::new();
        for most in [LONG, Duration::from_secs(3600)] {
            let woken = alarm.sleep(empty.as_fd(), Some(full.as_fd()), most);
            assert_eq!(woken, PollFlags::empty());
        }
    }

    #[test]
    fn threads_that_sleep_at_once_each_end_in_their_time() {
        let (_, empty) = sockets();
        let (alarm, empty) = (Arc::new(Alarm::new()), Arc::new(empty));
        let threads: Vec<_> = (1..=8)
            .map(|number| {
                let (alarm, empty) = (Arc::clone(&alarm), Arc::clone(&empty));
                thread::spawn(move || {
                    for _ in 0..100 {
                        alarm.sleep(empty.as_fd(), None, Duration::from_micros(50 * number));
                    }
                })
            })
            .collect();
        // A thread whose timer another one put off would not come back.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
