//! Threads: work is cut into tasks, and idle threads steal them from each other.
//!
//! The pool belongs to the process. It is made when it is first needed, and anew in a forked child, where the threads
//! of the parent are gone.

mod background;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};

pub(crate) use self::background::{Background, is_concurrent};
use crate::{Error, ErrorKind, Result};

/// Environment variable with the number of threads, for programs that do not call [`set_threads`].
pub const THREADS_VARIABLE: &str = "TUPELO_THREADS";
/// Bytes below which work is not cut, because waking a thread costs more.
pub(crate) const SMALL_BYTES: u64 = 256 << 10;
/// How long work goes on before a caller who may stop it is asked.
const PATIENCE: Duration = Duration::from_millis(20);

static POOL: Mutex<State> = Mutex::new(State { wanted: None, made: None });

struct State {
    /// Number of threads that was set.
    wanted: Option<usize>,
    /// The process that made the pool, and the pool; none with one thread.
    made: Option<(u32, Option<Arc<ThreadPool>>)>,
}

/// Sets the number of threads that decode and encode pages, in all of this process; 0 stands for as many as the process
/// has cores, which is the default unless the environment variable [`TUPELO_THREADS`](THREADS_VARIABLE) says otherwise.
/// With 1, whoever calls does all the work, but for pages that are compressed while he is asked whether to go on
/// ([`stoppable`]): these another thread compresses. What is under way keeps the threads that it began with.
pub fn set_threads(threads: usize) {
    let mut state = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    *state = State { wanted: Some(threads), made: None };
}

/// The number of threads that decode and encode pages.
pub fn threads() -> usize {
    pool().map_or(1, |pool| pool.current_num_threads())
}

fn pool() -> Option<Arc<ThreadPool>> {
    let mut state = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, pool)) = &state.made {
        if *owner == process {
            return pool.clone();
        }
        // Its threads are those of the parent: to drop it would be to wait for them.
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
    /// What works for this thread while it is asked, where there is no pool, and the process that made it. It is kept for
    /// what codecs keep for each thread.
    static HELPER: RefCell<Option<(u32, Arc<ThreadPool>)>> = const { RefCell::new(None) };
}

/// A thread of this thread's own: others that write at the same time, each a context, have theirs.
fn helper() -> Option<Arc<ThreadPool>> {
    HELPER.with_borrow_mut(|kept| {
        let process = std::process::id();
        if kept.as_ref().is_none_or(|(owner, _)| *owner != process) {
            // As with the pool.
            std::mem::forget(kept.take());
            *kept = make(1).map(|helper| (process, helper));
        }
        kept.as_ref().map(|(_, helper)| Arc::clone(helper))
    })
}

/// None where the system has no threads: the work is done all the same.
fn make(threads: usize) -> Option<Arc<ThreadPool>> {
    let builder = ThreadPoolBuilder::new().num_threads(threads).thread_name(|index| format!("tupelo-{index}"));
    // Whoever waits for work that panicked gets nothing: he does it again and panics himself, or makes an error of it.
    builder.panic_handler(drop).build().ok().map(Arc::new)
}

/// Lets a caller stop work in between: `ask` is called on this thread, every 20 milliseconds at most, and if it answers
/// true, what is under way ends with an error of the kind [`Cancelled`](crate::ErrorKind::Cancelled). As after an error of
/// the storage, a writer that is cancelled can only be given up. The call does not wait for pages that are being
/// compressed then: other threads finish and drop them. `ask` may use the engine itself, but not what the work is using.
/// ```no_run
/// use std::time::{Duration, Instant};
///
/// let began = Instant::now();
/// let is_late = move || began.elapsed() > Duration::from_secs(10);
/// let batch = tupelo::stoppable(is_late, || tupelo::open("events.root:Events").open()?.read_all().to_batch())?;
/// # Ok::<(), tupelo::Error>(())
/// ```
pub fn stoppable<R>(ask: impl Fn() -> bool + 'static, work: impl FnOnce() -> R) -> R {
    let asker = Asker { ask: Box::new(ask), asked: Cell::new(Instant::now()) };
    over(Some(Stop { is_stopped: Arc::new(AtomicBool::new(false)), asker: Some(Rc::new(asker)) }), work)
}

