//! Ranges of objects as files of a directory, which several processes share.
//!
//! Each object has a folder, named by a hash of its key; the file `key` in it has the key itself. A range is a file
//! `START-END` with the bytes and their checksum. Files are written under a temporary name and renamed, never changed,
//! and deleted by the time of their last use when the directory grows too large. A file that is missing or damaged is a
//! range that is not there.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use twox_hash::XxHash3_64;

use super::positioned::Positioned;

/// Size of the checksum at the end of a file.
const CHECKSUM_BYTES: usize = 8;
/// Name of the file with the key.
const KEY: &str = "key";
/// The directory is measured after this part of its maximum size was written.
const MEASURED_PART: u64 = 16;
/// Age at which a folder without ranges is removed.
const UNUSED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// What remains of the maximum size when files are deleted, in percent.
const KEPT_PERCENT: u64 = 90;

/// A directory of bounded size.
#[derive(Debug)]
pub(crate) struct RangeDirectory {
    path: PathBuf,
    max_bytes: u64,
    /// Bytes written since the directory was measured.
    unmeasured: AtomicU64,
}

impl RangeDirectory {
    /// Opens a directory, or creates it for this user only.
    pub(crate) fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(path)?;
        // The first write measures what other processes left.
        Ok(Self { path: path.to_owned(), max_bytes, unmeasured: AtomicU64::new(max_bytes) })
    }

    /// The folder of an object. Fails if it belongs to another key with the same hash.
    pub(crate) fn object(&self, key: &str) -> io::Result<RangeFolder> {
        let path = self.path.join(format!("{:016x}", XxHash3_64::oneshot(key.as_bytes())));
        fs::create_dir_all(&path)?;
        match fs::read(path.join(KEY)) {
            Ok(found) if found == key.as_bytes() => {}
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => put(&path, KEY, &[key.as_bytes()])?,
        }
        let mut ranges = Ranges::default();
        for file in fs::read_dir(&path)? {
            let Some(range) = file?.file_name().to_str().and_then(range_of) else { continue };
            ranges.add(&range);
        }
        Ok(RangeFolder { path, ranges: Mutex::new(ranges) })
    }

    /// Counts written bytes; deletes the files that were not used for the longest time if there are too many.
    pub(crate) fn wrote(&self, bytes: u64) -> io::Result<()> {
        if self.unmeasured.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) < self.max_bytes / MEASURED_PART {
            return Ok(());
        }
        self.unmeasured.store(0, Ordering::Relaxed);
        let mut files = Vec::new();
        for folder in fs::read_dir(&self.path)?.flatten() {
            let before = files.len();
            for file in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                // Another process may delete it at the same time.
                let Ok(metadata) = file.metadata() else { continue };
                if file.file_name() != KEY {
                    let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    files.push((used, metadata.len(), file.path()));
                }
            }
            if files.len() == before {
                remove_unused(&folder.path());
            }
        }
        let mut total: u64 = files.iter().map(|(_, len, _)| len).sum();
        if total <= self.max_bytes {
            return Ok(());
        }
        files.sort();
        for (_, len, path) in files {
            if total <= self.max_bytes / 100 * KEPT_PERCENT {
                break;
            }
            total -= len;
            let _ = fs::remove_file(&path);
        }
        Ok(())
    }
}

/// A file of a folder.
#[derive(Debug, Clone, Copy)]
struct Found {
    end: u64,
    /// Whether its checksum was compared by this process.
    is_checked: bool,
}

/// The folder of an object.
#[derive(Debug)]
pub(crate) struct RangeFolder {
    path: PathBuf,
    ranges: Mutex<Ranges>,
}

/// The files of a folder.
#[derive(Debug, Default)]
struct Ranges {
    /// By start; the longest where several start there.
    by_start: BTreeMap<u64, Found>,
    /// Length of the longest, in bytes.
    longest: u64,
}

impl Ranges {
    fn add(&mut self, range: &Range<u64>) {
        let found = Found { end: range.end, is_checked: false };
        let entry = self.by_start.entry(range.start).or_insert(found);
        if entry.end < range.end {
            *entry = found;
        }
        self.longest = self.longest.max(range.end - range.start);
    }

    /// The file that has all bytes of a range.
    fn covering(&self, range: &Range<u64>) -> Option<(u64, Found)> {
        let first = range.end.saturating_sub(self.longest);
        if first > range.start {
            return None;
        }
        let mut before = self.by_start.range(first..=range.start).rev();
        before.find(|(_, found)| found.end >= range.end).map(|(start, found)| (*start, *found))
    }
}

