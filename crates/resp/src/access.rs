//! Authentication: commands need the password, and an address with too many wrong ones is blocked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use subtle::ConstantTimeEq;
use tracing::warn;

/// Longest password in bytes.
pub const PASSWORD_BYTES_MAX: usize = 512;
/// Number of wrong passwords of one address in a [`WINDOW`] after which no more are compared.
const FAILURES_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(10);
/// Largest number of addresses that are remembered.
const ADDRESSES_MAX: usize = 4096;

/// A password, which is compared in constant time.
#[derive(Clone)]
pub struct Password {
    padded: [u8; PASSWORD_BYTES_MAX],
    bytes: usize,
}

impl Password {
    /// A password; `None` if it is empty, or longer than [`PASSWORD_BYTES_MAX`].
    #[must_use]
    pub fn new(text: &[u8]) -> Option<Password> {
        let mut padded = [0; PASSWORD_BYTES_MAX];
        padded.get_mut(..text.len()).filter(|room| !room.is_empty())?.copy_from_slice(text);
        Some(Password { padded, bytes: text.len() })
    }

    fn is(&self, given: &[u8]) -> bool {
        let seen = &given[..given.len().min(PASSWORD_BYTES_MAX)];
        let mut padded = [0; PASSWORD_BYTES_MAX];
        padded[..seen.len()].copy_from_slice(seen);
        let same = self.padded.ct_eq(&padded) & self.bytes.ct_eq(&given.len());
        same.into()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// Result of checking a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    Right,
    Wrong,
    /// The password was not compared, because the address is blocked.
    TooOften,
}

/// The authentication state of a server.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    password: Option<Password>,
    failures: RefCell<BTreeMap<IpAddr, Failures>>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    since: Instant,
    count: u32,
}

impl Gate {
    /// A gate with a password; without one it is open.
    pub(crate) fn new(password: Option<Password>) -> Gate {
        Gate { password, failures: RefCell::default() }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.password.is_none()
    }

    /// Checks a password from a client's address.
    pub(crate) fn check(&self, given: &[u8], from: Option<IpAddr>, now: Instant) -> Checked {
        let Some(password) = &self.password else { return Checked::Right };
        let mut failures = self.failures.borrow_mut();
        failures.retain(|_, failures| now.duration_since(failures.since) < WINDOW);
        let known = from.and_then(|from| failures.get(&from).copied());
        if known.is_some_and(|known| known.count >= FAILURES_MAX) {
            return Checked::TooOften;
        }
        if password.is(given) {
            return Checked::Right;
        }
        let Some(from) = from else { return Checked::Wrong };
        if failures.len() >= ADDRESSES_MAX && known.is_none() {
            // An attacker with so many addresses is not limited by this.
            failures.pop_first();
        }
        let failures = failures.entry(from).or_insert(Failures { since: now, count: 0 });
        failures.count += 1;
        if failures.count == 1 || failures.count == FAILURES_MAX {
            warn!(%from, in_10_s = failures.count, "a wrong password");
        }
        Checked::Wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_itself_and_no_other() {
        let password = Password::new(b"correct horse").unwrap();
        assert!(password.is(b"correct horse"));
        for other in [&b""[..], b"correct hors", b"correct horse\0", b"Correct horse", &[0; 600]] {
            assert!(!password.is(other), "{other:?}");
        }
        assert!(Password::new(b"").is_none() && Password::new(&[1; 513]).is_none());
        let longest = Password::new(&[1; 512]).unwrap();
        assert!(longest.is(&[1; 512]) && !longest.is(&[1; 513]));
        assert_eq!(format!("{password:?}"), "Password");
    }

    #[test]
    fn whoever_fails_often_is_not_heard_for_a_while_and_others_are() {
        let gate = Gate::new(Password::new(b"right"));
        let (bad, good) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut now = Instant::now();
        for _ in 0..FAILURES_MAX {
            assert_eq!(gate.check(b"wrong", Some(bad), now), Checked::Wrong);
        }
        assert_eq!(gate.check(b"right", Some(bad), now), Checked::TooOften);
        assert_eq!(gate.check(b"right", Some(good), now), Checked::Right);
        now += WINDOW;
        assert_eq!(gate.check(b"right", Some(bad), now), Checked::Right);
        for at in 0..10_000_u32 {
            gate.check(b"wrong", Some(IpAddr::from(at.to_be_bytes())), now);
        }
        assert!(gate.failures.borrow().len() <= ADDRESSES_MAX);
    }

    #[test]
    fn who_fails_elsewhere_makes_nobody_be_forgotten_before_there_are_too_many() {
        let gate = Gate::new(Password::new(b"right"));
        let address = |at: u32| Some(IpAddr::from(at.to_be_bytes()));
        let now = Instant::now();
        for at in 0..ADDRESSES_MAX as u32 {
            for _ in 0..if at == 0 { FAILURES_MAX } else { 1 } {
                assert_eq!(gate.check(b"wrong", address(at), now), Checked::Wrong);
            }
        }
        // There is no room for another address, but a known address needs none.
        assert_eq!(gate.check(b"wrong", address(7), now), Checked::Wrong);
        assert_eq!(gate.check(b"right", address(0), now), Checked::TooOften);
        assert_eq!(gate.check(b"wrong", None, now), Checked::Wrong);
        assert_eq!(gate.check(b"wrong", address(1 << 20), now), Checked::Wrong);
        assert_eq!(gate.failures.borrow().len(), ADDRESSES_MAX);
        let open = Gate::new(None);
        assert!(open.is_open() && !gate.is_open());
        assert_eq!(open.check(b"wrong", address(0), now), Checked::Right);
    }
}
