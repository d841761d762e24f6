//! Closing a file: its objects, key lists, streamer info and free list, in the order in which they are appended.

use std::collections::BTreeSet;
use std::ops::Range;

use bytes::Bytes;

use super::{Content, FileLayout, Payload};
use crate::compression::Compression;
use crate::container::directory::{RECORD_BYTES, SHORT_RECORD_BYTES};
use crate::container::key::Key;
use crate::container::{START_BIG_FILE, overwrite};
use crate::wire::Buffer;
use crate::{Error, Result};

/// Title of the streamer info record.
const INFO_TITLE: &str = "Doubly linked list";

/// What to write to close a file, or to leave it readable at a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// Bytes to append at the `end` that was passed to [`FileLayout::finish`].
    pub append: Bytes,
    /// Writes to perform in this order once `append` is durable: first the file's header and top directory in one
    /// write, then the records of other directories. After each write, all directories point to complete key lists.
    pub patches: Vec<(u64, Vec<u8>)>,
}

/// The bytes to append, and where they will lie.
struct Appendix {
    base: u64,
    buffer: Buffer,
}

impl Appendix {
    fn at(&self) -> u64 {
        self.base.saturating_add(self.buffer.len() as u64)
    }

    fn put(&mut self, key: &[u8], payload: &[u8]) -> Range<u64> {
        let start = self.at();
        self.buffer.put(key);
        self.buffer.put(payload);
        start..self.at()
    }
}

/// The mark of a gap, its negative length, as far as there is room and need for one.
fn gap_mark(gap: Range<u64>) -> Option<Vec<u8>> {
    let length = i32::try_from(gap.end.saturating_sub(gap.start)).ok().filter(|length| *length > 4)?;
    Some((-length).to_be_bytes().to_vec())
}

impl FileLayout {
    /// What to write to close the file whose blobs end at `end`. The layout continues after that: more can be added and
    /// `finish` called again, as for checkpoints.
    ///
    /// # Errors
    /// Limit if a record would be too long for a key; unsupported where a directory of an old file cannot
    /// hold a 64-bit offset, or `end` lies before [`FileLayout::start`]; corrupt where what would be written does not read
    /// as what is meant. The layout is of no use then.
    pub fn finish(&mut self, end: u64) -> Result<Tail> {
        if end < self.start || end > i64::MAX as u64 {
            return Err(Error::unsupported(format!("invalid range of blobs from byte {} to {end}", self.start)));
        }
        let mut out = Appendix { base: end, buffer: Buffer::new() };
        let changed = std::mem::take(&mut self.changed);
        let is_info_changed = self.info.is_changed;
        self.put_directories(&changed, &mut out)?;
        self.put_objects(&changed, &mut out)?;
        for range in std::mem::take(&mut self.retired) {
            self.free.release(range);
        }
        self.put_key_lists(&changed, &mut out)?;
        let mut patches = self.put_records(&changed, &mut out)?;
        if let Some(cut) = self.cut.take() {
            patches.extend(gap_mark(cut..self.start).map(|mark| (cut, mark)));
        }
        self.put_streamer_info(&mut out)?;
        self.put_free_list(&mut out)?;
        self.retired = std::mem::take(&mut self.superseded);
        self.header.end = out.at();
        self.header.is_big |= self.header.end > START_BIG_FILE;
        self.start = self.header.end;
        let uuid = self.directories.first().map_or([0; 16], |top| top.record.uuid);
        let mut header = self.header.write(&uuid);
        // Files older than ROOT 3 have no room for the UUID, and do without.
        header.truncate(usize::try_from(self.header.begin).unwrap_or(usize::MAX));
        overwrite(&mut self.head, 0, &header);
        patches.insert(0, (0, self.head.clone()));
        let tail = Tail { append: out.buffer.into_vec().into(), patches };
        self.check(&tail, end, &changed, is_info_changed)?;
        Ok(tail)
    }

    /// The bytes to append at `at` for the objects that were added so far, and their directories; [`FileLayout::finish`] lists
    /// them. An object with references in a key with 32-bit offsets has to be placed before byte
    /// [`START_BIG_FILE`].
    ///
    /// # Errors
    /// As [`FileLayout::finish`], and unsupported for objects with references whose key would have another length than it had.
    pub fn place_objects(&mut self, at: u64) -> Result<Vec<u8>> {
        let mut out = Appendix { base: at, buffer: Buffer::new() };
        let changed = self.changed.clone();
        self.put_directories(&changed, &mut out)?;
        self.put_objects(&changed, &mut out)?;
        Ok(out.buffer.into_vec())
    }

    fn seek_directory(&self, index: usize) -> u64 {
        self.directories.get(index).map_or(self.header.begin, |directory| directory.record.seek_directory)
    }

    /// New directories first: what lies in them has to name their place.
    fn put_directories(&mut self, changed: &BTreeSet<usize>, out: &mut Appendix) -> Result<()> {
        for &index in changed {
            let Some(directory) = self.directories.get(index).filter(|directory| directory.place.is_none()) else {
                continue;
            };
            let (parent, listed) = (directory.parent, directory.listed);
            let seek_parent = self.seek_directory(parent);
            let names = ["TDirectory", directory.name.as_str(), directory.title.as_str()];
            let key = Key::place(out.at(), seek_parent, names, RECORD_BYTES, self.datime)?;
            let bytes = Bytes::from(key.write());
            // The record itself follows when its key list has a place.
            let place = out.put(&bytes, &[0; RECORD_BYTES]);
            if let Some(directory) = self.directories.get_mut(index) {
                directory.place = Some((key.payload_offset(), RECORD_BYTES as u64));
                directory.record.nbytes_name = u32::from(key.key_bytes);
                directory.record.seek_directory = place.start;
                directory.record.seek_parent = seek_parent;
            }
            let parent = self.directories.get_mut(parent);
            let entry = parent.zip(listed).and_then(|(parent, listed)| parent.entries.get_mut(listed));
            if let Some(entry) = entry {
                entry.content = Content::Stored { key: bytes, place };
            }
        }
        Ok(())
    }

