//! What a file holds while it is written: which bytes to append, and which to overwrite when it is closed.
//!
//! Records are only ever appended; what they supersede becomes a free segment, one state later. Overwritten are the
//! file's header with the top directory, and then the records of other directories, each of which points to a whole key
//! list before and after. So a crash between any two writes leaves a file that can be read, by those too who look for
//! nothing behind the end that the header names.

mod finish;

use std::ops::Range;

use bytes::Bytes;

pub use finish::Tail;

use super::directory::{self, DIRECTORY_VERSION, DirectoryRecord, RECORD_BYTES, split_cycle};
use super::free::FreeList;
use super::key::Key;
use super::{Attempt, Fetched, FileHeader, Interrupt, StreamerInfos, read_header, read_key, streamer_infos};
use crate::wire::Buffer;
use crate::{Error, Result};

/// Offset of the first record of a new file (`TFile::kBEGIN`).
const BEGIN: u64 = 100;
/// Version of ROOT whose file format is written, 6.40.00.
const ROOT_VERSION: u32 = 64000;
/// Compression setting that the header of a new file names: zstd, level 5.
const COMPRESSION: u32 = 505;
/// A free segment cannot be shorter than the mark at its start.
const MIN_SEGMENT_BYTES: u64 = 4;

/// The layout of one ROOT file that is being written.
#[derive(Debug, Clone)]
pub struct Layout {
    header: FileHeader,
    /// The file's bytes up to the end of the top directory's record.
    head: Vec<u8>,
    start: u64,
    datime: u32,
    /// Parents before children, the top directory first.
    directories: Vec<Directory>,
    info: StreamerInfo,
    free: FreeList,
    /// Ranges that the next state does not need.
    superseded: Vec<Range<u64>>,
    /// Ranges that the last state does not need. They are free in the next one and not before: while it is made, a
    /// directory may still lead to the state before the last.
    retired: Vec<Range<u64>>,
    /// Where a record was cut off that nothing leads to any more. Its length still reaches into what follows.
    cut: Option<u64>,
}

#[derive(Debug, Clone)]
struct Directory {
    parent: usize,
    name: String,
    title: String,
    record: DirectoryRecord,
    /// Where the record lies and how many bytes it may take; `None` until it is written.
    place: Option<(u64, u64)>,
    /// The record of the key list.
    list: Range<u64>,
    entries: Vec<Entry>,
    is_changed: bool,
}

#[derive(Debug, Clone)]
struct Entry {
    name: String,
    cycle: u16,
    directory: Option<usize>,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    /// The key as it stands in the list, and where the record lies.
    Stored { key: Bytes, place: Range<u64> },
    /// An object to be written.
    Object { class_name: String, title: String, payload: Vec<u8> },
    /// A directory to be written.
    Directory,
}

#[derive(Debug, Clone)]
struct StreamerInfo {
    infos: StreamerInfos,
    place: Range<u64>,
    is_changed: bool,
}

impl StreamerInfo {
    fn new() -> Self {
        Self { infos: StreamerInfos::anchor(), place: 0..0, is_changed: true }
    }

    fn read(fetched: &Fetched, header: &FileHeader) -> Attempt<Self> {
        if header.seek_info == 0 || header.nbytes_info == 0 {
            return Ok(Self::new());
        }
        let mut infos = streamer_infos(fetched)?;
        let is_changed = infos.merge(&StreamerInfos::anchor());
        let place = behind(header.seek_info, read_key(fetched, header.seek_info)?.nbytes);
        Ok(Self { infos, place, is_changed })
    }
}

fn behind(start: u64, bytes: u32) -> Range<u64> {
    start..start.saturating_add(u64::from(bytes))
}

