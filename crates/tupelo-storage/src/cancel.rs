//! Cancellation is a scope: [`cancellable`] sets it for the calling thread, and all that waits below asks for it.
//!
//! The caller's function runs on the caller's thread only. Threads that work for it see a [`Flag`], which is set once
//! the function has returned true.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two calls of a caller's cancellation function: 20 milliseconds.
pub const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs work that can be cancelled: `is_cancelled` is called on this thread, at most every [`POLL_INTERVAL`], and once it
/// returns true, requests that the work waits for end with an error of the kind
/// [`Cancelled`](crate::ErrorKind::Cancelled).
/// ```no_run
/// use std::time::{Duration, Instant};
///
/// use tupelo_storage::{Storage, cancel::cancellable};
///
/// let began = Instant::now();
/// let is_late = move || began.elapsed() > Duration::from_secs(10);
/// let source = cancellable(is_late, || Storage::default().open("https://example.org/x"))?;
/// # Ok::<(), tupelo_storage::Error>(())
/// ```
pub fn cancellable<R>(is_cancelled: impl Fn() -> bool + 'static, work: impl FnOnce() -> R) -> R {
    let poll = Poll { is_cancelled: Box::new(is_cancelled), last: Cell::new(Instant::now()) };
    with_scope(Some(Scope { flag: Flag::default(), poll: Some(Rc::new(poll)) }), work)
}

thread_local! {
    static SCOPE: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// Tells work whether it was cancelled.
#[derive(Clone)]
pub struct Scope {
    flag: Flag,
    /// Only on the thread of the caller.
    poll: Option<Rc<Poll>>,
}

/// The part of a scope shared with other threads.
#[derive(Debug, Clone, Default)]
pub struct Flag(Arc<AtomicBool>);

impl Flag {
    /// Cancels the work of all threads that see this flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The caller's cancellation function, and when it was called last.
struct Poll {
    is_cancelled: Box<dyn Fn() -> bool>,
    last: Cell<Instant>,
}

/// Runs work with a scope, or without one, instead of the scope of the thread.
fn with_scope<R>(scope: Option<Scope>, work: impl FnOnce() -> R) -> R {
    struct Before(Option<Scope>);
    impl Drop for Before {
        fn drop(&mut self) {
            SCOPE.set(self.0.take());
        }
    }
    let _before = Before(SCOPE.replace(scope));
    work()
}

/// Runs work for the caller of another thread; without a flag it cannot be cancelled.
pub fn with_flag<R>(flag: Option<Flag>, work: impl FnOnce() -> R) -> R {
    with_scope(flag.map(|flag| Scope { flag, poll: None }), work)
}

impl Scope {
    /// The scope of this thread.
    pub fn current() -> Option<Self> {
        SCOPE.with_borrow(Clone::clone)
    }

    /// The same scope for threads that work for the caller: they do not call its function.
    pub fn flag(&self) -> Flag {
        self.flag.clone()
    }

    /// Whether this thread calls the caller's function.
    pub fn is_polled(&self) -> bool {
        self.poll.is_some()
    }

    /// Whether the work was cancelled.
    pub fn is_cancelled(&self) -> bool {
        let Flag(flag) = &self.flag;
        if let Some(poll) = self.poll.as_ref().filter(|poll| poll.last.get().elapsed() >= POLL_INTERVAL) {
            poll.last.set(Instant::now());
            flag.fetch_or((poll.is_cancelled)(), Ordering::Relaxed);
        }
        flag.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("flag", &self.flag).finish_non_exhaustive()
    }
}

/// Whether the caller cancelled the work of this thread.
pub fn is_cancelled() -> bool {
    // Not borrowed during the call of the caller's function, which may use this crate.
    Scope::current().is_some_and(|scope| scope.is_cancelled())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn scopes_nest_and_end() {
        let later = || thread::sleep(POLL_INTERVAL);
        assert!(!is_cancelled());
        cancellable(
            || true,
            || {
                assert!(!is_cancelled(), "it was polled too early");
                later();
                cancellable(|| false, || assert!(!is_cancelled()));
                with_flag(None, || assert!(!is_cancelled()));
                assert!(is_cancelled());
                let flag = Scope::current().map(|scope| scope.flag());
                thread::spawn(move || with_flag(flag, || assert!(is_cancelled()))).join().unwrap();
            },
        );
        assert!(!is_cancelled() && Scope::current().is_none());
    }
}