    fn put_objects(&mut self, changed: &BTreeSet<usize>, out: &mut Appendix) -> Result<()> {
        for &index in changed {
            let Some(directory) = self.directories.get_mut(index) else { continue };
            let seek_parent = directory.record.seek_directory;
            for entry in directory.entries.iter_mut() {
                let Content::Object { title, payload } = &entry.content else { continue };
                let names = [entry.class_name.as_str(), entry.name.as_str(), title.as_str()];
                let (bytes, datime) = (payload.stored.len(), self.datime);
                let mut key = match payload.key_bytes {
                    Some(length) => Key::place_of_length(length, out.at(), seek_parent, names, bytes, datime)?,
                    None => Key::place(out.at(), seek_parent, names, bytes, datime)?,
                };
                key.cycle = entry.cycle;
                key.object_bytes = u32::try_from(payload.object_bytes).unwrap_or(u32::MAX);
                let key = Bytes::from(key.write());
                let place = out.put(&key, &payload.stored);
                entry.content = Content::Stored { key, place };
            }
        }
        Ok(())
    }

    fn put_key_lists(&mut self, changed: &BTreeSet<usize>, out: &mut Appendix) -> Result<()> {
        for &index in changed {
            let Some(directory) = self.directories.get_mut(index) else { continue };
            let mut list = Buffer::new();
            list.u32_be(u32::try_from(directory.entries.len()).unwrap_or(u32::MAX));
            for entry in directory.entries.iter() {
                if let Content::Stored { key, .. } = &entry.content {
                    list.put(key);
                }
            }
            let class_name = if index == 0 { "TFile" } else { "TDirectory" };
            let names = [class_name, directory.name.as_str(), directory.title.as_str()];
            let seek = directory.record.seek_directory;
            let key = Key::place(out.at(), seek, names, list.len(), self.datime)?;
            let place = out.put(&key.write(), list.as_slice());
            directory.record.modified = self.datime;
            directory.record.seek_keys = place.start;
            directory.record.nbytes_keys = key.nbytes;
            self.superseded.push(std::mem::replace(&mut directory.list, place));
        }
        Ok(())
    }

    /// The records of changed directories: into the new bytes, into the head, or as patches.
    fn put_records(&mut self, changed: &BTreeSet<usize>, out: &mut Appendix) -> Result<Vec<(u64, Vec<u8>)>> {
        let mut patches = Vec::new();
        for &index in changed {
            let Some(directory) = self.directories.get(index) else { continue };
            let Some((at, room)) = directory.place else { continue };
            let mut record = directory.record.write();
            // Directories of old files may have no UUID and no reserve; their offsets have 32 bits.
            if room < RECORD_BYTES as u64 {
                if directory.record.is_big() {
                    let what = format!("the record of directory '{}' is too small for 64-bit offsets", directory.name);
                    return Err(Error::unsupported(what).at(at));
                }
                record.truncate(SHORT_RECORD_BYTES);
            }
            match at.checked_sub(out.base).map(usize::try_from) {
                Some(Ok(position)) => out.buffer.patch(position, &record),
                _ if at < self.head.len() as u64 => {
                    overwrite(&mut self.head, usize::try_from(at).unwrap_or(usize::MAX), &record);
                }
                _ => patches.push((at, record)),
            }
        }
        Ok(patches)
    }

    fn put_streamer_info(&mut self, out: &mut Appendix) -> Result<()> {
        if !self.info.is_changed {
            return Ok(());
        }
        let (at, seek) = (out.at(), self.header.begin);
        let place = |bytes| Key::place(at, seek, ["TList", "StreamerInfo", INFO_TITLE], bytes, self.datime);
        // References in the list count from the start of the key.
        let list = self.info.infos.write(place(0)?.key_bytes);
        let payload = Payload::compressed(&list, Compression::COMMON)?;
        let mut key = place(payload.stored.len())?;
        key.object_bytes = u32::try_from(list.len()).unwrap_or(u32::MAX);
        let place = out.put(&key.write(), &payload.stored);
        self.header.seek_info = place.start;
        self.header.nbytes_info = key.nbytes;
        self.superseded.push(std::mem::replace(&mut self.info.place, place));
        self.info.is_changed = false;
        Ok(())
    }

    /// Last of all, because it says where the file ends.
    fn put_free_list(&mut self, out: &mut Appendix) -> Result<()> {
        self.free.shorten();
        let name = self.directories.first().map_or("", |top| top.name.as_str());
        let mut key = Key::place(out.at(), self.header.begin, ["TFile", name, ""], 0, self.datime)?;
        let (list, count) = self.free.write(out.at().saturating_add(u64::from(key.key_bytes)));
        key = Key::place(out.at(), self.header.begin, ["TFile", name, ""], list.len(), self.datime)?;
        let place = out.put(&key.write(), &list);
        self.header.seek_free = place.start;
        self.header.nbytes_free = key.nbytes;
        self.header.free_count = count;
        self.superseded.push(place);
        Ok(())
    }
}