impl Layout {
    /// A new file, and its first bytes. They describe an empty file that was not closed.
    ///
    /// `datime` is the time in ROOT's packed form, `uuid` 16 random bytes.
    ///
    /// # Errors
    /// Limit for names longer than keys can hold.
    pub fn create(file_name: &str, datime: u32, uuid: [u8; 16]) -> Result<(Self, Vec<u8>)> {
        let mut content = Buffer::new();
        content.string_be(file_name);
        content.string_be("");
        let name_bytes = content.len();
        let record_bytes = name_bytes.saturating_add(RECORD_BYTES);
        let key = Key::place(BEGIN, 0, ["TFile", file_name, ""], record_bytes, datime)?;
        let nbytes_name = u32::from(key.key_bytes).saturating_add(u32::try_from(name_bytes).unwrap_or(u32::MAX));
        let record_at = BEGIN.saturating_add(u64::from(nbytes_name));
        let record = DirectoryRecord {
            class_version: DIRECTORY_VERSION,
            created: datime,
            modified: datime,
            nbytes_keys: 0,
            nbytes_name,
            seek_directory: BEGIN,
            seek_parent: 0,
            seek_keys: 0,
            uuid,
        };
        content.put(&record.write());
        let start = BEGIN.saturating_add(u64::from(key.nbytes));
        let header = FileHeader {
            version: ROOT_VERSION,
            is_big: false,
            begin: BEGIN,
            end: start,
            seek_free: 0,
            nbytes_free: 0,
            free_count: 1,
            nbytes_name,
            compress: COMPRESSION,
            seek_info: 0,
            nbytes_info: 0,
        };
        let mut head = header.write(&uuid);
        head.resize(BEGIN as usize, 0);
        head.extend_from_slice(&key.write());
        head.extend_from_slice(content.as_slice());
        let top = Directory {
            parent: 0,
            name: file_name.to_owned(),
            title: String::new(),
            record,
            place: Some((record_at, RECORD_BYTES as u64)),
            list: 0..0,
            entries: Vec::new(),
            is_changed: true,
        };
        let layout = Self {
            header,
            head: head.clone(),
            start,
            datime,
            directories: vec![top],
            info: StreamerInfo::new(),
            free: FreeList::default(),
            superseded: Vec::new(),
            retired: Vec::new(),
            cut: None,
        };
        Ok((layout, head))
    }

    /// An existing file to which something will be added at `datime`.
    ///
    /// # Errors
    /// Corrupt for damaged files and files that were not closed or that are shorter than they say; unsupported where
    /// the streamer info is too old to be extended.
    pub fn update(fetched: &Fetched, datime: u32) -> Attempt<Self> {
        let header = read_header(fetched)?;
        if header.end > fetched.size() {
            return Err(header.cut_off(fetched.size()).into());
        }
        // First, for this may take some rounds, and what comes before is done again in each.
        let tree = directory::read_tree(fetched)?;
        let free = FreeList::read(fetched, &header)?;
        let info = StreamerInfo::read(fetched, &header)?;
        Self::existing(fetched, datime, header, tree, free, info)
    }

    /// A file of which the directories can be read, but perhaps not what else [`Layout::update`] needs: that will be
    /// written anew. Says what that is: the header, where the file is shorter than that says; the list of free segments,
    /// so that no byte is known to be free; the streamer info, with the layouts that ntuples need.
    ///
    /// # Errors
    /// Corrupt where a directory is damaged, or what one lists lies behind the end.
    pub fn mend(fetched: &Fetched, datime: u32) -> Attempt<(Self, Vec<&'static str>)> {
        fn readable<T>(read: Attempt<T>) -> Attempt<Option<T>> {
            match read {
                Ok(read) => Ok(Some(read)),
                Err(Interrupt::Failed(_)) => Ok(None),
                Err(need) => Err(need),
            }
        }
        let (mut header, size) = (read_header(fetched)?, fetched.size());
        let tree = directory::read_tree(fetched)?;
        let free = readable(FreeList::read(fetched, &header))?;
        let info = readable(StreamerInfo::read(fetched, &header))?;
        let (free_is_lost, info_is_lost) = (free.is_none(), info.is_none());
        let parts = [
            (header.end > size, "the header"),
            (free_is_lost, "the list of free segments"),
            (info_is_lost, "the streamer info"),
        ];
        let lost = parts.into_iter().filter_map(|(is_lost, part)| is_lost.then_some(part)).collect();
        // Where the header may be wrong, nothing is called free but the rest of what is written anew.
        let cut = [
            (free_is_lost, behind(header.seek_free, header.nbytes_free)),
            (info_is_lost, behind(header.seek_info, header.nbytes_info)),
        ];
        let cut =
            cut.iter().find(|(is_lost, record)| *is_lost && record.contains(&size) && record.start >= header.begin);
        let cut = cut.map(|(_, record)| record.start);
        header.end = cut.unwrap_or(size);
        let free = free.unwrap_or_else(|| (FreeList::default(), 0..0));
        let info = info.unwrap_or_else(StreamerInfo::new);
        Ok((Self { cut, ..Self::existing(fetched, datime, header, tree, free, info)? }, lost))
    }

