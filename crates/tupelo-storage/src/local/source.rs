//! Local files as sources.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;

use super::positioned::Positioned;
use crate::error::{Error, ErrorKind, Result};
use crate::source::{ByteSource, Hints, checked_len};

/// Ranges of a local file at most this many bytes apart (64 KiB) are merged: a system call and a seek cost more than
/// copying the gap from the page cache.
pub const LOCAL_GAP_BYTES: u64 = 64 << 10;
/// Maximum size of a merged read of a local file (8 MiB): larger requests are not faster.
pub const LOCAL_MAX_REQUEST_BYTES: u64 = 8 << 20;
/// Number of concurrent reads of local files that give the best throughput.
pub const LOCAL_CONCURRENCY: usize = 8;
/// Hints for local files.
pub const LOCAL_HINTS: Hints =
    Hints { gap_bytes: LOCAL_GAP_BYTES, max_request_bytes: LOCAL_MAX_REQUEST_BYTES, concurrency: LOCAL_CONCURRENCY };

/// A local file as a source.
///
/// The size is fixed when the file is opened: bytes appended later are not visible. A file that was truncated or, without
/// growing, changed in place is an error of kind [`ErrorKind::Changed`]. The file is not memory-mapped, so truncation
/// cannot crash the process.
#[derive(Debug)]
pub struct FileSource {
    file: Positioned,
    path: PathBuf,
    size_bytes: u64,
    /// The time of its last change when it was opened; `None` if the system does not say it.
    modified: Option<SystemTime>,
}

impl FileSource {
    /// Opens a regular file, or a link to one.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::Denied`], [`ErrorKind::NotSupported`] for what is not a regular file, and
    /// other errors of the system.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |error: io::Error| Error::from_io("open", path.display(), error);
        // Checked before opening, because opening a pipe blocks until its other end is open.
        check_regular(&fs::metadata(path).map_err(failed)?, "open", path)?;
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let (size_bytes, modified) = (metadata.len(), metadata.modified().ok());
        Ok(Self { file: Positioned::new(file), path: path.to_owned(), size_bytes, modified })
    }

    /// Lets the system forget what it has in memory of the file, so that the next reads come from the disk. It may keep parts
    /// that are in use. Only Linux can do this.
    ///
    /// # Errors
    /// [`ErrorKind::NotSupported`] on other systems; errors of the system.
    pub fn forget_cached(&self) -> Result<()> {
        #[cfg(target_os = "linux")]
        let forgotten = rustix::fs::fadvise(self.file.file(), 0, None, rustix::fs::Advice::DontNeed);
        #[cfg(not(target_os = "linux"))]
        let forgotten = Err(io::Error::from(io::ErrorKind::Unsupported));
        forgotten.map_err(|error| Error::from_io("empty the page cache of", self, error.into()))
    }
}

