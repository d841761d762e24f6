//! Tasks in order. Other threads begin a few of them ahead.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::thread;

use tupelo_storage::cancel::{Scope, with_flag};

use super::{Spawned, Waiting, begin, check, is_concurrent, lock, pool, thread_failed};
use crate::Result;

/// Tasks that run ahead of the one whose result is wanted.
const TASKS_AHEAD: usize = 4;

/// The results of tasks, in their order. Without [other threads](is_concurrent), each runs when its result is wanted. So does
/// one that no other thread has begun by then.
pub struct Ahead<I: Iterator, R> {
    tasks: I,
    work: Arc<dyn Fn(I::Item) -> Result<R> + Send + Sync>,
    running: VecDeque<Running<R>>,
}

/// A task until a thread begins it. The job that waits in the pool, perhaps for long, keeps nothing else: the task may hold a
/// file open.
type NotBegun<R> = Arc<Mutex<Option<Box<dyn FnOnce() -> Result<R> + Send>>>>;

struct Running<R> {
    task: NotBegun<R>,
    done: Spawned<Option<Result<R>>>,
}

impl<I: Iterator, R> fmt::Debug for Ahead<I, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("running", &self.running.len()).finish_non_exhaustive()
    }
}

impl<I: Iterator, R> Drop for Ahead<I, R> {
    fn drop(&mut self) {
        self.running.iter().for_each(|running| drop(lock(&running.task).take()));
    }
}

impl<I: Iterator, R> Ahead<I, R> {
    /// Runs `work` for each task.
    pub fn new(tasks: I, work: impl Fn(I::Item) -> Result<R> + Send + Sync + 'static) -> Self {
        let work = move |task| check().and_then(|()| work(task));
        Self { tasks, work: Arc::new(work), running: VecDeque::new() }
    }
}

impl<I: Iterator<Item: Send + 'static>, R: Send + 'static> Iterator for Ahead<I, R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Result<R>> {
        let Some(pool) = pool().filter(|_| is_concurrent()) else {
            return self.tasks.next().map(|task| (self.work)(task));
        };
        let flag = Scope::current().map(|scope| scope.flag());
        while self.running.len() < TASKS_AHEAD
            && let Some(task) = self.tasks.next()
        {
            let work = Arc::clone(&self.work);
            let task: NotBegun<R> = Arc::new(Mutex::new(Some(Box::new(move || work(task)))));
            let (flag, own) = (flag.clone(), Arc::clone(&task));
            let take = move || lock(&own).take();
            let run = move || take().map(|task| with_flag(flag, task));
            self.running.push_back(Running { task, done: begin(&pool, run) });
        }
        let Running { task, done } = self.running.pop_front()?;
        // In the condition, the lock would be held while the task runs.
        let not_begun = lock(&task).take();
        match not_begun {
            Some(task) => Some(task()),
            None => Some(done.wait().flatten().unwrap_or_else(|| Err(thread_failed()))),
        }
    }
}

/// Passes the results of `work` for the numbers below `count` to `consume`, in order, until it breaks. Where [other
/// threads](is_concurrent) may work, the next result is made while `consume` has one.
pub fn one_ahead<T: Send, B>(
    count: usize,
    work: impl Fn(usize) -> T + Sync,
    mut consume: impl FnMut(T) -> ControlFlow<B>,
) -> Result<ControlFlow<B>> {
    if !is_concurrent() {
        return Ok((0..count).map(work).try_for_each(consume));
    }
    let work = &work;
    thread::scope(|scope| {
        let mut ahead: Option<Waiting<'_, T>> = None;
        let mut ended = Ok(ControlFlow::Continue(()));
        for number in 0..count {
            let result = match ahead.take() {
                Some(begun) => begun.join(),
                None => Some(work(number)),
            };
            let Some(result) = result else {
                ended = Err(thread_failed());
                break;
            };
            let next = number + 1;
            ahead = if next < count { Waiting::begin(scope, move || work(next)) } else { None };
            if let ControlFlow::Break(value) = consume(result) {
                ended = Ok(ControlFlow::Break(value));
                break;
            }
        }
        // The scope would pass on a panic of a thread that was not joined.
        let _ = ahead.map(Waiting::join);
        ended
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::super::{spawn, threads};
    use super::*;
    use crate::Error;

    #[test]
    fn one_result_is_made_ahead() {
        let (made, mut seen) = (AtomicUsize::new(0), Vec::new());
        let make = |number: usize| {
            made.fetch_max(number + 1, Ordering::Relaxed);
            number
        };
        let ended = one_ahead(100, make, |number| {
            seen.push(number);
            assert!(made.load(Ordering::Relaxed) <= number + 2, "more than one ahead");
            if number == 41 { ControlFlow::Break("enough") } else { ControlFlow::Continue(()) }
        });
        assert_eq!(ended.unwrap(), ControlFlow::Break("enough"));
        assert_eq!(seen, (0..42).collect::<Vec<_>>());
        assert_eq!(one_ahead(3, make, |_| ControlFlow::<()>::Continue(())).unwrap(), ControlFlow::Continue(()));
    }

    /// The thread of a result that is not wanted any more may panic.
    #[test]
    fn a_panic_ahead_is_an_error_if_its_result_is_wanted() {
        let panics = |number: usize| assert_ne!(number, 1, "on purpose");
        for wanted in [1, 2] {
            let mut calls = 0;
            let consume = |()| {
                calls += 1;
                if calls == wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            if is_concurrent() {
                let ended = one_ahead(3, panics, consume);
                assert_eq!(ended.is_err(), wanted == 2);
                assert_eq!(calls, 1);
            }
        }
    }

    #[test]
    fn results_come_in_the_order_of_tasks() {
        let squares: Vec<u64> = Ahead::new(0..100, |n: u64| Ok(n * n)).collect::<Result<_>>().unwrap();
        assert_eq!(squares, (0..100).map(|n| n * n).collect::<Vec<u64>>());
        let failing = Ahead::new(0..100, |n: u64| if n < 7 { Ok(n) } else { Err(Error::corrupt("seven")) });
        assert_eq!(failing.take_while(Result::is_ok).count(), 7);
    }

    /// Runs a test while all threads of the pool wait.
    fn while_others_are_busy(test: impl FnOnce()) {
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let hold = |_| {
            let held = Arc::clone(&held);
            spawn(move || lock(&held).recv().is_err())
        };
        let busy: Vec<_> = (0..threads()).filter_map(hold).collect();
        test();
        drop(release);
        assert!(busy.into_iter().all(|thread| thread.wait() == Some(true)));
    }

    /// Other threads may be busy for long.
    #[test]
    fn tasks_that_no_other_thread_begins_run_on_the_calling_thread() {
        while_others_are_busy(|| {
            let by: Vec<_> = Ahead::new(0..20, |_| Ok(thread::current().id())).collect::<Result<_>>().unwrap();
            assert_eq!(by, vec![thread::current().id(); 20]);
        });
    }

    /// Regression: the file of each merged ntuple stayed open as long as the threads of the pool were busy.
    #[test]
    fn tasks_that_no_other_thread_begins_keep_nothing() {
        while_others_are_busy(|| {
            let file = Arc::new(());
            for wanted in [0, 3, 20] {
                let own = Arc::clone(&file);
                let ahead = Ahead::new(0..20, move |_| Ok(Arc::strong_count(&own)));
                assert_eq!(ahead.take(wanted).map(Result::unwrap).collect::<Vec<_>>(), vec![2; wanted]);
                assert_eq!(Arc::strong_count(&file), 1);
            }
        });
    }
}
