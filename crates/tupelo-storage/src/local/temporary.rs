//! Files that have a temporary name, or none, until they are complete.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempPath;

use super::disk::Locked;
use super::target::{directory_of, follow_links, sync_directory};
use crate::error::{Error, ErrorKind, Result};

/// Maximum part of a file name in the name of its temporary file, in characters; names have at most 255 bytes.
const TEMPORARY_NAME_CHARS: usize = 50;
/// Separates the name of the target from a few random characters in the name of a temporary file.
const TEMPORARY_MARK: &str = ".tmp-";
/// Characters of the random part of such a name.
const RANDOM_CHARS: usize = 6;
/// End of such a name: files of other programs are never taken for those of writers that have ended.
const TEMPORARY_END: &str = "-tupelo";
/// Beginning of the names that the command gave its temporary files before 0.2.
const OLD_PREFIX: &str = ".tupelo-";

/// A file that is not complete.
#[derive(Debug)]
pub(super) enum Temporary {
    /// It is removed on drop.
    Named(TempPath),
    /// The system removes it when it is closed, also where the writer is killed.
    #[cfg(target_os = "linux")]
    Unnamed(unnamed::Unnamed),
}

impl Temporary {
    /// Creates the file for a target of this name. It is unnamed where the file system supports that.
    pub(super) fn create(name: &str, directory: &Path) -> io::Result<(File, Self)> {
        #[cfg(target_os = "linux")]
        if let Some((file, unnamed)) = unnamed::Unnamed::create(name, directory) {
            return Ok((file, Self::Unnamed(unnamed)));
        }
        new_temporary(name, directory).map(|(file, path)| (file, Self::Named(path)))
    }

    /// Its name, if it has one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Named(path) => Some(path),
            #[cfg(target_os = "linux")]
            Self::Unnamed(_) => None,
        }
    }

    /// Whether a file with a name is kept on drop.
    pub(super) fn keep_on_drop(&mut self, is_kept: bool) {
        if let Self::Named(path) = self {
            path.disable_cleanup(is_kept);
        }
    }

    /// Gives the file a name, so that it outlives its writer. Returns whether it had none.
    pub(super) fn give_name(&mut self) -> io::Result<bool> {
        match self {
            Self::Named(_) => Ok(false),
            #[cfg(target_os = "linux")]
            Self::Unnamed(unnamed) => {
                *self = Self::Named(unnamed.linked()?);
                Ok(true)
            }
        }
    }

    /// Removes the file.
    pub(super) fn close(self) -> io::Result<()> {
        match self {
            Self::Named(path) => path.close(),
            #[cfg(target_os = "linux")]
            Self::Unnamed(_) => Ok(()),
        }
    }

    /// The name of a file that is kept; `None` if it never had one.
    pub(super) fn into_kept(self) -> io::Result<Option<PathBuf>> {
        match self {
            Self::Named(path) => path.keep().map(Some).map_err(|error| error.error),
            #[cfg(target_os = "linux")]
            Self::Unnamed(_) => Ok(None),
        }
    }

    /// The finished file under a temporary name.
    fn into_named(self) -> io::Result<TempPath> {
        match self {
            Self::Named(path) => Ok(path),
            #[cfg(target_os = "linux")]
            Self::Unnamed(unnamed) => unnamed.linked().or_else(|_| unnamed.copied()),
        }
    }

    /// Gives the finished file its final name at once, if it has none and that name is free; false if it has one.
    fn appear_at(&mut self, target: &Path) -> io::Result<bool> {
        match self {
            Self::Named(_) => {
                let _ = target;
                Ok(false)
            }
            #[cfg(target_os = "linux")]
            Self::Unnamed(unnamed) => unnamed.link(target).map(|()| true),
        }
    }
}

/// A file that appears under its name, or replaces another, when it is complete. Unlike a [`FileSink`](super::FileSink) it is
/// written directly, and nothing is synced.
#[derive(Debug)]
pub struct Replacement {
    temporary: Temporary,
    target: PathBuf,
}

