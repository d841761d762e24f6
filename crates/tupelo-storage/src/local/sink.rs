//! Files of this machine, written so that a failure at any point leaves what was there before.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::mem;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::positioned::Positioned;
use super::source::check_regular;
use crate::error::{Error, ErrorKind, Result};
use crate::sink::{ByteSink, check_patch, spoilt};

/// Appends to a local file wait in memory up to this many bytes (4 MiB); larger ones go straight to the system.
pub const LOCAL_WRITE_BUFFER_BYTES: usize = 4 << 20;

/// How many links from name to name are followed to find the file that is to be replaced; as many as Linux follows.
const MAX_LINKS: usize = 40;
/// The longest part of a file's name that its temporary neighbour repeats, in characters; names end at 255 bytes.
const TEMPORARY_NAME_CHARS: usize = 50;
/// How often a file that is replaced under our hands is opened again.
const OPEN_ATTEMPTS: usize = 10;

/// A file of this machine as a sink: a new one, or one that is continued in place.
///
/// Writers of one name take an advisory lock where the file system has any, so that the second one fails with
/// [`ErrorKind::Busy`]. Readers take none.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    file: Positioned,
    /// Where the buffer belongs in the file.
    flushed_bytes: u64,
    buffer: Vec<u8>,
    spoilt: bool,
    ending: Ending,
}

/// What commit and abort have to do.
#[derive(Debug)]
enum Ending {
    /// Move a temporary file over the target; what is there now is kept open for its lock.
    Rename { temporary: TempPath, target: PathBuf, replaced: Option<File> },
    /// Patch a file in place, whose old content is this long.
    InPlace { old_size_bytes: u64, patches: Vec<(u64, Vec<u8>)> },
    /// Nothing is left to do.
    Done,
}

