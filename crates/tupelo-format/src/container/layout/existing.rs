//! Files that exist, to be added to. The parts carried over into the new state have no checksum, so they must be
//! consistent first: a wrong number here would make a readable file unreadable.

use std::borrow::Cow;
use std::ops::Range;

use super::{Content, Directory, Entries, Entry, FileLayout, StreamerInfo};
use crate::container::directory::{self, ListedKey, RECORD_BYTES};
use crate::container::fetched::{readable, together};
use crate::container::free::FreeList;
use crate::container::key::{Key, parse_key, read_key};
use crate::container::{Attempt, FetchedRanges, FileHeader, Rule, read_header, streamer_infos};
use crate::streamer::StreamerInfos;
use crate::{Error, Result};

/// A free segment cannot be shorter than the mark at its start.
const MIN_SEGMENT_BYTES: u64 = 4;

fn behind(start: u64, bytes: u32) -> Range<u64> {
    start..start.saturating_add(u64::from(bytes))
}

/// The error of two places in the file that contradict each other.
#[cold]
fn contradiction(what: &str, found: impl std::fmt::Display, expected: impl std::fmt::Display, at: u64) -> Error {
    Error::corrupt(format!("{what} is {found}, but the rest of the file says {expected}")).at(at)
}

fn agree<T: PartialEq + std::fmt::Display>(what: &str, found: T, expected: T, at: u64) -> Result<()> {
    if found == expected { Ok(()) } else { Err(contradiction(what, found, expected, at)) }
}

impl StreamerInfo {
    fn read(fetched: &FetchedRanges, header: &FileHeader) -> Attempt<Self> {
        if header.seek_info == 0 || header.nbytes_info == 0 {
            return Ok(Self::new());
        }
        let mut infos = streamer_infos(fetched)?;
        let is_changed = infos.merge(&StreamerInfos::anchor());
        let key = read_key(fetched, header.seek_info)?;
        Ok(Self { infos, place: behind(header.seek_info, key.nbytes), is_changed })
    }
}

impl FileLayout {
    /// An existing file to which something will be added at `datime`.
    ///
    /// # Errors
    /// Corrupt for damaged files, files that were not closed or are shorter than they say, and files whose header,
    /// directories, free list and streamer info contradict each other; unsupported where the streamer info is too old
    /// to be extended.
    pub fn update(fetched: &FetchedRanges, datime: u32) -> Attempt<Self> {
        let header = read_header(fetched)?;
        if header.end > fetched.size() {
            return Err(header.cut_off(fetched.size()).into());
        }
        // Read first: this may need several fetches, and each one repeats all preceding steps.
        let tree = directory::read_tree(fetched)?;
        let (mut free, free_place) = FreeList::read(fetched, &header)?;
        let info = StreamerInfo::read(fetched, &header)?;
        check_header(fetched, &header)?;
        check_free_list(fetched, &header, &free, &free_place)?;
        free.find_records(fetched)?;
        Self::existing(fetched, datime, header, tree, (free, free_place), info)
    }

    /// Like [`FileLayout::update`], but only the directories must be readable: damaged parts are rewritten. Also returns
    /// the names of these parts: the header, if the file is shorter than the header states; the list of free segments,
    /// which is replaced by an empty one; the streamer info, which is replaced by the layouts that ntuples need.
    ///
    /// # Errors
    /// Corrupt if a directory is damaged or lists an object past the end of the file.
    pub fn repair(fetched: &FetchedRanges, datime: u32) -> Attempt<(Self, Vec<&'static str>)> {
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
        // The header may be wrong, so only the remains of a rewritten record are freed.
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
        fetched: &FetchedRanges,
        datime: u32,
        header: FileHeader,
        tree: Vec<directory::Directory>,
        (mut free, free_place): (FreeList, Range<u64>),
        info: StreamerInfo,
    ) -> Attempt<Self> {
        let mut used = Used::new(header.end);
        used.add("the header", 0..header.begin);
        check_tree(fetched, &header, &tree, &free, &mut used)?;
        used.add("the streamer info", info.place.clone());
        used.add("the free list", free_place.clone());
        free.iter().for_each(|segment| used.add("a free segment", segment));
        used.check()?;
        let deviations = fetched.deviations().list();
        // A list of keys with a rest is replaced, or stays as it is.
        let is_harmless = |rule: &Rule| matches!(rule, Rule::Saved | Rule::Recovered { .. } | Rule::KeyListRest { .. });
        let broken = deviations.iter().find(|it| !is_harmless(&it.rule));
        if let Some(broken) = broken {
            let what = format!("cannot change a file that breaks a rule of the format, copy it instead: {broken}");
            return Err(Error::unsupported(what).into());
        }
        let directories: Vec<Directory> = tree.into_iter().map(Directory::from).collect();
        let Some((record_at, room)) = directories.first().and_then(|top| top.place) else {
            return Err(Error::corrupt("the file lacks a top directory").into());
        };
        let head = fetched.get(0, record_at.saturating_add(room.min(RECORD_BYTES as u64)))?.to_vec();
        // Leftover bytes past the end, for example from a crashed writer, become a free segment.
        let mut start = header.end;
        if fetched.size() > header.end {
            start = fetched.size().max(header.end.saturating_add(MIN_SEGMENT_BYTES));
            free.release_bytes(header.end..start);
        }
        // An empty range means that there was no readable free list.
        let superseded = Some(free_place).filter(|place| !place.is_empty()).into_iter().collect();
        let mut layout = Self::over(header, head, datime, directories);
        (layout.start, layout.info, layout.free, layout.superseded) = (start, info, free, superseded);
        Ok(layout)
    }
}

