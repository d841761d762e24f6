//! Tasks that the pool works on while the caller goes on.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};

use tupelo_storage::cancel::{Scope, with_flag};

use super::{check, pool, thread_failed, wait};
use crate::Result;

/// Whether [`Background::start`] can leave work to other threads. It cannot with one thread, nor in a thread of the
/// pool: all of them could wait for each other.
pub fn is_concurrent() -> bool {
    pool().is_some_and(|pool| pool.current_thread_index().is_none())
}

/// Running tasks with results of one type. Dropping it does not wait for them; their results are dropped.
#[derive(Debug)]
pub struct Background<R> {
    /// The process that started the tasks. A forked child has none of their threads.
    process: u32,
    sender: Sender<Option<R>>,
    results: Mutex<Receiver<Option<R>>>,
}

impl<R: Send + 'static> Default for Background<R> {
    fn default() -> Self {
        let (sender, results) = mpsc::channel();
        Self { process: std::process::id(), sender, results: Mutex::new(results) }
    }
}

/// Sends a result, or `None` if the task panics.
struct Reply<R> {
    sender: Sender<Option<R>>,
    result: Option<R>,
}

impl<R> Reply<R> {
    fn send(mut self, result: R) {
        self.result = Some(result);
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        // The receiver is gone if the caller was cancelled.
        let _ = self.sender.send(self.result.take());
    }
}

impl<R: Send + 'static> Background<Result<R>> {
    /// Starts a task, or does it at once where [no other thread can](is_concurrent). A task that has not begun when its
    /// caller is cancelled does nothing.
    pub fn start(&self, task: impl FnOnce() -> Result<R> + Send + 'static) {
        let reply = Reply { sender: self.sender.clone(), result: None };
        let flag = Scope::current().map(|scope| scope.flag());
        let run = move || reply.send(with_flag(flag, || check().and_then(|()| task())));
        match pool().filter(|pool| pool.current_thread_index().is_none()) {
            Some(pool) => pool.spawn(run),
            None => run(),
        }
    }

    /// Waits for the next task to end, in any order. The caller counts the tasks: without any it would wait forever.
    pub fn next_result(&mut self) -> Result<R> {
        if self.process != std::process::id() {
            return Err(thread_failed());
        }
        let results = self.results.get_mut().unwrap_or_else(PoisonError::into_inner);
        wait(results).flatten().unwrap_or_else(|| Err(thread_failed()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;
    use std::{panic, thread};

    use super::*;
    use crate::{ErrorKind, cancellable};

    #[test]
    fn results_of_all_tasks_arrive() {
        let mut background = Background::default();
        (0..100).for_each(|task: u64| background.start(move || Ok(task)));
        let results = (0..100).map(|_| background.next_result()).collect::<Result<Vec<_>>>().unwrap();
        assert_eq!(results.iter().sum::<u64>(), 4950);
    }

    #[test]
    fn a_panic_is_an_error() {
        if !is_concurrent() {
            return;
        }
        let mut background = Background::default();
        background.start(|| -> Result<()> { panic!("on purpose") });
        let error = background.next_result().unwrap_err();
        assert!(error.to_string().contains("a thread has ended"), "{error}");
    }

    /// Neither tasks that run nor tasks that have not begun delay a caller who is cancelled.
    #[test]
    fn a_cancelled_caller_does_not_wait() {
        if !is_concurrent() {
            return;
        }
        let (is_begun, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (asked, counted) = (is_begun.clone(), ended.clone());
        let result = cancellable(
            move || asked.load(Ordering::Relaxed),
            || {
                let mut background = Background::default();
                for _ in 0..1000 {
                    let (is_begun, ended) = (is_begun.clone(), counted.clone());
                    background.start(move || {
                        is_begun.store(true, Ordering::Relaxed);
                        thread::sleep(Duration::from_millis(200));
                        ended.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    });
                }
                (0..1000).try_for_each(|_| background.next_result())
            },
        );
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
        thread::sleep(Duration::from_millis(500));
        assert!(ended.load(Ordering::Relaxed) <= 2 * crate::threads(), "tasks began after the caller was cancelled");
    }
}
