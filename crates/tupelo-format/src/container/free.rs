//! The list of unused byte ranges (`TFree`, `TFile::MakeFree`, `TFile::WriteFree`).

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Attempt, Fetched, FileHeader, START_BIG_FILE, read_key};
use crate::Error;
use crate::wire::{Buffer, Cursor};

/// Added to the version where the offsets have 64 bits.
const BIG: u16 = 1000;
/// ROOT lets the last, open segment end at a multiple of this, in bytes.
const OPEN_STEP_BYTES: u64 = 1_000_000_000;
/// Segments are not joined beyond this: ROOT may mark one with its length, in 32 bits.
const MAX_SEGMENT_BYTES: u64 = 2_000_000_000;

/// Memory of a free list for each of its bytes: a segment of 10 bytes becomes one of 16 in two trees.
const SEGMENT_MEMORY: u64 = 6;

/// The unused ranges inside a file, without the open one behind its end.
///
/// ROOT also writes the negative length of a segment over its first bytes. That is left out here: a reader that opened
/// the file before still finds there what it looks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FreeList {
    /// First byte to the byte behind the last one; disjoint.
    segments: BTreeMap<u64, u64>,
}

impl FreeList {
    /// Reads the list of a file that was closed properly, and says where its record lies.
    pub(super) fn read(fetched: &Fetched, header: &FileHeader) -> Attempt<(Self, Range<u64>)> {
        if header.seek_free == 0 {
            return Err(Error::corrupt("the file was not closed: it has no free list").at(0).into());
        }
        let key = read_key(fetched, header.seek_free)?;
        let place = header.seek_free..header.seek_free.saturating_add(u64::from(key.nbytes));
        let at = header.seek_free.saturating_add(u64::from(key.key_bytes));
        let bytes = fetched.get(at, key.stored_bytes())?;
        fetched.memory().take(key.stored_bytes().saturating_mul(SEGMENT_MEMORY), "free list")?;
        let mut cursor = Cursor::new(&bytes, at);
        let mut list = Self::default();
        while cursor.remaining() > 0 {
            let offset = cursor.offset();
            let (first, last) = match cursor.u16_be()? > BIG {
                true => (cursor.u64_be()?, cursor.u64_be()?),
                false => (u64::from(cursor.u32_be()?), u64::from(cursor.u32_be()?)),
            };
            // The open segment is the last one.
            if last >= header.end {
                break;
            }
            if first < header.begin || first > last {
                return Err(Error::corrupt(format!("free segment from {first} to {last}")).at(offset).into());
            }
            list.insert(first..last.saturating_add(1));
        }
        Ok((list, place))
    }

    /// Segments, the open one included.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.segments.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Bytes of the segment that begins at an offset.
    pub(super) fn bytes_at(&self, first: u64) -> Option<u64> {
        self.segments.get(&first).map(|end| end.saturating_sub(first))
    }

    /// Adds a range that lies in the file and is not used any more.
    pub(super) fn release(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.insert(range);
        }
    }

    /// Adds a range and joins it with its neighbours.
    fn insert(&mut self, mut range: Range<u64>) {
        if let Some((&first, &end)) = self.segments.range(..=range.start).next_back()
            && end >= range.start
            && range.end.max(end).saturating_sub(first) <= MAX_SEGMENT_BYTES
        {
            range = first..range.end.max(end);
        }
        while let Some((&first, &end)) = self.segments.range(range.start..=range.end).next()
            && (range.end.max(end).saturating_sub(range.start) <= MAX_SEGMENT_BYTES || first == range.start)
        {
            self.segments.remove(&first);
            range.end = range.end.max(end);
        }
        self.segments.insert(range.start, range.end);
    }

    /// Bytes of the list in a record that starts at `at`, where the file ends.
    pub(super) fn write(&self, at: u64) -> (Vec<u8>, u32) {
        let mut buffer = Buffer::new();
        for (&first, &end) in &self.segments {
            entry(&mut buffer, first, end.saturating_sub(1));
        }
        // The open segment begins behind this very entry, whose length depends on where that is.
        let end = at.saturating_add(buffer.len() as u64 + 10);
        let first = if end < START_BIG_FILE { end } else { end.saturating_add(8) };
        let step = (first / OPEN_STEP_BYTES).saturating_add(1).saturating_mul(OPEN_STEP_BYTES);
        entry(&mut buffer, first, step.max(START_BIG_FILE));
        (buffer.into_vec(), self.count())
    }
}

