//! Threads: work is divided into tasks, and idle threads steal them from each other.
//!
//! There is one pool per process. It is created on first use, and again in a forked child, which does not inherit the
//! threads of its parent.

mod ahead;
mod background;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};
use tupelo_storage::cancel::{self, POLL_INTERVAL, Scope, with_flag};

pub use self::ahead::{Ahead, one_ahead};
pub use self::background::{Background, is_concurrent};
use crate::{Error, ErrorKind, Result};

/// Environment variable with the number of threads, for programs that do not call [`set_threads`].
pub const THREADS_VARIABLE: &str = "TUPELO_THREADS";
/// Work of fewer bytes is not divided, because waking a thread costs more.
pub const SMALL_BYTES: u64 = 256 << 10;

static POOL: Mutex<State> = Mutex::new(State { wanted: None, made: None });

struct State {
    /// Number of threads that was set.
    wanted: Option<usize>,
    /// The process that created the pool, and the pool; `None` with one thread.
    made: Option<(u32, Option<Arc<ThreadPool>>)>,
}

/// Sets the number of threads that decode and encode pages, in all of this process; 0 stands for as many as the process
/// has cores, which is the default unless the environment variable [`TUPELO_THREADS`](THREADS_VARIABLE) says otherwise.
/// With 1, the calling thread does all the work, except that another thread compresses pages in
/// [`cancellable`] calls, and fetches pages ahead from storage that is not read in place.
/// Running work keeps the threads that it began with.
pub fn set_threads(threads: usize) {
    let mut state = lock(&POOL);
    *state = State { wanted: Some(threads), made: None };
}

/// The number of threads that decode and encode pages.
pub fn threads() -> usize {
    pool().map_or(1, |pool| pool.current_num_threads())
}

