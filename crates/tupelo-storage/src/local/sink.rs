//! Local files as sinks. A failure at any point leaves the old file unchanged.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, IoSlice, Seek, SeekFrom};
use std::mem;
use std::path::{Path, PathBuf};

use super::disk::{Disk, LocalDisk, Locked};
use super::source::check_regular;
use super::target::{Target, directory_of, open_locked, sync_directory};
use super::temporary::{Temporary, not_durable, publish};
#[cfg(any(doc, test))]
use crate::error::ErrorKind;
use crate::error::{Error, Result};
use crate::sink::{ByteSink, check_patch, poisoned};

/// Size of the write buffer of a local file (512 KiB); larger appends bypass it. It stays in the cache of a core.
pub const LOCAL_WRITE_BUFFER_BYTES: usize = 512 << 10;

/// A local file as a sink: a new one, or an existing one that is continued in place.
///
/// Writers take an advisory lock if the file system supports it, so that a second writer of the same file fails with
/// [`ErrorKind::Busy`]. Readers take no lock.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    disk: Box<dyn Disk>,
    /// Offset of the buffer in the file.
    flushed_bytes: u64,
    buffer: Vec<u8>,
    /// Pending until the next checkpoint.
    patches: Vec<(u64, Vec<u8>)>,
    /// Length at the last checkpoint, to which a crash or an error rolls back; `None` without one.
    kept_bytes: Option<u64>,
    poisoned: bool,
    ending: Ending,
    /// The process that writes. A forked child inherits this value, and must not change the file.
    process: u32,
}

/// The actions of commit and abort.
#[derive(Debug)]
enum Ending {
    /// Move a temporary file over the target. The old target is kept open for its lock.
    Rename { temporary: Temporary, target: PathBuf, replaced: Option<Locked> },
    /// The file already has its final name.
    InPlace,
    /// Nothing.
    Done,
}

