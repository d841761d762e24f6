//! The threads that run requests. They start with the first request.

use std::future::Future;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::failure::Failure;
use super::retry::Limits;
use crate::cancel::{self, POLL_INTERVAL, Scope};
use crate::error::ErrorKind;

/// Threads that encrypt, decrypt and parse responses.
const THREADS: usize = 2;
/// Maximum time to remove what a cancelled call has left on a server: 3 seconds.
const CLEANING_TIME: Duration = Duration::from_secs(3);

/// The runtime, and the process that it belongs to: after a fork, the child has none of its threads.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

fn runtime() -> io::Result<Arc<Runtime>> {
    let mut current = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, runtime)) = &*current {
        if *owner == process {
            return Ok(Arc::clone(runtime));
        }
        // Dropping it would wait for threads of the parent process.
        std::mem::forget(Arc::clone(runtime));
    }
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_name("tupelo-io").enable_all().build()?;
    let runtime = Arc::new(runtime);
    *current = Some((process, Arc::clone(&runtime)));
    Ok(runtime)
}

/// Runs a future on the threads of the runtime, and waits for its result. If the caller cancels the work, the future is
/// dropped where it waits.
///
/// # Errors
/// Those of the future; [`ErrorKind::Cancelled`]; errors of the system when starting threads; an error where the future
/// panicked.
pub(crate) fn run<T: Send + 'static>(
    future: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let no_threads = |error: io::Error| {
        Failure::lasting(error.kind().into(), error.to_string()).context("cannot start the threads for requests")
    };
    let runtime = runtime().map_err(no_threads)?;
    if cancel::is_cancelled() {
        return Err(cancelled());
    }
    let (sender, result) = mpsc::sync_channel(1);
    let task = runtime.spawn(async move {
        // The receiver is gone if the caller was cancelled.
        let _ = sender.send(future.await);
    });
    wait(&result).inspect_err(|_| task.abort()).flatten()
}

/// Waits for the result of a future, and polls for cancellation.
fn wait<T>(result: &Receiver<T>) -> Result<T, Failure> {
    let lost = || Failure::lasting(ErrorKind::Other, "a request ended without a result");
    let Some(scope) = Scope::current() else { return result.recv().map_err(|_| lost()) };
    let process = std::process::id();
    loop {
        match result.recv_timeout(POLL_INTERVAL) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Disconnected) => return Err(lost()),
            Err(RecvTimeoutError::Timeout) if scope.is_cancelled() => return Err(cancelled()),
            // The caller's function may have forked: the child has no other thread.
            Err(RecvTimeoutError::Timeout) if process != std::process::id() => return Err(lost()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cold]
fn cancelled() -> Failure {
    Failure::lasting(ErrorKind::Cancelled, "cancelled by the caller")
}

/// Removes what a call has left on a server, also if the call was cancelled: then by one attempt in a short time.
pub(crate) fn run_cleaning<T: Send + 'static, F: Future<Output = Result<T, Failure>> + Send + 'static>(
    limits: Limits,
    cleaning: impl FnOnce(Limits) -> F,
) -> Result<T, Failure> {
    let limits = match cancel::is_cancelled() {
        true => Limits { attempts: 1, total: limits.total.min(CLEANING_TIME), ..limits },
        false => limits,
    };
    cancel::with_flag(None, || run(cleaning(limits)))
}