impl FileSource {
    /// Refuses what was read if it may belong to another file, written in place of this one. A file that has grown may
    /// have been appended to, which does not change what was there.
    fn check_unchanged(&self, range: &Range<u64>) -> Result<()> {
        let now = self.file.file().metadata().ok().map(|metadata| (metadata.len(), metadata.modified().ok()));
        match now {
            Some((len, modified)) if modified != self.modified && len <= self.size_bytes => {
                let action = format!("read bytes {}..{} of", range.start, range.end);
                Err(Error::new(ErrorKind::Changed, action, self, "the file was changed after it was opened"))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn failed(&self, range: &Range<u64>, error: io::Error) -> Error {
        let action = format!("read bytes {}..{} of", range.start, range.end);
        match error.kind() {
            // The range was checked against the size at opening.
            io::ErrorKind::UnexpectedEof => {
                let now = self.file.file().metadata().map_or(0, |metadata| metadata.len());
                let reason =
                    format!("the file was truncated from {} to {now} bytes after it was opened", self.size_bytes);
                Error::new(ErrorKind::Changed, action, self, reason)
            }
            _ => Error::from_io(action, self, error),
        }
    }
}

/// Refuses directories, pipes and devices.
pub(super) fn check_regular(metadata: &fs::Metadata, action: &'static str, path: &Path) -> Result<()> {
    let reason = match metadata.file_type() {
        file_type if file_type.is_file() => return Ok(()),
        file_type if file_type.is_dir() => "it is a directory",
        _ => "it is not a regular file",
    };
    Err(Error::new(ErrorKind::NotSupported, action, path.display(), reason))
}

/// Whether a file or directory belongs to the user of this process.
#[cfg(unix)]
pub(super) fn is_own(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(metadata) == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
pub(super) fn is_own(_: &fs::Metadata) -> bool {
    true
}

impl fmt::Display for FileSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl ByteSource for FileSource {
    fn size(&self) -> Result<u64> {
        Ok(self.size_bytes)
    }

    fn hints(&self) -> Hints {
        LOCAL_HINTS
    }

    fn reads_in_place(&self, _: &Range<u64>) -> bool {
        true
    }

    fn version(&self) -> Option<String> {
        let since = self.modified?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(format!("{} {}", self.size_bytes, since.as_nanos()))
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let len = checked_len(&range, self, self.size_bytes)?;
        if len == 0 {
            return Ok(Bytes::new());
        }
        let bytes = self.file.read(range.start, len).map_err(|error| self.failed(&range, error))?;
        self.check_unchanged(&range)?;
        Ok(Bytes::from(bytes))
    }

    fn read_into(&self, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        let range = start..start.saturating_add(pieces.iter().map(|piece| piece.len() as u64).sum());
        match checked_len(&range, self, self.size_bytes)? {
            0 => Ok(()),
            _ => {
                self.file.read_into(start, pieces).map_err(|error| self.failed(&range, error))?;
                self.check_unchanged(&range)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::source_laws;
    use crate::local::FileSink;
    use crate::sink::ByteSink;

    fn file_with(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.root");
        fs::write(&path, bytes).unwrap();
        (directory, path)
    }

    #[test]
    fn a_file_keeps_the_laws_of_a_source() {
        for size in [0, 1, 300_000] {
            let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let (_directory, path) = file_with(&bytes);
            let source = FileSource::open(&path).unwrap();
            assert_eq!(source.to_string(), path.display().to_string());
            source_laws(&source, &bytes);
        }
    }

    #[test]
    fn truncated_files_are_errors_with_both_sizes() {
        let (_directory, path) = file_with(&[1; 1000]);
        let source = FileSource::open(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(600).unwrap();
        let error = source.read_range(500..700).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed);
        let expected = format!(
            "cannot read bytes 500..700 of {}: the file was truncated from 1000 to 600 bytes after it was opened",
            path.display()
        );
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_file_that_was_rewritten_in_place_is_an_error() {
        let (_directory, path) = file_with(&[1; 1000]);
        let source = FileSource::open(&path).unwrap();
        assert_eq!(source.read_range(0..10).unwrap().as_ref(), [1; 10]);
        fs::write(&path, [2; 1000]).unwrap();
        let later = SystemTime::now() + std::time::Duration::from_secs(1);
        File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        let error = source.read_range(0..10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed);
        assert!(error.to_string().ends_with("the file was changed after it was opened"), "{error}");
        let mut bytes = [0; 10];
        assert_eq!(source.read_into(0, &mut [&mut bytes]).unwrap_err().kind(), ErrorKind::Changed);
    }

    /// A reader of a file continues if somebody appends to it, and if that is aborted.
    #[test]
    fn a_file_that_is_appended_to_is_unchanged() {
        let (_directory, path) = file_with(&[1; 1000]);
        let source = FileSource::open(&path).unwrap();
        let read = || assert_eq!(source.read_range(0..1000).unwrap().as_ref(), [1; 1000]);
        for is_committed in [false, true] {
            let mut sink: Box<dyn ByteSink> = Box::new(FileSink::update(&path).unwrap());
            sink.append(&[2; 1 << 20]).unwrap();
            read();
            match is_committed {
                true => sink.commit().unwrap(),
                false => assert_eq!(sink.abort().unwrap(), None),
            }
            read();
        }
    }

    #[test]
    fn bytes_appended_later_are_not_visible() {
        let (_directory, path) = file_with(&[1; 10]);
        let source = FileSource::open(&path).unwrap();
        fs::write(&path, [2; 20]).unwrap();
        assert_eq!(source.size().unwrap(), 10);
        assert_eq!(source.read_range(5..15).unwrap_err().kind(), ErrorKind::OutOfRange);
    }

    #[test]
    fn a_file_that_is_written_has_another_version() {
        let (_directory, path) = file_with(&[1; 10]);
        let version = || FileSource::open(&path).unwrap().version().unwrap();
        let before = version();
        assert_eq!(version(), before);
        let later = SystemTime::now() + std::time::Duration::from_nanos(100);
        File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        assert_ne!(version(), before);
    }

    #[test]
    fn missing_files_and_directories_are_errors() {
        let (directory, path) = file_with(&[]);
        let missing = path.with_file_name("y.root");
        let error = FileSource::open(&missing).unwrap_err();
        assert!(error.is_not_found());
        assert!(error.to_string().starts_with(&format!("cannot open {}: ", missing.display())), "{error}");
        let error = FileSource::open(directory.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(error.to_string().ends_with("it is a directory"), "{error}");
        #[cfg(unix)]
        assert_eq!(FileSource::open("/dev/null").unwrap_err().kind(), ErrorKind::NotSupported);
    }

    #[test]
    #[cfg(unix)]
    fn a_file_without_permission_is_denied() {
        use std::os::unix::fs::PermissionsExt;
        let (_directory, path) = file_with(&[1]);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        // The superuser may read it anyway.
        if let Err(error) = FileSource::open(&path) {
            assert_eq!(error.kind(), ErrorKind::Denied);
            assert!(error.to_string().contains("ermission denied"), "{error}");
        }
    }

    #[test]
    fn huge_sparse_files_do_not_overflow() {
        let (_directory, path) = file_with(&[]);
        // Some file systems do not support files of this size.
        if File::options().write(true).open(&path).unwrap().set_len(1 << 43).is_ok() {
            let source = FileSource::open(&path).unwrap();
            assert_eq!(source.read_range((1 << 43) - 5..1 << 43).unwrap().as_ref(), [0; 5]);
            assert_eq!(source.read_range(0..(1 << 43) + 1).unwrap_err().kind(), ErrorKind::OutOfRange);
        }
    }
}