impl Replacement {
    /// Makes a file in the directory of the target, whose links are resolved already.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn create(target: PathBuf) -> io::Result<(File, Self)> {
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (file, temporary) = Temporary::create(&name, directory_of(&target))?;
        Ok((file, Self { temporary, target }))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn publish(mut self) -> io::Result<()> {
        match self.temporary.appear_at(&self.target) {
            Ok(true) => Ok(()),
            _ => self.temporary.into_named()?.persist(&self.target).map_err(|error| error.error),
        }
    }
}

/// A temporary file of a writer that has ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadFile {
    /// Its path.
    pub path: PathBuf,
    /// The path of its target; of a long name that was shortened, another one.
    pub target: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was last written.
    pub modified: Option<SystemTime>,
}

/// The temporary files in a directory that no process writes, in order. Where the file system has no locks, those of running
/// writers are among them: judge them by the time of their last change.
///
/// # Errors
/// Errors of the system when reading the directory.
pub fn dead_temporaries(directory: &Path) -> Result<Vec<DeadFile>> {
    let failed = |error: io::Error| Error::from_io("look for temporary files in", directory.display(), error);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(target) = target_of(&name) else { continue };
        // Others may remove it at the same time.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() && !is_locked(&entry.path()) {
            let modified = metadata.modified().ok();
            let (path, target) = (entry.path(), directory.join(target));
            found.push(DeadFile { path, target, bytes: metadata.len(), modified });
        }
    }
    found.sort();
    Ok(found)
}

/// Removes a temporary file, unless a process writes it. Returns whether it is removed.
///
/// # Errors
/// Errors of the system.
pub fn remove_dead(path: &Path) -> Result<bool> {
    let failed = |error: io::Error| Error::from_io("remove", path.display(), error);
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        // It can be removed though it cannot be read.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        file => Some(file.map_err(failed)?),
    };
    // A repair waits until the file is gone, and finds none.
    if file.as_ref().is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock))) {
        return Ok(false);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(true),
    }
}

/// The target of a temporary file, by its name; `None` for other files.
fn target_of(name: &str) -> Option<&str> {
    let is_random = |text: &str| text.len() == RANDOM_CHARS && text.chars().all(|c| c.is_ascii_alphanumeric());
    match name.rsplit_once(TEMPORARY_MARK) {
        Some((target, end)) => {
            let random = end.strip_suffix(TEMPORARY_END);
            Some(target).filter(|target| !target.is_empty() && random.is_some_and(is_random))
        }
        None => name.strip_prefix(OLD_PREFIX).filter(|random| is_random(random)).map(|_| name),
    }
}

/// Whether another process writes a file. Where locks are not supported, it seems that none does.
pub(super) fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Temporary files of a target, left behind or being written, oldest first. Links are followed to the directory of the
/// target.
///
/// # Errors
/// Errors of the system when reading the directory.
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

/// Whether a file name is that of a temporary file.
pub fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once(TEMPORARY_MARK).is_some_and(|(target, random)| !target.is_empty() && !random.contains('.'))
}

/// Renames a temporary file to a free name, durably. Links are followed.
///
/// # Errors
/// [`ErrorKind::Changed`] if the name is taken, and other errors of the system.
pub fn publish_temporary(temporary: &Path, target: &Path) -> Result<()> {
    let failed = |error: io::Error| Error::from_io("move the temporary file to", target.display(), error);
    // Keep the only copy if the rename fails.
    let mut temporary = TempPath::try_from_path(temporary).map_err(failed)?;
    temporary.disable_cleanup(true);
    publish(Temporary::Named(temporary), &follow_links(target.to_owned()), None, target)
}

/// Prefix of the temporary files of a name. A long name is shortened, and a digest of the whole name makes it unique
/// (FNV-1a, the same in every version).
pub(super) fn temporary_prefix(name: &str) -> String {
    let short: String = name.chars().take(TEMPORARY_NAME_CHARS).collect();
    if short.len() == name.len() {
        return short + TEMPORARY_MARK;
    }
    let digest = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{short}-{digest:016x}{TEMPORARY_MARK}")
}

