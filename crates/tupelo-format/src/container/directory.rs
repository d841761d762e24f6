//! Directories: their records, their key lists, and the ways through them (`TDirectoryFile::Streamer`, `ReadKeys`).

mod tree;

use std::ops::Range;

use bytes::Bytes;

pub(super) use self::tree::read_tree;
pub use self::tree::{Level, Tree, list_objects};
use super::key::{Key, parse_key, read_key, text};
use super::{Attempt, Deviation, FetchedRanges, Interrupt, Rule, START_BIG_FILE, read_header};
use crate::wire::{Buffer, Cursor};
use crate::{Error, Result};

/// Directories nested deeper are refused.
pub const MAX_DIRECTORY_DEPTH: usize = 64;
/// Paths with more bytes are refused: a small file could otherwise ask for quadratic memory.
pub const MAX_PATH_BYTES: usize = 4096;
/// Smallest key: the fixed part, two 32-bit offsets and three empty strings.
const MIN_KEY_BYTES: usize = 29;
/// Bytes of a directory's record, in both layouts, since ROOT 4.
pub(super) const RECORD_BYTES: usize = 60;
/// Bytes of a record in 32-bit layout, without UUID.
pub(super) const SHORT_RECORD_BYTES: usize = 30;
/// Class version of a directory's record.
pub(super) const DIRECTORY_VERSION: u16 = 5;
/// Added to the class version where offsets have 64 bits.
const BIG: u16 = 1000;
/// Limit, in bytes, of the first request for a key list, whose size comes from the directory's record.
const MAX_HINT_BYTES: u64 = 1 << 20;
/// Memory of one key in a list and of the object that is made of it, names not counted, in bytes.
const KEY_MEMORY: u64 = 1024;
/// Enough for name and title of the file and the record of its top directory.
const TOP_BYTES: u64 = 4096;

/// An object in a file: a key and where it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Names of the directories and of the object, joined by `/`.
    pub path: String,
    /// Its key.
    pub key: Key,
}

/// The record of one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DirectoryRecord {
    pub(super) class_version: u16,
    pub(super) created: u32,
    pub(super) modified: u32,
    pub(super) nbytes_keys: u32,
    pub(super) nbytes_name: u32,
    pub(super) seek_directory: u64,
    pub(super) seek_parent: u64,
    pub(super) seek_keys: u64,
    pub(super) uuid: [u8; 16],
}

impl DirectoryRecord {
    pub(super) fn read(bytes: &[u8], offset: u64) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, offset);
        let version = cursor.u16_be()?;
        let is_big = version > BIG;
        let place = |cursor: &mut Cursor<'_>| match is_big {
            true => cursor.u64_be(),
            false => cursor.u32_be().map(u64::from),
        };
        let mut record = Self {
            class_version: if is_big { version - BIG } else { version },
            created: cursor.u32_be()?,
            modified: cursor.u32_be()?,
            nbytes_keys: cursor.u32_be()?,
            nbytes_name: cursor.u32_be()?,
            seek_directory: place(&mut cursor)?,
            seek_parent: place(&mut cursor)?,
            seek_keys: place(&mut cursor)?,
            uuid: [0; 16],
        };
        // The oldest directories end here.
        if cursor.remaining() >= 18 {
            let _version = cursor.u16_be()?;
            record.uuid.copy_from_slice(cursor.take(16)?);
        }
        Ok(record)
    }

    /// The record on disk; in either layout it takes [`RECORD_BYTES`].
    pub(super) fn write(&self) -> Vec<u8> {
        let is_big = self.is_big();
        let mut buffer = Buffer::new();
        buffer.u16_be(if is_big { self.class_version.saturating_add(BIG) } else { self.class_version });
        buffer.u32_be(self.created);
        buffer.u32_be(self.modified);
        buffer.u32_be(self.nbytes_keys);
        buffer.u32_be(self.nbytes_name);
        for offset in [self.seek_directory, self.seek_parent, self.seek_keys] {
            match u32::try_from(offset) {
                Ok(small) if !is_big => buffer.u32_be(small),
                _ => buffer.u64_be(offset),
            }
        }
        buffer.u16_be(1);
        buffer.put(&self.uuid);
        let padding = RECORD_BYTES.saturating_sub(buffer.len());
        buffer.put(&vec![0; padding]);
        buffer.into_vec()
    }

    pub(super) fn is_big(&self) -> bool {
        self.seek_directory.max(self.seek_parent).max(self.seek_keys) > START_BIG_FILE
    }
}