thread_local! {
    static STOP: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

/// Whether to go on.
#[derive(Clone)]
struct Stop {
    is_stopped: Arc<AtomicBool>,
    /// Only on the thread of the caller.
    asker: Option<Rc<Asker>>,
}

struct Asker {
    ask: Box<dyn Fn() -> bool>,
    asked: Cell<Instant>,
}

/// Does work that asks whether to go on, or work that does not, whatever the thread does else.
fn over<R>(stop: Option<Stop>, work: impl FnOnce() -> R) -> R {
    struct Before(Option<Stop>);
    impl Drop for Before {
        fn drop(&mut self) {
            STOP.set(self.0.take());
        }
    }
    let _before = Before(STOP.replace(stop));
    work()
}

impl Stop {
    fn current() -> Option<Self> {
        STOP.with_borrow(Clone::clone)
    }

    /// The same for threads that work for the caller: only he is asked.
    fn elsewhere(is_stopped: Option<&Arc<AtomicBool>>) -> Option<Self> {
        is_stopped.map(|is_stopped| Self { is_stopped: Arc::clone(is_stopped), asker: None })
    }

    fn check(&self) -> Result<()> {
        if let Some(asker) = self.asker.as_ref().filter(|asker| asker.asked.get().elapsed() >= PATIENCE) {
            asker.asked.set(Instant::now());
            self.is_stopped.fetch_or((asker.ask)(), Ordering::Relaxed);
        }
        match self.is_stopped.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::Cancelled, "cancelled by the caller")),
            false => Ok(()),
        }
    }
}

/// An error if the caller wants no more.
pub(crate) fn check() -> Result<()> {
    // Not borrowed while somebody is asked, who may use the engine himself.
    Stop::current().map_or(Ok(()), |stop| stop.check())
}

/// What comes through a channel, while the caller is asked whether to go on; nothing if he does not, or the other end is
/// gone.
fn wait<T>(done: &Receiver<T>) -> Option<T> {
    let process = std::process::id();
    loop {
        match done.recv_timeout(PATIENCE) {
            Ok(done) => return Some(done),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => check().ok()?,
        }
        // Whoever was asked may have forked: a child has no other thread than this one.
        if process != std::process::id() {
            return None;
        }
    }
}

/// Does all tasks, which are about `bytes` of work together, and gives what they made in their order, or
/// the first error in that order.
pub(crate) fn map<T: Send, R: Send>(tasks: Vec<T>, bytes: u64, work: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let pool = if tasks.len() > 1 && bytes >= SMALL_BYTES { pool() } else { None };
    let Some(pool) = pool else { return tasks.into_iter().map(|task| check().and_then(|()| work(task))).collect() };
    let stop = Stop::current();
    let is_stopped = stop.as_ref().map(|stop| &stop.is_stopped);
    // A thread that waits takes whatever there is to do: each task brings its own caller.
    let work = |task| {
        over(Stop::elsewhere(is_stopped), || {
            check()?;
            work(task)
        })
    };
    let all = || tasks.into_par_iter().with_max_len(1).map(work).collect::<Vec<Result<R>>>();
    // While others work, nobody is asked before PATIENCE is over: callers of many short calls would never be.
    check()?;
    let is_asked = stop.as_ref().is_some_and(|stop| stop.asker.is_some());
    let done = match is_asked && pool.current_thread_index().is_none() {
        false => Some(pool.install(all)),
        // The caller asks while others work.
        true => pool.in_place_scope(|scope| {
            let (sender, done) = mpsc::sync_channel(1);
            scope.spawn(move |_| drop(sender.send(all())));
            wait(&done)
        }),
    };
    done.ok_or_else(nothing_came)?.into_iter().collect()
}

/// Why [`wait`] gave nothing.
#[cold]
fn nothing_came() -> Error {
    check().err().unwrap_or_else(|| Error::new(ErrorKind::Storage, "a thread is gone"))
}

/// Does work on about so many bytes that owns what it needs. Where the caller may stop it, others do it, with one thread
/// his helper: then he does not wait for it when he wants no more. It ends by itself, with the tasks of [`map`] that are
/// under way, and what it made is dropped.
pub(crate) fn apart<T: Send + 'static>(bytes: u64, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    check()?;
    let stop = Stop::current().filter(|stop| stop.asker.is_some() && bytes >= SMALL_BYTES);
    let Some((stop, pool)) = stop.and_then(|stop| Some((stop, pool().or_else(helper)?))) else { return work() };
    // A thread of the pool that waits does nothing else meanwhile: all could wait for each other.
    if pool.current_thread_index().is_some() {
        return work();
    }
    let is_stopped = stop.is_stopped;
    let work = move || over(Stop::elsewhere(Some(&is_stopped)), work);
    begin(&pool, work).wait().unwrap_or_else(|| Err(nothing_came()))
}

/// Work that another thread does meanwhile.
#[derive(Debug)]
pub(crate) struct Ahead<T> {
    /// The process whose thread it is.
    process: u32,
    done: Receiver<T>,
}