/// Makes a temporary file for a target of this name.
pub(super) fn new_temporary(name: &str, directory: &Path) -> io::Result<(File, TempPath)> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    #[cfg(unix)]
    builder.permissions(permissions);
    let prefix = temporary_prefix(name);
    builder.prefix(&prefix).rand_bytes(RANDOM_CHARS).suffix(TEMPORARY_END);
    let (file, temporary) = builder.tempfile_in(directory).map_err(without_path)?.into_parts();
    // Prevents a concurrent repair. The name is new, so this fails only on file systems without locks.
    let _ = file.try_lock();
    Ok((file, temporary))
}

/// The error without the name of the temporary file, which the user does not know.
fn without_path(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((reason, _)) => io::Error::new(error.kind(), reason),
        None => error,
    }
}

/// Moves the finished file to the target, durably. An error of the kind [`ErrorKind::Changed`] says that another writer came
/// first; after all others the target may be the new file.
pub(super) fn publish(mut temporary: Temporary, target: &Path, replaced: Option<Locked>, path: &Path) -> Result<()> {
    let failed = |error| failed_to_write("move the finished file to", path.display(), error);
    let taken = || {
        let reason = "another writer has created it";
        Error::new(ErrorKind::Changed, "move the finished file to", path.display(), reason)
    };
    if replaced.is_some() {
        let temporary = temporary.into_named().map_err(failed)?;
        // On other systems an open file cannot be replaced, so close it first.
        #[cfg(not(unix))]
        let replaced = drop(replaced);
        temporary.persist(target).map_err(|error| failed(error.error))?;
        drop(replaced);
    } else {
        match temporary.appear_at(target) {
            Ok(true) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(taken()),
            // It has a name, or cannot get this one at once.
            Ok(false) | Err(_) => {
                if let Err(refused) = temporary.into_named().map_err(failed)?.persist_noclobber(target) {
                    // Some file systems cannot rename without replacing; check for the target first.
                    let is_there = refused.error.kind() == io::ErrorKind::AlreadyExists;
                    if is_there || fs::symlink_metadata(target).is_ok() {
                        return Err(taken());
                    }
                    refused.path.persist(target).map_err(|error| failed(error.error))?;
                }
            }
        }
    }
    sync_directory(directory_of(target)).map_err(|error| not_durable(path, error))
}

/// The error of a complete file that may not be durable.
#[cold]
pub(super) fn not_durable(path: &Path, error: io::Error) -> Error {
    let reason = "the new content is visible but may not survive a power failure";
    failed_to_write("make durable", path.display(), error).with_reason(reason)
}

/// An error of the system while writing, which is never [`ErrorKind::Changed`]: that says that another writer came first and
/// that nothing of this one is visible. A stale handle of a network file system does not say so.
#[cold]
pub(super) fn failed_to_write(action: &'static str, uri: impl fmt::Display, error: io::Error) -> Error {
    let kind = match error.kind().into() {
        ErrorKind::Changed => ErrorKind::Other,
        kind => kind,
    };
    Error::new(kind, action, uri, "").with_source(error)
}

/// Files without a name (`O_TMPFILE`).
#[cfg(target_os = "linux")]
mod unnamed {
    use std::fs::{self, File};
    use std::io::{self, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, CWD, Mode, OFlags};
    use tempfile::TempPath;

    use super::{RANDOM_CHARS, TEMPORARY_END, new_temporary, temporary_prefix};