impl FileSink {
    /// Creates a file, or replaces an existing one at commit.
    ///
    /// The bytes are written to a file without a name where the file system supports that (most of Linux), so that nothing is
    /// left if the process is killed. At its first checkpoint, and elsewhere at once, the file is `NAME.tmp-RANDOM-tupelo` in the
    /// directory of the target. At commit it gets the name of the target, by a link or a rename. Without commit, it is kept
    /// with the last checkpoint, also when the process is killed. Symbolic links are followed. The permissions of a replaced file are kept; its other hard links keep the
    /// old content. A relative path is resolved now, not at commit.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] if the directory or an existing file is not writable, [`ErrorKind::NotFound`] without a
    /// directory, [`ErrorKind::NotSupported`] for what is not a regular file, [`ErrorKind::Busy`] while
    /// another sink writes this file, and other errors of the system. At commit [`ErrorKind::Changed`] if the file did
    /// not exist before and another writer created it.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::create_through(path, |disk| disk)
    }

    /// As [`FileSink::create`], with a [`Disk`] that wraps the real one, for tests.
    ///
    /// # Errors
    /// As [`FileSink::create`].
    pub fn create_through(path: impl AsRef<Path>, wrap: impl FnOnce(Box<dyn Disk>) -> Box<dyn Disk>) -> Result<Self> {
        let path = path.as_ref();
        let target = Target::of(path)?;
        let failed = |error: io::Error| Error::from_io("create", path.display(), error);
        let (file, temporary) = Temporary::create(&target.name, directory_of(&target.path)).map_err(failed)?;
        Self::in_temporary(path, target, file, temporary, None, wrap)
    }

    /// Writes to a temporary file from its cursor, which is at its last checkpoint if it has one.
    pub(super) fn in_temporary(
        path: &Path,
        target: Target,
        file: File,
        temporary: Temporary,
        kept_bytes: Option<u64>,
        wrap: impl FnOnce(Box<dyn Disk>) -> Box<dyn Disk>,
    ) -> Result<Self> {
        let Target { path: target, replaced, .. } = target;
        if let Some(replaced) = &replaced {
            let permissions = replaced.file.metadata().and_then(|old| file.set_permissions(old.permissions()));
            permissions.map_err(|error| Error::from_io("create", path.display(), error))?;
        }
        let disk = wrap(Box::new(LocalDisk::new(file)));
        let ending = Ending::Rename { temporary, target, replaced };
        Ok(Self::new(path, disk, kept_bytes.unwrap_or(0), kept_bytes, ending))
    }

    /// Continues an existing file in place.
    ///
    /// Appended bytes are written after the end at once. Old bytes do not change until the next checkpoint or commit,
    /// which makes the appended bytes durable, then patches in the given order, then makes the patches durable. If it
    /// fails before the last step, the old bytes and the old length are restored.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::Denied`], [`ErrorKind::NotSupported`] for what is not a regular file,
    /// [`ErrorKind::Busy`] while another sink writes this file, and other errors of the system.
    pub fn update(path: impl AsRef<Path>) -> Result<Self> {
        Self::update_through(path, |disk| disk)
    }

    /// As [`FileSink::update`], with a [`Disk`] that wraps the real one, for tests.
    ///
    /// # Errors
    /// As [`FileSink::update`].
    pub fn update_through(path: impl AsRef<Path>, wrap: impl FnOnce(Box<dyn Disk>) -> Box<dyn Disk>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |error: io::Error| Error::from_io("update", path.display(), error);
        check_regular(&fs::metadata(path).map_err(failed)?, "update", path)?;
        let mut file = open_locked(File::options().read(true).write(true), path, "update", path)?;
        let old_bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let disk = wrap(Box::new(LocalDisk::new(file)));
        Ok(Self::new(path, disk, old_bytes, Some(old_bytes), Ending::InPlace))
    }

    /// Removes what follows the first `len` bytes of a file that is continued, before anything is appended. That is not
    /// undone by an abort.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn cut(&mut self, len: u64) -> Result<()> {
        let is_untouched = self.buffer.is_empty() && self.kept_bytes == Some(self.flushed_bytes);
        if is_untouched && len < self.flushed_bytes {
            let cut = repeat(|| self.disk.truncate(len));
            cut.map_err(|error| Error::from_io("cut off the end of", self.path.display(), error))?;
            (self.flushed_bytes, self.kept_bytes) = (len, Some(len));
        }
        Ok(())
    }

    fn new(path: &Path, disk: Box<dyn Disk>, size_bytes: u64, kept_bytes: Option<u64>, ending: Ending) -> Self {
        Self {
            path: path.to_owned(),
            disk,
            flushed_bytes: size_bytes,
            buffer: Vec::new(),
            patches: Vec::new(),
            kept_bytes,
            poisoned: false,
            ending,
            process: std::process::id(),
        }
    }

    /// Writes the buffer, then `pieces`.
    fn write_through(&mut self, pieces: &[&[u8]]) -> Result<()> {
        let total = self.buffer.len() + pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let mut slices = Vec::with_capacity(pieces.len() + 1);
        slices.push(IoSlice::new(&self.buffer));
        slices.extend(pieces.iter().map(|piece| IoSlice::new(piece)));
        append_all(&mut *self.disk, &mut slices).map_err(|error| {
            self.poisoned = true;
            let action = format!("append {total} bytes at byte {} to", self.flushed_bytes);
            Error::from_io(action, self.path.display(), error)
        })?;
        self.flushed_bytes += total as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Makes a checkpoint: first the appended bytes, then the patches.
    fn settle(&mut self) -> Result<()> {
        if self.poisoned {
            return Err(poisoned(&self));
        }
        self.write_through(&[])?;
        self.poisoned = true;
        // Patches must not be on disk before the bytes that they refer to. That holds for a new file too: after a power
        // failure its header could refer to pages of zeros, which look like data if pages have no checksums.
        self.sync().map_err(|error| lost(&self.path, error))?;
        let is_patched = self.apply()?;
        let is_first = self.kept_bytes.is_none();
        if !is_first {
            // The patches refer to the appended bytes, so these must be kept even if the sync fails.
            self.kept_bytes = Some(self.flushed_bytes);
        }
        if is_patched {
            self.sync().map_err(|error| match is_first {
                true => lost(&self.path, error),
                false => not_durable(&self.path, error),
            })?;
        }
        self.kept_bytes = Some(self.flushed_bytes);
        self.poisoned = false;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        repeat(|| self.disk.sync())
    }

    /// Applies the patches, the only step that changes old bytes. Returns whether there were any.
    fn apply(&mut self) -> Result<bool> {
        let patches = mem::take(&mut self.patches);
        let mut undo = Vec::with_capacity(patches.len());
        for (offset, bytes) in &patches {
            let patched = repeat(|| self.disk.read(*offset, bytes.len())).and_then(|old| {
                undo.push((*offset, old));
                overwrite_all(&mut *self.disk, *offset, bytes)
            });
            if let Err(error) = patched {
                let restored = undo.iter().rev().try_for_each(|(at, old)| overwrite_all(&mut *self.disk, *at, old));
                let reason = match restored.and_then(|()| self.sync()) {
                    Ok(()) => "its old content is restored",
                    Err(_) => {
                        // A partial patch may refer to the appended bytes: keep them for a repair.
                        self.kept_bytes = self.kept_bytes.map(|_| self.flushed_bytes);
                        "its old content could not be restored; the file may be damaged"
                    }
                };
                let action = format!("patch {} bytes at byte {offset} of", bytes.len());
                return Err(Error::new(error.kind().into(), action, self.path.display(), reason).with_source(error));
            }
        }
        Ok(!patches.is_empty())
    }

    /// Rolls back to the last checkpoint. Returns the name of its file, if that is not the target.
    fn roll_back(&mut self) -> io::Result<Option<PathBuf>> {
        let ending = mem::replace(&mut self.ending, Ending::Done);
        if self.process != std::process::id() {
            mem::forget(ending);
            return Ok(None);
        }
        match (ending, self.kept_bytes) {
            (Ending::Done, _) | (Ending::InPlace, None) => Ok(None),
            (Ending::InPlace, Some(kept_bytes)) => repeat(|| self.disk.truncate(kept_bytes)).map(|()| None),
            (Ending::Rename { temporary, .. }, None) => temporary.close().map(|()| None),
            (Ending::Rename { temporary, .. }, Some(kept_bytes)) => {
                let cut = repeat(|| self.disk.truncate(kept_bytes));
                let kept = temporary.into_kept()?;
                cut.map(|()| kept)
            }
        }
    }
}

