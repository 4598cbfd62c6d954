//! Plain `SET`s of one key that wait for their turn at the same time: the last one is written, and
//! all are answered by it.
//!
//! A change of a key takes a few round trips, and changes of one key take turns. Fifty clients that
//! set one key would wait for fifty turns. Their requests are concurrent, so they may take effect
//! one right after the other, in the order in which they came, at the instant of the one write.
//! Nothing comes between them, and no client can see any of them but the last.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use async_lock::OnceCell;

/// Longest value that is kept for others. A longer one is written by its own request.
const VALUE_BYTES_MAX: usize = 16 << 10;

/// Requests that are answered together.
pub(crate) struct Group<T> {
    /// The value of the last request.
    value: RefCell<Vec<u8>>,
    outcome: OnceCell<T>,
}

impl<T: Clone> Group<T> {
    /// The outcome, once the request that leads has ended.
    pub(crate) async fn outcome(&self) -> T {
        self.outcome.wait().await.clone()
    }

    /// Ends a group. The request that leads does it once.
    pub(crate) fn end(&self, outcome: T) {
        let is_first = self.outcome.set_blocking(outcome).is_ok();
        debug_assert!(is_first, "a group ends once");
    }
}

/// A request's part in its group.
pub(crate) enum Role<T> {
    /// It waits for the key's turn, closes the group, writes, and ends the group.
    Leads(Rc<Group<T>>),
    /// It waits for the outcome.
    Follows(Rc<Group<T>>),
}

/// The groups that wait for a turn, by key.
pub(crate) struct Together<T>(RefCell<HashMap<Vec<u8>, Rc<Group<T>>>>);

impl<T> Default for Together<T> {
    fn default() -> Together<T> {
        Together(RefCell::default())
    }
}

impl<T> Together<T> {
    /// Joins the group of a key, or opens one. `None` for a value that must go alone.
    pub(crate) fn join(&self, key: &[u8], value: &[u8]) -> Option<Role<T>> {
        if value.len() > VALUE_BYTES_MAX {
            return None;
        }
        let mut waiting = self.0.borrow_mut();
        if let Some(group) = waiting.get(key) {
            let mut last = group.value.borrow_mut();
            last.clear();
            last.extend_from_slice(value);
            return Some(Role::Follows(Rc::clone(group)));
        }
        let group = Group { value: RefCell::new(value.to_vec()), outcome: OnceCell::new() };
        let group = Rc::new(group);
        waiting.insert(key.to_vec(), Rc::clone(&group));
        Some(Role::Leads(group))
    }

    /// Closes the group of a key, whose turn has come, and returns the value to write. Who comes
    /// later opens the next group.
    pub(crate) fn close(&self, key: &[u8]) -> Vec<u8> {
        let group = self.0.borrow_mut().remove(key);
        group.map(|group| group.value.take()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(role: Option<&Role<()>>) -> bool {
        matches!(role, Some(Role::Leads(_)))
    }

    #[test]
    fn the_last_value_is_written_and_later_requests_open_another_group() {
        let together: Together<()> = Together::default();
        let Some(Role::Leads(first)) = together.join(b"k", b"1") else { panic!("it is the first") };
        assert!(leads(together.join(b"other", b"9").as_ref()), "another key has another group");
        let Some(Role::Follows(second)) = together.join(b"k", b"longer") else { panic!("joins") };
        assert!(Rc::ptr_eq(&first, &second));
        assert!(!leads(together.join(b"k", b"3").as_ref()));
        assert_eq!(together.close(b"k"), b"3");
        assert!(leads(together.join(b"k", b"4").as_ref()), "the group is closed");
        assert_eq!(together.close(b"k"), b"4");
        assert_eq!(together.close(b"other"), b"9");
        assert!(together.0.borrow().is_empty());
    }

    #[test]
    fn every_request_of_a_group_has_its_outcome() {
        let together: Together<Result<(), &str>> = Together::default();
        let Some(Role::Leads(leader)) = together.join(b"k", b"1") else {
            panic!("it is the first")
        };
        let Some(Role::Follows(other)) = together.join(b"k", b"2") else { panic!("it joins") };
        leader.end(Err("lost"));
        for group in [leader, other] {
            let outcome = futures_util::FutureExt::now_or_never(group.outcome());
            assert_eq!(outcome, Some(Err("lost")));
        }
    }

    #[test]
    fn a_long_value_goes_alone() {
        let together: Together<()> = Together::default();
        assert!(together.join(b"k", &vec![1; VALUE_BYTES_MAX + 1]).is_none());
        assert!(leads(together.join(b"k", &vec![1; VALUE_BYTES_MAX]).as_ref()));
    }
}
