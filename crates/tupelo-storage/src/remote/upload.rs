//! Writing objects to stores, in parts.
//!
//! Parts are uploaded while later ones are filled, so memory is bounded. The first part is sent last: files have a
//! header that is patched at the end. Patches of the last part, which is being filled, are possible too. An object is
//! visible when it is complete; small ones are sent by one request.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use object_store::multipart::PartId;
use object_store::{ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::client::store_failure;
use super::store::{StoreObject, check_length};
use crate::error::{Error, ErrorKind, Result};
use crate::net::{Attempts, Failure, Limits, repeat, run, run_cleaning};
use crate::sink::{ByteSink, check_patch, poisoned};
use crate::source::Traffic;

/// Size of the first parts, in bytes: 8 MiB. Every thousand parts it doubles, because stores take at most 10 000.
pub const PART_BYTES: usize = 8 << 20;
/// Number of parts with the same size.
const SAME_SIZE_PARTS: usize = 1000;
/// Number of parts that are sent at the same time.
const PARTS_IN_FLIGHT: usize = 4;

/// A part that is being sent.
type Sending = JoinHandle<std::result::Result<PartId, Failure>>;

/// A new object in a store.
pub(super) struct UploadSink {
    object: StoreObject,
    name: String,
    limits: Limits,
    part_bytes: usize,
    /// The first part, which is sent at the end.
    first: Vec<u8>,
    /// The part that is being filled.
    current: Vec<u8>,
    /// Bytes of the parts between these two.
    sent_bytes: u64,
    upload: Option<String>,
    /// The parts after the first one.
    done: Vec<PartId>,
    in_flight: VecDeque<Sending>,
    traffic: Arc<Traffic>,
    poisoned: bool,
    /// The process that writes. A forked child must not change the object.
    process: u32,
}

impl UploadSink {
    pub(super) fn new(object: StoreObject, name: String, limits: Limits, part_bytes: usize) -> Self {
        Self {
            object,
            name,
            limits,
            part_bytes,
            first: Vec::new(),
            current: Vec::new(),
            sent_bytes: 0,
            upload: None,
            done: Vec::new(),
            in_flight: VecDeque::new(),
            traffic: Arc::default(),
            poisoned: false,
            process: std::process::id(),
        }
    }

    /// The same sink, which counts its requests.
    pub(super) fn counted_in(mut self, traffic: &Arc<Traffic>) -> Self {
        self.traffic = Arc::clone(traffic);
        self
    }

    fn attempts(&self) -> Attempts {
        Attempts::new(&self.limits).counted_in(&self.traffic)
    }

    /// Number of parts after the first one that are sent or being sent.
    fn parts(&self) -> usize {
        self.done.len() + self.in_flight.len()
    }

    fn current_bytes(&self) -> usize {
        self.part_bytes << (self.parts() / SAME_SIZE_PARTS).min(16)
    }

    fn failed(&self, failure: Failure) -> Error {
        failure.into_error("write to", &self.name)
    }

    fn upload_id(&mut self) -> std::result::Result<String, Failure> {
        if let Some(upload) = &self.upload {
            return Ok(upload.clone());
        }
        let (object, attempts) = (self.object.clone(), self.attempts());
        let started = run(async move {
            let start = async || {
                let options = PutMultipartOptions::from(object.attributes()?);
                object.store()?.create_multipart_opts(object.path(), options).await.map_err(store_failure)
            };
            attempts.repeat(start).await
        })?;
        // It becomes a part of URLs.
        check_length(&started).map_err(|failure| failure.context("the server sent an invalid UploadId"))?;
        self.upload = Some(started.clone());
        Ok(started)
    }

    /// Starts to send a part, after waiting for older ones if there are too many.
    fn send(&mut self, index: usize, bytes: Vec<u8>) -> std::result::Result<(), Failure> {
        let upload = self.upload_id()?;
        self.wait_until(PARTS_IN_FLIGHT - 1)?;
        let (object, attempts, bytes) = (self.object.clone(), self.attempts(), Bytes::from(bytes));
        let sending = run(async move {
            Ok(tokio::spawn(async move {
                let send = async || {
                    let payload = PutPayload::from_bytes(bytes.clone());
                    object.store()?.put_part(object.path(), &upload, index, payload).await.map_err(store_failure)
                };
                attempts.repeat(send).await
            }))
        })?;
        self.in_flight.push_back(sending);
        Ok(())
    }

    /// Waits until at most `left` parts are being sent.
    fn wait_until(&mut self, left: usize) -> std::result::Result<(), Failure> {
        while self.in_flight.len() > left {
            let Some(oldest) = self.in_flight.pop_front() else { break };
            let lost = |_| Failure::lasting(ErrorKind::Other, "the upload of a part ended without a result");
            let abort = oldest.abort_handle();
            // If the caller cancels this wait, the part ends here.
            let part = run(async move { oldest.await.map_err(lost)? }).inspect_err(|_| abort.abort())?;
            self.done.push(part);
        }
        Ok(())
    }

    fn add(&mut self, mut bytes: &[u8]) -> std::result::Result<(), Failure> {
        while !bytes.is_empty() {
            let is_first = self.first.len() < self.part_bytes;
            let room = if is_first { self.part_bytes } else { self.current_bytes() };
            let part = if is_first { &mut self.first } else { &mut self.current };
            let (now, later) = bytes.split_at(bytes.len().min(room - part.len()));
            part.extend_from_slice(now);
            bytes = later;
            if !is_first && part.len() == room {
                let full = mem::take(&mut self.current);
                let len = full.len() as u64;
                self.send(self.parts() + 1, full)?;
                self.sent_bytes += len;
            }
        }
        Ok(())
    }

    /// Sends what is missing and makes the object visible.
    fn finish(&mut self) -> std::result::Result<(), Failure> {
        let (first, current) = (mem::take(&mut self.first), mem::take(&mut self.current));
        let (object, attempts) = (self.object.clone(), self.attempts());
        if self.upload.is_none() {
            let parts: Vec<Bytes> = [first, current].into_iter().map(Bytes::from).collect();
            return run(async move {
                let put = async || {
                    let payload: PutPayload = parts.iter().cloned().collect();
                    let options = PutOptions::from(object.attributes()?);
                    object.store()?.put_opts(object.path(), payload, options).await.map(drop).map_err(store_failure)
                };
                attempts.repeat(put).await
            });
        }
        let size = first.len() as u64 + self.sent_bytes + current.len() as u64;
        if !current.is_empty() {
            self.send(self.parts() + 1, current)?;
        }
        // Its result comes last, but it is stored first.
        self.send(0, first)?;
        self.wait_until(0)?;
        let mut parts = mem::take(&mut self.done);
        parts.rotate_right(1);
        let upload = self.upload_id()?;
        run(async move { complete(&object, attempts.anew(), &upload, parts, size).await })?;
        self.upload = None;
        Ok(())
    }

    /// Removes the parts that were sent.
    fn roll_back(&mut self) -> std::result::Result<(), Failure> {
        let in_flight = mem::take(&mut self.in_flight);
        let upload = self.upload.take();
        if self.process != std::process::id() {
            mem::forget(in_flight);
            return Ok(());
        }
        let Some(upload) = upload else { return Ok(()) };
        let object = self.object.clone();
        run_cleaning(self.limits, async move |limits| {
            // A part that arrives after the upload is removed would not be removed.
            let until = Instant::now() + limits.stall.min(limits.total / 2);
            for mut part in in_flight {
                if timeout_at(until, &mut part).await.is_err() {
                    part.abort();
                }
            }
            let abort = async || object.store()?.abort_multipart(object.path(), &upload).await.map_err(store_failure);
            repeat(&limits, abort).await
        })
    }
}

/// Makes an object of its parts. If the answer to a request is lost, the next one finds no upload: then a new object with
/// the right size is the proof.
async fn complete(
    object: &StoreObject,
    mut attempts: Attempts,
    upload: &String,
    parts: Vec<PartId>,
    size: u64,
) -> std::result::Result<(), Failure> {
    let head = async || match object.store()?.head(object.path()).await.map_err(store_failure) {
        Err(failure) if failure.kind == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    };
    let before = attempts.of_same_call().repeat(head).await?.map(|found| (found.e_tag, found.last_modified));
    let mut is_unclear = false;
    loop {
        let request = async {
            let store = object.store()?;
            store.complete_multipart(object.path(), upload, parts.clone()).await.map(drop).map_err(store_failure)
        };
        let Err(failure) = attempts.run(request).await else { return Ok(()) };
        if is_unclear && failure.kind == ErrorKind::NotFound {
            let found = attempts.anew().repeat(head).await.ok().flatten().filter(|found| found.size == size);
            if found.is_some_and(|found| before != Some((found.e_tag, found.last_modified))) {
                return Ok(());
            }
        }
        is_unclear |= failure.is_transient;
        attempts.again(failure, false).await?;
    }
}

impl fmt::Display for UploadSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for UploadSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UploadSink({self}, {} bytes)", self.position())
    }
}

