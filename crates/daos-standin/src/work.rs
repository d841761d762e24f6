//! The threads that do the operations, after the latency that the tests ask for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::c_int;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::abi::Event;
use crate::control::{self, Fault, Kind};
use crate::error::{DER_MISC, Outcome, status};
use crate::event::{self, EventId};

/// Threads that do operations. The number in flight is not limited by it: an operation waits for its latency without
/// a thread.
const THREADS: usize = 4;

/// The work of an operation. It runs while the caller keeps everything alive that it passed.
pub(crate) type Job = Box<dyn FnOnce() -> Outcome + Send>;

/// A pointer of the caller that a job uses.
#[derive(Debug)]
pub(crate) struct Out<T>(*mut T);

// SAFETY: the caller lends what it passes to an operation until that is complete, whatever thread does it.
unsafe impl<T> Send for Out<T> {}

impl<T> Out<T> {
    pub(crate) fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// The pointer. A method, so that closures capture the whole, which may go to another thread.
    pub(crate) fn get(&self) -> *mut T {
        self.0
    }

    /// Writes to what is not null.
    ///
    /// # Safety
    /// Null, or space for a value.
    pub(crate) unsafe fn put(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so the caller has space for a value.
            unsafe { self.0.write(value) };
        }
    }
}

/// Who gets the result.
enum Waiting {
    Event(EventId),
    Call(Sender<Outcome>),
}

struct Task {
    due: Instant,
    kind: Kind,
    job: Job,
    waiting: Waiting,
}

/// Tasks by the time at which they start, then in the order of the calls.
#[derive(Default)]
struct Schedule {
    order: BinaryHeap<Reverse<(Instant, u64)>>,
    tasks: std::collections::HashMap<u64, Task>,
    last: u64,
}

struct Workers {
    schedule: Mutex<Schedule>,
    added: Condvar,
}

static WORKERS: LazyLock<&'static Workers> = LazyLock::new(|| {
    let workers = Box::leak(Box::new(Workers { schedule: Mutex::default(), added: Condvar::new() }));
    for _ in 0..THREADS {
        thread::spawn(|| workers.run());
    }
    workers
});

impl Workers {
    fn add(&self, task: Task) {
        let mut schedule = self.schedule.lock().unwrap_or_else(PoisonError::into_inner);
        schedule.last += 1;
        let number = schedule.last;
        schedule.order.push(Reverse((task.due, number)));
        schedule.tasks.insert(number, task);
        self.added.notify_one();
    }

    fn run(&self) {
        loop {
            self.next().run();
        }
    }

    fn next(&self) -> Task {
        let mut schedule = self.schedule.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let first = schedule.order.peek().map(|Reverse((due, number))| (*due, *number));
            let left = first.map(|(due, number)| (due.saturating_duration_since(Instant::now()), number));
            schedule = match left {
                None => self.added.wait(schedule).unwrap_or_else(PoisonError::into_inner),
                Some((left, number)) if left.is_zero() => {
                    schedule.order.pop();
                    return schedule.tasks.remove(&number).expect("every number in the order has a task");
                }
                Some((left, _)) => self.added.wait_timeout(schedule, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }
}

impl Task {
    fn run(self) {
        let result = (self.job)();
        if self.kind != Kind::Other {
            control::end();
        }
        match self.waiting {
            Waiting::Event(id) => event::arrive(id, status(result)),
            // The caller waits for it, unless its thread ended.
            Waiting::Call(sender) => drop(sender.send(result)),
        }
    }
}

/// Does an operation: in the background with an event, which gets all its errors, or else before it returns.
///
/// `job` is an error where the operation is rejected before it is sent.
///
/// # Safety
/// Null, or a valid event.
pub(crate) unsafe fn operation(event: *const Event, kind: Kind, job: Outcome<Job>) -> c_int {
    if let Err(error) = control::require_start() {
        return -error;
    }
    let fault = control::count_call(kind);
    let id = if event.is_null() {
        None
    } else {
        // SAFETY: not null, so a valid event.
        match unsafe { event::launch(event) } {
            Ok(id) => Some(id),
            Err(error) => return -error,
        }
    };
    let job: Job = match (job, fault) {
        (Err(error), _) => return id.map_or(-error, |id| status(event::reject(id, -error))),
        (Ok(_), Some(Fault::Error(error))) => Box::new(move || Err(error)),
        (Ok(job), _) => job,
    };
    if kind != Kind::Other {
        control::begin();
    }
    if fault == Some(Fault::Hang) {
        while id.is_none() {
            thread::park();
        }
        return 0;
    }
    let due = Instant::now() + control::latency();
    match id {
        Some(id) => {
            WORKERS.add(Task { due, kind, job, waiting: Waiting::Event(id) });
            0
        }
        None => {
            let (sender, receiver) = channel();
            WORKERS.add(Task { due, kind, job, waiting: Waiting::Call(sender) });
            status(receiver.recv().unwrap_or(Err(DER_MISC)))
        }
    }
}
