//! A directory as a namespace.

use std::fmt;
use std::path::{self, Path};
use std::sync::Arc;

use bytes::Bytes;
use twox_hash::XxHash3_64;

use super::plan::Requests;
use super::{Condition, NewObject, ObjectEntry, ObjectRange, ObjectSink, ObjectSource, ObjectVersion, key, probe};
use crate::error::{Error, ErrorKind, Result};
use crate::local::{LOCAL_HINTS, ListedFile, ObjectFile, ObjectFiles};
use crate::source::Hints;

/// A directory whose files are objects. Keys are paths in it, with slashes on all systems.
///
/// Symbolic links in the directory are not followed: keys come from files that may be hostile. The directory itself may
/// be reached by one.
///
/// # Durability
/// [`put`](ObjectSink::put) leaves new files in the page cache; [`flush`](ObjectSink::flush) makes them durable, on Linux
/// by one `syncfs`. [`publish`](ObjectSink::publish) writes and syncs a temporary file, which it renames, and syncs the
/// folder. An object that is replaced is locked and compared, so that of two writers only one meets the condition; this
/// needs a file system with locks, which [`honours_conditions`](ObjectSink::honours_conditions) finds out.
#[derive(Debug)]
pub struct ObjectDirectory {
    files: ObjectFiles,
}

impl ObjectDirectory {
    /// The namespace of a directory. A directory that does not exist has no objects, and none can be written.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn new(directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref();
        let shown = directory.display().to_string();
        let end = if shown.is_empty() || shown.ends_with(path::is_separator) { "" } else { "/" };
        Self::named(directory, format!("ntpl+file:{shown}{end}"))
    }

    /// The same with the URI that precedes keys in messages.
    pub(super) fn named(directory: &Path, base: String) -> Result<Self> {
        Ok(Self { files: ObjectFiles::new(directory, base)? })
    }

    /// Checks that an object can be created: that the directory exists.
    pub(super) fn check_exists(&self, action: &'static str, key: &str) -> Result<()> {
        self.files.check_root(action, key)
    }

    fn file(&self, key: &str) -> Result<Arc<ObjectFile>> {
        key::check(key, self, "read")?;
        self.files.open_again(key)
    }
}

impl fmt::Display for ObjectDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.files.base())
    }
}

impl ObjectSource for ObjectDirectory {
    fn hints(&self) -> Hints {
        LOCAL_HINTS
    }

    fn reads_in_place(&self) -> bool {
        true
    }

    fn get(&self, key: &str, max_bytes: u64) -> Result<(Bytes, ObjectVersion)> {
        key::check(key, self, "read")?;
        // Not one that is open: the object may have been replaced.
        let file = self.files.open(key)?;
        if file.size() > max_bytes {
            return Err(too_large(self.files.uri(key), file.size(), max_bytes));
        }
        let bytes = file.read(&(0..file.size()))?;
        let version = version_of(&bytes);
        Ok((bytes, version))
    }

    fn get_ranges(&self, ranges: &[ObjectRange]) -> Result<Vec<Bytes>> {
        let requests = Requests::plan(ranges, &LOCAL_HINTS, self.files.base())?;
        let read = requests.all().map(|(key, range)| self.files.open_again(key)?.read(range));
        requests.cut(read.collect::<Result<_>>()?, self.files.base())
    }

    fn get_into(&self, key: &Arc<str>, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        if pieces.iter().all(|piece| piece.is_empty()) {
            return key::check(key, self, "read");
        }
        self.file(key)?.read_into(start, pieces)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>> {
        key::check_prefix(prefix, self)?;
        // A file of another program may have a name that is not a key.
        let found = self.files.list(prefix)?.into_iter().filter(|file| key::is_valid(&file.key));
        Ok(found.map(ObjectEntry::from).collect())
    }
}

impl ObjectSink for ObjectDirectory {
    /// Never overwrites a file.
    fn put(&self, objects: &[NewObject]) -> Result<()> {
        objects.iter().try_for_each(|object| {
            key::check(&object.key, self, "write")?;
            self.files.create(&object.key, &object.pieces)
        })
    }

    fn flush(&self) -> Result<()> {
        self.files.flush()
    }

    fn publish(&self, key: &str, bytes: Bytes, condition: &Condition) -> Result<()> {
        key::check(key, self, "write")?;
        match condition {
            Condition::Absent => self.files.publish_new(key, &bytes),
            Condition::Version(version) => self.files.replace(key, &bytes, |old| version_of(old) == *version),
        }
    }

    fn honours_conditions(&self, probe: &str) -> Result<bool> {
        key::check(probe, self, "write")?;
        self.files.create(probe, &[])?;
        let has_locks = self.files.has_locks(probe);
        self.delete(&[probe.to_owned()])?;
        Ok(has_locks? && probe::honours_conditions(self, probe)?)
    }

    /// Removes also folders that are empty then.
    fn delete(&self, keys: &[String]) -> Result<()> {
        keys.iter().try_for_each(|key| {
            key::check(key, self, "remove")?;
            self.files.remove(key)
        })
    }

    fn remains(&self, object: &str, folder: &str) -> Result<Vec<ObjectEntry>> {
        key::check(object, self, "list")?;
        key::check_prefix(folder, self)?;
        let found = self.files.remains(object, folder)?.into_iter();
        Ok(found.filter(|file| key::is_valid(without_slash(&file.key))).map(ObjectEntry::from).collect())
    }

    fn remove_remains(&self, keys: &[String]) -> Result<()> {
        keys.iter().try_for_each(|key| {
            key::check(without_slash(key), self, "remove")?;
            self.files.remove(key)
        })
    }
}

/// The key of a folder as that of an object.
fn without_slash(key: &str) -> &str {
    key.strip_suffix('/').unwrap_or(key)
}

impl From<ListedFile> for ObjectEntry {
    fn from(ListedFile { key, bytes, modified }: ListedFile) -> Self {
        Self { key, bytes, modified }
    }
}

/// The version of a content.
pub(super) fn version_of(bytes: &[u8]) -> ObjectVersion {
    let etag = format!("{} {:016x}", bytes.len(), XxHash3_64::oneshot(bytes));
    ObjectVersion { etag: Some(etag), generation: None }
}

/// The error of an object that is larger than its reader expects.
#[cold]
pub(super) fn too_large(uri: String, bytes: u64, max_bytes: u64) -> Error {
    let reason = format!("expected at most {max_bytes} bytes, found {bytes}");
    Error::new(ErrorKind::NotSupported, "read", uri, reason)
}