/// The numbers in the header about other records must match these records.
fn check_header(fetched: &FetchedRanges, header: &FileHeader) -> Attempt<()> {
    let records =
        [("free list", header.seek_free, header.nbytes_free), ("streamer info", header.seek_info, header.nbytes_info)];
    for (name, seek, nbytes) in records.into_iter().filter(|(_, seek, nbytes)| *seek != 0 && *nbytes != 0) {
        let key = read_key(fetched, seek)?;
        agree(&format!("the offset in the key of the {name}"), key.seek_key, seek, seek)?;
        agree(&format!("the length of the {name} in the header"), nbytes, key.nbytes, seek)?;
    }
    Ok(())
}

/// The last segment of a free list is all that lies behind the file.
fn check_free_list(fetched: &FetchedRanges, header: &FileHeader, free: &FreeList, place: &Range<u64>) -> Result<()> {
    let (stored, actual) = (free.open().unwrap_or_default(), header.end);
    // Some writers leave out the list itself, which ROOT moves before it uses what is free.
    if stored < actual && place.contains(&stored) && place.end == actual {
        fetched.deviations().add(place.start, Rule::FreeListEnd { stored, actual });
        return Ok(());
    }
    agree("the end of the file in the free list", stored, actual, header.seek_free)
}

/// Directories whose records, keys and key lists agree with each other.
fn check_tree(
    fetched: &FetchedRanges,
    header: &FileHeader,
    tree: &[directory::Directory],
    free: &FreeList,
    used: &mut Used,
) -> Attempt<()> {
    let mut keys: Vec<Option<&Key>> = vec![None; tree.len()];
    for listed in tree.iter().flat_map(|directory| &directory.keys) {
        listed.key.check_place(fetched.size())?;
        let name = format!("'{};{}'", listed.key.name, listed.key.cycle);
        used.add(name, behind(listed.key.seek_key, listed.key.nbytes));
        if let Some(place) = listed.child.and_then(|child| keys.get_mut(child)) {
            *place = Some(&listed.key);
        }
    }
    // Records of directories are overwritten: each must be where the record of a directory begins.
    let listed: Vec<&Key> = keys.iter().copied().flatten().collect();
    let own = together(listed.iter().map(|key| read_key(fetched, key.seek_key)))?;
    for (listed, own) in listed.into_iter().zip(own) {
        check_own_key(listed, &own)?;
    }
    for (index, (directory, key)) in tree.iter().zip(keys).enumerate() {
        let name = match index {
            0 => "the top directory".to_owned(),
            _ => format!("directory '{}'", directory.path),
        };
        let (record, at) = (&directory.record, directory.record_at);
        let (seek, nbytes_name) = match key {
            Some(key) => (key.seek_key, u32::from(key.key_bytes)),
            None if index == 0 => check_top(fetched, header, directory, used)?,
            None => return Err(Error::corrupt(format!("{name} is not listed in any directory")).at(at).into()),
        };
        agree(&format!("{name}: its own offset"), record.seek_directory, seek, at)?;
        agree(&format!("{name}: the length of its name"), record.nbytes_name, nbytes_name, at)?;
        if record.seek_keys == 0 {
            continue;
        }
        let is_free = |record: &Range<u64>| free.iter().any(|it| it.start <= record.start && record.end <= it.end);
        if let Some(last) = directory.last.as_ref().filter(|last| is_free(&last.record)) {
            fetched.deviations().add(last.deviation.offset, last.deviation.rule.clone());
        } else if let Some(unread) = &directory.unread {
            return Err(Error::corrupt(format!("the key list of {name}: {unread}")).at(record.seek_keys).into());
        }
        if let Some(bytes) = fetched.deviations().key_list_bytes(record.seek_keys) {
            used.add(format!("the key list of {name}"), record.seek_keys..record.seek_keys.saturating_add(bytes));
            continue;
        }
        let list = read_key(fetched, record.seek_keys)?;
        agree(&format!("{name}: the offset in the key of its key list"), list.seek_key, record.seek_keys, at)?;
        agree(&format!("{name}: the length of its key list"), record.nbytes_keys, list.nbytes, at)?;
        used.add(format!("the key list of {name}"), behind(record.seek_keys, list.nbytes));
    }
    Ok(())
}

