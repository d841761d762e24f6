//! The layout of a file while it is written: which bytes to append, and which to overwrite when it is closed.
//!
//! Records are only appended; superseded records become free segments one state later. Only the file's header with the
//! top directory and the records of other directories are overwritten, in this order, and each directory points to a
//! complete key list before and after. A crash between any two writes therefore leaves a readable file, even for
//! readers that ignore bytes past the end offset in the header.

mod check;
mod entries;
mod existing;
mod finish;
mod payload;
mod remove;

use std::collections::BTreeSet;
use std::ops::Range;

use bytes::Bytes;

pub use finish::Tail;
pub use payload::Payload;

use entries::{Entries, Order};

use super::directory::{
    DIRECTORY_VERSION, DirectoryRecord, MAX_DIRECTORY_DEPTH, MAX_PATH_BYTES, RECORD_BYTES, split_cycle,
};
use super::free::FreeList;
use super::header::{COMPRESSION, ROOT_VERSION};
use super::key::Key;
use super::{BEGIN, FileHeader};
use crate::streamer::StreamerInfos;
use crate::wire::Buffer;
use crate::{Error, Result};

/// The layout of one ROOT file that is being written.
#[derive(Debug, Clone)]
pub struct FileLayout {
    header: FileHeader,
    /// The file's bytes up to the end of the top directory's record.
    head: Vec<u8>,
    start: u64,
    datime: u32,
    /// Parents before children, the top directory first.
    directories: Vec<Directory>,
    /// Those whose key list the last state lacks.
    changed: BTreeSet<usize>,
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
    /// Where the parent lists it, until it is written.
    listed: Option<Order>,
    name: String,
    title: String,
    record: DirectoryRecord,
    /// Where the record lies and how many bytes it may take; `None` until it is written.
    place: Option<(u64, u64)>,
    /// The record of the key list.
    list: Range<u64>,
    entries: Entries,
}

#[derive(Debug, Clone)]
struct Entry {
    name: String,
    class_name: String,
    cycle: u16,
    directory: Option<usize>,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    /// The key as in the list, and the position of the record.
    Stored { key: Bytes, place: Range<u64> },
    /// An object to be written.
    Object { title: String, payload: Payload },
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
}

/// The position of a new object.
struct Way<'p> {
    /// The last directory on the way that exists.
    directory: usize,
    /// Names of the directories below it that do not.
    missing: Vec<&'p str>,
    name: &'p str,
    cycle: u16,
}

/// Whether a part of a path is `.` or `..`, which name no directory of a file: ROOT would not find it.
pub fn is_relative(part: &str) -> bool {
    matches!(part, "." | "..")
}

impl FileLayout {
    /// A new file, and its first bytes. They describe an empty file that was not closed.
    ///
    /// `datime` is the time in ROOT's packed form, `uuid` 16 random bytes.
    ///
    /// # Errors
    /// Limit for names longer than keys can hold.
    pub fn create(file_name: &str, datime: u32, uuid: [u8; 16]) -> Result<(Self, Vec<u8>)> {
        Self::create_titled(file_name, "", datime, uuid)
    }

