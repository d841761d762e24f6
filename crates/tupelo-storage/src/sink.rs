//! The trait of objects that bytes are written to.

use std::fmt::{Debug, Display};

use crate::error::{Error, ErrorKind, Result};

/// An object that is being written: appended to, patched, and committed as a whole or not at all.
///
/// Nothing is visible under the final name before [`commit`](Self::commit) has returned, or, where an object is
/// continued, [`checkpoint`](Self::checkpoint). A sink that is dropped without commit is rolled back to its last
/// checkpoint, as by [`abort`](Self::abort), or is removed if it has none. After an error from `append`, `patch` or
/// `checkpoint` the sink is poisoned: all later calls fail, so an ignored error cannot become a damaged file.
/// `Display` gives the final name. `laws::sink_laws` (feature `testing`) is the contract in code.
pub trait ByteSink: Debug + Display + Send {
    /// Offset of the next append, in bytes from the start of the object.
    fn position(&self) -> u64;

    /// Appends bytes.
    ///
    /// # Errors
    /// Errors of the back end, such as [`ErrorKind::NoSpace`]. A back end with a buffer may report an error of one call
    /// at a later one.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Appends several slices, if possible by one system call.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn append_vectored(&mut self, pieces: &[&[u8]]) -> Result<()> {
        pieces.iter().try_for_each(|piece| self.append(piece))
    }

    /// Overwrites bytes that exist, at `offset` bytes from the start of the object. Patches take effect at the next
    /// checkpoint or commit, in the given order, after all appended bytes are durable.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] for a patch that reaches beyond [`position`](Self::position),
    /// [`ErrorKind::NotSupported`] if the back end has already sent the bytes, and errors of the back end.
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Makes the appended bytes durable, then the patches, one after the other. A crash, an error, `abort` and drop
    /// roll back to this state. It is visible at once in an object that is continued; for a new one it is kept under a
    /// temporary name, which [`abort`](Self::abort) returns.
    ///
    /// # Errors
    /// [`ErrorKind::NotSupported`] if the back end has no checkpoints, which does not poison the sink, and errors of the
    /// back end.
    fn checkpoint(&mut self) -> Result<()>;

    /// Whether the back end has checkpoints. Most have.
    fn has_checkpoints(&self) -> bool {
        true
    }

    /// Makes everything durable and visible under the final name.
    ///
    /// # Errors
    /// Errors of the back end. Unless the message says otherwise, the old object is unchanged.
    fn commit(self: Box<Self>) -> Result<()>;

    /// Rolls back to the last checkpoint. Returns the temporary name of a checkpoint that is kept.
    ///
    /// # Errors
    /// Errors of the back end when cleaning up.
    fn abort(self: Box<Self>) -> Result<Option<String>>;
}

impl<S: ByteSink + ?Sized> ByteSink for Box<S> {
    fn position(&self) -> u64 {
        (**self).position()
    }
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        (**self).append(bytes)
    }
    fn append_vectored(&mut self, pieces: &[&[u8]]) -> Result<()> {
        (**self).append_vectored(pieces)
    }
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        (**self).patch(offset, bytes)
    }
    fn checkpoint(&mut self) -> Result<()> {
        (**self).checkpoint()
    }
    fn has_checkpoints(&self) -> bool {
        (**self).has_checkpoints()
    }
    fn commit(self: Box<Self>) -> Result<()> {
        (*self).commit()
    }
    fn abort(self: Box<Self>) -> Result<Option<String>> {
        (*self).abort()
    }
}

/// Checks the range of a patch.
pub(crate) fn check_patch(offset: u64, len: usize, position: u64, uri: impl Display) -> Result<()> {
    match offset.checked_add(len as u64) {
        Some(end) if end <= position => Ok(()),
        _ => {
            let reason = format!("only {position} bytes have been written");
            Err(Error::new(ErrorKind::OutOfRange, format!("patch {len} bytes at byte {offset} of"), uri, reason))
        }
    }
}

/// The error of a commit after a failed append or patch.
#[cold]
pub(crate) fn poisoned(uri: impl Display) -> Error {
    Error::new(ErrorKind::Other, "finish", uri, "an earlier write to it failed")
}
