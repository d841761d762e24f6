//! Recovers earlier states of a file from its records, without the file's header.
//!
//! At a checkpoint, a writer appends key lists, then a free list, and finally overwrites the header. If that last write
//! was torn, its content can be reconstructed from the records. The directories of a file whose writer was killed before
//! its first checkpoint, or that was cut off, can be rebuilt from the keys of the records.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use super::directory::{self, DIRECTORY_VERSION, Directory, DirectoryRecord, RECORD_BYTES};
use super::fetched::{readable, together};
use super::free::FreeList;
use super::header::{COMPRESSION, ROOT_VERSION};
use super::key::{Key, parse_key};
use super::{Attempt, BEGIN, FetchedRanges, FileHeader, overwrite, read_header, read_key, streamer_infos};
use crate::wire::{Buffer, Cursor};
use crate::{Error, Result};

/// Bytes from the start of a key to behind its own offset.
pub(super) const SEEK_END: usize = 26;

/// A state to which a file can be brought by overwriting a few bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredState {
    /// Where the file ends then; what follows is not reached.
    pub end: u64,
    /// The bytes to write, with their offsets, in this order.
    pub patches: Vec<(u64, Vec<u8>)>,
}

/// The first place in `bytes`, which lie at `base` in the file, where a key may begin: one that knows its own offset.
pub fn find_key(bytes: &[u8], base: u64) -> Option<usize> {
    let is_key = |place: usize| {
        let own = base.checked_add(place as u64)?;
        let mut cursor = Cursor::new(bytes.get(place..)?.get(..SEEK_END)?, own);
        let nbytes = cursor.i32_be().ok()?;
        let version = cursor.u16_be().ok()?;
        cursor.take(12).ok()?;
        let seek = match version {
            1..=9 => u64::from(cursor.u32_be().ok()?),
            1001..=1009 => cursor.u64_be().ok()?,
            _ => return None,
        };
        (nbytes > 0 && seek == own).then_some(())
    };
    (0..bytes.len()).find(|&place| is_key(place).is_some())
}

/// Returns up to `at_most` states of a file, newest first. `keys` are the keys of all records found, in file order.
///
/// # Errors
/// Corrupt if the record of the top directory is lost.
pub fn states(fetched: &FetchedRanges, keys: &[Key], at_most: usize) -> Attempt<Vec<RecoveredState>> {
    let Some(top) = keys.first().filter(|key| key.seek_key == BEGIN) else {
        return Err(Error::corrupt("the record of the top directory is lost").into());
    };
    let kinds = kinds(fetched, keys, &top.class_name)?;
    let is_free_list = |(index, key): &(usize, &Key)| {
        *index > 0 && key.class_name == top.class_name && kinds.get(*index) == Some(&Kind::FreeList)
    };
    let lists: Vec<(usize, &Key)> = keys.iter().enumerate().filter(is_free_list).collect();
    // All at once, and only those that can be read: each of the others would cost a round, and a look at all records.
    let counts = together(lists.iter().map(|(_, key)| segments(fetched, top, key)))?;
    let Some(place) = readable(top_place(fetched, top))? else { return Ok(Vec::new()) };
    let records: Vec<(&Key, Kind)> = keys.iter().zip(kinds.iter().copied()).collect();
    let whole = lists.iter().zip(counts).rev().filter_map(|((index, key), count)| Some((*index, *key, count?)));
    // Where the top directory has no key list before a free list, it has none before any older one.
    let newest = whole.map_while(|(index, free, count)| {
        let before = records.get(1..index).unwrap_or_default();
        let (list, _) =
            before.iter().rfind(|(key, kind)| key.class_name == top.class_name && *kind == Kind::KeyList)?;
        Some((before, *list, free, count))
    });
    together(
        newest.take(at_most).map(|(before, list, free, count)| state(fetched, top, &place, before, list, free, count)),
    )
}

/// The number of segments of a free list; `None` where it cannot be read.
fn segments(fetched: &FetchedRanges, top: &Key, free: &Key) -> Attempt<Option<u32>> {
    let end = free.seek_key.saturating_add(u64::from(free.nbytes));
    let header = FileHeader { begin: top.seek_key, end, seek_free: free.seek_key, ..FileHeader::default() };
    Ok(readable(FreeList::read(fetched, &header))?.map(|(list, _)| list.count()))
}

/// The content of a record with the class of the file or of directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    KeyList,
    FreeList,
    /// Something else, as the record of a directory.
    Other,
}