impl FileSink {
    /// Begins a new file, or one that will replace the file of that name.
    ///
    /// The bytes go to `NAME.tmp-RANDOM` beside the target, which takes the target's place at commit; a process that is
    /// killed leaves it behind. A link is followed, and the file that it leads to is replaced. The permissions of a
    /// replaced file stay; its other hard links keep the old content.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] where the directory or an existing file may not be written, [`ErrorKind::NotFound`]
    /// without a directory, [`ErrorKind::NotSupported`] for what is not a regular file, [`ErrorKind::Busy`] while
    /// another sink writes this file, and what else the system says. At commit [`ErrorKind::Changed`] when the name was
    /// free at first and is taken then.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |error: io::Error| Error::from_io("create", path.display(), error);
        let target = follow_links(path.to_owned());
        let replaced = match fs::metadata(&target) {
            Ok(metadata) => {
                check_regular(&metadata, "create", path)?;
                // A rename asks only the directory for permission; a protected file is to be respected all the same.
                Some(open_locked(&target, false, "replace", path)?)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let Some(name) = target.file_name() else {
            return Err(Error::new(ErrorKind::NotSupported, "create", path.display(), "it names no file"));
        };
        let prefix: String = name.to_string_lossy().chars().take(TEMPORARY_NAME_CHARS).chain(".tmp-".chars()).collect();
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        #[cfg(unix)]
        builder.permissions(permissions);
        let temporary = builder.prefix(&prefix).tempfile_in(directory_of(&target)).map_err(failed)?;
        let (file, temporary) = temporary.into_parts();
        if let Some(replaced) = &replaced {
            let permissions = replaced.metadata().map_err(failed)?.permissions();
            file.set_permissions(permissions).map_err(failed)?;
        }
        Ok(Self::new(path, file, 0, Ending::Rename { temporary, target, replaced }))
    }

    /// Continues an existing file in place.
    ///
    /// Appended bytes go behind the end at once, and patches of the old content wait in memory: until commit every old
    /// byte stays as it is. Commit makes the appended bytes durable, then patches in the order given, then makes the
    /// patches durable. When it fails before the last step, the old bytes and the old length are restored.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::Denied`], [`ErrorKind::NotSupported`] for what is not a regular file,
    /// [`ErrorKind::Busy`] while another sink writes this file, and what else the system says.
    pub fn update(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |error: io::Error| Error::from_io("update", path.display(), error);
        check_regular(&fs::metadata(path).map_err(failed)?, "update", path)?;
        let mut file = open_locked(path, true, "update", path)?;
        let old_size_bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(Self::new(path, file, old_size_bytes, Ending::InPlace { old_size_bytes, patches: Vec::new() }))
    }

    fn new(path: &Path, file: File, size_bytes: u64, ending: Ending) -> Self {
        let file = Positioned::new(file);
        Self { path: path.to_owned(), file, flushed_bytes: size_bytes, buffer: Vec::new(), spoilt: false, ending }
    }

    /// Writes the buffer and `pieces` behind it.
    fn write_through(&mut self, pieces: &[&[u8]]) -> Result<()> {
        let total = self.buffer.len() + pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let mut slices = Vec::with_capacity(pieces.len() + 1);
        slices.push(IoSlice::new(&self.buffer));
        slices.extend(pieces.iter().map(|piece| IoSlice::new(piece)));
        write_all_vectored(self.file.file(), &mut slices).map_err(|error| {
            self.spoilt = true;
            Error::from_io(
                format!("append {total} bytes at byte {} to", self.flushed_bytes),
                self.path.display(),
                error,
            )
        })?;
        self.flushed_bytes += total as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Patches what is not old content: on disk, in the buffer, or partly each.
    fn patch_new(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let on_disk = self.flushed_bytes.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let (on_disk, in_buffer) = bytes.split_at(on_disk);
        if !on_disk.is_empty() {
            self.file.write(offset, on_disk)?;
        }
        if !in_buffer.is_empty() {
            let start = (offset + on_disk.len() as u64 - self.flushed_bytes) as usize;
            self.buffer[start..][..in_buffer.len()].copy_from_slice(in_buffer);
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.file.file().sync_all().map_err(|error| Error::from_io("make durable", self.path.display(), error))
    }

    /// The second half of a commit in place: the only moment at which old content changes.
    fn apply(&self, old_size_bytes: u64, patches: &[(u64, Vec<u8>)]) -> Result<()> {
        let mut undo = Vec::with_capacity(patches.len());
        for (offset, bytes) in patches {
            let patched = self.file.read(*offset, bytes.len()).and_then(|old| {
                undo.push((*offset, old));
                self.file.write(*offset, bytes)
            });
            if let Err(error) = patched {
                let restored = undo.iter().rev().try_for_each(|(offset, old)| self.file.write(*offset, old));
                let restored = restored.and_then(|()| self.file.file().set_len(old_size_bytes));
                let reason = match restored.and_then(|()| self.file.file().sync_all()) {
                    Ok(()) => "its old content is restored",
                    Err(_) => "its old content could not be restored, the file may be damaged",
                };
                let action = format!("patch {} bytes at byte {offset} of", bytes.len());
                return Err(Error::new(error.kind().into(), action, self.path.display(), reason).with_source(error));
            }
        }
        if patches.is_empty() {
            Ok(())
        } else {
            self.file.file().sync_all().map_err(|error| not_durable(&self.path, error))
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
        if self.spoilt {
            return Err(spoilt(self));
        }
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        if self.buffer.len() + total > LOCAL_WRITE_BUFFER_BYTES {
            return self.write_through(pieces);
        }
        pieces.iter().for_each(|piece| self.buffer.extend_from_slice(piece));
        Ok(())
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if self.spoilt {
            return Err(spoilt(self));
        }
        let position = self.position();
        check_patch(offset, bytes.len(), position, self.path.display()).inspect_err(|_| self.spoilt = true)?;
        let mut new = bytes;
        if let Ending::InPlace { old_size_bytes, patches } = &mut self.ending {
            let in_old = old_size_bytes.saturating_sub(offset).min(bytes.len() as u64) as usize;
            if in_old > 0 {
                patches.push((offset, bytes[..in_old].to_vec()));
            }
            new = &bytes[in_old..];
        }
        self.patch_new(offset + (bytes.len() - new.len()) as u64, new).map_err(|error| {
            self.spoilt = true;
            Error::from_io(format!("patch {} bytes at byte {offset} of", bytes.len()), self.path.display(), error)
        })
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        if self.spoilt {
            return Err(spoilt(&self));
        }
        self.write_through(&[])?;
        // From here to the end an error of close could say nothing that this has not said.
        self.sync()?;
        match mem::replace(&mut self.ending, Ending::Done) {
            Ending::Rename { temporary, target, replaced } => publish(temporary, &target, replaced, &self.path),
            Ending::InPlace { old_size_bytes, patches } => self.apply(old_size_bytes, &patches),
            Ending::Done => Ok(()),
        }
    }

    fn abort(mut self: Box<Self>) -> Result<()> {
        let failed = |error| Error::from_io("clean up after", self.path.display(), error);
        match mem::replace(&mut self.ending, Ending::Done) {
            Ending::Rename { temporary, .. } => temporary.close().map_err(failed),
            Ending::InPlace { old_size_bytes, .. } => self.file.file().set_len(old_size_bytes).map_err(failed),
            Ending::Done => Ok(()),
        }
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        // The temporary file of the other ending goes with its `TempPath`. Nobody is left to be told of an error.
        if let Ending::InPlace { old_size_bytes, .. } = self.ending {
            let _ = self.file.file().set_len(old_size_bytes);
        }
    }
}

/// Moves the temporary file to its place and makes the move durable.
fn publish(temporary: TempPath, target: &Path, replaced: Option<File>, path: &Path) -> Result<()> {
    let failed = |error: io::Error| Error::from_io("move the finished file to", path.display(), error);
    let taken = || {
        let reason = "another writer has created it meanwhile";
        Error::new(ErrorKind::Changed, "move the finished file to", path.display(), reason)
    };
    if replaced.is_some() {
        // Elsewhere an open file cannot be replaced, so its lock has to go first.
        #[cfg(not(unix))]
        let replaced = drop(replaced);
        temporary.persist(target).map_err(|error| failed(error.error))?;
        drop(replaced);
    } else if let Err(refused) = temporary.persist_noclobber(target) {
        // Not every file system can rename without replacing; then it is looked at first.
        if refused.error.kind() == io::ErrorKind::AlreadyExists || fs::symlink_metadata(target).is_ok() {
            return Err(taken());
        }
        refused.path.persist(target).map_err(|error| failed(error.error))?;
    }
    sync_directory(directory_of(target)).map_err(|error| not_durable(path, error))
}

/// The error of a file that is complete and in place, when only its durability is in doubt.
#[cold]
fn not_durable(path: &Path, error: io::Error) -> Error {
    let reason = "its new content is in place but may not survive a power failure";
    Error::new(error.kind().into(), "make durable", path.display(), reason).with_source(error)
}

/// Makes a new name in a directory durable, where the system can.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        Err(error) => match error.kind() {
            // Some network file systems know no such thing, and a directory may be writable but not readable.
            io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied => Ok(()),
            _ => Err(error),
        },
        ok => ok,
    }
}

/// Opens a file for writing and locks it.
fn open_locked(target: &Path, readable: bool, action: &'static str, path: &Path) -> Result<File> {
    let failed = |error: io::Error| Error::from_io(action, path.display(), error);
    for _ in 0..OPEN_ATTEMPTS {
        let file = File::options().read(readable).write(true).open(target).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let reason = "it is being written by another writer";
                return Err(Error::new(ErrorKind::Busy, action, path.display(), reason));
            }
            Err(TryLockError::Error(error)) if has_no_locks(&error) => {}
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // Whoever held the lock before may have put another file in this one's place.
        if is_at(&file, target).map_err(failed)? {
            return Ok(file);
        }
    }
    Err(Error::new(ErrorKind::Busy, action, path.display(), "other writers keep replacing it"))
}

/// Whether a failed lock only means that this file system has none.
fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error()) {
        return true;
    }
    error.kind() == io::ErrorKind::Unsupported
}

/// Whether an open file is the one that has this name now.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (opened, named) = (file.metadata()?, fs::metadata(path)?);
    Ok((opened.dev(), opened.ino()) == (named.dev(), named.ino()))
}

/// Elsewhere an open file cannot be replaced.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// The name at the end of a chain of symbolic links, whether a file lies there or not.
fn follow_links(mut path: PathBuf) -> PathBuf {
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = directory_of(&path).join(next),
            Err(_) => break,
        }
    }
    path
}

/// The directory of a file, `.` for a bare name.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes all of it, however many calls that takes.
fn write_all_vectored(mut file: &File, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Drops empty slices, so that a write of nothing is not taken for a full disk.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
