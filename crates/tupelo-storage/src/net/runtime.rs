//! The threads that run requests. They start with the first request.

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tokio::runtime::{Builder, Runtime};

use super::failure::Failure;
use crate::error::ErrorKind;

/// Threads that encrypt, decrypt and parse responses.
const THREADS: usize = 2;

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

/// Runs a future on the threads of the runtime, and waits for its result.
///
/// # Errors
/// Those of the future; errors of the system when starting threads; an error where the future panicked.
pub(crate) fn run<T: Send + 'static>(
    future: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let no_threads = |error: io::Error| {
        Failure::lasting(error.kind().into(), error.to_string()).context("the threads for requests cannot start")
    };
    let (sender, result) = mpsc::sync_channel(1);
    runtime().map_err(no_threads)?.spawn(async move {
        // The receiver waits until it has the result.
        let _ = sender.send(future.await);
    });
    let lost = |_| Failure::lasting(ErrorKind::Other, "a request ended without a result");
    result.recv().map_err(lost).flatten()
}