/// The kind of each record; those of other classes are not looked into.
fn kinds(fetched: &FetchedRanges, keys: &[Key], file_class: &str) -> Attempt<Vec<Kind>> {
    together(keys.iter().map(|key| match key.class_name == file_class || key.is_directory() {
        true => {
            let bytes = fetched.get(key.payload_offset(), key.stored_bytes())?;
            Ok(kind_of(&bytes, key.payload_offset(), fetched.size()))
        }
        false => Ok(Kind::Other),
    }))
}

/// Free lists begin with the version of their first segment, which no number of keys is.
fn kind_of(bytes: &[u8], at: u64, file_size: u64) -> Kind {
    match (is_key_list(bytes, at, file_size), Cursor::new(bytes, at).u16_be()) {
        (true, _) => Kind::KeyList,
        (false, Ok(1 | 1001)) => Kind::FreeList,
        (false, _) => Kind::Other,
    }
}

/// The state that ended with a free list of this many segments; `list` is the newest key list of the top directory
/// before it.
fn state(
    fetched: &FetchedRanges,
    top: &Key,
    place: &TopPlace,
    before: &[(&Key, Kind)],
    list: &Key,
    free: &Key,
    free_count: u32,
) -> Attempt<RecoveredState> {
    let end = free.seek_key.saturating_add(u64::from(free.nbytes));
    let mut patches = Vec::new();
    // The later of two lists of a directory is the one that remains.
    let lists = before.iter().filter(|(key, kind)| *kind == Kind::KeyList && key.is_directory());
    let newest: HashMap<u64, &Key> = lists.map(|(list, _)| (list.seek_parent, *list)).collect();
    for (key, kind) in before.iter().filter(|(key, _)| key.is_directory()) {
        let (true, Some(list)) = (*kind != Kind::KeyList, newest.get(&key.seek_key)) else { continue };
        patches.push(directory_patch(fetched, key, list)?);
    }
    let mut infos = before.iter().map(|(key, _)| key).rev();
    let info = infos.find(|key| is_streamer_info(key));
    let header = FileHeader {
        begin: top.seek_key,
        end,
        seek_free: free.seek_key,
        nbytes_free: free.nbytes,
        free_count,
        seek_info: info.map_or(0, |info| info.seek_key),
        nbytes_info: info.map_or(0, |info| info.nbytes),
        ..FileHeader::default()
    };
    patches.push(head_patch(fetched, top, place, list, header)?);
    Ok(RecoveredState { end, patches })
}

fn is_streamer_info(key: &Key) -> bool {
    key.class_name == "TList" && key.name == "StreamerInfo"
}

/// The record of a directory, as it leads to a key list.
fn directory_patch(fetched: &FetchedRanges, key: &Key, list: &Key) -> Attempt<(u64, Vec<u8>)> {
    let room = key.stored_bytes().min(RECORD_BYTES as u64);
    let bytes = fetched.get(key.payload_offset(), room)?;
    let mut record = rebuilt(&bytes, key.payload_offset(), key, list);
    record.seek_parent = key.seek_parent;
    record.nbytes_name = u32::from(key.key_bytes);
    let mut written = record.write();
    written.truncate(bytes.len());
    Ok((key.payload_offset(), written))
}

/// The start of the file, with this header and a top directory that leads to a key list. Version and compression remain.
fn head_patch(
    fetched: &FetchedRanges,
    top: &Key,
    place: &TopPlace,
    list: &Key,
    header: FileHeader,
) -> Attempt<(u64, Vec<u8>)> {
    let head_bytes = place.record_at.saturating_add(place.room.min(RECORD_BYTES as u64));
    let mut head = fetched.get(0, head_bytes)?.to_vec();
    let names_at = usize::try_from(top.payload_offset()).unwrap_or(usize::MAX);
    overwrite(&mut head, names_at, &place.names);
    let record_at = usize::try_from(place.record_at).unwrap_or(usize::MAX);
    let mut record = rebuilt(head.get(record_at..).unwrap_or_default(), place.record_at, top, list);
    record.nbytes_name = u32::try_from(place.record_at.saturating_sub(top.seek_key)).unwrap_or(u32::MAX);
    let old = FileHeader::read(&head).ok();
    let header = FileHeader {
        version: old.as_ref().map_or(ROOT_VERSION, |old| old.version),
        compress: old.as_ref().map_or(COMPRESSION, |old| old.compress),
        nbytes_name: record.nbytes_name,
        ..header
    };
    let mut written = header.write(&record.uuid);
    written.truncate(usize::try_from(top.seek_key).unwrap_or(usize::MAX));
    overwrite(&mut head, 0, &written);
    let room = head.len().saturating_sub(record_at);
    let mut written = record.write();
    written.truncate(room);
    overwrite(&mut head, record_at, &written);
    Ok((0, head))
}