    fn existing(
        fetched: &Fetched,
        datime: u32,
        header: FileHeader,
        tree: Vec<directory::Directory>,
        (mut free, free_place): (FreeList, Range<u64>),
        info: StreamerInfo,
    ) -> Attempt<Self> {
        for listed in tree.iter().flat_map(|directory| &directory.keys) {
            listed.key.check_place(fetched.size())?;
        }
        let directories: Vec<Directory> = tree.into_iter().map(Directory::from).collect();
        let Some((record_at, room)) = directories.first().and_then(|top| top.place) else {
            return Err(Error::corrupt("no top directory").into());
        };
        let head = fetched.get(0, record_at.saturating_add(room.min(RECORD_BYTES as u64)))?.to_vec();
        // Leftovers behind the end, as of a crashed writer, become a free segment.
        let mut start = header.end;
        if fetched.size() > header.end {
            start = fetched.size().max(header.end.saturating_add(MIN_SEGMENT_BYTES));
            free.release(header.end..start);
        }
        // What is empty was not there.
        let superseded = Some(free_place).filter(|place| !place.is_empty()).into_iter().collect();
        let (retired, cut) = (Vec::new(), None);
        Ok(Self { header, head, start, datime, directories, info, free, superseded, retired, cut })
    }

    /// Where the next byte of this file goes: blobs from here on.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Adds an object to be written at [`Layout::finish`], under `directory/name`. Missing directories are made; if
    /// the name exists, the object becomes its newest cycle. Gives the cycle.
    ///
    /// # Errors
    /// Limit for names, payloads and cycles that keys cannot hold; unsupported for empty names and where a part of the
    /// path is an object, not a directory.
    pub fn add(&mut self, path: &str, class_name: &str, title: &str, payload: Vec<u8>) -> Result<u16> {
        let (way, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut parts: Vec<&str> = if way.is_empty() { Vec::new() } else { way.split('/').collect() };
        if name.is_empty() || parts.iter().any(|part| part.is_empty()) || path.contains('\0') {
            return Err(Error::unsupported(format!("'{}' is no path of an object", path.escape_debug())));
        }
        // A key that is surely not shorter than the one to come.
        Key::place(u64::MAX, u64::MAX, [class_name, name, title], payload.len(), self.datime)?;
        for part in &parts {
            Key::place(u64::MAX, u64::MAX, ["TDirectory", part, ""], 0, self.datime)?;
        }
        // Nothing is changed before it is known that the path is possible.
        let mut at = 0;
        while let Some(found) = parts.first().and_then(|part| self.newest(at, part)) {
            let Some(child) = found.directory else {
                return Err(Error::unsupported(format!("'{path}': '{}' is not a directory", found.name)));
            };
            at = child;
            parts.remove(0);
        }
        if parts.is_empty() && self.newest(at, name).is_some_and(|found| found.directory.is_some()) {
            return Err(Error::unsupported(format!("'{path}' is a directory")));
        }
        let cycle = match parts.is_empty() {
            true => self.newest(at, name).map_or(Some(1), |newest| newest.cycle.checked_add(1)),
            false => Some(1),
        };
        // Cycles are signed in ROOT.
        let cycle = cycle.filter(|&cycle| cycle <= i16::MAX as u16);
        let cycle = cycle.ok_or_else(|| Error::limit(format!("'{path}': no cycles left")))?;
        for part in parts {
            at = self.make_directory(at, part);
        }
        let content = Content::Object { class_name: class_name.to_owned(), title: title.to_owned(), payload };
        self.insert(at, Entry { name: name.to_owned(), cycle, directory: None, content });
        Ok(cycle)
    }

    /// Frees a record that no directory lists, key included, once a state that does not need it is complete.
    pub fn release(&mut self, record: Range<u64>) {
        self.superseded.push(record);
    }

    /// Adds layouts of classes to the file's streamer info, as far as it has no layout of the same class, version and
    /// checksum. Says whether there was one to be added.
    pub fn add_streamer_info(&mut self, infos: &StreamerInfos) -> bool {
        let is_new = self.info.infos.merge(infos);
        self.info.is_changed |= is_new;
        is_new
    }

    /// Takes an object (`directory/name`, or `directory/name;2` for a cycle; the newest otherwise) out of its
    /// directory and frees its record; blobs that it refers to stay. Says whether it was there.
    pub fn remove(&mut self, path: &str) -> bool {
        let (path, cycle) = split_cycle(path);
        let (way, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut at = 0;
        for part in way.split('/').filter(|part| !part.is_empty()) {
            match self.newest(at, part).and_then(|entry| entry.directory) {
                Some(child) => at = child,
                None => return false,
            }
        }
        let Some(cycle) = cycle.or_else(|| self.newest(at, name).map(|entry| entry.cycle)) else {
            return false;
        };
        let Some(directory) = self.directories.get_mut(at) else {
            return false;
        };
        let is_it = |entry: &Entry| entry.name == name && entry.cycle == cycle && entry.directory.is_none();
        let Some(index) = directory.entries.iter().position(is_it) else {
            return false;
        };
        if let Content::Stored { place, .. } = directory.entries.remove(index).content {
            self.superseded.push(place);
        }
        directory.is_changed = true;
        true
    }

    fn newest(&self, directory: usize, name: &str) -> Option<&Entry> {
        let entries = self.directories.get(directory).map(|directory| directory.entries.iter());
        entries.into_iter().flatten().filter(|entry| entry.name == name).max_by_key(|entry| entry.cycle)
    }

    /// Newer cycles stand before older ones, new names at the end.
    fn insert(&mut self, directory: usize, entry: Entry) {
        if let Some(directory) = self.directories.get_mut(directory) {
            let same = directory.entries.iter().position(|other| other.name == entry.name);
            directory.entries.insert(same.unwrap_or(directory.entries.len()), entry);
            directory.is_changed = true;
        }
    }

    fn make_directory(&mut self, parent: usize, name: &str) -> usize {
        let index = self.directories.len();
        let mut uuid = self.directories.first().map_or([0; 16], |top| top.record.uuid);
        // One of its own for each, in the part of a UUID that is a sequence.
        for (byte, part) in uuid.iter_mut().zip((index as u64).to_be_bytes()) {
            *byte ^= part;
        }
        self.directories.push(Directory {
            parent,
            name: name.to_owned(),
            title: name.to_owned(),
            record: DirectoryRecord {
                class_version: DIRECTORY_VERSION,
                created: self.datime,
                modified: self.datime,
                nbytes_keys: 0,
                nbytes_name: 0,
                seek_directory: 0,
                seek_parent: 0,
                seek_keys: 0,
                uuid,
            },
            place: None,
            list: 0..0,
            entries: Vec::new(),
            is_changed: true,
        });
        let content = Content::Directory;
        self.insert(parent, Entry { name: name.to_owned(), cycle: 1, directory: Some(index), content });
        index
    }
}

impl From<directory::Directory> for Directory {
    fn from(read: directory::Directory) -> Self {
        let entry = |listed: directory::ListedKey| Entry {
            name: listed.key.name,
            cycle: listed.key.cycle,
            directory: listed.child,
            content: Content::Stored { key: listed.raw, place: behind(listed.key.seek_key, listed.key.nbytes) },
        };
        Self {
            parent: read.parent,
            name: read.name,
            title: read.title,
            list: read.record.seek_keys..read.record.seek_keys.saturating_add(read.list_bytes),
            record: read.record,
            place: Some((read.record_at, read.room)),
            entries: read.keys.into_iter().map(entry).collect(),
            is_changed: false,
        }
    }
}