impl ByteSink for UploadSink {
    fn position(&self) -> u64 {
        self.first.len() as u64 + self.sent_bytes + self.current.len() as u64
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.poisoned {
            return Err(poisoned(self));
        }
        self.add(bytes).map_err(|failure| {
            self.poisoned = true;
            self.failed(failure)
        })
    }

    /// Patches of bytes that were sent are not supported: those after the first [`PART_BYTES`] and before the part that
    /// is being filled.
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if self.poisoned {
            return Err(poisoned(self));
        }
        check_patch(offset, bytes.len(), self.position(), &self.name).inspect_err(|_| self.poisoned = true)?;
        let current_start = self.first.len() as u64 + self.sent_bytes;
        for (at, byte) in (offset..).zip(bytes) {
            let place = match at.checked_sub(current_start) {
                Some(at) => self.current.get_mut(at as usize),
                None => usize::try_from(at).ok().and_then(|at| self.first.get_mut(at)),
            };
            let Some(place) = place else {
                self.poisoned = true;
                let action = format!("patch {} bytes at byte {offset} of", bytes.len());
                return Err(Error::new(ErrorKind::NotSupported, action, &self.name, "they have already been sent"));
            };
            *place = *byte;
        }
        Ok(())
    }

    fn has_checkpoints(&self) -> bool {
        false
    }

    fn checkpoint(&mut self) -> Result<()> {
        let reason = "an object in a store is visible only as a whole";
        Err(Error::new(ErrorKind::NotSupported, "make a checkpoint of", &self.name, reason))
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        if self.poisoned {
            // The first error is reported; drop removes the parts.
            return Err(poisoned(self));
        }
        self.finish().map_err(|failure| self.failed(failure))
    }

    fn abort(mut self: Box<Self>) -> Result<Option<String>> {
        let failed = self.roll_back();
        failed.map(|()| None).map_err(|failure| failure.into_error("clean up after", &self.name))
    }
}

impl Drop for UploadSink {
    fn drop(&mut self) {
        // Errors cannot be reported from drop.
        let _ = self.roll_back();
    }
}