/// Whether the directories of a file lead to its objects, so that nothing needs to be recovered: ROOT's condition
/// (`TFile::Init`).
///
/// # Errors
/// Corrupt if this is not a ROOT file.
pub fn is_listed(fetched: &FetchedRanges) -> Attempt<bool> {
    let header = read_header(fetched)?;
    let top = readable(Directory::top(fetched))?;
    Ok(header.end <= fetched.size() && top.is_some_and(|top| !top.keys.is_empty()))
}

/// What overwrites the start of a file so that it has no streamer info; `None` if that can be read.
///
/// # Errors
/// Corrupt if this is not a ROOT file.
pub fn without_damaged_streamer_info(fetched: &FetchedRanges) -> Attempt<Option<(u64, Vec<u8>)>> {
    let Range { start, end } = read_header(fetched)?.streamer_info_at();
    let is_damaged = readable(streamer_infos(fetched))?.is_none();
    Ok(is_damaged.then(|| (start, vec![0; (end - start) as usize])))
}

/// Whether the record of a key belongs in a list that [`recovered`] makes, as for ROOT (`TFile::Recover`). Key lists and
/// free lists by ROOT's writer of ntuples have no class.
pub fn is_recoverable(key: &Key) -> bool {
    !matches!(key.class_name.as_str(), "TBasket" | "RBlob" | "")
}

/// The state of a file whose directories are lost: key lists are appended for the top directory and for the directories
/// that have none. `keys` are those of the records found, in file order. Also the number of keys in these lists.
///
/// # Errors
/// Corrupt where the record of the top directory is lost.
pub fn recovered(fetched: &FetchedRanges, keys: &[Key]) -> Attempt<(RecoveredState, u64)> {
    let (header, size) = (read_header(fetched)?, fetched.size());
    let top = read_key(fetched, header.begin)?;
    let place = top_place(fetched, &top)?;
    // Key lists and the free list of the file have its class.
    let others = || keys.iter().filter(|key| key.seek_key != top.seek_key && key.class_name != top.class_name);
    let others: Vec<Key> = others().cloned().collect();
    let kinds = kinds(fetched, &others, &top.class_name)?;
    let objects = || others.iter().zip(&kinds).filter(|(_, kind)| **kind == Kind::Other).map(|(key, _)| key);
    let listed: Vec<&Key> = objects().filter(|key| !is_streamer_info(key)).collect();
    let raw = together(listed.iter().map(|key| {
        let (_, content_bytes) = parse_key(fetched, key.seek_key)?;
        fetched.get(key.seek_key, content_bytes as u64)
    }))?;
    let mut children: HashMap<u64, Vec<Bytes>> = HashMap::new();
    for (key, raw) in listed.iter().zip(raw) {
        children.entry(key.seek_parent).or_default().push(raw);
    }
    let is_lost = |key: &&&Key| -> Attempt<bool> {
        let bytes = fetched.get(key.payload_offset(), key.stored_bytes().min(RECORD_BYTES as u64))?;
        let seek_keys = DirectoryRecord::read(&bytes, key.payload_offset()).map_or(0, |record| record.seek_keys);
        Ok(seek_keys == 0 || seek_keys >= size)
    };
    let directories =
        together(listed.iter().filter(|key| key.is_directory()).map(|key| Ok(is_lost(&key)?.then_some(*key))))?;
    let (mut appended, mut patches, mut count) = (Vec::new(), Vec::new(), 0);
    let mut list = |key: &Key, [class_name, name, title]: [&str; 3]| -> Result<Key> {
        let raw = children.remove(&key.seek_key).unwrap_or_default();
        count += raw.len() as u64;
        let number = u32::try_from(raw.len()).map_err(|_| Error::limit("directory has more than 2^32 keys"))?;
        let content = [&number.to_be_bytes()[..], &raw.concat()].concat();
        let at = size.saturating_add(appended.len() as u64);
        let key = Key::place(at, key.seek_key, [class_name, name, title], content.len(), key.datime)?;
        appended.extend_from_slice(&key.write());
        appended.extend_from_slice(&content);
        Ok(key)
    };
    for directory in directories.into_iter().flatten() {
        let list = list(directory, [&directory.class_name, &directory.name, &directory.title])?;
        patches.push(directory_patch(fetched, directory, &list)?);
    }
    let list = list(&top, [&top.class_name, &top.name, &top.title])?;
    let end = size.saturating_add(appended.len() as u64);
    let is_whole = header.seek_info.saturating_add(u64::from(header.nbytes_info)) <= size;
    let old = if is_whole { (header.seek_info, header.nbytes_info) } else { (0, 0) };
    let found = objects().rfind(|key| is_streamer_info(key));
    let (seek_info, nbytes_info) = found.map_or(old, |info| (info.seek_key, info.nbytes));
    let header = FileHeader { begin: header.begin, end, seek_info, nbytes_info, ..FileHeader::default() };
    patches.push(head_patch(fetched, &top, &place, &list, header)?);
    patches.push((size, appended));
    Ok((RecoveredState { end, patches }, count))
}