fn pool() -> Option<Arc<ThreadPool>> {
    let mut state = lock(&POOL);
    let process = std::process::id();
    if let Some((owner, pool)) = &state.made {
        if *owner == process {
            return pool.clone();
        }
        // Its threads are those of the parent process: dropping it would wait for them.
        std::mem::forget(pool.clone());
    }
    let from_environment = || std::env::var(THREADS_VARIABLE).ok()?.parse().ok();
    let threads = match state.wanted.or_else(from_environment).unwrap_or(0) {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let pool = if threads > 1 { make(threads) } else { None };
    state.made = Some((process, pool.clone()));
    pool
}

thread_local! {
    /// The thread that works for this one in cancellable calls without a pool, and the process that made it. It is kept
    /// for the state that codecs keep per thread.
    static HELPER: RefCell<Option<(u32, Arc<ThreadPool>)>> = const { RefCell::new(None) };
}

/// The helper thread of this thread; each thread that writes has its own.
fn helper() -> Option<Arc<ThreadPool>> {
    HELPER.with_borrow_mut(|kept| {
        let process = std::process::id();
        if kept.as_ref().is_none_or(|(owner, _)| *owner != process) {
            // As for the pool.
            std::mem::forget(kept.take());
            *kept = make(1).map(|helper| (process, helper));
        }
        kept.as_ref().map(|(_, helper)| Arc::clone(helper))
    })
}

/// None if the system cannot create threads: the calling thread then does the work.
fn make(threads: usize) -> Option<Arc<ThreadPool>> {
    let builder = ThreadPoolBuilder::new().num_threads(threads).thread_name(|index| format!("tupelo-{index}"));
    // The waiting thread gets nothing from work that panicked: it repeats the work, or returns an error.
    builder.panic_handler(drop).build().ok().map(Arc::new)
}

/// Runs work that can be cancelled: `is_cancelled` is called on this thread, at most every 20 milliseconds, and once it
/// returns true, the work ends with an error of the kind [`Cancelled`](crate::ErrorKind::Cancelled). A cancelled writer
/// is poisoned, as after a storage error. The call does not wait for pages in compression: other threads finish and
/// drop them. `is_cancelled` may use the engine, except for the objects that the work uses.
/// ```no_run
/// use std::time::{Duration, Instant};
///
/// let began = Instant::now();
/// let is_late = move || began.elapsed() > Duration::from_secs(10);
/// let batch = tupelo::cancellable(is_late, || tupelo::open("events.root:Events").open()?.read_all().to_batch())?;
/// # Ok::<(), tupelo::Error>(())
/// ```
pub fn cancellable<R>(is_cancelled: impl Fn() -> bool + 'static, work: impl FnOnce() -> R) -> R {
    cancel::cancellable(is_cancelled, work)
}

/// An error if the caller cancelled the work.
pub fn check() -> Result<()> {
    match cancel::is_cancelled() {
        true => Err(Error::new(ErrorKind::Cancelled, "cancelled by the caller")),
        false => Ok(()),
    }
}

/// Waits for a message and polls for cancellation. `None` if the work was cancelled or the sender was dropped.
pub(crate) fn wait<T>(done: &Receiver<T>) -> Option<T> {
    let process = std::process::id();
    loop {
        match done.recv_timeout(POLL_INTERVAL) {
            Ok(done) => return Some(done),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => check().ok()?,
        }
        // The caller's function may have forked: the child has no other thread.
        if process != std::process::id() {
            return None;
        }
    }
}

/// Runs all tasks, together about `bytes` of work, and returns their results in order, or the first error in that
/// order.
pub fn map<T: Send, R: Send>(tasks: Vec<T>, bytes: u64, work: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let pool = if tasks.len() > 1 && bytes >= SMALL_BYTES { pool() } else { None };
    let Some(pool) = pool else { return tasks.into_iter().map(|task| check().and_then(|()| work(task))).collect() };
    let scope = Scope::current();
    let flag = scope.as_ref().map(Scope::flag);
    // A waiting thread steals tasks of other callers: each task runs with the flag of its caller.
    let work = |task| {
        with_flag(flag.clone(), || {
            check()?;
            work(task)
        })
    };
    let all = || tasks.into_par_iter().with_max_len(1).map(work).collect::<Vec<Result<R>>>();
    // Other threads are awaited for POLL_INTERVAL before the first poll: many short calls would never poll.
    check()?;
    let is_polled = scope.as_ref().is_some_and(Scope::is_polled);
    let done = match is_polled && pool.current_thread_index().is_none() {
        false => Some(pool.install(all)),
        // This thread polls while others work.
        true => pool.in_place_scope(|scope| {
            let (sender, done) = mpsc::sync_channel(1);
            scope.spawn(move |_| drop(sender.send(all())));
            wait(&done)
        }),
    };
    done.ok_or_else(thread_failed)?.into_iter().collect()
}

/// A thread that waits for a server, with the flag of the thread that began it.
#[derive(Debug)]
pub struct Waiting<'s, T> {
    thread: ScopedJoinHandle<'s, T>,
    finished: Receiver<()>,
}

impl<'s, T: Send + 's> Waiting<'s, T> {
    /// None if the system cannot create threads.
    pub fn begin<'e>(scope: &'s thread::Scope<'s, 'e>, work: impl FnOnce() -> T + Send + 's) -> Option<Waiting<'s, T>> {
        let (sender, finished) = mpsc::channel();
        let flag = Scope::current().map(|scope| scope.flag());
        let work = move || {
            // Dropped at the end, also of a panic, which wakes the receiver.
            let _sender: Sender<()> = sender;
            with_flag(flag, work)
        };
        let thread = thread::Builder::new().name("tupelo-fetch".to_owned()).spawn_scoped(scope, work).ok()?;
        Some(Waiting { thread, finished })
    }

    /// The result; none if the thread panicked.
    pub fn join(self) -> Option<T> {
        // Polls for cancellation, which ends the requests of the thread.
        let _ = wait(&self.finished);
        self.thread.join().ok()
    }
}

