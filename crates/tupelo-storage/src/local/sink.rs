//! Files of this machine, written so that a failure at any point leaves what was there before.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, IoSlice, Seek, SeekFrom};
use std::mem;
use std::path::{self, Path, PathBuf};

use tempfile::TempPath;

use super::disk::{Disk, LocalDisk, Locked};
use super::source::check_regular;
use crate::error::{Error, ErrorKind, Result};
use crate::sink::{ByteSink, check_patch, spoilt};

/// Appends to a local file wait in memory up to this many bytes (4 MiB); larger ones go straight to the system.
pub const LOCAL_WRITE_BUFFER_BYTES: usize = 4 << 20;

/// How many links from name to name are followed to find the file that is to be replaced; as many as Linux follows.
const MAX_LINKS: usize = 40;
/// The longest part of a file's name that its temporary neighbour repeats, in characters; names end at 255 bytes.
const TEMPORARY_NAME_CHARS: usize = 50;
/// Separates the name of the target from a few random characters in the name of a temporary file.
const TEMPORARY_MARK: &str = ".tmp-";
/// How often a file that is replaced under our hands is opened again.
const OPEN_ATTEMPTS: usize = 10;

/// A file of this machine as a sink: a new one, or one that is continued in place.
///
/// Writers of one name take an advisory lock where the file system has any, so that the second one fails with
/// [`ErrorKind::Busy`]. Readers take none.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    disk: Box<dyn Disk>,
    /// Where the buffer belongs in the file.
    flushed_bytes: u64,
    buffer: Vec<u8>,
    /// Wait for the next checkpoint.
    patches: Vec<(u64, Vec<u8>)>,
    /// Length of what a crash or an error goes back to; `None` where that is nothing.
    kept_bytes: Option<u64>,
    spoilt: bool,
    ending: Ending,
    /// The process that writes: a child that it forks inherits this value, and must leave the file alone.
    process: u32,
}

/// What commit and abort have to do.
#[derive(Debug)]
enum Ending {
    /// Move a temporary file over the target; what is there now is kept open for its lock.
    Rename { temporary: TempPath, target: PathBuf, replaced: Option<Locked> },
    /// The file is in its place already.
    InPlace,
    /// Nothing is left to do.
    Done,
}

