//! Errors instead of panics of other crates.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic on this thread becomes an error.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls a decoder of another crate. Some of them panic where a damaged file says what no writer would write.
///
/// # Errors
/// `None` after a panic, which prints nothing.
pub(super) fn guarded<T>(decode: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                before(panic);
            }
        }));
    });
    IS_GUARDED.set(true);
    // What a decoder has changed before a panic is not used again.
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    IS_GUARDED.set(false);
    decoded.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_no_result() {
        assert_eq!(guarded(|| 7), Some(7));
        assert_eq!(guarded(|| -> u8 { panic!("a damaged file") }), None);
        assert!(!IS_GUARDED.get());
    }
}