/// Lets another thread begin with some work, where there are several.
pub(crate) fn ahead<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<Ahead<T>> {
    Some(begin(&*pool()?, move || over(None, work)))
}

fn begin<T: Send + 'static>(pool: &ThreadPool, work: impl FnOnce() -> T + Send + 'static) -> Ahead<T> {
    let (sender, done) = mpsc::sync_channel(1);
    // Nobody may be waiting any more.
    pool.spawn(move || drop(sender.send(work())));
    Ahead { process: std::process::id(), done }
}

impl<T> Ahead<T> {
    /// What came of it; nothing in a forked child, where the thread is gone, and where the caller wants no more.
    pub(crate) fn wait(self) -> Option<T> {
        if self.process == std::process::id() { wait(&self.done) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is stopped is stopped soon, wherever it is done, and what comes after it is not.
    #[test]
    fn work_is_stopped_in_between() {
        for bytes in [0, u64::MAX] {
            let began = Instant::now();
            let slow = |task: usize| {
                thread::sleep(Duration::from_millis(5));
                check().map(|()| task)
            };
            let error = stoppable(|| true, || map((0..10_000).collect(), bytes, slow)).unwrap_err();
            assert!(error.kind() == ErrorKind::Cancelled, "{error}");
            assert!(began.elapsed() < Duration::from_secs(10));
            let nested = |task: usize| map(vec![task, 1, 2], bytes, Ok).map(|numbers| numbers[0]);
            let all: Vec<usize> = (0..100).collect();
            assert_eq!(stoppable(|| false, || map(all.clone(), bytes, nested)).unwrap(), all);
            assert_eq!(map(all.clone(), bytes, nested).unwrap(), all);
        }
    }

    /// Who asked while the engine was in use by the work could not use it: the question was borrowed.
    #[test]
    fn who_asks_may_work_too() {
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
            stoppable(|| false, || map(vec![1, 2], u64::MAX, Ok)).unwrap() != [1, 2]
        };
        assert_eq!(stoppable(ask, work).unwrap().len(), 20);
        assert!(asked.get() > 0);
    }

    /// A thread that waited for its own work did that of others, and these were stopped with it.
    #[test]
    fn only_the_work_of_the_caller_is_stopped() {
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
                assert!(stoppable(|| true, || map((0..1000).collect(), u64::MAX, slow)).is_err());
            }
            assert!(other.join().unwrap());
        });
    }

    /// A page may take its codec a second, and Ctrl-C took as long.
    #[test]
    fn who_stops_does_not_wait_for_what_is_under_way() {
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
            let all = move || apart(u64::MAX, move || map((0..tasks).collect(), u64::MAX, work));
            let error = stoppable(move || ask.load(Ordering::Relaxed), all).unwrap_err();
            assert!(error.kind() == ErrorKind::Cancelled, "{error}");
            assert!(done.try_recv().is_err(), "it was waited for");
            drop(release);
            let ended = done.iter().count();
            assert!((1..=threads()).contains(&ended), "{ended} of {tasks} tasks are done");
        }
    }

    /// With one thread, another one works while the caller is asked.
    #[test]
    fn only_large_work_that_may_be_stopped_is_done_by_others() {
        let by = || Ok(thread::current().id());
        let me = thread::current().id();
        assert_eq!(apart(u64::MAX, by).unwrap(), me);
        assert_eq!(stoppable(|| false, || apart(SMALL_BYTES - 1, by)).unwrap(), me);
        assert_ne!(stoppable(|| false, || apart(SMALL_BYTES, by)).unwrap(), me);
        let nested = || apart(SMALL_BYTES, move || apart(SMALL_BYTES, by));
        assert_ne!(stoppable(|| false, nested).unwrap(), me);
        let sum = || apart(u64::MAX, || map((0..100).collect(), u64::MAX, |n: u64| Ok(n * n)));
        assert_eq!(stoppable(|| false, sum).unwrap(), (0..100).map(|n| n * n).collect::<Vec<u64>>());
    }

    /// Nobody waits for ever.
    #[test]
    fn work_that_panics_elsewhere_is_an_error() {
        let error = stoppable(|| false, || apart(u64::MAX, || -> Result<()> { panic!("as it should") })).unwrap_err();
        assert!(error.to_string().contains("a thread is gone"), "{error}");
    }

    /// Nobody was asked by work that others do in less than 20 milliseconds, however often it came.
    #[test]
    fn who_calls_often_is_asked_too() {
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
        stoppable(ask, || (0..50).try_for_each(|_| map(vec![1, 2], u64::MAX, short).map(drop))).unwrap();
        assert!(asked.get() > 0);
    }
}