/// Runs tasks that wait for servers most of the time on as many threads of their own, and passes the results to `consume`
/// in order, while other tasks run. After an error no task is begun.
pub fn each_waiting<T: Send, R: Send>(
    tasks: Vec<T>,
    threads: usize,
    work: impl Fn(T) -> Result<R> + Sync,
    mut consume: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let count = tasks.len();
    let (tasks, failed) = (Mutex::new(tasks.into_iter().enumerate()), AtomicBool::new(false));
    // In the condition of the loop, the lock would be held while the task runs.
    let next = || lock(&tasks).next();
    let run = |sender: Sender<(usize, Result<R>)>| {
        while !failed.load(Ordering::Relaxed)
            && let Some((index, task)) = next()
        {
            let result = check().and_then(|()| work(task));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            // The receiver is gone after an error.
            let _ = sender.send((index, result));
        }
    };
    thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        let begin = |sender| Waiting::begin(scope, || run(sender));
        let begun: Vec<_> = (0..threads.min(count)).filter_map(|_| begin(sender.clone())).collect();
        if begun.is_empty() {
            // The system cannot create threads.
            run(sender);
        } else {
            drop(sender);
        }
        let (mut early, mut consumed, mut outcome) = (BTreeMap::new(), 0, Ok(()));
        while let Some((index, result)) = wait(&results) {
            early.insert(index, result);
            while outcome.is_ok()
                && let Some(result) = early.remove(&consumed)
            {
                consumed += 1;
                // Waiting for a result polls for cancellation only if it takes long.
                outcome = check().and(result).and_then(&mut consume);
                failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
            }
        }
        drop(results);
        for thread in begun {
            // A panicked task has sent no result.
            let _ = thread.join();
        }
        outcome?;
        // Without the first error in order, a later one; or a thread panicked.
        match early.into_values().find_map(Result::err) {
            Some(error) => Err(error),
            None if consumed == count => Ok(()),
            None => Err(thread_failed()),
        }
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why [`wait`] returned nothing.
#[cold]
fn thread_failed() -> Error {
    check().err().unwrap_or_else(|| Error::new(ErrorKind::Storage, "a thread has ended"))
}

/// Runs work on about `bytes` bytes that owns its data. In cancellable calls another thread runs it, without a pool the
/// helper thread: a cancelled caller does not wait for it. It ends by itself, and its result is dropped.
pub fn run_detached<T: Send + 'static>(bytes: u64, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    check()?;
    let scope = Scope::current().filter(|scope| scope.is_polled() && bytes >= SMALL_BYTES);
    let Some((scope, pool)) = scope.and_then(|scope| Some((scope, pool().or_else(helper)?))) else { return work() };
    // Threads of the pool must not wait here: all could wait for each other.
    if pool.current_thread_index().is_some() {
        return work();
    }
    let flag = Some(scope.flag());
    let work = move || with_flag(flag, work);
    begin(&pool, work).wait().unwrap_or_else(|| Err(thread_failed()))
}

/// Work that another thread runs.
#[derive(Debug)]
pub struct Spawned<T> {
    /// The process whose thread it is.
    process: u32,
    done: Receiver<T>,
}

/// Starts work on another thread of the pool; none without a pool.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<Spawned<T>> {
    Some(begin(&*pool()?, move || with_flag(None, work)))
}

/// Whether this is a thread of the pool. It must not wait for work that the pool has to do: all of its threads could wait
/// for each other.
pub fn is_in_pool() -> bool {
    rayon::current_thread_index().is_some()
}

/// Starts work that mostly waits for servers, on its own thread; `None` if the system cannot create a thread. Tasks of the
/// pool may wait for it.
pub fn spawn_waiting<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<Spawned<T>> {
    let (sender, done) = mpsc::sync_channel(1);
    let work = move || drop(sender.send(with_flag(None, work)));
    thread::Builder::new().name("tupelo-fetch".to_owned()).spawn(work).ok()?;
    Some(Spawned { process: std::process::id(), done })
}