/// Where the record of the top directory lies.
struct TopPlace {
    record_at: u64,
    room: u64,
    /// The bytes before it.
    names: Vec<u8>,
}

/// Name and title of the file stand between the key of the top directory and its record. The key has them too, and may
/// be whole where they are torn.
fn top_place(fetched: &FetchedRanges, top: &Key) -> Attempt<TopPlace> {
    let mut names = Buffer::new();
    names.string_be(&top.name);
    names.string_be(&top.title);
    let names = names.into_vec();
    let room = top.stored_bytes().saturating_sub(names.len() as u64);
    // Names that are not UTF-8 cannot be written again.
    if top.write().len() == usize::from(top.key_bytes) && room > 0 {
        return Ok(TopPlace { record_at: top.payload_offset().saturating_add(names.len() as u64), room, names });
    }
    let place = directory::top(fetched, top.seek_key)?;
    Ok(TopPlace { record_at: place.record_at, room: place.room, names: Vec::new() })
}

/// The record of a directory whose key list is known, with what else the old one says.
fn rebuilt(old: &[u8], at: u64, key: &Key, list: &Key) -> DirectoryRecord {
    let old = DirectoryRecord::read(old, at).ok();
    let old = old.filter(|old| old.class_version <= DIRECTORY_VERSION);
    DirectoryRecord {
        class_version: old.as_ref().map_or(DIRECTORY_VERSION, |old| old.class_version),
        created: old.as_ref().map_or(key.datime, |old| old.created),
        modified: list.datime,
        nbytes_keys: list.nbytes,
        nbytes_name: 0,
        seek_directory: key.seek_key,
        seek_parent: 0,
        seek_keys: list.seek_key,
        uuid: old.map_or([0; 16], |old| old.uuid),
    }
}

fn is_key_list(bytes: &[u8], at: u64, file_size: u64) -> bool {
    let keys = || -> Result<bool> {
        let mut cursor = Cursor::new(bytes, at);
        for _ in 0..cursor.u32_be()? {
            let rest = bytes.get(cursor.position()..).unwrap_or_default();
            let listed = Key::read(rest, cursor.offset())?;
            listed.check_place(file_size)?;
            cursor.take(usize::from(listed.key_bytes))?;
        }
        Ok(cursor.remaining() == 0)
    };
    keys().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::super::Interrupt;
    use super::*;

    /// 4000 took two minutes: a round of reading for each, and in each a look at all records.
    #[test]
    fn free_lists_that_cannot_be_read_cost_one_round() {
        let content: &[u8] = &[0; 100];
        let mut file = vec![0; 100];
        let mut keys = Vec::new();
        let mut add = |name: &str, payload: &[u8]| {
            let at = file.len() as u64;
            let key = Key::place(at, 100, ["TFile", name, ""], payload.len(), 0).unwrap();
            file.extend([key.write(), payload.to_vec()].concat());
            keys.push(key);
        };
        add("memory.root", content);
        // A key list without keys, and free segments that end before they begin.
        add("", &[0; 4]);
        let reversed = [&[0, 1], &50u32.to_be_bytes()[..], &40u32.to_be_bytes()].concat();
        (0..20_000).for_each(|_| add("", &reversed));
        let mut fetched = FetchedRanges::new(file.len() as u64);
        let file = bytes::Bytes::from(file);
        for round in 1.. {
            match states(&fetched, &keys, 64) {
                Ok(states) => return assert_eq!(states, []),
                Err(Interrupt::Failed(error)) => panic!("{error}"),
                Err(Interrupt::Missing(ranges)) => {
                    assert!(round < 8, "{round} rounds");
                    ranges.iter().for_each(|range| {
                        fetched.provide(range.start, file.slice(range.start as usize..range.end as usize));
                    });
                }
            }
        }
    }
}