    /// The file systems that can give such a file a name later: ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, overlayfs. Others may
    /// make the file and fail when it is complete.
    const SUPPORTED: [u64; 6] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0xf2f5_2010, 0x794c_7630];
    /// Bytes that are copied at once.
    const COPIED_BYTES: usize = 1 << 20;

    #[derive(Debug)]
    pub(in super::super) struct Unnamed {
        /// The file of the writer, which shares its lock.
        file: File,
        /// The name of the target.
        name: String,
        directory: PathBuf,
    }

    impl Unnamed {
        /// `None` where the system does not support that; other errors are those of a file with a name.
        pub(super) fn create(name: &str, directory: &Path) -> Option<(File, Self)> {
            let kind = rustix::fs::statfs(directory).ok()?.f_type;
            if !SUPPORTED.contains(&u64::try_from(kind).ok()?) {
                return None;
            }
            let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
            let file = File::from(rustix::fs::open(directory, flags, Mode::from_raw_mode(0o666)).ok()?);
            let own = Self { file: file.try_clone().ok()?, name: name.to_owned(), directory: directory.to_owned() };
            // Without /proc it could never get a name.
            fs::metadata(own.handle()).ok()?;
            // For the time when it has a name.
            let _ = file.try_lock();
            Some((file, own))
        }

        /// A link to the open file.
        fn handle(&self) -> String {
            format!("/proc/self/fd/{}", self.file.as_raw_fd())
        }

        /// Gives the file a name that is free.
        pub(super) fn link(&self, path: &Path) -> io::Result<()> {
            Ok(rustix::fs::linkat(CWD, self.handle(), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
        }

        /// Gives the file a temporary name.
        pub(super) fn linked(&self) -> io::Result<TempPath> {
            let mut builder = tempfile::Builder::new();
            let prefix = temporary_prefix(&self.name);
            builder.prefix(&prefix).rand_bytes(RANDOM_CHARS).suffix(TEMPORARY_END);
            Ok(builder.make_in(&self.directory, |path| self.link(path))?.into_temp_path())
        }

        /// A copy with a temporary name, where the file cannot be linked.
        #[cold]
        pub(super) fn copied(&self) -> io::Result<TempPath> {
            let (mut copy, path) = new_temporary(&self.name, &self.directory)?;
            copy.set_permissions(self.file.metadata()?.permissions())?;
            let (mut buffer, mut done) = (vec![0; COPIED_BYTES], 0);
            loop {
                match self.file.read_at(&mut buffer, done) {
                    Ok(0) => break,
                    Ok(read) => {
                        copy.write_all(&buffer[..read])?;
                        done += read as u64;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            copy.sync_all()?;
            Ok(path)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_file_that_cannot_be_linked_is_copied() {
            let folder = tempfile::tempdir().unwrap();
            let Some((mut file, unnamed)) = Unnamed::create("x.root", folder.path()) else { return };
            let content = vec![7; COPIED_BYTES + 5];
            file.write_all(&content).unwrap();
            let copy = unnamed.copied().unwrap();
            assert!(fs::read(&copy).unwrap() == content);
            assert_eq!(fs::metadata(&copy).unwrap().permissions(), file.metadata().unwrap().permissions());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_temporary_files() {
        assert_eq!(target_of("x.root.tmp-aB3dE9-tupelo"), Some("x.root"));
        assert_eq!(target_of(".tupelo-aB3dE9"), Some(".tupelo-aB3dE9"));
        // Defect: a file like `x.root.tmp-backup` of another program was taken for one.
        let others =
            ["x.root", ".tmp-aB3dE9-tupelo", "x.root.tmp-notes.txt", "x.tmp-backup", "x.tmp-abc", ".tupelo-cache"];
        for other in others {
            assert_eq!(target_of(other), None, "{other}");
        }
    }

    #[test]
    fn only_files_of_ended_writers_are_dead() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        let (file, living) = new_temporary("living.root", place).unwrap();
        let (ended, dead) = new_temporary("dead.root", place).unwrap();
        fs::write(place.join("x.root"), "x").unwrap();
        fs::create_dir(place.join("x.root.tmp-abcdef-tupelo")).unwrap();
        drop(ended);
        let found = dead_temporaries(place).unwrap();
        let paths: Vec<_> = found.iter().map(|file| (file.path.clone(), file.target.clone())).collect();
        assert_eq!(paths, [(dead.to_path_buf(), place.join("dead.root"))]);
        assert!(!remove_dead(&living).unwrap() && living.exists());
        drop(file);
        for path in [&*living, &*dead, &*dead] {
            assert!(remove_dead(path).unwrap() && !path.exists());
        }
    }
}