impl fmt::Display for FileSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl ByteSink for FileSink {
    fn position(&self) -> u64 {
        self.flushed_bytes + self.buffer.len() as u64
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.append_vectored(&[bytes])
    }

    fn append_vectored(&mut self, pieces: &[&[u8]]) -> Result<()> {
        if self.poisoned {
            return Err(poisoned(self));
        }
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        if self.buffer.len() + total > LOCAL_WRITE_BUFFER_BYTES {
            return self.write_through(pieces);
        }
        pieces.iter().for_each(|piece| self.buffer.extend_from_slice(piece));
        Ok(())
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if self.poisoned {
            return Err(poisoned(self));
        }
        let position = self.position();
        check_patch(offset, bytes.len(), position, self.path.display()).inspect_err(|_| self.poisoned = true)?;
        if !bytes.is_empty() {
            self.patches.push((offset, bytes.to_vec()));
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.settle()?;
        // From now on there is something to keep.
        if let Ending::Rename { temporary, target, .. } = &mut self.ending {
            let named = temporary.give_name().and_then(|is_new| match is_new {
                true => sync_directory(directory_of(target)),
                false => Ok(()),
            });
            named.map_err(|error| Error::from_io("make a checkpoint of", self.path.display(), error))?;
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        let has_checkpoint = self.kept_bytes.is_some();
        // A later error of close would add nothing to this one.
        if let Err(error) = self.settle() {
            let kept = self.roll_back().ok().flatten();
            return Err(kept_aside(error, kept.as_deref()));
        }
        match mem::replace(&mut self.ending, Ending::Done) {
            Ending::Rename { mut temporary, target, replaced } => {
                // A checkpoint is durable: keep it although it cannot be moved.
                temporary.keep_on_drop(has_checkpoint);
                let aside = temporary.path().map(Path::to_owned);
                let published = publish(temporary, &target, replaced, &self.path);
                published.map_err(|error| kept_aside(error, aside.as_deref().filter(|aside| aside.exists())))
            }
            Ending::InPlace | Ending::Done => Ok(()),
        }
    }

    fn abort(mut self: Box<Self>) -> Result<Option<String>> {
        let kept = self.roll_back().map_err(|error| Error::from_io("clean up after", self.path.display(), error))?;
        Ok(kept.map(|path| path.display().to_string()))
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        // Errors cannot be reported from drop.
        let _ = self.roll_back();
    }
}

/// Adds the name of the file with the last checkpoint to an error of a commit.
#[cold]
fn kept_aside(error: Error, kept: Option<&Path>) -> Error {
    match kept {
        Some(kept) => error.with_reason(&format!("its last checkpoint is kept in {}", kept.display())),
        None => error,
    }
}

/// The error of a failed sync. The system may have dropped the data, and a second sync could wrongly succeed.
#[cold]
fn lost(path: &Path, error: io::Error) -> Error {
    let reason = format!("data written since the last checkpoint may be lost: {error}");
    Error::new(error.kind().into(), "make durable", path.display(), reason).with_source(error)
}

/// Writes all slices, by as many calls as needed.
fn append_all(disk: &mut dyn Disk, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Skips empty slices, because a write of no bytes would look like a full disk.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let written = repeat(|| some(disk.append(slices)))?;
        IoSlice::advance_slices(&mut slices, written);
    }
    Ok(())
}

/// Overwrites with all bytes, by as many calls as needed.
fn overwrite_all(disk: &mut dyn Disk, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = repeat(|| some(disk.overwrite(offset, bytes)))?;
        offset += written as u64;
        bytes = &bytes[written..];
    }
    Ok(())
}

/// Repeats a call while it is interrupted.
pub(super) fn repeat<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Checks that a call wrote at least one byte.
pub(super) fn some(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        written => written,
    }
}

#[cfg(test)]
mod tests;
