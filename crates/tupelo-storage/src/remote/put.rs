//! Writing objects to HTTP servers, by one `PUT` request.
//!
//! The object is kept in a temporary file until then, because HTTP has no uploads in parts. Whether readers see it
//! before it is complete is up to the server.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use reqwest::Body;
use tokio::time::sleep;

use super::http::HttpObject;
use crate::error::{Error, ErrorKind, Result};
use crate::local::Spool;
use crate::net::{Failure, repeat, run};
use crate::sink::{ByteSink, check_patch, poisoned};

/// Bytes of the temporary file that are sent at once.
const CHUNK_BYTES: usize = 256 << 10;

/// A new object on an HTTP server.
pub(super) struct PutSink {
    object: HttpObject,
    name: String,
    spool: Spool,
    poisoned: bool,
}

impl PutSink {
    pub(super) fn new(object: HttpObject, name: String) -> Result<Self> {
        let spool = Spool::new().map_err(|error| Error::from_io("make a temporary file for", &name, error))?;
        Ok(Self { object, name, spool, poisoned: false })
    }

    fn written(&mut self, written: io::Result<()>) -> Result<()> {
        written.map_err(|error| {
            self.poisoned = true;
            Error::from_io("write to the temporary file of", &self.name, error)
        })
    }
}

/// The content of a file as the body of a request, which starts after a time. `taken` has the bytes that were sent.
fn body(spool: &Spool, wait: Duration, taken: Arc<AtomicU64>) -> Body {
    let chunks = stream::unfold((spool.clone(), 0), move |(spool, at)| {
        let taken = Arc::clone(&taken);
        async move {
            if at == 0 {
                sleep(wait).await;
            }
            let read = spool.read(at, CHUNK_BYTES);
            let next = at + read.as_ref().map_or(0, Bytes::len) as u64;
            taken.store(next, Ordering::Relaxed);
            let is_end = read.as_ref().is_ok_and(Bytes::is_empty);
            (!is_end).then(|| (read.map(Frame::data), (spool, next)))
        }
    });
    Body::wrap(StreamBody::new(chunks))
}

impl fmt::Display for PutSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for PutSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PutSink({self}, {} bytes)", self.position())
    }
}

impl ByteSink for PutSink {
    fn position(&self) -> u64 {
        self.spool.len()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.poisoned {
            return Err(poisoned(self));
        }
        let written = self.spool.append(bytes);
        self.written(written)
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if self.poisoned {
            return Err(poisoned(self));
        }
        check_patch(offset, bytes.len(), self.position(), &self.name).inspect_err(|_| self.poisoned = true)?;
        let written = self.spool.overwrite(offset, bytes);
        self.written(written)
    }

    fn has_checkpoints(&self) -> bool {
        false
    }

    fn checkpoint(&mut self) -> Result<()> {
        let reason = "an object on a server is visible only as a whole";
        Err(Error::new(ErrorKind::NotSupported, "make a checkpoint of", &self.name, reason))
    }

    fn commit(self: Box<Self>) -> Result<()> {
        if self.poisoned {
            return Err(poisoned(self));
        }
        let Self { object, name, spool, .. } = *self;
        let sent = run(async move {
            let limits = object.limits().for_bytes(spool.len());
            repeat(&limits, async || object.put(&|wait, taken| body(&spool, wait, taken), spool.len()).await).await
        });
        sent.map_err(|failure: Failure| failure.into_error("write to", &name))
    }

    fn abort(self: Box<Self>) -> Result<Option<String>> {
        Ok(None)
    }
}
