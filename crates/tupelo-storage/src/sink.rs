//! Where bytes are written to.

use std::fmt::{Debug, Display};

use crate::error::{Error, ErrorKind, Result};

/// An object being written: appended to, patched, and then committed as a whole or not at all.
///
/// Nothing is visible under the final name before [`commit`](Self::commit) has returned, or, where an object is
/// continued, [`checkpoint`](Self::checkpoint). A sink that is dropped without commit goes back to its last checkpoint,
/// as [`abort`](Self::abort) does, and without one leaves nothing new behind. After an error from `append`, `patch` or
/// `checkpoint` the sink is spoilt: all that follows fails too, so that a forgotten error never becomes a damaged file.
/// `Display` is the final name. [`crate::laws::sink_laws`] is the contract in code.
pub trait ByteSink: Debug + Display + Send {
    /// Where the next append goes: in bytes from the start of the object.
    fn position(&self) -> u64;

    /// Writes at the end.
    ///
    /// # Errors
    /// What the back end says, [`ErrorKind::NoSpace`] in particular. Back ends that buffer say so later: at another
    /// append, or at commit.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Writes several pieces at the end, one behind the other, if possible in one go.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn append_vectored(&mut self, pieces: &[&[u8]]) -> Result<()> {
        pieces.iter().try_for_each(|piece| self.append(piece))
    }

    /// Overwrites bytes that exist, at `offset` bytes from the start of the object. Patches take effect at the next
    /// checkpoint or commit, in the order in which they are given, after all that is appended is safe.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] for a patch that reaches beyond [`position`](Self::position), and what the back end
    /// says.
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Makes what was appended so far durable, then the patches, one after the other: a state to which a crash, an
    /// error, `abort` and drop go back from now on. An object that is continued shows it at once; one that is created
    /// keeps it aside, where [`abort`](Self::abort) says.
    ///
    /// # Errors
    /// [`ErrorKind::NotSupported`] where the back end has no such thing, and what the back end says.
    fn checkpoint(&mut self) -> Result<()>;

    /// Makes everything durable and visible under the final name.
    ///
    /// # Errors
    /// What the back end says; unless the message says otherwise, what lay under the name before still does.
    fn commit(self: Box<Self>) -> Result<()>;

    /// Forgets everything since the last checkpoint. Gives the name under which that is kept, if it is kept aside.
    ///
    /// # Errors
    /// What the back end says when it cannot clean up.
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
    fn commit(self: Box<Self>) -> Result<()> {
        (*self).commit()
    }
    fn abort(self: Box<Self>) -> Result<Option<String>> {
        (*self).abort()
    }
}

/// The check that every sink makes before it patches.
pub(crate) fn check_patch(offset: u64, len: usize, position: u64, uri: impl Display) -> Result<()> {
    match offset.checked_add(len as u64) {
        Some(end) if end <= position => Ok(()),
        _ => {
            let reason = format!("only {position} bytes are written");
            Err(Error::new(ErrorKind::OutOfRange, format!("patch {len} bytes at byte {offset} of"), uri, reason))
        }
    }
}

/// The error of a commit after an append or patch that failed.
#[cold]
pub(crate) fn spoilt(uri: impl Display) -> Error {
    Error::new(ErrorKind::Other, "finish", uri, "an earlier write to it failed")
}