    /// As [`FileLayout::create`], with a title of the file.
    ///
    /// # Errors
    /// As there.
    pub fn create_titled(file_name: &str, title: &str, datime: u32, uuid: [u8; 16]) -> Result<(Self, Vec<u8>)> {
        let mut content = Buffer::new();
        content.string_be(file_name);
        content.string_be(title);
        let name_bytes = content.len();
        let record_bytes = name_bytes.saturating_add(RECORD_BYTES);
        let key = Key::place(BEGIN, 0, ["TFile", file_name, title], record_bytes, datime)?;
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
            listed: None,
            name: file_name.to_owned(),
            title: title.to_owned(),
            record,
            place: Some((record_at, RECORD_BYTES as u64)),
            list: 0..0,
            entries: Entries::default(),
        };
        let mut layout = Self::over(header, head.clone(), datime, vec![top]);
        layout.start = start;
        layout.changed.insert(0);
        Ok((layout, head))
    }

    /// A layout of these directories, without anything free, superseded or described by streamer info.
    fn over(header: FileHeader, head: Vec<u8>, datime: u32, directories: Vec<Directory>) -> Self {
        Self {
            header,
            head,
            start: 0,
            datime,
            directories,
            changed: BTreeSet::new(),
            info: StreamerInfo::new(),
            free: FreeList::default(),
            superseded: Vec::new(),
            retired: Vec::new(),
            cut: None,
        }
    }

    /// The offset of the next byte of this file: blobs begin here.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Start of the record whose end [`FileLayout::repair`] found cut off; it is overwritten.
    pub fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Adds an object to be written at [`FileLayout::finish`], under `directory/name`. Missing directories are made; if
    /// the name exists, the object becomes its newest cycle. Gives the cycle.
    ///
    /// # Errors
    /// Limit for names, payloads and cycles that keys cannot hold; unsupported for empty names and where a part of the
    /// path is an object, not a directory.
    pub fn add(&mut self, path: &str, class_name: &str, title: &str, payload: impl Into<Payload>) -> Result<u16> {
        let payload = payload.into();
        let way = self.way(path, class_name, title, payload.object_bytes)?;
        let cycle = way.cycle;
        self.put(way, class_name, title, payload);
        Ok(cycle)
    }

    /// As [`FileLayout::add`], in place of the object of a cycle, which goes as by [`FileLayout::remove`].
    ///
    /// # Errors
    /// As there; the old object is gone then.
    pub fn replace(&mut self, path: &str, cycle: u16, class_name: &str, title: &str, payload: Vec<u8>) -> Result<()> {
        self.remove(&format!("{path};{cycle}"));
        let way = self.way(path, class_name, title, payload.len())?;
        self.put(Way { cycle, ..way }, class_name, title, payload.into());
        Ok(())
    }

    fn put(&mut self, way: Way<'_>, class_name: &str, title: &str, payload: Payload) {
        let Way { directory, missing, name, cycle } = way;
        let at = missing.into_iter().fold(directory, |at, part| self.make_directory(at, part, part));
        let content = Content::Object { title: title.to_owned(), payload };
        let (name, class_name) = (name.to_owned(), class_name.to_owned());
        self.insert(at, Entry { name, class_name, cycle, directory: None, content });
    }

    /// Whether [`FileLayout::add`] could add an object of these names and this many bytes now.
    ///
    /// # Errors
    /// As [`FileLayout::add`].
    pub fn check_add(&self, path: &str, class_name: &str, title: &str, payload_bytes: usize) -> Result<()> {
        self.way(path, class_name, title, payload_bytes).map(|_| ())
    }

    fn way<'p>(&self, path: &'p str, class_name: &str, title: &str, payload_bytes: usize) -> Result<Way<'p>> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut parts: Vec<&str> = if above.is_empty() { Vec::new() } else { above.split('/').collect() };
        let is_text = |text: &str| !text.contains('\0');
        if name.is_empty() || parts.iter().any(|part| part.is_empty()) || !is_text(path) || !is_text(class_name) {
            return Err(Error::unsupported(format!("'{}' is not a valid object path", path.escape_debug())));
        }
        // A key that is surely not shorter than the one to come.
        Key::place(u64::MAX, u64::MAX, [class_name, name, title], payload_bytes, self.datime)?;
        for part in &parts {
            Key::place(u64::MAX, u64::MAX, ["TDirectory", part, ""], 0, self.datime)?;
        }
        // Names that readers would refuse.
        if path.len() > MAX_PATH_BYTES {
            return Err(Error::limit(format!("path of {} bytes exceeds the limit of {MAX_PATH_BYTES}", path.len())));
        }
        if parts.len() >= MAX_DIRECTORY_DEPTH {
            return Err(Error::limit(format!("'{path}': directories are nested more than {MAX_DIRECTORY_DEPTH} deep")));
        }
        let mut directory = 0;
        while let Some(found) = parts.first().and_then(|part| self.newest(directory, part)) {
            let Some(child) = found.directory else {
                return Err(Error::unsupported(format!("'{path}': '{}' is not a directory", found.name)));
            };
            directory = child;
            parts.remove(0);
        }
        if parts.iter().any(|part| is_relative(part)) {
            return Err(Error::unsupported(format!(
                "'{path}' is not a valid object path: '.' and '..' name no directory"
            )));
        }
        let newest = if parts.is_empty() { self.newest(directory, name) } else { None };
        if newest.is_some_and(|newest| newest.directory.is_some()) {
            return Err(Error::unsupported(format!("'{path}' is a directory")));
        }
        // Cycles are signed in ROOT.
        let cycle = newest.map_or(Some(1), |newest| newest.cycle.checked_add(1));
        let cycle = cycle.filter(|&cycle| cycle <= i16::MAX as u16);
        let cycle = cycle.ok_or_else(|| Error::limit(format!("'{path}': all cycles are in use")))?;
        Ok(Way { directory, missing: parts, name, cycle })
    }

    /// Makes a directory and those above it, as far as they are missing; the directory itself with a title, or without
    /// one with its name as the title. Says whether there was one to be made.
    ///
    /// # Errors
    /// As [`FileLayout::add`], and unsupported where an object has the name.
    pub fn add_directory(&mut self, path: &str, title: Option<&str>) -> Result<bool> {
        if self.has_directory(path) {
            return Ok(false);
        }
        let Way { directory, missing, name, cycle } = self.way(path, "TDirectory", title.unwrap_or_default(), 0)?;
        if cycle > 1 {
            return Err(Error::unsupported(format!("'{path}' is an object, not a directory")));
        }
        let missing: Vec<String> = missing.into_iter().map(str::to_owned).collect();
        let above = missing.iter().fold(directory, |at, part| self.make_directory(at, part, part));
        self.make_directory(above, name, title.unwrap_or(name));
        Ok(true)
    }

    /// Whether there is a directory at a path.
    pub fn has_directory(&self, path: &str) -> bool {
        path.split('/').try_fold(0, |at, part| self.newest(at, part)?.directory).is_some()
    }

    /// Whether there is an object or a directory at a path.
    pub fn has(&self, path: &str) -> bool {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut parts = above.split('/').filter(|part| !part.is_empty());
        let directory = parts.try_fold(0, |at, part| self.newest(at, part)?.directory);
        directory.is_some_and(|directory| self.newest(directory, name).is_some())
    }

    /// The names and titles of the objects of a class in the top directory.
    pub fn titles(&self, class_name: &str) -> Vec<(String, String)> {
        let entries = self.directories.first().into_iter().flat_map(|directory| directory.entries.iter());
        let title = |entry: &Entry| match &entry.content {
            Content::Stored { key, .. } => Key::read(key, 0).map(|key| key.title).unwrap_or_default(),
            Content::Object { title, .. } => title.clone(),
            _ => String::new(),
        };
        entries.filter(|entry| entry.class_name == class_name).map(|entry| (entry.name.clone(), title(entry))).collect()
    }

    /// Why an object of this class would hide another thing at a path, or could not be found there.
    pub fn conflict(&self, path: &str, class_name: &str) -> Option<String> {
        let (mut directory, mut rest) = (0, path);
        loop {
            // Names of old files may have slashes in them, and are looked for first.
            let ends = rest.match_indices('/').map(|(end, _)| end).chain([rest.len()]);
            for end in ends.collect::<Vec<_>>().into_iter().rev() {
                let (name, behind) = rest.split_at_checked(end)?;
                let Some(found) = self.newest(directory, name) else { continue };
                match (found.directory, behind.is_empty()) {
                    (Some(_), true) => return Some("the file has a directory of that name".to_owned()),
                    (None, true) if found.class_name != class_name => {
                        return Some(format!("the file has a {} of that name", found.class_name));
                    }
                    (None, true) => return None,
                    (None, false) => {
                        let whole = path.strip_suffix(behind).unwrap_or(path);
                        return Some(format!("'{whole}' is a {}, not a directory", found.class_name));
                    }
                    (Some(_), false) => {}
                }
            }
            let (part, behind) = rest.split_once('/')?;
            (directory, rest) = (self.newest(directory, part)?.directory?, behind);
        }
    }

    /// Frees a record that no directory lists, key included, once a state that does not need it is complete.
    pub fn release(&mut self, record: Range<u64>) {
        self.superseded.push(record);
    }

    /// The layouts of classes in the file's streamer info.
    pub fn streamer_infos(&self) -> &StreamerInfos {
        &self.info.infos
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
        let Some(removed) = self.directories.get_mut(at).and_then(|directory| directory.entries.remove(name, cycle))
        else {
            return false;
        };
        if let Content::Stored { place, .. } = removed.content {
            self.superseded.push(place);
        }
        self.changed.insert(at);
        true
    }

    fn newest(&self, directory: usize, name: &str) -> Option<&Entry> {
        self.directories.get(directory).and_then(|directory| directory.entries.newest(name))
    }

    /// Newer cycles stand before older ones, new names at the end.
    fn insert(&mut self, at: usize, entry: Entry) {
        if let Some(directory) = self.directories.get_mut(at) {
            let (child, order) = (entry.directory, directory.entries.insert(entry));
            self.changed.insert(at);
            if let Some(child) = child.and_then(|child| self.directories.get_mut(child)) {
                child.listed = Some(order);
            }
        }
    }

    fn make_directory(&mut self, parent: usize, name: &str, title: &str) -> usize {
        let index = self.directories.len();
        let mut uuid = self.directories.first().map_or([0; 16], |top| top.record.uuid);
        // One of its own for each, in the part of a UUID that is a sequence.
        for (byte, part) in uuid.iter_mut().zip((index as u64).to_be_bytes()) {
            *byte ^= part;
        }
        self.directories.push(Directory {
            parent,
            listed: None,
            name: name.to_owned(),
            title: title.to_owned(),
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
            entries: Entries::default(),
        });
        self.changed.insert(index);
        let (name, class_name) = (name.to_owned(), "TDirectory".to_owned());
        self.insert(parent, Entry { name, class_name, cycle: 1, directory: Some(index), content: Content::Directory });
        index
    }
}
