//! Threads: work is cut into tasks, and idle threads steal them from each other.
//!
//! The pool belongs to the process. It is made when it is first needed, and anew in a forked child, where the threads
//! of the parent are gone.

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::Result;

/// Environment variable with the number of threads, for programs that do not call [`set_threads`].
pub const THREADS_VARIABLE: &str = "TUPELO_THREADS";
/// Bytes below which work is not cut, because waking a thread costs more.
const SMALL_BYTES: u64 = 256 << 10;

static POOL: Mutex<State> = Mutex::new(State { wanted: None, made: None });

struct State {
    /// Number of threads that was set.
    wanted: Option<usize>,
    /// The process that made the pool, and the pool; none with one thread.
    made: Option<(u32, Option<Arc<ThreadPool>>)>,
}

/// Sets the number of threads that decode and encode pages, in all of this process; 0 stands for as many as the process
/// has cores, which is the default unless the environment variable [`TUPELO_THREADS`](THREADS_VARIABLE) says otherwise.
/// With 1, whoever calls does all the work. What is under way keeps the threads that it began with.
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
    // Without threads the work is done all the same.
    let named = |index| format!("tupelo-{index}");
    // Whoever waits for a task that panicked does its work again, and panics himself.
    let builder = || ThreadPoolBuilder::new().num_threads(threads).thread_name(named).panic_handler(drop);
    let build = || builder().build().ok().map(Arc::new);
    let pool = if threads > 1 { build() } else { None };
    state.made = Some((process, pool.clone()));
    pool
}

/// Does all tasks, which are about `bytes` of work together, and gives what they made in their order, or
/// the first error in that order.
pub(crate) fn map<T: Send, R: Send>(tasks: Vec<T>, bytes: u64, work: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let pool = if tasks.len() > 1 && bytes >= SMALL_BYTES { pool() } else { None };
    let Some(pool) = pool else { return tasks.into_iter().map(work).collect() };
    let done: Vec<Result<R>> = pool.install(|| tasks.into_par_iter().with_max_len(1).map(&work).collect());
    done.into_iter().collect()
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
    let (sender, done) = mpsc::sync_channel(1);
    // Nobody may be waiting any more.
    pool()?.spawn(move || drop(sender.send(work())));
    Some(Ahead { process: std::process::id(), done })
}

impl<T> Ahead<T> {
    /// What came of it; nothing in a forked child, where the thread is gone.
    pub(crate) fn wait(self) -> Option<T> {
        if self.process == std::process::id() { self.done.recv().ok() } else { None }
    }
}