fn begin<T: Send + 'static>(pool: &ThreadPool, work: impl FnOnce() -> T + Send + 'static) -> Spawned<T> {
    let (sender, done) = mpsc::sync_channel(1);
    // The receiver may be gone.
    pool.spawn(move || drop(sender.send(work())));
    Spawned { process: std::process::id(), done }
}

impl<T> Spawned<T> {
    /// The result; `None` in a forked child, which lacks the thread, and after a cancellation.
    pub fn wait(self) -> Option<T> {
        if self.process == std::process::id() { wait(&self.done) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::atomic::AtomicUsize;
    use std::time::{Duration, Instant};

    use super::*;

    /// Cancellation takes effect soon, on any thread, and does not affect later calls.
    #[test]
    fn work_is_cancelled_between_tasks() {
        for bytes in [0, u64::MAX] {
            let began = Instant::now();
            let slow = |task: usize| {
                thread::sleep(Duration::from_millis(5));
                check().map(|()| task)
            };
            let error = cancellable(|| true, || map((0..10_000).collect(), bytes, slow)).unwrap_err();
            assert!(error.kind() == ErrorKind::Cancelled, "{error}");
            assert!(began.elapsed() < Duration::from_secs(10));
            let nested = |task: usize| map(vec![task, 1, 2], bytes, Ok).map(|numbers| numbers[0]);
            let all: Vec<usize> = (0..100).collect();
            assert_eq!(cancellable(|| false, || map(all.clone(), bytes, nested)).unwrap(), all);
            assert_eq!(map(all.clone(), bytes, nested).unwrap(), all);
        }
    }

    /// Regression: the cancellation function could not use the engine, because the token was borrowed.
    #[test]
    fn the_cancellation_function_may_use_the_engine() {
        let work = || {
            map((0..20).collect(), 0, |task: usize| {
                thread::sleep(Duration::from_millis(5));
                Ok(task)
            })
        };
        let asked = Rc::new(Cell::new(0));
        let count = Rc::clone(&asked);
        let ask = move || {
            count.set(count.get() + 1);
            cancellable(|| false, || map(vec![1, 2], u64::MAX, Ok)).unwrap() != [1, 2]
        };
        assert_eq!(cancellable(ask, work).unwrap().len(), 20);
        assert!(asked.get() > 0);
    }

    /// Regression: tasks that a waiting thread stole from other callers were cancelled with its own.
    #[test]
    fn only_the_work_of_the_caller_is_cancelled() {
        let slow = |task: usize| {
            let inner = |number: usize| {
                thread::sleep(Duration::from_millis(1));
                check().map(|()| number)
            };
            map(vec![task, 1, 2, 3], u64::MAX, inner).map(|numbers| numbers[0])
        };
        let all: Vec<usize> = (0..100).collect();
        thread::scope(|scope| {
            let other = scope.spawn(|| (0..5).all(|_| map(all.clone(), u64::MAX, slow).is_ok()));
            for _ in 0..5 {
                assert!(cancellable(|| true, || map((0..1000).collect(), u64::MAX, slow)).is_err());
            }
            assert!(other.join().unwrap());
        });
    }

    /// Compressing a page may take a second: Ctrl-C does not wait for it.
    #[test]
    fn a_cancelled_caller_does_not_wait_for_running_tasks() {
        for tasks in [1, 1000] {
            let (begun, done) = mpsc::channel();
            let (release, held) = mpsc::channel::<()>();
            let held = Mutex::new(held);
            let is_begun = Arc::new(AtomicBool::new(false));
            let ask = is_begun.clone();
            let work = move |task: usize| {
                is_begun.store(true, Ordering::Relaxed);
                let _ = held.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(Duration::from_secs(60));
                let _ = begun.send(task);
                Ok(task)
            };
            let all = move || run_detached(u64::MAX, move || map((0..tasks).collect(), u64::MAX, work));
            let error = cancellable(move || ask.load(Ordering::Relaxed), all).unwrap_err();
            assert!(error.kind() == ErrorKind::Cancelled, "{error}");
            assert!(done.try_recv().is_err(), "it was waited for");
            drop(release);
            let ended = done.iter().count();
            assert!((1..=threads()).contains(&ended), "{ended} of {tasks} tasks are done");
        }
    }

    /// Without a pool, another thread works while the calling thread polls.
    #[test]
    fn only_large_cancellable_work_is_detached() {
        let by = || Ok(thread::current().id());
        let me = thread::current().id();
        assert_eq!(run_detached(u64::MAX, by).unwrap(), me);
        assert_eq!(cancellable(|| false, || run_detached(SMALL_BYTES - 1, by)).unwrap(), me);
        assert_ne!(cancellable(|| false, || run_detached(SMALL_BYTES, by)).unwrap(), me);
        let nested = || run_detached(SMALL_BYTES, move || run_detached(SMALL_BYTES, by));
        assert_ne!(cancellable(|| false, nested).unwrap(), me);
        let sum = || run_detached(u64::MAX, || map((0..100).collect(), u64::MAX, |n: u64| Ok(n * n)));
        assert_eq!(cancellable(|| false, sum).unwrap(), (0..100).map(|n| n * n).collect::<Vec<u64>>());
    }

    #[test]
    fn waiting_tasks_run_at_the_same_time_and_in_order() {
        let barrier = std::sync::Barrier::new(3);
        let meet = |task: usize| {
            barrier.wait();
            Ok(task)
        };
        let each = |tasks: Vec<usize>, threads, work: &(dyn Fn(usize) -> Result<usize> + Sync)| {
            let mut results = Vec::new();
            let push = |result| {
                results.push(result);
                Ok(())
            };
            each_waiting(tasks, threads, work, push).map(|()| results)
        };
        assert_eq!(each((0..6).collect(), 3, &meet).unwrap(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(each(Vec::new(), 3, &meet).unwrap(), [0; 0]);
        let begun = AtomicUsize::new(0);
        let fail = |task: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            if task == 1 { Err(Error::limit("on purpose")) } else { Ok(task) }
        };
        assert!(each((0..1000).collect(), 1, &fail).unwrap_err().to_string().contains("on purpose"));
        assert_eq!(begun.into_inner(), 2);
        let slow = |task: usize| {
            thread::sleep(Duration::from_millis(5));
            check().map(|()| task)
        };
        let error = cancellable(|| true, || each((0..10_000).collect(), 2, &slow)).unwrap_err();
        assert!(error.kind() == ErrorKind::Cancelled, "{error}");
        let panics = |_: usize| -> Result<usize> { panic!("on purpose") };
        assert!(each(vec![1], 1, &panics).is_err());
        let refused = each_waiting(vec![1, 2], 2, Ok, |_| Err(Error::limit("refused"))).unwrap_err();
        assert!(refused.to_string().contains("refused"), "{refused}");
    }

    /// A panic on another thread does not block the caller.
    #[test]
    fn a_panic_on_another_thread_is_an_error() {
        let error =
            cancellable(|| false, || run_detached(u64::MAX, || -> Result<()> { panic!("on purpose") })).unwrap_err();
        assert!(error.to_string().contains("a thread has ended"), "{error}");
    }

    /// Regression: calls of less than 20 milliseconds each never polled.
    #[test]
    fn many_short_calls_poll_too() {
        let asked = Rc::new(Cell::new(0));
        let count = Rc::clone(&asked);
        let ask = move || {
            count.set(count.get() + 1);
            false
        };
        let short = |task: usize| {
            thread::sleep(Duration::from_millis(1));
            Ok(task)
        };
        cancellable(ask, || (0..50).try_for_each(|_| map(vec![1, 2], u64::MAX, short).map(drop))).unwrap();
        assert!(asked.get() > 0);
    }
}
