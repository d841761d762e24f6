//! Objects that are sent while the caller goes on.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tupelo_core::pool;
use tupelo_format::checksum::xxh3_of_pieces;
use tupelo_format::store::ObjectDigest;
use tupelo_storage::cancel::{Flag, POLL_INTERVAL, with_flag};
use tupelo_storage::{ErrorKind, NewObject, ObjectSink};

use crate::{Error, Result};

/// Bytes of objects that wait or are sent; a single larger object is accepted.
const MAX_PENDING_BYTES: u64 = 128 << 20;
/// Objects that are sent by one call, in bytes and number.
const BATCH_BYTES: u64 = 16 << 20;
const BATCH_OBJECTS: usize = 256;
/// While one thread waits for the slowest request of a batch, the other one sends.
const THREADS: usize = 2;

/// A queue of new objects, and the threads that send them.
#[derive(Debug)]
pub(super) struct Uploads {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The process that has the threads. A forked child does not have them.
    process: u32,
}

#[derive(Debug)]
struct Shared {
    namespace: Arc<dyn ObjectSink>,
    queue: Mutex<Queue>,
    /// Signals each change of the queue.
    changed: Condvar,
    /// Set when the objects are not wanted any more.
    stop: Flag,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<NewObject>,
    /// Bytes of the objects that wait or are sent.
    bytes: u64,
    is_sending: usize,
    digests: Vec<(String, ObjectDigest)>,
    /// The first error, until it is returned.
    error: Option<tupelo_storage::Error>,
    has_failed: bool,
    /// Keys of requests that have failed, which may have written objects.
    unknown: Vec<String>,
    /// Whether a request has failed because an object exists already: it is not known which ones it has written.
    has_collided: bool,
    is_closed: bool,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change of the queue, and polls for cancellation.
    fn wait<'q>(&'q self, queue: MutexGuard<'q, Queue>) -> Result<MutexGuard<'q, Queue>> {
        let (queue, _) = self.changed.wait_timeout(queue, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner);
        drop(queue);
        // Not under the lock: it calls the caller's function.
        pool::check()?;
        Ok(self.queue())
    }

    fn send_all(&self) {
        while let Some(batch) = self.next_batch() {
            let bytes: u64 = batch.iter().map(bytes_of).sum();
            let digests: Vec<_> = batch.iter().map(|object| (object.key.clone(), digest(object))).collect();
            let sent = with_flag(Some(self.stop.clone()), || self.namespace.put(&batch));
            drop(batch);
            let mut queue = self.queue();
            queue.bytes -= bytes;
            queue.is_sending -= 1;
            match sent {
                Ok(()) => queue.digests.extend(digests),
                Err(error) => {
                    queue.has_failed = true;
                    match error.kind() {
                        ErrorKind::Changed => queue.has_collided = true,
                        _ => queue.unknown.extend(digests.into_iter().map(|(key, _)| key)),
                    }
                    queue.error.get_or_insert(error);
                }
            }
            drop(queue);
            self.changed.notify_all();
        }
    }

    /// Waits for objects to send; `None` at the end.
    fn next_batch(&self) -> Option<Vec<NewObject>> {
        let mut queue = self.queue();
        loop {
            if queue.has_failed {
                queue.waiting.clear();
            }
            if !queue.waiting.is_empty() {
                break;
            }
            if queue.is_closed {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(object) = queue.waiting.pop_front() {
            bytes += bytes_of(&object);
            batch.push(object);
            if bytes >= BATCH_BYTES || batch.len() == BATCH_OBJECTS {
                break;
            }
        }
        queue.is_sending += 1;
        Some(batch)
    }
}

impl Uploads {
    pub(super) fn new(namespace: Arc<dyn ObjectSink>) -> Self {
        let (queue, changed, stop) = (Mutex::default(), Condvar::new(), Flag::default());
        Self {
            shared: Arc::new(Shared { namespace, queue, changed, stop }),
            threads: Mutex::default(),
            process: std::process::id(),
        }
    }

    /// Adds objects to the queue, and waits while it is full. An error may be that of an earlier object.
    pub(super) fn put(&self, objects: Vec<NewObject>) -> Result<()> {
        self.start()?;
        for object in objects {
            let bytes = bytes_of(&object);
            let mut queue = self.shared.queue();
            loop {
                check(&mut queue)?;
                if queue.bytes == 0 || queue.bytes + bytes <= MAX_PENDING_BYTES {
                    break;
                }
                queue = self.shared.wait(queue)?;
            }
            queue.bytes += bytes;
            queue.waiting.push_back(object);
            drop(queue);
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    fn start(&self) -> Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        while threads.len() < THREADS {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("tupelo-put".to_owned()).spawn(move || shared.send_all());
            threads.push(thread.map_err(|error| Error::limit("cannot start a thread").caused_by(error))?);
        }
        Ok(())
    }

    /// Waits until all objects are sent.
    pub(super) fn wait(&self) -> Result<()> {
        let mut queue = self.shared.queue();
        loop {
            check(&mut queue)?;
            if queue.waiting.is_empty() && queue.is_sending == 0 {
                return Ok(());
            }
            queue = self.shared.wait(queue)?;
        }
    }

    /// Waits until all objects are sent; returns the keys and digests of all.
    pub(super) fn finish(&self) -> Result<Vec<(String, ObjectDigest)>> {
        self.wait()?;
        Ok(std::mem::take(&mut self.shared.queue().digests))
    }

    /// Drops the objects that wait, cancels the requests that run, and waits for their end. Returns the keys of those that
    /// may have been written, and whether these are all.
    pub(super) fn stop(&self) -> (Vec<String>, bool) {
        self.shared.queue().has_failed = true;
        self.shared.stop.set();
        self.close();
        let queue = &mut *self.shared.queue();
        let sent = std::mem::take(&mut queue.digests).into_iter().map(|(key, _)| key);
        (sent.chain(queue.unknown.drain(..)).collect(), !queue.has_collided)
    }

    fn close(&self) {
        self.shared.queue().is_closed = true;
        self.shared.changed.notify_all();
        for thread in self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // A thread that panicked has sent nothing more.
            let _ = thread.join();
        }
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.close();
        }
    }
}

fn check(queue: &mut Queue) -> Result<()> {
    match queue.error.take() {
        Some(error) => Err(error.into()),
        None if queue.has_failed => Err(Error::invalid_argument("an object could not be written")),
        None => Ok(()),
    }
}

fn bytes_of(object: &NewObject) -> u64 {
    object.pieces.iter().map(|piece| piece.len() as u64).sum()
}

/// Size and XXH3 of the pieces one after the other.
fn digest(object: &NewObject) -> ObjectDigest {
    ObjectDigest { bytes: bytes_of(object), digest: xxh3_of_pieces(object.pieces.iter().map(|piece| &piece[..])) }
}