/// A key in a list, as it is and as its bytes.
#[derive(Debug, Clone)]
pub(super) struct ListedKey {
    pub(super) key: Key,
    pub(super) raw: Bytes,
    /// Index of the directory that it opens, in the tree.
    pub(super) child: Option<usize>,
}

/// One directory with its key list.
#[derive(Debug, Clone)]
pub struct Directory {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) title: String,
    /// Index of the directory above, in the tree; the top directory is its own.
    pub(super) parent: usize,
    pub(super) record: DirectoryRecord,
    /// Where the record lies, and the bytes from there to the end of the record's key.
    pub(super) record_at: u64,
    pub(super) room: u64,
    /// Bytes of the key list's record, 0 where there is none.
    pub(super) list_bytes: u64,
    /// Bytes of the key list that would be lost if it were written again.
    pub(super) unread: Option<String>,
    /// A key after the last one: of a deleted object if its record is free.
    pub(super) last: Option<LastKey>,
    pub(super) keys: Vec<ListedKey>,
    /// Positions in `keys`, sorted by name and cycle.
    by_name: Vec<u32>,
    /// The same for those that are directories.
    directories: Vec<u32>,
}

/// A key after the last one of a key list.
#[derive(Debug, Clone)]
pub(super) struct LastKey {
    /// The record that it leads to.
    pub(super) record: Range<u64>,
    /// The deviation, if that is free.
    pub(super) deviation: Deviation,
}

/// Where a directory's record lies, found but not yet read.
#[derive(Debug, Clone)]
pub(super) struct ListedDirectory {
    path: String,
    name: String,
    title: String,
    parent: usize,
    pub(super) record_at: u64,
    pub(super) room: u64,
}

impl ListedDirectory {
    /// The place of a record, without the key that lists it.
    pub(super) fn of_record(record_at: u64, room: u64) -> Self {
        let (path, name, title) = (String::new(), String::new(), String::new());
        Self { path, name, title, parent: 0, record_at, room }
    }
}

/// The top directory, whose key lies at `begin`.
pub(super) fn top(fetched: &FetchedRanges, begin: u64) -> Attempt<ListedDirectory> {
    let key = read_key(fetched, begin)?;
    let at = begin.saturating_add(u64::from(key.key_bytes));
    let bytes = fetched.get(at, key.stored_bytes().min(TOP_BYTES))?;
    let mut cursor = Cursor::new(&bytes, at);
    let (name, title) = (text(&mut cursor)?, text(&mut cursor)?);
    let record_at = cursor.offset();
    let room = key.stored_bytes().saturating_sub(cursor.position() as u64);
    Ok(ListedDirectory { path: String::new(), name, title, parent: 0, record_at, room })
}

fn below(size: u64, key: &Key, path: String, parent: usize) -> Result<ListedDirectory> {
    key.check_place(size)?;
    Ok(ListedDirectory {
        path,
        name: key.name.clone(),
        title: key.title.clone(),
        parent,
        record_at: key.payload_offset(),
        room: key.stored_bytes(),
    })
}

pub(super) fn read_directory(fetched: &FetchedRanges, place: &ListedDirectory) -> Attempt<Directory> {
    let bytes = fetched.get(place.record_at, place.room.min(RECORD_BYTES as u64))?;
    let record = DirectoryRecord::read(&bytes, place.record_at)?;
    let KeyList { bytes: list_bytes, unread, last, keys } = read_keys(fetched, &record)?;
    Ok(Directory {
        path: place.path.clone(),
        name: place.name.clone(),
        title: place.title.clone(),
        parent: place.parent,
        record,
        record_at: place.record_at,
        room: place.room,
        list_bytes,
        unread,
        last,
        by_name: sorted(&keys, |_| true),
        directories: sorted(&keys, Key::is_directory),
        keys,
    })
}

