//! Bytes about to be written must read back as intended: a mistake here could lose everything in the file.

use std::collections::BTreeSet;
use std::ops::Range;

use bytes::Bytes;

use super::{Content, Directory, FileLayout, Tail};
use crate::container::directory::{self, DirectoryRecord, RECORD_BYTES, SHORT_RECORD_BYTES};
use crate::container::free::FreeList;
use crate::container::{Attempt, FetchedRanges, FileHeader, Interrupt, streamer_infos};
use crate::{Error, Result};

/// Reads bytes that are about to be written, with zeros in place of all others, none of which may matter.
fn read<T>(fetched: &mut FetchedRanges, read: impl Fn(&FetchedRanges) -> Attempt<T>) -> Result<T> {
    loop {
        match read(fetched) {
            Ok(value) => return Ok(value),
            Err(Interrupt::Failed(error)) => return Err(error),
            Err(Interrupt::Missing(ranges)) => {
                for Range { start, end } in ranges {
                    let bytes = usize::try_from(end.saturating_sub(start)).unwrap_or_default();
                    fetched.provide(start, vec![0; bytes].into());
                }
            }
        }
    }
}

#[cold]
fn other(what: &str) -> Error {
    Error::corrupt(format!("{what} does not read back as intended; nothing was written"))
}

fn same(what: &str, is_same: bool) -> Result<()> {
    if is_same { Ok(()) } else { Err(other(what)) }
}

impl FileLayout {
    /// Reads what [`FileLayout::finish`] made, by the code that reads files, and compares it with this layout: header, free
    /// list, streamer info if it is new, and the changed directories.
    pub(super) fn check(&self, tail: &Tail, base: u64, changed: &BTreeSet<usize>, is_info_changed: bool) -> Result<()> {
        let mut fetched = FetchedRanges::new(self.header.end);
        fetched.provide(base, tail.append.clone());
        for (offset, patch) in &tail.patches {
            fetched.provide(*offset, Bytes::copy_from_slice(patch));
        }
        let header = FileHeader::read(&self.head)?;
        same("the header", header == self.header)?;
        let (free, _) = read(&mut fetched, |fetched| FreeList::read(fetched, &header))?;
        same("the free list", free.open() == Some(header.end) && free.iter().eq(self.free.iter()))?;
        if is_info_changed {
            same("the streamer info", read(&mut fetched, streamer_infos)? == self.info.infos)?;
        }
        for directory in changed.iter().filter_map(|&index| Some((index, self.directories.get(index)?))) {
            self.check_directory(&mut fetched, directory)?;
        }
        Ok(())
    }

    fn check_directory(&self, fetched: &mut FetchedRanges, (index, expected): (usize, &Directory)) -> Result<()> {
        let what = format!("directory '{}'", expected.name);
        let Some((record_at, room)) = expected.place else { return Err(other(&what)) };
        let found = read(fetched, |fetched| match index {
            0 => directory::read_directory(fetched, &directory::top(fetched, self.header.begin)?),
            _ => directory::read_directory(fetched, &directory::ListedDirectory::of_record(record_at, room)),
        })?;
        let names = index > 0 || (&found.name, &found.title) == (&expected.name, &expected.title);
        // Old directories have no room for a UUID.
        let bytes = if room < RECORD_BYTES as u64 { SHORT_RECORD_BYTES } else { RECORD_BYTES };
        let written = |record: &DirectoryRecord| record.write().into_iter().take(bytes).collect::<Vec<_>>();
        let record = found.record_at == record_at && written(&found.record) == written(&expected.record);
        same(&what, names && record && found.keys.len() == expected.entries.len())?;
        for (listed, entry) in found.keys.iter().zip(expected.entries.iter()) {
            let Content::Stored { key, place } = &entry.content else { return Err(other(&what)) };
            listed.key.check_place(self.header.end)?;
            let is_same = listed.raw == *key
                && (&listed.key.name, listed.key.cycle, listed.key.seek_key) == (&entry.name, entry.cycle, place.start)
                && listed.key.is_directory() == entry.directory.is_some();
            same(&format!("{what}: '{};{}'", entry.name, entry.cycle), is_same)?;
        }
        Ok(())
    }
}