impl FileSink {
    /// Begins a new file, or one that will replace the file of that name.
    ///
    /// The bytes go to `NAME.tmp-RANDOM` beside the target, which takes the target's place at commit. It stays there
    /// with the last checkpoint when the sink is not committed, and as it is when the process is killed. A link is
    /// followed, and the file that it leads to is replaced. The permissions of a replaced file stay; its other hard
    /// links keep the old content. A relative path is taken from the directory in which the process is now, wherever it
    /// is at commit.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] where the directory or an existing file may not be written, [`ErrorKind::NotFound`]
    /// without a directory, [`ErrorKind::NotSupported`] for what is not a regular file, [`ErrorKind::Busy`] while
    /// another sink writes this file, and what else the system says. At commit [`ErrorKind::Changed`] when the name was
    /// free at first and is taken then.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::create_through(path, |disk| disk)
    }

    /// As [`FileSink::create`], with all writing through another [`Disk`], which is given the real one: for tests.
    ///
    /// # Errors
    /// As [`FileSink::create`].
    pub fn create_through(path: impl AsRef<Path>, wrap: impl FnOnce(Box<dyn Disk>) -> Box<dyn Disk>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |error: io::Error| Error::from_io("create", path.display(), error);
        if path.as_os_str().is_empty() {
            return Err(no_file(path));
        }
        let target = follow_links(path::absolute(path).map_err(failed)?);
        let replaced = match fs::metadata(&target) {
            Ok(metadata) => {
                check_regular(&metadata, "create", path)?;
                // A rename asks only the directory for permission; a protected file is to be respected all the same.
                Some(Locked::new(open_locked(&target, false, "replace", path)?))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let Some(name) = target.file_name() else { return Err(no_file(path)) };
        let prefix = temporary_prefix(&name.to_string_lossy());
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        #[cfg(unix)]
        builder.permissions(permissions);
        let temporary = builder.prefix(&prefix).tempfile_in(directory_of(&target)).map_err(failed)?;
        let (file, temporary) = temporary.into_parts();
        // So that nobody repairs it meanwhile. Nobody else knows the name yet: only file systems without locks fail.
        let _ = file.try_lock();
        if let Some(replaced) = &replaced {
            let permissions = replaced.file.metadata().map_err(failed)?.permissions();
            file.set_permissions(permissions).map_err(failed)?;
        }
        let disk = wrap(Box::new(LocalDisk::new(file)));
        Ok(Self::new(path, disk, 0, None, Ending::Rename { temporary, target, replaced }))
    }

    /// Continues an existing file in place.
    ///
    /// Appended bytes go behind the end at once; every old byte stays as it is until the next checkpoint or commit.
    /// That makes the appended bytes durable, then patches in the order given, then makes the patches durable. When it
    /// fails before the last step, the old bytes and the old length are restored.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::Denied`], [`ErrorKind::NotSupported`] for what is not a regular file,
    /// [`ErrorKind::Busy`] while another sink writes this file, and what else the system says.
    pub fn update(path: impl AsRef<Path>) -> Result<Self> {
        Self::update_through(path, |disk| disk)
    }

    /// As [`FileSink::update`], with all writing through another [`Disk`], which is given the real one: for tests.
    ///
    /// # Errors
    /// As [`FileSink::update`].
    pub fn update_through(path: impl AsRef<Path>, wrap: impl FnOnce(Box<dyn Disk>) -> Box<dyn Disk>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |error: io::Error| Error::from_io("update", path.display(), error);
        check_regular(&fs::metadata(path).map_err(failed)?, "update", path)?;
        let mut file = open_locked(path, true, "update", path)?;
        let old_bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let disk = wrap(Box::new(LocalDisk::new(file)));
        Ok(Self::new(path, disk, old_bytes, Some(old_bytes), Ending::InPlace))
    }

    fn new(path: &Path, disk: Box<dyn Disk>, size_bytes: u64, kept_bytes: Option<u64>, ending: Ending) -> Self {
        Self {
            path: path.to_owned(),
            disk,
            flushed_bytes: size_bytes,
            buffer: Vec::new(),
            patches: Vec::new(),
            kept_bytes,
            spoilt: false,
            ending,
            process: std::process::id(),
        }
    }

    /// Writes the buffer and `pieces` behind it.
    fn write_through(&mut self, pieces: &[&[u8]]) -> Result<()> {
        let total = self.buffer.len() + pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let mut slices = Vec::with_capacity(pieces.len() + 1);
        slices.push(IoSlice::new(&self.buffer));
        slices.extend(pieces.iter().map(|piece| IoSlice::new(piece)));
        append_all(&mut *self.disk, &mut slices).map_err(|error| {
            self.spoilt = true;
            let action = format!("append {total} bytes at byte {} to", self.flushed_bytes);
            Error::from_io(action, self.path.display(), error)
        })?;
        self.flushed_bytes += total as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Makes a state of what is written, to go back to: everything that is appended first, then the patches.
    fn settle(&mut self) -> Result<()> {
        if self.spoilt {
            return Err(spoilt(&self));
        }
        self.write_through(&[])?;
        self.spoilt = true;
        // Patches must not be on disk before what they point to. That holds for a new file too: after a power failure
        // its header would lead to pages of zeros, which nothing tells from data where pages have no checksums.
        self.sync().map_err(|error| lost(&self.path, error))?;
        let is_patched = self.apply()?;
        let is_first = self.kept_bytes.is_none();
        if !is_first {
            // What is patched leads to what is appended, so that must not be cut off any more, whatever sync says.
            self.kept_bytes = Some(self.flushed_bytes);
        }
        if is_patched {
            self.sync().map_err(|error| match is_first {
                true => lost(&self.path, error),
                false => not_durable(&self.path, error),
            })?;
        }
        self.kept_bytes = Some(self.flushed_bytes);
        self.spoilt = false;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        repeat(|| self.disk.sync())
    }

    /// Overwrites what is to be patched, the only moment at which old content changes; says whether there was any.
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
                        // Half a patch may lead to what is appended: it stays, so that a repair can find it.
                        self.kept_bytes = self.kept_bytes.map(|_| self.flushed_bytes);
                        "its old content could not be restored, the file may be damaged"
                    }
                };
                let action = format!("patch {} bytes at byte {offset} of", bytes.len());
                return Err(Error::new(error.kind().into(), action, self.path.display(), reason).with_source(error));
            }
        }
        Ok(!patches.is_empty())
    }

    /// Goes back to the last checkpoint. Gives the name of the file that keeps it, if it is not the target.
    fn go_back(&mut self) -> io::Result<Option<PathBuf>> {
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
                let kept = temporary.keep().map_err(|error| error.error)?;
                cut.map(|()| Some(kept))
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
        if !bytes.is_empty() {
            self.patches.push((offset, bytes.to_vec()));
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.settle()
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        let has_checkpoint = self.kept_bytes.is_some();
        // From here to the end an error of close could say nothing that this has not said.
        if let Err(error) = self.settle() {
            let kept = self.go_back().ok().flatten();
            return Err(kept_aside(error, kept.as_deref()));
        }
        match mem::replace(&mut self.ending, Ending::Done) {
            Ending::Rename { mut temporary, target, replaced } => {
                // What a checkpoint has promised is not removed because it cannot be moved.
                temporary.disable_cleanup(has_checkpoint);
                let aside = temporary.to_path_buf();
                let published = publish(temporary, &target, replaced, &self.path);
                published.map_err(|error| kept_aside(error, Some(&*aside).filter(|aside| aside.exists())))
            }
            Ending::InPlace | Ending::Done => Ok(()),
        }
    }

    fn abort(mut self: Box<Self>) -> Result<Option<String>> {
        let kept = self.go_back().map_err(|error| Error::from_io("clean up after", self.path.display(), error))?;
        Ok(kept.map(|path| path.display().to_string()))
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        // Nobody is left to be told of an error.
        let _ = self.go_back();
    }
}