impl RangeFolder {
    fn lock(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of each range that lies within one file.
    pub(crate) fn find(&self, wanted: &[Range<u64>]) -> Vec<Option<Bytes>> {
        let mut whole: HashMap<u64, Option<Bytes>> = HashMap::new();
        let one = |range: &Range<u64>| {
            let (start, found) = self.lock().covering(range)?;
            let (from, len) = (range.start - start, (range.end - range.start) as usize);
            if found.is_checked && !whole.contains_key(&start) {
                let file = File::open(self.file(start, found.end)).ok()?;
                return Positioned::new(file).read(from, len).ok().map(Bytes::from);
            }
            // Ranges of one call often share a file: it is read once.
            let bytes = whole.entry(start).or_insert_with(|| self.checked(start, found.end)).clone()?;
            Some(bytes.slice(from as usize..from as usize + len))
        };
        wanted.iter().map(one).collect()
    }

    /// Reads a whole file and compares its checksum. A damaged one is forgotten.
    fn checked(&self, start: u64, end: u64) -> Option<Bytes> {
        let path = self.file(start, end);
        let mut bytes = fs::read(&path).unwrap_or_default();
        let len = bytes.len().saturating_sub(CHECKSUM_BYTES);
        let is_good = len as u64 == end - start && bytes[len..] == XxHash3_64::oneshot(&bytes[..len]).to_le_bytes();
        if !is_good {
            self.lock().by_start.remove(&start);
            let _ = fs::remove_file(&path);
            return None;
        }
        bytes.truncate(len);
        if let Some(found) = self.lock().by_start.get_mut(&start).filter(|found| found.end == end) {
            found.is_checked = true;
        }
        // The time of the last use. An error only means that it is deleted earlier.
        let _ = File::options().write(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(bytes.into())
    }

    /// Stores the bytes from `start`.
    pub(crate) fn keep(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        let range = start..start + bytes.len() as u64;
        if range.is_empty() || self.lock().covering(&range).is_some() {
            return Ok(());
        }
        let checksum = XxHash3_64::oneshot(bytes).to_le_bytes();
        put(&self.path, &format!("{}-{}", range.start, range.end), &[bytes, &checksum])?;
        self.lock().add(&range);
        Ok(())
    }

    fn file(&self, start: u64, end: u64) -> PathBuf {
        self.path.join(format!("{start}-{end}"))
    }
}

/// Removes a folder without ranges, unless it may be new.
fn remove_unused(folder: &Path) {
    let key = folder.join(KEY);
    let age = fs::metadata(&key).and_then(|metadata| metadata.modified()).ok().and_then(|made| made.elapsed().ok());
    if age.is_some_and(|age| age > UNUSED_AFTER) {
        // Another process that has it open does without the cache.
        let _ = fs::remove_file(&key).and_then(|()| fs::remove_dir(folder));
    }
}

/// The range in the name of a file.
fn range_of(name: &str) -> Option<Range<u64>> {
    let (start, end) = name.split_once('-')?;
    let range = start.parse().ok()?..end.parse().ok()?;
    (!range.is_empty()).then_some(range)
}

/// Writes a file that is visible when it is complete.
fn put(folder: &Path, name: &str, pieces: &[&[u8]]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    pieces.iter().try_for_each(|piece| file.write_all(piece))?;
    file.persist(folder.join(name)).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(max_bytes: u64) -> (tempfile::TempDir, RangeDirectory) {
        let folder = tempfile::tempdir().unwrap();
        let directory = RangeDirectory::open(&folder.path().join("a/b"), max_bytes).unwrap();
        (folder, directory)
    }

    fn find(folder: &RangeFolder, range: Range<u64>) -> Option<Bytes> {
        folder.find(std::slice::from_ref(&range)).pop().unwrap()
    }

    #[test]
    fn ranges_are_found_by_later_processes() {
        let (_folder, directory) = directory(1 << 20);
        let object = directory.object("https://host/x 1").unwrap();
        object.keep(100, &[1, 2, 3, 4, 5, 6]).unwrap();
        object.keep(50, &[9; 10]).unwrap();
        for object in [object, directory.object("https://host/x 1").unwrap()] {
            // The second time without comparing checksums.
            for _ in 0..2 {
                let found = object.find(&[102..104, 100..106, 50..51, 99..101, 105..107, 55..102]);
                let expected: Vec<Option<&[u8]>> =
                    vec![Some(&[3, 4]), Some(&[1, 2, 3, 4, 5, 6]), Some(&[9]), None, None, None];
                assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
            }
        }
        assert_eq!(find(&directory.object("https://host/x 2").unwrap(), 100..101), None, "another version");
    }

    #[test]
    fn damaged_and_missing_files_are_not_found() {
        let (_folder, directory) = directory(1 << 20);
        let object = directory.object("key").unwrap();
        for damage in ["cut", "changed", "missing"] {
            object.keep(0, &[7; 100]).unwrap();
            let file = object.file(0, 100);
            match damage {
                "cut" => File::options().write(true).open(&file).unwrap().set_len(50).unwrap(),
                "changed" => fs::write(&file, [8; 108]).unwrap(),
                _ => fs::remove_file(&file).unwrap(),
            }
            assert_eq!(find(&object, 10..20), None, "{damage}");
            assert!(!file.exists());
        }
        fs::write(object.path.join(KEY), "other").unwrap();
        assert!(directory.object("key").is_err());
    }

    #[test]
    fn what_was_not_used_for_longest_is_deleted() {
        let (_folder, directory) = directory(100_000);
        let object = directory.object("key").unwrap();
        for i in 0..10 {
            object.keep(i * 10_000, &[1; 9_000]).unwrap();
            let used = SystemTime::UNIX_EPOCH + Duration::from_secs(i);
            let file = File::options().write(true).open(object.file(i * 10_000, i * 10_000 + 9_000)).unwrap();
            file.set_modified(used).unwrap();
        }
        directory.wrote(90_000).unwrap();
        // This one is used again.
        assert!(find(&object, 0..9_000).is_some());
        object.keep(200_000, &[1; 18_000]).unwrap();
        directory.wrote(18_000).unwrap();
        let left = directory.object("key").unwrap();
        assert!(find(&left, 0..9_000).is_some());
        assert_eq!(find(&left, 10_000..19_000), None);
        assert!(find(&left, 200_000..218_000).is_some());

        for (days, is_kept) in [(0, true), (2, false)] {
            let unused = directory.object("unused").unwrap();
            let made = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
            File::options().write(true).open(unused.path.join(KEY)).unwrap().set_modified(made).unwrap();
            directory.wrote(100_000).unwrap();
            assert_eq!(unused.path.exists(), is_kept);
        }
    }
}