/// The key of a directory in the list of another, and the one in front of its record.
fn check_own_key(listed: &Key, own: &Key) -> Result<()> {
    let (name, at) = (format!("directory '{}'", listed.name), listed.seek_key);
    // `TDirectory` and `TDirectoryFile` are the same for ROOT.
    if !own.is_directory() {
        agree(&format!("{name}: the class in its key"), own.class_name.as_str(), listed.class_name.as_str(), at)?;
    }
    agree(&format!("{name}: the name in its key"), own.name.as_str(), listed.name.as_str(), at)?;
    agree(&format!("{name}: the offset in its key"), own.seek_key, listed.seek_key, at)?;
    agree(&format!("{name}: the length of its record"), own.nbytes, listed.nbytes, at)?;
    agree(&format!("{name}: the length of its key"), own.key_bytes, listed.key_bytes, at)
}

/// The top directory; returns its offset and the length of its name.
fn check_top(
    fetched: &FetchedRanges,
    header: &FileHeader,
    top: &directory::Directory,
    used: &mut Used,
) -> Attempt<(u64, u32)> {
    let begin = header.begin;
    let (key, content_bytes) = parse_key(fetched, begin)?;
    used.add("the record of the top directory", behind(begin, key.nbytes));
    agree("the offset in the key of the top directory", key.seek_key, begin, begin)?;
    agree("the parent of the top directory", key.seek_parent.max(top.record.seek_parent), 0, begin)?;
    agree("the name of the file in the top directory", &top.name, &key.name, begin)?;
    agree("the title of the file in the top directory", &top.title, &key.title, begin)?;
    if let Some(text) = [&top.name, &top.title].into_iter().find(|text| text.contains('\0')) {
        let what = format!("the name or title of the file contains a zero byte: '{}'", text.escape_debug());
        return Err(Error::corrupt(what).at(begin).into());
    }
    agree("the length of the top directory's key", usize::from(key.key_bytes), content_bytes, begin)?;
    let nbytes_name = u32::try_from(top.record_at.saturating_sub(begin)).unwrap_or(u32::MAX);
    agree("the length of the file's name in the header", header.nbytes_name, nbytes_name, 28)?;
    Ok((begin, nbytes_name))
}

/// Ranges of the file that are in use, none of which may overlap another one.
struct Used {
    end: u64,
    ranges: Vec<(Range<u64>, Cow<'static, str>)>,
}

impl Used {
    fn new(end: u64) -> Self {
        Self { end, ranges: Vec::new() }
    }

    fn add(&mut self, name: impl Into<Cow<'static, str>>, range: Range<u64>) {
        if !range.is_empty() {
            self.ranges.push((range, name.into()));
        }
    }

    fn check(mut self) -> Result<()> {
        self.ranges.sort_by_key(|(range, _)| (range.start, range.end));
        for pair in self.ranges.windows(2) {
            if let [(before, one), (range, other)] = pair
                && before.end > range.start
            {
                let what = format!("{one} extends to byte {}, but {other} begins at byte {}", before.end, range.start);
                return Err(Error::corrupt(what).at(range.start));
            }
        }
        match self.ranges.last() {
            Some((range, name)) if range.end > self.end => {
                let what = format!("{name} extends to byte {}, but the file ends at byte {}", range.end, self.end);
                Err(Error::corrupt(what).at(range.start))
            }
            _ => Ok(()),
        }
    }
}

impl From<directory::Directory> for Directory {
    fn from(read: directory::Directory) -> Self {
        let entry = |listed: ListedKey| Entry {
            name: listed.key.name,
            class_name: listed.key.class_name,
            cycle: listed.key.cycle,
            directory: listed.child,
            content: Content::Stored { key: listed.raw, place: behind(listed.key.seek_key, listed.key.nbytes) },
        };
        Self {
            parent: read.parent,
            listed: None,
            name: read.name,
            title: read.title,
            list: read.record.seek_keys..read.record.seek_keys.saturating_add(read.list_bytes),
            record: read.record,
            place: Some((read.record_at, read.room)),
            entries: read.keys.into_iter().map(entry).collect::<Entries>(),
        }
    }
}