fn entry(buffer: &mut Buffer, first: u64, last: u64) {
    match (u32::try_from(first), u32::try_from(last)) {
        (Ok(first), Ok(small)) if last <= START_BIG_FILE => {
            buffer.u16_be(1);
            buffer.u32_be(first);
            buffer.u32_be(small);
        }
        _ => {
            buffer.u16_be(BIG + 1);
            buffer.u64_be(first);
            buffer.u64_be(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Interrupt, Key};
    use super::*;

    /// Where the file ends whose list is read.
    const END: u64 = 1000;

    #[test]
    fn neighbours_join() {
        let mut list = FreeList::default();
        list.release(100..200);
        list.release(300..400);
        assert_eq!(list.segments, BTreeMap::from([(100, 200), (300, 400)]));
        list.release(200..300);
        list.release(500..600);
        assert_eq!(list.segments, BTreeMap::from([(100, 400), (500, 600)]));
        list.release(600..700 + MAX_SEGMENT_BYTES);
        assert_eq!(list.segments.len(), 3);
    }

    #[test]
    fn a_segment_that_is_too_long_to_be_joined_keeps_its_bytes() {
        let mut list = FreeList::default();
        list.release(200..201 + MAX_SEGMENT_BYTES);
        list.release(200..300);
        assert_eq!(list.segments, BTreeMap::from([(200, 201 + MAX_SEGMENT_BYTES)]));
        list.release(100..200);
        assert_eq!(list.segments, BTreeMap::from([(100, 200), (200, 201 + MAX_SEGMENT_BYTES)]));
        // As long as it may get.
        let mut list = FreeList::default();
        list.release(200..100 + MAX_SEGMENT_BYTES);
        list.release(100..200);
        assert_eq!(list.segments, BTreeMap::from([(100, 100 + MAX_SEGMENT_BYTES)]));
    }

    /// Reads a list of these entries, in a file whose first record lies at byte 100.
    fn read(version: u16, entries: &[(u64, u64)]) -> Attempt<BTreeMap<u64, u64>> {
        let mut list = Buffer::new();
        for &(first, last) in entries {
            list.u16_be(version);
            for offset in [first, last] {
                if version > 1000 { list.u64_be(offset) } else { list.u32_be(offset as u32) }
            }
        }
        let key = Key::place(400, 100, ["TFile", "f", ""], list.len(), 0).unwrap();
        let mut bytes = [key.write(), list.into_vec()].concat();
        bytes.resize((END - 400) as usize, 0);
        let mut fetched = Fetched::new(END);
        fetched.provide(400, bytes.into());
        let header = FileHeader {
            version: 64000,
            is_big: false,
            begin: 100,
            end: END,
            seek_free: 400,
            nbytes_free: key.nbytes,
            free_count: 0,
            nbytes_name: 0,
            compress: 0,
            seek_info: 0,
            nbytes_info: 0,
        };
        let (list, place) = FreeList::read(&fetched, &header)?;
        assert_eq!(place, 400..400 + u64::from(key.nbytes));
        assert_eq!(list.count() as usize, list.segments.len() + 1);
        Ok(list.segments)
    }

    #[test]
    fn segments_lie_between_the_first_record_and_the_end() {
        let open = (END, 2_000_000_000);
        // The highest version with 32-bit offsets; a list without the open segment; one byte, the first and the last.
        for version in [1, 1000, 1001] {
            let entries = [(100, 100), (150, 199), (END - 1, END - 1), open, (0, 0)];
            let segments = BTreeMap::from([(100, 101), (150, 200), (END - 1, END)]);
            assert_eq!(read(version, &entries), Ok(segments.clone()));
            assert_eq!(read(version, &entries[..3]), Ok(segments));
        }
        for (first, last) in [(99, 99), (99, 200), (151, 150), (u64::from(u32::MAX), 0)] {
            let Err(Interrupt::Failed(error)) = read(1, &[(first, last), open]) else { panic!("{first} to {last}") };
            assert_eq!(error.what(), format!("free segment from {first} to {last}"));
        }
    }

    #[test]
    fn the_open_segment_begins_where_the_file_ends() {
        for at in [1000, START_BIG_FILE - 11, START_BIG_FILE - 10, START_BIG_FILE, 7_654_321_000] {
            let (bytes, count) = FreeList::default().write(at);
            assert_eq!(count, 1);
            let mut cursor = Cursor::new(&bytes, 0);
            let (first, last) = match cursor.u16_be().unwrap() {
                1 => (u64::from(cursor.u32_be().unwrap()), u64::from(cursor.u32_be().unwrap())),
                _ => (cursor.u64_be().unwrap(), cursor.u64_be().unwrap()),
            };
            assert_eq!((first, cursor.remaining()), (at + bytes.len() as u64, 0));
            assert!(last > first && last % OPEN_STEP_BYTES == 0 && last - first <= START_BIG_FILE);
        }
    }
}
