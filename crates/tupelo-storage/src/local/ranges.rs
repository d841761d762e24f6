//! Ranges of objects as files of a directory, which several processes share.
//!
//! The directory is marked by a file `CACHEDIR.TAG` (<https://bford.info/cachedir/>); a directory with other files is
//! refused, and nothing is deleted but what the cache has written. Only its owner may write to it: who writes the files
//! decides what is read.
//!
//! Each object has a folder, named by a hash of its key; the file `key` in it has the key itself. A range is a file
//! `START-END` with the bytes and the checksums of their blocks. Files are written under a temporary name and renamed, never changed,
//! and deleted by the time of their last use when the directory grows too large. A file that is missing or damaged is a
//! range that is not there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use twox_hash::XxHash3_64;

use super::positioned::Positioned;
use super::source::is_own;

/// Bytes that have one checksum.
const BLOCK_BYTES: usize = 64 << 10;
/// Size of the checksum of each block, at the end of a file.
const CHECKSUM_BYTES: usize = 8;
/// Bytes that are read at once, whole blocks: they stay in a core's own cache.
const READ_BYTES: usize = 8 * BLOCK_BYTES;
/// Maximum number of open files of an object.
const MAX_OPEN: usize = 64;
/// Name of the file with the key.
const KEY: &str = "key";
/// Maximum length of a key, in bytes.
const MAX_KEY_BYTES: u64 = 64 << 10;
/// Starts the names of files that are being written.
const TEMPORARY: &str = ".new-";
/// Name of the file that marks the directory, and its content.
const TAG: &str = "CACHEDIR.TAG";
const TAG_TEXT: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# This is a cache of Tupelo. It may be deleted.\n";
/// The directory is measured after this part of its maximum size was written.
const MEASURED_PART: u64 = 16;
/// Age at which a folder without ranges is removed.
const UNUSED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// Size to which files are reduced on deletion, in percent of the maximum.
const KEPT_PERCENT: u64 = 90;

