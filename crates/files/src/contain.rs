//! Panics of a library, turned into errors for the caller whose file caused them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Returns what `decode` returns, or `None` when it panicked; nothing of the panic is printed. What
/// `decode` worked on must not be used after a panic.
///
/// The Parquet library asserts in places what a damaged file breaks. Such a file must end in an
/// error, as any other damaged file does.
pub(crate) fn contain<T>(decode: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !CONTAINED.get() {
                others(panic);
            }
        }));
    });
    CONTAINED.set(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    CONTAINED.set(false);
    decoded.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_none_and_the_next_one_is_not_contained() {
        assert_eq!(contain(|| 3), Some(3));
        assert_eq!(contain(|| -> u8 { panic!("of a library") }), None);
        assert!(!CONTAINED.get());
    }
}