/// The key list of a directory.
#[derive(Default)]
struct KeyList {
    /// Of its record.
    bytes: u64,
    /// See [`Directory::unread`].
    unread: Option<String>,
    /// See [`Directory::last`].
    last: Option<LastKey>,
    keys: Vec<ListedKey>,
}

/// As ROOT reads it: keys end behind their titles, whatever lengths they have, and the list ends where its directory
/// says.
fn read_keys(fetched: &FetchedRanges, record: &DirectoryRecord) -> Attempt<KeyList> {
    let at = record.seek_keys;
    if at == 0 {
        return Ok(KeyList::default());
    }
    // The directory's record says how long the list is, which saves a request.
    let room = fetched.size().saturating_sub(at);
    fetched.get(at, u64::from(record.nbytes_keys).min(MAX_HINT_BYTES).min(room))?;
    let (own, content_bytes) = parse_key(fetched, at)?;
    let content_bytes = content_bytes as u64;
    let (stored, listed) = (u64::from(own.nbytes), u64::from(record.nbytes_keys).min(room));
    let list = |bytes: u64| {
        let start = at.saturating_add(content_bytes);
        parse_keys(fetched, &fetched.get(start, bytes.saturating_sub(content_bytes))?, start)
    };
    let mut list = match list(stored) {
        // Some writers give the list's own key the length of a list without keys.
        Err(Interrupt::Failed(_)) if listed > stored => {
            let mut list = list(listed)?;
            list.bytes = list.bytes.saturating_add(content_bytes);
            fetched.deviations().add(at, Rule::KeyListLength { stored, actual: list.bytes });
            list
        }
        list => KeyList { bytes: stored, ..list? },
    };
    if let Some(unread) = u64::from(own.key_bytes).checked_sub(content_bytes).filter(|&unread| unread > 0) {
        list.unread = Some(format!("its key is {unread} bytes longer than its content"));
    }
    Ok(list)
}

/// The number of keys, the keys, and what is behind them. `bytes` of the list are those up to the end of the last key.
fn parse_keys(fetched: &FetchedRanges, bytes: &Bytes, at: u64) -> Attempt<KeyList> {
    let mut list = KeyList::default();
    let mut cursor = Cursor::new(bytes, at);
    let count = cursor.u32_be()? as usize;
    if count > cursor.remaining() / MIN_KEY_BYTES {
        let what = format!("expected a list of {count} keys, {} bytes left", cursor.remaining());
        return Err(Error::corrupt(what).at(at).into());
    }
    fetched.memory().take((count as u64).saturating_mul(KEY_MEMORY), "list of keys").map_err(|e| e.at(at))?;
    fetched.memory().take((bytes.len() as u64).saturating_mul(4), "names of keys").map_err(|e| e.at(at))?;
    list.keys.reserve_exact(count);
    let mut are_whole = true;
    for _ in 0..count {
        let start = cursor.position();
        let (key, content_bytes) = Key::parse(bytes.get(start..).unwrap_or_default(), cursor.offset())?;
        are_whole &= usize::from(key.key_bytes) == content_bytes;
        match usize::from(key.key_bytes).checked_sub(content_bytes) {
            Some(0) => {}
            Some(unread) => {
                list.unread = Some(format!("its key '{}' is {unread} bytes longer than its content", key.name));
            }
            // `TDirectoryFile` in the list, where the record that it leads to has `TDirectory`: ROOT 5.28.
            None => {
                let rule = Rule::key_length(&key.name, key.key_bytes, content_bytes);
                fetched.deviations().add(cursor.offset(), rule);
            }
        }
        cursor.take(content_bytes)?;
        list.keys.push(ListedKey { key, raw: bytes.slice(start..cursor.position()), child: None });
    }
    list.bytes = cursor.position() as u64;
    // Some writers reserve room: it is filled with zeros, or with the previous contents.
    let (rest, offset) = (bytes.get(cursor.position()..).unwrap_or_default(), cursor.offset());
    if rest.iter().all(|&byte| byte == 0) {
        return Ok(list);
    }
    let deviation = Deviation { offset, rule: Rule::KeyListRest { keys: count as u64, bytes: rest.len() as u64 } };
    let key = Key::read(rest, offset).ok().filter(|key| key.check_place(fetched.size()).is_ok());
    let is_listed = |key: &Key| list.keys.iter().any(|listed| listed.key.seek_key == key.seek_key);
    match key.filter(|key| !is_listed(key)) {
        None if are_whole => fetched.deviations().add(offset, deviation.rule),
        key => {
            list.unread = Some(format!("{} bytes follow its {count} keys", rest.len()));
            // The number of keys is wrong, or the object was deleted.
            let record = |key: Key| key.seek_key..key.seek_key.saturating_add(u64::from(key.nbytes));
            list.last = key.filter(|_| are_whole).map(|key| LastKey { record: record(key), deviation });
        }
    }
    Ok(list)
}