/// The temporary files that writers of a name have left behind, or are writing now, oldest first. A link is followed:
/// they lie beside the file that it leads to.
///
/// # Errors
/// What the system says of the directory.
pub fn temporaries_of(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error: io::Error| Error::from_io("look for temporary files of", path.display(), error);
    let target = follow_links(path.to_owned());
    let Some(name) = target.file_name() else { return Ok(Vec::new()) };
    let prefix = temporary_prefix(&name.to_string_lossy());
    let mut found = Vec::new();
    for entry in fs::read_dir(directory_of(&target)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            found.push((entry.metadata().and_then(|metadata| metadata.modified()).ok(), entry.path()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Whether a file is called as one that a writer has left behind, or is writing now.
pub fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once(TEMPORARY_MARK).is_some_and(|(target, random)| !target.is_empty() && !random.contains('.'))
}

/// Moves a temporary file to a name that is free, durably; of a link, to the name that it leads to.
///
/// # Errors
/// [`ErrorKind::Changed`] where the name is taken, and what else the system says.
pub fn publish_temporary(temporary: &Path, target: &Path) -> Result<()> {
    let failed = |error: io::Error| Error::from_io("move the temporary file to", target.display(), error);
    // Not removed when moving it fails: it is all there is.
    let mut temporary = TempPath::try_from_path(temporary).map_err(failed)?;
    temporary.disable_cleanup(true);
    publish(temporary, &follow_links(target.to_owned()), None, target)
}

/// What the temporary files of a name begin with. Of a long name only the first part stands there, so a digest of the
/// whole tells it from others (FNV-1a, the same in every version).
fn temporary_prefix(name: &str) -> String {
    let short: String = name.chars().take(TEMPORARY_NAME_CHARS).collect();
    if short.len() == name.len() {
        return short + TEMPORARY_MARK;
    }
    let digest = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{short}-{digest:016x}{TEMPORARY_MARK}")
}

/// Moves the temporary file to its place and makes the move durable.
fn publish(temporary: TempPath, target: &Path, replaced: Option<Locked>, path: &Path) -> Result<()> {
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

/// The error of a path that cannot be that of a file.
#[cold]
fn no_file(path: &Path) -> Error {
    Error::new(ErrorKind::NotSupported, "create", path.display(), "it names no file")
}

/// An error of a commit, with the name of the file that keeps the last checkpoint.
#[cold]
fn kept_aside(error: Error, kept: Option<&Path>) -> Error {
    match kept {
        Some(kept) => error.with_reason(&format!("its last checkpoint is kept in {}", kept.display())),
        None => error,
    }
}

/// The error of data that the system could not make durable: after that it may have forgotten them, and asking again
/// would be answered wrongly.
#[cold]
fn lost(path: &Path, error: io::Error) -> Error {
    let reason = format!("what was written since the last checkpoint must be taken as lost: {error}");
    Error::new(error.kind().into(), "make durable", path.display(), reason).with_source(error)
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
fn append_all(disk: &mut dyn Disk, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Drops empty slices, so that a write of nothing is not taken for a full disk.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let written = repeat(|| some(disk.append(slices)))?;
        IoSlice::advance_slices(&mut slices, written);
    }
    Ok(())
}

/// Overwrites with all of it, however many calls that takes.
fn overwrite_all(disk: &mut dyn Disk, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = repeat(|| some(disk.overwrite(offset, bytes)))?;
        offset += written as u64;
        bytes = &bytes[written..];
    }
    Ok(())
}

/// One call, repeated while it is interrupted.
fn repeat<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// What a call has written, which must be something.
fn some(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        written => written,
    }
}

#[cfg(test)]
mod tests;