thread_local! {
    static BLOCKS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A directory of bounded size.
#[derive(Debug)]
pub(crate) struct RangeDirectory {
    path: PathBuf,
    max_bytes: u64,
    /// Bytes written since the directory was measured.
    unmeasured: AtomicU64,
}

impl RangeDirectory {
    /// Opens a directory of this user, or creates it for this user only.
    pub(crate) fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(path)?;
        check_owner(path)?;
        let tag = path.join(TAG);
        if !is_file(&tag) {
            // Another process may have created the directory at the same time, and have begun to use it.
            if fs::read_dir(path)?.next().is_some() && !is_file(&tag) {
                let reason = "the directory contains other files: choose an empty or new directory";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
            fs::write(&tag, TAG_TEXT)?;
        }
        // The first write measures what other processes left.
        Ok(Self { path: path.to_owned(), max_bytes, unmeasured: AtomicU64::new(max_bytes) })
    }

    /// The folder of an object. Fails if it belongs to another key with the same hash.
    pub(crate) fn object(&self, key: &str) -> io::Result<RangeFolder> {
        let path = self.path.join(format!("{:016x}", XxHash3_64::oneshot(key.as_bytes())));
        fs::create_dir_all(&path)?;
        match read_key(&path.join(KEY)) {
            Some(found) if found == key.as_bytes() => {}
            Some(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            None => put(&path, KEY, &[key.as_bytes()])?,
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
        for folder in fs::read_dir(&self.path)?.flatten().filter(is_own_folder) {
            let before = files.len();
            for file in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                // Another process may delete it at the same time.
                let Ok(metadata) = file.metadata() else { continue };
                if metadata.is_file() && file.file_name().to_str().is_some_and(is_own_file) {
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
#[derive(Debug, Clone)]
struct CachedFile {
    end: u64,
    /// Whether this process has used it.
    is_used: bool,
    opened: Option<Arc<Opened>>,
}

/// A file that is open, with the checksums of its blocks.
#[derive(Debug)]
struct Opened {
    file: Positioned,
    len: u64,
    checksums: Vec<u8>,
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
    by_start: BTreeMap<u64, CachedFile>,
    /// Length of the longest, in bytes.
    longest: u64,
    /// Number of open files.
    open: usize,
}

impl Ranges {
    fn add(&mut self, range: &Range<u64>) {
        let found = || CachedFile { end: range.end, is_used: false, opened: None };
        let entry = self.by_start.entry(range.start).or_insert_with(found);
        if entry.end < range.end {
            *entry = found();
        }
        self.longest = self.longest.max(range.end - range.start);
    }

    /// The file that has most bytes of a range from its start on.
    fn at(&self, start: u64) -> Option<(u64, &CachedFile)> {
        let before = self.by_start.range(start.saturating_sub(self.longest)..=start);
        let (from, found) = before.max_by_key(|(_, found)| found.end)?;
        (found.end > start).then_some((*from, found))
    }

    /// The files that have the bytes of a range, given by their start, each with the part of the range that it is used
    /// for; `None` if bytes are missing.
    fn covering(&self, range: &Range<u64>) -> Option<Vec<(u64, Range<u64>)>> {
        let (mut files, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let (start, found) = self.at(at)?;
            let part = at..range.end.min(found.end);
            at = part.end;
            files.push((start, part));
        }
        Some(files)
    }
}

impl RangeFolder {
    fn lock(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are files with all bytes of a range. They may be damaged.
    pub(crate) fn covers(&self, range: &Range<u64>) -> bool {
        self.lock().covering(range).is_some()
    }

    /// The bytes of a range; `None` if some are missing or damaged.
    pub(crate) fn read(&self, range: &Range<u64>) -> Option<Bytes> {
        let len = usize::try_from(range.end - range.start).ok()?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).ok()?;
        self.read_parts(range, |part| bytes.extend_from_slice(part))?;
        Some(bytes.into())
    }

    /// Reads consecutive bytes into buffers that follow each other; `None` if some are missing or damaged.
    pub(crate) fn read_into(&self, start: u64, pieces: &mut [&mut [u8]]) -> Option<()> {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut pieces = pieces.iter_mut();
        let mut to: &mut [u8] = &mut [];
        self.read_parts(&(start..start.checked_add(len as u64)?), |mut part| {
            while !part.is_empty() {
                if to.is_empty() {
                    let Some(piece) = pieces.next() else { return };
                    to = piece;
                }
                let (now, later) = part.split_at(part.len().min(to.len()));
                let (filled, rest) = std::mem::take(&mut to).split_at_mut(now.len());
                filled.copy_from_slice(now);
                (to, part) = (rest, later);
            }
        })
    }

    /// Reads the bytes of a range part by part. What was read of it is void if the result is `None`.
    fn read_parts(&self, range: &Range<u64>, mut read: impl FnMut(&[u8])) -> Option<()> {
        // In the head of the loop, the lock would be held until its end.
        let files = self.lock().covering(range)?;
        for (start, part) in files {
            let opened = self.opened(start);
            let done = opened.and_then(|opened| opened.read(part.start - start..part.end - start, &mut read));
            if done.is_none() {
                self.forget(start);
                return None;
            }
        }
        Some(())
    }

    /// Opens a file of the folder, unless it is open.
    fn opened(&self, start: u64) -> Option<Arc<Opened>> {
        let (end, is_used) = {
            let ranges = self.lock();
            let found = ranges.by_start.get(&start)?;
            if let Some(opened) = &found.opened {
                return Some(Arc::clone(opened));
            }
            (found.end, found.is_used)
        };
        let path = self.file(start, end);
        let opened = Arc::new(Opened::open(&path, end - start)?);
        if !is_used {
            // The time of the last use. An error only means that it is deleted earlier.
            let _ = File::options().write(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        let mut ranges = self.lock();
        if ranges.open >= MAX_OPEN {
            ranges.by_start.values_mut().for_each(|found| found.opened = None);
            ranges.open = 0;
        }
        ranges.open += 1;
        if let Some(found) = ranges.by_start.get_mut(&start).filter(|found| found.end == end) {
            found.is_used = true;
            found.opened = Some(Arc::clone(&opened));
        }
        Some(opened)
    }

    /// Removes a damaged file.
    fn forget(&self, start: u64) {
        if let Some(found) = self.lock().by_start.remove(&start) {
            let _ = fs::remove_file(self.file(start, found.end));
        }
    }

    /// Stores the bytes from `start`.
    pub(crate) fn keep(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        let range = start..start + bytes.len() as u64;
        if self.covers(&range) {
            return Ok(());
        }
        let checksums: Vec<u8> = bytes.chunks(BLOCK_BYTES).flat_map(checksum).collect();
        put(&self.path, &format!("{}-{}", range.start, range.end), &[bytes, &checksums])?;
        self.lock().add(&range);
        Ok(())
    }

    fn file(&self, start: u64, end: u64) -> PathBuf {
        self.path.join(format!("{start}-{end}"))
    }
}

fn checksum(block: &[u8]) -> [u8; CHECKSUM_BYTES] {
    XxHash3_64::oneshot(block).to_le_bytes()
}

impl Opened {
    /// `None` if it is not a file with `len` bytes and their checksums.
    fn open(path: &Path, len: u64) -> Option<Self> {
        // Checked before opening, because opening a pipe blocks.
        let file = if is_file(path) { File::open(path).ok()? } else { return None };
        let checksum_bytes = len.div_ceil(BLOCK_BYTES as u64) * CHECKSUM_BYTES as u64;
        if file.metadata().ok()?.len() != len + checksum_bytes {
            return None;
        }
        let file = Positioned::new(file);
        let checksums = file.read(len, usize::try_from(checksum_bytes).ok()?).ok()?;
        Some(Self { file, len, checksums })
    }

    /// Reads a part, some whole blocks at a time, and compares their checksums; `None` if the file is damaged.
    fn read(&self, part: Range<u64>, read: &mut impl FnMut(&[u8])) -> Option<()> {
        let block = BLOCK_BYTES as u64;
        let mut sums = self.checksums.chunks(CHECKSUM_BYTES).skip((part.start / block) as usize);
        let mut start = part.start / block * block;
        BLOCKS.with_borrow_mut(|blocks| {
            while start < part.end {
                let end = self.len.min(part.end.next_multiple_of(block)).min(start + READ_BYTES as u64);
                // The cast is lossless: it is at most READ_BYTES.
                blocks.resize((end - start) as usize, 0);
                self.file.read_into(start, &mut [&mut blocks[..]]).ok()?;
                let mut pairs = blocks.chunks(BLOCK_BYTES).zip(sums.by_ref());
                if !pairs.all(|(block, sum)| checksum(block) == sum) {
                    return None;
                }
                let wanted = part.start.max(start)..part.end.min(end);
                read(&blocks[(wanted.start - start) as usize..(wanted.end - start) as usize]);
                start = end;
            }
            Some(())
        })
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

/// Refuses a directory into which other users may write.
#[cfg(unix)]
fn check_owner(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(path)?;
    // Many systems give each user a group of his own, and let it write by default.
    let is_own_group = metadata.gid() == rustix::process::getegid().as_raw();
    let reason = match metadata.mode() & if is_own_group { 0o002 } else { 0o022 } {
        _ if !is_own(&metadata) => "the directory belongs to another user",
        0 => return Ok(()),
        _ => "other users can write to the directory: choose a private one, or remove the permission (chmod go-w)",
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

#[cfg(not(unix))]
fn check_owner(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether it is a file, and not a link to one.
fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

fn read_key(path: &Path) -> Option<Vec<u8>> {
    let is_key = is_file(path) && fs::metadata(path).ok()?.len() <= MAX_KEY_BYTES;
    if is_key { fs::read(path).ok() } else { None }
}

/// Whether the cache may have created a folder.
fn is_own_folder(folder: &fs::DirEntry) -> bool {
    let is_hash = |name: &str| name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    folder.file_type().is_ok_and(|kind| kind.is_dir()) && folder.file_name().to_str().is_some_and(is_hash)
}

/// Whether the cache may have created a file in such a folder, other than the key.
fn is_own_file(name: &str) -> bool {
    range_of(name).is_some() || name.starts_with(TEMPORARY)
}

/// The range in the name of a file.
fn range_of(name: &str) -> Option<Range<u64>> {
    let (start, end) = name.split_once('-')?;
    let range = start.parse().ok()?..end.parse().ok()?;
    (!range.is_empty()).then_some(range)
}

/// Writes a file that is visible when it is complete.
fn put(folder: &Path, name: &str, pieces: &[&[u8]]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(folder)?;
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

    #[test]
    fn ranges_are_found_by_later_processes() {
        let (_folder, directory) = directory(1 << 20);
        let object = directory.object("https://host/x 1").unwrap();
        object.keep(100, &[1, 2, 3, 4, 5, 6]).unwrap();
        object.keep(50, &[9; 10]).unwrap();
        object.keep(106, &[7, 8]).unwrap();
        for object in [object, directory.object("https://host/x 1").unwrap()] {
            let found = |range: Range<u64>| {
                let found = object.read(&range);
                assert_eq!(found.is_some(), object.covers(&range));
                found
            };
            assert_eq!(found(102..104).unwrap(), [3, 4][..]);
            assert_eq!(found(100..106).unwrap(), [1, 2, 3, 4, 5, 6][..]);
            assert_eq!(found(50..51).unwrap(), [9][..]);
            // Two files together.
            assert_eq!(found(105..108).unwrap(), [6, 7, 8][..]);
            assert_eq!(found(99..99).unwrap(), [][..]);
            for missing in [99..101, 105..109, 55..102, 60..61] {
                assert_eq!(found(missing), None);
            }
        }
        assert_eq!(directory.object("https://host/x 2").unwrap().read(&(100..101)), None, "another version");
    }

    #[test]
    fn blocks_are_compared_one_by_one() {
        let (_folder, directory) = directory(1 << 20);
        let object = directory.object("key").unwrap();
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        object.keep(1000, &bytes).unwrap();
        for part in [0..1, 0..65_536, 65_535..65_537, 70_000..80_000, 131_072..200_000, 199_999..200_000, 0..200_000] {
            let found = object.read(&(1000 + part.start as u64..1000 + part.end as u64));
            assert!(found.unwrap() == bytes[part.clone()], "{part:?}");
        }
        let path = object.file(1000, 201_000);
        let mut damaged = fs::read(&path).unwrap();
        damaged[150_000] ^= 1;
        fs::write(&path, damaged).unwrap();
        assert_eq!(object.read(&(1000..2000)).unwrap(), bytes[..1000]);
        assert_eq!(object.read(&(150_000..150_001)), None);
        assert!(!path.exists());
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
            assert_eq!(object.read(&(10..20)), None, "{damage}");
            assert!(!file.exists());
        }
        fs::write(object.path.join(KEY), "other").unwrap();
        assert!(directory.object("key").is_err());
    }

    /// Regression: all files in all folders were deleted to make room, also behind links.
    #[test]
    fn files_of_others_are_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, len| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, vec![1; len]).unwrap();
            File::options().write(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        };
        write("data/run.root", 10);
        let refused = RangeDirectory::open(&folder.path().join("data"), 100).unwrap_err();
        assert!(refused.to_string().contains("contains other files"), "{refused}");

        let directory = RangeDirectory::open(&folder.path().join("cache"), 1000).unwrap();
        let others = ["cache/mine/key", "cache/mine/0-900", "cache/0123456789abcdef/notes.txt", "elsewhere/0-900"];
        others.iter().for_each(|path| write(path, 900));
        #[cfg(unix)]
        std::os::unix::fs::symlink("../elsewhere", folder.path().join("cache/fedcba9876543210")).unwrap();
        let object = directory.object("key").unwrap();
        object.keep(0, &[1; 900]).unwrap();
        object.keep(900, &[1; 900]).unwrap();
        directory.wrote(1800).unwrap();
        assert!(
            !object.covers(&(0..1)) || !object.path.join("0-900").exists() || !object.path.join("900-1800").exists()
        );
        for path in others {
            assert!(folder.path().join(path).exists(), "{path}");
        }
        RangeDirectory::open(&folder.path().join("cache"), 1000).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn directories_that_others_may_write_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let refused = RangeDirectory::open(folder.path(), 100).unwrap_err();
        assert!(refused.to_string().contains("chmod go-w"), "{refused}");
    }

    /// Regression: reading a pipe waited indefinitely.
    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_read() {
        let (_folder, directory) = directory(1 << 20);
        let object = directory.object("key").unwrap();
        object.keep(0, &[1; 100]).unwrap();
        let file = object.file(0, 100);
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert_eq!(object.read(&(0..10)), None);
        fs::remove_file(object.path.join(KEY)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", object.path.join(KEY)).unwrap();
        directory.object("key").unwrap();
        assert!(is_file(&object.path.join(KEY)));
    }

    #[test]
    fn the_least_recently_used_files_are_deleted() {
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
        assert!(object.read(&(0..9_000)).is_some());
        object.keep(200_000, &[1; 18_000]).unwrap();
        directory.wrote(18_000).unwrap();
        let left = directory.object("key").unwrap();
        assert!(left.read(&(0..9_000)).is_some());
        assert_eq!(left.read(&(10_000..19_000)), None);
        assert!(left.read(&(200_000..218_000)).is_some());

        for (days, is_kept) in [(0, true), (2, false)] {
            let unused = directory.object("unused").unwrap();
            let made = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
            File::options().write(true).open(unused.path.join(KEY)).unwrap().set_modified(made).unwrap();
            directory.wrote(100_000).unwrap();
            assert_eq!(unused.path.exists(), is_kept);
        }
    }
}