/// Positions of the wanted keys by name, by cycle, and in the order of the list.
fn sorted(keys: &[ListedKey], wanted: impl Fn(&Key) -> bool) -> Vec<u32> {
    let mut order: Vec<u32> = (0u32..).zip(keys).filter(|(_, listed)| wanted(&listed.key)).map(|(at, _)| at).collect();
    let sort_key = |at: u32| keys.get(at as usize).map(|listed| (listed.key.name.as_str(), listed.key.cycle, at));
    order.sort_unstable_by(|&one, &other| sort_key(one).cmp(&sort_key(other)));
    order
}

impl Directory {
    /// Its title; of the top directory that of the file.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The top directory of a file.
    ///
    /// # Errors
    /// Corrupt where the header, the directory or its key list is damaged.
    pub fn top(fetched: &FetchedRanges) -> Attempt<Self> {
        let top = read_directory(fetched, &top(fetched, read_header(fetched)?.begin)?)?;
        top.check_saved(fetched)?;
        Ok(top)
    }

    /// Whether the directories were saved, as ROOT asks before it recovers a file (`TFile::Init`): without a list of
    /// keys they were not, and objects past the end of a file without keys are in no list.
    fn check_saved(&self, fetched: &FetchedRanges) -> Attempt<()> {
        let header = read_header(fetched)?;
        if self.record.seek_keys <= header.begin || self.keys.is_empty() && header.end < fetched.size() {
            fetched.deviations().add(0, Rule::Saved);
        }
        Ok(())
    }

    /// The directory that a key opens.
    ///
    /// # Errors
    /// Corrupt where the directory or its key list is damaged.
    pub fn below(fetched: &FetchedRanges, key: &Key) -> Attempt<Self> {
        read_directory(fetched, &below(fetched.size(), key, String::new(), 0)?)
    }

    /// The key of a name: with that cycle, or else with the highest.
    fn newest(&self, name: &str, cycle: Option<u16>, order: &[u32]) -> Option<&Key> {
        let key = |at: u32| self.keys.get(at as usize).map(|listed| &listed.key);
        let highest = (name, cycle.unwrap_or(u16::MAX));
        let behind = order.partition_point(|&at| key(at).is_some_and(|key| (key.name.as_str(), key.cycle) <= highest));
        let found = key(*order.get(behind.checked_sub(1)?)?)?;
        (found.name == name && cycle.is_none_or(|cycle| cycle == found.cycle)).then_some(found)
    }
}

/// The object at a path (`directory/name`, or `directory/name;2` for a cycle; the newest cycle otherwise). `open`
/// returns the top directory for `None`, otherwise the directory of a key; it is called only for the directories on the
/// path.
///
/// # Errors
/// Those of `open`; corrupt if the object lies outside the file.
pub fn find_object_in<D: AsRef<Directory>, E: From<Error>>(
    path: &str,
    file_size: u64,
    mut open: impl FnMut(Option<&Key>) -> Result<D, E>,
) -> Result<Option<Object>, E> {
    let (path, cycle) = split_cycle(path.trim_matches('/'));
    let mut rest = path;
    let mut held = open(None)?;
    loop {
        let directory = held.as_ref();
        // The whole rest first: old files have names with a slash in them.
        if let Some(key) = directory.newest(rest, cycle, &directory.by_name) {
            key.check_place(file_size)?;
            return Ok(Some(Object { path: path.to_owned(), key: key.clone() }));
        }
        let Some((name, behind)) = rest.split_once('/') else {
            return Ok(None);
        };
        let Some(key) = directory.newest(name, None, &directory.directories) else {
            return Ok(None);
        };
        rest = behind;
        held = open(Some(key))?;
    }
}

