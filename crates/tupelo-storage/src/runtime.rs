//! The threads that run requests to remote stores. They start with the first request.

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tokio::runtime::{Builder, Runtime};

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
/// Errors of the system when starting threads; an error where the future panicked.
pub(crate) fn block_on<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    let (sender, result) = mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // The receiver waits until it has the result.
        let _ = sender.send(future.await);
    });
    result.recv().map_err(|_| io::Error::other("a request ended without a result"))
}