/// Like [`find_object_in`], but reads the directories on the path from the file on every call.
///
/// # Errors
/// As [`list_objects`], for the directories on the path.
pub fn find_object(fetched: &FetchedRanges, path: &str) -> Attempt<Option<Object>> {
    let open = |key: Option<&Key>| match key {
        None => Directory::top(fetched),
        Some(key) => Directory::below(fetched, key),
    };
    find_object_in(path, fetched.size(), |key| open(key).map(Box::new))
}

fn join(path: &str, name: &str) -> Result<String> {
    let joined = if path.is_empty() { name.len() } else { path.len() + 1 + name.len() };
    if joined > MAX_PATH_BYTES {
        return Err(Error::limit(format!("path of {joined} bytes exceeds the limit of {MAX_PATH_BYTES}")));
    }
    Ok(if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") })
}

/// Splits `name;2` into name and cycle.
pub(super) fn split_cycle(path: &str) -> (&str, Option<u16>) {
    match path.rsplit_once(';').map(|(name, cycle)| (name, cycle.parse())) {
        Some((name, Ok(cycle))) => (name, Some(cycle)),
        _ => (path, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_both_layouts() {
        for seek_keys in [0, START_BIG_FILE, START_BIG_FILE + 1, 1 << 60] {
            let record = DirectoryRecord {
                class_version: 5,
                created: 1,
                modified: 2,
                nbytes_keys: 3,
                nbytes_name: 4,
                seek_directory: 100,
                seek_parent: 50,
                seek_keys,
                uuid: [9; 16],
            };
            assert_eq!(record.is_big(), seek_keys > START_BIG_FILE);
            let bytes = record.write();
            assert_eq!(bytes.len(), RECORD_BYTES);
            assert_eq!(DirectoryRecord::read(&bytes, 0), Ok(record.clone()));
            // The oldest have no UUID.
            if seek_keys == 0 {
                let old = DirectoryRecord { uuid: [0; 16], ..record };
                assert_eq!(DirectoryRecord::read(&bytes[..SHORT_RECORD_BYTES], 0), Ok(old));
            }
        }
        // The highest version with 32-bit offsets.
        let mut bytes = [0; SHORT_RECORD_BYTES];
        bytes[..2].copy_from_slice(&BIG.to_be_bytes());
        assert_eq!(DirectoryRecord::read(&bytes, 0).unwrap().class_version, BIG);
    }

    #[test]
    fn paths_have_a_limit() {
        assert_eq!(join("", "name").as_deref(), Ok("name"));
        assert!(join("", &"n".repeat(MAX_PATH_BYTES + 1)).is_err());
        // The slash counts: a path one byte too long once passed for it.
        let longest = MAX_PATH_BYTES - 11;
        assert_eq!(join(&"p".repeat(10), &"n".repeat(longest)).unwrap().len(), MAX_PATH_BYTES);
        assert!(join(&"p".repeat(10), &"n".repeat(longest + 1)).is_err());
    }

    /// A file with an object at each of these paths, the first one of so many bytes.
    fn file(paths: &[&str], first_bytes: usize) -> Vec<u8> {
        let (mut layout, head) = super::super::FileLayout::create("f", 0, [0; 16]).unwrap();
        for (index, path) in paths.iter().enumerate() {
            layout.add(path, "C", "", vec![1; if index == 0 { first_bytes } else { 1 }]).unwrap();
        }
        let tail = layout.finish(head.len() as u64).unwrap();
        let mut file = [&head[..], &tail.append].concat();
        for (offset, bytes) in &tail.patches {
            file[*offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        file
    }

    fn whole(file: Vec<u8>) -> FetchedRanges {
        let mut fetched = FetchedRanges::new(file.len() as u64);
        fetched.provide(0, file.into());
        fetched
    }

    fn tree(file: Vec<u8>) -> Attempt<Vec<Directory>> {
        read_tree(&whole(file))
    }

    #[test]
    fn a_list_cannot_have_more_keys_than_bytes_for_them() {
        let file = file(&["x"], 1);
        let at = tree(file.clone()).unwrap()[0].record.seek_keys;
        let key = read_key(&whole(file.clone()), at).unwrap();
        let count = |count: u8| {
            let mut file = file.clone();
            file[key.payload_offset() as usize + 3] = count;
            tree(file).map(|tree| tree[0].keys.len())
        };
        // One key of 31 bytes; the smallest takes 29.
        assert_eq!((key.stored_bytes(), count(1)), (4 + 31, Ok(1)));
        let Err(Interrupt::Failed(error)) = count(2) else { panic!("two keys") };
        assert_eq!(error.what(), "expected a list of 2 keys, 31 bytes left");
    }

    #[test]
    fn lists_of_keys_have_no_more_bytes_than_the_file() {
        // Five directories lead to the list of a sixth, which has a long name in it.
        let long = format!("z/{}", "n".repeat(2000));
        let sharing = |first_bytes: usize| {
            let mut file = file(&[&long, "a/x", "b/x", "c/x", "d/x", "e/x"], first_bytes);
            let directories = tree(file.clone()).unwrap();
            let shared = &directories[1];
            let lists = directories[0].list_bytes + 6 * shared.list_bytes;
            let seek_keys = (shared.record.seek_keys as u32).to_be_bytes();
            for directory in &directories[2..] {
                file[directory.record_at as usize + 26..][..4].copy_from_slice(&seek_keys);
            }
            (file, lists as usize)
        };
        let (small, lists) = sharing(0);
        let missing = lists - small.len();
        assert_eq!(tree(sharing(missing).0).unwrap().len(), 7);
        let Err(Interrupt::Failed(error)) = tree(sharing(missing - 1).0) else { panic!("one list for all") };
        assert_eq!(error.what(), "key lists overlap");
    }

    #[test]
    fn memory_of_lists_is_counted() {
        let fetched = whole(file(&["object"], 1));
        assert_eq!(list_objects(&fetched).unwrap().len(), 1);
        let record = tree(file(&["object"], 1)).unwrap().remove(0).record;
        let stored = read_key(&fetched, record.seek_keys).unwrap().stored_bytes();
        assert_eq!(fetched.memory().used(), KEY_MEMORY + 4 * stored + 2 * 6);
    }

    #[test]
    fn a_list_is_asked_for_at_once_as_far_as_its_length_is_believed() {
        let place = |nbytes_keys: u32| {
            let record = DirectoryRecord {
                class_version: 5,
                created: 0,
                modified: 0,
                nbytes_keys,
                nbytes_name: 0,
                seek_directory: 100,
                seek_parent: 0,
                seek_keys: 5000,
                uuid: [0; 16],
            };
            let mut fetched = FetchedRanges::new(1 << 30);
            fetched.provide(200, record.write().into());
            let (path, name, title) = (String::new(), String::new(), String::new());
            read_directory(&fetched, &ListedDirectory { path, name, title, parent: 0, record_at: 200, room: 60 })
                .map(drop)
        };
        let asked = |bytes: u64| Err(Interrupt::Missing(std::iter::once(5000..5000 + bytes).collect()));
        assert_eq!((place(700), place(u32::MAX)), (asked(700), asked(1 << 20)));
    }

    #[test]
    fn every_directory_knows_the_one_above() {
        let tree = tree(file(&["a/b/c/x", "a/d/x", "e/x", "e/f/g/x"], 1)).unwrap();
        let mut paths: Vec<_> = tree.iter().map(|directory| directory.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["", "a", "a/b", "a/b/c", "a/d", "e", "e/f", "e/f/g"]);
        for (index, directory) in tree.iter().enumerate() {
            for listed in &directory.keys {
                let Some(child) = listed.child else { continue };
                assert_eq!((tree[child].parent, &tree[child].name), (index, &listed.key.name));
                assert_eq!(tree[child].path, join(&directory.path, &listed.key.name).unwrap());
            }
        }
    }
}
